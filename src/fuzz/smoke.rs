//! Runs the targets with the inputs under `tests/fuzz/corpus` and with changed copies of them, without any tool. Every run has the
//! same inputs. These variables choose what is run:
//!
//! - `FUZZ_INPUTS`: inputs for each target; [`DEFAULT_INPUTS`] if not set.
//! - `FUZZ_TARGET`: names of targets, separated by spaces; all of them if not set.
//! - `FUZZ_START`: number of the first input, a multiple of [`BLOCK`]; 0 if not set.
//! - `FUZZ_SECONDS`: no target gets more than this time, even if it has had fewer inputs.
//!
//! Inputs come in blocks, each with its own random numbers, so that threads share a target and a block can be repeated alone. Some
//! targets keep their state from one input to the next; a block always starts without any.

use super::random::Random;
use super::{TARGETS, Target, memory};
use rustix::time::{ClockId, clock_gettime};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Inputs for each target if `FUZZ_INPUTS` is not set.
const DEFAULT_INPUTS: u64 = 1_000;
/// Inputs of a block.
const BLOCK: u64 = 1_000;
/// Inputs between two looks at the clock.
const CLOCK_EVERY: u64 = 16;
/// Threads that run inputs.
const THREADS: usize = 2;
/// An input during which the process takes more CPU time never ends. Not time on the clock, of which a run at the lowest
/// priority gets any amount.
const ENDLESS: Duration = Duration::from_secs(120);
/// Time between two looks at that.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);

/// What is run.
struct Options {
    targets: Vec<&'static Target>,
    /// Numbers of the first input and of the one after the last.
    start: u64,
    end: u64,
    /// Time for each target.
    limit: Option<Duration>,
}

impl Options {
    fn from_env() -> Self {
        let read = |name| std::env::var(name).ok();
        let number = |name, default| {
            read(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
        };
        let start = number("FUZZ_START", 0);
        assert!(start % BLOCK == 0, "FUZZ_START must be a multiple of {BLOCK}");
        let named = |names: String| {
            names
                .split_whitespace()
                .map(|name| super::find(name).unwrap_or_else(|| panic!("no target {name}")))
                .collect()
        };
        Self {
            targets: read("FUZZ_TARGET").map_or_else(|| TARGETS.iter().collect(), named),
            start,
            end: start + number("FUZZ_INPUTS", DEFAULT_INPUTS),
            limit: read("FUZZ_SECONDS").map(|text| Duration::from_secs_f64(text.parse().unwrap())),
        }
    }
}

/// The inputs of a target under `tests/fuzz/corpus`.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target.name);
    let mut paths: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no inputs", dir.display());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A target while threads run it.
struct Work {
    target: &'static Target,
    corpus: Vec<Vec<u8>>,
    end: u64,
    limit: Option<Duration>,
    /// First input of the next block.
    next: AtomicU64,
    started: OnceLock<Instant>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// Threads that run the target now.
    threads: usize,
    is_reported: bool,
    inputs: u64,
    /// CPU time of all threads.
    time: Duration,
    found: Option<String>,
}

/// The input that a thread runs: its number among those of the thread (0 before the first and after the last), the target's name
/// and the bytes.
type Current = Mutex<(u64, &'static str, Vec<u8>)>;

impl Work {
    fn new(target: &'static Target, options: &Options) -> Self {
        Self {
            target,
            corpus: corpus(target),
            end: options.end,
            limit: options.limit,
            next: AtomicU64::new(options.start),
            started: OnceLock::new(),
            outcome: Mutex::default(),
        }
    }

    /// Runs blocks until there are no more; the last thread prints the outcome.
    fn run(&self, current: &Current) {
        self.outcome.lock().unwrap().threads += 1;
        self.started.get_or_init(Instant::now);
        loop {
            let start = self.next.fetch_add(BLOCK, Ordering::Relaxed);
            if start >= self.end {
                break;
            }
            let cpu = cpu_time(ClockId::ThreadCPUTime);
            let (inputs, found) = self.run_block(start, current);
            let mut outcome = self.outcome.lock().unwrap();
            outcome.inputs += inputs;
            outcome.time += cpu_time(ClockId::ThreadCPUTime).saturating_sub(cpu);
            if found.is_some() || self.is_over() {
                self.next.store(self.end, Ordering::Relaxed);
            }
            outcome.found = outcome.found.take().or(found);
        }
        let mut outcome = self.outcome.lock().unwrap();
        outcome.threads -= 1;
        if outcome.threads == 0 && !std::mem::replace(&mut outcome.is_reported, true) {
            let seconds = outcome.time.as_secs_f64();
            let found = outcome.found.as_deref().unwrap_or("nothing");
            println!(
                "{:18} {:11} {seconds:9.1} {:9.0}  {found}",
                self.target.name,
                outcome.inputs,
                outcome.inputs as f64 / seconds
            );
        }
    }

    /// Runs one block. Returns the number of inputs, and what failed.
    fn run_block(&self, start: u64, current: &Current) -> (u64, Option<String>) {
        let name = self.target.name;
        let mut random = Random::new(name, start / BLOCK);
        let mut input = Vec::new();
        self.target.restart();
        for number in start..self.end.min(start + BLOCK) {
            match self.corpus.get(number as usize) {
                Some(unchanged) => input.clone_from(unchanged),
                None => random.next_input(&mut input, &self.corpus, self.target.longest),
            }
            if number % CLOCK_EVERY == 0 && self.is_over() {
                return (number - start, None);
            }
            {
                let mut current = current.lock().unwrap();
                (current.0, current.1) = (current.0 + 1, name);
                current.2.clone_from(&input);
            }
            memory::set_input(name, number);
            if catch_unwind(|| self.target.run_next(&input)).is_err() {
                eprintln!("{name} fails with b\"{}\"", input.escape_ascii());
                let inputs = number - start + 1;
                let repeat = format!("FUZZ_TARGET={name} FUZZ_START={start} FUZZ_INPUTS={inputs}");
                return (inputs, Some(format!("input {number}, repeated by {repeat}")));
            }
        }
        (self.end.min(start + BLOCK) - start, None)
    }

    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.started.get().is_some_and(|started| started.elapsed() >= limit))
    }
}

