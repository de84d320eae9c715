//! Case 12: sequential and random over block sizes, for three charts: bandwidth, latency, IOPS.
//! Random ends at 128 KiB, where a disk's seek no longer dominates.

use super::{Workload, Written, file_line, io};
use crate::bench::plan::Plan;
use crate::bench::session::{Session, Stop};
use crate::bench::spec::Order;
use crate::units::bytes_long;

/// See the module.
pub struct Sweep;

const LARGEST: u32 = 1 << 20;
const LARGEST_RANDOM: u32 = 128 << 10;

/// Doubling the block at most doubles the bandwidth at the same latency; above this something else begins.
const JUMP: f64 = 2.5;

/// 512 B, 1 KiB ... up to `largest`.
fn sizes(largest: u32) -> impl Iterator<Item = u32> {
    (9..).map(|n| 1u32 << n).take_while(move |s| *s <= largest)
}

/// The steepest step between neighbours (sizes, ratio), if it is far more than twice the size explains.
fn jump(rates: &[(u32, f64)]) -> Option<(u32, u32, f64)> {
    let steps = rates.windows(2).filter(|w| w[0].1 > 0.0).map(|w| (w[0].0, w[1].0, w[1].1 / w[0].1));
    steps.filter(|s| s.2 > JUMP).max_by(|a, b| a.2.total_cmp(&b.2))
}

impl Workload for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn about(&self) -> &'static str {
        "sequential and random reads over block sizes 512 B to 1 MiB, depth 1"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "sweep".into(),
            block: 512,
            depth: 1,
            read_pct: 100,
            ramp_ms: 200,
            time_ms: 2000,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &[
            "size",
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
        ]
    }

    fn writes(&self, plan: &Plan) -> Written {
        let steps = sizes(LARGEST).count() + sizes(LARGEST_RANDOM).count();
        // Its blocks grow, so a cap on operations says nothing about bytes.
        let capped = Plan { rate_iops: 0, ..plan.clone() };
        Written::timed(&capped, plan.size, 100u8.saturating_sub(plan.read_pct), steps as u64)
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        if plan.size / u64::from(plan.jobs) < u64::from(LARGEST) {
            return Err("sweep: the file must hold a block of 1 MiB per job at least".into());
        }
        if plan.time_ms == 0 && plan.io_bytes == 0 {
            return Err("sweep: every step needs a time or a size limit".into());
        }
        if u64::from(plan.depth) * u64::from(plan.jobs) > 512 {
            return Err("sweep: depth x jobs at most 512, because blocks go up to 1 MiB".into());
        }
        Ok(())
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        let steps = sizes(LARGEST).count() + sizes(LARGEST_RANDOM).count();
        let what = if plan.read_pct == 100 { "reads" } else { "reads and writes" };
        vec![
            file_line(plan, "then worked on in every block size"),
            format!("{steps} steps of {} s: {what}, {} in flight", plan.time_ms as f64 / 1e3, plan.depth),
            "block sizes below what direct I/O allows here are skipped".into(),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let plan = session.plan.clone();
        let place = session.place()?;
        // The layout's own alignment check is about the plan's block, which is a start value here.
        session.plan.block = 4096;
        let file = session.laid_out(&place, plan.size);
        session.plan.block = plan.block;
        let file = file?;
        let least = if plan.direct { file.alignment().1 } else { 1 };
        for (order, name, largest) in
            [(Order::Sequential, "sequential", LARGEST), (Order::Random, "random", LARGEST_RANDOM)]
        {
            let mut rates = Vec::new();
            for block in sizes(largest) {
                if block < least {
                    session.watch.note(format!(
                        "{name} {}: skipped, direct I/O here takes {least} bytes at least",
                        bytes_long(block.into())
                    ));
                    continue;
                }
                let specs = io::specs(&plan, order, block, plan.read_pct);
                let label = format!("{name} {}", bytes_long(block.into()));
                let part = session.measure(&label, file.fd(), specs, io::limits(&plan))?;
                rates.push((block, part.bytes_per_s()));
            }
            if let Some((before, after, ratio)) = jump(&rates) {
                session.watch.note(format!(
                    "{name}: bandwidth rises {ratio:.1} times from {} to {}: beyond a stripe or a read-ahead window, \
                     where several disks begin to work at once",
                    bytes_long(before.into()),
                    bytes_long(after.into())
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_shows_as_a_jump() {
        let flat = [(512, 10.0), (1024, 20.0), (2048, 41.0), (4096, 60.0)];
        assert_eq!(jump(&flat), None);
        assert_eq!(jump(&[(512, 10.0), (1024, 20.0), (2048, 100.0), (4096, 150.0)]), Some((1024, 2048, 5.0)));
        assert_eq!(jump(&[(512, 0.0), (1024, 20.0)]), None);
    }

    #[test]
    fn the_guides_steps() {
        let all: Vec<_> = sizes(LARGEST).collect();
        assert_eq!((all.first(), all.last(), all.len()), (Some(&512), Some(&1_048_576), 12));
        assert_eq!(sizes(LARGEST_RANDOM).last(), Some(131_072));
    }
}
