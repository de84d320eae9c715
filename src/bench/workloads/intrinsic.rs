//! The machine's own latency: a fixed computation of a few microseconds, without any system call,
//! repeated: whenever it takes longer, this task was not running (redis-cli's --intrinsic-latency).

use super::buffered::{BUFFERED, one_call_plan};
use super::workload::{PlannedWrites, Workload, lower_is_better};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::{BenchPlan, require};
use crate::bench::report::Measurement;
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};

pub(super) const INTRINSIC: Workload = Workload {
    name: "intrinsic",
    brief: "CPU latency",
    about: "the machine's own latency: how long a task that only computes is not run",
    needs_directory: false,
    params: "time",
    plan: || BenchPlan { read_pct: 100, time_ms: 30_000, ..one_call_plan() },
    check: |plan| require(plan.time_ms > 0, "intrinsic: needs a time"),
    footprint: |_| 0,
    planned_writes: |_| PlannedWrites::NONE,
    describe: |plan| vec![format!("keeps one core busy for {} s; touches no file", plan.time_ms as f64 / 1e3)],
    metric: lower_is_better("worst run", "us", |r| r.measurements.first()?.metric("worst run")),
    conclude: interpretation::interpret_intrinsic,
    run,
    ..BUFFERED
};

/// Iterations of the computation: two to three microseconds on present machines.
const ROUNDS: u32 = 1024;

/// Runs of at least this duration are counted, us.
const THRESHOLDS_US: [u64; 4] = [100, 1_000, 10_000, 100_000];

/// The fixed computation: cannot be optimised away, touches no memory.
fn compute(mut x: u64) -> u64 {
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}

fn measure_runs(session: &BenchSession, recorder: &OpRecorder, part: &mut Measurement) {
    let begin = monotonic_ns();
    let end = begin + session.plan.time_ms * 1_000_000;
    let (mut x, mut before, mut runs, mut worst) = (1, begin, 0u64, 0);
    let mut over = [0u64; THRESHOLDS_US.len()];
    // clock_gettime stays in user space (vDSO): reading it is no system call.
    while before < end && session.check_cancelled().is_ok() {
        x = compute(x);
        let now = monotonic_ns();
        recorder.record_op(OpKind::Sync, 0, before, before, now);
        recorder.record_completion_time(now);
        let took = now - before;
        worst = worst.max(took);
        // Rarely taken: the first threshold is far above a run.
        if took >= THRESHOLDS_US[0] * 1000 {
            for (count, limit) in over.iter_mut().zip(THRESHOLDS_US) {
                *count += u64::from(took >= limit * 1000);
            }
        }
        runs += 1;
        before = now;
    }
    let average = (before - begin) as f64 / runs.max(1) as f64;
    part.add_metric("runs", runs as f64, "");
    part.add_metric("average run", average / 1e3, "us");
    part.add_metric("worst run", worst as f64 / 1e3, "us");
    part.add_metric("worst / average", worst as f64 / average.max(1.0), "");
    for (count, limit) in over.into_iter().zip(THRESHOLDS_US) {
        part.add_metric(&format!("runs of {} ms or more", limit as f64 / 1e3), count as f64, "");
    }
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let part = Measurement {
        label: "computing without system calls".into(),
        timed_operation: "run".into(),
        ..Measurement::default()
    };
    session.measure_custom(part, (session.plan.time_ms * 1_000_000, 0), |session, recorder, part| {
        measure_runs(session, recorder, part);
        session.check_cancelled()
    })?;
    Ok(())
}
