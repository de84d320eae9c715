//! Many results of benchmarks side by side: groups of the same settings, each against the first, with intervals.

use super::super::stats::{ArmComparison, MIN_ROUNDS, median};
use super::verdict::{format_metric, format_p, format_ratio};
use crate::bench::compare::{CompareError, describe_differences, settings};
use crate::bench::report::{BenchReport, RunEnd};
use crate::bench::workloads::{self, PrimaryMetric};
use std::fmt::Write as _;

/// Groups results by their settings, in the order in which they first appear.
fn group_by_settings(reports: Vec<BenchReport>) -> Vec<Vec<BenchReport>> {
    let mut groups: Vec<Vec<BenchReport>> = Vec::new();
    for report in reports {
        match groups.iter_mut().find(|group| settings(&group[0]) == settings(&report)) {
            Some(group) => group.push(report),
            None => groups.push(vec![report]),
        }
    }
    groups
}

/// Results as text: grouped by their settings, or, with `against`, those before and those after a change.
pub(crate) fn compare_groups(reports: Vec<BenchReport>, against: Vec<BenchReport>) -> Result<String, CompareError> {
    let first = reports.first().ok_or(CompareError::NoRounds)?;
    let profile = first.plan.profile.clone();
    if let Some(other) = reports.iter().chain(&against).find(|r| r.plan.profile != profile) {
        return Err(CompareError::Profiles(profile, other.plan.profile.clone()));
    }
    let metric = workloads::primary_metric(&profile).ok_or(CompareError::NoRounds)?;
    let groups = match against.is_empty() {
        true => group_by_settings(reports),
        false => vec![reports, against],
    };
    Ok(groups_text(&metric, &groups))
}

fn values(group: &[BenchReport]) -> Vec<f64> {
    let complete = group.iter().filter(|r| r.end == RunEnd::Complete);
    complete.filter_map(workloads::primary_value).collect()
}

fn groups_text(metric: &PrimaryMetric, groups: &[Vec<BenchReport>]) -> String {
    let better = if metric.higher_is_better { "more" } else { "less" };
    let mut out = format!("{}; {better} is better\n\n", metric.name);
    let _ = writeln!(out, "{:<6} {:>3} {:>12} {:>12} {:>12}  against group 1", "group", "n", "median", "least", "most");
    let first = values(&groups[0]);
    for (n, group) in (1..).zip(groups) {
        let these = values(group);
        let show = |value: Option<f64>| value.map_or("-".into(), |value| format_metric(metric, value));
        let (least, most) = (these.iter().copied().reduce(f64::min), these.iter().copied().reduce(f64::max));
        let against = if n == 1 { String::new() } else { describe_ratio(&first, &these) };
        let _ = writeln!(
            out,
            "{n:<6} {:>3} {:>12} {:>12} {:>12}  {against}",
            these.len(),
            show(median(&these)),
            show(least),
            show(most)
        );
    }
    out.push('\n');
    for (n, group) in (1..).zip(groups) {
        let ids: Vec<&str> = group.iter().map(|r| r.id.as_str()).collect();
        let _ = writeln!(out, "group {n}: {}", crate::sanitize::sanitize(ids.join(", ")));
        let differ =
            if n == 1 { Vec::new() } else { describe_differences(settings(&groups[0][0]), settings(&group[0])) };
        for line in differ {
            let _ = writeln!(out, "  differs in {line}");
        }
        let left_out = group.len() - values(group).len();
        if left_out > 0 {
            let _ = writeln!(out, "  {left_out} not complete, or without a figure: left out");
        }
    }
    out
}

fn describe_ratio(a: &[f64], b: &[f64]) -> String {
    let Some(c) = ArmComparison::compare(a, b) else { return "-".into() };
    let interval = c.interval.map_or(format!("no interval below {MIN_ROUNDS} of each"), |i| {
        format!("{} to {}, {:.0} %", format_ratio(i.low), format_ratio(i.high), i.confidence_pct)
    });
    let verdict = if c.is_shown() { "" } else { ": no difference shown" };
    format!("{}x ({interval}), {}{verdict}", format_ratio(c.ratio), format_p(c.p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::report::Measurement;
    use crate::bench::store::tests::empty_report;

    fn report(id: &str, depth: u32, ios: u64) -> BenchReport {
        let mut r = empty_report(id);
        r.plan.depth = depth;
        let read = DirectionStats { ios, ..DirectionStats::default() };
        r.measurements.push(Measurement { elapsed_ns: 1_000_000_000, read, ..Measurement::default() });
        r
    }

    #[test]
    fn results_are_grouped_by_settings_and_compared_with_intervals() {
        let slow = [100, 104, 98, 101].map(|n| report("s", 1, n));
        let fast = [300, 310, 290, 305].map(|n| report("f", 4, n));
        let text = compare_groups([slow, fast].concat(), Vec::new()).unwrap();
        assert!(text.contains("group 2: f, f, f, f\n  differs in depth x jobs: 1 x 1 against 4 x 1"), "{text}");
        assert!(text.contains("2.99x (2.79 to 3.16, 97 %), p = 0.029\n"), "{text}");
    }

    #[test]
    fn the_same_settings_before_and_after_a_change_are_two_groups_on_request() {
        let [before, after] = [[100, 104, 98, 101], [99, 103, 102, 100]].map(|v| v.map(|n| report("x", 1, n)).to_vec());
        let text = compare_groups(before.clone(), after).unwrap();
        assert!(text.contains("no difference shown"), "{text}");
        let alone = compare_groups(before, Vec::new()).unwrap();
        assert!(alone.contains("\n1        4") && !alone.contains("group 2"), "{alone}");
        let mut other = report("y", 1, 1);
        other.plan.profile = "fsync".into();
        assert!(compare_groups(vec![report("x", 1, 1)], vec![other]).is_err());
    }
}
