//! etcd's disk rule: small records appended one by one, each with fdatasync, whose p99 must be under 10 ms.

use super::buffered::{AppendMode, BUFFERED, append_records, one_call_plan};
use super::workload::{PlannedWrites, Workload, duration_line, log_bytes, lower_is_better, percentile_ms};
use crate::bench::plan::BenchPlan;
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};
use crate::units::format_bytes_long;
use std::sync::atomic::AtomicBool;

pub(super) const FSYNC: Workload = Workload {
    name: "fsync",
    brief: "synced writes",
    about: "2,300-byte records, each with fdatasync: etcd's rule, p99 under 10 ms",
    params: "size block time rate rate-bytes io-size idle stall-limit seed",
    plan: || BenchPlan { size: 22 << 20, block: 2300, read_pct: 0, time_ms: 30_000, ..one_call_plan() },
    own_bytes: log_bytes,
    planned_writes: |plan| PlannedWrites::timed(plan, plan.size, 100, 1),
    describe: |plan| {
        vec![
            format!("a nameless file of {}, filled with random data first", format_bytes_long(plan.size)),
            format!("records of {} bytes, each written and synced (fdatasync), one at a time", plan.block),
            duration_line(plan),
        ]
    },
    metric: lower_is_better("fdatasync p99", "ms", |r| percentile_ms(&r.measurements.first()?.sync.lat, 99.0)),
    conclude: interpretation::interpret_fsync,
    run,
    ..BUFFERED
};

/// etcd recommends a 99th percentile of fdatasync below this.
const ETCD_LIMIT_NS: u64 = 10_000_000;

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, session.plan.size)?;
    let part = session.new_measurement("write + fdatasync", "pwrite, fdatasync");
    let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
    let measured = session.measure_custom(part, goal, |session, recorder, part| {
        let mode = AppendMode { sync_each: true, recycle: true };
        let ended = append_records(session, recorder, &file, mode, &AtomicBool::new(false));
        if let Some(p99) = recorder.sync_stats().lat.percentile(99.0) {
            part.add_metric("fdatasync p99", p99 as f64 / 1e6, "ms");
            let is_met = f64::from(u8::from(p99 < ETCD_LIMIT_NS));
            part.add_metric("etcd's rule (p99 under 10 ms), 1 = met", is_met, "");
        }
        ended
    });
    measured.map(drop)
}
