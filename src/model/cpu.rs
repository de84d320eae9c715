//! CPU time, as iostat's avg-cpu line has it.

use serde::{Deserialize, Serialize};

/// The first line of `/proc/stat` (proc_stat(5)) and the fork counter; times in USER_HZ ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRaw {
    /// user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
    pub ticks: [u64; 10],
    /// Processors online.
    pub cpus: u32,
    /// Forks since boot (`processes`): unchanged means no new task.
    pub forks: u64,
    /// Tasks blocked on I/O now (`procs_blocked`).
    #[serde(rename = "blocked")]
    pub blocked_tasks: u64,
}

/// Shares of an interval, in per cent of all processors together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRate {
    /// user + nice (guest time is within them already).
    pub user_pct: f64,
    /// system + irq + softirq.
    pub system_pct: f64,
    /// Idle while a task of that processor waited for I/O.
    pub iowait_pct: f64,
    /// Taken by the hypervisor.
    pub steal_pct: f64,
    /// Idle with nothing outstanding.
    pub idle_pct: f64,
}

impl CpuRate {
    /// Shares between two readings; `None` if no tick has passed. iowait and idle may run backwards
    /// on the kernel's side (proc_stat(5)); such a field counts as 0.
    pub fn derive(prev: &CpuRaw, cur: &CpuRaw) -> Option<Self> {
        let mut d = [0u64; 8];
        for (i, slot) in d.iter_mut().enumerate() {
            *slot = cur.ticks[i].saturating_sub(prev.ticks[i]);
        }
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
