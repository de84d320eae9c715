//! Case 9: what fork() costs a process of N GB. The kernel copies its page tables, 8 bytes per 4 KiB page:
//! 24 GB of memory make 48 MB of tables. Guides: 9-13 ms/GB physical or VMware, 23 KVM, 10 HVM,
//! 239-424 on old Xen.

use super::{Workload, Written};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{Kind, Recorder};
use crate::bench::plan::Plan;
use crate::bench::report::Part;
use crate::bench::session::{Session, Stop};
use crate::bench::sys::{Memory, timed_fork};
use crate::bench::target::refuse::refused;
use crate::root::Root;
use crate::units::format_bytes_long;

/// See the module.
pub struct Fork;

const FORKS: u32 = 10;
/// Touched between two looks whether to stop.
const STEP: usize = 64 << 20;

/// MemAvailable in bytes.
fn available(root: &Root) -> Option<u64> {
    let text = std::fs::read_to_string(root.proc("meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

fn work(session: &Session, recorder: &Recorder, part: &mut Part, memory: &Memory) -> Result<(), Stop> {
    let gib = memory.len() as f64 / (1u64 << 30) as f64;
    let mut times = Vec::with_capacity(FORKS as usize);
    recorder.begin(monotonic_ns());
    for _ in 0..FORKS {
        session.check()?;
        let fork = timed_fork().map_err(|e| Stop::from_errno("fork", e))?;
        let now = monotonic_ns();
        recorder.add(Kind::Sync, 0, now - fork.fork_ns, now - fork.fork_ns, now);
        recorder.seen(now);
        times.push(fork.fork_ns);
    }
    times.sort_unstable();
    let median = times[times.len() / 2] as f64 / 1e6;
    part.say("memory touched", gib, "GiB");
    part.say("page tables", memory.len() as f64 / 4096.0 * 8.0 / 1_048_576.0, "MiB");
    part.say("fork, median", median, "ms");
    part.say("fork, longest", times[times.len() - 1] as f64 / 1e6, "ms");
    part.say("fork per GiB", median / gib, "ms/GiB");
    Ok(())
}

impl Workload for Fork {
    fn name(&self) -> &'static str {
        "fork"
    }

    fn about(&self) -> &'static str {
        "what fork() costs a process of 1 GiB (--size): databases that snapshot by forking stand still so long"
    }

    fn needs_directory(&self) -> bool {
        false
    }

    fn defaults(&self) -> Plan {
        Plan {
            profile: "fork".into(),
            depth: 1,
            read_pct: 100,
            direct: false,
            ramp_ms: 0,
            time_ms: 0,
            ..Plan::default()
        }
    }

    fn takes(&self) -> &'static [&'static str] {
        &["size"]
    }

    fn writes(&self, _plan: &Plan) -> Written {
        Written { certain: 0, further: Some(0) }
    }

    fn footprint(&self, _plan: &Plan) -> u64 {
        0
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        vec![
            format!("touches {} of memory, a quarter of what is available at most", format_bytes_long(plan.size)),
            format!("then forks {FORKS} times; the child ends at once"),
        ]
    }

    fn run(&self, session: &mut Session) -> Result<(), Stop> {
        let size = session.plan.size;
        let Some(available) = available(&session.root) else {
            return Err(Stop::Failed("how much memory is available could not be read from meminfo".into()));
        };
        if size > available / 4 {
            return Ok(refused(format!(
                "{} is more than a quarter of the {} of memory available: at most --size {}M",
                format_bytes_long(size),
                format_bytes_long(available),
                (available / 4) >> 20
            ))?);
        }
        session.prepare("touching memory");
        // Huge pages would make a table of 8 bytes per 2 MiB, and hide what is to be measured.
        let mut memory =
            Memory::small_pages(size as usize).map_err(|e| Stop::from_errno("reserving memory", e))?;
        for at in (0..memory.len()).step_by(STEP) {
            session.check()?;
            let len = STEP.min(memory.len() - at);
            memory.slice(at, len).chunks_mut(4096).for_each(|page| page[0] = 1);
            session.watch.pulse(monotonic_ns());
        }
        let part =
            Part { label: format!("fork with {}", format_bytes_long(size)), verb: "fork".into(), ..Part::default() };
        session
            .measure_with(part, (0, 0), |session, recorder, part| work(session, recorder, part, &memory))?;
        Ok(())
    }
}
