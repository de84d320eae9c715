//! Assembles complete samples: counters, tasks, devices and kernel log of one interval, within about a second of its
//! end even if a source does not answer.
//!
//! It uses the same collectors as the screen. A tick of the counters starts a scan of the tasks, and the sample is
//! complete when the scan is done. What has not arrived by [`SAMPLE_DEADLINE`] is marked as blocked.

use crate::collect::clock;
use crate::collect::collectors::Collectors;
use crate::collect::host::read_host;
use crate::collect::kmsg::{KmsgReader, read_hung_task_warnings};
use crate::collect::processes::ScanOptions;
use crate::doctor::{RuleEngine, fact_requests};
use crate::export::json::{LogSince, UnavailableSource};
use crate::jobs::WorkerPool;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::Observation;
use crate::model::reading::{BlockedRead, Reading, blocked_time};
use crate::model::syncs::SLOW_THRESHOLD_MS;
use crate::model::system_state::SystemState;
use crate::root::Root;
use crate::subprocess::pool::PoolJob as _;
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// How long after the counters the rest of a sample may arrive.
const SAMPLE_DEADLINE: Duration = Duration::from_millis(1_700);
/// How long the first scan may take, which reads the names of all tasks.
const FIRST_SCAN_TIMEOUT: Duration = Duration::from_secs(30);
const BLOCKED_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Syncs of at least this duration are reported individually.
pub(super) const SLOW_SYNC_THRESHOLD: Duration = Duration::from_millis(SLOW_THRESHOLD_MS);
const TRACING_LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// What a printer needs besides counters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SamplerOptions {
    pub(super) threads: bool,
    /// Read swap, priority and wait channel of every task for each sample.
    pub(super) read_every_task: bool,
    pub(super) queue_settings: bool,
    pub(super) kernel_log: bool,
    /// Keep all observations for [`Sampler::take_events`].
    pub(super) keep_events: bool,
    pub(super) tracing: bool,
    /// Trace syncs and report those of at least this duration individually.
    pub(super) slow_syncs_from: Option<Duration>,
    /// Trace I/O by file.
    pub(super) files: bool,
    /// Trace what tasks wait for.
    pub(super) waits: bool,
    /// Evaluate findings, and read settings and limits this often.
    pub(super) facts_every: Option<Duration>,
}

impl SamplerOptions {
    /// All that rules and reports need, with settings and limits read this often.
    pub(super) fn for_findings(facts_every: Duration, tracing: bool) -> Self {
        Self {
            read_every_task: true,
            queue_settings: true,
            kernel_log: true,
            facts_every: Some(facts_every),
            tracing,
            slow_syncs_from: tracing.then_some(SLOW_SYNC_THRESHOLD),
            files: tracing,
            waits: tracing,
            ..Self::default()
        }
    }
}

enum SamplerInput {
    Collector(Vec<Observation>),
    Worker(Box<WorkerJob>, WorkerReply),
}

pub(super) struct Sampler {
    /// The system state; complete after [`Sampler::next_sample`].
    pub(super) state: SystemState,
    /// The findings in the newest complete sample.
    pub(super) findings: RuleEngine,
    /// The first kernel log record that belongs to this sample.
    pub(super) since: LogSince,
    root: Root,
    options: SamplerOptions,
    interval: Duration,
    collectors: Collectors,
    pool: WorkerPool,
    inbox: UnboundedReceiver<SamplerInput>,
    kmsg: Option<KmsgReader>,
    last_record: u64,
    events: Vec<Observation>,
    requests: [Option<OpenRequest>; REQUESTS.len()],
    gaps: Vec<UnavailableSource>,
    facts_requested_at: Option<Instant>,
    /// Boot clock of the newest scan, even if it failed.
    last_scan_boot_ns: u64,
    /// Whether the topology, or the reason why it is missing, has arrived.
    topology_arrived: bool,
    last_scan_duration: Duration,
    started: Instant,
    /// A sample waited in vain for topology or queue settings: the next ones do not wait for them.
    skip_slow_sources: bool,
    /// Boot clock of the tick whose scan is pending, and its deadline.
    pending_sample: Option<(u64, Instant)>,
    /// When the next tick is overdue.
    tick_deadline: Instant,
}

