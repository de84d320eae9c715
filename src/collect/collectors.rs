//! All collectors, handing their news to one sink.
//!
//! A tick of counters starts the look at the processes and at the block topology. At rest most of the cost is
//! in waking up: where looks are quick the thread that read the counters takes the look as well, and hands over
//! both together, and the topology has its thread woken only when there may be something new. A look that is
//! not quick has a thread of its own; if it takes longer than the interval it skips ticks; nothing queues up.

use super::io_accounting::IoAccountingSource;
use super::latency::LatencySource;
use super::memory_stalls::MemoryStallSource;
use super::processes::ScanOptions;
use super::processes::scan_threads::{InlineScanner, ScanConsumer, ScanThreads};
use super::processes::task_scanner::TaskScanner;
use super::sampler::{CounterSampler, READ_DEADLINE, THREAD_STACK_BYTES};
use super::syncs::SyncSource;
use super::topology::TopologyReader;
use super::{clock, sources};
use crate::bpf::Tracer;
use crate::model::disk::DevId;
use crate::model::observation::Observation;
use crate::model::process::ProcessUpdate;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::root::Root;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Takes what was read, on the collector's thread: a tick's counters, with the scan of the tasks that was taken right
/// after it where that was quick, or a scan or the topology by itself. Returns false to end the collectors.
pub type CollectorCallback = Arc<dyn Fn(Vec<Observation>) -> bool + Send + Sync>;

/// A look at the tasks that takes longer is not waited for by its tick.
const MAX_INLINE_SCAN: Duration = Duration::from_millis(15);

/// The collectors, running.
pub struct Collectors {
    sampler: CounterSampler,
    scan_options: Arc<Mutex<ScanOptions>>,
    scan_requests: SyncSender<()>,
    _scan_threads: ScanThreads,
    tracer: Tracer,
    /// Boot clock since which the topology is being read; 0: it is not.
    topology_read_since: Arc<AtomicU64>,
}

impl Collectors {
    /// Starts everything; the first news comes at once.
    pub fn start(root: &Root, interval: Duration, wants: ScanOptions, sink: CollectorCallback) -> io::Result<Self> {
        let wants = Arc::new(Mutex::new(wants));
        let (look, looks) = sync_channel(1);
        let (seen, sights) = sync_channel(1);
        let topology_since = Arc::new(AtomicU64::new(0));
        let looks = Arc::new(TickScans {
            requests: Mutex::new(looks),
            options: wants.clone(),
            on_event: sink.clone(),
            is_slow: AtomicBool::new(true),
            running: Mutex::new(None),
        });
        let tracer = Tracer::new(root);
        let tasks = TaskScanner::new(root).with_task_iter(tracer.tasks.clone());
        let mut tasks = ScanThreads::new(tasks, looks.clone());
        tasks.start()?;
        let guest = tasks.inline_scanner();
        let topology = Arc::new(Mutex::new(TopologyReader::new(root)));
        spawn_thread("topology", {
            let (topology, sink, since) = (topology.clone(), sink.clone(), topology_since.clone());
            move || run_topology_reader(&topology, &sights, &sink, &since)
        })?;
        let tick = look.clone();
        let mut sources = sources(root);
        sources.push(Box::new(LatencySource(tracer.clone())));
        sources.push(Box::new(MemoryStallSource(tracer.clone())));
        sources.push(Box::new(SyncSource(tracer.clone())));
        sources.push(Box::new(IoAccountingSource(tracer.clone())));
        let lane = CounterSampler::start(
            sources,
            interval,
            Arc::new(move |sample: Sample| {
                let ids: Vec<DevId> = sample.disks.ok().map(|d| d.iter().map(|d| d.id).collect()).unwrap_or_default();
                let seq = sample.seq;
                let more = looks.deliver(Box::new(sample), guest.as_ref(), &tick);
                // Mounts and devices can wait for a second tick.
                if seq % 2 == 1 && topology.try_lock().map_or(true, |mut reader| reader.is_due(&ids)) {
                    let _ = seen.try_send(ids);
                }
                more
            }),
        )?;
        Ok(Self {
            sampler: lane,
            scan_options: wants,
            scan_requests: look,
            topology_read_since: topology_since,
            tracer,
            _scan_threads: tasks,
        })
    }

    /// Begins to trace, or says that it shall not be done.
    pub fn set_tracing(&self, on: bool) {
        if on { self.tracer.start() } else { self.tracer.disable() }
    }

    /// From which duration on syncs are to be listed, or that nobody wants them any more: then nothing traces them.
    pub fn set_sync_threshold(&self, from: Option<Duration>) {
        self.tracer.request_syncs(from);
    }

    /// Whether what is to be traced on demand is as it was wished.
    pub fn is_tracing_settled(&self) -> bool {
        self.tracer.is_sync_worker_idle()
    }

