//! Runs the counter sources on a thread of their own, and goes on when one of them does not return.
//!
//! In the normal case this is one thread that wakes once an interval, reads every source and hands
//! over one [`Sample`]. The owner calls [`Lane::watch`] now and then: if a source has been reading for
//! longer than the deadline, its thread is left to it and a fresh thread takes over the others; the
//! source stays `Blocked` until the stuck read comes back by itself. One read of a source is under way
//! at any time, so no more threads than sources can ever be stuck.

use super::{SampleUpdate, Source, clock};
use crate::model::reading::BlockedRead;
use crate::model::sample::Sample;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A read that takes longer is called blocked.
pub const READ_DEADLINE: Duration = Duration::from_millis(250);

/// Stack of a collector's thread, bytes: whoever takes the news may do much with it there. What is not touched costs
/// nothing.
pub const THREAD_STACK_BYTES: usize = 2 << 20;

/// Takes over each finished sample, and may use the thread for a while; returns false when nobody wants more.
pub type SampleSink = Arc<dyn Fn(Sample) -> bool + Send + Sync>;

enum SamplerCommand {
    SetInterval(Duration),
    ReadNow,
    Stop,
}

struct SourceSlot {
    name: &'static str,
    /// Kept outside the lock: a stuck source cannot be asked.
    mark_blocked: fn(&mut Sample, BlockedRead),
    source: Mutex<Box<dyn Source>>,
}

struct SamplerState {
    sources: Vec<SourceSlot>,
    /// Which thread is in charge; an older one that wakes up ends itself.
    generation: AtomicU64,
    /// 1 + index of the source being read, one more than that of the last while the sink has the sample,
    /// 0 between ticks.
    reading_index: AtomicUsize,
    /// Boot clock at which that read began.
    reading_since: AtomicU64,
    /// For each source: boot clock since which it is stuck, 0 if it is not.
    stuck_since: Vec<AtomicU64>,
    seq: AtomicU64,
    sink: SampleSink,
}

/// The counter sources, running.
pub struct CounterSampler {
    state: Arc<SamplerState>,
    commands: Sender<SamplerCommand>,
    interval: Duration,
}

impl CounterSampler {
    /// Starts reading at once, then every `interval`.
    pub fn start(sources: Vec<Box<dyn Source>>, interval: Duration, sink: SampleSink) -> std::io::Result<Self> {
        let stuck = sources.iter().map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(SamplerState {
            sources: sources
                .into_iter()
                .map(|s| SourceSlot { name: s.name(), mark_blocked: s.blocked_marker(), source: Mutex::new(s) })
                .collect(),
            generation: AtomicU64::new(0),
            reading_index: AtomicUsize::new(0),
            reading_since: AtomicU64::new(0),
            stuck_since: stuck,
            seq: AtomicU64::new(0),
            sink,
        });
        let commands = spawn_thread(&shared, 0, interval, Duration::ZERO)?;
        Ok(Self { state: shared, commands, interval })
    }

    /// Changes the interval from the next tick on.
    pub fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
        let _ = self.commands.send(SamplerCommand::SetInterval(interval));
    }

    /// Reads once more right now.
    pub fn read_now(&self) {
        let _ = self.commands.send(SamplerCommand::ReadNow);
    }

    /// Looks for a source (or a sink) that does not return; call it a few times a second. Returns the name
    /// of a source newly found stuck.
    pub fn detect_stuck_source(&mut self) -> Option<&'static str> {
        let shared = &self.state;
        let at = shared.reading_index.load(Ordering::Acquire).checked_sub(1)?;
        let since = shared.reading_since.load(Ordering::Acquire);
        if clock::boot_ns().saturating_sub(since) < READ_DEADLINE.as_nanos() as u64 {
            return None;
        }
        if let Some(stuck) = shared.stuck_since.get(at) {
            stuck.store(since.max(1), Ordering::Release);
        }
        shared.reading_index.store(0, Ordering::Release);
        let next = shared.generation.fetch_add(1, Ordering::AcqRel) + 1;
        // The deadline is over already: the fresh thread reads at once what the stuck one did not.
        if let Ok(commands) = spawn_thread(shared, next, self.interval, Duration::ZERO) {
            self.commands = commands;
        }
        shared.sources.get(at).map(|source| source.name)
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
    first: Duration,
) -> std::io::Result<Sender<SamplerCommand>> {
    let (tx, rx) = channel();
    let shared = shared.clone();
    std::thread::Builder::new()
        .name("counters".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || run_sampler(&shared, generation, interval, first, &rx))?;
    Ok(tx)
}