/// A request to a child process that has not been answered.
enum OpenRequest {
    Pending { boot_ns: u64 },
    Failed(String),
}

/// What is read by child processes: the documented source, and where it is read.
const REQUESTS: [(&str, &str); 5] = [
    ("queue_settings", "/sys/block/*/queue"),
    ("settings", "reading settings and limits"),
    ("room", "local file systems"),
    ("room", "network file systems"),
    ("container_names", "state files of container runtimes"),
];

/// The index in [`REQUESTS`] of what a job reads.
fn request_index(job: &WorkerJob) -> Option<usize> {
    match job {
        WorkerJob::QueueSettings(..) => Some(0),
        WorkerJob::DoctorFacts(..) => Some(1),
        WorkerJob::DiskSpace { network, .. } => Some(2 + usize::from(*network)),
        WorkerJob::ContainerNames => Some(4),
        _ => None,
    }
}

fn start_collectors(
    root: &Root,
    interval: Duration,
    options: &SamplerOptions,
    outbox: UnboundedSender<SamplerInput>,
) -> anyhow::Result<Collectors> {
    let scan = ScanOptions {
        threads: options.threads,
        delays: true,
        all_names: true,
        wait_channels: options.read_every_task,
        all_visible: options.read_every_task,
        ..Default::default()
    };
    let on_event = Arc::new(move |event| outbox.send(SamplerInput::Collector(event)).is_ok());
    let collectors = Collectors::start(root, interval, scan, on_event).context("no thread for the collectors")?;
    collectors.set_tracing(options.tracing);
    collectors.tracer.request_syncs(options.slow_syncs_from);
    collectors.tracer.request_files(options.files);
    collectors.tracer.request_waits(options.waits);
    Ok(collectors)
}

impl Sampler {
    /// Starts the collectors; the first interval begins now.
    pub(super) fn start(root: &Root, interval: Duration, options: SamplerOptions) -> anyhow::Result<Self> {
        let (outbox, inbox) = unbounded_channel();
        let state = SystemState::new(read_host(root), clock::now_log_clock());
        let job_outbox = outbox.clone();
        let on_reply = move |job, reply| drop(job_outbox.send(SamplerInput::Worker(Box::new(job), reply)));
        let pool = WorkerPool::new(root.clone(), Arc::new(on_reply));
        let collectors = start_collectors(root, interval, &options, outbox)?;
        let mut sampler = Self {
            findings: RuleEngine::default(),
            since: LogSince::Time(state.now().wall_ns),
            state,
            root: root.clone(),
            options,
            interval,
            collectors,
            pool,
            inbox,
            kmsg: None,
            last_record: 0,
            events: Vec::new(),
            requests: Default::default(),
            gaps: Vec::new(),
            facts_requested_at: None,
            last_scan_boot_ns: 0,
            topology_arrived: false,
            skip_slow_sources: false,
            last_scan_duration: Duration::ZERO,
            started: Instant::now(),
            pending_sample: None,
            tick_deadline: Instant::now() + interval + SAMPLE_DEADLINE,
        };
        if options.kernel_log {
            match KmsgReader::open(root) {
                Reading::Ok(reader) => sampler.kmsg = Some(reader),
                other => sampler.state.kernel_log_status = other.map(|_| ()),
            }
        }
        Ok(sampler)
    }