    /// Changes the interval.
    pub fn set_interval(&mut self, interval: Duration) {
        self.sampler.set_interval(interval);
    }

    /// Changes what is wanted of the tasks, from the next look on.
    pub fn update_scan_options(&self, change: impl FnOnce(&mut ScanOptions)) {
        change(&mut lock_unpoisoned(&self.scan_options));
    }

    /// Looks at the tasks now.
    pub fn scan_now(&self) {
        let _ = self.scan_requests.try_send(());
    }

    /// Looks for collectors that do not return; see [`Lane::watch`].
    pub fn find_blocked(&mut self) -> Vec<BlockedRead> {
        self.sampler.detect_stuck_source();
        let since = self.topology_read_since.load(Ordering::Relaxed);
        let late = since > 0 && clock::now().boot_ns.saturating_sub(since) > 4 * READ_DEADLINE.as_nanos() as u64;
        late.then(|| BlockedRead { since_boot_ns: since, waiting_on: "the block topology".into() })
            .into_iter()
            .collect()
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(THREAD_STACK_BYTES).spawn(body).map(drop)
}

/// The looks that ticks ask for.
struct TickScans {
    requests: Mutex<Receiver<()>>,
    options: Arc<Mutex<ScanOptions>>,
    on_event: CollectorCallback,
    /// Looks take long: ticks go ahead. So until the first has shown how long one takes, and while one is
    /// under way on a thread of its own.
    is_slow: AtomicBool,
    /// The look being taken: since when, and the tick that waits for it.
    running: Mutex<Option<(Instant, Option<Box<Sample>>)>>,
}

impl TickScans {
    /// Takes the look on this thread and hands over both, or the tick at once.
    fn deliver(&self, sample: Box<Sample>, guest: Option<&InlineScanner>, look: &SyncSender<()>) -> bool {
        if self.is_slow.load(Ordering::Acquire) {
            let more = (self.on_event)(vec![Observation::Sample(sample)]);
            let _ = look.try_send(());
            return more;
        }
        match guest.and_then(|guest| guest.begin_scan(lock_unpoisoned(&self.options).clone())) {
            Some(look) => {
                *lock_unpoisoned(&self.running) = Some((Instant::now(), Some(sample)));
                look.run()
            }
            None => (self.on_event)(vec![Observation::Sample(sample)]),
        }
    }
}

impl ScanConsumer for TickScans {
    fn next_request(&self) -> Option<ScanOptions> {
        lock_unpoisoned(&self.requests).recv().ok()?;
        Some(lock_unpoisoned(&self.options).clone())
    }

    fn scan_started(&self) {
        self.is_slow.store(true, Ordering::Release);
        *lock_unpoisoned(&self.running) = Some((Instant::now(), None));
    }

    fn scan_finished(&self, procs: Reading<ProcessUpdate>) -> bool {
        let under_way = lock_unpoisoned(&self.running).take();
        if let Some((began, _)) = &under_way {
            self.is_slow.store(began.elapsed() > MAX_INLINE_SCAN, Ordering::Release);
        }
        let procs = Box::new(procs);
        match under_way.and_then(|(_, sample)| sample) {
            Some(sample) => (self.on_event)(vec![Observation::Sample(sample), Observation::Tasks(procs)]),
            None => (self.on_event)(vec![Observation::Tasks(procs)]),
        }
    }
}

fn run_topology_reader(
    reader: &Mutex<TopologyReader>,
    sights: &Receiver<Vec<DevId>>,
    sink: &CollectorCallback,
    since: &AtomicU64,
) {
    while let Ok(ids) = sights.recv() {
        since.store(clock::now().boot_ns, Ordering::Relaxed);
        let news = lock_unpoisoned(reader).refresh(&ids);
        since.store(0, Ordering::Relaxed);
        if news.is_some_and(|topo| !sink(vec![Observation::Topology(Box::new(topo))])) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_first_tick_delivers_sample_tasks_and_topology() {
        let (tx, rx) = channel();
        let tx = Mutex::new(tx);
        let sink: CollectorCallback = Arc::new(move |news| lock_unpoisoned(&tx).send(news).is_ok());
        let feed = Collectors::start(&Root::live(), Duration::from_secs(3600), ScanOptions::default(), sink).unwrap();
        let mut got = [false; 3];
        for observation in rx.into_iter().flatten() {
            match observation {
                Observation::Sample(s) => got[0] |= s.disks.ok().is_some() && s.cpu.ok().is_some(),
                Observation::Tasks(p) => got[1] |= p.ok().is_some_and(|p| !p.changed.is_empty()),
                Observation::Topology(_) => got[2] = true,
                other => panic!("unexpected {other:?}"),
            }
            if got == [true; 3] {
                break;
            }
        }
        drop(feed);
    }
}
