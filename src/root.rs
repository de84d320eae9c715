//! The one place that names the kernel's directories.
//!
//! Every reader asks a [`Root`] for its paths, so the whole program runs on a captured tree
//! (`--root DIR`) exactly as it does on the live machine, and a test needs no kernel.

use std::path::{Path, PathBuf};

/// Where `/proc`, `/sys`, `/dev`, `/run` and `/etc` are taken from.
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
    /// How the kernel spells the directory of device nodes in mount sources, swap names and backing files.
    pub const DEV_PREFIX: &'static [u8] = b"/dev/";

    /// The running machine.
    pub fn live() -> Self {
        Self { base: PathBuf::from("/") }
    }

    /// A captured tree that holds `proc/`, `sys/`, `dev/`, `run/`, `etc/`.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// The directory everything hangs below.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Whether this is the running machine (system calls about live tasks make sense only there).
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

    /// Where sysctl settings are read from at boot, the directory whose files count first in front.
    pub fn sysctl_dirs(&self) -> [PathBuf; 5] {
        ["etc", "run", "usr/local/lib", "usr/lib", "lib"].map(|top| self.path_in(top, "sysctl.d"))
    }

    /// The running program, for starting a child of the same binary even after the file was replaced.
    pub fn self_exe() -> &'static Path {
        Path::new("/proc/self/exe")
    }

    /// The controlling terminal. Opening it asks no permission of the terminal's own node, which may
    /// belong to another user after `su` or `sudo -u`.
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
