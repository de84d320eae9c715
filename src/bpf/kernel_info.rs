//! What every probe needs: the kernel's type information and the permission to load programs.

use super::btf::TracepointArguments;
use super::chain::SharedRequests;
use super::unavailable::{ProbeUnavailable, load_failure};
use crate::root::Root;
use crate::tuning::sudo::privilege_advice;
use aya::{Btf, Endianness};
use rustix::thread::CapabilitySet;
use std::io;

/// Path of the kernel's type information, as shown in messages.
const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";

/// The running kernel, inspected once for all probes. Takes about 20 MB, so it is dropped after loading.
pub struct KernelInfo {
    pub root: Root,
    /// Its types, against which programs are relocated.
    pub btf: Btf,
    pub tracepoints: TracepointArguments,
    /// The flags of requests are enumerators (since Linux 6.11), in 6.12 of an enumeration without a name.
    pub has_request_flag_enum: bool,
    /// Number of possible CPUs, as in per-CPU maps.
    pub cpus: usize,
    /// The programs of `assets/trace/requests.bpf.c`, which two probes share and others are called by. The first of the two
    /// stores them.
    pub(super) requests: SharedRequests,
}

impl KernelInfo {
    /// Errors: the reason why nothing can be traced.
    pub(super) fn detect(root: &Root, requests: &SharedRequests) -> Result<Self, ProbeUnavailable> {
        let types = read_btf(root)?;
        check_capabilities()?;
        check_lockdown(root)?;
        let points = TracepointArguments::parse(&types)
            .ok_or_else(|| ProbeUnavailable::Absent(format!("{BTF_PATH}: unknown format")))?;
        let has_request_flag_enum = types.split(|byte| *byte == 0).any(|name| name == b"__RQF_FLUSH_SEQ");
        let btf = Btf::parse(&types, Endianness::default()).map_err(|err| load_failure(BTF_PATH, &err))?;
        let cpus = aya::util::nr_cpus().map_err(|(what, err)| ProbeUnavailable::from_io_error(what, &err))?;
        let (root, requests) = (root.clone(), requests.clone());
        Ok(Self { root, btf, tracepoints: points, has_request_flag_enum, cpus, requests })
    }
}

/// Reads BTF. Without it nothing may be loaded: a program that is not relocated reads at random offsets.
fn read_btf(root: &Root) -> Result<Vec<u8>, ProbeUnavailable> {
    let read = std::fs::read(root.sys("kernel/btf/vmlinux"));
    let types = read.map_err(|err| match err.kind() {
        io::ErrorKind::NotFound => ProbeUnavailable::Absent(format!(
            "tracing: no {BTF_PATH}: the kernel was built without CONFIG_DEBUG_INFO_BTF"
        )),
        _ => ProbeUnavailable::from_io_error(BTF_PATH, &err),
    })?;
    if !root.is_live() {
        return Err(ProbeUnavailable::Absent("tracing needs the running machine; this is a captured tree".into()));
    }
    if cfg!(target_endian = "big") {
        return Err(ProbeUnavailable::Absent("tracing: built for little-endian machines only".into()));
    }
    Ok(types)
}

/// Checks permissions, before parsing BTF takes memory for nothing.
fn check_capabilities() -> Result<(), ProbeUnavailable> {
    let capabilities = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let capabilities = capabilities.map_err(|err| ProbeUnavailable::from_io_error("capabilities", &err.into()))?;
    let is_allowed = capabilities.contains(CapabilitySet::SYS_ADMIN)
        || capabilities.contains(CapabilitySet::BPF | CapabilitySet::PERFMON);
    match is_allowed {
        true => Ok(()),
        false => {
            let advice = privilege_advice();
            Err(ProbeUnavailable::Denied(format!("tracing needs CAP_BPF and CAP_PERFMON; {advice}")))
        }
    }
}

/// Checks that kernel lockdown allows programs to read kernel memory, which `integrity` does and `confidentiality` does
/// not. The state is in securityfs, and in the command line where that is not mounted.
fn check_lockdown(root: &Root) -> Result<(), ProbeUnavailable> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let is_locked = read(root.sys("kernel/security/lockdown")).contains("[confidentiality]")
        || read(root.proc("cmdline")).split_ascii_whitespace().any(|option| option == "lockdown=confidentiality");
    match is_locked {
        false => Ok(()),
        true => Err(ProbeUnavailable::Denied(
            "tracing: kernel lockdown is in confidentiality mode, which forbids it (boot with lockdown=integrity or none)"
                .into(),
        )),
    }
}

/// Checks that the process ids of programs are those of `/proc`: programs know tasks by their ids in the initial PID
/// namespace, and in another one these are the numbers of other tasks.
/// Errors: the reason why tasks cannot be named.
pub(super) fn check_pid_namespace(root: &Root) -> Result<(), ProbeUnavailable> {
    match root.is_initial_pid_namespace() {
        Ok(true) => Ok(()),
        Ok(false) => Err(ProbeUnavailable::Absent(
            "tracing: tasks can be identified only in the initial PID namespace, not in a container's own".into(),
        )),
        Err(err) => Err(ProbeUnavailable::from_io_error("/proc/self/ns/pid", &err)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::no_requests;
    use super::*;

    #[test]
    fn a_tree_without_btf_is_reported_by_path() {
        let dir = tempfile::tempdir().unwrap();
        let why = KernelInfo::detect(&Root::at(dir.path()), &no_requests()).err().unwrap();
        assert!(matches!(&why, ProbeUnavailable::Absent(why) if why.contains(BTF_PATH)), "{why:?}");
    }

    #[test]
    fn lockdown_is_named_as_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        for (place, text, is_allowed) in [
            (root.sys("kernel/security/lockdown"), "none integrity [confidentiality]\n", false),
            (root.sys("kernel/security/lockdown"), "none [integrity] confidentiality\n", true),
            (root.proc("cmdline"), "quiet lockdown=confidentiality ro\n", false),
        ] {
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
            assert_eq!(check_lockdown(&root).is_ok(), is_allowed, "{text}");
        }
    }

    #[test]
    fn btf_of_a_captured_tree_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        std::fs::create_dir_all(root.sys("kernel/btf")).unwrap();
        std::fs::write(root.sys("kernel/btf/vmlinux"), b"x").unwrap();
        let why = KernelInfo::detect(&root, &no_requests()).err();
        assert_eq!(
            why,
            Some(ProbeUnavailable::Absent("tracing needs the running machine; this is a captured tree".into()))
        );
    }
}
