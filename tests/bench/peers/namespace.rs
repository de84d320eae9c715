//! A mount namespace of the benchmark's own, which ends with it: many mounts, and another number of possible CPUs.

use anyhow::Context;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number of possible CPUs, which sizes the per-CPU values that are read from BPF maps.
const POSSIBLE_CPUS: &str = "/sys/devices/system/cpu/possible";

/// Enters a new mount namespace, in which `mounts` file systems are mounted below `dir`, half of them tmpfs and half
/// bind mounts of a directory on the disk, and the machine has `cpus` possible CPUs if that is not 0. The process must
/// have one thread.
#[allow(unsafe_code)]
pub fn enter(dir: &Path, mounts: u32, cpus: u32) -> anyhow::Result<()> {
    if mounts == 0 && cpus == 0 {
        return Ok(());
    }
    // SAFETY: takes no pointer.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == -1 {
        return Err(std::io::Error::last_os_error()).context("a mount namespace, which needs root");
    }
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
    if cpus > 0 {
        let file = dir.join("possible");
        fs::write(&file, format!("0-{}\n", cpus - 1))?;
        mount(Some(&file), Path::new(POSSIBLE_CPUS), None, libc::MS_BIND)?;
    }
    let (source, parent) = (dir.join("source"), dir.join("mounts"));
    fs::create_dir(&source)?;
    fs::create_dir(&parent)?;
    // Holds the mount points, so that they end with the namespace, too.
    mount(None, &parent, Some("tmpfs"), 0)?;
    for i in 0..mounts {
        let at = parent.join(format!("mount-{i:05}"));
        fs::create_dir(&at)?;
        match i % 2 {
            0 => mount(None, &at, Some("tmpfs"), 0)?,
            _ => mount(Some(&source), &at, None, libc::MS_BIND)?,
        }
    }
    Ok(())
}

#[allow(unsafe_code)]
fn mount(source: Option<&Path>, at: &Path, fs_type: Option<&str>, flags: libc::c_ulong) -> anyhow::Result<()> {
    let source = CString::new(source.map_or(&b"none"[..], |path| path.as_os_str().as_bytes()))?;
    let target = CString::new(at.as_os_str().as_bytes())?;
    let fs_type = CString::new(fs_type.unwrap_or_default())?;
    // SAFETY: C strings that outlive the call; no file system used here needs data.
    match unsafe { libc::mount(source.as_ptr(), target.as_ptr(), fs_type.as_ptr(), flags, std::ptr::null()) } {
        -1 => Err(std::io::Error::last_os_error()).with_context(|| format!("mount at {}", at.display())),
        _ => Ok(()),
    }
}
