//! Latency statistics by fio's definitions.

use super::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// One latency's summary. All ns; zero samples give all zeros, as fio prints them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyStats {
    /// Samples.
    #[serde(rename = "n")]
    pub count: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Sample standard deviation (n - 1).
    pub stddev_ns: f64,
    /// Distribution of the samples; not recorded for slat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

impl LatencyStats {
    pub(crate) fn from_sums(n: u64, sum: u64, squares: f64, min: u64, max: u64, histogram: Option<Histogram>) -> Self {
        if n == 0 {
            return Self { histogram, ..Self::default() };
        }
        let mean = sum as f64 / n as f64;
        Self {
            count: n,
            min_ns: min,
            max_ns: max,
            mean_ns: mean,
            stddev_ns: sample_stddev(n, sum as f64, squares),
            histogram,
        }
    }

    /// The value in ns at `percent`; `None` without samples or histogram.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let exact = self.histogram.as_ref()?.percentile(percent)?;
        // The middle of a bucket may lie outside the measured range.
        // In a damaged report the shortest may be longer than the longest.
        Some(exact.max(self.min_ns).min(self.max_ns))
    }

    /// The samples added since `earlier`, an older state of these statistics.
    pub(crate) fn samples_since(&self, earlier: &LatencyStats) -> Histogram {
        let now = self.histogram.clone().unwrap_or_default();
        earlier.histogram.as_ref().map_or(now.clone(), |old| now.since(old))
    }

    /// The mean of the samples added since `earlier`, ns; `None` if there are none.
    pub(crate) fn mean_since(&self, earlier: &LatencyStats) -> Option<f64> {
        let sum = |l: &LatencyStats| l.mean_ns * l.count as f64;
        let added = self.count.checked_sub(earlier.count).filter(|n| *n > 0)?;
        Some(((sum(self) - sum(earlier)) / added as f64).max(0.0))
    }

    /// The statistics over both sets of samples.
    pub(crate) fn merge(&self, other: &LatencyStats) -> LatencyStats {
        let n = self.count.saturating_add(other.count);
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other.clone() } else { self.clone() };
        }
        let sum = |l: &LatencyStats| l.mean_ns * l.count as f64;
        let squares = |l: &LatencyStats| {
            l.stddev_ns * l.stddev_ns * (l.count.saturating_sub(1)) as f64 + l.mean_ns * l.mean_ns * l.count as f64
        };
        let total = sum(self) + sum(other);
        let histogram = match (&self.histogram, &other.histogram) {
            (Some(a), Some(b)) => Some(a.merge(b)),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        LatencyStats {
            count: n,
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
            mean_ns: total / n as f64,
            stddev_ns: sample_stddev(n, total, squares(self) + squares(other)),
            histogram,
        }
    }
}

fn sample_stddev(n: u64, sum: f64, squares: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let spread = squares - sum * (sum / n as f64);
    (spread.max(0.0) / (n - 1) as f64).sqrt()
}

/// All operations of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionStats {
    /// Operations completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Submission latency: from the start of the preparation to the submission.
    pub slat: LatencyStats,
    /// Completion latency: from the submission to the completion.
    pub clat: LatencyStats,
    /// The sum of both, comparable across engines.
    pub lat: LatencyStats,
}

impl DirectionStats {
    pub(crate) fn merge(&self, other: &DirectionStats) -> DirectionStats {
        DirectionStats {
            ios: self.ios.saturating_add(other.ios),
            bytes: self.bytes.saturating_add(other.bytes),
            slat: self.slat.merge(&other.slat),
            clat: self.clat.merge(&other.clat),
            lat: self.lat.merge(&other.lat),
        }
    }
}

/// fsync or fdatasync calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncStats {
    /// Operations completed.
    pub ios: u64,
    /// Duration of a call.
    pub lat: LatencyStats,
}

impl SyncStats {
    pub(crate) fn merge(&self, other: &SyncStats) -> SyncStats {
        SyncStats { ios: self.ios.saturating_add(other.ios), lat: self.lat.merge(&other.lat) }
    }
}

/// Gaps without any completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallStats {
    /// Number of gaps of at least 100 ms.
    pub count: u64,
    /// The sum of these, ns.
    pub total_ns: u64,
    /// The longest gap, whether a stall or not, ns.
    pub longest_ns: u64,
}

impl StallStats {
    /// The gaps of two workers, which stall together with the device: the maximum, not the sum.
    pub fn max(&self, other: &StallStats) -> StallStats {
        StallStats {
            count: self.count.max(other.count),
            total_ns: self.total_ns.max(other.total_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_equals_computing_over_all_samples() {
        let of = |v: &[u64]| {
            LatencyStats::from_sums(
                v.len() as u64,
                v.iter().sum(),
                v.iter().map(|x| (*x as f64).powi(2)).sum(),
                *v.iter().min().unwrap_or(&0),
                *v.iter().max().unwrap_or(&0),
                None,
            )
        };
        let both = of(&[1, 5, 9]).merge(&of(&[100, 2]));
        let once = of(&[1, 5, 9, 100, 2]);
        assert_eq!((both.count, both.min_ns, both.max_ns), (once.count, once.min_ns, once.max_ns));
        assert!((both.stddev_ns - once.stddev_ns).abs() < 1e-6);
        assert_eq!(of(&[]).merge(&once), once);
    }
}
