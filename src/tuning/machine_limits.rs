//! Properties of the machine that bound knob values and convert ratios to bytes.

use crate::parse::named_value;
use crate::root::Root;

/// Limits of this machine. What could not be read is `None` and bounds nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineLimits {
    /// The page size in bytes.
    pub page_bytes: u64,
    /// The size of memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Dirtyable memory in bytes, which vm.dirty_ratio is a percentage of.
    pub dirtyable_bytes: Option<u64>,
    /// fs.nr_open: the largest limit of open files.
    pub nr_open: Option<u64>,
    /// Whether this process has CAP_SYS_RESOURCE, without which no hard limit can be raised.
    pub has_cap_sys_resource: bool,
}

impl MachineLimits {
    /// Reads meminfo, vmstat and fs.nr_open, none of which can block.
    pub fn read(root: &Root) -> Self {
        let text = |rel: &str| std::fs::read_to_string(root.proc(rel)).unwrap_or_default();
        let page = rustix::param::page_size() as u64;
        Self {
            page_bytes: page,
            memory_bytes: named_value(text("meminfo").as_bytes(), b"MemTotal").map(|kb| kb * 1024),
            dirtyable_bytes: dirtyable_pages(
                text("vmstat").as_bytes(),
                text("sys/vm/dirty_ratio").trim().parse().ok(),
                text("sys/vm/dirty_background_ratio").trim().parse().ok(),
            )
            .map(|pages| pages * page),
            nr_open: text("sys/fs/nr_open").trim().parse().ok(),
            has_cap_sys_resource: text("self/status")
                .lines()
                .find_map(|l| u64::from_str_radix(l.strip_prefix("CapEff:")?.trim(), 16).ok())
                .is_some_and(|caps| caps & (1 << 24) != 0),
        }
    }

    /// A percentage of dirtyable memory in bytes, rounded down to whole pages.
    pub fn percent_to_bytes(&self, percent: u64) -> Option<u64> {
        let bytes = u128::from(self.dirtyable_bytes?) * u128::from(percent) / 100;
        let page = u128::from(self.page_bytes.max(1));
        u64::try_from(bytes / page * page).ok()
    }

    /// Bytes as a percentage of dirtyable memory.
    pub fn bytes_to_percent(&self, bytes: u64) -> Option<f64> {
        let all = self.dirtyable_bytes.filter(|d| *d > 0)?;
        Some(bytes as f64 * 100.0 / all as f64)
    }
}

/// The number of pages that the dirty ratios apply to. While a ratio is in force, it follows exactly from the
/// kernel's thresholds (mm/page-writeback.c, domain_dirty_limits); otherwise it is estimated as free plus file pages,
/// without the reserves.
fn dirtyable_pages(vmstat: &[u8], ratio: Option<u64>, background: Option<u64>) -> Option<u64> {
    let by = |threshold: &[u8], ratio: Option<u64>| {
        let (pages, ratio) = (named_value(vmstat, threshold)?, ratio.filter(|r| *r > 0)?);
        Some(pages.checked_mul(100)? / ratio).filter(|p| *p > 0)
    };
    by(b"nr_dirty_threshold", ratio).or_else(|| by(b"nr_dirty_background_threshold", background)).or_else(|| {
        let one = |name: &[u8]| named_value(vmstat, name);
        Some(one(b"nr_free_pages")? + one(b"nr_inactive_file")? + one(b"nr_active_file")?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str = "nr_free_pages 1000\nnr_inactive_file 200\nnr_active_file 300\n\
                          nr_dirty_threshold 280\nnr_dirty_background_threshold 140\n";

    #[test]
    fn the_kernels_own_threshold_takes_precedence() {
        assert_eq!(dirtyable_pages(VMSTAT.as_bytes(), Some(20), Some(10)), Some(1400));
        assert_eq!(dirtyable_pages(VMSTAT.as_bytes(), Some(0), Some(10)), Some(1400));
        assert_eq!(dirtyable_pages(VMSTAT.as_bytes(), Some(0), Some(0)), Some(1500));
        assert_eq!(dirtyable_pages(b"", Some(20), None), None);
    }

    #[test]
    fn percent_and_bytes_convert_both_ways() {
        let m = MachineLimits { page_bytes: 4096, dirtyable_bytes: Some(1000 * 4096), ..MachineLimits::default() };
        assert_eq!(m.percent_to_bytes(10), Some(100 * 4096));
        assert_eq!(m.bytes_to_percent(100 * 4096), Some(10.0));
        assert_eq!(MachineLimits::default().bytes_to_percent(1), None);
    }
}
