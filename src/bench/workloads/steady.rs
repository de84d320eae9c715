//! Rounds of random I/O until the rate is steady, on a preconditioned file: the test of the SNIA Solid State Storage
//! Performance Test Specification. What a fresh device gives at first is not what lasts.

use super::io;
use super::workload::{PlannedWrites, Workload, file_line, higher_is_better};
use crate::bench::io_spec::{AccessOrder, IoSpec};
use crate::bench::plan::{BenchPlan, require};
use crate::bench::report::steady_state::{MAX_ROUNDS, WINDOW, conclude, is_steady, last_window, mean};
use crate::bench::session::{BenchSession, RunError};

pub(super) const STEADY: Workload = Workload {
    name: "steady",
    brief: "steady state",
    about: "random 4 KiB writes in rounds of a minute until their rate is steady, after preconditioning (SNIA's rule)",
    params: "size block depth jobs read-pct refill time stall-limit idle engine sqpoll iopoll huge-pages seed",
    plan: || BenchPlan { depth: 32, read_pct: 0, ramp_ms: 0, time_ms: 60_000, ..BenchPlan::default() },
    check: |plan| {
        require(plan.time_ms > 0, "steady: every round needs a time")?;
        require(plan.direct, "steady: works past the page cache")?;
        require(plan.size / u64::from(plan.jobs) >= PRECONDITION_BLOCK.into(), "steady: at least 128 KiB for each job")
    },
    planned_writes: |plan| {
        let share = 100u8.saturating_sub(plan.read_pct);
        PlannedWrites::timed(plan, plan.size.saturating_mul(1 + PASSES), share, MAX_ROUNDS as u64)
    },
    describe: |plan| {
        vec![
            file_line(plan, "then overwritten twice in sequence, 128 KiB at a time"),
            format!(
                "at most {MAX_ROUNDS} rounds of {} s: random operations, {} % reads, {} in flight per job, {} jobs; {}",
                plan.time_ms as f64 / 1e3,
                plan.read_pct,
                plan.depth,
                plan.jobs,
                io::buffer_pages(plan)
            ),
            format!("ends when the IOPS of {WINDOW} rounds differ by 20 % at most and their trend by 10 %"),
        ]
    },
    has_reference_classes: |_| false,
    metric: higher_is_better("IOPS in the steady state", "", |r| {
        let window = last_window(r).filter(|window| is_steady(window))?;
        Some(mean(&window))
    }),
    conclude,
    run,
    ..io::IN_FLIGHT
};

/// Times the whole file is written before.
const PASSES: u64 = 2;
const PRECONDITION_BLOCK: u32 = 128 << 10;

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    let before = BenchPlan { time_ms: 0, io_bytes: plan.size * PASSES, jobs: 1, ..plan.clone() };
    let specs = io::worker_specs(&before, AccessOrder::Sequential, PRECONDITION_BLOCK, 0);
    session.measure("preconditioning", file.io_fd(), &specs)?;
    let mut rates = Vec::new();
    for round in 1..=MAX_ROUNDS {
        let mut specs = io::worker_specs(&plan, AccessOrder::Random, plan.block, plan.read_pct);
        // Other places in every round.
        specs.iter_mut().for_each(|spec: &mut IoSpec| spec.seed.0 = plan.seed.wrapping_add(round as u64));
        rates.push(session.measure(&format!("round {round}"), file.io_fd(), &specs)?.iops());
        if rates.len() >= WINDOW && is_steady(&rates[rates.len() - WINDOW..]) {
            break;
        }
    }
    session.finish_measuring();
    Ok(())
}
