//! A large file in 6 MiB pieces, synced after each or once at the end, and what that does to others' small syncs.

use super::buffered::{BUFFERED, RateLimiter, one_call_plan, record_call, record_fdatasync};
use super::workload::{PlannedWrites, Workload, lower_is_better};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::latency::LatencyStats;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::report::interpretation;
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::{BenchFile, TargetDirectory};
use crate::units::format_bytes_long;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) const CHUNKS: Workload = Workload {
    name: "chunks",
    brief: "a big file",
    about: "a big file in 6 MiB pieces: sync each or once at the end, and how long others' syncs stall meanwhile",
    plan: || BenchPlan { size: 1 << 30, block: 6 << 20, read_pct: 0, ..one_call_plan() },
    footprint: |plan| plan.size + BYSTANDER_BYTES,
    planned_writes: |plan| PlannedWrites { guaranteed: plan.size.saturating_mul(2), additional: Some(BYSTANDER_BYTES) },
    describe: |plan| {
        let (size, piece) = (format_bytes_long(plan.size), format_bytes_long(plan.block.into()));
        vec![
            format!("two nameless files, one after the other, of {size} in pieces of {piece}"),
            "the first synced (fsync) after every piece, the second once at its end".into(),
            format!("meanwhile a bystander appends {RECORD_BYTES} bytes and syncs them, every 10 ms"),
        ]
    },
    // The effect of a large file with one sync at its end on other processes.
    metric: lower_is_better("bystander's p99 sync beside one sync at the end", "ms", |r| {
        r.find("sync once")?.metric("bystander: p99 sync")
    }),
    conclude: interpretation::interpret_chunks,
    run,
    ..BUFFERED
};

/// The bystander's record size, and its pause between two records.
const RECORD_BYTES: usize = 512;
/// The bystander's file, which it writes again and again.
const BYSTANDER_BYTES: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(10);
/// How long the bystander runs alone, for comparison.
const BASELINE_NS: u64 = 2_000_000_000;

/// Appends and syncs small records until `done`; returns the sync latencies.
fn run_bystander(file: &BenchFile, done: &AtomicBool) -> Result<LatencyStats, RunError> {
    let recorder = OpRecorder::default();
    recorder.start_counting(monotonic_ns());
    let mut at = 0;
    while !done.load(Ordering::Relaxed) {
        let written = file.buffered().write_all_at(&[7; RECORD_BYTES], at);
        written.map_err(|e| RunError::from_errno("the bystander's write", e))?;
        record_fdatasync(&recorder, file, "the bystander's fdatasync")?;
        at = (at + RECORD_BYTES as u64) % BYSTANDER_BYTES;
        std::thread::sleep(PAUSE);
    }
    Ok(recorder.sync_stats().lat)
}

/// Runs `work` beside a bystander; returns its sync latencies, too.
fn with_bystander<T: Send>(
    place: &TargetDirectory,
    work: impl FnOnce() -> Result<T, RunError>,
) -> Result<(LatencyStats, Result<T, RunError>), RunError> {
    let file = place.create(BYSTANDER_BYTES)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_bystander(&file, &done));
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let syncs = other.join().unwrap_or_else(|_| Err(RunError::Failed("the bystander ended early".into())))?;
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
    let mut pace = RateLimiter::new(plan, plan.block);
    let fsync = |start| -> Result<u64, RunError> {
        let call = file.buffered().sync_all().map(|()| 0);
        let (_, now) = record_call(recorder, OpKind::Sync, start, "fsync", call)?;
        recorder.record_completion_time(now);
        Ok(now)
    };
    let mut at = 0;
    while at < plan.size {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        piece[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        let len = u64::from(plan.block).min(plan.size - at) as usize;
        let call = file.buffered().write_all_at(&piece[..len], at).map(|()| len);
        let (n, now) = record_call(recorder, OpKind::Write, start, "write", call)?;
        at += n;
        if each {
            fsync(now)?;
        } else {
            recorder.record_completion_time(now);
        }
    }
    let start = monotonic_ns();
    Ok(fsync(start)? - start)
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let place = session.open_target()?;
    place.check_space((CHUNKS.footprint)(&session.plan))?;
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
        let part = session.new_measurement(label, "pwrite, fsync");
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