fn run_sampler(
    shared: &SamplerState,
    generation: u64,
    mut interval: Duration,
    first: Duration,
    commands: &Receiver<SamplerCommand>,
) {
    let mut last = Instant::now();
    let mut due = last + first;
    loop {
        match commands.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(SamplerCommand::SetInterval(new)) => {
                interval = new;
                due = last + interval;
                continue;
            }
            Ok(SamplerCommand::ReadNow) => due = Instant::now(),
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

/// Gives the sample away; false if nobody wants more, or if another thread has taken over meanwhile.
fn deliver(shared: &SamplerState, generation: u64, sample: Sample) -> bool {
    shared.reading_since.store(clock::boot_ns(), Ordering::Release);
    shared.reading_index.store(shared.sources.len() + 1, Ordering::Release);
    let more = (shared.sink)(sample);
    if shared.generation.load(Ordering::Acquire) != generation {
        return false;
    }
    shared.reading_index.store(0, Ordering::Release);
    more
}

/// One tick; `None` if another thread has taken over meanwhile.
fn read_all(shared: &SamplerState, generation: u64) -> Option<Sample> {
    let at = clock::now();
    let mut sample = Sample { seq: shared.seq.fetch_add(1, Ordering::Relaxed) + 1, time: at, ..Default::default() };
    for index in 0..shared.sources.len() {
        match read_source(shared, index, generation)? {
            Ok(patch) => patch(&mut sample),
            Err(blocked) => (shared.sources[index].mark_blocked)(&mut sample, blocked),
        }
    }
    Some(sample)
}

fn read_source(shared: &SamplerState, index: usize, generation: u64) -> Option<Result<SampleUpdate, BlockedRead>> {
    let slot = &shared.sources[index];
    let Ok(mut source) = slot.source.try_lock() else {
        let since = shared.stuck_since[index].load(Ordering::Acquire);
        return Some(Err(BlockedRead { since_boot_ns: since, waiting_on: slot.name.into() }));
    };
    shared.reading_since.store(clock::boot_ns(), Ordering::Release);
    shared.reading_index.store(index + 1, Ordering::Release);
    let patch = source.read();
    if shared.generation.load(Ordering::Acquire) != generation {
        // The lock is let go only now: the source is whole again and others may read it.
        shared.stuck_since[index].store(0, Ordering::Release);
        return None;
    }
    shared.reading_index.store(0, Ordering::Release);
    Some(Ok(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cpu::CpuRaw;
    use crate::model::reading::Reading;
    use std::sync::mpsc::{Receiver, sync_channel};

    struct FastSource;
    impl Source for FastSource {
        fn name(&self) -> &'static str {
            "quick"
        }
        fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
            |s, why| s.cpu = Reading::Blocked(why)
        }
        fn read(&mut self) -> SampleUpdate {
            Box::new(|s| s.cpu = Reading::Ok(CpuRaw::default()))
        }
    }

    /// Returns only when told to.
    struct BlockingSource(Receiver<()>);
    impl Source for BlockingSource {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
            |s, why| s.disks = Reading::Blocked(why)
        }
        fn read(&mut self) -> SampleUpdate {
            let _ = self.0.recv();
            Box::new(|s| s.disks = Reading::Ok(Vec::new()))
        }
    }

    #[test]
    fn a_blocked_source_is_abandoned_and_rejoins_when_it_returns() {
        let (go, wait) = sync_channel(1);
        let (tx, rx) = sync_channel(64);
        let sink: SampleSink = Arc::new(move |s| tx.send(s).is_ok());
        let sources: Vec<Box<dyn Source>> = vec![Box::new(BlockingSource(wait)), Box::new(FastSource)];
        let mut lane = CounterSampler::start(sources, Duration::from_millis(20), sink).unwrap();
        while lane.detect_stuck_source().is_none() {
            std::thread::yield_now();
        }
        let first = rx.recv().unwrap();
        assert!(first.cpu.ok().is_some(), "the others go on");
        assert!(matches!(&first.disks, Reading::Blocked(b) if b.waiting_on == "slow" && b.since_boot_ns > 0));
        drop(go); // every further read of it returns at once
        assert!(rx.iter().any(|s| s.disks.ok().is_some()), "it is read again once it has returned");
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
        let mut lane = CounterSampler::start(vec![Box::new(FastSource)], Duration::from_millis(20), sink).unwrap();
        while lane.state.generation.load(Ordering::Acquire) == 0 {
            assert_eq!(lane.detect_stuck_source(), None, "no source is to blame");
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
        let lane = CounterSampler::start(vec![Box::new(FastSource)], Duration::from_millis(1), sink).unwrap();
        assert_eq!(rx.recv().unwrap().seq, 1);
        let shared = Arc::downgrade(&lane.state);
        drop((rx, lane));
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
