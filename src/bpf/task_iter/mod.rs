//! All tasks at once, told by the kernel record by record (`assets/trace/tasks.bpf.c`): what the files of
//! `/proc/PID` say, at a small part of their cost.
//!
//! It tells of every task of the machine by the numbers of the first pid namespace, whatever the files would show.
//! So it is used only by who sees all that in the files as well.

mod record;

use super::kernel_info::KernelInfo;
use super::loader::{self, load_failure};
use super::{Probe, ProbeUnavailable, bpf_sys};
use crate::model::process::USER_HZ;
use crate::model::reading::Reading;
use crate::root::Root;
use aya::programs::{Iter, ProgramError};
use aya::{Btf, Ebpf, include_bytes_aligned};
pub use record::{TaskCounters, TaskIterItem, TaskRecord};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static BPF_OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/tasks.bpf.o");

/// Number of the first pid namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const INIT_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Bytes that the kernel gives with one read at most (bpf_seq_read, kernel/bpf/bpf_iter.c).
const READ_LEN: usize = 32 << 10;

/// Programs that tell tasks, as long as this lives.
pub struct TaskIterProbe(Arc<TaskIterPrograms>);

/// What keeps the programs in the kernel.
struct TaskIterPrograms {
    _programs: Ebpf,
    processes: OwnedFd,
    changes: OwnedFd,
    threads: OwnedFd,
    /// Ways gone through processes.
    passes: AtomicU64,
}

/// A way to go through all tasks, again and again.
#[derive(Clone, Default)]
pub struct TaskIter(Option<Arc<TaskIterPrograms>>);

/// One way through all tasks, in the order of their thread ids.
pub struct TaskIterPass {
    fd: OwnedFd,
    /// The task told last.
    last_tid: u32,
    generation: PassGeneration,
}

/// Which way through the processes it was. One that follows it, with none in between, need not tell all again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassGeneration(u64);

impl Probe for TaskIterProbe {
    type Output = TaskIter;

    fn load(ground: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_access(&ground.root)?;
        let mut programs = loader::open_object(ground, BPF_OBJECT, &[])?;
        let mut link = |name| {
            attach_iter(&mut programs, name, &ground.btf).map_err(|err| load_failure("the iterator of tasks", &err))
        };
        let (processes, changes, threads) = (link("processes")?, link("changes")?, link("threads")?);
        let turns = AtomicU64::new(0);
        let held = TaskIterPrograms { _programs: programs, processes, changes, threads, passes: turns };
        let walks = TaskIter(Some(Arc::new(held)));
        check_own_record(&ground.root, &walks)?;
        walks.0.map(Self).ok_or_else(|| ProbeUnavailable::Absent("tracing: no iterator of tasks".into()))
    }

    fn read(&mut self) -> Reading<TaskIter> {
        Reading::Ok(TaskIter(Some(self.0.clone())))
    }
}

fn attach_iter(programs: &mut Ebpf, name: &str, btf: &Btf) -> Result<OwnedFd, ProgramError> {
    let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
    let program: &mut Iter = program.try_into()?;
    program.load("task", btf)?;
    Ok(bpf_sys::create_iter_link(program.fd()?.as_fd())?)
}

/// Files hide what is not ours from who lacks these rights, and tell other numbers in a container.
fn check_access(root: &Root) -> Result<(), ProbeUnavailable> {
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let held = held.map_err(|err| ProbeUnavailable::from_io_error("capabilities", &err.into()))?;
    let opens = held.intersects(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE);
    if !(held.contains(CapabilitySet::SYS_PTRACE) && opens) {
        let why = "the iterator of tasks needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
        return Err(ProbeUnavailable::Denied(why.into()));
    }
    let namespace = std::fs::metadata(root.proc("self/ns/pid"));
    match namespace.map(|found| found.ino()) {
        Ok(INIT_PID_NAMESPACE) => Ok(()),
        Ok(_) => Err(ProbeUnavailable::Absent("the iterator of tasks is for the first pid namespace only".into())),
        Err(err) => Err(ProbeUnavailable::from_io_error("/proc/self/ns/pid", &err)),
    }
}

