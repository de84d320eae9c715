//! What every probe stands on: the kernel's types, and leave to load programs.

use super::Without;
use super::btf::Tracepoints;
use super::object::refused;
use crate::root::Root;
use aya::{Btf, Endianness};
use rustix::thread::CapabilitySet;
use std::io;

/// The kernel's types, as it is told where they are missing.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The running kernel, looked at once for all probes. Holds some 20 MB: not kept.
pub struct Ground {
    /// Where its files are.
    pub root: Root,
    /// Its types, against which programs are relocated.
    pub btf: Btf,
    /// Its tracepoints and their arguments.
    pub points: Tracepoints,
    /// Possible CPUs, as per-CPU maps count them.
    pub cpus: usize,
}

impl Ground {
    /// Looks at the running kernel; else says why nothing can be traced.
    pub fn look(root: &Root) -> Result<Self, Without> {
        let types = types(root)?;
        allowed()?;
        let points = Tracepoints::parse(&types)
            .ok_or_else(|| Without::Absent(format!("{TYPES}: not in the form that is known here")))?;
        let btf = Btf::parse(&types, Endianness::default()).map_err(|err| refused(TYPES, &err))?;
        let cpus = aya::util::nr_cpus().map_err(|(what, err)| Without::from_io(what, &err))?;
        Ok(Self { root: root.clone(), btf, points, cpus })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_without_type_information_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let why = Ground::look(&Root::at(dir.path())).err().unwrap();
        assert!(matches!(&why, Without::Absent(why) if why.contains(TYPES)), "{why:?}");
    }

    #[test]
    fn types_of_another_machine_are_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.sys("kernel/btf")).unwrap();
        std::fs::write(root.sys("kernel/btf/vmlinux"), b"x").unwrap();
        let why = Ground::look(&root).err();
        assert_eq!(why, Some(Without::Absent("tracing needs the running machine".into())));
    }
}
