//! How much write load a disk takes until reads exceed a latency target: random reads at a fixed depth beside random
//! writes, whose rate is searched by halving.

use super::io;
use super::workload::{PlannedWrites, Workload, file_line, higher_is_better};
use crate::bench::io_spec::{AccessOrder, IoSpec};
use crate::bench::plan::{BenchPlan, require};
use crate::bench::report::Measurement;
use crate::bench::report::depth::TARGET_PERCENTILE;
use crate::bench::report::mix::{conclude, most_within};
use crate::bench::session::{BenchSession, RunError};

pub(super) const MIX: Workload = Workload {
    name: "mix",
    brief: "write limit",
    about: "how many random writes a second until random reads exceed a latency target",
    params: "size block depth latency-target direct refill time ramp stall-limit idle engine huge-pages seed",
    plan: || BenchPlan { depth: 4, ramp_ms: 500, time_ms: 5000, latency_target_us: 10_000, ..BenchPlan::default() },
    check: |plan| {
        require(plan.time_ms > 0, "mix: every step needs a time")?;
        require(plan.latency_target_us > 0, "mix: needs a --latency-target")?;
        require(plan.jobs == 1, "mix: one job reads and one writes; leave out --jobs")
    },
    own_bytes: |plan, part| plan.direct.then_some([part.read.bytes, part.write.bytes]),
    planned_writes: |plan| PlannedWrites::timed(plan, plan.size, 100, STEPS),
    describe: |plan| {
        vec![
            file_line(plan, "then read and overwritten in place"),
            format!(
                "random reads, {} in flight, beside random writes at up to {STEPS} rates, {} s each, until p{TARGET_PERCENTILE} of the reads \
                 is {} ms",
                plan.depth,
                plan.time_ms as f64 / 1e3,
                plan.latency_target_us as f64 / 1e3
            ),
        ]
    },
    has_reference_classes: |_| false,
    metric: higher_is_better("writes beside reads within the target", "IOPS", |r| {
        most_within(r).map(|p| p.rate_of(p.write.ios))
    }),
    conclude,
    run,
    ..io::IN_FLIGHT
};

/// Reads alone, writes without a cap, and the halvings.
const STEPS: u64 = 2 + HALVINGS;
const HALVINGS: u64 = 7;
/// The search begins with the largest rate over this.
const RANGE: f64 = 256.0;
/// Writes in flight.
const WRITE_DEPTH: u32 = 32;

/// The reader, and a writer of at most `rate` a second; 0: without a cap.
fn specs(plan: &BenchPlan, rate: u64) -> Vec<IoSpec> {
    let reader = BenchPlan { rate_iops: 0, ..plan.clone() };
    let writer = BenchPlan { rate_iops: rate, depth: WRITE_DEPTH, seed: plan.seed ^ 1, ..plan.clone() };
    let of = |plan: &BenchPlan, read_pct| io::worker_specs(plan, AccessOrder::Random, plan.block, read_pct);
    [of(&reader, 100), of(&writer, 0)].concat()
}

fn is_within(plan: &BenchPlan, part: &Measurement) -> bool {
    part.read.lat.percentile(TARGET_PERCENTILE).is_some_and(|ns| ns <= plan.latency_target_us * 1000)
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    let alone = session.measure("reads alone", file.io_fd(), &specs(&plan, 0)[..1])?;
    let full = session.measure("writes without a cap", file.io_fd(), &specs(&plan, 0))?;
    if is_within(&plan, &alone) && !is_within(&plan, &full) {
        let most = full.rate_of(full.write.ios).max(2.0);
        let (mut low, mut high) = ((most / RANGE).max(1.0), most);
        for _ in 0..HALVINGS {
            // In the middle of a logarithmic scale.
            let rate = (low * high).sqrt().round().max(1.0);
            let part = session.measure(&format!("{rate} writes a second"), file.io_fd(), &specs(&plan, rate as u64))?;
            if is_within(&plan, &part) {
                low = rate;
            } else {
                high = rate;
            }
        }
    }
    session.finish_measuring();
    Ok(())
}
