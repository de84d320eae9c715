//! The coefficients of the kernel's I/O cost model (blk-iocost): what a disk gives in six pure workloads, the ones of the
//! kernel's own script (tools/cgroup/iocost_coef_gen.py): bandwidth with 128 MiB in flight, 4 KiB operations at depth 64.

use super::io;
use super::workload::{PlannedWrites, Workload, bandwidth, file_line};
use crate::bench::io_spec::AccessOrder::{self, Random, Sequential};
use crate::bench::plan::{BenchPlan, require};
use crate::bench::report::iocost::{LABELS, conclude};
use crate::bench::session::{BenchSession, RunError};

pub(super) const IOCOST: Workload = Workload {
    name: "iocost",
    brief: "cost model",
    about: "coefficients of the kernel's I/O cost model: a line for io.cost.model and an entry for systemd's hwdb",
    params: "size refill time ramp stall-limit idle engine huge-pages seed",
    plan: || BenchPlan { size: 4 << 30, block: SMALL, time_ms: 20_000, ..BenchPlan::default() },
    check: |plan| {
        require(plan.time_ms > 0, "iocost: every step needs a time")?;
        require(
            plan.direct && plan.jobs == 1 && plan.block == SMALL,
            "iocost: depth, jobs and sizes are the script's",
        )?;
        require(plan.size >= LARGE.into(), "iocost: a file of 64 MiB at least")
    },
    planned_writes: |plan| PlannedWrites::timed(plan, plan.size, 100, 3),
    describe: |plan| {
        vec![
            file_line(plan, "then read and overwritten in place"),
            format!(
                "six steps of {} s: reads, then writes; 64 MiB in sequence, 4 KiB in sequence, 4 KiB at random",
                plan.time_ms as f64 / 1e3
            ),
        ]
    },
    has_reference_classes: |_| false,
    metric: bandwidth("read bandwidth"),
    conclude,
    run,
    ..io::IN_FLIGHT
};

const SMALL: u32 = 4096;
const LARGE: u32 = 64 << 20;
/// Order, block size and depth, of reads and of writes.
const STEPS: [(AccessOrder, u32, u32); 3] = [(Sequential, LARGE, 2), (Sequential, SMALL, 64), (Random, SMALL, 64)];

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    let steps = [100, 0].into_iter().flat_map(|read_pct| STEPS.map(|step| (step, read_pct)));
    for (((order, block, depth), read_pct), label) in steps.zip(LABELS) {
        let step = BenchPlan { depth, ..plan.clone() };
        let specs = io::worker_specs(&step, order, block, read_pct);
        session.measure(label, file.io_fd(), &specs)?;
    }
    session.finish_measuring();
    Ok(())
}
