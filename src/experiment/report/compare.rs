//! Two stored experiments side by side.

use super::super::spec::Arm;
use super::super::stats::{ArmComparison, ConfidenceInterval};
use super::data::ExperimentReport;
use super::{tables, verdict};
use crate::bench::compare::{CompareError, ComparedSettings, describe_differences};
use crate::sanitize::sanitize;
use crate::units::format_bytes_long;
use std::fmt::Write as _;

/// Both as text; an error if their figures are not of one kind.
pub(crate) fn compare_text(x: &ExperimentReport, y: &ExperimentReport) -> Result<String, CompareError> {
    let (Some(tx), Some(ty)) = (x.trials.first(), y.trials.first()) else {
        return Err(CompareError::NoRounds);
    };
    if tx.metric != ty.metric {
        return Err(CompareError::Metrics(tx.plan.profile.clone(), ty.plan.profile.clone()));
    }
    let mut out = String::new();
    for (name, r) in [("1", x), ("2", y)] {
        let place = r.target().map_or("-", |t| t.directory.as_str());
        let _ = writeln!(out, "{name}: {} ({}), {} in {place}", r.id, r.time, r.trials[0].plan.profile);
        for arm in [Arm::A, Arm::B] {
            let _ = writeln!(out, "   {}: {}", arm.name(), sanitize(tables::describe_arm(r, arm)));
        }
    }
    for line in describe_differences(settings(x), settings(y)) {
        let _ = writeln!(out, "  differs in {line}");
    }
    let _ = writeln!(out, "\n{:<34} {:>14} {:>14}", tx.metric.name, "1", "2");
    let mut row = |name: &str, of: &dyn Fn(&ArmComparison) -> String| {
        let one = |t: &super::data::Trial| t.comparison.as_ref().map_or("-".into(), of);
        let _ = writeln!(out, "{name:<34} {:>14} {:>14}", one(tx), one(ty));
    };
    row("median of A", &|c| verdict::format_metric(&tx.metric, c.medians[0]));
    row("median of B", &|c| verdict::format_metric(&tx.metric, c.medians[1]));
    row("B/A", &|c| verdict::format_ratio(c.ratio));
    let ends = |i: ConfidenceInterval| format!("{} to {}", verdict::format_ratio(i.low), verdict::format_ratio(i.high));
    row("interval", &|c| c.interval.map_or("-".into(), ends));
    row("p", &|c| format!("{:.3}", c.p));
    let _ = writeln!(out, "\n1: {}\n2: {}", tx.verdict.text, ty.verdict.text);
    let interval = |t: &super::data::Trial| t.comparison.as_ref().and_then(|c| c.interval);
    if let Some((i, j)) = interval(tx).zip(interval(ty)) {
        let apart = i.high < j.low || j.high < i.low;
        out.push_str(match apart {
            true => "The intervals lie apart: the change does not do the same in both.\n",
            false => "The intervals overlap: that the change does not do the same in both is not shown.\n",
        });
    }
    Ok(out)
}

fn settings(r: &ExperimentReport) -> ComparedSettings {
    let (p, memory) = (&r.spec.plan, &r.memory);
    vec![
        ("host", r.host.clone()),
        ("kernel", r.kernel.clone()),
        ("memory", memory.total_bytes.map_or("-".into(), format_bytes_long)),
        ("file size", format_bytes_long(p.size)),
        ("time (ms)", p.time_ms.to_string()),
        ("block size", p.block.to_string()),
        ("depth x jobs", format!("{} x {}", p.depth, p.jobs)),
        ("direct I/O", p.direct.to_string()),
        ("transactions", format!("{:?}", p.txlog)),
        ("dirty_expire (cs)", format!("{:?}", memory.expire_centisecs)),
    ]
}
