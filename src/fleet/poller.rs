//! Asks the source again and again, on a thread of its own, so that nothing that draws ever waits for it.

use super::judge::SlowDevices;
use super::query_error::QueryError;
use super::range::{RangeAnswers, RangeRequest};
use super::source::{DevicesReport, HostsReport, PrometheusSource};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};

/// What the poller is to do.
#[derive(Debug)]
pub enum PollCommand {
    /// Evaluate at this time, seconds since 1970, or at the present. What is reported from then on has this generation.
    ChooseTime {
        /// `None`: now.
        time: Option<f64>,
        /// Counts the times chosen, so that an answer about another time is recognized.
        generation: u64,
    },
    /// Ask for series over time, in place of an earlier request that has no answer yet.
    Range(Box<RangeRequest>),
}

/// What the poller reports.
#[derive(Debug)]
pub enum FleetEvent {
    /// The hosts, or why they are not known.
    Hosts(u64, Result<HostsReport, QueryError>),
    /// The devices.
    Devices(u64, DevicesReport),
    /// The devices that are slower than others of their model.
    Slow(u64, Result<SlowDevices, QueryError>),
    /// Series over time.
    Range(Box<RangeRequest>, RangeAnswers),
}

/// Receives reports, on the poller's thread; false: no more are wanted.
pub type FleetSink = Box<dyn Fn(FleetEvent) -> bool + Send>;

/// Devices are asked for at most this often: their queries cost most.
const DEVICES_INTERVAL: Duration = Duration::from_secs(5);
/// Devices are judged at most this often: it takes minutes to tell.
const SLOW_INTERVAL: Duration = Duration::from_secs(60);
/// How often the answer about a time in the past is asked for again.
const SETTLED_INTERVAL: Duration = Duration::from_secs(60);
/// A pause is at least this many times as long as the queries before it took.
const MIN_PAUSE_FACTOR: u32 = 3;
/// Stack of the thread.
const STACK_BYTES: usize = 512 * 1024;

/// A running poller. It ends when this is dropped and its queries are answered or given up.
pub struct FleetPoller(mpsc::UnboundedSender<PollCommand>);

impl FleetPoller {
    /// Starts to ask every `interval`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(source: PrometheusSource, interval: Duration, sink: FleetSink) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, commands) = mpsc::unbounded_channel();
        let mut loop_ = PollLoop::new(source, interval, sink, commands);
        let body = move || {
            runtime.block_on(loop_.run());
            // A look-up of a name may hang.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("fleet".into()).stack_size(STACK_BYTES).spawn(body)?;
        Ok(Self(sender))
    }

    /// A poller that another thread runs, which takes the commands.
    pub(super) fn from_sender(commands: mpsc::UnboundedSender<PollCommand>) -> Self {
        Self(commands)
    }

    /// Gives a command.
    pub fn send(&self, command: PollCommand) {
        // It fails only when the poller has ended.
        let _ = self.0.send(command);
    }
}

struct PollLoop {
    source: PrometheusSource,
    interval: Duration,
    sink: FleetSink,
    commands: mpsc::UnboundedReceiver<PollCommand>,
    time: Option<f64>,
    generation: u64,
    range: Option<Box<RangeRequest>>,
    hosts_due: Instant,
    devices_due: Instant,
    slow_due: Instant,
    /// When the source evaluated last, seconds since 1970.
    evaluated_at: Option<f64>,
}

/// What a step of the loop came to.
enum PollStep {
    Done,
    Interrupted(PollCommand),
    Ended,
}

impl PollLoop {
    fn new(
        source: PrometheusSource,
        interval: Duration,
        sink: FleetSink,
        commands: mpsc::UnboundedReceiver<PollCommand>,
    ) -> Self {
        let now = Instant::now();
        Self {
            source,
            interval,
            sink,
            commands,
            time: None,
            generation: 0,
            range: None,
            hosts_due: now,
            devices_due: now,
            slow_due: now,
            evaluated_at: None,
        }
    }

    async fn run(&mut self) {
        loop {
            match self.step().await {
                PollStep::Done => {}
                PollStep::Interrupted(command) => self.apply(command),
                PollStep::Ended => return,
            }
        }
    }

    fn apply(&mut self, command: PollCommand) {
        match command {
            PollCommand::ChooseTime { time, generation } => {
                (self.time, self.generation) = (time, generation);
                let now = Instant::now();
                (self.hosts_due, self.devices_due, self.slow_due) = (now, now, now);
            }
            PollCommand::Range(request) => self.range = Some(request),
        }
    }

