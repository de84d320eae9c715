//! Whole samples for whoever prints: counters, tasks, devices and the kernel log of one interval
//! together, within a second or so of its end whatever does not answer.
//!
//! The same collectors feed the screen. Here their news is put together: a tick of counters starts a look
//! at the tasks, and the sample is whole when that look is in. What is not in by [`GRACE`] is marked as
//! blocked, never waited for.

use crate::collect::clock;
use crate::collect::collectors::{Collectors, CollectorEvent};
use crate::collect::host::read_host;
use crate::collect::kmsg::{KmsgReader, read_hung_task_warnings};
use crate::collect::processes::ScanOptions;
use crate::diagnose::{RuleEngine, fact_requests};
use crate::export::json::{UnavailableSource, LogSince};
use crate::model::reading::{BlockedRead, Reading};
use crate::model::syncs::SLOW_THRESHOLD_MS;
use crate::model::system_state::SystemState;
use crate::record::Observation;
use crate::root::Root;
use crate::worker::job::{WorkerJob, WorkerReply};
use crate::worker::pool::WorkerPool;
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// How long after the counters the rest of a sample may arrive.
const GRACE: Duration = Duration::from_millis(1_700);
/// The first look at very many tasks may take longer than a short interval; it is waited for this long.
const FIRST_LOOK: Duration = Duration::from_secs(30);
/// How often the collectors are asked whether they hang.
const WATCH: Duration = Duration::from_millis(100);
/// Syncs that take so long are told one by one.
pub const SYNCS_FROM: Duration = Duration::from_millis(SLOW_THRESHOLD_MS);
/// Syncs that are asked for are waited for so long at the beginning: programs take their time into the kernel.
const LOADING: Duration = Duration::from_secs(10);
/// What a printer needs beyond counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Rows are threads.
    pub threads: bool,
    /// Swap, priority and wait channel of every task as of this very sample.
    pub fresh: bool,
    /// Queue settings of the devices.
    pub queues: bool,
    /// The kernel log.
    pub log: bool,
    /// Everything that comes is kept for [`Gather::news`].
    pub news: bool,
    /// Latencies of requests, from tracing.
    pub tracing: bool,
    /// Syncs, from tracing, those that take so long one by one.
    pub syncs: Option<Duration>,
    /// Findings, with settings and limits read anew so often.
    pub facts: Option<Duration>,
}

enum Input {
    News(CollectorEvent),
    Answer(Box<WorkerJob>, WorkerReply),
}

/// Samples being gathered.
pub struct Gather {
    /// What is known; whole after [`Gather::next`].
    pub world: SystemState,
    /// What is wrong, as of the newest whole sample.
    pub findings: RuleEngine,
    /// From where on the kernel log is new in this sample.
    pub since: LogSince,
    root: Root,
    needs: Needs,
    interval: Duration,
    feed: Collectors,
    pool: WorkerPool,
    inbox: UnboundedReceiver<Input>,
    kmsg: Option<KmsgReader>,
    last_record: u64,
    news: Vec<Observation>,
    queues: Asked,
    facts: Asked,
    /// Why asking file systems for their room failed: local ones, those over a network.
    room: [Option<String>; 2],
    gaps: Vec<UnavailableSource>,
    /// When settings and limits were asked for last.
    facts_at: Option<Instant>,
    /// Boot clock of the newest look at the tasks, also of one that failed.
    looked: u64,
    /// Whether the topology came, or the reason why not.
    topo_told: bool,
    /// How long the newest look took.
    took: Duration,
    started: Instant,
    /// A sample has waited in vain for topology or queue settings: the next ones do not wait for them.
    gave_up: bool,
    /// Boot clock of the tick that the look at the tasks has to follow, and until when it may.
    due: Option<(u64, Instant)>,
    /// When the next tick is missing.
    overdue: Instant,
}

/// How it stands with what a child was asked.
#[derive(PartialEq)]
enum Asked {
    No,
    Since { boot_ns: u64 },
    Answered,
    Failed(String),
}

impl Gather {
    /// Starts the collectors; the first interval begins now.
    pub fn start(root: &Root, interval: Duration, needs: Needs) -> anyhow::Result<Self> {
        let (outbox, inbox) = unbounded_channel();
        let world = SystemState::new(read_host(root), clock::now_log_clock());
        let pool = {
            let outbox = outbox.clone();
            WorkerPool::new(
                root.clone(),
                Arc::new(move |job, reply| drop(outbox.send(Input::Answer(Box::new(job), reply)))),
            )
        };
        let wants = ScanOptions {
            threads: needs.threads,
            delays: true,
            all_names: true,
            wait_channels: needs.fresh,
            all_visible: needs.fresh,
            ..Default::default()
        };
        let feed = Collectors::start(root, interval, wants, Arc::new(move |n| outbox.send(Input::News(n)).is_ok()))
            .context("no thread for the collectors")?;
        feed.set_tracing(needs.tracing);
        feed.set_sync_threshold(needs.syncs);
        let mut gather = Self {
            findings: RuleEngine::default(),
            since: LogSince::Time(world.now().wall_ns),
            world,
            root: root.clone(),
            needs,
            interval,
            feed,
            pool,
            inbox,
            kmsg: None,
            last_record: 0,
            news: Vec::new(),
            queues: Asked::No,
            facts: Asked::No,
            room: [None, None],
            gaps: Vec::new(),
            facts_at: None,
            looked: 0,
            topo_told: false,
            gave_up: false,
            took: Duration::ZERO,
            started: Instant::now(),
            due: None,
            overdue: Instant::now() + interval + GRACE,
        };
        if needs.log {
            match KmsgReader::open(root) {
                Reading::Ok(reader) => gather.kmsg = Some(reader),
                other => gather.world.kernel_log_status = other.map(|_| ()),
            }
        }
        Ok(gather)
    }

