//! Reports all tasks by BPF iterators (`assets/trace/tasks.bpf.c`): the contents of the files of `/proc/PID` at a small
//! part of their cost.
//!
//! The iterator reports every task of the machine with the IDs of the initial PID namespace, whatever `/proc` would
//! show. So it is used only with permissions that show all of that in `/proc` too.

mod record;

use super::bpf_sys;
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::loader;
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::unavailable::{ProbeUnavailable, load_failure};
use crate::model::process::USER_HZ;
use crate::parse::task;
use crate::root::Root;
use aya::programs::{Iter, ProgramError};
use aya::{Btf, Ebpf};
pub(crate) use record::{TaskCounters, TaskRecord};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use rustix::time::ClockId;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("tasks");

/// Most bytes that one read returns (bpf_seq_read, kernel/bpf/bpf_iter.c).
const READ_LEN: usize = 32 << 10;

/// The loaded programs; dropping this and all [`TaskIter`]s unloads them.
pub struct TaskIterProbe(Arc<TaskIterPrograms>);

struct TaskIterPrograms {
    _programs: Ebpf,
    processes: OwnedFd,
    threads: OwnedFd,
}

/// Reports all tasks.
#[derive(Clone, Default)]
pub struct TaskIter(Option<Arc<TaskIterPrograms>>);

impl Probe for TaskIterProbe {
    type Output = TaskIter;
    const READING: &'static str = "the task iterator";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_access(&kernel.root)?;
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &[])?;
        let mut link =
            |name| attach_iter(&mut programs, name, &kernel.btf).map_err(|err| load_failure("the task iterator", &err));
        let (processes, threads) = (link("processes")?, link("threads")?);
        let programs = Arc::new(TaskIterPrograms { _programs: programs, processes, threads });
        let task_iter = TaskIter(Some(programs.clone()));
        check_own_record(&kernel.root, &task_iter)?;
        Ok(Self(programs))
    }

    fn read(&mut self) -> io::Result<TaskIter> {
        Ok(TaskIter(Some(self.0.clone())))
    }
}

/// Loads and attaches an iterator over tasks; returns the link.
pub(super) fn attach_iter(programs: &mut Ebpf, name: &str, btf: &Btf) -> Result<OwnedFd, ProgramError> {
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
    let text = std::fs::read(root.proc("self/stat"))
        .map_err(|err| ProbeUnavailable::from_io_error("/proc/self/stat", &err))?;
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    let mut reported = None;
    let read = task_iter.read_all(false, &mut Vec::new(), |record, _| {
        if record.tid == own {
            reported = Some(record.start_ns / (1_000_000_000 / USER_HZ));
        }
    });
    read.map_err(|err| ProbeUnavailable::from_io_error("the task iterator", &err))?;
    match task::stat(&text) {
        Some(stat) if reported == Some(stat.starttime) => Ok(()),
        _ => Err(ProbeUnavailable::Absent(
            "the task iterator reports another start time than /proc: is this a time namespace?".into(),
        )),
    }
}

impl TaskIter {
    /// Calls `each` with the record of every task and the time when it was read (CLOCK_BOOTTIME, ns), in the order of
    /// the thread IDs: all threads, or all processes with the threads to be added to them.
    ///
    /// # Errors
    ///
    /// The kernel returns one, or a record is malformed.
    pub fn read_all(&self, threads: bool, buf: &mut Vec<u8>, mut each: impl FnMut(&TaskRecord, u64)) -> io::Result<()> {
        let programs = self.0.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let fd = bpf_sys::create_iter(if threads { &programs.threads } else { &programs.processes }.as_fd())?;
        let mut last_tid = 0;
        buf.resize(READ_LEN, 0);
        loop {
            let now = bpf_sys::clock_ns(ClockId::Boottime);
            let len = match rustix::io::read(&fd, &mut buf[..]) {
                Ok(0) => return Ok(()),
                // The kernel returns EAGAIN after very many tasks without output.
                Err(Errno::INTR | Errno::AGAIN) => continue,
                read => read?,
            };
            for bytes in buf[..len].chunks(size_of::<TaskRecord>()) {
                let record = TaskRecord::parse(bytes).filter(|record| record.tid > last_tid);
                let record = record.ok_or_else(|| io::Error::other("invalid record"))?;
                last_tid = record.tid;
                each(&record, now);
            }
        }
    }
}