    /// Asks for what is due, or waits until something is. Choosing another time interrupts either.
    async fn step(&mut self) -> PollStep {
        // Requests that came meanwhile; only the newest counts.
        while let Ok(command) = self.commands.try_recv() {
            self.apply(command);
        }
        if self.commands.is_closed() {
            return PollStep::Ended;
        }
        let started = Instant::now();
        if self.hosts_due <= started {
            return self.poll_hosts(started).await;
        }
        if let Some(request) = self.range.take() {
            return self.poll_range(request).await;
        }
        if self.devices_due <= started {
            return self.poll_devices(started).await;
        }
        if self.slow_due <= started
            && let Some(end) = self.time.or(self.evaluated_at)
        {
            return self.poll_slow(started, end).await;
        }
        let mut due = self.hosts_due.min(self.devices_due);
        if self.evaluated_at.is_some() {
            due = due.min(self.slow_due);
        }
        tokio::select! {
            command = self.commands.recv() => command.map_or(PollStep::Ended, PollStep::Interrupted),
            () = sleep_until(due.into()) => PollStep::Done,
        }
    }

    async fn poll_slow(&mut self, started: Instant, end: f64) -> PollStep {
        let work = self.source.slow_devices(end);
        let slow = match until_other_time(&mut self.commands, &mut self.range, work).await {
            Ok(slow) => slow,
            Err(step) => return step,
        };
        self.slow_due = next_due(started, self.interval.max(SLOW_INTERVAL));
        self.report(FleetEvent::Slow(self.generation, slow))
    }

    async fn poll_range(&mut self, request: Box<RangeRequest>) -> PollStep {
        let work = self.source.range(&request);
        match until_other_time(&mut self.commands, &mut self.range, work).await {
            Ok(answers) => self.report(FleetEvent::Range(request, answers)),
            Err(step) => step,
        }
    }

    fn report(&self, event: FleetEvent) -> PollStep {
        if (self.sink)(event) { PollStep::Done } else { PollStep::Ended }
    }

    async fn poll_hosts(&mut self, started: Instant) -> PollStep {
        let work = self.source.hosts(self.time);
        let hosts = match until_other_time(&mut self.commands, &mut self.range, work).await {
            Ok(hosts) => hosts,
            Err(step) => return step,
        };
        self.evaluated_at = hosts.as_ref().map_or(self.evaluated_at, |report| report.evaluated_at);
        // At a time in the past nothing changes but what was not answered.
        let is_settled = self.time.is_some() && hosts.as_ref().is_ok_and(|report| report.failed.is_empty());
        let interval = if is_settled { self.interval.max(SETTLED_INTERVAL) } else { self.interval };
        self.hosts_due = next_due(started, interval);
        self.report(FleetEvent::Hosts(self.generation, hosts))
    }

    async fn poll_devices(&mut self, started: Instant) -> PollStep {
        let work = self.source.devices(self.time);
        let devices = match until_other_time(&mut self.commands, &mut self.range, work).await {
            Ok(devices) => devices,
            Err(step) => return step,
        };
        let interval = if self.time.is_some() { SETTLED_INTERVAL } else { DEVICES_INTERVAL };
        self.devices_due = next_due(started, self.interval.max(interval));
        self.report(FleetEvent::Devices(self.generation, devices))
    }
}

/// Does some work until it is done or another time is chosen; a request for series is put aside.
async fn until_other_time<T>(
    commands: &mut mpsc::UnboundedReceiver<PollCommand>,
    range: &mut Option<Box<RangeRequest>>,
    work: impl Future<Output = T>,
) -> Result<T, PollStep> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(PollCommand::Range(request)) => *range = Some(request),
                Some(travel) => return Err(PollStep::Interrupted(travel)),
                None => return Err(PollStep::Ended),
            },
            done = &mut work => return Ok(done),
        }
    }
}

/// When to ask again after queries that began at `started` and have just ended.
fn next_due(started: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    (started + interval).max(now + now.duration_since(started) * MIN_PAUSE_FACTOR)
}

/// Asks once, for what is printed: hosts, devices, and which of them are slow.
///
/// # Errors
/// It is not known which hosts there are.
pub async fn ask_once(
    source: &mut PrometheusSource,
    time: Option<f64>,
    deadline: Duration,
) -> Result<(HostsReport, DevicesReport, Result<SlowDevices, QueryError>), QueryError> {
    let answers = async {
        let hosts = source.hosts(time).await?;
        let devices = source.devices(time).await;
        let slow = match time.or(hosts.evaluated_at) {
            Some(end) => source.slow_devices(end).await,
            None => Ok(SlowDevices::new()),
        };
        Ok((hosts, devices, slow))
    };
    timeout(deadline, answers).await.unwrap_or(Err(QueryError::Timeout(deadline)))
}
