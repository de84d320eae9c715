//! The same file read three times through the page cache: cold, second, third. Known values:
//! 27 MB/s cold, then 688 MB/s and 1.4 GB/s.

use super::workload::{PlannedWrites, Workload};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use crate::units::format_bytes_long;

/// The workload of this module.
pub struct CachedReadWorkload;

const PASSES: [&str; 3] = ["first read", "second read", "third read"];

fn read_file(session: &BenchSession, recorder: &OpRecorder, file: &BenchFile) -> Result<(), RunError> {
    let mut buffer = vec![0; session.plan.block as usize];
    let mut pace = super::append::RateLimiter::new(&session.plan, monotonic_ns());
    let mut at = 0;
    while at < file.size {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        let n = rustix::io::pread(file.buffered_fd(), &mut buffer, at).map_err(|e| RunError::from_errno("read", e))?;
        if n == 0 {
            return Err(RunError::Failed(format!("the file ends at {at}, before its {} bytes", file.size)));
        }
        let now = monotonic_ns();
        recorder.record_op(OpKind::Read, n as u64, start, start, now);
        recorder.record_completion_time(now);
        at += n as u64;
    }
    Ok(())
}

impl Workload for CachedReadWorkload {
    fn name(&self) -> &'static str {
        "cached"
    }

    fn about(&self) -> &'static str {
        "the same file read three times through the page cache: cold, second, third"
    }

    fn defaults(&self) -> BenchPlan {
        BenchPlan {
            profile: "cached".into(),
            size: 512 << 20,
            block: 1 << 20,
            depth: 1,
            read_pct: 100,
            direct: false,
            ramp_ms: 0,
            time_ms: 0,
            ..BenchPlan::default()
        }
    }

    fn params(&self) -> &'static [&'static str] {
        &["size", "block", "rate", "rate-bytes", "idle", "stall-limit", "seed"]
    }

    fn planned_writes(&self, plan: &BenchPlan) -> PlannedWrites {
        PlannedWrites { guaranteed: plan.size, additional: Some(0) }
    }

    fn check(&self, plan: &BenchPlan) -> Result<(), String> {
        super::append::check_buffered_and_sequential(self.name(), plan)
    }

    fn describe(&self, plan: &BenchPlan) -> Vec<String> {
        vec![
            format!(
                "a nameless file of {}, filled with random data, then dropped from the cache",
                format_bytes_long(plan.size)
            ),
            format!("read three times from beginning to end, {} at a time", format_bytes_long(plan.block.into())),
        ]
    }

    fn run(&self, session: &mut BenchSession) -> Result<(), RunError> {
        let place = session.open_target()?;
        let file = session.lay_out_file(&place, session.plan.size)?;
        let memory = place.filesystem.is_memory();
        for (n, label) in PASSES.into_iter().enumerate() {
            // A file in memory is always cached.
            let label = if n == 0 && !memory { format!("{label}, cold") } else { label.to_owned() };
            let part = Measurement {
                label: label.clone(),
                engine: "pread".into(),
                block: session.plan.block,
                ..Measurement::default()
            };
            let size = session.plan.size;
            let part =
                session.measure_custom(part, (0, size), |session, recorder, _| read_file(session, recorder, &file))?;
            if crate::bench::report::warnings::is_from_cache(&part) {
                session.progress.add_note(format!("{label}: the page cache answered, not the device"));
            }
        }
        Ok(())
    }
}
