//! Reads the counter sources on a thread of their own, and goes on when one of them blocks.
//!
//! Normally one thread wakes once per interval, reads every source and delivers one [`Sample`]. The owner calls
//! [`CounterSampler::detect_stuck_source`] regularly: if a source has been reading for longer than the deadline, its
//! thread is abandoned and a new thread takes over the other sources. The source stays `Blocked` until the stuck read
//! returns. A source has one read at a time, so no more threads than sources can be stuck.

use super::clock;
use super::source::Source;
use crate::model::reading::{BlockedRead, describe_io_error};
use crate::model::sample::Sample;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A longer read counts as blocked.
pub(crate) const READ_DEADLINE: Duration = Duration::from_millis(250);

/// Stack of a collector's thread, bytes. The callback may draw the screen on it; pages that are not touched cost
/// nothing.
pub(crate) const THREAD_STACK_BYTES: usize = 2 << 20;

/// Free memory is returned to the system this often: processes, devices and mounts that came and went leave gaps between
/// allocations, which the C library keeps.
const TRIM_INTERVAL: Duration = Duration::from_secs(60);

/// Takes each sample, and may use the thread for a while; returns false to end the sampler.
pub(crate) type SampleSink = Arc<dyn Fn(Sample) -> bool + Send + Sync>;

struct SamplerState {
    sources: Vec<Source>,
    progress: Mutex<Progress>,
    sink: SampleSink,
    spawn: SpawnThread,
    trim: TrimMemory,
}

/// Returns free memory to the system, this often. Tests count the calls.
type TrimMemory = (Duration, fn());

struct Progress {
    /// The thread in charge; an older one that wakes up exits.
    generation: u64,
    interval: Duration,
    /// The index of the source being read (one more than the last while the sink has the sample), and the boot clock
    /// when that began.
    running: Option<(usize, u64)>,
    seq: u64,
}

/// Starts the thread of a generation. Tests let it fail.
type SpawnThread = fn(&Arc<SamplerState>, u64) -> std::io::Result<Thread>;

pub(crate) struct CounterSampler {
    state: Arc<SamplerState>,
    thread: Thread,
    /// Why no thread reads: since when, and the error of the last attempt to start one.
    no_thread: Option<(u64, std::io::Error)>,
}

impl CounterSampler {
    /// Starts: reads at once, then every `interval`.
    pub(crate) fn start(sources: Vec<Source>, interval: Duration, sink: SampleSink) -> std::io::Result<Self> {
        Self::start_with(sources, interval, sink, spawn_thread, (TRIM_INTERVAL, crate::allocator::trim))
    }

    fn start_with(
        sources: Vec<Source>,
        interval: Duration,
        sink: SampleSink,
        spawn: SpawnThread,
        trim: TrimMemory,
    ) -> std::io::Result<Self> {
        let progress = Mutex::new(Progress { generation: 0, interval, running: None, seq: 0 });
        let state = Arc::new(SamplerState { sources, progress, sink, spawn, trim });
        let thread = spawn(&state, 0)?;
        Ok(Self { state, thread, no_thread: None })
    }

    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.state.progress().interval = interval;
        self.thread.unpark();
    }

    /// Checks for a source (or the sink) that does not return; to be called a few times a second. Returns the name of
    /// a newly stuck source. Where no thread could be started to go on without it, each call tries again.
    pub(crate) fn detect_stuck_source(&mut self) -> Option<&'static str> {
        if self.no_thread.is_some() {
            self.start_next_thread();
            return None;
        }
        let mut progress = self.state.progress();
        let (index, since) = progress.running?;
        if clock::boot_ns().saturating_sub(since) < READ_DEADLINE.as_nanos() as u64 {
            return None;
        }
        (progress.running, progress.generation) = (None, progress.generation + 1);
        let stuck = self.state.sources.get(index);
        if let Some(source) = stuck {
            source.stuck_since.store(since, Ordering::Relaxed);
        }
        let name = stuck.map(|source| source.name);
        drop(progress);
        self.start_next_thread();
        name
    }

    /// Starts the thread of the current generation. The deadline has passed already: it reads at once what the stuck one
    /// did not.
    fn start_next_thread(&mut self) {
        let generation = self.state.progress().generation;
        match (self.state.spawn)(&self.state, generation) {
            Ok(thread) => (self.thread, self.no_thread) = (thread, None),
            Err(err) => {
                let since = self.no_thread.take().map_or_else(clock::boot_ns, |(since, _)| since);
                self.no_thread = Some((since, err));
            }
        }
    }

    /// What no counters are read for: a thread that cannot be started.
    pub(crate) fn blocked_without_thread(&self) -> Option<BlockedRead> {
        let (since, err) = self.no_thread.as_ref()?;
        let waiting_on = format!("a thread to read the counters ({})", describe_io_error(err));
        Some(BlockedRead { since_boot_ns: *since, waiting_on })
    }
}

