//! A root directory over the machine's /proc and /sys whose knobs are restored when dropped.

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const BIN: &str = env!("CARGO_BIN_EXE_iotop-plus");

/// The vm knobs that tests change, in small steps, so that the machine is not disturbed.
pub const VM_KNOBS: [&str; 11] = [
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
    "page-cluster",
    "vfs_cache_pressure",
    "min_free_kbytes",
    "watermark_scale_factor",
];

/// The kernel knobs that tests change.
pub const KERNEL_KNOBS: [&str; 3] = ["task_delayacct", "hung_task_timeout_secs", "hung_task_warnings"];

/// The directory of a knob below /proc/sys: `vm` or `kernel`.
pub fn sysctl_dir(knob: &str) -> &'static str {
    if KERNEL_KNOBS.contains(&knob) { "kernel" } else { "vm" }
}

pub fn knob_path(knob: &str) -> String {
    format!("/proc/sys/{}/{knob}", sysctl_dir(knob))
}

pub fn read_knob(knob: &str) -> String {
    std::fs::read_to_string(knob_path(knob)).unwrap().trim().to_owned()
}

pub fn write_knob(knob: &str, value: &str) {
    std::fs::write(knob_path(knob), value).unwrap();
}

pub fn read_vm_knobs() -> BTreeMap<&'static str, String> {
    VM_KNOBS.iter().map(|k| (*k, read_knob(k))).collect()
}

/// Writes values back; of a pair, the half that is not 0.
pub fn write_knobs(values: &BTreeMap<&'static str, String>) {
    for (knob, value) in values {
        let half = knob.ends_with("_bytes") || knob.ends_with("_ratio");
        if (!half || value != "0") && read_knob(knob) != *value {
            write_knob(knob, value);
        }
    }
}

/// Held by one test at a time, across processes.
pub struct LiveMachine {
    pub dir: tempfile::TempDir,
    pub saved: BTreeMap<&'static str, String>,
    /// The command that runs the program where `dir` is not its root but provides its /run.
    pub wrapper: Vec<String>,
    _lock: OwnedFd,
}

impl LiveMachine {
    /// Prints why and returns `None` where this cannot be tested.
    pub fn acquire(test: &str) -> Option<Self> {
        let writable = rustix::fs::access(knob_path("swappiness").as_str(), rustix::fs::Access::WRITE_OK).is_ok();
        if !rustix::process::geteuid().is_root() || !writable {
            eprintln!("SKIPPED {test}: needs root and a writable /proc/sys/vm");
            return None;
        }
        // Restoring values would disturb an experiment or a change on lease.
        let status = output_text(&Command::new(BIN).args(["tune", "status"]).output().unwrap());
        if status.contains("on lease for another") {
            eprintln!("SKIPPED {test}: a change of this machine is on lease");
            return None;
        }
        let lock = std::env::temp_dir().join("iotop-plus-tune-tests.lock");
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let alone = rustix::fs::openat(CWD, &lock, flags, Mode::RUSR | Mode::WUSR).unwrap();
        rustix::fs::flock(&alone, FlockOperation::LockExclusive).unwrap();
        // The journal belongs on a memory file system, like /run.
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        for top in ["run", "etc"] {
            std::fs::create_dir(dir.path().join(top)).unwrap();
        }
        symlink("/proc", dir.path().join("proc")).unwrap();
        symlink("/sys", dir.path().join("sys")).unwrap();
        Some(Self { dir, saved: read_vm_knobs(), wrapper: Vec::new(), _lock: alone })
    }

    pub fn command(&self, args: &[&str]) -> Command {
        if let [program, words @ ..] = self.wrapper.as_slice() {
            let mut command = Command::new(program);
            command.args(words).arg(BIN).args(args);
            return command;
        }
        let mut command = Command::new(BIN);
        command.arg("--root").arg(self.dir.path()).args(args);
        command
    }

    pub fn tune(&self, args: &[&str]) -> Output {
        self.command(&["tune"]).args(args).output().unwrap()
    }

    pub fn journal(&self) -> PathBuf {
        let run = self.dir.path().join("run/iotop-plus");
        let mut files = std::fs::read_dir(run).unwrap().flatten().map(|e| e.path());
        files.find(|p| p.file_name().unwrap().to_string_lossy().starts_with("journal-")).unwrap()
    }
}

impl Drop for LiveMachine {
    fn drop(&mut self) {
        write_knobs(&self.saved);
    }
}

pub fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
