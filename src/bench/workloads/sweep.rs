//! Sequential and random I/O over block sizes, for charts of bandwidth, latency and IOPS.
//! Random I/O ends at 128 KiB, where a disk's seek time no longer dominates. With `readahead`, sequential reads with
//! the disk's read-ahead off and on, through the page cache, which is where read-ahead acts.

use super::io;
use super::workload::{PlannedWrites, Workload, file_line, higher_is_better, mib_per_s};
use crate::bench::io_spec::AccessOrder;
use crate::bench::plan::{BenchPlan, PlanError, require};
use crate::bench::readahead::{ReadaheadDisk, ReadaheadLease};
use crate::bench::report::sweep::{READAHEAD_OFF, step_label};
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use crate::units::format_bytes_long;

pub(super) const SWEEP: Workload = Workload {
    name: "sweep",
    brief: "block sizes",
    about: "sequential and random reads over block sizes 512 B to 1 MiB, depth 1",
    params: "size depth jobs read-pct readahead direct cold fsync refill rate rate-bytes time ramp io-size stall-limit \
             idle engine sqpoll iopoll huge-pages seed",
    plan: || BenchPlan { block: 512, depth: 1, read_pct: 100, ramp_ms: 200, time_ms: 2000, ..BenchPlan::default() },
    check,
    planned_writes: |plan| {
        // Its blocks grow, so a cap on operations says nothing about bytes.
        let capped = BenchPlan { rate_iops: 0, ..plan.clone() };
        PlannedWrites::timed(&capped, plan.size, 100u8.saturating_sub(plan.read_pct), STEPS)
    },
    describe,
    has_reference_classes: |_| false,
    conclude: |_| None,
    // A geometric mean gives every step the same weight.
    metric: higher_is_better("geometric mean of all steps", "MiB/s", |r| {
        let logs: Vec<f64> = r.measurements.iter().map(mib_per_s).filter(|v| *v > 0.0).map(f64::ln).collect();
        Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }),
    run,
    ..io::IN_FLIGHT
};

const LARGEST_SEQUENTIAL: u32 = 1 << 20;
const LARGEST_RANDOM: u32 = 128 << 10;
/// From 512 B in doublings: 12 sequential block sizes, 9 random ones.
const STEPS: u64 = 21;
/// The lease of a changed read-ahead beyond two steps, renewed at each step.
const LEASE_SECS: u64 = 600;

/// 512 B, 1 KiB ... up to `largest`.
fn block_sizes(largest: u32) -> impl Iterator<Item = u32> {
    (9..).map(|n| 1u32 << n).take_while(move |s| *s <= largest)
}

fn check(plan: &BenchPlan) -> Result<(), PlanError> {
    let (depth, jobs) = (u64::from(plan.depth), u64::from(plan.jobs));
    require(
        plan.size / jobs >= LARGEST_SEQUENTIAL.into(),
        "sweep: the file must hold a block of 1 MiB per job at least",
    )?;
    require(plan.time_ms > 0 || plan.io_bytes > 0, "sweep: every step needs a time or a size limit")?;
    require(depth * jobs <= 512, "sweep: depth x jobs at most 512, because blocks go up to 1 MiB")
}

fn describe(plan: &BenchPlan) -> Vec<String> {
    if plan.readahead {
        return describe_readahead(plan);
    }
    let what = if plan.read_pct == 100 { "reads" } else { "reads and writes" };
    vec![
        file_line(plan, "then worked on in every block size"),
        format!("{STEPS} steps of {} s: {what}, {} in flight", plan.time_ms as f64 / 1e3, plan.depth),
        "block sizes below what direct I/O allows here are skipped".into(),
    ]
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let place = session.open_target()?;
    // Check this before any data is written.
    let disk = match plan.readahead {
        true => {
            let disk = ReadaheadDisk::for_target(&session.root, &place)?;
            disk.check_permission(&session.root)?;
            Some(disk)
        }
        false => None,
    };
    // The layout checks the alignment of the plan's block size, which is only a start value here.
    session.plan.block = 4096;
    let file = session.lay_out_file(&place, plan.size);
    session.plan.block = plan.block;
    let file = file?;
    match disk {
        Some(disk) => measure_readahead_settings(session, &disk, &file),
        None => measure_both_orders(session, &file),
    }
}

