//! Two stored results side by side, and what can be concluded from one run each.

use super::measure::latency::LatencyStats;
use super::report::format::describe_end;
use super::report::{BenchReport, Measurement, RunEnd};
use crate::sanitize::sanitize;
use std::fmt::Write as _;

/// A smaller difference between single runs is noise: storage varies more than that by itself.
const NOISE_RATIO: f64 = 0.10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    #[error("{0} and {1} measure different things")]
    Profiles(String, String),
    #[error("{0} and {1} are compared by different figures")]
    Metrics(String, String),
    #[error("one of them has no rounds")]
    NoRounds,
}

pub(crate) type ComparedSettings = Vec<(&'static str, String)>;

/// Those values that differ, as `name: x against y`.
pub(crate) fn describe_differences(a: ComparedSettings, b: ComparedSettings) -> Vec<String> {
    let differ = a.into_iter().zip(b).filter(|((_, x), (_, y))| x != y);
    differ.map(|((what, x), (_, y))| format!("{what}: {} against {}", sanitize(x), sanitize(y))).collect()
}

pub(crate) fn settings(r: &BenchReport) -> ComparedSettings {
    let (place, p) = (r.target.clone().unwrap_or_default(), &r.plan);
    vec![
        ("host", r.host.clone()),
        ("kernel", r.kernel.clone()),
        ("directory", place.directory),
        ("file system", place.filesystem),
        ("mount options", place.options),
        ("file size", p.size.to_string()),
        ("block size", p.block.to_string()),
        ("depth x jobs", format!("{} x {}", p.depth, p.jobs)),
        ("read share", p.read_pct.to_string()),
        ("direct I/O", p.direct.to_string()),
        ("read-ahead series", p.readahead.to_string()),
        ("fsync every", p.fsync_every.to_string()),
        ("rate cap", format!("{} {}", p.rate_iops, p.rate_bytes)),
        ("time (ms)", p.time_ms.to_string()),
        ("transactions", format!("{:?}", p.txlog)),
        ("engine", r.measurements.first().map(|p| p.engine.clone()).unwrap_or_default()),
    ]
}

/// Both results as text, its table about `width` cells wide.
pub(crate) fn compare_text(a: &BenchReport, b: &BenchReport, width: usize) -> Result<String, CompareError> {
    if a.plan.profile != b.plan.profile {
        return Err(CompareError::Profiles(a.plan.profile.clone(), b.plan.profile.clone()));
    }
    let mut out = format!("A: {} ({})\nB: {} ({})\n", a.id, a.time, b.id, b.time);
    for line in describe_differences(settings(a), settings(b)) {
        let _ = writeln!(out, "  differs in {line}");
    }
    let name = width.saturating_sub(33).clamp(19, 44);
    let _ = writeln!(out, "\n{:<name$} {:>11} {:>11} {:>8}", "", "A", "B", "B/A");
    for pa in &a.measurements {
        if let Some(pb) = b.measurements.iter().find(|p| p.label == pa.label) {
            let _ = writeln!(out, "{}", sanitize(&pa.label));
            write_rows(&mut out, name, pa, pb);
        }
    }
    out.push('\n');
    for line in conclusions(a, b) {
        let _ = writeln!(out, "{line}");
    }
    Ok(out)
}

fn write_rows(out: &mut String, width: usize, a: &Measurement, b: &Measurement) {
    let mut row = |name: &str, x: f64, y: f64| {
        if x == 0.0 && y == 0.0 {
            return;
        }
        let ratio = if x > 0.0 { format!("{:.2}x", y / x) } else { "-".into() };
        let name = format!("  {name}");
        let _ = writeln!(out, "{name:<width$} {x:>11.1} {y:>11.1} {ratio:>8}");
    };
    let us = |l: &LatencyStats, p: f64| l.percentile(p).unwrap_or(0) as f64 / 1e3;
    for (name, da, db) in [("read", &a.read, &b.read), ("write", &a.write, &b.write)] {
        row(&format!("{name} IOPS"), a.rate_of(da.ios), b.rate_of(db.ios));
        row(&format!("{name} MiB/s"), a.rate_of(da.bytes) / 1_048_576.0, b.rate_of(db.bytes) / 1_048_576.0);
        for p in [50.0, 99.0] {
            row(&format!("{name} lat p{p} us"), us(&da.lat, p), us(&db.lat, p));
        }
    }
    for p in [50.0, 99.0] {
        row(&format!("sync p{p} us"), us(&a.sync.lat, p), us(&b.sync.lat, p));
    }
    for f in &a.metrics {
        row(&format!("{} {}", sanitize(&f.name), f.unit), f.value, b.metric(&f.name).unwrap_or(0.0));
    }
}

fn conclusions(a: &BenchReport, b: &BenchReport) -> Vec<String> {
    let mut all = Vec::new();
    for (name, r) in [("A", a), ("B", b)] {
        if r.end != RunEnd::Complete {
            let end = describe_end(&r.end);
            all.push(format!("{name} did not run to its end ({end}): compare with care."));
        }
    }
    let differ = describe_differences(settings(a), settings(b));
    if differ.len() > 1 {
        all.push(format!("{} things differ between them: the cause of a difference is unknown.", differ.len()));
    }
    let ratio = |pa: &Measurement| {
        let pb = b.measurements.iter().find(|p| p.label == pa.label)?;
        (pa.iops() > 0.0 && pb.iops() > 0.0).then(|| pb.iops() / pa.iops())
    };
    let ratios: Vec<f64> = a.measurements.iter().filter_map(ratio).collect();
    if !ratios.is_empty() && ratios.iter().all(|r| (r - 1.0).abs() < NOISE_RATIO) {
        all.push(format!("No difference shown: all rates are within {:.0} % of each other.", NOISE_RATIO * 100.0));
    } else if let Some(most) = ratios.iter().copied().max_by(|x, y| x.ln().abs().total_cmp(&y.ln().abs())) {
        all.push(format!("The rates differ by up to {most:.2}x (B against A)."));
    }
    all.push(
        "One run each cannot tell a difference from chance: repeat both in turn (A B B A ...), four times at \
         least, and compare medians."
            .into(),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::store::tests::empty_report;

    fn report_with_reads(ios: u64) -> BenchReport {
        let mut r = empty_report("1-randrw");
        let read = DirectionStats { ios, bytes: ios * 4096, ..DirectionStats::default() };
        r.measurements =
            vec![Measurement { label: "randrw".into(), elapsed_ns: 1_000_000_000, read, ..Measurement::default() }];
        r
    }

    #[test]
    fn small_differences_are_reported_as_none() {
        let said = compare_text(&report_with_reads(1000), &report_with_reads(1050), 80).unwrap();
        assert!(said.contains("No difference shown") && said.contains("cannot tell"), "{said}");
        let said = compare_text(&report_with_reads(1000), &report_with_reads(3000), 80).unwrap();
        assert!(said.contains("3.00x") && !said.contains("No difference"), "{said}");
    }

    #[test]
    fn differing_parameters_are_named_and_other_profiles_are_refused() {
        let (a, mut b) = (report_with_reads(1000), report_with_reads(1000));
        b.plan.depth = 1;
        b.end = RunEnd::Cancelled;
        let said = compare_text(&a, &b, 80).unwrap();
        assert!(
            said.contains("depth x jobs: 64 x 1 against 1 x 1") && said.contains("B did not run to its end"),
            "{said}"
        );
        b.plan.profile = "fsync".into();
        assert!(compare_text(&a, &b, 80).is_err());
    }
}
