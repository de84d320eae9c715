//! `steadystate`: ends a job when a figure no longer moves (steadystate.c).

use super::job::{SteadyMetric, SteadyState};
use std::collections::VecDeque;

/// Sums since the start of a job or of a group of jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SteadySums {
    pub operations: u64,
    pub bytes: u64,
    /// Of all latencies, ns.
    pub latency_ns: f64,
}

/// The figures of the last intervals of one job or group.
#[derive(Debug)]
pub(crate) struct SteadyWindow {
    rule: SteadyState,
    intervals: usize,
    values: VecDeque<f64>,
    last: SteadySums,
    last_ns: u64,
}

impl SteadyWindow {
    /// A window of `duration_us`, in steps of `interval_us`.
    pub(crate) fn new(rule: SteadyState, duration_us: u64, interval_us: u64, now: u64, sums: SteadySums) -> Self {
        let intervals = (duration_us / interval_us.max(1)).max(1) as usize;
        Self { rule, intervals, values: VecDeque::new(), last: sums, last_ns: now }
    }

    /// Adds the interval up to `now`; returns whether the figure is steady.
    pub(crate) fn add(&mut self, now: u64, sums: SteadySums) -> bool {
        let secs = now.saturating_sub(self.last_ns) as f64 / 1e9;
        let operations = sums.operations.saturating_sub(self.last.operations) as f64;
        let value = match self.rule.metric {
            SteadyMetric::Iops => operations / secs,
            SteadyMetric::Bandwidth => sums.bytes.saturating_sub(self.last.bytes) as f64 / secs,
            SteadyMetric::Latency => (sums.latency_ns - self.last.latency_ns) / operations.max(1.0),
        };
        (self.last, self.last_ns) = (sums, now);
        self.values.push_back(value);
        if self.values.len() > self.intervals {
            self.values.pop_front();
        }
        self.values.len() == self.intervals && self.criterion() < self.rule.limit_millionths as f64 / 1e6
    }

    /// Slope by least squares or largest deviation from the mean; in percent of the mean if the rule is.
    fn criterion(&self) -> f64 {
        let n = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / n;
        let criterion = if self.rule.slope {
            let middle = (n - 1.0) / 2.0;
            let at = || self.values.iter().enumerate().map(|(x, y)| (x as f64 - middle, *y));
            let (products, squares) = at().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
            (products / squares.max(f64::MIN_POSITIVE)).abs()
        } else {
            self.values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
        };
        if self.rule.percent { 100.0 * criterion / mean } else { criterion }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady_after(slope: bool, iops: impl Fn(u64) -> u64) -> Option<u64> {
        let rule = SteadyState { slope, limit_millionths: 5_000_000, percent: true, ..SteadyState::default() };
        let mut window = SteadyWindow::new(rule, 10_000_000, 1_000_000, 0, SteadySums::default());
        let mut sums = SteadySums::default();
        (1..100).find(|second| {
            sums.operations += iops(*second);
            window.add(second * 1_000_000_000, sums)
        })
    }

    #[test]
    fn a_job_is_steady_when_a_whole_window_is() {
        assert_eq!(steady_after(false, |_| 1000), Some(10));
        assert_eq!(steady_after(false, |second| if second < 20 { 1000 + second % 2 * 500 } else { 1000 }), Some(29));
        assert_eq!(steady_after(false, |second| 1000 + second % 2 * 200), None);
        assert!(steady_after(true, |second| 100 * second).is_some_and(|second| second > 20));
    }
}
