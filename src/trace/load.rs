//! Brings the programs into the kernel, each by itself, and says in a line why one is not there.

use super::btf::Tracepoints;
use super::kernel::Map;
use super::maps::{Histograms, pack};
use crate::model::disk::DevId;
use crate::model::latency::LatencyRaw;
use crate::model::section::{Section, describe};
use crate::root::Root;
use aya::maps::{Map as Kept, MapData};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, Endianness, include_bytes_aligned};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static OBJECT: &[u8] = include_bytes_aligned!("../../assets/trace/latency.bpf.o");

/// The kernel's types, as it is told where they are missing.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Why tracing is not there.
type Without = Section<LatencyRaw>;

/// Programs that count, as long as this lives.
pub struct Loaded {
    /// Holds the programs and what attaches them.
    _programs: Ebpf,
    histograms: MapData,
    unknown: MapData,
    lost: MapData,
    known: Histograms,
    cpus: usize,
    without: Vec<String>,
}

impl Loaded {
    /// All histograms.
    pub fn read(&mut self) -> Section<LatencyRaw> {
        let fd = self.histograms.fd().as_fd();
        let read = self.known.add_unknown(fd, self.unknown.fd().as_fd()).and_then(|()| self.known.read(fd));
        match read.and_then(|devices| Ok((devices, lost(self.lost.fd().as_fd(), self.cpus)?))) {
            Ok((devices, lost)) => {
                let without = self.without.iter().cloned().chain(self.known.missing()).collect();
                Section::Ok(LatencyRaw { devices, lost, without })
            }
            Err(err) => Section::from_io("reading the histograms", &err),
        }
    }
}

/// Requests that could not be followed, over all CPUs.
fn lost(fd: BorrowedFd, cpus: usize) -> io::Result<u64> {
    let map = Map::<4> { fd, value_len: 8 * cpus };
    let mut value = vec![0; 8 * cpus];
    map.get(&[0; 4], &mut value)?;
    let cpu = |n: &[u8]| n.try_into().map_or(0, u64::from_ne_bytes);
    Ok(value.chunks_exact(8).map(cpu).fold(0, u64::wrapping_add))
}

/// Loads what can be loaded.
pub fn load(root: &Root) -> Result<Loaded, Without> {
    let types = types(root)?;
    allowed()?;
    let points = Tracepoints::parse(&types)
        .ok_or_else(|| Without::Absent(format!("{TYPES}: not in the form that is known here")))?;
    let btf = Btf::parse(&types, Endianness::default()).map_err(|err| refused(TYPES, &err))?;
    drop(types);
    let queue_first = |point: &str| u8::from(points.arguments(point) == Some(2));
    let (issue, queue) = (queue_first("block_rq_issue"), queue_first("block_bio_queue"));
    let cpus = aya::util::nr_cpus().map_err(|(what, err)| Without::from_io(what, &err))?;
    let mut programs = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("RQ_ISSUE_QUEUE", &issue, true)
        .override_global("BIO_QUEUE_QUEUE", &queue, true)
        .load(OBJECT)
        .map_err(|err| refused("the maps", &err))?;
    let mut map = |name: &str| match programs.take_map(name) {
        Some(Kept::PerCpuHashMap(map) | Kept::HashMap(map) | Kept::PerCpuArray(map)) => Ok(map),
        _ => Err(Without::Absent(format!("tracing: no map {name}"))),
    };
    let (histograms, unknown, lost) = (map("histograms")?, map("unknown")?, map("lost")?);
    let mut known = Histograms::new(cpus);
    let devices = devices(root);
    for key in wanted(&devices) {
        let added = known.add(histograms.fd().as_fd(), key);
        added.map_err(|err| Without::from_io("making the histograms", &err))?;
    }
    attach(&mut programs, &btf, &[("rq_issue", "block_rq_issue"), ("rq_complete", "block_rq_complete")])?;
    let bios = [("bio_queue", "block_bio_queue"), ("bio_complete", "block_bio_complete")];
    let mut without = Vec::new();
    // They are asked for every bio of every device: only where some device needs it.
    if devices.iter().any(|d| d.bios)
        && let Err(Section::Absent(why) | Section::Denied(why)) = attach(&mut programs, &btf, &bios)
    {
        without.push(format!("devices that work without requests (zram, md, dm): {why}"));
    }
    Ok(Loaded { _programs: programs, histograms, unknown, lost, known, cpus, without })
}

