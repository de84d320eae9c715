//! What a search for the write load beside reads shows.

use super::data::{BenchReport, Measurement};
use super::depth::TARGET_PERCENTILE;
use super::foreign::no_conclusion_reason;
use super::format::format_latency;

fn read_p99(p: &Measurement) -> Option<u64> {
    p.read.lat.percentile(TARGET_PERCENTILE)
}

fn is_within(r: &BenchReport, p: &Measurement) -> bool {
    read_p99(p).is_some_and(|ns| ns <= r.plan.latency_target_us * 1000)
}

/// The step with the most writes whose reads, and those of all steps with fewer writes, are within the target.
pub(crate) fn most_within(r: &BenchReport) -> Option<&Measurement> {
    let mut steps: Vec<&Measurement> = r.measurements.iter().filter(|p| p.write.ios > 0).collect();
    steps.sort_by(|a, b| a.rate_of(a.write.ios).total_cmp(&b.rate_of(b.write.ios)));
    steps.into_iter().take_while(|p| is_within(r, p)).last()
}

fn describe_reads(p: &Measurement) -> String {
    let p99 = read_p99(p).map_or("-".into(), |ns| format_latency(ns as f64));
    format!("p99 of reads {p99}, {:.0} reads a second", p.rate_of(p.read.ios))
}

pub(crate) fn conclude(r: &BenchReport) -> Option<String> {
    let [alone, full, ..] = &r.measurements[..] else { return None };
    if let Some(reason) = r.measurements.iter().find_map(no_conclusion_reason) {
        return Some(format!("No conclusion: {reason}."));
    }
    let target = format_latency(r.plan.latency_target_us as f64 * 1e3);
    if !is_within(r, alone) {
        return Some(format!("Not met: even without writes {}; the target is {target}.", describe_reads(alone)));
    }
    if is_within(r, full) {
        return Some(format!(
            "Met at any write load: beside {:.0} writes a second, all the disk takes, {}; the target is {target}.",
            full.rate_of(full.write.ios),
            describe_reads(full)
        ));
    }
    let most = match most_within(r) {
        None => "Even the fewest writes that were tried make reads exceed the target".to_owned(),
        Some(p) => format!("Up to {:.0} writes a second {}", p.rate_of(p.write.ios), describe_reads(p)),
    };
    Some(format!(
        "{most}; the target is {target}. Alone: {}. Beside {:.0} writes a second, all the disk takes: {}.",
        describe_reads(alone),
        full.rate_of(full.write.ios),
        describe_reads(full)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::histogram::{BUCKET_COUNT, Histogram, bucket_index};
    use crate::bench::measure::latency::{DirectionStats, LatencyStats};
    use crate::bench::store::tests::empty_report;

    /// Steps of writes a second and p99 of reads in ms.
    fn report(steps: &[(u64, u64)]) -> BenchReport {
        let mut r = empty_report("1-mix");
        r.plan.latency_target_us = 10_000;
        for (writes, ms) in steps {
            let ns = ms * 1_000_000;
            let mut counts = vec![0; BUCKET_COUNT];
            counts[bucket_index(ns)] = 1000;
            let histogram = Some(Histogram::from_counts(counts.into_iter()));
            let lat = LatencyStats { count: 1000, min_ns: ns, max_ns: ns, histogram, ..LatencyStats::default() };
            r.measurements.push(Measurement {
                elapsed_ns: 1_000_000_000,
                read: DirectionStats { ios: 1000, lat, ..DirectionStats::default() },
                write: DirectionStats { ios: *writes, ..DirectionStats::default() },
                ..Measurement::default()
            });
        }
        r
    }

    #[test]
    fn the_most_writes_within_the_target_are_found() {
        let said = |steps| conclude(&report(steps)).unwrap();
        assert!(said(&[(0, 2), (5000, 40), (300, 5), (1200, 9), (2400, 20)]).starts_with("Up to 1200 writes a second"));
        // A lucky step above one that failed does not count.
        assert!(said(&[(0, 2), (5000, 40), (300, 5), (600, 12), (1200, 9)]).starts_with("Up to 300 writes a second"));
        assert!(said(&[(0, 20), (5000, 40)]).starts_with("Not met: even without writes"));
        assert!(said(&[(0, 2), (5000, 8)]).starts_with("Met at any write load"));
    }
}
