//! How long the counters of tracing cover that have no earlier reading to compare with: they count since tracing began, often
//! within the interval.

use crate::units::format_seconds;

/// The sources of a tick are read one after the other, so that tracing may have begun after the time of the tick.
const MIN_SECS: f64 = 0.001;

/// Counters since tracing began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinceStart {
    /// CLOCK_BOOTTIME when tracing began, ns; 0 if unknown.
    pub started_ns: u64,
    /// CLOCK_BOOTTIME of the reading, ns.
    pub read_ns: u64,
    /// Length of the interval in seconds.
    pub interval_secs: f64,
}

impl SinceStart {
    /// Seconds that the counters cover; those of the interval if it is not known when tracing began.
    pub(crate) fn covered_secs(self) -> f64 {
        match self.started_ns {
            0 => self.interval_secs,
            started => self.read_ns.saturating_sub(started) as f64 / 1e9,
        }
        .max(MIN_SECS)
    }

    /// That the figures are not those of the interval.
    pub(crate) fn note(self) -> String {
        let (covered, interval) = (self.covered_secs(), format_seconds(self.interval_secs));
        match self.started_ns {
            0 => format!("counted since tracing began, not for the whole interval of {interval}"),
            _ if covered <= self.interval_secs => {
                format!(
                    "counted for the last {} of the interval of {interval}: tracing began then",
                    format_seconds(covered)
                )
            }
            _ => format!(
                "counted for the last {}, since tracing began, not for the interval of {interval}: the reading before is missing",
                format_seconds(covered)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_says_what_is_covered() {
        let covers = |started_ns, interval_secs| SinceStart { started_ns, read_ns: 10_000_000_000, interval_secs };
        let part = covers(9_600_000_000, 2.0);
        assert!((part.covered_secs() - 0.4).abs() < 1e-9);
        assert_eq!(part.note(), "counted for the last 400 ms of the interval of 2.0 s: tracing began then");
        let longer = covers(3_000_000_000, 2.0);
        assert_eq!(longer.covered_secs(), 7.0);
        assert!(longer.note().starts_with("counted for the last 7.0 s, since tracing began"), "{}", longer.note());
        let unknown = covers(0, 2.0);
        assert_eq!(unknown.covered_secs(), 2.0);
        assert!(unknown.note().contains("not for the whole interval of 2.0 s"));
        assert_eq!(covers(11_000_000_000, 2.0).covered_secs(), MIN_SECS, "it began while the sources were read");
    }
}