    /// Waits for the next whole sample. An error if not even the counters arrive. May be dropped and
    /// called again at any time.
    pub async fn next(&mut self) -> anyhow::Result<()> {
        let mut watch = tokio::time::interval(WATCH);
        loop {
            // Twenty thousand tasks take their time on a busy machine: as long as they took before.
            let until = self.due.map_or(self.overdue, |(_, until)| until + 2 * self.took);
            tokio::select! {
                biased;
                input = self.inbox.recv() => match input {
                    Some(input) => self.take(input),
                    None => bail!("the collectors ended"),
                },
                _ = watch.tick() => self.watch(),
                () = sleep_until(until) => {
                    if self.due.is_none() {
                        bail!("the kernel's counters did not arrive; is /proc readable?");
                    }
                    self.gave_up = true;
                    self.tasks_late();
                    break;
                }
            }
            self.ask_facts();
            if self.is_whole() {
                break;
            }
        }
        self.due = None;
        self.read_log();
        self.gaps = self.missing();
        if self.needs.news {
            let gaps = self.gaps.iter().map(|g| (g.source.to_owned(), g.reason.clone())).collect();
            self.news.extend([
                Observation::Unavailable(gaps),
                Observation::BlockedSources(self.world.blocked_reads.clone()),
                Observation::HungTaskWarnings(self.world.hung_task_warnings),
                Observation::KernelLogState(self.world.kernel_log_status.clone()),
            ]);
        }
        if self.needs.facts.is_some() {
            self.findings.evaluate(&self.world);
        }
        Ok(())
    }