fn describe_readahead(plan: &BenchPlan) -> Vec<String> {
    vec![
        file_line(plan, "then read sequentially in every block size"),
        format!(
            "{} steps of {} s or one pass over the file, whichever ends first; the page cache is emptied of the file \
             before each",
            2 * block_sizes(LARGEST_SEQUENTIAL).count(),
            plan.time_ms as f64 / 1e3
        ),
        "changes a setting: read_ahead_kb of the disk below the directory is set to 0 for the first series (needs root)"
            .into(),
        "a tuner process holds the change on a lease and gives the old value back, also if this program is killed".into(),
    ]
}

fn measure_both_orders(session: &mut BenchSession, file: &BenchFile) -> Result<(), RunError> {
    let plan = session.plan.clone();
    let least = if plan.direct { file.alignment().1 } else { 1 };
    for (order, name, largest) in
        [(AccessOrder::Sequential, "sequential", LARGEST_SEQUENTIAL), (AccessOrder::Random, "random", LARGEST_RANDOM)]
    {
        for block in block_sizes(largest) {
            if block < least {
                session.progress.add_note(format!(
                    "{name} {}: skipped, direct I/O here takes {least} bytes at least",
                    format_bytes_long(block.into())
                ));
                continue;
            }
            let specs = io::worker_specs(&plan, order, block, plan.read_pct);
            session.measure(&step_label(name, block), file.io_fd(), &specs)?;
        }
    }
    Ok(())
}

fn measure_readahead_settings(
    session: &mut BenchSession,
    disk: &ReadaheadDisk,
    file: &BenchFile,
) -> Result<(), RunError> {
    session.prefer_threads();
    let secs = LEASE_SECS + session.plan.time_ms / 500;
    for kb in disk.settings() {
        session.check_cancelled()?;
        session.begin_preparation("setting the read-ahead");
        let mut set = disk.lease_value(&session.root, kb, secs)?;
        let name = match kb {
            0 => READAHEAD_OFF.to_owned(),
            kb => format!("read-ahead {}", format_bytes_long(kb << 10)),
        };
        let done = measure_cold_series(session, &name, file, set.as_mut());
        // Restore the value even if the series failed.
        let undone = set.map_or(Ok(()), ReadaheadLease::restore);
        if let (Err(_), Err(why)) = (&done, &undone) {
            session.progress.add_note(why.to_string());
        }
        done.and(undone)?;
    }
    Ok(())
}

/// Every block size for at most one pass over the file, so that nothing is read twice.
fn measure_cold_series(
    session: &mut BenchSession,
    name: &str,
    file: &BenchFile,
    mut set: Option<&mut ReadaheadLease>,
) -> Result<(), RunError> {
    let plan = session.plan.clone();
    for block in block_sizes(LARGEST_SEQUENTIAL) {
        session.begin_preparation("emptying the cache");
        if let Some(set) = &mut set {
            set.renew()?;
        }
        file.evict_page_cache()
            .and_then(|()| file.refresh_readahead())
            .map_err(|e| RunError::from_errno("emptying the cache", e))?;
        let mut specs = io::worker_specs(&plan, AccessOrder::Sequential, block, plan.read_pct);
        for spec in &mut specs {
            spec.byte_limit = if spec.byte_limit == 0 { spec.len } else { spec.byte_limit.min(spec.len) };
            // What a ramp-up reads would be missing from the single pass.
            spec.ramp_ns = 0;
        }
        session.measure(&step_label(name, block), file.io_fd(), &specs)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_are_powers_of_two() {
        let all: Vec<_> = block_sizes(LARGEST_SEQUENTIAL).collect();
        assert_eq!((all.first(), all.last(), all.len()), (Some(&512), Some(&1_048_576), 12));
        assert_eq!(block_sizes(LARGEST_RANDOM).last(), Some(131_072));
    }
}
