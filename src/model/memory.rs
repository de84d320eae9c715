//! Dirty pages, writeback and swap.
//!
//! Sources: Documentation/filesystems/proc.rst (meminfo, vmstat), mm/page-writeback.c for the
//! thresholds, Documentation/admin-guide/sysctl/vm.rst.

use super::timestamp::counter_delta;
pub(crate) use crate::parse::swaps::SwapArea;
use serde::{Deserialize, Serialize};

/// The lines of `/proc/vmstat` that this program uses; `None` where the kernel lacks the line.
/// Units: pages, or events since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmRaw {
    pub page_size: u64,
    pub nr_dirty: Option<u64>,
    pub nr_writeback: Option<u64>,
    /// Pages under writeback to FUSE and the like.
    pub nr_writeback_temp: Option<u64>,
    pub nr_dirtied: Option<u64>,
    pub nr_written: Option<u64>,
    /// Effective dirty threshold.
    pub nr_dirty_threshold: Option<u64>,
    /// Effective background threshold.
    pub nr_dirty_background_threshold: Option<u64>,
    /// KiB paged in since boot.
    pub pgpgin: Option<u64>,
    /// KiB paged out since boot.
    pub pgpgout: Option<u64>,
    /// Pages swapped in since boot.
    pub pswpin: Option<u64>,
    /// Pages swapped out since boot.
    pub pswpout: Option<u64>,
    pub pgmajfault: Option<u64>,
    pub pgscan_kswapd: Option<u64>,
    pub pgscan_direct: Option<u64>,
    /// Times a task had to wait in direct reclaim (all zones).
    pub allocstall: Option<u64>,
    pub oom_kill: Option<u64>,
}

/// The lines of `/proc/meminfo` that this program uses, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemRaw {
    /// Usable memory.
    pub total: u64,
    pub free: u64,
    /// Estimate of what is available without swapping.
    pub available: Option<u64>,
    /// Block device cache.
    pub buffers: u64,
    /// Page cache.
    pub cached: u64,
    pub dirty: u64,
    pub writeback: u64,
    pub anon: Option<u64>,
    /// Shared memory and tmpfs.
    pub shmem: Option<u64>,
    pub swap_total: u64,
    pub swap_free: u64,
    /// Both in swap and in memory.
    pub swap_cached: u64,
}

/// Dirty and writeback pages against their thresholds, in bytes and bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WritebackRate {
    pub dirty_bytes: Option<u64>,
    pub writeback_bytes: Option<u64>,
    /// Background writeback starts above this.
    pub background_threshold_bytes: Option<u64>,
    /// (background + dirty threshold) / 2: above it writers are throttled (balance_dirty_pages()).
    pub freerun_bytes: Option<u64>,
    /// Dirty threshold, the limit for writers.
    pub dirty_threshold_bytes: Option<u64>,
    pub dirtied_bytes_per_s: Option<f64>,
    pub written_bytes_per_s: Option<f64>,
}

impl WritebackRate {
    /// Dirty or under writeback, bytes.
    pub fn unwritten_bytes(&self) -> Option<u64> {
        Some(self.dirty_bytes?.saturating_add(self.writeback_bytes?))
    }

    /// Levels of `cur`, rates since `prev`.
    pub fn derive(prev: Option<&VmRaw>, cur: &VmRaw, secs: f64) -> Self {
        let bytes = |pages: Option<u64>| pages.map(|p| p.saturating_mul(cur.page_size));
        let rate = |f: fn(&VmRaw) -> Option<u64>| page_rate(prev, cur, secs, f);
        let (bg, max) = (bytes(cur.nr_dirty_background_threshold), bytes(cur.nr_dirty_threshold));
        Self {
            dirty_bytes: bytes(cur.nr_dirty),
            writeback_bytes: bytes(cur.nr_writeback),
            background_threshold_bytes: bg,
            freerun_bytes: bg.zip(max).map(|(b, m)| b.midpoint(m)),
            dirty_threshold_bytes: max,
            dirtied_bytes_per_s: rate(|v| v.nr_dirtied),
            written_bytes_per_s: rate(|v| v.nr_written),
        }
    }
}

/// Memory reclaimed from the page cache and from programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReclaimRate {
    /// Scanned by kswapd, bytes per second.
    pub background_bytes_per_s: f64,
    /// Scanned in direct reclaim, bytes per second.
    pub direct_bytes_per_s: f64,
    /// Waits in direct reclaim, per second.
    pub stalls_per_s: f64,
    /// Processes killed by the OOM killer in the interval.
    pub oom_kills: u64,
}

impl ReclaimRate {
    /// Rates between two readings; `None` where the kernel lacks the counters.
    pub fn derive(prev: &VmRaw, cur: &VmRaw, secs: f64) -> Option<Self> {
        let grown = |f: fn(&VmRaw) -> Option<u64>| counter_delta(f(prev)?, f(cur)?);
        let per_s = |n: u64| n as f64 / secs.max(1e-9);
        let page = cur.page_size as f64;
        Some(Self {
            background_bytes_per_s: per_s(grown(|v| v.pgscan_kswapd)?) * page,
            direct_bytes_per_s: per_s(grown(|v| v.pgscan_direct)?) * page,
            stalls_per_s: grown(|v| v.allocstall).map_or(0.0, per_s),
            oom_kills: grown(|v| v.oom_kill).unwrap_or(0),
        })
    }
}

/// Swap space and traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SwapRate {
    pub total_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
    /// vmstat's `si`, in bytes.
    pub in_bytes_per_s: Option<f64>,
    /// vmstat's `so`, in bytes.
    pub out_bytes_per_s: Option<f64>,
}

impl SwapRate {
    /// Space from meminfo, traffic from vmstat.
    pub fn derive(mem: Option<&MemRaw>, prev: Option<&VmRaw>, cur: Option<&VmRaw>, secs: f64) -> Self {
        let rate = |f: fn(&VmRaw) -> Option<u64>| cur.and_then(|c| page_rate(prev, c, secs, f));
        Self {
            total_bytes: mem.map(|m| m.swap_total),
            used_bytes: mem.map(|m| m.swap_total.saturating_sub(m.swap_free)),
            in_bytes_per_s: rate(|v| v.pswpin),
            out_bytes_per_s: rate(|v| v.pswpout),
        }
    }
}

/// A page counter's rate in bytes per second. Without `prev` the counter counts from boot.
fn page_rate(prev: Option<&VmRaw>, cur: &VmRaw, secs: f64, f: fn(&VmRaw) -> Option<u64>) -> Option<f64> {
    let grown = match prev {
        Some(prev) => counter_delta(f(prev)?, f(cur)?)?,
        None => f(cur)?,
    };
    (secs > 0.0).then(|| grown as f64 * cur.page_size as f64 / secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_and_rates() {
        let prev = VmRaw { page_size: 4096, nr_dirtied: Some(100), nr_written: Some(50), ..Default::default() };
        let cur = VmRaw {
            nr_dirty: Some(10),
            nr_dirtied: Some(300),
            nr_written: Some(40),
            nr_dirty_threshold: Some(2000),
            nr_dirty_background_threshold: Some(1000),
            ..prev
        };
        let w = WritebackRate::derive(Some(&prev), &cur, 2.0);
        assert_eq!(w.dirty_bytes, Some(40_960));
        assert_eq!(w.freerun_bytes, Some(1500 * 4096));
        assert_eq!(w.dirtied_bytes_per_s, Some(100.0 * 4096.0));
        assert_eq!(w.written_bytes_per_s, None, "a counter that ran backwards has no rate");
        assert_eq!(w.writeback_bytes, None, "a missing line is not 0");
    }
}
