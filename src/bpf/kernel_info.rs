//! What every probe stands on: the kernel's types, and leave to load programs.

use super::ProbeUnavailable;
use super::btf::TracepointArguments;
use super::loader::load_failure;
use crate::root::Root;
use aya::{Btf, Endianness};
use rustix::thread::CapabilitySet;
use std::io;

/// The kernel's types, as it is told where they are missing.
const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";

/// The running kernel, looked at once for all probes. Holds some 20 MB: not kept.
pub struct KernelInfo {
    /// Where its files are.
    pub root: Root,
    /// Its types, against which programs are relocated.
    pub btf: Btf,
    /// Its tracepoints and their arguments.
    pub tracepoints: TracepointArguments,
    /// Possible CPUs, as per-CPU maps count them.
    pub cpus: usize,
}

impl KernelInfo {
    /// Looks at the running kernel; else says why nothing can be traced.
    pub fn detect(root: &Root) -> Result<Self, ProbeUnavailable> {
        let types = read_btf(root)?;
        check_capabilities()?;
        let points = TracepointArguments::parse(&types)
            .ok_or_else(|| ProbeUnavailable::Absent(format!("{BTF_PATH}: not in the form that is known here")))?;
        let btf = Btf::parse(&types, Endianness::default()).map_err(|err| load_failure(BTF_PATH, &err))?;
        let cpus = aya::util::nr_cpus().map_err(|(what, err)| ProbeUnavailable::from_io_error(what, &err))?;
        Ok(Self { root: root.clone(), btf, tracepoints: points, cpus })
    }
}

/// The kernel's types. Without them nothing may be loaded: what is not relocated would read at random.
fn read_btf(root: &Root) -> Result<Vec<u8>, ProbeUnavailable> {
    let read = std::fs::read(root.sys("kernel/btf/vmlinux"));
    let types = read.map_err(|err| match err.kind() {
        io::ErrorKind::NotFound => ProbeUnavailable::Absent(format!(
            "tracing: no {BTF_PATH}: the kernel was built without CONFIG_DEBUG_INFO_BTF"
        )),
        _ => ProbeUnavailable::from_io_error(BTF_PATH, &err),
    })?;
    if !root.is_live() {
        return Err(ProbeUnavailable::Absent("tracing needs the running machine".into()));
    }
    if cfg!(target_endian = "big") {
        return Err(ProbeUnavailable::Absent("tracing: built for little-endian machines only".into()));
    }
    Ok(types)
}

/// Whether the kernel lets us; asked before much memory is taken for nothing.
fn check_capabilities() -> Result<(), ProbeUnavailable> {
    let held = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let held = held.map_err(|err| ProbeUnavailable::from_io_error("capabilities", &err.into()))?;
    let enough = held.contains(CapabilitySet::SYS_ADMIN) || held.contains(CapabilitySet::BPF | CapabilitySet::PERFMON);
    match enough {
        true => Ok(()),
        false => Err(ProbeUnavailable::Denied("tracing needs CAP_BPF and CAP_PERFMON; run with sudo".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_without_btf_is_reported_by_path() {
        let dir = tempfile::tempdir().unwrap();
        let why = KernelInfo::detect(&Root::at(dir.path())).err().unwrap();
        assert!(matches!(&why, ProbeUnavailable::Absent(why) if why.contains(BTF_PATH)), "{why:?}");
    }

    #[test]
    fn btf_of_a_captured_tree_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.sys("kernel/btf")).unwrap();
        std::fs::write(root.sys("kernel/btf/vmlinux"), b"x").unwrap();
        let why = KernelInfo::detect(&root).err();
        assert_eq!(why, Some(ProbeUnavailable::Absent("tracing needs the running machine".into())));
    }
}
