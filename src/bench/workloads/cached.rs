//! The same file read three times through the page cache. Known values: 27 MB/s cold, then 688 MB/s and 1.4 GB/s.

use super::buffered::{BUFFERED, RateLimiter, one_call_plan, record_call};
use super::workload::{Workload, bandwidth};
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use crate::units::format_bytes_long;
use std::os::unix::fs::FileExt;

pub(super) const CACHED: Workload = Workload {
    name: "cached",
    brief: "page cache",
    about: "the same file read three times through the page cache: cold, second, third",
    params: "size block cold rate rate-bytes idle stall-limit seed",
    plan: || BenchPlan { size: 512 << 20, block: 1 << 20, read_pct: 100, ..one_call_plan() },
    describe: |plan| {
        let (size, block) = (format_bytes_long(plan.size), format_bytes_long(plan.block.into()));
        let mut lines = vec![
            format!("a nameless file of {size}, filled with random data, then dropped from the cache"),
            format!("read three times from beginning to end, {block} at a time"),
        ];
        if plan.cold {
            lines.push("dropped from the cache before each time".into());
        }
        lines
    },
    expects_device: |part| part.label.starts_with(PASSES[0]),
    metric: bandwidth("cold read"),
    conclude: interpretation::interpret_cached,
    run,
    ..BUFFERED
};

const PASSES: [&str; 3] = ["first read", "second read", "third read"];

fn read_file(session: &BenchSession, recorder: &OpRecorder, file: &BenchFile) -> Result<(), RunError> {
    let mut buffer = vec![0; session.plan.block as usize];
    let mut pace = RateLimiter::new(&session.plan, session.plan.block);
    let mut at = 0;
    while at < file.size {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        let call = file.buffered().read_at(&mut buffer, at);
        let (n, now) = record_call(recorder, OpKind::Read, start, "read", call)?;
        if n == 0 {
            return Err(RunError::Failed(format!("the file ends at {at}, before its {} bytes", file.size)));
        }
        recorder.record_completion_time(now);
        at += n;
    }
    Ok(())
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, session.plan.size)?;
    let memory = place.filesystem.report.is_memory;
    for (n, label) in PASSES.into_iter().enumerate() {
        // A file in memory is always cached.
        let is_cold = n == 0 || session.plan.cold;
        if n > 0 && is_cold {
            file.evict_page_cache().map_err(|e| RunError::from_errno("emptying the cache", e))?;
        }
        let label = if is_cold && !memory { format!("{label}, cold") } else { label.to_owned() };
        let part = session.new_measurement(&label, "pread");
        let goal = (0, session.plan.size);
        let part = session.measure_custom(part, goal, |session, recorder, _| read_file(session, recorder, &file))?;
        if n > 0 && crate::bench::report::cache::is_from_cache(&part) {
            session.progress.add_note(format!("{label}: the page cache answered, not the device"));
        }
    }
    Ok(())
}
