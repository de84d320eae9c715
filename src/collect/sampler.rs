//! Reads the counter sources on a thread of their own, and goes on when one of them blocks.
//!
//! Normally one thread wakes once per interval, reads every source and delivers one [`Sample`]. The owner calls
//! [`CounterSampler::detect_stuck_source`] regularly: if a source has been reading for longer than the deadline, its
//! thread is abandoned and a new thread takes over the other sources. The source stays `Blocked` until the stuck read
//! returns. A source has one read at a time, so no more threads than sources can be stuck.

use super::clock;
use super::source::{MarkBlocked, SampleUpdate, Source};
use crate::model::reading::{BlockedRead, describe_io_error};
use crate::model::sample::Sample;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A longer read counts as blocked.
pub(crate) const READ_DEADLINE: Duration = Duration::from_millis(250);

/// Stack of a collector's thread, bytes. The callback may draw the screen on it; pages that are not touched cost
/// nothing.
pub(crate) const THREAD_STACK_BYTES: usize = 2 << 20;

/// Takes each sample, and may use the thread for a while; returns false to end the sampler.
pub(crate) type SampleSink = Arc<dyn Fn(Sample) -> bool + Send + Sync>;

enum SamplerCommand {
    SetInterval(Duration),
    Stop,
}

struct SourceSlot {
    name: &'static str,
    /// Outside the lock: a stuck source cannot be called.
    mark_blocked: MarkBlocked,
    read: Mutex<Box<dyn FnMut() -> SampleUpdate + Send>>,
}

impl From<Source> for SourceSlot {
    fn from(source: Source) -> Self {
        Self { name: source.name(), mark_blocked: source.mark_blocked, read: Mutex::new(source.read) }
    }
}

struct SamplerState {
    sources: Vec<SourceSlot>,
    /// The thread in charge; an older one that wakes up exits.
    generation: AtomicU64,
    /// 1 + index of the source being read; one more than the last source while the sink has the sample; 0 between
    /// ticks.
    reading_index: AtomicUsize,
    /// Boot clock when that read began.
    reading_since: AtomicU64,
    /// For each source the boot clock since when it is stuck, or 0.
    stuck_since: Vec<AtomicU64>,
    seq: AtomicU64,
    sink: SampleSink,
    spawn: SpawnThread,
}

/// Starts the thread of a generation, with the interval. Tests let it fail.
type SpawnThread = fn(&Arc<SamplerState>, u64, Duration) -> std::io::Result<Sender<SamplerCommand>>;

pub(crate) struct CounterSampler {
    state: Arc<SamplerState>,
    commands: Sender<SamplerCommand>,
    interval: Duration,
    /// Why no thread reads: since when, and the error of the last attempt to start one.
    no_thread: Option<(u64, std::io::Error)>,
}

impl CounterSampler {
    /// Starts: reads at once, then every `interval`.
    pub(crate) fn start(sources: Vec<Source>, interval: Duration, sink: SampleSink) -> std::io::Result<Self> {
        Self::start_with(sources, interval, sink, spawn_thread)
    }

    fn start_with(
        sources: Vec<Source>,
        interval: Duration,
        sink: SampleSink,
        spawn: SpawnThread,
    ) -> std::io::Result<Self> {
        let stuck = sources.iter().map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(SamplerState {
            sources: sources.into_iter().map(SourceSlot::from).collect(),
            generation: AtomicU64::new(0),
            reading_index: AtomicUsize::new(0),
            reading_since: AtomicU64::new(0),
            stuck_since: stuck,
            seq: AtomicU64::new(0),
            sink,
            spawn,
        });
        let commands = spawn(&shared, 0, interval)?;
        Ok(Self { state: shared, commands, interval, no_thread: None })
    }

    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
        let _ = self.commands.send(SamplerCommand::SetInterval(interval));
    }

    /// Checks for a source (or the sink) that does not return; to be called a few times a second. Returns the name of
    /// a newly stuck source. Where no thread could be started to go on without it, each call tries again.
    pub(crate) fn detect_stuck_source(&mut self) -> Option<&'static str> {
        if self.no_thread.is_some() {
            self.start_next_thread();
            return None;
        }
        let shared = self.state.clone();
        let at = shared.reading_index.load(Ordering::Acquire).checked_sub(1)?;
        let since = shared.reading_since.load(Ordering::Acquire);
        if clock::boot_ns().saturating_sub(since) < READ_DEADLINE.as_nanos() as u64 {
            return None;
        }
        if let Some(stuck) = shared.stuck_since.get(at) {
            stuck.store(since.max(1), Ordering::Release);
        }
        shared.reading_index.store(0, Ordering::Release);
        shared.generation.fetch_add(1, Ordering::AcqRel);
        self.start_next_thread();
        shared.sources.get(at).map(|source| source.name)
    }

    /// Starts the thread of the current generation. The deadline has passed already: it reads at once what the stuck one
    /// did not.
    fn start_next_thread(&mut self) {
        let generation = self.state.generation.load(Ordering::Acquire);
        match (self.state.spawn)(&self.state, generation, self.interval) {
            Ok(commands) => (self.commands, self.no_thread) = (commands, None),
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
        self.state.generation.fetch_add(1, Ordering::AcqRel);
        let _ = self.commands.send(SamplerCommand::Stop);
    }
}

