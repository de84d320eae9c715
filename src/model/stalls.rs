//! Who is held up by memory, and for how long: writers put to sleep because too many pages are dirty, and tasks that
//! have to make room themselves before they get memory (direct reclaim). Counted by `assets/trace/stalls.bpf.c`.

use super::disk::DevId;
use super::process::TaskKey;
use serde::{Deserialize, Serialize};

/// What holds a task up, in the order of [`TaskStalls::kinds`]. Waiting for pages from swap has no tracepoint; it is
/// in the task's delay accounting, see [`super::process::ProcRow::swapin_delay_pct`].
pub const KINDS: [&str; 2] = ["throttle", "reclaim"];
/// Dirty throttling: the pauses of balance_dirty_pages().
pub const THROTTLE: usize = 0;
/// Direct reclaim, of the machine or of a control group.
pub const RECLAIM: usize = 1;

/// What was counted of one kind since the process was first seen held up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallCount {
    /// Times.
    pub count: u64,
    /// Time, ns; threads added up.
    pub ns: u64,
    /// The longest time since the reading before, ns.
    pub longest_ns: u64,
}

/// A process that was held up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStalls {
    /// Process number.
    pub pid: u32,
    /// Start, in 1/100 s since boot, as [`TaskKey::starttime`].
    pub starttime: u64,
    /// Its name, as it is, without the zeros after it.
    pub comm: Vec<u8>,
    /// The kernel's name of what it was throttled for last: a device number (`8:0`), or that of a file system.
    pub bdi: Vec<u8>,
    /// See [`KINDS`].
    pub kinds: [StallCount; 2],
}

impl TaskStalls {
    /// Whose they are.
    pub fn key(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.pid, starttime: self.starttime }
    }
}

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallsRaw {
    /// Processes that were ever held up and not long ago, by number and start.
    pub tasks: Vec<TaskStalls>,
    /// Which kinds are counted; see [`KINDS`].
    pub counted: [bool; 2],
    /// Stalls for which there was no room.
    pub lost: u64,
    /// What of it could not be had, and why.
    pub without: Vec<String>,
}

/// Being held up in one way, in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Times.
    pub count: u64,
    /// Milliseconds of each second; threads added up, so it may be more than 1000. A pause counts whole when it
    /// begins, a reclaim when it ends.
    pub ms_per_s: f64,
    /// The longest, milliseconds.
    pub longest_ms: f64,
}

impl Stall {
    fn of(before: StallCount, now: StallCount, secs: f64) -> Self {
        // A count that went backwards began anew.
        let before =
            if before.count > now.count || before.ns > now.ns { StallCount::default() } else { before };
        let count = now.count - before.count;
        Self {
            count,
            ms_per_s: (now.ns - before.ns) as f64 / 1e6 / secs.max(1e-9),
            longest_ms: if count > 0 { now.longest_ns as f64 / 1e6 } else { 0.0 },
        }
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ms_per_s += other.ms_per_s;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
    }
}

/// A process that was held up in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeldUp {
    /// Who; it may have ended since.
    pub key: TaskKey,
    /// Its name, cleaned.
    pub comm: String,
    /// What it was throttled for last, cleaned: a device number (`8:0`), or the name of a file system.
    pub bdi: String,
    /// See [`KINDS`].
    pub kinds: [Stall; 2],
}

impl HeldUp {
    /// Milliseconds of each second, of all kinds.
    pub fn ms_per_s(&self) -> f64 {
        self.kinds.iter().map(|k| k.ms_per_s).sum()
    }

    /// `dd (1234)`.
    pub fn name(&self) -> String {
        format!("{} ({})", self.comm, self.key.pid)
    }

