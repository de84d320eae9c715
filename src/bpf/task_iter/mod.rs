//! Reports all tasks by BPF iterators (`assets/trace/tasks.bpf.c`): the contents of the files of `/proc/PID` at a small
//! part of their cost.
//!
//! The iterator reports every task of the machine with the IDs of the initial PID namespace, whatever `/proc` would
//! show. So it is used only with permissions that show all of that in `/proc` too.

mod record;

use super::bpf_sys;
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::loader;
use super::probe::Probe;
use super::unavailable::{ProbeUnavailable, load_failure};
use crate::model::process::USER_HZ;
use crate::root::Root;
use aya::programs::{Iter, ProgramError};
use aya::{Btf, Ebpf, include_bytes_aligned};
pub use record::{TaskCounters, TaskIterItem, TaskRecord};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/tasks.bpf.o");

/// Most bytes that one read returns (bpf_seq_read, kernel/bpf/bpf_iter.c).
const READ_LEN: usize = 32 << 10;

/// The loaded programs; dropping this and all [`TaskIter`]s unloads them.
pub struct TaskIterProbe(Arc<TaskIterPrograms>);

struct TaskIterPrograms {
    _programs: Ebpf,
    processes: OwnedFd,
    changes: OwnedFd,
    threads: OwnedFd,
    passes: AtomicU64,
}

/// Starts passes over all tasks.
#[derive(Clone, Default)]
pub struct TaskIter(Option<Arc<TaskIterPrograms>>);

/// One pass over all tasks, in order of their thread IDs.
pub struct TaskIterPass {
    fd: OwnedFd,
    last_tid: u32,
    generation: PassGeneration,
}

/// Number of a pass over processes. The pass directly after it may report unchanged tasks in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassGeneration(u64);

impl Probe for TaskIterProbe {
    type Output = TaskIter;
    const READING: &'static str = "the task iterator";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_access(&kernel.root)?;
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &[])?;
        let mut link =
            |name| attach_iter(&mut programs, name, &kernel.btf).map_err(|err| load_failure("the task iterator", &err));
        let (processes, changes, threads) = (link("processes")?, link("changes")?, link("threads")?);
        let turns = AtomicU64::new(0);
        let held = TaskIterPrograms { _programs: programs, processes, changes, threads, passes: turns };
        let task_iter = TaskIter(Some(Arc::new(held)));
        check_own_record(&kernel.root, &task_iter)?;
        task_iter.0.map(Self).ok_or_else(|| ProbeUnavailable::Absent("tracing: no task iterator".into()))
    }

    fn read(&mut self) -> io::Result<TaskIter> {
        Ok(TaskIter(Some(self.0.clone())))
    }
}

fn attach_iter(programs: &mut Ebpf, name: &str, btf: &Btf) -> Result<OwnedFd, ProgramError> {
    let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
    let program: &mut Iter = program.try_into()?;
    program.load("task", btf)?;
    Ok(bpf_sys::create_iter_link(program.fd()?.as_fd())?)
}

/// Checks permissions: without them `/proc` hides tasks of others, and in a container it has other IDs.
fn check_access(root: &Root) -> Result<(), ProbeUnavailable> {
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let held = held.map_err(|err| ProbeUnavailable::from_io_error("capabilities", &err.into()))?;
    let opens = held.intersects(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE);
    if !(held.contains(CapabilitySet::SYS_PTRACE) && opens) {
        let why = "the task iterator needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
        return Err(ProbeUnavailable::Denied(why.into()));
    }
    check_pid_namespace(root)
}

/// Checks that the iterator reports our own process as `/proc` does. It does not in a time namespace, or if a layout is
/// misunderstood.
fn check_own_record(root: &Root, task_iter: &TaskIter) -> Result<(), ProbeUnavailable> {
    let wrong = |what: &str| ProbeUnavailable::Absent(format!("the task iterator {what}"));
    let text = std::fs::read(root.proc("self/stat"))
        .map_err(|err| ProbeUnavailable::from_io_error("/proc/self/stat", &err))?;
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    let (mut item, mut buf) = (None, Vec::new());
    let failed = |err| ProbeUnavailable::from_io_error("the task iterator", &err);
    let mut pass = task_iter.start_pass(false, None).map_err(failed)?;
    while let Some(records) = pass.next_records(&mut buf).map_err(failed)? {
        for record in records {
            match record.ok_or_else(|| wrong("reports a malformed record"))? {
                TaskIterItem::Full(record) if record.tid == own => {
                    item = Some(record.start_ns / (1_000_000_000 / USER_HZ));
                }
                _ => {}
            }
        }
    }
    match (item, parse_starttime(&text)) {
        (Some(item), Some(started)) if item == started => Ok(()),
        _ => Err(wrong("reports another start time than /proc: is this a time namespace?")),
    }
}