impl Drop for CounterSampler {
    fn drop(&mut self) {
        self.state.progress().generation += 1;
        self.thread.unpark();
    }
}

fn spawn_thread(state: &Arc<SamplerState>, generation: u64) -> std::io::Result<Thread> {
    let state = state.clone();
    let builder = std::thread::Builder::new().name("counters".into()).stack_size(THREAD_STACK_BYTES);
    Ok(builder.spawn(move || state.run(generation))?.thread().clone())
}

impl SamplerState {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and delivers samples, until the sink wants no more or another thread has taken over.
    fn run(&self, generation: u64) {
        let mut last = Instant::now();
        let (mut due, mut trimmed) = (last, last);
        let mut interval = self.progress().interval;
        loop {
            let progress = self.progress();
            if progress.generation != generation {
                return;
            }
            if progress.interval != interval {
                interval = progress.interval;
                due = last + interval;
            }
            drop(progress);
            let wait = due.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                std::thread::park_timeout(wait);
                continue;
            }
            last = Instant::now();
            let Some(sample) = self.read_all(generation) else { return };
            if self.supervise(generation, self.sources.len(), || (self.sink)(sample)) != Some(true) {
                return;
            }
            // After the sample has been delivered, so that no frame waits for it.
            if trimmed.elapsed() >= self.trim.0 {
                trimmed = Instant::now();
                if self.supervise(generation, self.sources.len(), self.trim.1).is_none() {
                    return;
                }
            }
            due = (due + interval).max(Instant::now());
        }
    }

    /// Reads all sources; `None` if another thread has taken over meanwhile.
    fn read_all(&self, generation: u64) -> Option<Sample> {
        let mut sample = Sample { time: clock::now(), ..Default::default() };
        let mut progress = self.progress();
        progress.seq += 1;
        sample.seq = progress.seq;
        drop(progress);
        for (index, source) in self.sources.iter().enumerate() {
            match source.read.try_lock() {
                // The lock is released after the thread knows whether it was abandoned: the source is consistent again.
                Ok(mut read) => self.supervise(generation, index, || read(&mut sample))?,
                Err(_) => {
                    let since_boot_ns = source.stuck_since.load(Ordering::Relaxed);
                    (source.mark_blocked)(&mut sample, BlockedRead { since_boot_ns, waiting_on: source.name.into() });
                }
            }
        }
        Some(sample)
    }

    /// Runs what may not return; `None` if another thread has taken over meanwhile.
    fn supervise<T>(&self, generation: u64, index: usize, run: impl FnOnce() -> T) -> Option<T> {
        self.progress().running = Some((index, clock::boot_ns()));
        let result = run();
        let mut progress = self.progress();
        if progress.generation != generation {
            return None;
        }
        progress.running = None;
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cpu::CpuRaw;
    use crate::model::reading::Reading;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::sync::mpsc::{Receiver, sync_channel};

    fn fast_source() -> Source {
        Source::new("quick", |s| &mut s.cpu, || Reading::Ok(CpuRaw::default()))
    }

    /// Returns only when a message arrives.
    fn blocking_source(wait: Receiver<()>) -> Source {
        Source::new(
            "slow",
            |s| &mut s.disks,
            move || {
                let _ = wait.recv();
                Reading::Ok(Vec::new())
            },
        )
    }

    #[test]
    fn a_blocked_source_is_abandoned_and_rejoins_when_it_returns() {
        let (go, wait) = sync_channel(1);
        let (tx, rx) = sync_channel(64);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let sources = vec![blocking_source(wait), fast_source()];
        let mut lane = CounterSampler::start(sources, Duration::from_millis(20), sink).unwrap();
        while lane.detect_stuck_source().is_none() {
            std::thread::yield_now();
        }
        let first = rx.recv().unwrap();
        assert!(first.cpu.ok().is_some(), "the other sources go on");
        assert!(matches!(&first.disks, Reading::Blocked(b) if b.waiting_on == "slow" && b.since_boot_ns > 0));
        drop(go); // every later read returns at once
        assert!(rx.iter().any(|s| s.disks.ok().is_some()), "it is read again once it has returned");
    }

    #[test]
    fn counters_go_on_after_a_thread_could_not_be_started() {
        static MAY_SPAWN: AtomicBool = AtomicBool::new(true);
        let spawn: SpawnThread = |state, generation| match MAY_SPAWN.load(Ordering::Acquire) {
            true => spawn_thread(state, generation),
            false => Err(std::io::Error::from_raw_os_error(libc::EAGAIN)),
        };
        let (go, wait) = sync_channel(1);
        let (tx, rx) = sync_channel(64);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let sources = vec![blocking_source(wait), fast_source()];
        let mut sampler =
            CounterSampler::start_with(sources, Duration::from_millis(20), sink, spawn, (TRIM_INTERVAL, || {}))
                .unwrap();
        MAY_SPAWN.store(false, Ordering::Release);
        while sampler.detect_stuck_source().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(sampler.detect_stuck_source(), None, "tried again");
        let blocked = sampler.blocked_without_thread().unwrap();
        assert!(blocked.waiting_on.contains("thread") && blocked.since_boot_ns > 0, "{blocked:?}");
        drop(go); // The stuck thread finds itself replaced and ends.
        MAY_SPAWN.store(true, Ordering::Release);
        sampler.detect_stuck_source();
        assert_eq!(sampler.blocked_without_thread(), None);
        assert!(rx.iter().any(|s| s.cpu.ok().is_some()), "counters are read again");
    }

    #[test]
    fn a_blocked_sink_is_abandoned() {
        let (go, wait) = sync_channel::<()>(1);
        let (tx, rx) = sync_channel(64);
        let wait = Mutex::new(wait);
        let sink: SampleSink = Arc::new(move |s| {
            if s.seq == 1 {
                let _ = wait.lock().unwrap().recv();
            }
            tx.send(s.seq).is_ok()
        });
        let mut lane = CounterSampler::start(vec![fast_source()], Duration::from_millis(20), sink).unwrap();
        while lane.state.progress().generation == 0 {
            assert_eq!(lane.detect_stuck_source(), None, "no source is stuck");
            std::thread::yield_now();
        }
        assert_eq!(rx.recv().unwrap(), 2, "the next tick comes from another thread");
        drop(go);
        assert!(rx.iter().any(|seq| seq == 1), "what was held is still handed over");
    }

    #[test]
    fn free_memory_is_returned_again_and_again_between_samples() {
        static TRIMS: AtomicU64 = AtomicU64::new(0);
        let (tx, rx) = sync_channel(0);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let trim: TrimMemory = (Duration::from_millis(1), || _ = TRIMS.fetch_add(1, Ordering::Relaxed));
        let interval = Duration::from_millis(2);
        let _sampler = CounterSampler::start_with(vec![fast_source()], interval, sink, spawn_thread, trim).unwrap();
        while TRIMS.load(Ordering::Relaxed) < 3 {
            assert!(rx.recv().unwrap().cpu.ok().is_some());
        }
    }

    #[test]
    fn the_thread_ends_when_the_sink_is_gone() {
        let (tx, rx) = sync_channel(0);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let lane = CounterSampler::start(vec![fast_source()], Duration::from_millis(1), sink).unwrap();
        assert_eq!(rx.recv().unwrap().seq, 1);
        let shared = Arc::downgrade(&lane.state);
        drop((rx, lane));
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
