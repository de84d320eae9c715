//! Case 14: the same file read three times through the page cache: cold, second, third. The guide's:
//! 27 MB/s cold, then 688 MB/s and 1.4 GB/s.

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::session::{Session, Stop};
use crate::bench::target::File;
use crate::units::format_bytes_long;

/// See the module.
pub struct Cached;

const PASSES: [&str; 3] = ["first read", "second read", "third read"];

fn work(session: &Session, recorder: &Recorder, file: &File) -> Result<(), Stop> {
    let mut buffer = vec![0; session.plan.block as usize];
    let mut pace = super::append::Pace::new(&session.plan, monotonic_ns());
    let mut at = 0;
    while at < file.bytes {
        session.check()?;
        let start = pace.wait();
        let n =
            rustix::io::pread(file.buffered(), &mut buffer, at).map_err(|e| Stop::from_errno("read", e))?;
        if n == 0 {
            return Err(Stop::Failed(format!("the file ends at {at}, before its {} bytes", file.bytes)));
        }
        let now = monotonic_ns();
        recorder.add(Kind::Read, n as u64, start, start, now);
        recorder.seen(now);
        at += n as u64;
    }
    Ok(())
}

impl Workload for Cached {
    fn name(&self) -> &'static str {
        "cached"
    }

    fn about(&self) -> &'static str {
        "the same file read three times through the page cache: cold, second, third"
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "cached".into(),
            size: 512 << 20,
            block: 1 << 20,
            depth: 1,
            read_pct: 100,
            direct: false,
            ramp_ms: 0,
            time_ms: 0,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["size", "block", "rate", "rate-bytes", "idle", "stall-limit", "seed"]
    }

    fn writes(&self, plan: &Plan) -> Written {
        Written { certain: plan.size, further: Some(0) }
    }

    fn check(&self, plan: &Plan) -> Result<(), String> {
        super::append::buffered_and_single(self.name(), plan)
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        vec![
            format!(
                "a nameless file of {}, filled with random data, then dropped from the cache",
                format_bytes_long(plan.size)
            ),
            format!("read three times from beginning to end, {} at a time", format_bytes_long(plan.block.into())),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let place = session.place()?;
        let file = session.laid_out(&place, session.plan.size)?;
        let memory = place.filesystem.is_memory();
        for (n, label) in PASSES.into_iter().enumerate() {
            // Nothing is ever cold in memory.
            let label = if n == 0 && !memory { format!("{label}, cold") } else { label.to_owned() };
            let part = Part {
                label: label.clone(),
                engine: "pread".into(),
                block: session.plan.block,
                ..Part::default()
            };
            let size = session.plan.size;
            let part = session
                .measure_with(part, (0, size), |session, recorder, _| work(session, recorder, &file))?;
            if crate::bench::report::warnings::is_cache(&part) {
                session.watch.note(format!("{label}: the page cache answered, not the device"));
            }
        }
        Ok(())
    }
}
