//! What tasks wait for (`assets/trace/waits.bpf.c`).
//!
//! It costs some time for every sleep and every request, so this probe is loaded only on request
//! ([`super::Tracer::request_waits`]).

pub(super) mod symbols;
pub(super) mod tables;

use super::bpf_sys::{BpfMap, clock_ns, create_iter};
use super::chain::{self, Chained};
use super::io_accounting::{IO_START, RQ_INSERT};
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::loader::{self, attach_all, open_map};
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::request_control::RequestedProbe;
use super::task_iter::attach_iter;
use super::unavailable::{ProbeUnavailable, load_failure, note_missing};
use crate::model::task_waits::{NOT_REQUESTED, TaskWaitsRaw};
use aya::Ebpf;
use aya::programs::ProgramError;
use rustix::io::Errno;
use rustix::time::ClockId;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use symbols::Symbols;
use tables::WaitTables;

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("waits");

pub struct TaskWaitProbe {
    _chained: Option<Chained>,
    _programs: Ebpf,
    tables: WaitTables,
    drops: BpfMap<4>,
    began_ns: u64,
    unavailable: Vec<String>,
}

impl Probe for TaskWaitProbe {
    type Output = Arc<TaskWaitsRaw>;
    const READING: &'static str = "reading waits of tasks";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_pid_namespace(&kernel.root)?;
        let symbols = Symbols::load(&kernel.root).map_err(ProbeUnavailable::Absent)?;
        let arguments = |point: &str| kernel.tracepoints.argument_count(point);
        let settings = [
            ("RQ_INSERT_QUEUE", arguments("block_rq_insert") == Some(2)),
            ("HAS_STATE_ARGUMENT", arguments("sched_switch") == Some(4)),
        ];
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &settings)?;
        let tables = WaitTables::open(&programs, symbols, &kernel.root)?;
        let drops = open_map(&programs, "drops", 8 * kernel.cpus)?;
        let has_io_start = arguments("block_io_start").is_some();
        let places = [(IO_START.0, IO_START.1, "after_start")];
        let chained = match chain::requests(&kernel.requests).ok().filter(|_| has_io_start) {
            Some(requests) => Chained::new(&requests, &mut programs, &kernel.btf, &places, &[]).ok(),
            None => None,
        };
        let mut attach = |pairs: &[_]| attach_all(&mut programs, &kernel.btf, pairs);
        let mut unavailable = Vec::new();
        if chained.is_none() {
            let request = if has_io_start { IO_START } else { RQ_INSERT };
            note_missing(&mut unavailable, "devices that tasks wait for", &attach(&[request]));
        }
        let locks = [("contention_end", "contention_end"), ("contention_begin", "contention_begin")];
        note_missing(&mut unavailable, "holders of locks, and frozen file systems", &attach(&locks));
        let began_ns = clock_ns(ClockId::Boottime);
        attach(&[("switched", "sched_switch")])?;
        let asleep = find_sleeping(&mut programs, kernel).map_err(|err| load_failure("tasks that sleep already", &err));
        note_missing(&mut unavailable, "waits that began before tracing", &asleep);
        Ok(Self { _chained: chained, _programs: programs, tables, drops, began_ns, unavailable })
    }

    fn read(&mut self) -> io::Result<Arc<TaskWaitsRaw>> {
        let read = self.tables.read()?;
        Ok(Arc::new(TaskWaitsRaw {
            tracing_started_ns: self.began_ns,
            dropped: self.drops.sum_cpus(&[0; 4])?,
            unavailable: self.unavailable.clone(),
            ..read
        }))
    }
}

/// Lets the kernel side note the tasks that sleep now.
fn find_sleeping(programs: &mut Ebpf, kernel: &KernelInfo) -> Result<(), ProgramError> {
    let link = attach_iter(programs, "asleep", &kernel.btf)?;
    let iter = create_iter(link.as_fd())?;
    let mut buf = [0; 64];
    loop {
        match rustix::io::read(&iter, &mut buf) {
            Ok(0) => return Ok(()),
            // The kernel returns EAGAIN after very many tasks without output.
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(err) => return Err(io::Error::from(err).into()),
        }
    }
}

impl RequestedProbe for TaskWaitProbe {
    type Request = ();
    const NOT_REQUESTED: &'static str = NOT_REQUESTED;
    const LOADING: &'static str = "tracing of waits is being loaded";
    const THREAD: &'static str = "tracing-waits";

    fn set_request(&mut self, (): ()) -> io::Result<()> {
        Ok(())
    }
}
