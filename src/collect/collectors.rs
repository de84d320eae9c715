//! All collectors, which send their events to one callback.
//!
//! A tick of counters starts a scan of the processes and a reading of the block topology. On an idle machine most of
//! the cost is waking threads up: where scans are quick, the thread that read the counters also scans and sends both
//! together, and the topology thread is woken only when there may be something new. A slow scan runs on its own
//! thread; if it takes longer than the interval, it skips ticks, and nothing queues up.

use super::processes::ScanOptions;
use super::processes::scan_threads::{InlineScanner, ScanConsumer, ScanThreads, lock, spawn_thread};
use super::processes::task_scanner::TaskScanner;
use super::sampler::{CounterSampler, READ_DEADLINE, THREAD_STACK_BYTES};
use super::topology::TopologyReader;
use super::{clock, control_groups, sources, traced};
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
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Takes what was read, on the collector's thread: a tick of counters (with the scan of the tasks made right after it
/// if that was quick), a scan, or the topology. Returns false to end the collectors.
pub(crate) type CollectorCallback = Arc<dyn Fn(Vec<Observation>) -> bool + Send + Sync>;

/// A tick does not wait for a longer scan.
const MAX_INLINE_SCAN: Duration = Duration::from_millis(15);

pub(crate) struct Collectors {
    sampler: CounterSampler,
    scan_options: Arc<Mutex<ScanOptions>>,
    scan_requests: SyncSender<()>,
    _scan_threads: ScanThreads,
    pub(crate) tracer: Tracer,
    /// Whether control groups are read.
    groups_wanted: Arc<AtomicBool>,
    /// Boot clock since when the topology is being read; 0 if it is not.
    topology_read_since: Arc<AtomicU64>,
}

impl Collectors {
    /// Starts everything; the first events come at once.
    pub(crate) fn start(
        root: &Root,
        interval: Duration,
        wants: ScanOptions,
        sink: CollectorCallback,
    ) -> io::Result<Self> {
        let wants = Arc::new(Mutex::new(wants));
        let (scan_requests, requests) = sync_channel(1);
        let (disk_list_sender, disk_lists) = sync_channel(1);
        let topology_since = Arc::new(AtomicU64::new(0));
        let scans = Arc::new(TickScans {
            requests: Mutex::new(requests),
            options: wants.clone(),
            on_event: sink.clone(),
            is_slow: AtomicBool::new(true),
            running: Mutex::new(None),
        });
        let tracer = Tracer::new(root);
        let tasks = TaskScanner::new(root).with_task_iter(tracer.tasks.clone());
        let tasks = ScanThreads::start(tasks, scans.clone())?;
        let inline_scanner = tasks.inline_scanner();
        let topology = Arc::new(Mutex::new(TopologyReader::new(root)));
        spawn_thread("topology", THREAD_STACK_BYTES, {
            let (topology, sink, since) = (topology.clone(), sink.clone(), topology_since.clone());
            move || run_topology_reader(&topology, &disk_lists, &sink, &since)
        })?;
        let request_scan = scan_requests.clone();
        let mut sources = sources(root);
        sources.extend(traced::sources(&tracer));
        let groups_wanted = Arc::new(AtomicBool::new(false));
        sources.push(control_groups::source(root, groups_wanted.clone()));
        let lane = CounterSampler::start(
            sources,
            interval,
            Arc::new(move |sample: Sample| {
                let ids: Vec<DevId> = sample.disks.ok().map(|d| d.iter().map(|d| d.id).collect()).unwrap_or_default();
                let seq = sample.seq;
                let goes_on = scans.deliver(Box::new(sample), &inline_scanner, &request_scan);
                // Mounts and devices may be a tick late.
                if seq % 2 == 1 && topology.try_lock().map_or(true, |mut reader| reader.is_due(&ids)) {
                    let _ = disk_list_sender.try_send(ids);
                }
                goes_on
            }),
        )?;
        Ok(Self {
            sampler: lane,
            scan_options: wants,
            scan_requests,
            topology_read_since: topology_since,
            tracer,
            groups_wanted,
            _scan_threads: tasks,
        })
    }

