//! Rates and latencies of a run for the live charts. Memory is bounded, however long the run is.

use crate::bench::bounded_series::{BoundedSeries, Merge};
use crate::bench::message::BenchProgress;

const MAX_POINTS: usize = 1200;

/// Operations per second, bytes per second, median and 99th percentile of the latency in ns; `None`: not measured.
pub(super) type OperationRates = [Option<f64>; 4];
/// Index of the median among [`OperationRates`]; before it are rates.
const MEDIAN: usize = 2;
/// Reads, writes and syncs over a short time.
pub(super) type BenchRates = [OperationRates; 3];

/// What a run has sent: the points of all measurements so far; of the preparation, until the first measurement starts.
#[derive(Debug, Default)]
pub struct BenchFigures {
    pub last: Option<BenchProgress>,
    /// Whether there were reads, writes, syncs.
    pub has_ops: [bool; 3],
    is_measuring: bool,
    /// Milliseconds that the points cover.
    pub(super) elapsed_ms: u64,
    pub(super) points: BoundedSeries<BenchRates, MAX_POINTS>,
}

impl BenchFigures {
    pub fn push(&mut self, p: BenchProgress) {
        if p.measurement_index.is_some() && !self.is_measuring {
            // Drop the points of the preparation.
            *self = Self { is_measuring: true, ..Self::default() };
        }
        let (last_counts, last_ms) = match &self.last {
            Some(last) if last.measurement_index == p.measurement_index && last.point.at_ms <= p.point.at_ms => {
                (last.op_counts, last.point.at_ms)
            }
            _ => ([0; 3], 0),
        };
        let ms = p.point.at_ms.saturating_sub(last_ms);
        if ms > 0 && !p.is_ramping {
            self.elapsed_ms += ms;
            for (seen, n) in self.has_ops.iter_mut().zip(p.op_counts) {
                *seen |= n > 0;
            }
            let syncs = p.op_counts[2].saturating_sub(last_counts[2]) as f64 * 1000.0 / ms as f64;
            let ops_per_s = [p.point.read_iops, p.point.write_iops, syncs];
            let bytes_per_s = [Some(p.point.read_bytes_per_s), Some(p.point.write_bytes_per_s), None];
            self.points.push(std::array::from_fn(|kind| {
                let [p50, p99] = p.lat[kind].map(|ns| ns.map(|ns| ns as f64));
                [Some(ops_per_s[kind]), bytes_per_s[kind], p50, p99]
            }));
        }
        self.last = Some(p);
    }

    /// All points merged into at most `width`, oldest first.
    pub fn downsample(&self, width: usize) -> Vec<BenchRates> {
        let points = &self.points.points;
        let each = points.len().div_ceil(width.max(1)).max(1);
        points.chunks(each).map(Merge::merge).collect()
    }
}

impl Merge for BenchRates {
    /// Mean rates, maximum latencies.
    fn merge(all: &[Self]) -> Self {
        let merge = |kind: usize, quantity: usize| {
            let values = all.iter().filter_map(|rates| rates[kind][quantity]);
            if quantity < MEDIAN {
                values.reduce(|a, b| a + b).map(|sum| sum / all.len() as f64)
            } else {
                values.reduce(f64::max)
            }
        };
        std::array::from_fn(|kind| std::array::from_fn(|quantity| merge(kind, quantity)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::SeriesPoint;

    fn progress(part: Option<u32>, at_ms: u64, syncs: u64) -> BenchProgress {
        let point = SeriesPoint { at_ms, read_iops: 100.0, ..SeriesPoint::default() };
        BenchProgress {
            measurement_index: part,
            point,
            op_counts: [at_ms, 0, syncs],
            lat: [[Some(at_ms); 2]; 3],
            ..BenchProgress::default()
        }
    }

    #[test]
    fn preparation_is_dropped_once_measuring_starts_and_parts_are_joined() {
        let mut figures = BenchFigures::default();
        figures.push(progress(None, 250, 0));
        figures.push(progress(None, 500, 0));
        assert_eq!(figures.downsample(10).len(), 2);
        figures.push(progress(Some(0), 0, 0));
        assert_eq!((figures.downsample(10).len(), figures.has_ops), (0, [false; 3]));
        figures.push(progress(Some(0), 250, 50));
        figures.push(progress(Some(0), 750, 100));
        figures.push(progress(Some(1), 500, 10));
        let syncs: Vec<_> = figures.downsample(10).iter().map(|m| m[2][0].unwrap()).collect();
        assert_eq!((syncs, figures.has_ops), (vec![200.0, 100.0, 20.0], [true, false, true]));
    }

    #[test]
    fn ramp_up_is_not_drawn() {
        let mut figures = BenchFigures::default();
        figures.push(BenchProgress { is_ramping: true, ..progress(Some(0), 250, 0) });
        assert_eq!(figures.points.newest(), None);
    }

    #[test]
    fn series_stays_bounded_and_keeps_the_worst_latency() {
        let mut figures = BenchFigures::default();
        for n in 1..100_000 {
            figures.push(progress(Some(0), n * 250, 0));
        }
        assert!(figures.points.points.len() < MAX_POINTS);
        let all = figures.downsample(40);
        assert!((20..=40).contains(&all.len()), "{}", all.len());
        assert!(all.iter().all(|m| (m[0][0].unwrap() - 100.0).abs() < 1e-6));
        assert!(all.windows(2).all(|w| w[0][0][3] < w[1][0][3]));
    }
}
