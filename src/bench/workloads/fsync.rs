//! etcd's disk rule: small records appended one after the other, each with fdatasync, whose p99 must be
//! under 10 ms.

use super::workload::{PlannedWrites, Workload};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, RunError};
use crate::units::format_bytes_long;

/// The workload of this module.
pub struct FsyncWorkload;

/// etcd recommends a 99th percentile of fdatasync below this.
const ETCD_LIMIT_NS: u64 = 10_000_000;

/// Appends records and syncs each until the time or size limit.
fn append_and_sync(
    session: &BenchSession,
    recorder: &OpRecorder,
    fd: std::os::fd::BorrowedFd<'_>,
) -> Result<(), RunError> {
    let plan = &session.plan;
    let mut record = vec![0; plan.block as usize];
    Rng::new(plan.seed, 0).fill_bytes(&mut record);
    let begin = monotonic_ns();
    let end = if plan.time_ms == 0 { u64::MAX } else { begin + plan.time_ms * 1_000_000 };
    let mut pace = super::append::RateLimiter::new(plan, begin);
    let (mut at, mut written) = (0, 0);
    loop {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        if start >= end || (plan.io_bytes > 0 && written >= plan.io_bytes) {
            return Ok(());
        }
        let n = rustix::io::pwrite(fd, &record, at).map_err(|e| RunError::from_errno("write", e))?;
        let between = monotonic_ns();
        recorder.record_op(OpKind::Write, n as u64, start, start, between);
        rustix::fs::fdatasync(fd).map_err(|e| RunError::from_errno("fdatasync", e))?;
        let now = monotonic_ns();
        recorder.record_op(OpKind::Sync, 0, between, between, now);
        recorder.record_completion_time(now);
        written += n as u64;
        // Start again at the end of the file, as write-ahead logs are recycled.
        at = if at + 2 * plan.block as u64 > plan.size { 0 } else { at + n as u64 };
    }
}

impl Workload for FsyncWorkload {
    fn name(&self) -> &'static str {
        "fsync"
    }

    fn about(&self) -> &'static str {
        "2,300-byte records, each with fdatasync: etcd's rule, p99 under 10 ms"
    }

    fn defaults(&self) -> BenchPlan {
        BenchPlan {
            profile: "fsync".into(),
            size: 22 << 20,
            block: 2300,
            depth: 1,
            read_pct: 0,
            direct: false,
            ramp_ms: 0,
            ..BenchPlan::default()
        }
    }

    fn params(&self) -> &'static [&'static str] {
        &["size", "block", "time", "rate", "rate-bytes", "io-size", "idle", "stall-limit", "seed"]
    }

    fn planned_writes(&self, plan: &BenchPlan) -> PlannedWrites {
        PlannedWrites::timed(plan, plan.size, 100, 1)
    }

    fn check(&self, plan: &BenchPlan) -> Result<(), String> {
        super::append::check_buffered_and_sequential(self.name(), plan)
    }

    fn describe(&self, plan: &BenchPlan) -> Vec<String> {
        vec![
            format!("a nameless file of {}, filled with random data first", format_bytes_long(plan.size)),
            format!("records of {} bytes, each written and synced (fdatasync), one at a time", plan.block),
            super::workload::duration_line(plan),
        ]
    }

    fn run(&self, session: &mut BenchSession) -> Result<(), RunError> {
        let place = session.open_target()?;
        let file = session.lay_out_file(&place, session.plan.size)?;
        let part = Measurement {
            label: "write + fdatasync".into(),
            engine: "pwrite, fdatasync".into(),
            block: session.plan.block,
            ..Measurement::default()
        };
        let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
        session
            .measure_custom(part, goal, |session, recorder, part| {
                let ended = append_and_sync(session, recorder, file.buffered_fd());
                if let Some(p99) = recorder.sync_stats().lat.percentile(99.0) {
                    part.add_metric("fdatasync p99", p99 as f64 / 1e6, "ms");
                    part.add_metric(
                        "etcd's rule (p99 under 10 ms), 1 = met",
                        f64::from(u8::from(p99 < ETCD_LIMIT_NS)),
                        "",
                    );
                }
                ended
            })
            .map(drop)
    }
}