    /// Waits for the next complete sample. Cancel-safe.
    ///
    /// # Errors
    ///
    /// If not even the counters arrive.
    pub(super) async fn next_sample(&mut self) -> anyhow::Result<()> {
        let mut watch = tokio::time::interval(BLOCKED_CHECK_INTERVAL);
        loop {
            // A scan of 20,000 tasks on a busy machine takes long: allow as much as last time.
            let until =
                self.pending_sample.map_or(self.tick_deadline, |(_, until)| until + 2 * self.last_scan_duration);
            tokio::select! {
                biased;
                input = self.inbox.recv() => match input {
                    Some(input) => self.apply_input(input),
                    None => bail!("the collectors ended"),
                },
                _ = watch.tick() => self.update_blocked(),
                () = sleep_until(until) => {
                    if self.pending_sample.is_none() {
                        bail!("the kernel's counters did not arrive; is /proc readable?");
                    }
                    self.skip_slow_sources = true;
                    self.mark_late_scan_blocked();
                    break;
                }
            }
            self.request_facts_if_due();
            if self.is_complete() {
                break;
            }
        }
        self.pending_sample = None;
        self.read_kernel_log();
        self.gaps = self.find_gaps();
        if self.options.keep_events {
            let gaps = self.gaps.iter().map(|g| (g.source.to_owned(), g.reason.clone())).collect();
            self.events.extend([
                Observation::Unavailable(gaps),
                Observation::BlockedSources(self.state.blocked_reads.clone()),
                Observation::HungTaskWarnings(self.state.hung_task_warnings),
                Observation::KernelLogState(self.state.kernel_log_status.clone()),
            ]);
        }
        if self.options.facts_every.is_some() {
            self.findings.evaluate(&self.state);
        }
        Ok(())
    }