    /// All that came since the last call, in its order.
    pub fn news(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.news)
    }

    /// Has swap, priority and wait channel of every task read at the next look, or only of those that ran.
    pub fn fresh(&self, fresh: bool) {
        self.feed.update_scan_options(|w| w.all_visible = fresh);
    }

    fn keep(&mut self, news: impl FnOnce() -> Observation) {
        if self.needs.news {
            self.news.push(news());
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::News(CollectorEvent::SampleAndTasks(sample, procs)) => {
                self.take(Input::News(CollectorEvent::Sample(sample)));
                self.take(Input::News(CollectorEvent::Tasks(procs)));
            }
            Input::News(CollectorEvent::Sample(sample)) => {
                let (at, first) = (sample.time.boot_ns, self.world.last_sample.is_none());
                self.keep(|| Observation::Sample(sample.clone()));
                self.world.apply_sample(*sample);
                self.overdue = Instant::now() + self.interval + GRACE;
                // A tick during which the look at the tasks was still under way belongs to the same sample,
                // and none is worth anything before the first look, which has all names to fetch.
                let ready = self.looked > 0 || Instant::now() > self.started + FIRST_LOOK;
                let ready = ready && (self.feed.is_tracing_settled() || Instant::now() > self.started + LOADING);
                if !first && ready && self.due.is_none() {
                    self.due = Some((at, Instant::now() + GRACE));
                }
            }
            Input::News(CollectorEvent::Tasks(update)) => {
                self.took = Duration::from_nanos(update.ok().map_or(0, |u| u.duration_ns));
                self.looked = update.ok().map_or_else(clock::boot_ns, |u| u.time.boot_ns);
                self.keep(|| Observation::Tasks(update.clone()));
                self.world.apply_processes(*update);
            }
            Input::News(CollectorEvent::Topology(topo)) => {
                self.keep(|| Observation::Topology(topo.clone()));
                self.world.topology = *topo;
                self.topo_told = true;
                self.ask_queues();
            }
            Input::Answer(job, WorkerReply::Failed(why)) => match *job {
                WorkerJob::QueueSettings { .. } => self.queues = Asked::Failed(why),
                WorkerJob::DoctorFacts { .. } => self.facts = Asked::Failed(why),
                WorkerJob::DiskSpace { network, .. } => self.room[usize::from(network)] = Some(why),
                _ => {}
            },
            Input::Answer(_, WorkerReply::QueueSettings(queues)) => {
                self.keep(|| Observation::Queues(queues.clone()));
                self.world.queues.extend(queues);
                self.queues = Asked::Answered;
            }
            Input::Answer(_, WorkerReply::DoctorFacts(facts)) => {
                self.keep(|| Observation::Facts(facts.clone()));
                self.world.slow_facts.update(*facts);
                self.facts = Asked::Answered;
            }
            Input::Answer(job, WorkerReply::DiskSpace(room)) => {
                if let WorkerJob::DiskSpace { network, .. } = *job {
                    self.room[usize::from(network)] = None;
                }
                self.keep(|| Observation::DiskSpace(room.clone()));
                self.world.slow_facts.update_space(room);
            }
            Input::Answer(..) => {}
        }
    }

    fn ask_queues(&mut self) {
        let names = self.world.devices_to_query();
        if !self.needs.queues || names.is_empty() {
            return;
        }
        match self.pool.start(WorkerJob::QueueSettings { names }) {
            Ok(()) => self.queues = Asked::Since { boot_ns: clock::boot_ns() },
            Err(_) if matches!(self.queues, Asked::Since { .. }) => {}
            Err(why) => self.queues = Asked::Failed(why),
        }
    }

    /// Asks for the slow facts when it is time, as soon as tasks and mounts are known.
    fn ask_facts(&mut self) {
        let Some(every) = self.needs.facts else { return };
        let known = self.looked > 0 && self.topo_told;
        if !known || self.facts_at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.facts_at = Some(Instant::now());
        match self.pool.start(WorkerJob::DoctorFacts { tasks: fact_requests::tasks_to_query(&self.world) }) {
            Ok(()) => self.facts = Asked::Since { boot_ns: clock::boot_ns() },
            Err(_) if matches!(self.facts, Asked::Since { .. }) => {}
            Err(why) => self.facts = Asked::Failed(why),
        }
        // Children of their own, at the same time: a sample waits for the facts, and their room shall be there by then.
        for network in [false, true] {
            let mounts = fact_requests::mounts_to_query(&self.world, network);
            if !mounts.is_empty() {
                // One that is still under way stays so, and shows among what is blocked.
                let _ = self.pool.start(WorkerJob::DiskSpace { mounts, network });
            }
        }
    }

    fn watch(&mut self) {
        self.world.blocked_reads = self.feed.find_blocked();
        if let (Some(b), false) = (self.world.blocked_reads.first(), self.topo_told) {
            let blocked = Reading::Blocked(b.clone());
            if self.world.topology != blocked {
                self.world.topology = blocked.clone();
                self.keep(|| Observation::Topology(Box::new(blocked)));
            }
        }
    }

    fn is_whole(&self) -> bool {
        let Some((at, _)) = self.due else { return false };
        let waiting = |asked: &Asked| matches!(asked, Asked::Since { .. });
        let rest = self.topo_told && !waiting(&self.queues) && !waiting(&self.facts);
        self.looked >= at && (rest || self.gave_up)
    }

    /// What is old must not pass for new.
    fn tasks_late(&mut self) {
        let Some((at, _)) = self.due else { return };
        if self.looked < at {
            let on = "/proc/PID: the look at the tasks".into();
            let late = BlockedRead { since_boot_ns: at, waiting_on: on };
            self.world.processes_status = Reading::Blocked(late.clone());
            self.keep(|| Observation::Tasks(Box::new(Reading::Blocked(late))));
        }
    }

    fn read_log(&mut self) {
        self.since = LogSince::after_record(self.last_record, self.world.now().wall_ns);
        if !self.world.hung_tasks.is_empty() {
            self.world.hung_task_warnings = read_hung_task_warnings(&self.root).ok().copied();
        }
        let Some(reader) = &mut self.kmsg else { return };
        let mut records = Vec::new();
        while let Ok(Some(record)) = reader.next_record() {
            self.last_record = record.seq;
            records.push(record);
        }
        self.world.kernel_log_status = Reading::Ok(());
        let clock = clock::now_log_clock();
        self.keep(|| Observation::KernelLog(records.clone(), clock));
        self.world.apply_records(records, clock);
    }

    /// What is missing from the sample that the world does not know of: as it stood when the sample was
    /// whole, so that whoever prints it and whoever records it say the same.
    pub fn gaps(&self) -> &[UnavailableSource] {
        &self.gaps
    }

    fn missing(&self) -> Vec<UnavailableSource> {
        let now = clock::boot_ns();
        let mut out = Vec::new();
        for (asked, source, place) in [
            (&self.queues, "queue_settings", "/sys/block/*/queue"),
            (&self.facts, "settings", "reading settings and limits"),
        ] {
            match asked {
                Asked::Since { boot_ns } => {
                    let secs = now.saturating_sub(*boot_ns) / 1_000_000_000;
                    out.push(UnavailableSource::new(source, format!("blocked {secs} s in {place}")));
                }
                Asked::Failed(why) => out.push(UnavailableSource::new(source, why)),
                Asked::No | Asked::Answered => {}
            }
        }
        out.extend(self.room.iter().flatten().map(|why| UnavailableSource::new("room", why)));
        for p in self.pool.pending().iter().filter(|p| matches!(*p.job, WorkerJob::DiskSpace { .. })) {
            let secs = now.saturating_sub(p.started_boot_ns) / 1_000_000_000;
            out.push(UnavailableSource::new("room", format!("{}: no answer for {secs} s (child {})", p.job.key(), p.pid)));
        }
        out
    }
}
