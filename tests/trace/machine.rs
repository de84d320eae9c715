//! What the tests of tracing need of the machine: a loop device in memory, direct reads, other users' rights, and a
//! look at which programs are in the kernel.

use aya::programs::loaded_programs;
use iotop_plus::root::Root;
use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An ordinary user and group.
const NOBODY: u32 = 65_534;

/// Whether this machine lets us trace.
pub fn may_trace() -> Result<(), String> {
    let held = rustix::thread::capabilities(None).map_err(|err| err.to_string())?.effective;
    if !held.contains(CapabilitySet::SYS_ADMIN) {
        return Err("needs root".into());
    }
    let types = Root::live().sys("kernel/btf/vmlinux");
    types.exists().then_some(()).ok_or_else(|| format!("no {}", types.display()))
}

/// Whether the compiler is here that the objects were made with.
pub fn clang() -> Result<(), String> {
    for tool in ["clang-14", "llvm-strip-14"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("no {tool} here"));
        }
    }
    Ok(())
}

/// A loop device on a file in memory.
pub struct Loop {
    /// Its node.
    pub path: PathBuf,
    /// Its number.
    pub id: (u32, u32),
}

impl Loop {
    /// Makes one of that many bytes, or says why not.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let dir = Root::live().dev("shm");
        let file = tempfile::NamedTempFile::new_in(dir).map_err(|err| format!("no file in memory: {err}"))?;
        // Pages, not a hole: reads go the whole way.
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

    /// Reads completed, as `/proc/diskstats` has them.
    pub fn reads(&self) -> u64 {
        let text = std::fs::read_to_string(Root::live().proc("diskstats")).unwrap();
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let line = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|w| w[2] == name);
        line.unwrap()[3].parse().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// So many reads of 4 KiB past the page cache, one after the other.
pub fn read_directly(path: &Path, times: usize) {
    read_directly_at(path, 4096, (0..times).map(|i| (i * 7919 % 4096) as u64 * 4096));
}

/// Reads of that many bytes past the page cache, one after the other, at these places.
pub fn read_directly_at(path: &Path, len: usize, places: impl Iterator<Item = u64>) {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let mut room = vec![0u8; len + 4096];
    let start = room.as_ptr().align_offset(4096);
    for at in places {
        assert_eq!(rustix::io::pread(&file, &mut room[start..start + len], at).unwrap(), len);
    }
}

/// The program under test where an ordinary user finds it.
pub struct Nobody(tempfile::TempDir);

impl Nobody {
    /// Puts it there, or says why that user cannot be had.
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

    /// To be run by that user, with these capabilities and no others.
    pub fn command(&self, capabilities: &[&str]) -> Command {
        let given: String = capabilities.iter().map(|c| format!(",+{c}")).collect();
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}")).arg("--clear-groups");
        command.arg(format!("--inh-caps=-all{given}")).arg(format!("--ambient-caps=-all{given}"));
        command.arg(self.0.path().join("iotop-plus"));
        command
    }
}

/// Ids of the BPF programs a process holds.
pub fn programs_of(pid: u32) -> Vec<u32> {
    held_by(pid, |_| true)
}

/// Ids of those among them that are at tracepoints of tracefs, as the ones that trace system calls are.
#[allow(dead_code)]
pub fn of_calls(pid: u32) -> Vec<u32> {
    // BPF_PROG_TYPE_TRACEPOINT
    held_by(pid, |text| text.lines().any(|l| l.split_whitespace().eq(["prog_type:", "5"])))
}

fn held_by(pid: u32, which: impl Fn(&str) -> bool) -> Vec<u32> {
    let dir = Root::live().proc(&format!("{pid}/fdinfo"));
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let text = entries.flatten().filter_map(|e| std::fs::read_to_string(e.path()).ok());
    // Links name the program as well; once is enough.
    let ids = text.filter(|t| t.contains("prog_jited") && which(t));
    ids.filter_map(|t| t.lines().find_map(|l| l.strip_prefix("prog_id:"))?.trim().parse().ok()).collect()
}

/// Whether one of these programs is still in the kernel.
pub fn still_loaded(ids: &[u32]) -> bool {
    loaded_programs().flatten().any(|p| ids.contains(&p.id()))
}
