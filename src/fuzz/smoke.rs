//! Runs every target with the inputs under `tests/fuzz/corpus` and with changed copies of them, without any tool. The changes
//! come in the same order in every run; `FUZZ_SECONDS` says how long each target is run.

use super::{TARGETS, Target};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How long each target is run if `FUZZ_SECONDS` is not set.
const SHORT: Duration = Duration::from_millis(200);
/// An input that takes longer never ends.
const ENDLESS: Duration = Duration::from_secs(60);

/// xorshift64* (Vigna).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize % n.max(1)
    }

    fn of<'a>(&mut self, all: &'a [Vec<u8>]) -> &'a [u8] {
        &all[self.below(all.len())]
    }

    /// A part of an input: a word, a line or any bytes.
    fn part<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let start = self.below(input.len());
        let rest = &input[start..];
        let end = match self.below(3) {
            0 => rest.iter().position(|b| *b == b'\n'),
            1 => rest.iter().position(|b| !b.is_ascii_alphanumeric()),
            _ => None,
        };
        &rest[..end.unwrap_or_else(|| self.below(rest.len().min(64) + 1))]
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        const NUMBERS: [&[u8]; 8] =
            [b"0", b"-1", b"18446744073709551615", b"4294967296", b"1e999", b"\0", b"\xff\xff\xff\xff", b"\x1b[2J"];
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(32) + 1);
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => drop(input.splice(at..end, NUMBERS[self.below(NUMBERS.len())].iter().copied())),
            4 => {
                let part = self.part(input).to_vec();
                drop(input.splice(at..at, part));
            }
            5 => {
                let other = self.of(corpus);
                let part = self.part(other).to_vec();
                drop(input.splice(at..end, part));
            }
            6 => input.truncate(at),
            _ => drop(input.splice(at..at, [self.below(256) as u8])),
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

/// Runs one target on its corpus and then for that time; returns the number of inputs.
fn run(target: &Target, time: Duration) -> u64 {
    let corpus = corpus(target);
    let current = Mutex::new((0, Vec::new()));
    let (running, ended) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(target.name, &current, ended));
        let _running = running;
        let (started, mut random) = (Instant::now(), Random(0x9e37_79b9_7f4a_7c15));
        for count in 0.. {
            let input = match corpus.get(count as usize) {
                Some(input) => input.clone(),
                None if started.elapsed() >= time => return count,
                None => {
                    let mut input = random.of(&corpus).to_vec();
                    (0..1 + random.below(6)).for_each(|_| random.change(&mut input, &corpus));
                    input.truncate(target.longest);
                    input
                }
            };
            *current.lock().unwrap() = (count, input.clone());
            let outcome = catch_unwind(|| target.run(&input));
            assert!(outcome.is_ok(), "{} fails with b\"{}\"", target.name, input.escape_ascii());
        }
        unreachable!()
    })
}

/// Ends the process, with the input, if one input takes [`ENDLESS`].
fn watch(name: &str, current: &Mutex<(u64, Vec<u8>)>, ended: Receiver<()>) {
    let mut before = u64::MAX;
    while ended.recv_timeout(ENDLESS) == Err(RecvTimeoutError::Timeout) {
        let now = current.lock().unwrap();
        if now.0 == before {
            eprintln!("{name} does not end with b\"{}\"", now.1.escape_ascii());
            std::process::abort();
        }
        before = now.0;
    }
}

#[test]
fn no_target_finds_anything() {
    let seconds = std::env::var("FUZZ_SECONDS");
    let time = seconds.map_or(SHORT, |text| Duration::from_secs_f64(text.parse().unwrap()));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    println!("{:18} {:9} inputs", target.name, run(target, time));
                }
            });
        }
    });
}
