//! Text about a run for the command line, the screen and experiments: what it will do, and its progress.

use super::message::BenchProgress;
use super::plan::BenchPlan;
use super::workloads::Workload;
use crate::sanitize::sanitize;
use crate::units::format_bytes_long;

/// The workload, its directory, and what it does, one line each.
pub(crate) fn describe_run(workload: &Workload, plan: &BenchPlan) -> String {
    let mut out = format!("{}: {}\n", workload.name, workload.about);
    if workload.needs_directory {
        let (directory, space) = (directory_of(plan), format_bytes_long((workload.footprint)(plan)));
        out.push_str(&format!("  in {directory}, {space} of space\n"));
    }
    out.extend((workload.describe)(plan).into_iter().map(|line| format!("  {line}\n")));
    out
}

fn directory_of(plan: &BenchPlan) -> String {
    sanitize(plan.directory.as_os_str().as_encoded_bytes())
}

pub(crate) fn describe_writes(workload: &Workload, plan: &BenchPlan) -> String {
    if !workload.needs_directory {
        return "Touches no file and no device.".into();
    }
    let written = (workload.planned_writes)(plan);
    let more = match written.additional {
        Some(0) => String::new(),
        Some(n) if written.guaranteed == 0 => format!(" at most {}", format_bytes_long(n)),
        Some(n) => format!(", then at most {} more,", format_bytes_long(n)),
        None => format!(", then as much as {} s allow,", (plan.time_ms + plan.ramp_ms) as f64 / 1e3),
    };
    let certain = match written.guaranteed {
        0 => String::new(),
        bytes => format!(" {}", format_bytes_long(bytes)),
    };
    let (directory, space) = (directory_of(plan), format_bytes_long((workload.footprint)(plan)));
    format!(
        "Writes{certain}{more} into nameless files of its own in {directory}; takes {space} of space meanwhile. Nothing \
         that exists is touched, and nothing stays."
    )
}

pub(crate) fn progress_line(p: &BenchProgress) -> String {
    let done = p.fraction_done.map_or(String::new(), |d| format!(" {:3.0} %", d * 100.0));
    let mut line = format!("{}{done}", p.phase);
    if p.is_ramping {
        line.push_str(" (ramp-up)");
    } else if p.op_counts.iter().any(|n| *n > 0) {
        let us = |ns: Option<u64>| ns.map_or("-".into(), |n| format!("{:.0}us", n as f64 / 1e3));
        let rate = p.point.read_iops + p.point.write_iops;
        let bytes = format_bytes_long((p.point.read_bytes_per_s + p.point.write_bytes_per_s) as u64);
        let [p50, p99] = [p.point.p50_ns, p.point.p99_ns].map(us);
        line.push_str(&format!("  {rate:.0} IOPS  {bytes}/s  p50 {p50} p99 {p99}"));
    }
    if p.idle_ms >= 1000 {
        line.push_str(&format!("  nothing for {} s", p.idle_ms / 1000));
    }
    line
}
