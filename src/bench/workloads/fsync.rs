//! etcd's disk rule: small records appended one after the other, each with fdatasync. Its p99 must be
//! under 10 ms.

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::rng::Rng;
use crate::bench::session::{Session, Stop};
use crate::units::format_bytes_long;

/// See the module.
pub struct Fsync;

/// etcd's advice: the 99th percentile of fdatasync below this.
const RULE_NS: u64 = 10_000_000;

/// Appends records and syncs each until time or file are used up.
fn work(session: &Session, recorder: &Recorder, fd: std::os::fd::BorrowedFd<'_>) -> Result<(), Stop> {
    let plan = &session.plan;
    let mut record = vec![0; plan.block as usize];
    Rng::new(plan.seed, 0).fill(&mut record);
    let begin = monotonic_ns();
    let end = if plan.time_ms == 0 { u64::MAX } else { begin + plan.time_ms * 1_000_000 };
    let mut pace = super::append::Pace::new(plan, begin);
    let (mut at, mut written) = (0, 0);
    loop {
        session.check()?;
        let start = pace.wait();
        if start >= end || (plan.io_bytes > 0 && written >= plan.io_bytes) {
            return Ok(());
        }
        let n = rustix::io::pwrite(fd, &record, at).map_err(|e| Stop::from_errno("write", e))?;
        let between = monotonic_ns();
        recorder.add(Kind::Write, n as u64, start, start, between);
        rustix::fs::fdatasync(fd).map_err(|e| Stop::from_errno("fdatasync", e))?;
        let now = monotonic_ns();
        recorder.add(Kind::Sync, 0, between, between, now);
        recorder.seen(now);
        written += n as u64;
        // A log is recycled at its end, as write-ahead logs are.
        at = if at + 2 * plan.block as u64 > plan.size { 0 } else { at + n as u64 };
    }
}

impl Workload for Fsync {
    fn name(&self) -> &'static str {
        "fsync"
    }

    fn about(&self) -> &'static str {
        "2,300-byte records, each with fdatasync: etcd's rule, p99 under 10 ms"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "fsync".into(),
            size: 22 << 20,
            block: 2300,
            depth: 1,
            read_pct: 0,
            direct: false,
            ramp_ms: 0,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["size", "block", "time", "rate", "rate-bytes", "io-size", "idle", "stall-limit", "seed"]
    }

    fn writes(&self, plan: &Plan) -> Written {
        Written::timed(plan, plan.size, 100, 1)
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        super::append::buffered_and_single(self.name(), plan)
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        vec![
            format!("a nameless file of {}, filled with random data first", format_bytes_long(plan.size)),
            format!("records of {} bytes, each written and synced (fdatasync), one at a time", plan.block),
            super::span_line(plan),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let place = session.place()?;
        let file = session.laid_out(&place, session.plan.size)?;
        let part = Part {
            label: "write + fdatasync".into(),
            engine: "pwrite, fdatasync".into(),
            block: session.plan.block,
            ..Part::default()
        };
        let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
        session
            .measure_with(part, goal, |session, recorder, part| {
                let ended = work(session, recorder, file.buffered());
                if let Some(p99) = recorder.sync().lat.percentile(99.0) {
                    part.say("fdatasync p99", p99 as f64 / 1e6, "ms");
                    part.say(
                        "etcd's rule (p99 under 10 ms), 1 = met",
                        f64::from(u8::from(p99 < RULE_NS)),
                        "",
                    );
                }
                ended
            })
            .map(drop)
    }
}
