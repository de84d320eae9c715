//! Refuses changes to device knobs while the device makes no progress: the write would block, and SIGKILL would not
//! end it.

use super::knob_id::KnobId;
use super::knob_io::KnobError;
use crate::root::Root;
use std::time::Duration;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(25);
const SAMPLES: u32 = 20;

/// Requests in flight, and requests completed since boot.
type RequestCounts = (u64, u64);

/// Checks that the device of a knob is idle or completes a request within half a second. Reads two files that never
/// block.
/// Errors: if requests are in flight and none completes.
pub(crate) fn require_progress(root: &Root, knob_id: &KnobId) -> Result<(), KnobError> {
    if !knob_id.definition().is_of_device() {
        return Ok(());
    }
    let sample = || read_counts(root, knob_id.instance());
    let Some(in_flight) = find_stall(sample, || std::thread::sleep(SAMPLE_INTERVAL)) else { return Ok(()) };
    Err(KnobError::Blocked(format!(
        "{knob_id}: refused, {} makes no progress: {in_flight} requests in flight and none completed in {} ms; a write to \
         its queue could block for ever. Find out what blocks it first",
        knob_id.instance(),
        (SAMPLE_INTERVAL * SAMPLES).as_millis()
    )))
}

/// The number of requests in flight if none completes over all samples.
fn find_stall(mut sample: impl FnMut() -> Option<RequestCounts>, mut pause: impl FnMut()) -> Option<u64> {
    let (mut in_flight, completed_before) = sample()?;
    for _ in 0..SAMPLES {
        if in_flight == 0 {
            return None;
        }
        pause();
        let (in_flight_now, completed) = sample()?;
        if completed != completed_before {
            return None;
        }
        in_flight = in_flight_now;
    }
    (in_flight > 0).then_some(in_flight)
}

/// `inflight` (reads, writes) and the completion columns of `stat` (Documentation/block/stat.rst).
fn read_counts(root: &Root, device: &str) -> Option<RequestCounts> {
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

    fn run_samples(samples: &[RequestCounts]) -> (Option<u64>, usize) {
        let (mut at, mut pauses) = (0, 0);
        let got = find_stall(
            || {
                at += 1;
                samples.get(at - 1).or(samples.last()).copied()
            },
            || pauses += 1,
        );
        (got, pauses)
    }

    #[test]
    fn idle_progressing_and_stalled_devices_are_distinguished() {
        assert_eq!(run_samples(&[(0, 7)]), (None, 0), "an idle device costs no wait");
        assert_eq!(run_samples(&[(4, 7), (4, 8)]), (None, 1));
        assert_eq!(run_samples(&[(4, 7), (0, 7)]), (None, 1), "a flush finished: it is not counted in stat");
        assert_eq!(run_samples(&[(4, 7)]), (Some(4), SAMPLES as usize));
    }

    #[test]
    fn the_error_names_device_and_requests_in_flight() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("sys/block/vda");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::write(disk.join("inflight"), "       2        3\n").unwrap();
        std::fs::write(disk.join("stat"), "1 0 0 0 2 0 0 0 5 0 0\n").unwrap();
        let knob_id = KnobId::parse("scheduler@vda").unwrap();
        let why = require_progress(&Root::at(dir.path()), &knob_id).unwrap_err().to_string();
        assert!(why.contains("5 requests in flight"), "{why}");
        assert!(require_progress(&Root::at(dir.path()), &KnobId::parse("vm.swappiness").unwrap()).is_ok());
    }
}