/// Whether it tells of ourselves what our own file tells: not so in a time namespace, or should anything be
/// misunderstood.
fn check_own_record(root: &Root, walks: &TaskIter) -> Result<(), ProbeUnavailable> {
    let wrong = |what: &str| ProbeUnavailable::Absent(format!("the iterator of tasks {what}"));
    let text = std::fs::read(root.proc("self/stat"))
        .map_err(|err| ProbeUnavailable::from_io_error("/proc/self/stat", &err))?;
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    let mut told = None;
    let mut buf = Vec::new();
    let mut walk =
        walks.start_pass(false, None).map_err(|err| ProbeUnavailable::from_io_error("the iterator of tasks", &err))?;
    while let Some(records) =
        walk.next_records(&mut buf).map_err(|err| ProbeUnavailable::from_io_error("the iterator of tasks", &err))?
    {
        for record in records {
            match record.ok_or_else(|| wrong("tells what is not understood"))? {
                TaskIterItem::Full(record) if record.tid == own => {
                    told = Some(record.start_ns / (1_000_000_000 / USER_HZ));
                }
                _ => {}
            }
        }
    }
    match (told, parse_starttime(&text)) {
        (Some(told), Some(started)) if told == started => Ok(()),
        _ => Err(wrong("tells another start time than /proc: a time namespace?")),
    }
}

/// Field 22 of a `stat` line (proc_pid_stat(5)).
fn parse_starttime(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|b| *b == b')')?;
    let fields = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

impl TaskIter {
    /// Begins a way: each thread by itself, or processes as wholes, with their other threads to be added. `after`:
    /// the way before it, if it was gone to its end and everything taken; where it was the last one through the
    /// processes, threads of the kernel that did nothing since are told as [`Told::Calm`].
    pub fn start_pass(&self, threads: bool, after: Option<PassGeneration>) -> io::Result<TaskIterPass> {
        let held = self.0.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let before = if threads { 0 } else { held.passes.fetch_add(1, Relaxed) };
        let link = match after {
            _ if threads => &held.threads,
            Some(PassGeneration(after)) if after == before => &held.changes,
            _ => &held.processes,
        };
        Ok(TaskIterPass {
            fd: bpf_sys::create_iter(link.as_fd())?,
            last_tid: 0,
            generation: PassGeneration(before + 1),
        })
    }
}

impl TaskIterPass {
    /// What a way through processes that follows this one is to be told.
    pub fn generation(&self) -> PassGeneration {
        self.generation
    }

    /// The next tasks; `None` after the last. A record that is not understood comes as `None`.
    pub fn next_records<'a>(
        &'a mut self,
        buf: &'a mut Vec<u8>,
    ) -> io::Result<Option<impl Iterator<Item = Option<TaskIterItem>> + 'a>> {
        buf.resize(READ_LEN, 0);
        let read = loop {
            match rustix::io::read(&self.fd, &mut buf[..]) {
                // It says so after very many tasks of which it told nothing.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                other => break other?,
            }
        };
        Ok((read > 0).then(|| parse_ascending(&buf[..read], &mut self.last_tid)))
    }
}

/// Records whose thread ids ascend from `last`; anything else is damage.
fn parse_ascending<'a>(bytes: &'a [u8], last: &'a mut u32) -> impl Iterator<Item = Option<TaskIterItem>> + 'a {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let told = match TaskIterItem::parse(rest) {
            _ if rest.is_empty() => return None,
            Some((told, behind)) => {
                rest = behind;
                Some(told).filter(|told| told.tid() > *last)
            }
            None => {
                rest = &[];
                None
            }
        };
        *last = told.as_ref().map_or(*last, TaskIterItem::tid);
        Some(told)
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
        let told: Vec<_> = parse_ascending(&bytes[..bytes.len() - 1], &mut last).map(|r| r.map(|r| r.tid())).collect();
        assert_eq!(
            told,
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