/// CPU time of this thread or process, which other programs on the machine change little.
fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Ends the process, with the input, if one input takes [`ENDLESS`].
fn watch(all: &[Current], ended: &Receiver<()>) {
    // The input, and the CPU time when it was first seen.
    let mut seen = vec![(0, Duration::ZERO); all.len()];
    while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = cpu_time(ClockId::ProcessCPUTime);
        for (current, seen) in all.iter().zip(&mut seen) {
            let (number, name, input) = &*current.lock().unwrap();
            if *number != seen.0 {
                *seen = (*number, now);
            } else if *number > 0 && now.saturating_sub(seen.1) >= ENDLESS {
                eprintln!("{name} does not end with b\"{}\"", input.escape_ascii());
                std::process::abort();
            }
        }
    }
}

#[test]
fn no_target_finds_anything() {
    let options = Options::from_env();
    let work: Vec<Work> = options.targets.iter().map(|target| Work::new(target, &options)).collect();
    let current: [Current; THREADS] = std::array::from_fn(|_| Mutex::new((0, "", Vec::new())));
    let (running, ended) = sync_channel::<()>(0);
    println!("{:18} {:>11} {:>9} {:>9}  found", "target", "inputs", "CPU s", "inputs/s");
    std::thread::scope(|scope| {
        let all = &current;
        scope.spawn(move || watch(all, &ended));
        let _running = running;
        std::thread::scope(|scope| {
            for current in &current {
                let work = &work;
                scope.spawn(move || {
                    work.iter().for_each(|work| work.run(current));
                    current.lock().unwrap().0 = 0;
                });
            }
        });
    });
    let found: Vec<_> =
        work.iter().filter_map(|work| Some((work.target.name, work.outcome.lock().unwrap().found.clone()?))).collect();
    assert!(found.is_empty(), "{found:#?}");
}
