//! Runs the counter sources on a thread of their own, and goes on when one of them does not return.
//!
//! In the normal case this is one thread that wakes once an interval, reads every source and hands
//! over one [`Sample`]. The owner calls [`Lane::watch`] now and then: if a source has been reading for
//! longer than the deadline, its thread is left to it and a fresh thread takes over the others; the
//! source stays `Blocked` until the stuck read comes back by itself. One read of a source is under way
//! at any time, so no more threads than sources can ever be stuck.

use super::{Patch, Source, clock};
use crate::model::sample::Sample;
use crate::model::section::Blocked;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A read that takes longer is called blocked.
pub const DEADLINE: Duration = Duration::from_millis(250);

/// Stack of a collector's thread, bytes: whoever takes the news may do much with it there. What is not touched costs
/// nothing.
pub const STACK: usize = 2 << 20;

/// Takes over each finished sample, and may use the thread for a while; returns false when nobody wants more.
pub type Sink = Arc<dyn Fn(Sample) -> bool + Send + Sync>;

enum Command {
    Interval(Duration),
    Now,
    Stop,
}

struct Slot {
    name: &'static str,
    /// Kept outside the lock: a stuck source cannot be asked.
    mark: fn(&mut Sample, Blocked),
    source: Mutex<Box<dyn Source>>,
}

struct Shared {
    sources: Vec<Slot>,
    /// Which thread is in charge; an older one that wakes up ends itself.
    generation: AtomicU64,
    /// 1 + index of the source being read, one more than that of the last while the sink has the sample,
    /// 0 between ticks.
    reading: AtomicUsize,
    /// Boot clock at which that read began.
    since: AtomicU64,
    /// For each source: boot clock since which it is stuck, 0 if it is not.
    stuck: Vec<AtomicU64>,
    seq: AtomicU64,
    sink: Sink,
}

/// The counter sources, running.
pub struct Lane {
    shared: Arc<Shared>,
    commands: Sender<Command>,
    interval: Duration,
}

impl Lane {
    /// Starts reading at once, then every `interval`.
    pub fn start(sources: Vec<Box<dyn Source>>, interval: Duration, sink: Sink) -> std::io::Result<Self> {
        let stuck = sources.iter().map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            sources: sources
                .into_iter()
                .map(|s| Slot { name: s.name(), mark: s.blocked(), source: Mutex::new(s) })
                .collect(),
            generation: AtomicU64::new(0),
            reading: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            stuck,
            seq: AtomicU64::new(0),
            sink,
        });
        let commands = spawn(&shared, 0, interval, Duration::ZERO)?;
        Ok(Self { shared, commands, interval })
    }

    /// Changes the interval from the next tick on.
    pub fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
        let _ = self.commands.send(Command::Interval(interval));
    }

    /// Reads once more right now.
    pub fn read_now(&self) {
        let _ = self.commands.send(Command::Now);
    }

    /// Looks for a source (or a sink) that does not return; call it a few times a second. Returns the name
    /// of a source newly found stuck.
    pub fn watch(&mut self) -> Option<&'static str> {
        let shared = &self.shared;
        let at = shared.reading.load(Ordering::Acquire).checked_sub(1)?;
        let since = shared.since.load(Ordering::Acquire);
        if clock::boot_ns().saturating_sub(since) < DEADLINE.as_nanos() as u64 {
            return None;
        }
        if let Some(stuck) = shared.stuck.get(at) {
            stuck.store(since.max(1), Ordering::Release);
        }
        shared.reading.store(0, Ordering::Release);
        let next = shared.generation.fetch_add(1, Ordering::AcqRel) + 1;
        // The deadline is over already: the fresh thread reads at once what the stuck one did not.
        if let Ok(commands) = spawn(shared, next, self.interval, Duration::ZERO) {
            self.commands = commands;
        }
        shared.sources.get(at).map(|source| source.name)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
        let _ = self.commands.send(Command::Stop);
    }
}

fn spawn(
    shared: &Arc<Shared>,
    generation: u64,
    interval: Duration,
    first: Duration,
) -> std::io::Result<Sender<Command>> {
    let (tx, rx) = channel();
    let shared = shared.clone();
    std::thread::Builder::new()
        .name("counters".into())
        .stack_size(STACK)
        .spawn(move || run(&shared, generation, interval, first, &rx))?;
    Ok(tx)
}

fn run(
    shared: &Shared,
    generation: u64,
    mut interval: Duration,
    first: Duration,
    commands: &Receiver<Command>,
) {
    let mut last = Instant::now();
    let mut due = last + first;
    loop {
        match commands.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Command::Interval(new)) => {
                interval = new;
                due = last + interval;
                continue;
            }
            Ok(Command::Now) => due = Instant::now(),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        last = Instant::now();
        let Some(sample) = read_all(shared, generation) else { return };
        if !hand_over(shared, generation, sample) {
            return;
        }
        due = (due + interval).max(Instant::now());
    }
}