    pub(crate) fn set_tracing(&self, is_enabled: bool) {
        if is_enabled { self.tracer.start() } else { self.tracer.disable() }
    }

    /// Reads control groups, or no longer: only while somebody looks at them.
    pub(crate) fn request_groups(&self, is_wanted: bool) {
        self.groups_wanted.store(is_wanted, Ordering::Relaxed);
    }

    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.sampler.set_interval(interval);
    }

    pub(crate) fn update_scan_options(&self, change: impl FnOnce(&mut ScanOptions)) {
        change(&mut lock(&self.scan_options));
    }

    pub(crate) fn scan_now(&self) {
        let _ = self.scan_requests.try_send(());
    }

    /// Checks for collectors that do not return; see [`CounterSampler::detect_stuck_source`].
    pub(crate) fn find_blocked(&mut self) -> Vec<BlockedRead> {
        self.sampler.detect_stuck_source();
        let since = self.topology_read_since.load(Ordering::Relaxed);
        let late = since > 0 && clock::now().boot_ns.saturating_sub(since) > 4 * READ_DEADLINE.as_nanos() as u64;
        let topology = late.then(|| BlockedRead { since_boot_ns: since, waiting_on: "the block topology".into() });
        topology.into_iter().chain(self.sampler.blocked_without_thread()).collect()
    }
}

struct TickScans {
    requests: Mutex<Receiver<()>>,
    options: Arc<Mutex<ScanOptions>>,
    on_event: CollectorCallback,
    /// Scans are slow: ticks do not wait for them. True until the first scan has shown how long one takes, and while
    /// one runs on its own thread.
    is_slow: AtomicBool,
    /// The running scan: since when, and the tick that waits for it.
    running: Mutex<Option<(Instant, Option<Box<Sample>>)>>,
}

impl TickScans {
    /// Scans on this thread and delivers both, or delivers the tick at once.
    fn deliver(&self, sample: Box<Sample>, scanner: &InlineScanner, request_scan: &SyncSender<()>) -> bool {
        if self.is_slow.load(Ordering::Acquire) {
            let goes_on = (self.on_event)(vec![Observation::Sample(sample)]);
            let _ = request_scan.try_send(());
            return goes_on;
        }
        let mut sample = Some(sample);
        let options = lock(&self.options).clone();
        let start = || *lock(&self.running) = Some((Instant::now(), sample.take()));
        let goes_on = scanner.scan(options, start);
        // Without a scan the tick is delivered alone.
        goes_on.unwrap_or_else(|| (self.on_event)(sample.map(Observation::Sample).into_iter().collect()))
    }
}

impl ScanConsumer for TickScans {
    fn next_request(&self) -> Option<ScanOptions> {
        lock(&self.requests).recv().ok()?;
        Some(lock(&self.options).clone())
    }

    fn scan_started(&self) {
        self.is_slow.store(true, Ordering::Release);
        *lock(&self.running) = Some((Instant::now(), None));
    }

    fn scan_finished(&self, procs: Reading<ProcessUpdate>) -> bool {
        let under_way = lock(&self.running).take();
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
    disk_lists: &Receiver<Vec<DevId>>,
    sink: &CollectorCallback,
    since: &AtomicU64,
) {
    while let Ok(ids) = disk_lists.recv() {
        since.store(clock::now().boot_ns, Ordering::Relaxed);
        let changed = lock(reader).refresh(&ids);
        since.store(0, Ordering::Relaxed);
        if changed.is_some_and(|topo| !sink(vec![Observation::Topology(Box::new(topo))])) {
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
        let sink: CollectorCallback = Arc::new(move |observations| lock(&tx).send(observations).is_ok());
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
