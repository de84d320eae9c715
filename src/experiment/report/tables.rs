//! The tables of a report for all formats: headers and rows of text.

use super::super::spec::Arm;
use super::super::stats::{ArmComparison, median};
use super::data::{DirtyThresholds, ExperimentReport, Round, Trial};
use super::verdict;
use crate::bench::report::text::format_latency;
use crate::bench::workloads::PrimaryMetric;
use crate::units::format_bytes_long;

pub(crate) type ReportTable = (Vec<String>, Vec<Vec<String>>);

/// Up to this many latencies are shown with all percentiles, more with two.
const MAX_FULL_LATENCIES: usize = 6;

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

pub(crate) fn rounds_table(trial: &Trial) -> ReportTable {
    rounds_table_of(&trial.metric, &trial.rounds)
}

pub(crate) fn rounds_table_of(m: &PrimaryMetric, rounds: &[Round]) -> ReportTable {
    let name = if m.unit.is_empty() { m.name.clone() } else { format!("{} ({})", m.name, m.unit) };
    let heads = ["round", "arm", &name, "counted", "longest stall", "made dirty", "written back", "drained before"];
    let row = |r: &Round| {
        let value = r.value.map(|v| crate::bench::report::text::format_value(v, ""));
        let value = match r.is_comparable() {
            true => or_dash(value),
            false => format!("{} (not complete)", or_dash(value)),
        };
        vec![
            r.number.to_string(),
            r.arm.name().into(),
            value,
            format!("{:.1} s", r.counted_secs()),
            format_latency(r.longest_stall_ns() as f64),
            or_dash(r.dirtied_bytes.map(format_bytes_long)),
            or_dash(r.written_bytes.map(format_bytes_long)),
            format!("{:.1} s", r.drained_ms as f64 / 1e3),
        ]
    };
    (heads.map(str::to_owned).to_vec(), rounds.iter().map(row).collect())
}

/// Latency percentiles of both arms, all rounds of an arm together.
pub(crate) fn latency_table(trial: &Trial) -> ReportTable {
    let (a, b) = (trial.latencies(Arm::A), trial.latencies(Arm::B));
    let percents: &[f64] = if a.len() > MAX_FULL_LATENCIES { &[50.0, 99.0] } else { &[50.0, 90.0, 99.0, 99.9] };
    let mut rows = Vec::new();
    for (name, la) in &a {
        let Some((_, lb)) = b.iter().find(|(n, _)| n == name) else { continue };
        let mut row = |what: String, x: Option<u64>, y: Option<u64>| {
            let times = x.zip(y).filter(|(x, _)| *x > 0).map(|(x, y)| verdict::format_ratio(y as f64 / x as f64));
            let shown = |n: Option<u64>| or_dash(n.map(|n| format_latency(n as f64)));
            rows.push(vec![format!("{name} {what}"), shown(x), shown(y), or_dash(times)]);
        };
        for p in percents {
            row(format!("p{p}"), la.percentile(*p), lb.percentile(*p));
        }
        row("max".into(), Some(la.max_ns), Some(lb.max_ns));
    }
    (["latency", "A", "B", "B/A"].map(str::to_owned).to_vec(), rows)
}

/// Medians of both arms: the metric, and the bytes made dirty and written.
pub(crate) fn median_table(trial: &Trial) -> ReportTable {
    let mut rows = Vec::new();
    let mut row = |name: &str, of: &dyn Fn(&Round) -> Option<f64>, shown: &dyn Fn(f64) -> String| {
        let one = |arm| median(&trial.complete_rounds(arm).filter_map(of).collect::<Vec<_>>());
        let (a, b) = (one(Arm::A), one(Arm::B));
        if a.is_some() || b.is_some() {
            let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| verdict::format_ratio(b / a));
            rows.push(vec![name.to_owned(), or_dash(a.map(shown)), or_dash(b.map(shown)), or_dash(ratio)]);
        }
    };
    let rate = |bytes: Option<u64>, r: &Round| bytes.map(|n| n as f64 / r.counted_secs().max(1e-9));
    let per_s = |v: f64| format!("{}/s", format_bytes_long(v as u64));
    row(&trial.metric.name, &|r| r.value, &|v| verdict::format_metric(&trial.metric, v));
    row("made dirty", &|r| rate(r.dirtied_bytes, r), &per_s);
    row("written back", &|r| rate(r.written_bytes, r), &per_s);
    (["median", "A", "B", "B/A"].map(str::to_owned).to_vec(), rows)
}

/// The ratio with its interval and p, and how they were computed.
pub(crate) fn describe_ratio(c: &ArmComparison) -> Vec<String> {
    let interval = c.interval.map_or("too few rounds for an interval of 95 %".into(), |i| {
        let [low, high] = [i.low, i.high].map(verdict::format_ratio);
        format!("{low} to {high}, {:.1} % confidence", i.confidence_pct)
    });
    vec![
        format!("B/A {} ({interval}); Mann-Whitney {}", verdict::format_ratio(c.ratio), verdict::format_p(c.p)),
        format!(
            "The ratio is Hodges and Lehmann's: the median of all {} ratios of a round of B to a round of A; interval and p \
             (two-sided) are exact.",
            c.n[0].saturating_mul(c.n[1])
        ),
    ]
}

/// The settings of an arm, and the resulting thresholds.
pub(crate) fn describe_arm(report: &ExperimentReport, arm: Arm) -> String {
    let stands = if arm == Arm::A && report.spec.base_assignments.is_empty() { "as it stands: " } else { "" };
    let line = super::super::arm_settings::settings_line(&report.settings, arm);
    let DirtyThresholds { background, limit } = report.thresholds[arm.index()];
    let thresholds = match (background, limit) {
        (Some(b), Some(l)) if report.only_page_cache => {
            format!("; in force: background {}, limit {}", format_bytes_long(b), format_bytes_long(l))
        }
        _ => String::new(),
    };
    format!("{stands}{line}{thresholds}")
}

pub(crate) fn describe_memory(report: &ExperimentReport) -> String {
    let m = &report.memory;
    let bytes = |n: Option<u64>| or_dash(n.map(format_bytes_long));
    let secs = |n: Option<u64>| or_dash(n.map(|c| format!("{} s", c as f64 / 100.0)));
    let [total, dirtyable] = [m.total_bytes, m.dirtyable_bytes].map(bytes);
    let [expire, writeback] = [m.expire_centisecs, m.writeback_centisecs].map(secs);
    format!(
        "{total} in all, {dirtyable} of it dirtyable (what ratios apply to); a page dirty for {expire} is written \
         (dirty_expire), looked for every {writeback}"
    )
}
