//! A large file written in 6 MiB pieces, synced after each piece or once at the end, and the effect
//! on another process's small syncs on the same file system.

use super::workload::{PlannedWrites, Workload};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::latency::LatencyStats;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::{BenchFile, TargetDirectory};
use crate::units::format_bytes_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The workload of this module.
pub struct ChunksWorkload;

/// The bystander's record size, and its pause between two records.
const RECORD_BYTES: usize = 512;
const PAUSE: Duration = Duration::from_millis(10);
/// How long the bystander runs alone, for comparison.
const BASELINE_NS: u64 = 2_000_000_000;

/// Appends and syncs small records until `done`; returns the sync latencies.
fn run_bystander(file: &BenchFile, done: &AtomicBool) -> Result<LatencyStats, RunError> {
    let recorder = OpRecorder::new();
    recorder.start_counting(monotonic_ns());
    let mut at = 0;
    while !done.load(Ordering::Relaxed) {
        rustix::io::pwrite(file.buffered_fd(), &[7; RECORD_BYTES], at)
            .map_err(|e| RunError::from_errno("the bystander's write", e))?;
        let start = monotonic_ns();
        rustix::fs::fdatasync(file.buffered_fd()).map_err(|e| RunError::from_errno("the bystander's fdatasync", e))?;
        recorder.record_op(OpKind::Sync, 0, start, start, monotonic_ns());
        at = (at + RECORD_BYTES as u64) % (1 << 20);
        std::thread::sleep(PAUSE);
    }
    Ok(recorder.sync_stats().lat)
}

/// Runs `work` beside a bystander; returns its sync latencies, too.
fn with_bystander<T: Send>(
    place: &TargetDirectory,
    work: impl FnOnce() -> Result<T, RunError>,
) -> Result<(LatencyStats, Result<T, RunError>), RunError> {
    let file = place.create(1 << 20)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_bystander(&file, &done));
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let syncs = other.join().unwrap_or_else(|_| Err(RunError::Failed("the bystander broke off".into())))?;
        Ok((syncs, worked))
    })
}

fn add_bystander_metrics(part: &mut Measurement, syncs: &LatencyStats) {
    let ms = |ns: u64| ns as f64 / 1e6;
    part.add_metric("bystander: syncs", syncs.count as f64, "");
    part.add_metric("bystander: median sync", ms(syncs.percentile(50.0).unwrap_or(0)), "ms");
    // Of fewer syncs the 99th percentile is the longest one.
    if let Some(p99) = syncs.percentile(99.0).filter(|_| syncs.count >= 100) {
        part.add_metric("bystander: p99 sync", ms(p99), "ms");
    }
    part.add_metric("bystander: longest sync", ms(syncs.max_ns), "ms");
}

/// Writes the file; returns the duration of the last sync, ns.
fn write_file(session: &BenchSession, recorder: &OpRecorder, file: &BenchFile, each: bool) -> Result<u64, RunError> {
    let plan = &session.plan;
    let mut rng = Rng::new(plan.seed, 0);
    let mut piece = vec![0; plan.block as usize];
    rng.fill_bytes(&mut piece);
    let mut pace = super::append::RateLimiter::new(plan, monotonic_ns());
    let mut at = 0;
    while at < plan.size {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        piece[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        let end = at + u64::from(plan.block).min(plan.size - at);
        while at < end {
            let rest = &piece[..(end - at) as usize];
            at +=
                rustix::io::pwrite(file.buffered_fd(), rest, at).map_err(|e| RunError::from_errno("write", e))? as u64;
        }
        let mut now = monotonic_ns();
        recorder.record_op(OpKind::Write, u64::from(plan.block), start, start, now);
        if each {
            let between = now;
            rustix::fs::fsync(file.buffered_fd()).map_err(|e| RunError::from_errno("fsync", e))?;
            now = monotonic_ns();
            recorder.record_op(OpKind::Sync, 0, between, between, now);
        }
        recorder.record_completion_time(now);
    }
    let start = monotonic_ns();
    rustix::fs::fsync(file.buffered_fd()).map_err(|e| RunError::from_errno("fsync", e))?;
    let now = monotonic_ns();
    recorder.record_op(OpKind::Sync, 0, start, start, now);
    recorder.record_completion_time(now);
    Ok(now - start)
}

impl Workload for ChunksWorkload {
    fn name(&self) -> &'static str {
        "chunks"
    }

    fn about(&self) -> &'static str {
        "a big file in 6 MiB pieces: sync each or once at the end, and how long others' syncs stall meanwhile"
    }

    fn defaults(&self) -> BenchPlan {
        BenchPlan {
            profile: "chunks".into(),
            size: 1 << 30,
            block: 6 << 20,
            depth: 1,
            read_pct: 0,
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
        // The bystander reuses 1 MiB of its file.
        PlannedWrites { guaranteed: plan.size.saturating_mul(2), additional: Some(1 << 20) }
    }

    fn check(&self, plan: &BenchPlan) -> Result<(), String> {
        super::append::check_buffered_and_sequential(self.name(), plan)
    }

    fn footprint(&self, plan: &BenchPlan) -> u64 {
        plan.size + (1 << 20)
    }

    fn describe(&self, plan: &BenchPlan) -> Vec<String> {
        let (size, piece) = (format_bytes_long(plan.size), format_bytes_long(plan.block.into()));
        vec![
            format!("two nameless files, one after the other, of {size} in pieces of {piece}"),
            "the first synced (fsync) after every piece, the second once at its end".into(),
            format!("meanwhile a bystander appends {RECORD_BYTES} bytes and syncs them, every 10 ms"),
        ]
    }

    fn run(&self, session: &mut BenchSession) -> Result<(), RunError> {
        let place = session.open_target()?;
        place.check_space(self.footprint(&session.plan))?;
        let part = Measurement { label: "bystander alone".into(), ..Measurement::default() };
        session.measure_custom(part, (BASELINE_NS, 0), |session, recorder, part| {
            let (syncs, calm) = with_bystander(&place, || {
                let end = monotonic_ns() + BASELINE_NS;
                while monotonic_ns() < end {
                    session.check_cancelled()?;
                    std::thread::sleep(Duration::from_millis(20));
                    recorder.heartbeat(monotonic_ns());
                }
                Ok(())
            })?;
            add_bystander_metrics(part, &syncs);
            calm
        })?;
        for (each, label) in [(true, "sync after each piece"), (false, "sync once at the end")] {
            session.begin_preparation("making the next file");
            let file = place.create(0)?;
            let part = Measurement {
                label: label.into(),
                engine: "pwrite, fsync".into(),
                block: session.plan.block,
                ..Measurement::default()
            };
            session.measure_custom(part, (0, session.plan.size), |session, recorder, part| {
                let (syncs, written) = with_bystander(&place, || write_file(session, recorder, &file, each))?;
                let last = written?;
                part.add_metric("longest piece", recorder.direction_stats(OpKind::Write).lat.max_ns as f64 / 1e6, "ms");
                part.add_metric("final sync", last as f64 / 1e6, "ms");
                add_bystander_metrics(part, &syncs);
                Ok(())
            })?;
        }
        Ok(())
    }
}
