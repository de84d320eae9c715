//! Device knobs are refused while the device makes no progress: the write would wait, unkillably.

use super::address::Address;
use super::knob::Place;
use crate::root::Root;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(25);
const LOOKS: u32 = 20;

/// Requests in flight and requests completed so far.
pub type Counts = (u64, u64);

/// An error, in words, if the device of a knob has requests in flight and completes none over half a second.
/// The two files it reads never block, hung device or not.
pub fn check(root: &Root, at: &Address) -> Result<(), String> {
    if !matches!(at.knob().place, Place::Queue(_) | Place::Bdi(_)) {
        return Ok(());
    }
    let sample = || counts(root, at.at());
    match stuck(sample, || std::thread::sleep(LOOK)) {
        Some(in_flight) => Err(format!(
            "{at}: refused, {} makes no progress: {in_flight} requests in flight and none completed in {} ms; a write \
             to its queue could wait for ever. See what holds it first",
            at.at(),
            (LOOK * LOOKS).as_millis()
        )),
        None => Ok(()),
    }
}

/// The requests in flight if none completes over all looks.
fn stuck(mut sample: impl FnMut() -> Option<Counts>, mut pause: impl FnMut()) -> Option<u64> {
    let (mut in_flight, done) = sample()?;
    for _ in 0..LOOKS {
        if in_flight == 0 {
            return None;
        }
        pause();
        let (now, completed) = sample()?;
        if completed != done {
            return None;
        }
        in_flight = now;
    }
    (in_flight > 0).then_some(in_flight)
}

/// `inflight` (reads, writes) and the completion columns of `stat` (Documentation/block/stat.rst).
fn counts(root: &Root, device: &str) -> Option<Counts> {
    let numbers = |file: &str| -> Option<Vec<u64>> {
        let text = std::fs::read_to_string(root.sys(&format!("block/{device}/{file}"))).ok()?;
        text.split_ascii_whitespace().map(|w| w.parse().ok()).collect()
    };
    let stat = numbers("stat")?;
    let completed = [0, 4, 11, 15].iter().filter_map(|i| stat.get(*i)).sum();
    Some((numbers("inflight")?.iter().sum(), completed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(samples: &[Counts]) -> (Option<u64>, usize) {
        let (mut at, mut pauses) = (0, 0);
        let got = stuck(
            || {
                at += 1;
                samples.get(at - 1).or(samples.last()).copied()
            },
            || pauses += 1,
        );
        (got, pauses)
    }

    #[test]
    fn idle_moving_and_stuck_are_told_apart() {
        assert_eq!(run(&[(0, 7)]), (None, 0), "an idle device costs no wait");
        assert_eq!(run(&[(4, 7), (4, 8)]), (None, 1));
        assert_eq!(run(&[(4, 7), (0, 7)]), (None, 1), "a flush finished: it is not counted in stat");
        assert_eq!(run(&[(4, 7)]), (Some(4), LOOKS as usize));
    }

    #[test]
    fn the_refusal_says_what_and_why() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("sys/block/vda");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::write(disk.join("inflight"), "       2        3\n").unwrap();
        std::fs::write(disk.join("stat"), "1 0 0 0 2 0 0 0 5 0 0\n").unwrap();
        let at = Address::parse("scheduler@vda").unwrap();
        let why = check(&Root::at(dir.path()), &at).unwrap_err();
        assert!(why.contains("5 requests in flight"), "{why}");
        assert!(check(&Root::at(dir.path()), &Address::parse("vm.swappiness").unwrap()).is_ok());
    }
}