/// Returns field 22 of a `stat` line (proc_pid_stat(5)).
fn parse_starttime(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|b| *b == b')')?;
    let fields = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

impl TaskIter {
    /// Starts a pass over threads, or over processes with the threads to be added to them. `after`: the previous pass,
    /// if it was read to its end. If that was the last pass over processes, idle kernel threads are reported as
    /// [`TaskIterItem::Unchanged`], which spares reading and comparing hundreds of them at every scan.
    pub fn start_pass(&self, threads: bool, after: Option<PassGeneration>) -> io::Result<TaskIterPass> {
        let held = self.0.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let previous = if threads { 0 } else { held.passes.fetch_add(1, Relaxed) };
        let link = match after {
            _ if threads => &held.threads,
            Some(PassGeneration(after)) if after == previous => &held.changes,
            _ => &held.processes,
        };
        Ok(TaskIterPass {
            fd: bpf_sys::create_iter(link.as_fd())?,
            last_tid: 0,
            generation: PassGeneration(previous + 1),
        })
    }
}

impl TaskIterPass {
    /// Identifies this pass for the next one.
    pub fn generation(&self) -> PassGeneration {
        self.generation
    }

    /// Returns the next tasks; `None` after the last one. A malformed record is `None`.
    pub fn next_records<'a>(
        &'a mut self,
        buf: &'a mut Vec<u8>,
    ) -> io::Result<Option<impl Iterator<Item = Option<TaskIterItem>> + 'a>> {
        buf.resize(READ_LEN, 0);
        let read = loop {
            match rustix::io::read(&self.fd, &mut buf[..]) {
                // The kernel returns this after very many tasks without output.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                other => break other?,
            }
        };
        Ok((read > 0).then(|| parse_ascending(&buf[..read], &mut self.last_tid)))
    }
}

/// Parses records whose thread IDs ascend from `last`; anything else is malformed.
fn parse_ascending<'a>(bytes: &'a [u8], last: &'a mut u32) -> impl Iterator<Item = Option<TaskIterItem>> + 'a {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let item = match TaskIterItem::parse(rest) {
            _ if rest.is_empty() => return None,
            Some((item, behind)) => {
                rest = behind;
                Some(item).filter(|item| item.tid() > *last)
            }
            None => {
                rest = &[];
                None
            }
        };
        *last = item.as_ref().map_or(*last, TaskIterItem::tid);
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::record::tests::{record_bytes, unchanged_bytes};
    use super::*;

    #[test]
    fn only_ascending_thread_ids_are_accepted() {
        let record = |tid| record_bytes(&TaskRecord { tid, pid: 3, ..TaskRecord::default() });
        let mut last = 0;
        let bytes = [record(3), unchanged_bytes(5), record(7), record(7), unchanged_bytes(6), record(9)].concat();
        let item: Vec<_> = parse_ascending(&bytes[..bytes.len() - 1], &mut last).map(|r| r.map(|r| r.tid())).collect();
        assert_eq!(
            item,
            [Some(3), Some(5), Some(7), None, None, None],
            "the same one twice, one too late, and half a record"
        );
        assert_eq!(last, 7);
    }

    #[test]
    fn the_start_time_is_found_after_any_name() {
        let line = b"7 (a) b 1 (c)) S 1 1 1 0 -1 64 0 0 9 0 1 2 0 0 20 0 1 0 4711 0 3";
        assert_eq!(parse_starttime(line), Some(4711));
        assert_eq!((parse_starttime(b"7 (a"), parse_starttime(b"7 (a) S 1")), (None, None));
    }
}
