//! The time of a reading on two clocks.

use serde::{Deserialize, Serialize};

/// Time of a reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// CLOCK_BOOTTIME in ns, for intervals.
    pub boot_ns: u64,
    /// Wall clock in ns since 1970-01-01 UTC, for display.
    pub wall_ns: i64,
}

impl Timestamp {
    /// Seconds since `earlier`; 0 if it is not earlier.
    pub fn secs_since(&self, earlier: Timestamp) -> f64 {
        self.boot_ns.saturating_sub(earlier.boot_ns) as f64 / 1e9
    }

    /// Wall clock in ns at a CLOCK_BOOTTIME.
    pub fn wall_ns_at(&self, boot_ns: u64) -> i64 {
        self.wall_ns.saturating_add(boot_ns.wrapping_sub(self.boot_ns) as i64)
    }

    /// Seconds since the machine booted.
    pub fn uptime_secs(&self) -> f64 {
        self.boot_ns as f64 / 1e9
    }
}

/// Difference of a counter; `None` if it decreased, because a device or task was re-created.
pub fn counter_delta(prev: u64, cur: u64) -> Option<u64> {
    cur.checked_sub(prev)
}

/// Difference of a 32-bit millisecond counter, which wraps every 49.7 days
/// (Documentation/admin-guide/iostats.rst).
pub fn wrapping_delta_u32(prev: u64, cur: u64) -> u64 {
    if cur >= prev { cur - prev } else { (cur as u32).wrapping_sub(prev as u32) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_counter_has_a_delta_and_a_restarted_one_has_none() {
        assert_eq!(counter_delta(5, 7), Some(2));
        assert_eq!(counter_delta(7, 5), None);
        assert_eq!(wrapping_delta_u32(u32::MAX as u64, 4), 5);
    }

    #[test]
    fn intervals_are_in_seconds() {
        let a = Timestamp { boot_ns: 1_000_000_000, wall_ns: 0 };
        let b = Timestamp { boot_ns: 3_500_000_000, wall_ns: 0 };
        assert_eq!(b.secs_since(a), 2.5);
        assert_eq!(a.secs_since(b), 0.0);
    }
}
