//! Syncs by process and file, counted at system call entry and exit (`assets/trace/syncs.bpf.c`).
//!
//! System call tracepoints cost 10 to 50 ns on every system call of the machine, so this probe is loaded only on
//! request ([`super::Tracer::request_syncs`]).

pub(super) mod tables;
mod wait_sampler;

use super::bpf_sys::{BpfMap, clock_ns};
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::loader;
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::request_control::RequestedProbe;
use super::unavailable::ProbeUnavailable;
use crate::model::reading::describe_io_error;
use crate::model::syncs::{NOT_REQUESTED, SyncCall, SyncsRaw};
use crate::root::Root;
use crate::tuning::sudo::privilege_advice;
use aya::Ebpf;
use rustix::time::ClockId;
use std::io;
use std::time::Duration;
use strum::VariantArray as _;
use tables::SyncTables;
use wait_sampler::WaitSampler;

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("syncs");

/// Mount points of tracefs below /sys/kernel.
const TRACEFS_DIRS: [&str; 2] = ["tracing", "debug/tracing"];
/// Programs that count syncs by io_uring; the kernel version decides which one attaches.
const URING_PROGRAMS: [(&str, &str); 2] = [("uring_req", "io_uring_submit_req"), ("uring_sqe", "io_uring_submit_sqe")];

pub struct SyncProbe {
    _programs: Ebpf,
    tables: SyncTables,
    threshold_map: BpfMap<4>,
    wait_sampler: WaitSampler,
    began_ns: u64,
    threshold: Duration,
    has_uring: bool,
    unavailable: Vec<String>,
}

impl Probe for SyncProbe {
    type Output = SyncsRaw;
    const READING: &'static str = "reading syncs";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_pid_namespace(&kernel.root)?;
        check_tracefs(&kernel.root)?;
        let programs = loader::open_object(kernel, BPF_OBJECT, &[])?;
        let tables = SyncTables::open(&programs, kernel.cpus)?;
        let threshold_map = loader::open_map(&programs, "threshold", 8)?;
        let waits = tables.start_wait_sampler(&kernel.root);
        let waits =
            waits.map_err(|err| ProbeUnavailable::from_io_error("no thread to sample what syncs wait on", &err))?;
        let threshold = Duration::from_millis(crate::model::syncs::SLOW_THRESHOLD_MS);
        let mut syncs = Self {
            tables,
            threshold_map,
            wait_sampler: waits,
            began_ns: clock_ns(ClockId::Boottime),
            threshold,
            has_uring: false,
            unavailable: Vec::new(),
            _programs: programs,
        };
        let set = syncs.set_request(threshold);
        set.map_err(|err| ProbeUnavailable::from_io_error("setting the threshold of slow syncs", &err))?;
        syncs.attach()?;
        Ok(syncs)
    }

    fn read(&mut self) -> io::Result<SyncsRaw> {
        let (boot, mono) = (clock_ns(ClockId::Boottime), clock_ns(ClockId::Monotonic));
        // The kernel side uses CLOCK_MONOTONIC, which stops during suspend.
        let read = self.tables.read(&self.wait_sampler, boot.saturating_sub(mono))?;
        Ok(SyncsRaw {
            tracing_started_ns: self.began_ns,
            read_ns: boot,
            threshold_ns: self.threshold.as_nanos() as u64,
            io_uring: read.io_uring.filter(|_| self.has_uring),
            unavailable: self.unavailable.clone(),
            ..read
        })
    }
}

impl RequestedProbe for SyncProbe {
    /// The duration from which a sync is listed by itself.
    type Request = Duration;
    const NOT_REQUESTED: &'static str = NOT_REQUESTED;
    const LOADING: &'static str = "tracing of syncs is being loaded";
    const THREAD: &'static str = "tracing-syncs";

    fn set_request(&mut self, threshold: Duration) -> io::Result<()> {
        self.threshold_map.insert(&[0; 4], &mut (threshold.as_nanos() as u64).to_ne_bytes())?;
        self.threshold = threshold;
        Ok(())
    }
}

impl SyncProbe {
    /// Attaches exits before entries, so that every call that is seen to start is seen to end. A call that cannot be
    /// traced affects only itself.
    fn attach(&mut self) -> Result<(), ProbeUnavailable> {
        let mut attached = 0;
        let mut why = None;
        for call in SyncCall::VARIANTS.iter().map(|call| call.name()) {
            let pair = ["exit", "enter"].map(|side| (format!("{side}_{call}"), format!("sys_{side}_{call}")));
            let attach_one = |(program, point): &(String, String)| {
                loader::attach_tracefs(&mut self._programs, program, ("syscalls", point))
            };
            match pair.iter().try_for_each(attach_one) {
                Ok(()) => attached += 1,
                Err(refused) => {
                    self.unavailable
                        .extend(refused.unavailable_reason(0).map(|text| format!("{call} is not traced: {text}")));
                    why.get_or_insert(refused);
                }
            }
        }
        if let Some(why) = why.filter(|_| attached == 0) {
            return Err(why);
        }
        let mut attach_one = |(program, point): &(&str, &str)| {
            loader::attach_tracefs(&mut self._programs, program, ("io_uring", point)).is_ok()
        };
        self.has_uring = URING_PROGRAMS.iter().any(&mut attach_one);
        Ok(())
    }
}

/// Checks that the tracepoints of tracefs are readable.
fn check_tracefs(root: &Root) -> Result<(), ProbeUnavailable> {
    let mut refusal = None;
    for place in TRACEFS_DIRS {
        match std::fs::read(root.sys(&format!("kernel/{place}/events/syscalls/sys_enter_fsync/id"))) {
            Ok(_) => return Ok(()),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => drop(refusal.get_or_insert(err)),
        }
    }
    let text = match refusal {
        Some(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            return Err(ProbeUnavailable::Denied(format!(
                "tracing of syncs needs CAP_DAC_READ_SEARCH besides CAP_BPF and CAP_PERFMON, to read \
                 /sys/kernel/tracing; {}",
                privilege_advice()
            )));
        }
        Some(err) => format!("/sys/kernel/tracing: {}", describe_io_error(&err)),
        None => {
            "no tracepoints of system calls in /sys/kernel/tracing: mount -t tracefs tracefs /sys/kernel/tracing, or \
                 the kernel was built without CONFIG_FTRACE_SYSCALLS"
                .into()
        }
    };
    Err(ProbeUnavailable::Absent(format!("tracing of syncs: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tracefs_is_reported_with_the_mount_command() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let why = check_tracefs(&root).unwrap_err();
        assert!(matches!(&why, ProbeUnavailable::Absent(why) if why.contains("mount -t tracefs")), "{why:?}");
        let point = root.sys("kernel/debug/tracing/events/syscalls/sys_enter_fsync");
        std::fs::create_dir_all(&point).unwrap();
        std::fs::write(point.join("id"), "7\n").unwrap();
        assert_eq!(check_tracefs(&root), Ok(()));
    }
}
