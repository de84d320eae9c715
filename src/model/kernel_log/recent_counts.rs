//! How often something happened in the last ten minutes, counted by minute of the log clock.

use serde::{Deserialize, Serialize};

const MINUTE_US: u64 = 60 * 1_000_000;
/// Ten whole minutes and the current one.
const MINUTES: u64 = 11;

/// Counts of the last ten minutes. They saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentCounts {
    newest_minute: u64,
    /// By minute modulo their number, up to the newest.
    minutes: [u32; MINUTES as usize],
}

impl RecentCounts {
    /// Adds `count` at `boot_us` of the log clock.
    pub(crate) fn add(&mut self, boot_us: u64, count: u64) {
        let minute = boot_us / MINUTE_US;
        for passed in (self.newest_minute..minute).take(MINUTES as usize) {
            self.minutes[((passed + 1) % MINUTES) as usize] = 0;
        }
        self.newest_minute = self.newest_minute.max(minute);
        if self.newest_minute - minute < MINUTES {
            let cell = &mut self.minutes[(minute % MINUTES) as usize];
            *cell = cell.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// The sum of the ten minutes before `now_us` of the log clock, to the minute.
    pub(crate) fn sum(&self, now_us: u64) -> u64 {
        let oldest = (now_us / MINUTE_US).saturating_sub(MINUTES - 1);
        let stored = self.newest_minute.saturating_sub(MINUTES - 1)..=self.newest_minute;
        let recent = stored.filter(|minute| *minute >= oldest);
        recent.map(|minute| u64::from(self.minutes[(minute % MINUTES) as usize])).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_minutes(minutes: &[u64]) -> RecentCounts {
        let mut counts = RecentCounts::default();
        minutes.iter().for_each(|minute| counts.add(minute * MINUTE_US, 1));
        counts
    }

    #[test]
    fn only_the_last_ten_minutes_count() {
        let sum = |minutes: &[u64], now| at_minutes(minutes).sum(now * MINUTE_US);
        assert_eq!(sum(&[0, 9, 18, 27, 36], 36), 2);
        assert_eq!((sum(&[5, 5, 6], 15), sum(&[5, 5, 6], 16), sum(&[5, 5, 6], 17)), (3, 1, 0));
        assert_eq!((sum(&[5, 16], 16), sum(&[5, 1000], 1000), sum(&[5, 1000], u64::MAX / MINUTE_US)), (1, 1, 0));
        // Records may arrive a little late.
        assert_eq!((sum(&[20, 19], 20), sum(&[20, 9], 20), sum(&[20, 10], 20)), (2, 1, 2));
    }

    #[test]
    fn counts_saturate() {
        let mut counts = at_minutes(&[3]);
        counts.add(3 * MINUTE_US, u64::MAX);
        assert_eq!(counts.sum(3 * MINUTE_US), u64::from(u32::MAX));
        counts.add(u64::MAX, 2);
        assert_eq!(counts.sum(u64::MAX), 2);
    }
}