fn spawn_thread(
    shared: &Arc<SamplerState>,
    generation: u64,
    interval: Duration,
) -> std::io::Result<Sender<SamplerCommand>> {
    let (tx, rx) = channel();
    let shared = shared.clone();
    std::thread::Builder::new()
        .name("counters".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || run_sampler(&shared, generation, interval, &rx))?;
    Ok(tx)
}

fn run_sampler(shared: &SamplerState, generation: u64, mut interval: Duration, commands: &Receiver<SamplerCommand>) {
    let mut last = Instant::now();
    let mut due = last;
    loop {
        match commands.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(SamplerCommand::SetInterval(new)) => {
                interval = new;
                due = last + interval;
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(SamplerCommand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        last = Instant::now();
        let Some(sample) = read_all(shared, generation) else { return };
        if !deliver(shared, generation, sample) {
            return;
        }
        due = (due + interval).max(Instant::now());
    }
}

/// Delivers the sample; false if the sink wants no more, or another thread has taken over meanwhile.
fn deliver(shared: &SamplerState, generation: u64, sample: Sample) -> bool {
    shared.reading_since.store(clock::boot_ns(), Ordering::Release);
    shared.reading_index.store(shared.sources.len() + 1, Ordering::Release);
    let goes_on = (shared.sink)(sample);
    if shared.generation.load(Ordering::Acquire) != generation {
        return false;
    }
    shared.reading_index.store(0, Ordering::Release);
    goes_on
}

/// Reads all sources; `None` if another thread has taken over meanwhile.
fn read_all(shared: &SamplerState, generation: u64) -> Option<Sample> {
    let at = clock::now();
    let mut sample = Sample { seq: shared.seq.fetch_add(1, Ordering::Relaxed) + 1, time: at, ..Default::default() };
    for index in 0..shared.sources.len() {
        match read_source(shared, index, generation)? {
            Ok(update) => update(&mut sample),
            Err(blocked) => (shared.sources[index].mark_blocked)(&mut sample, blocked),
        }
    }
    Some(sample)
}

fn read_source(shared: &SamplerState, index: usize, generation: u64) -> Option<Result<SampleUpdate, BlockedRead>> {
    let slot = &shared.sources[index];
    let Ok(mut read) = slot.read.try_lock() else {
        let since = shared.stuck_since[index].load(Ordering::Acquire);
        return Some(Err(BlockedRead { since_boot_ns: since, waiting_on: slot.name.into() }));
    };
    shared.reading_since.store(clock::boot_ns(), Ordering::Release);
    shared.reading_index.store(index + 1, Ordering::Release);
    let update = read();
    if shared.generation.load(Ordering::Acquire) != generation {
        // The lock is released only now: the source is consistent again and others may read it.
        shared.stuck_since[index].store(0, Ordering::Release);
        return None;
    }
    shared.reading_index.store(0, Ordering::Release);
    Some(Ok(update))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cpu::CpuRaw;
    use crate::model::reading::Reading;
    use std::sync::atomic::AtomicBool;
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
        let spawn: SpawnThread = |state, generation, interval| match MAY_SPAWN.load(Ordering::Acquire) {
            true => spawn_thread(state, generation, interval),
            false => Err(std::io::Error::from_raw_os_error(libc::EAGAIN)),
        };
        let (go, wait) = sync_channel(1);
        let (tx, rx) = sync_channel(64);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let sources = vec![blocking_source(wait), fast_source()];
        let mut sampler = CounterSampler::start_with(sources, Duration::from_millis(20), sink, spawn).unwrap();
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
        while lane.state.generation.load(Ordering::Acquire) == 0 {
            assert_eq!(lane.detect_stuck_source(), None, "no source is stuck");
            std::thread::yield_now();
        }
        assert_eq!(rx.recv().unwrap(), 2, "the next tick comes from another thread");
        drop(go);
        assert!(rx.iter().any(|seq| seq == 1), "what was held is still handed over");
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
