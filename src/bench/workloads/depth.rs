//! Random I/O at depth 1, 2, 4 and so on: how throughput and latency grow with the operations in flight.

use super::io;
use super::workload::{PlannedWrites, Workload, file_line, higher_is_better};
use crate::bench::io_spec::AccessOrder;
use crate::bench::plan::{BenchPlan, require};
use crate::bench::report::depth::{conclude, knee};
use crate::bench::session::{BenchSession, RunError};

pub(super) const DEPTH: Workload = Workload {
    name: "depth",
    brief: "queue depths",
    about: "random 4 KiB reads at depth 1 to 256: the knee, and the depth that meets a latency target",
    params: "size block depth read-pct latency-target direct cold refill time ramp stall-limit idle engine sqpoll iopoll \
             huge-pages seed",
    plan: || BenchPlan { depth: 256, read_pct: 100, ramp_ms: 200, time_ms: 2000, ..BenchPlan::default() },
    check: |plan| {
        require(plan.time_ms > 0, "depth: every step needs a time")?;
        require(plan.jobs == 1, "depth: one job; leave out --jobs")
    },
    planned_writes: |plan| {
        PlannedWrites::timed(plan, plan.size, 100u8.saturating_sub(plan.read_pct), depths(plan).count() as u64)
    },
    describe: |plan| {
        vec![
            file_line(plan, "then worked on at every depth"),
            format!(
                "{} steps of {} s at depth 1, 2, 4 ... {}, {} % reads; {}",
                depths(plan).count(),
                plan.time_ms as f64 / 1e3,
                plan.depth,
                plan.read_pct,
                io::buffer_pages(plan)
            ),
        ]
    },
    has_reference_classes: |_| false,
    metric: higher_is_better("IOPS at the knee", "", |r| Some(knee(r)?.iops())),
    conclude,
    run,
    ..io::IN_FLIGHT
};

/// Powers of two up to the plan's depth.
fn depths(plan: &BenchPlan) -> impl Iterator<Item = u32> {
    let most = plan.depth;
    (0..31).map(|n| 1 << n).take_while(move |depth| *depth <= most)
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    for depth in depths(&plan) {
        let step = BenchPlan { depth, ..plan.clone() };
        let specs = io::worker_specs(&step, AccessOrder::Random, plan.block, plan.read_pct);
        session.measure(&format!("depth {depth}"), file.io_fd(), &specs)?;
    }
    session.finish_measuring();
    Ok(())
}
