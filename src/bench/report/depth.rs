//! What a series over the depth shows: the knee, and the depth that meets a latency target.

use super::data::{BenchReport, Measurement};
use super::foreign::no_conclusion_reason;
use super::format::format_latency;

/// The percentile that a latency target is about.
pub(crate) const TARGET_PERCENTILE: f64 = 99.0;

/// The step with the largest power: throughput over latency, which with N in flight is throughput squared over N
/// (Kleinrock 1979). Below the knee twice the depth doubles the throughput, and the power; above it the power halves.
pub(crate) fn knee(r: &BenchReport) -> Option<&Measurement> {
    let power = |p: &Measurement| p.iops() * p.iops() / f64::from(p.depth.max(1));
    let sound = r.measurements.iter().filter(|p| p.ios() > 0 && no_conclusion_reason(p).is_none());
    sound.max_by(|a, b| power(a).total_cmp(&power(b)))
}

fn p99_ns(p: &Measurement) -> Option<u64> {
    p.combined_lat().percentile(TARGET_PERCENTILE)
}

/// The deepest step that meets the target as all those before it do.
fn deepest_within(r: &BenchReport, target_ns: u64) -> Option<&Measurement> {
    r.measurements.iter().take_while(|p| p99_ns(p).is_some_and(|ns| ns <= target_ns)).last()
}

fn describe_step(p: &Measurement) -> String {
    let p99 = p99_ns(p).map_or("-".into(), |ns| format_latency(ns as f64));
    format!("{:.0} IOPS, p99 {p99}", p.iops())
}

pub(crate) fn conclude(r: &BenchReport) -> Option<String> {
    let last = r.measurements.last()?;
    let Some(knee) = knee(r) else {
        return Some(format!("No conclusion: {}.", no_conclusion_reason(last).unwrap_or("nothing completed".into())));
    };
    let mut said = format!("The knee is at depth {}: {}.", knee.depth, describe_step(knee));
    if last.depth > knee.depth {
        said += &format!(
            " From there on more depth buys more latency than throughput: at depth {} {}.",
            last.depth,
            describe_step(last)
        );
    } else {
        said += " The device may take more: no deeper step was measured.";
    }
    if r.plan.latency_target_us > 0 {
        let target = format_latency(r.plan.latency_target_us as f64 * 1e3);
        said += &match (deepest_within(r, r.plan.latency_target_us * 1000), r.measurements.first()) {
            (Some(p), _) => format!(" A p99 of {target} is met up to depth {}: {}.", p.depth, describe_step(p)),
            (None, Some(first)) => {
                format!(" A p99 of {target} is met at no depth: at depth 1 {}.", describe_step(first))
            }
            (None, None) => String::new(),
        };
    }
    let left_out = r.measurements.iter().filter_map(|p| Some(format!("{} ({})", p.label, no_conclusion_reason(p)?)));
    let left_out: Vec<_> = left_out.collect();
    if !left_out.is_empty() {
        said += &format!(" Left out: {}.", left_out.join("; "));
    }
    Some(said)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::disturbance::{Disturbance, DisturbanceCause};
    use crate::bench::measure::histogram::{BUCKET_COUNT, Histogram, bucket_index};
    use crate::bench::measure::latency::{DirectionStats, LatencyStats};
    use crate::bench::store::tests::empty_report;

    /// A device of `service` ns an operation and `servers` at once: throughput grows to the depth of `servers`.
    pub(crate) fn series(service: f64, servers: f64, noise: f64) -> BenchReport {
        let mut r = empty_report("1-depth");
        r.plan.profile = "depth".into();
        for n in 0..9 {
            let depth = 1u32 << n;
            let wobble = if n % 2 == 0 { 1.0 + noise } else { 1.0 - noise };
            let iops = f64::from(depth).min(servers) / service * 1e9 * wobble;
            let lat = (f64::from(depth) / iops * 1e9) as u64;
            let mut counts = vec![0; BUCKET_COUNT];
            counts[bucket_index(lat)] = iops as u64;
            let histogram = Some(Histogram::from_counts(counts.into_iter()));
            let lat =
                LatencyStats { count: iops as u64, min_ns: lat, max_ns: lat, histogram, ..LatencyStats::default() };
            r.measurements.push(Measurement {
                label: format!("depth {depth}"),
                depth,
                elapsed_ns: 1_000_000_000,
                read: DirectionStats { ios: iops as u64, bytes: iops as u64 * 4096, lat, ..DirectionStats::default() },
                ..Measurement::default()
            });
        }
        r
    }

    #[test]
    fn the_knee_is_where_the_device_is_full_whatever_the_noise() {
        for noise in [0.0, 0.1, -0.1] {
            for servers in [4.0, 16.0, 64.0] {
                let found = f64::from(knee(&series(100_000.0, servers, noise)).unwrap().depth);
                assert!((found / servers).log2().abs() <= 1.0, "{servers}: {found}");
            }
        }
    }

    #[test]
    fn the_depth_that_meets_a_target_is_named_and_so_is_a_target_out_of_reach() {
        // 100 us of service, 16 at once: 40,000 IOPS... at depth 64 each waits 400 us.
        let mut r = series(100_000.0, 16.0, 0.0);
        let mut said = |us| {
            r.plan.latency_target_us = us;
            conclude(&r).unwrap()
        };
        assert!(said(450).contains("is met up to depth 64"), "{}", said(450));
        assert!(said(50).contains("is met at no depth: at depth 1 10000 IOPS"), "{}", said(50));
        assert!(said(0).starts_with("The knee is at depth 16: 160000 IOPS") && !said(0).contains("met"), "{}", said(0));
    }

    #[test]
    fn disturbed_steps_are_no_knee() {
        let mut r = series(100_000.0, 16.0, 0.0);
        let frozen = Disturbance { cause: DisturbanceCause::Frozen, from_ms: 0, to_ms: 900 };
        r.measurements[4].disturbances.push(frozen);
        assert_ne!(knee(&r).unwrap().depth, 16);
        assert!(conclude(&r).unwrap().contains("Left out: depth 16 (the file system was frozen"));
        r.measurements.iter_mut().for_each(|p| p.foreign_pct = Some(40.0));
        assert!(conclude(&r).unwrap().starts_with("No conclusion: 40 % of what the disk moved"));
    }
}
