//! The cost of fork() for a process of N GB. The kernel copies its page tables, 8 bytes per 4 KiB page:
//! 24 GB of memory have 48 MB of tables. Known values: 9-13 ms/GB physical or VMware, 23 KVM, 10 HVM,
//! 239-424 on old Xen.

use super::buffered::{BUFFERED, one_call_plan};
use super::workload::{PlannedWrites, Workload, lower_is_better};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::syscalls::{MappedMemory, timed_fork};
use crate::bench::target::refusal::refuse;
use crate::root::Root;
use crate::units::format_bytes_long;

pub(super) const FORK: Workload = Workload {
    name: "fork",
    brief: "fork() cost",
    about: "what fork() costs a process of 1 GiB (--size): databases that snapshot by forking stand still so long",
    needs_directory: false,
    params: "size",
    plan: || BenchPlan { read_pct: 100, ..one_call_plan() },
    check: |_| Ok(()),
    footprint: |_| 0,
    planned_writes: |_| PlannedWrites::NONE,
    describe: |plan| {
        vec![
            format!("touches {} of memory, a quarter of what is available at most", format_bytes_long(plan.size)),
            format!("then forks {FORKS} times; the child ends at once"),
        ]
    },
    metric: lower_is_better("fork per GiB", "ms", |r| r.measurements.first()?.metric("fork per GiB")),
    conclude: interpretation::interpret_fork,
    run,
    ..BUFFERED
};

const FORKS: u32 = 10;
/// Bytes touched between two checks for cancellation.
const TOUCH_BYTES: usize = 64 << 20;

/// MemAvailable in bytes.
fn available_memory(root: &Root) -> Option<u64> {
    let text = std::fs::read_to_string(root.proc("meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

fn measure_forks(
    session: &BenchSession,
    recorder: &OpRecorder,
    part: &mut Measurement,
    memory: &MappedMemory,
) -> Result<(), RunError> {
    let gib = memory.size() as f64 / (1u64 << 30) as f64;
    let mut times = Vec::with_capacity(FORKS as usize);
    recorder.start_counting(monotonic_ns());
    for _ in 0..FORKS {
        session.check_cancelled()?;
        let fork_ns = timed_fork().map_err(|e| RunError::from_errno("fork", e))?;
        let now = monotonic_ns();
        recorder.record_op(OpKind::Sync, 0, now - fork_ns, now - fork_ns, now);
        recorder.record_completion_time(now);
        times.push(fork_ns);
    }
    times.sort_unstable();
    let median = times[times.len() / 2] as f64 / 1e6;
    part.add_metric("memory touched", gib, "GiB");
    part.add_metric("page tables", memory.size() as f64 / 4096.0 * 8.0 / 1_048_576.0, "MiB");
    part.add_metric("fork, median", median, "ms");
    part.add_metric("fork, longest", times[times.len() - 1] as f64 / 1e6, "ms");
    part.add_metric("fork per GiB", median / gib, "ms/GiB");
    Ok(())
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let size = session.plan.size;
    let Some(available) = available_memory(&session.root) else {
        return Err(RunError::Failed("how much memory is available could not be read from meminfo".into()));
    };
    if size > available / 4 {
        let ([wanted, all], most) = ([size, available].map(format_bytes_long), (available / 4) >> 20);
        return Ok(refuse(format!(
            "{wanted} is more than a quarter of the {all} of memory available: at most --size {most}M"
        ))?);
    }
    session.begin_preparation("touching memory");
    // Huge pages need 8 bytes of table per 2 MiB only, which would hide the cost.
    let reserved = MappedMemory::anonymous(size as usize, false)
        .and_then(|memory| memory.advise(rustix::mm::Advice::LinuxNoHugepage).map(|()| memory));
    let mut memory = reserved.map_err(|e| RunError::from_errno("reserving memory", e))?;
    for at in (0..memory.size()).step_by(TOUCH_BYTES) {
        session.check_cancelled()?;
        let len = TOUCH_BYTES.min(memory.size() - at);
        memory.slice(at, len).chunks_mut(4096).for_each(|page| page[0] = 1);
        session.progress.heartbeat(monotonic_ns());
    }
    let part = Measurement {
        label: format!("fork with {}", format_bytes_long(size)),
        timed_operation: "fork".into(),
        ..Measurement::default()
    };
    session.measure_custom(part, (0, 0), |session, recorder, part| measure_forks(session, recorder, part, &memory))?;
    Ok(())
}