/// The kernel's types. Without them nothing may be loaded: what is not relocated would read at random.
fn types(root: &Root) -> Result<Vec<u8>, Without> {
    let read = std::fs::read(root.sys("kernel/btf/vmlinux"));
    let types = read.map_err(|err| match err.kind() {
        io::ErrorKind::NotFound => Without::Absent(format!(
            "tracing: no {TYPES}: the kernel was built without CONFIG_DEBUG_INFO_BTF"
        )),
        _ => Without::from_io(TYPES, &err),
    })?;
    if !root.is_live() {
        return Err(Without::Absent("tracing needs the running machine".into()));
    }
    if cfg!(target_endian = "big") {
        return Err(Without::Absent("tracing: built for little-endian machines only".into()));
    }
    Ok(types)
}

/// Whether the kernel lets us; asked before much memory is taken for nothing.
fn allowed() -> Result<(), Without> {
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let held = held.map_err(|err| Without::from_io("capabilities", &err.into()))?;
    let enough =
        held.contains(CapabilitySet::SYS_ADMIN) || held.contains(CapabilitySet::BPF | CapabilitySet::PERFMON);
    match enough {
        true => Ok(()),
        false => Err(Without::Denied("tracing needs CAP_BPF and CAP_PERFMON; run with sudo".into())),
    }
}

/// A block device that may do I/O.
struct Device {
    id: DevId,
    /// It takes bios; it has no requests.
    bios: bool,
    /// It has read, written, flushed before.
    used: [bool; 3],
}

/// Devices that have a size. One that cannot be read has none.
fn devices(root: &Root) -> Vec<Device> {
    let Ok(dir) = std::fs::read_dir(root.sys("block")) else { return Vec::new() };
    dir.flatten().filter_map(|entry| device(&entry.path())).collect()
}

fn device(dir: &Path) -> Option<Device> {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let number = |t: &str| t.parse::<u64>().ok();
    if number(text("size")?.trim())? == 0 {
        return None;
    }
    let dev = text("dev")?;
    let (major, minor) = dev.trim().split_once(':')?;
    let id = DevId { major: major.parse().ok()?, minor: minor.parse().ok()? };
    let stat = text("stat")?;
    let counts: Vec<u64> = stat.split_whitespace().filter_map(number).collect();
    // Documentation/block/stat.rst: the 1st, 5th and 16th field.
    let used = [0, 4, 15].map(|at| counts.get(at).is_some_and(|n| *n > 0));
    Some(Device { id, bios: !dir.join("mq").exists(), used })
}

/// The histograms to begin with: first of what has been used, then of what may be. The rest is made when a request
/// asks for it.
fn wanted(devices: &[Device]) -> Vec<super::maps::Key> {
    let of = |used: bool| {
        devices.iter().flat_map(move |d| {
            (0..3u32).zip(d.used).filter(move |(_, was)| *was == used).map(|(kind, _)| (pack(d.id), kind))
        })
    };
    of(true).chain(of(false)).collect()
}

/// Loads and attaches programs that are worth nothing without each other: each by name and tracepoint.
fn attach(programs: &mut Ebpf, btf: &Btf, which: &[(&str, &str)]) -> Result<(), Without> {
    let one = |programs: &mut Ebpf, name: &str, point: &str| -> Result<(), ProgramError> {
        let program = programs.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)?;
        let program: &mut BtfTracePoint = program.try_into()?;
        program.load(point, btf)?;
        program.attach().map(drop)
    };
    for (at, (name, point)) in which.iter().enumerate() {
        if let Err(err) = one(programs, name, point) {
            for (name, _) in &which[..at] {
                detach(programs, name);
            }
            return Err(refused(&format!("tracepoint {point}"), &err));
        }
    }
    Ok(())
}

