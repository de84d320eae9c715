//! Plain reading and writing: random or sequential, mixed or not. `randrw` is case 1's job.

use super::{Workload, Written, file_line, span_line};
use crate::bench::plan::Plan;
use crate::bench::session::{Session, Stop};
use crate::bench::spec::{Fill, IoSpec, Limits, Order};
use crate::units::format_bytes_long;

/// One of the five.
pub struct Io {
    name: &'static str,
    about: &'static str,
    order: Order,
    read_pct: u8,
    block: u32,
    depth: u32,
}

const fn random(name: &'static str, about: &'static str, read_pct: u8) -> Io {
    Io { name, about, order: Order::Random, read_pct, block: 4096, depth: 64 }
}

const fn sequential(name: &'static str, about: &'static str, read_pct: u8) -> Io {
    Io { name, about, order: Order::Sequential, read_pct, block: 1 << 20, depth: 8 }
}

/// Half random reads, half random writes.
pub const RANDRW: Io =
    random("randrw", "random 4 KiB, half reads and half writes, depth 64: the database case", 50);
/// Random reads.
pub const RANDREAD: Io = random("randread", "random 4 KiB reads, depth 64", 100);
/// Random writes.
pub const RANDWRITE: Io = random("randwrite", "random 4 KiB writes, depth 64", 0);
/// Sequential reads.
pub const SEQREAD: Io = sequential("seqread", "sequential 1 MiB reads, depth 8", 100);
/// Sequential writes.
pub const SEQWRITE: Io = sequential("seqwrite", "sequential 1 MiB writes, depth 8", 0);

/// One spec per job of the plan; sequential jobs get a stripe of the file each.
pub fn specs(plan: &Plan, order: Order, block: u32, read_pct: u8) -> Vec<IoSpec> {
    let jobs = u64::from(plan.jobs);
    let stripe = plan.size / jobs / u64::from(block) * u64::from(block);
    // Handed over and waited for an eighth at a time: every hand-over rings the device's doorbell, which is
    // dear in a virtual machine, and every wake-up costs; more would leave the queue half empty meanwhile and
    // would show in the latencies. Measured beside 16/1, 16/8 and 8/4 at depth 64.
    let batch = (plan.depth / 8).max(1);
    (0..jobs)
        .map(|job| IoSpec {
            order,
            read_pct,
            block,
            start: if order == Order::Sequential { job * stripe } else { 0 },
            len: if order == Order::Sequential { stripe } else { plan.size },
            depth: plan.depth,
            fsync_every: plan.fsync_every,
            fill: if plan.refill { Fill::Refill } else { Fill::Stamp },
            gap_ns: plan.gap_ns(block),
            submit_max: batch,
            complete_min: batch,
            bytes: plan.io_bytes.div_ceil(jobs),
            seed: (plan.seed, job),
        })
        .collect()
}

/// The plan's limits.
pub fn limits(plan: &Plan) -> Limits {
    Limits { ramp_ns: plan.ramp_ms * 1_000_000, time_ns: plan.time_ms * 1_000_000 }
}

impl Workload for Io {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: self.name.into(),
            read_pct: self.read_pct,
            block: self.block,
            depth: self.depth,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
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

    fn writes(&self, plan: &Plan) -> Written {
        Written::timed(plan, plan.size, 100u8.saturating_sub(plan.read_pct), 1)
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        match self.read_pct {
            fixed @ (0 | 100) if plan.read_pct != fixed => {
                Err(format!("{} has no mix; use randrw --read-pct {}", self.name, plan.read_pct))
            }
            _ => Ok(()),
        }
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        let order = if self.order == Order::Random { "random" } else { "sequential" };
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
            span_line(plan),
        ];
        if plan.fsync_every > 0 {
            lines.push(format!("fdatasync after every {} writes", plan.fsync_every));
        }
        lines
    }

    fn on_ruler(&self, plan: &Plan) -> bool {
        self.order == Order::Random
            && plan.block == 4096
            && plan.direct
            && plan.rate_bytes + plan.rate_iops == 0
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let plan = session.plan.clone();
        let place = session.place()?;
        let file = session.laid_out(&place, plan.size)?;
        let specs = specs(&plan, self.order, plan.block, plan.read_pct);
        session.measure(self.name, file.fd(), specs, limits(&plan))?;
        session.measured();
        Ok(())
    }
}
