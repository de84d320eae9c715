//! Random or sequential reads and writes, or a mix of both.

use super::workload::{PlannedWrites, Workload, duration_line, file_line};
use crate::bench::io_spec::{AccessOrder, BufferFill, IoSpec, RunLimits};
use crate::bench::plan::BenchPlan;
use crate::bench::session::{BenchSession, RunError};
use crate::units::format_bytes_long;

/// One of the five workloads.
pub struct IoWorkload {
    name: &'static str,
    about: &'static str,
    order: AccessOrder,
    read_pct: u8,
    block: u32,
    depth: u32,
}

const fn random(name: &'static str, about: &'static str, read_pct: u8) -> IoWorkload {
    IoWorkload { name, about, order: AccessOrder::Random, read_pct, block: 4096, depth: 64 }
}

const fn sequential(name: &'static str, about: &'static str, read_pct: u8) -> IoWorkload {
    IoWorkload { name, about, order: AccessOrder::Sequential, read_pct, block: 1 << 20, depth: 8 }
}

/// Half random reads, half random writes.
pub const RANDRW: IoWorkload =
    random("randrw", "random 4 KiB, half reads and half writes, depth 64: the database case", 50);
/// Random reads.
pub const RANDREAD: IoWorkload = random("randread", "random 4 KiB reads, depth 64", 100);
/// Random writes.
pub const RANDWRITE: IoWorkload = random("randwrite", "random 4 KiB writes, depth 64", 0);
/// Sequential reads.
pub const SEQREAD: IoWorkload = sequential("seqread", "sequential 1 MiB reads, depth 8", 100);
/// Sequential writes.
pub const SEQWRITE: IoWorkload = sequential("seqwrite", "sequential 1 MiB writes, depth 8", 0);

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
            byte_limit: plan.io_bytes.div_ceil(jobs),
            seed: (plan.seed, job),
        })
        .collect()
}

/// The plan's limits.
pub fn run_limits(plan: &BenchPlan) -> RunLimits {
    RunLimits { ramp_ns: plan.ramp_ms * 1_000_000, time_ns: plan.time_ms * 1_000_000 }
}

impl Workload for IoWorkload {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn defaults(&self) -> BenchPlan {
        BenchPlan {
            profile: self.name.into(),
            read_pct: self.read_pct,
            block: self.block,
            depth: self.depth,
            ..BenchPlan::default()
        }
    }

    fn params(&self) -> &'static [&'static str] {
        match self.read_pct {
            100 => &[
                "size",
                "block",
                "depth",
                "jobs",
                "direct",
                "rate",
                "rate-bytes",
                "time",
                "ramp",
                "io-size",
                "stall-limit",
                "idle",
                "engine",
                "sqpoll",
                "iopoll",
                "seed",
            ],
            0 => &[
                "size",
                "block",
                "depth",
                "jobs",
                "direct",
                "fsync",
                "refill",
                "rate",
                "rate-bytes",
                "time",
                "ramp",
                "io-size",
                "stall-limit",
                "idle",
                "engine",
                "sqpoll",
                "iopoll",
                "seed",
            ],
            _ => &[
                "size",
                "block",
                "depth",
                "jobs",
                "read-pct",
                "direct",
                "fsync",
                "refill",
                "rate",
                "rate-bytes",
                "time",
                "ramp",
                "io-size",
                "stall-limit",
                "idle",
                "engine",
                "sqpoll",
                "iopoll",
                "seed",
            ],
        }
    }

    fn planned_writes(&self, plan: &BenchPlan) -> PlannedWrites {
        PlannedWrites::timed(plan, plan.size, 100u8.saturating_sub(plan.read_pct), 1)
    }

    fn check(&self, plan: &BenchPlan) -> Result<(), String> {
        match self.read_pct {
            fixed @ (0 | 100) if plan.read_pct != fixed => {
                Err(format!("{} has no mix; use randrw --read-pct {}", self.name, plan.read_pct))
            }
            _ => Ok(()),
        }
    }

    fn describe(&self, plan: &BenchPlan) -> Vec<String> {
        let order = if self.order == AccessOrder::Random { "random" } else { "sequential" };
        let kind = match plan.read_pct {
            0 => "writes".into(),
            100 => "reads".into(),
            pct => format!("operations, {pct} % reads"),
        };
        let mut lines = vec![
            file_line(plan, "then overwritten in place or read"),
            format!(
                "{order} {} {kind}, {} in flight per job, {} jobs",
                format_bytes_long(plan.block.into()),
                plan.depth,
                plan.jobs
            ),
            duration_line(plan),
        ];
        if plan.fsync_every > 0 {
            lines.push(format!("fdatasync after every {} writes", plan.fsync_every));
        }
        lines
    }

    fn has_reference_classes(&self, plan: &BenchPlan) -> bool {
        self.order == AccessOrder::Random && plan.block == 4096 && plan.direct && plan.rate_bytes + plan.rate_iops == 0
    }

    fn run(&self, session: &mut BenchSession) -> Result<(), RunError> {
        let plan = session.plan.clone();
        let place = session.open_target()?;
        let file = session.lay_out_file(&place, plan.size)?;
        let specs = worker_specs(&plan, self.order, plan.block, plan.read_pct);
        session.measure(self.name, file.io_fd(), specs, run_limits(&plan))?;
        session.finish_measuring();
        Ok(())
    }
}