/// Gives the sample away; false if nobody wants more, or if another thread has taken over meanwhile.
fn hand_over(shared: &Shared, generation: u64, sample: Sample) -> bool {
    shared.since.store(clock::boot_ns(), Ordering::Release);
    shared.reading.store(shared.sources.len() + 1, Ordering::Release);
    let more = (shared.sink)(sample);
    if shared.generation.load(Ordering::Acquire) != generation {
        return false;
    }
    shared.reading.store(0, Ordering::Release);
    more
}

/// One tick; `None` if another thread has taken over meanwhile.
fn read_all(shared: &Shared, generation: u64) -> Option<Sample> {
    let at = clock::now();
    let mut sample = Sample { seq: shared.seq.fetch_add(1, Ordering::Relaxed) + 1, at, ..Default::default() };
    for index in 0..shared.sources.len() {
        match read_one(shared, index, generation)? {
            Ok(patch) => patch(&mut sample),
            Err(blocked) => (shared.sources[index].mark)(&mut sample, blocked),
        }
    }
    Some(sample)
}

fn read_one(shared: &Shared, index: usize, generation: u64) -> Option<Result<Patch, Blocked>> {
    let slot = &shared.sources[index];
    let Ok(mut source) = slot.source.try_lock() else {
        let since = shared.stuck[index].load(Ordering::Acquire);
        return Some(Err(Blocked { since_boot_ns: since, on: slot.name.into() }));
    };
    shared.since.store(clock::boot_ns(), Ordering::Release);
    shared.reading.store(index + 1, Ordering::Release);
    let patch = source.read();
    if shared.generation.load(Ordering::Acquire) != generation {
        // The lock is let go only now: the source is whole again and others may read it.
        shared.stuck[index].store(0, Ordering::Release);
        return None;
    }
    shared.reading.store(0, Ordering::Release);
    Some(Ok(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cpu::CpuRaw;
    use crate::model::section::Section;
    use std::sync::mpsc::{Receiver, sync_channel};

    struct Quick;
    impl Source for Quick {
        fn name(&self) -> &'static str {
            "quick"
        }
        fn blocked(&self) -> fn(&mut Sample, Blocked) {
            |s, why| s.cpu = Section::Blocked(why)
        }
        fn read(&mut self) -> Patch {
            Box::new(|s| s.cpu = Section::Ok(CpuRaw::default()))
        }
    }

    /// Returns only when told to.
    struct Slow(Receiver<()>);
    impl Source for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn blocked(&self) -> fn(&mut Sample, Blocked) {
            |s, why| s.disks = Section::Blocked(why)
        }
        fn read(&mut self) -> Patch {
            let _ = self.0.recv();
            Box::new(|s| s.disks = Section::Ok(Vec::new()))
        }
    }

    #[test]
    fn a_source_that_hangs_is_left_behind_and_comes_back() {
        let (go, wait) = sync_channel(1);
        let (tx, rx) = sync_channel(64);
        let sink: Sink = Arc::new(move |s| tx.send(s).is_ok());
        let sources: Vec<Box<dyn Source>> = vec![Box::new(Slow(wait)), Box::new(Quick)];
        let mut lane = Lane::start(sources, Duration::from_millis(20), sink).unwrap();
        while lane.watch().is_none() {
            std::thread::yield_now();
        }
        let first = rx.recv().unwrap();
        assert!(first.cpu.ok().is_some(), "the others go on");
        assert!(matches!(&first.disks, Section::Blocked(b) if b.on == "slow" && b.since_boot_ns > 0));
        drop(go); // every further read of it returns at once
        assert!(rx.iter().any(|s| s.disks.ok().is_some()), "it is read again once it has returned");
    }

    #[test]
    fn a_sink_that_hangs_is_left_behind() {
        let (go, wait) = sync_channel::<()>(1);
        let (tx, rx) = sync_channel(64);
        let wait = Mutex::new(wait);
        let sink: Sink = Arc::new(move |s| {
            if s.seq == 1 {
                let _ = wait.lock().unwrap().recv();
            }
            tx.send(s.seq).is_ok()
        });
        let mut lane = Lane::start(vec![Box::new(Quick)], Duration::from_millis(20), sink).unwrap();
        while lane.shared.generation.load(Ordering::Acquire) == 0 {
            assert_eq!(lane.watch(), None, "no source is to blame");
            std::thread::yield_now();
        }
        assert_eq!(rx.recv().unwrap(), 2, "the next tick comes from another thread");
        drop(go);
        assert!(rx.iter().any(|seq| seq == 1), "what was held is still handed over");
    }

    #[test]
    fn nobody_listening_ends_the_thread() {
        let (tx, rx) = sync_channel(0);
        let sink: Sink = Arc::new(move |s| tx.send(s).is_ok());
        let lane = Lane::start(vec![Box::new(Quick)], Duration::from_millis(1), sink).unwrap();
        assert_eq!(rx.recv().unwrap().seq, 1);
        let shared = Arc::downgrade(&lane.shared);
        drop((rx, lane));
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
