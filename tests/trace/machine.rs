//! Helpers for tracing tests: a loop device in memory, direct reads, an unprivileged user, and the BPF programs that
//! are loaded.

use aya::programs::loaded_programs;
use iotop_plus::root::Root;
use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// User and group ID of nobody.
const NOBODY: u32 = 65_534;

/// Checks that this machine permits tracing.
pub fn check_tracing() -> Result<(), String> {
    let capabilities = rustix::thread::capabilities(None).map_err(|err| err.to_string())?.effective;
    if !capabilities.contains(CapabilitySet::SYS_ADMIN) {
        return Err("needs root".into());
    }
    let btf = Root::live().sys("kernel/btf/vmlinux");
    btf.exists().then_some(()).ok_or_else(|| format!("no {}", btf.display()))
}

/// Checks that the compiler of the BPF objects is installed.
pub fn check_clang() -> Result<(), String> {
    for tool in ["clang-14", "llvm-strip-14", "llvm-objcopy-14"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("no {tool} here"));
        }
    }
    Ok(())
}

/// A loop device on a file in memory.
pub struct LoopDevice {
    /// Device node.
    pub path: PathBuf,
    /// Device number.
    pub id: (u32, u32),
}

impl LoopDevice {
    /// Creates one of that many bytes.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let dir = Root::live().dev("shm");
        let file = tempfile::NamedTempFile::new_in(dir).map_err(|err| format!("no file in memory: {err}"))?;
        // Data instead of a hole, so that reads reach the file.
        std::fs::write(file.path(), vec![1; bytes as usize]).map_err(|err| err.to_string())?;
        let out = Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output();
        let out = out.map_err(|err| format!("losetup: {err}"))?;
        if !out.status.success() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&out.stderr).trim()));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
        let rdev = rustix::fs::stat(&path).map_err(|err| err.to_string())?.st_rdev;
        Ok(Self { path, id: (rustix::fs::major(rdev), rustix::fs::minor(rdev)) })
    }

    /// Number of completed reads, from `/proc/diskstats`.
    pub fn reads(&self) -> u64 {
        self.diskstats(3)
    }

    /// Number of completed writes, from `/proc/diskstats`.
    pub fn writes(&self) -> u64 {
        self.diskstats(7)
    }

    fn diskstats(&self, field: usize) -> u64 {
        let text = std::fs::read_to_string(Root::live().proc("diskstats")).unwrap();
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let line = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|w| w[2] == name);
        line.unwrap()[field].parse().unwrap()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// Reads 4 KiB blocks with O_DIRECT, one after the other.
pub fn read_direct(path: &Path, times: usize) {
    read_direct_at(path, 4096, (0..times).map(|i| (i * 7919 % 4096) as u64 * 4096));
}

/// Reads blocks of `len` bytes with O_DIRECT at these offsets, one after the other.
pub fn read_direct_at(path: &Path, len: usize, offsets: impl Iterator<Item = u64>) {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let mut buf = vec![0u8; len + 4096];
    let start = buf.as_ptr().align_offset(4096);
    for offset in offsets {
        assert_eq!(rustix::io::pread(&file, &mut buf[start..start + len], offset).unwrap(), len);
    }
}

/// Writes 4 KiB blocks with O_DIRECT and O_DSYNC, one after the other: each is a write with FUA, which the kernel replaces
/// by a write and a flush on a device without FUA, such as a loop device.
pub fn write_flushed(path: &Path, times: usize) {
    let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::DSYNC | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let buf = vec![0u8; 8192];
    let start = buf.as_ptr().align_offset(4096);
    for i in 0..times {
        let offset = (i * 7919 % 4096) as u64 * 4096;
        assert_eq!(rustix::io::pwrite(&file, &buf[start..start + 4096], offset).unwrap(), 4096);
    }
}

/// The program, installed where an unprivileged user can run it.
pub struct UnprivilegedUser(tempfile::TempDir);

impl UnprivilegedUser {
    /// Installs it.
    pub fn new() -> Result<Self, String> {
        let found = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err("no setpriv here".into());
        }
        let dir = tempfile::tempdir().map_err(|err| err.to_string())?;
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).map_err(|err| err.to_string())?;
        std::fs::copy(crate::pty_harness::BINARY, dir.path().join("iotop-plus")).map_err(|err| err.to_string())?;
        Ok(Self(dir))
    }

    /// Returns the command to run it as that user with only these capabilities.
    pub fn command(&self, capabilities: &[&str]) -> Command {
        let given: String = capabilities.iter().map(|c| format!(",+{c}")).collect();
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}")).arg("--clear-groups");
        command.arg(format!("--inh-caps=-all{given}")).arg(format!("--ambient-caps=-all{given}"));
        command.arg(self.0.path().join("iotop-plus"));
        command
    }
}

/// Returns the IDs of the BPF programs held by a process.
pub fn bpf_programs(pid: u32) -> Vec<u32> {
    bpf_programs_where(pid, |_| true)
}

/// Returns those attached to tracepoints of tracefs, as for system calls.
#[allow(dead_code)]
pub fn tracepoint_programs(pid: u32) -> Vec<u32> {
    // BPF_PROG_TYPE_TRACEPOINT
    bpf_programs_where(pid, |text| text.lines().any(|l| l.split_whitespace().eq(["prog_type:", "5"])))
}

fn bpf_programs_where(pid: u32, which: impl Fn(&str) -> bool) -> Vec<u32> {
    let dir = Root::live().proc(&format!("{pid}/fdinfo"));
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let text = entries.flatten().filter_map(|e| std::fs::read_to_string(e.path()).ok());
    // Links name the program as well; counting it once is enough.
    let ids = text.filter(|t| t.contains("prog_jited") && which(t));
    ids.filter_map(|t| t.lines().find_map(|l| l.strip_prefix("prog_id:"))?.trim().parse().ok()).collect()
}

/// Whether any of these programs is still loaded.
pub fn any_loaded(ids: &[u32]) -> bool {
    loaded_programs().flatten().any(|p| ids.contains(&p.id()))
}