    /// All observations since the last call, in order.
    pub(super) fn take_events(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.events)
    }

    /// Whether the next scan reads swap, priority and wait channel of every task, or only of those that ran.
    pub(super) fn set_read_every_task(&self, fresh: bool) {
        self.collectors.update_scan_options(|w| w.all_visible = fresh);
    }

    /// Updates the state, and keeps a copy where one is wanted.
    fn apply(&mut self, observation: Observation) {
        if self.options.keep_events {
            self.events.push(observation.clone());
        }
        self.state.apply(observation);
    }

    fn apply_input(&mut self, input: SamplerInput) {
        match input {
            SamplerInput::Collector(observations) => {
                observations.into_iter().for_each(|observation| self.apply_reading(observation));
            }
            SamplerInput::Worker(job, reply) => {
                let open = match reply {
                    WorkerReply::Failed(why) => Some(OpenRequest::Failed(why)),
                    WorkerReply::Observed(observation) => {
                        self.apply(observation);
                        None
                    }
                    _ => return,
                };
                if let Some(index) = request_index(&job) {
                    self.requests[index] = open;
                }
            }
        }
    }

    /// Starts a job that a sample waits for. One that still runs continues.
    fn request(&mut self, job: WorkerJob) {
        let Some(index) = request_index(&job) else { return };
        let request = &mut self.requests[index];
        match self.pool.start(job) {
            Ok(()) => *request = Some(OpenRequest::Pending { boot_ns: clock::boot_ns() }),
            Err(_) if matches!(request, Some(OpenRequest::Pending { .. })) => {}
            Err(why) => *request = Some(OpenRequest::Failed(why)),
        }
    }

    fn apply_reading(&mut self, observation: Observation) {
        if let Observation::Tasks(update) = &observation {
            self.last_scan_duration = Duration::from_nanos(update.ok().map_or(0, |u| u.duration_ns));
            self.last_scan_boot_ns = update.ok().map_or_else(clock::boot_ns, |u| u.time.boot_ns);
        }
        let is_first = self.state.last_sample.is_none();
        let (is_sample, is_topology) =
            (matches!(observation, Observation::Sample(_)), matches!(observation, Observation::Topology(_)));
        self.apply(observation);
        if is_sample {
            self.on_sample(is_first);
        }
        if is_topology {
            self.topology_arrived = true;
            self.request_queue_settings();
        }
    }

    /// A tick of counters has come: the scan of the tasks that follows completes the sample.
    fn on_sample(&mut self, is_first: bool) {
        let now = Instant::now();
        self.tick_deadline = now + self.interval + SAMPLE_DEADLINE;
        // A tick during which the scan is still running belongs to the same sample. No sample is complete before
        // the first scan, which has all names to fetch, or while tracing, which it is to contain, is being loaded.
        let is_ready = (self.last_scan_boot_ns > 0 || now > self.started + FIRST_SCAN_TIMEOUT)
            && (self.collectors.tracer.is_settled() || now > self.started + TRACING_LOAD_TIMEOUT);
        if !is_first && is_ready && self.pending_sample.is_none() {
            self.pending_sample = Some((self.state.now().boot_ns, now + SAMPLE_DEADLINE));
        }
    }

    fn request_queue_settings(&mut self) {
        let names = self.state.devices_to_query();
        if self.options.queue_settings && !names.is_empty() {
            self.request(WorkerJob::QueueSettings(names));
        }
    }

    /// Requests settings and limits when they are due and tasks and mounts are known.
    fn request_facts_if_due(&mut self) {
        let Some(every) = self.options.facts_every else { return self.request_container_names_if_new() };
        let known = self.last_scan_boot_ns > 0 && self.topology_arrived;
        if !known || self.facts_requested_at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.facts_requested_at = Some(Instant::now());
        self.request(WorkerJob::DoctorFacts(fact_requests::tasks_to_query(&self.state)));
        // Runs in parallel child processes, because the sample waits for facts and free space.
        for network in [false, true] {
            let mounts = fact_requests::mounts_to_query(&self.state, network);
            if !mounts.is_empty() {
                // A job that is still running continues, and is reported as blocked.
                let _ = self.pool.start(WorkerJob::DiskSpace { mounts, network });
            }
        }
    }

    /// Where facts are not asked for, names of containers are, once for each new one.
    fn request_container_names_if_new(&mut self) {
        if self.state.processes.has_new_container() {
            self.state.processes.container_names_requested();
            self.request(WorkerJob::ContainerNames);
        }
    }

    fn update_blocked(&mut self) {
        self.state.blocked_reads = self.collectors.find_blocked();
        if let (Some(b), false) = (self.state.blocked_reads.first(), self.topology_arrived) {
            let blocked = Reading::Blocked(b.clone());
            if self.state.topology != blocked {
                self.apply(Observation::Topology(Box::new(blocked)));
            }
        }
    }

    fn is_complete(&self) -> bool {
        let Some((at, _)) = self.pending_sample else { return false };
        let is_pending = |request: &Option<OpenRequest>| matches!(request, Some(OpenRequest::Pending { .. }));
        let rest = self.topology_arrived && !self.requests.iter().any(is_pending);
        self.last_scan_boot_ns >= at && (rest || self.skip_slow_sources)
    }

    /// Marks a late scan as blocked, so that old data does not pass for new.
    fn mark_late_scan_blocked(&mut self) {
        let Some((at, _)) = self.pending_sample else { return };
        if self.last_scan_boot_ns < at {
            let on = "/proc/PID: the look at the tasks".into();
            let late = BlockedRead { since_boot_ns: at, waiting_on: on };
            self.apply(Observation::Tasks(Box::new(Reading::Blocked(late))));
        }
    }

    fn read_kernel_log(&mut self) {
        self.since = LogSince::after_record(self.last_record, self.state.now().wall_ns);
        if !self.state.hung_tasks.is_empty() {
            self.state.hung_task_warnings = read_hung_task_warnings(&self.root).ok().copied();
        }
        let Some(reader) = &mut self.kmsg else { return };
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            self.last_record = record.seq;
            records.push(record);
        }
        self.apply(Observation::KernelLog(records, clock::now_log_clock()));
    }

    /// Sources missing from the newest complete sample that the system state does not list.
    pub(super) fn gaps(&self) -> &[UnavailableSource] {
        &self.gaps
    }

    fn find_gaps(&self) -> Vec<UnavailableSource> {
        let secs_since = |boot_ns: u64| clock::boot_ns().saturating_sub(boot_ns) / 1_000_000_000;
        let mut out = Vec::new();
        for ((source, place), request) in REQUESTS.iter().zip(&self.requests) {
            out.extend(request.as_ref().map(|request| match request {
                OpenRequest::Pending { boot_ns } => {
                    let time = blocked_time(*boot_ns, clock::boot_ns());
                    UnavailableSource::new(source, format!("blocked {time} in {place}"))
                }
                OpenRequest::Failed(why) => UnavailableSource::new(source, why),
            }));
        }
        // A sample does not wait for free space.
        for p in self.pool.pending().iter().filter(|p| matches!(*p.job, WorkerJob::DiskSpace { .. })) {
            let secs = secs_since(p.started_boot_ns);
            let why = format!("{}: no answer for {secs} s (child {})", p.job.key(), p.pid);
            out.push(UnavailableSource::new("room", why));
        }
        out
    }
}
