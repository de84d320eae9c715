//! Spans of a run in which something else than the storage's speed decided its rates: a frozen file system, a stopped
//! process, a device that completed nothing. No conclusion about the storage is drawn from them.

use crate::root::Root;
use serde::{Deserialize, Serialize};

/// A run without progress for longer is looked into, ms.
pub(crate) const STALL_LOOK_MS: u64 = 750;

/// What held the run up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisturbanceCause {
    /// Threads waited for a frozen file system to be thawed (fsfreeze, snapshots).
    Frozen,
    /// This process was stopped by a signal and continued (SIGSTOP, SIGCONT).
    Stopped,
    /// This process was not run: a frozen cgroup, a suspended machine, no processor.
    NotRun,
    /// Requests were in flight at the device and none completed.
    DeviceHung,
    /// Operations waited, and nothing was in flight at the device.
    AboveDevice,
    /// Nothing completed; the device's counters are unknown.
    Unknown,
}

impl DisturbanceCause {
    /// The cause as a sentence without its end; the duration follows.
    fn sentence(self) -> &'static str {
        match self {
            Self::Frozen => "the file system was frozen (fsfreeze)",
            Self::Stopped => "this program was stopped (SIGSTOP)",
            Self::NotRun => "this program was not run (a frozen cgroup, a suspended machine, no processor)",
            Self::DeviceHung => "the device had requests in flight and completed none",
            Self::AboveDevice => "operations waited above the device, which had none in flight",
            Self::Unknown => "nothing completed",
        }
    }
}

/// A span of a measurement, ms since its counting began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// What it was.
    pub cause: DisturbanceCause,
    /// Its begin.
    pub from_ms: u64,
    /// Its end.
    pub to_ms: u64,
}

/// A span of the whole run, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DisturbedSpan {
    pub cause: DisturbanceCause,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl DisturbedSpan {
    /// Its part within a measurement that counted from `begin` to `end`.
    pub(crate) fn within(&self, (begin, end): (u64, u64)) -> Option<Disturbance> {
        let (from, to) = (self.from_ns.max(begin), self.to_ns.min(end));
        let ms = |at: u64| (at - begin) / 1_000_000;
        (from < to).then(|| Disturbance { cause: self.cause, from_ms: ms(from), to_ms: ms(to) })
    }
}

/// One sentence for each cause, with the time it took together.
pub(crate) fn describe_disturbances(all: &[Disturbance]) -> Vec<String> {
    let mut sums: Vec<(DisturbanceCause, u64)> = Vec::new();
    for one in all {
        let ms = one.to_ms - one.from_ms;
        match sums.iter_mut().find(|(cause, _)| *cause == one.cause) {
            Some((_, sum)) => *sum += ms,
            None => sums.push((one.cause, ms)),
        }
    }
    sums.iter().map(|(cause, ms)| format!("{} for {:.1} s", cause.sentence(), *ms as f64 / 1e3)).collect()
}

/// Why nothing completes, from what the threads of this process wait for and the requests in flight at the device.
pub(crate) fn find_stall_cause(root: &Root, in_flight: Option<u64>) -> DisturbanceCause {
    let tasks = std::fs::read_dir(root.proc("self/task")).into_iter().flatten().flatten();
    let mut channels = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("wchan")).ok());
    // sb_start_write() of a frozen file system sleeps there (fs/super.c, kernel/locking/percpu-rwsem.c).
    if channels.any(|channel| channel == "percpu_rwsem_wait") {
        return DisturbanceCause::Frozen;
    }
    match in_flight {
        Some(0) => DisturbanceCause::AboveDevice,
        Some(_) => DisturbanceCause::DeviceHung,
        None => DisturbanceCause::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_to_the_measurement() {
        let span = DisturbedSpan { cause: DisturbanceCause::Frozen, from_ns: 1_000_000, to_ns: 9_000_000 };
        let cut = |window| span.within(window).map(|d| (d.from_ms, d.to_ms));
        assert_eq!(cut((3_000_000, 20_000_000)), Some((0, 6)));
        assert_eq!(cut((0, 5_000_000)), Some((1, 5)));
        assert_eq!(cut((9_000_000, 20_000_000)), None);
    }

    #[test]
    fn the_cause_comes_from_wait_channels_and_requests_in_flight() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("proc/self/task/7");
        std::fs::create_dir_all(&task).unwrap();
        let cause = |channel: &str, in_flight| {
            std::fs::write(task.join("wchan"), channel).unwrap();
            find_stall_cause(&Root::at(dir.path()), in_flight)
        };
        assert_eq!(cause("percpu_rwsem_wait", Some(0)), DisturbanceCause::Frozen);
        assert_eq!(cause("io_schedule", Some(3)), DisturbanceCause::DeviceHung);
        assert_eq!(cause("0", Some(0)), DisturbanceCause::AboveDevice);
        assert_eq!(cause("0", None), DisturbanceCause::Unknown);
    }

    #[test]
    fn spans_of_one_cause_are_one_sentence() {
        let of = |cause, from_ms, to_ms| Disturbance { cause, from_ms, to_ms };
        let all = [
            of(DisturbanceCause::Frozen, 0, 1000),
            of(DisturbanceCause::Stopped, 5000, 7000),
            of(DisturbanceCause::Frozen, 8000, 8500),
        ];
        let said = describe_disturbances(&all);
        assert_eq!(
            said,
            ["the file system was frozen (fsfreeze) for 1.5 s", "this program was stopped (SIGSTOP) for 2.0 s"]
        );
    }
}
