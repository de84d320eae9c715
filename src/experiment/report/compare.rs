//! Two stored experiments side by side.

use super::super::spec::Arm;
use super::super::stats::{ArmComparison, ConfidenceInterval};
use super::data::ExperimentReport;
use super::{tables, verdict};
use crate::sanitize::sanitize;
use std::fmt::Write as _;

/// Both as text; an error if their figures are not of one kind.
pub fn compare_text(x: &ExperimentReport, y: &ExperimentReport) -> Result<String, String> {
    let (Some(tx), Some(ty)) = (x.trials.first(), y.trials.first()) else {
        return Err("one of them has no rounds".into());
    };
    if tx.metric != ty.metric {
        return Err(format!("{} and {} are compared by different figures", tx.plan.profile, ty.plan.profile));
    }
    let mut out = String::new();
    for (name, r) in [("1", x), ("2", y)] {
        let place = r.target().map_or("-", |t| t.directory.as_str());
        let _ = writeln!(out, "{name}: {} ({}), {} in {place}", r.id, r.time, r.trials[0].plan.profile);
        for arm in [Arm::A, Arm::B] {
            let _ = writeln!(out, "   {}: {}", arm.name(), sanitize(tables::describe_arm(r, arm)));
        }
    }
    for line in differences(x, y) {
        let _ = writeln!(out, "  differs in {}", sanitize(line));
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
        let _ = writeln!(
            out,
            "{}",
            if apart {
                "The intervals lie apart: the change does not do the same in both."
            } else {
                "The intervals overlap: that the change does not do the same in both is not shown."
            }
        );
    }
    Ok(out)
}

/// What else differs.
fn differences(x: &ExperimentReport, y: &ExperimentReport) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            all.push(format!("{what}: {a} against {b}"));
        }
    };
    let (p, q) = (&x.spec.plan, &y.spec.plan);
    let bytes = |n: Option<u64>| n.map_or("-".into(), crate::units::format_bytes_long);
    differ("host", x.host.clone(), y.host.clone());
    differ("kernel", x.kernel.clone(), y.kernel.clone());
    differ("memory", bytes(x.memory.total_bytes), bytes(y.memory.total_bytes));
    differ("file size", bytes(Some(p.size)), bytes(Some(q.size)));
    differ("time (ms)", p.time_ms.to_string(), q.time_ms.to_string());
    differ("block size", p.block.to_string(), q.block.to_string());
    differ("depth x jobs", format!("{} x {}", p.depth, p.jobs), format!("{} x {}", q.depth, q.jobs));
    differ("direct I/O", p.direct.to_string(), q.direct.to_string());
    differ("transactions", format!("{:?}", p.txlog), format!("{:?}", q.txlog));
    differ("dirty_expire (cs)", format!("{:?}", x.memory.expire_centisecs), format!("{:?}", y.memory.expire_centisecs));
    all
}
