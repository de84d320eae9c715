//! Whether a series of rounds is in a steady state, by the rule of the SNIA Solid State Storage Performance Test
//! Specification: over a window of five rounds the rates differ by at most 20 % of their mean, and the least-squares
//! line through them rises or falls by at most 10 % of it.

use super::data::BenchReport;
use super::foreign::no_conclusion_reason;

/// Rounds of the window.
pub(crate) const WINDOW: usize = 5;
/// Rounds after which a run without a steady state ends.
pub(crate) const MAX_ROUNDS: usize = 25;
const MAX_RANGE: f64 = 0.20;
const MAX_TREND: f64 = 0.10;

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Largest less smallest value, over the mean.
fn range(values: &[f64]) -> f64 {
    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
    (most - least) / mean(values).max(f64::MIN_POSITIVE)
}

/// What the least-squares line rises or falls over the window, over the mean.
fn trend(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let spread: f64 = (0..values.len()).map(|n| (n as f64 - middle).powi(2)).sum();
    let slope = (0..).zip(values).map(|(n, v)| (f64::from(n) - middle) * v).sum::<f64>() / spread;
    (slope * (values.len() as f64 - 1.0)).abs() / mean(values).max(f64::MIN_POSITIVE)
}

/// Whether a window of rates is steady.
pub(crate) fn is_steady(window: &[f64]) -> bool {
    mean(window) > 0.0 && range(window) <= MAX_RANGE && trend(window) <= MAX_TREND
}

fn rounds(r: &BenchReport) -> impl Iterator<Item = &super::data::Measurement> {
    r.measurements.iter().filter(|p| p.label.starts_with("round "))
}

/// The IOPS of the last rounds, if there are enough.
pub(crate) fn last_window(r: &BenchReport) -> Option<Vec<f64>> {
    let rates: Vec<f64> = rounds(r).map(|p| p.iops()).collect();
    Some(rates.get(rates.len().checked_sub(WINDOW)?..)?.to_vec())
}

pub(crate) fn conclude(r: &BenchReport) -> Option<String> {
    let window = last_window(r)?;
    let (n, first) = (rounds(r).count(), rounds(r).next()?.iops());
    if let Some(reason) = rounds(r).skip(n - WINDOW).find_map(no_conclusion_reason) {
        return Some(format!("No conclusion about a steady state: {reason}."));
    }
    let spread = format!(
        "range {:.0} % (at most 20), trend {:.0} % (at most 10)",
        range(&window) * 100.0,
        trend(&window) * 100.0
    );
    Some(match is_steady(&window) {
        true => format!(
            "Steady in rounds {} to {n}: {:.0} IOPS, {spread}. The first round had {first:.0}.",
            n - WINDOW + 1,
            mean(&window)
        ),
        false => format!("Not steady after {n} rounds: {spread}. No rate of these rounds is one that lasts."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::Measurement;
    use crate::bench::store::tests::empty_report;

    #[test]
    fn range_and_trend_decide() {
        assert!(is_steady(&[100.0, 104.0, 97.0, 101.0, 99.0]));
        assert!(!is_steady(&[100.0, 125.0, 100.0, 100.0, 100.0]), "a range of 24 %");
        assert!(!is_steady(&[106.0, 103.0, 100.0, 97.0, 94.0]), "a trend of 12 %");
        assert!(is_steady(&[102.0, 101.0, 100.0, 99.0, 98.0]), "a trend of 4 %");
        assert!(!is_steady(&[0.0; 5]));
    }

    #[test]
    fn only_a_steady_window_has_a_rate() {
        let report = |rates: &[u64]| {
            let mut r = empty_report("1-steady");
            for (n, ios) in (1..).zip(rates) {
                r.measurements.push(Measurement {
                    label: format!("round {n}"),
                    elapsed_ns: 1_000_000_000,
                    write: DirectionStats { ios: *ios, ..DirectionStats::default() },
                    ..Measurement::default()
                });
            }
            r
        };
        let said = conclude(&report(&[9000, 5000, 1000, 1010, 990, 1000, 1005])).unwrap();
        assert!(
            said.starts_with("Steady in rounds 3 to 7: 1001 IOPS") && said.contains("first round had 9000"),
            "{said}"
        );
        assert!(conclude(&report(&[9000, 5000, 3000, 2000, 1000])).unwrap().starts_with("Not steady after 5 rounds"));
        assert_eq!(conclude(&report(&[1, 2, 3])), None);
    }
}
