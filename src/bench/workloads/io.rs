//! Random or sequential reads and writes, or a mix of both.

use super::workload::{IOPS, PlannedWrites, Workload, bandwidth, duration_line, file_line};
use crate::bench::io_spec::{AccessOrder, BufferFill, IoSpec};
use crate::bench::plan::{BenchPlan, PlanError, require};
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};
use crate::units::format_bytes_long;

/// Random or sequential reads and writes, as many in flight as the plan says; the name says the order.
pub(super) const IN_FLIGHT: Workload = Workload {
    name: "",
    brief: "",
    about: "",
    needs_directory: true,
    params: "size block depth jobs direct cold fsync refill rate rate-bytes time ramp io-size stall-limit idle engine \
             sqpoll iopoll huge-pages seed",
    plan: BenchPlan::default,
    check,
    footprint: |plan| plan.size,
    own_bytes: |plan, part| (plan.direct && part.sync.ios == 0).then_some([part.read.bytes, part.write.bytes]),
    expects_device: |_| true,
    planned_writes: |plan| PlannedWrites::timed(plan, plan.size, 100u8.saturating_sub(plan.read_pct), 1),
    describe,
    has_reference_classes: |plan| {
        let is_capped = plan.rate_bytes + plan.rate_iops > 0;
        order_of(plan) == AccessOrder::Random && plan.block == 4096 && plan.direct && !is_capped
    },
    metric: IOPS,
    conclude: interpretation::interpret_random,
    run,
};

const READ_PARAMS: &str = "size block depth jobs direct cold rate rate-bytes time ramp io-size stall-limit idle engine sqpoll iopoll huge-pages seed";

const SEQUENTIAL_PLAN: fn() -> BenchPlan = || BenchPlan { block: 1 << 20, depth: 8, ..BenchPlan::default() };

pub(super) const RANDRW: Workload = Workload {
    name: "randrw",
    brief: "random mixed",
    about: "random 4 KiB, half reads and half writes, depth 64: the database case",
    params: "size block depth jobs read-pct direct cold fsync refill rate rate-bytes time ramp io-size stall-limit idle \
             engine sqpoll iopoll huge-pages seed",
    ..IN_FLIGHT
};
pub(super) const RANDREAD: Workload = Workload {
    name: "randread",
    brief: "random reads",
    about: "random 4 KiB reads, depth 64",
    params: READ_PARAMS,
    plan: || BenchPlan { read_pct: 100, ..BenchPlan::default() },
    ..IN_FLIGHT
};
pub(super) const RANDWRITE: Workload = Workload {
    name: "randwrite",
    brief: "random writes",
    about: "random 4 KiB writes, depth 64",
    plan: || BenchPlan { read_pct: 0, ..BenchPlan::default() },
    ..IN_FLIGHT
};
pub(super) const SEQREAD: Workload = Workload {
    name: "seqread",
    brief: "large reads",
    about: "sequential 1 MiB reads, depth 8",
    params: READ_PARAMS,
    plan: || BenchPlan { read_pct: 100, ..SEQUENTIAL_PLAN() },
    metric: bandwidth("bandwidth"),
    conclude: interpretation::interpret_sequential,
    ..IN_FLIGHT
};
pub(super) const SEQWRITE: Workload = Workload {
    name: "seqwrite",
    brief: "large writes",
    about: "sequential 1 MiB writes, depth 8",
    plan: || BenchPlan { read_pct: 0, ..SEQUENTIAL_PLAN() },
    metric: bandwidth("bandwidth"),
    conclude: interpretation::interpret_sequential,
    ..IN_FLIGHT
};

fn order_of(plan: &BenchPlan) -> AccessOrder {
    if plan.profile.starts_with("rand") { AccessOrder::Random } else { AccessOrder::Sequential }
}

/// One spec per job of the plan; sequential jobs get a part of the file each.
pub fn worker_specs(plan: &BenchPlan, order: AccessOrder, block: u32, read_pct: u8) -> Vec<IoSpec> {
    let jobs = u64::from(plan.jobs);
    let stripe = plan.size / jobs / u64::from(block) * u64::from(block);
    // An eighth of the depth is submitted and waited for at a time: each submission rings the device's doorbell, which is
    // expensive in a virtual machine, and each wake-up costs time; larger batches would leave the queue half empty and
    // increase latencies. Compared with 16/1, 16/8 and 8/4 at depth 64.
    let batch = (plan.depth / 8).max(1);
    (0..jobs)
        .map(|job| IoSpec {
            order,
            read_pct,
            block,
            start: if order == AccessOrder::Sequential { job * stripe } else { 0 },
            len: if order == AccessOrder::Sequential { stripe } else { plan.size },
            depth: plan.depth,
            fsync_every: plan.fsync_every,
            fill: if plan.refill { BufferFill::Refill } else { BufferFill::Scramble },
            op_interval_ns: plan.op_interval_ns(block),
            submit_max: batch,
            complete_min: batch,
            ramp_ns: plan.ramp_ms * 1_000_000,
            time_ns: plan.time_ms * 1_000_000,
            byte_limit: plan.io_bytes.div_ceil(jobs),
            pass_bytes: match (plan.cold, order) {
                (false, _) => 0,
                (true, AccessOrder::Sequential) => stripe,
                (true, AccessOrder::Random) => plan.size.div_ceil(jobs),
            },
            seed: (plan.seed, job),
        })
        .collect()
}

/// What the buffers of a run are made of.
pub(super) fn buffer_pages(plan: &BenchPlan) -> &'static str {
    if plan.huge_pages { "buffers on huge pages" } else { "buffers on ordinary pages" }
}

fn check(plan: &BenchPlan) -> Result<(), PlanError> {
    let fixed = match plan.profile.as_str() {
        "randrw" => return Ok(()),
        "randread" | "seqread" => 100,
        _ => 0,
    };
    let (profile, pct) = (&plan.profile, plan.read_pct);
    require(pct == fixed, format!("{profile} has no mix; use randrw --read-pct {pct}"))
}

fn describe(plan: &BenchPlan) -> Vec<String> {
    let order = if order_of(plan) == AccessOrder::Random { "random" } else { "sequential" };
    let (block, depth, jobs) = (format_bytes_long(plan.block.into()), plan.depth, plan.jobs);
    let kind = match plan.read_pct {
        0 => "writes".into(),
        100 => "reads".into(),
        pct => format!("operations, {pct} % reads"),
    };
    let mut lines = vec![
        file_line(plan, "then overwritten in place or read"),
        format!("{order} {block} {kind}, {depth} in flight per job, {jobs} jobs; {}", buffer_pages(plan)),
        duration_line(plan),
    ];
    if plan.cold {
        lines.push(format!(
            "dropped from the page cache before each {}",
            if order_of(plan) == AccessOrder::Random { "pass of the file's size" } else { "pass" }
        ));
    }
    if plan.fsync_every > 0 {
        lines.push(format!("fdatasync after every {} writes", plan.fsync_every));
    }
    lines
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    let specs = worker_specs(&plan, order_of(&plan), plan.block, plan.read_pct);
    session.measure(&plan.profile, file.io_fd(), &specs)?;
    session.finish_measuring();
    Ok(())
}
