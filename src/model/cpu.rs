//! CPU time, as in the avg-cpu line of iostat.

use serde::{Deserialize, Serialize};

/// The first line of `/proc/stat` (proc_stat(5)) and the fork counter; times in USER_HZ ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRaw {
    /// user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
    pub ticks: [u64; 10],
    /// Processors online.
    pub cpus: u32,
    /// Forks since boot (`processes`): if it is unchanged there is no new task.
    pub forks: u64,
    /// Tasks blocked on I/O (`procs_blocked`).
    pub blocked_tasks: u64,
}

/// Shares of an interval, as a percentage of the time of all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRate {
    /// user + nice (which include guest time).
    pub user_pct: f64,
    /// system + irq + softirq.
    pub system_pct: f64,
    /// Idle while a task of that processor waited for I/O.
    pub iowait_pct: f64,
    /// Stolen by the hypervisor.
    pub steal_pct: f64,
    /// Idle with no I/O outstanding.
    pub idle_pct: f64,
}

impl CpuRate {
    /// Shares between two readings; `None` if no tick has passed. The kernel's iowait and idle may decrease
    /// (proc_stat(5)); a field that decreased counts as 0.
    pub fn derive(prev: &CpuRaw, cur: &CpuRaw) -> Option<Self> {
        let d: [u64; 8] = std::array::from_fn(|i| cur.ticks[i].saturating_sub(prev.ticks[i]));
        let total = d.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        if total == 0 {
            return None;
        }
        let pct = |n: u64| n as f64 * 100.0 / total as f64;
        Some(Self {
            user_pct: pct(d[0].saturating_add(d[1])),
            system_pct: pct(d[2].saturating_add(d[5]).saturating_add(d[6])),
            iowait_pct: pct(d[4]),
            steal_pct: pct(d[7]),
            idle_pct: pct(d[3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_decreasing_iowait_counts_as_zero() {
        let prev = CpuRaw { ticks: [100, 0, 50, 800, 60, 1, 2, 3, 0, 0], ..Default::default() };
        let cur = CpuRaw { ticks: [120, 10, 60, 850, 55, 2, 4, 10, 5, 5], ..Default::default() };
        let r = CpuRate::derive(&prev, &cur).unwrap();
        assert_eq!(r.user_pct, 30.0);
        assert_eq!(r.system_pct, 13.0);
        assert_eq!(r.iowait_pct, 0.0);
        assert_eq!(r.steal_pct, 7.0);
        assert_eq!(r.idle_pct, 50.0);
        assert_eq!(CpuRate::derive(&cur, &cur), None);
    }
}
