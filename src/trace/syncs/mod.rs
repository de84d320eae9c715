//! Who waits for syncs, on which file: counted at the edge of the system calls (`assets/trace/syncs.bpf.c`).
//!
//! The tracepoints of system calls cost 10 to 50 ns on every system call of the machine, so this probe is there only
//! while somebody wants it ([`super::Tracer::want_syncs`]).

mod table;
mod waits;

use super::ground::Ground;
use super::object;
use super::{Probe, Without};
use crate::model::section::{Section, describe};
use crate::model::syncs::{Call, SyncsRaw};
use crate::root::Root;
use aya::maps::MapData;
use aya::{Ebpf, include_bytes_aligned};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use table::Table;
use waits::Waits;

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static OBJECT: &[u8] = include_bytes_aligned!("../../../assets/trace/syncs.bpf.o");

/// Where tracepoints are listed, below /sys/kernel.
const TRACEFS: [&str; 2] = ["tracing", "debug/tracing"];
/// Programs that count what io_uring syncs; which of them depends on the kernel.
const URING: [(&str, &str); 2] = [("uring_req", "io_uring_submit_req"), ("uring_sqe", "io_uring_submit_sqe")];

/// The maps of the kernel's side.
struct Maps {
    files: MapData,
    flying: MapData,
    slow: MapData,
    threshold: MapData,
    tallies: MapData,
}

/// Programs that count, as long as this lives.
pub struct Syncs {
    /// Holds the programs and what attaches them.
    _programs: Ebpf,
    maps: Maps,
    table: Table,
    waits: Waits,
    began_ns: u64,
    threshold: Duration,
    /// io_uring is looked at.
    uring: bool,
    without: Vec<String>,
}

impl Probe for Syncs {
    type Read = SyncsRaw;

    fn load(ground: &Ground) -> Result<Self, Without> {
        readable(&ground.root)?;
        let mut programs = object::open(ground, OBJECT, &[])?;
        let mut map = |name| object::take_map(&mut programs, name);
        let maps = Maps {
            files: map("files")?,
            flying: map("flying")?,
            slow: map("slow")?,
            threshold: map("threshold")?,
            tallies: map("tallies")?,
        };
        let waits = Waits::start(&ground.root, maps.flying.fd().as_fd())
            .map_err(|err| Without::from_io("no thread to look what syncs wait on", &err))?;
        let threshold = Duration::from_millis(crate::model::syncs::THRESHOLD_MS);
        let mut syncs = Self {
            maps,
            table: Table::new(ground.cpus),
            waits,
            began_ns: now(ClockId::Boottime),
            threshold,
            uring: false,
            without: Vec::new(),
            _programs: programs,
        };
        syncs.call_long(threshold).map_err(|err| Without::from_io("setting what is called long", &err))?;
        syncs.attach()?;
        Ok(syncs)
    }

    fn read(&mut self) -> Section<SyncsRaw> {
        let (boot, mono) = (now(ClockId::Boottime), now(ClockId::Monotonic));
        // The kernel's side dates by a clock that stands still while the machine sleeps.
        let ahead = boot.saturating_sub(mono);
        let maps = &self.maps;
        match self.table.read(maps, &self.waits, ahead) {
            Ok(read) => Section::Ok(SyncsRaw {
                began_ns: self.began_ns,
                at_ns: boot,
                threshold_ns: self.threshold.as_nanos() as u64,
                uring: self.uring.then_some(read.uring),
                without: self.without.clone(),
                files: read.files,
                slow: read.slow,
                flying: read.flying,
                lost: read.lost,
            }),
            Err(err) => Section::from_io("reading the counts of syncs", &err),
        }
    }
}

impl Syncs {
    /// Says from which duration on a sync is listed by itself.
    pub fn call_long(&mut self, threshold: Duration) -> io::Result<()> {
        let fd = self.maps.threshold.fd().as_fd();
        let map = super::kernel::Map::<4> { fd, value_len: 8 };
        map.put(&[0; 4], &mut (threshold.as_nanos() as u64).to_ne_bytes())?;
        self.threshold = threshold;
        Ok(())
    }

    /// Ends before begins: what begins is always seen to end. A call that cannot be had costs only itself.
    fn attach(&mut self) -> Result<(), Without> {
        let mut had = 0;
        let mut why = None;
        for call in Call::ALL.map(Call::name) {
            let pair = ["exit", "enter"].map(|side| (format!("{side}_{call}"), format!("sys_{side}_{call}")));
            let one = |(program, point): &(String, String)| {
                object::attach_classic(&mut self._programs, program, ("syscalls", point))
            };
            match pair.iter().try_for_each(one) {
                Ok(()) => had += 1,
                Err(refused) => {
                    self.without.extend(refused.why(0).map(|text| format!("{call} is not seen: {text}")));
                    why.get_or_insert(refused);
                }
            }
        }
        if let Some(why) = why.filter(|_| had == 0) {
            return Err(why);
        }
        let mut one = |(program, point): &(&str, &str)| {
            object::attach_classic(&mut self._programs, program, ("io_uring", point)).is_ok()
        };
        self.uring = URING.iter().any(&mut one);
        Ok(())
    }
}

/// Whether we may look where tracepoints are listed.
fn readable(root: &Root) -> Result<(), Without> {
    let mut refusal = None;
    for place in TRACEFS {
        let point = format!("kernel/{place}/events/syscalls/sys_enter_fsync/id");
        match std::fs::read(root.sys(&point)) {
            Ok(_) => return Ok(()),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => drop(refusal.get_or_insert(err)),
        }
    }
    Err(match refusal {
        Some(err) if err.kind() == io::ErrorKind::PermissionDenied => Without::Denied(
            "tracing of syncs needs CAP_DAC_READ_SEARCH besides CAP_BPF and CAP_PERFMON, to read /sys/kernel/tracing; \
             run with sudo"
                .into(),
        ),
        Some(err) => Without::Absent(format!("tracing of syncs: /sys/kernel/tracing: {}", describe(&err))),
        None => Without::Absent(
            "tracing of syncs: no tracepoints of system calls in /sys/kernel/tracing: mount -t tracefs tracefs \
             /sys/kernel/tracing, or the kernel was built without CONFIG_FTRACE_SYSCALLS"
                .into(),
        ),
    })
}

fn now(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Maps {
    fn fd(map: &MapData) -> BorrowedFd<'_> {
        map.fd().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_tracepoints_is_told_how_to_get_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let why = readable(&root).unwrap_err();
        assert!(matches!(&why, Without::Absent(why) if why.contains("mount -t tracefs")), "{why:?}");
        let point = root.sys("kernel/debug/tracing/events/syscalls/sys_enter_fsync");
        std::fs::create_dir_all(&point).unwrap();
        std::fs::write(point.join("id"), "7\n").unwrap();
        assert_eq!(readable(&root), Ok(()));
    }
}