    /// The device that it was throttled for last, if it was one.
    pub fn device(&self) -> Option<DevId> {
        // FUSE adds what it is: "0:52-fuseblk".
        let number = self.bdi.split_once('-').map_or(&*self.bdi, |(number, _)| number);
        let (major, minor) = number.split_once(':')?;
        Some(DevId { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// Who was held up in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// Who, the most held up first.
    pub tasks: Vec<HeldUp>,
    /// All of them together; `None` for a kind that is not counted. See [`KINDS`].
    pub all: [Option<Stall>; 2],
    /// Stalls that are not in it: there was no room.
    pub lost: u64,
    /// What of it could not be had, and why.
    pub without: Vec<String>,
}

impl Stalls {
    /// What came between two readings; without `before`, since counting began.
    pub fn derive(before: Option<&StallsRaw>, now: &StallsRaw, secs: f64) -> Self {
        let old = before.map(|b| b.tasks.as_slice()).unwrap_or_default();
        let mut all = now.counted.map(|counted| counted.then(Stall::default));
        let mut tasks = Vec::new();
        for task in &now.tasks {
            let was = old.binary_search_by_key(&task.key(), TaskStalls::key).ok().map(|at| old[at].kinds);
            let was = was.unwrap_or_default();
            let kinds = std::array::from_fn(|k| Stall::of(was[k], task.kinds[k], secs));
            let held: &[Stall; 2] = &kinds;
            if held.iter().all(|k| k.count == 0) {
                continue;
            }
            all.iter_mut().zip(held).for_each(|(sum, one)| {
                if let Some(sum) = sum {
                    sum.add(one);
                }
            });
            let (comm, bdi) = (crate::text::sanitize(&*task.comm), crate::text::sanitize(&*task.bdi));
            tasks.push(HeldUp { key: task.key(), comm, bdi, kinds });
        }
        tasks.sort_by(|a, b| b.ms_per_s().total_cmp(&a.ms_per_s()));
        let lost = now.lost.saturating_sub(before.map_or(0, |b| b.lost));
        Self { tasks, all, lost, without: now.without.clone() }
    }

    /// Whether a kind held somebody up.
    pub fn any(&self, kind: usize) -> bool {
        self.all[kind].is_some_and(|s| s.count > 0)
    }

    /// Who was held up in that way, the most first.
    pub fn by(&self, kind: usize) -> Vec<&HeldUp> {
        let mut out: Vec<_> = self.tasks.iter().filter(|t| t.kinds[kind].count > 0).collect();
        out.sort_by(|a, b| b.kinds[kind].ms_per_s.total_cmp(&a.kinds[kind].ms_per_s));
        out
    }

    /// Bytes it holds beside itself, by estimate.
    pub fn bytes(&self) -> usize {
        self.tasks.iter().map(|t| size_of::<HeldUp>() + t.comm.len() + t.bdi.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: u32, throttle: (u64, u64, u64), reclaim: (u64, u64, u64)) -> TaskStalls {
        let kinds = [throttle, reclaim].map(|(count, ms, longest)| StallCount {
            count,
            ns: ms * 1_000_000,
            longest_ns: longest * 1_000_000,
        });
        TaskStalls { pid, starttime: 7, comm: b"d\x1bd".to_vec(), bdi: b"8:0".to_vec(), kinds }
    }

    fn raw(tasks: Vec<TaskStalls>) -> StallsRaw {
        StallsRaw { tasks, counted: [true; 2], ..StallsRaw::default() }
    }

    #[test]
    fn only_what_came_since_counts_and_the_most_held_up_is_first() {
        let before = raw(vec![task(1, (5, 1000, 200), (0, 0, 0)), task(2, (1, 10, 10), (0, 0, 0))]);
        let mut now = raw(vec![
            task(1, (9, 1800, 200), (1, 100, 100)),
            task(2, (1, 10, 10), (0, 0, 0)),
            task(3, (0, 0, 0), (40, 1400, 300)),
        ]);
        now.lost = 3;
        let s = Stalls::derive(Some(&before), &now, 2.0);
        assert_eq!(s.tasks.iter().map(|t| t.key.pid).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(s.tasks[1].kinds[THROTTLE], Stall { count: 4, ms_per_s: 400.0, longest_ms: 200.0 });
        assert_eq!(s.all[THROTTLE], Some(Stall { count: 4, ms_per_s: 400.0, longest_ms: 200.0 }));
        assert_eq!(s.all[RECLAIM], Some(Stall { count: 41, ms_per_s: 750.0, longest_ms: 300.0 }));
        assert_eq!((s.lost, s.tasks[1].comm.as_str()), (3, "d\\x1bd"));
        assert_eq!(s.by(THROTTLE).len(), 1);
    }

    #[test]
    fn a_count_that_began_anew_and_a_kind_that_is_not_counted_are_told_apart_from_nothing() {
        let before = raw(vec![task(1, (50, 9000, 200), (0, 0, 0))]);
        let mut now = raw(vec![task(1, (2, 300, 200), (0, 0, 0))]);
        now.counted[RECLAIM] = false;
        let s = Stalls::derive(Some(&before), &now, 1.0);
        assert_eq!(s.all, [Some(Stall { count: 2, ms_per_s: 300.0, longest_ms: 200.0 }), None]);
        let none = Stalls::derive(Some(&now), &now, 1.0);
        assert_eq!((none.tasks.len(), none.all), (0, [Some(Stall::default()), None]));
    }

    #[test]
    fn devices_are_found_behind_the_kernels_names() {
        let held = |bdi: &str| HeldUp { bdi: bdi.into(), ..HeldUp::default() }.device();
        assert_eq!(held("259:3"), Some(DevId { major: 259, minor: 3 }));
        assert_eq!(held("0:52-fuseblk"), Some(DevId { major: 0, minor: 52 }));
        assert_eq!((held("btrfs-1"), held("")), (None, None));
    }
}