/// Takes a program out of the kernel again.
fn detach(programs: &mut Ebpf, name: &str) {
    let program = programs.program_mut(name).and_then(|p| <&mut BtfTracePoint>::try_from(p).ok());
    if let Some(program) = program {
        // One that is not loaded is what is wanted.
        let _ = program.unload();
    }
}

/// A refusal in one line: the deepest cause, never the verifier's log.
fn refused(what: &str, err: &(dyn std::error::Error + 'static)) -> Without {
    let mut cause: &(dyn std::error::Error + 'static) = err;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    if code == Some(libc::EPERM) {
        return Without::Denied(format!(
            "tracing: the kernel refused {what}: a container, a seccomp filter or kernel lockdown forbids it"
        ));
    }
    // The verifier's answer to a program that it does not follow.
    if code == Some(libc::EACCES) {
        return Without::Absent(format!("tracing: this kernel does not accept the program for {what}"));
    }
    let why = match cause.downcast_ref::<io::Error>() {
        Some(io) => describe(io),
        None => cause.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    Without::Absent(format!("tracing: {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(devices: &[(&str, &str, &str, &str, bool)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        for (name, dev, size, stat, mq) in devices {
            let at = root.sys("block").join(name);
            std::fs::create_dir_all(&at).unwrap();
            for (file, text) in [("dev", dev), ("size", size), ("stat", stat)] {
                std::fs::write(at.join(file), format!("{text}\n")).unwrap();
            }
            if *mq {
                std::fs::create_dir(at.join("mq")).unwrap();
            }
        }
        (dir, root)
    }

    #[test]
    fn histograms_are_made_of_what_is_used_first() {
        let (_dir, root) = tree(&[
            ("loop0", "7:0", "0", "0 0 0 0", true),
            ("sda", "8:0", "99", "5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 1", true),
            ("zram0", "252:3", "8", "0 0 0 0 7 0 0 0 0 0 0", false),
        ]);
        let mut devices = devices(&root);
        devices.sort_by_key(|d| d.id);
        assert_eq!(devices.iter().map(|d| d.bios).collect::<Vec<_>>(), [false, true]);
        let (sda, zram) = (8 << 20, 252 << 20 | 3);
        assert_eq!(wanted(&devices), [(sda, 0), (sda, 2), (zram, 1), (sda, 1), (zram, 0), (zram, 2)]);
    }

    /// As the loader tells it: a long log, the kernel's answer behind it.
    #[derive(Debug)]
    struct Verifier(io::Error);

    impl std::fmt::Display for Verifier {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("0: (79) r6 = *(u64 *)(r1 +0)\n1: ...\n")
        }
    }

    impl std::error::Error for Verifier {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_refusal_is_one_line_and_keeps_its_kind() {
        let denied = refused("the maps", &io::Error::from_raw_os_error(libc::EPERM));
        assert!(matches!(&denied, Section::Denied(why) if why.contains("lockdown")), "{denied:?}");
        let other =
            refused("tracepoint block_rq_issue", &Verifier(io::Error::from_raw_os_error(libc::EINVAL)));
        assert_eq!(other, Section::Absent("tracing: tracepoint block_rq_issue: invalid argument".into()));
    }

    #[test]
    fn types_of_another_machine_are_not_used() {
        let (_dir, root) = tree(&[]);
        std::fs::create_dir_all(root.sys("kernel/btf")).unwrap();
        std::fs::write(root.sys("kernel/btf/vmlinux"), b"x").unwrap();
        assert_eq!(load(&root).err(), Some(Section::Absent("tracing needs the running machine".into())));
    }
}
