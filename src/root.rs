//! The kernel's directories, named in one place.
//!
//! Every reader gets its paths from a [`Root`], so the program runs on a captured tree (`--root DIR`) as on the live
//! machine, and tests need no kernel.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Inode of the first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// The directory that contains `/proc`, `/sys`, `/dev`, `/run` and `/etc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    base: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::live()
    }
}

impl Root {
    /// The prefix of device nodes in mount sources, swap names and backing files.
    pub const DEV_PREFIX: &'static [u8] = b"/dev/";

    /// The running machine.
    pub fn live() -> Self {
        Self { base: PathBuf::from("/") }
    }

    /// A captured tree with `proc/`, `sys/`, `dev/`, `run/`, `etc/`.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// The directory that all others are below.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Whether this is the running machine: only then do system calls about tasks make sense.
    pub fn is_live(&self) -> bool {
        self.base == Path::new("/")
    }

    fn path_in(&self, top: &str, rel: &str) -> PathBuf {
        let mut path = self.base.join(top);
        if !rel.is_empty() {
            path.push(rel);
        }
        path
    }

    /// `/proc/REL`; `""` is the directory itself.
    pub fn proc(&self, rel: &str) -> PathBuf {
        self.path_in("proc", rel)
    }

    /// `/sys/REL`.
    pub fn sys(&self, rel: &str) -> PathBuf {
        self.path_in("sys", rel)
    }

    /// `/dev/REL`.
    pub fn dev(&self, rel: &str) -> PathBuf {
        self.path_in("dev", rel)
    }

    /// `/run/REL`.
    pub fn run(&self, rel: &str) -> PathBuf {
        self.path_in("run", rel)
    }

    /// `/etc/REL`.
    pub fn etc(&self, rel: &str) -> PathBuf {
        self.path_in("etc", rel)
    }

    /// The directories of sysctl settings applied at boot, highest priority first.
    pub fn sysctl_dirs(&self) -> [PathBuf; 5] {
        ["etc", "run", "usr/local/lib", "usr/lib", "lib"].map(|top| self.path_in(top, "sysctl.d"))
    }

    /// Whether this process is in the machine's first PID namespace. In another one, such as a container's, its numbers of
    /// processes are not the kernel's, and all of its processes end with the namespace.
    /// Errors: if `/proc/self/ns/pid` cannot be read.
    pub fn is_initial_pid_namespace(&self) -> std::io::Result<bool> {
        std::fs::metadata(self.proc("self/ns/pid")).map(|namespace| namespace.ino() == INITIAL_PID_NAMESPACE)
    }

    /// This program, to start a child of the same binary even if its file was replaced.
    pub fn self_exe() -> &'static Path {
        Path::new("/proc/self/exe")
    }

    /// Discards what is written; standard streams of processes without a terminal.
    pub fn null() -> &'static Path {
        Path::new("/dev/null")
    }

    /// The controlling terminal. Opening it needs no permission for the terminal's own node, which may belong to
    /// another user after `su` or `sudo -u`.
    pub fn tty() -> &'static Path {
        Path::new("/dev/tty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hang_below_the_base() {
        let root = Root::at("/capture/t0");
        assert_eq!(root.proc("diskstats"), Path::new("/capture/t0/proc/diskstats"));
        assert_eq!(root.sys(""), Path::new("/capture/t0/sys"));
        assert!(!root.is_live());
        assert_eq!(Root::live().proc("stat"), Path::new("/proc/stat"));
    }
}
