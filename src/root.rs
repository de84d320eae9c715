//! The kernel's directories, named in one place.
//!
//! Every reader gets its paths from a [`Root`], so the program runs on a captured tree (`--root DIR`) as on the live
//! machine, and tests need no kernel. The third kind is the root directory of the host in a container (`--root /host`).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Inode of the first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Types of procfs and sysfs (PROC_SUPER_MAGIC, SYSFS_MAGIC, linux/magic.h).
const PROCFS: u64 = 0x9fa0;
const SYSFS: u64 = 0x6265_6572;
/// That of a container's root directory, mostly (OVERLAYFS_SUPER_MAGIC).
const OVERLAYFS: u64 = 0x794c_7630;

/// The directory that contains `/proc`, `/sys`, `/dev`, `/run` and `/etc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    base: PathBuf,
    is_live: bool,
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
        Self { base: PathBuf::from("/"), is_live: true }
    }

    /// A captured tree with `proc/`, `sys/`, `dev/`, `run/`, `etc/`; or, where the first two are mounts of procfs and sysfs,
    /// the root directory of the running machine. A tree with symbolic links to `/proc` and `/sys` is none.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let is = |top: &str, kind: u64| {
            let path = base.join(top);
            !path.is_symlink() && rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type as u64 == kind)
        };
        let is_live = base == Path::new("/") || (is("proc", PROCFS) && is("sys", SYSFS));
        Self { base, is_live }
    }

    /// The directory that all others are below.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Whether this is the running machine: only then do system calls about tasks make sense.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether this is the host's root directory, mounted in a container: the kernel is this one, while paths and users of
    /// the host are not those of this process.
    pub fn is_of_host(&self) -> bool {
        self.is_live && self.base != Path::new("/")
    }

    /// A table of mounts: `mountinfo` or `mountstats`. On the host it is that of the first process.
    pub fn mount_table(&self, name: &str) -> PathBuf {
        let process = if self.is_of_host() { "1" } else { "self" };
        self.proc(&format!("{process}/{name}"))
    }

    /// The directory that this process has to use as the machine's `/`. On the host it is that of the first process, where
    /// mounts are seen that the host made after the container started; or the mounted one, if access to that is refused.
    pub fn top_directory(&self) -> PathBuf {
        let of_first_process = self.proc("1/root");
        match self.is_of_host() && std::fs::metadata(&of_first_process).is_ok() {
            true => of_first_process,
            false => self.base.clone(),
        }
    }

    /// Where this process finds a path of the machine; the path has no symbolic links.
    pub fn locate(&self, path: &Path) -> PathBuf {
        self.top_directory().join(path.strip_prefix("/").unwrap_or(path))
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

    /// Whether this process has another root directory than the first process of the machine, as in a container that was given
    /// the host's PIDs: all of its processes end with the container. Where the directory of the first process may not be
    /// looked at, an overlay as root directory counts as a container's.
    pub fn is_container(&self) -> bool {
        let is_other = |host: std::fs::Metadata| {
            std::fs::metadata("/").map(|own| (own.dev(), own.ino()) != (host.dev(), host.ino()))
        };
        let seen = std::fs::metadata(self.proc("1/root")).and_then(is_other);
        let is_overlay = || rustix::fs::statfs("/").is_ok_and(|fs| fs.f_type as u64 == OVERLAYFS);
        self.is_of_host() || (self.is_live && seen.unwrap_or_else(|_| is_overlay()))
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

    #[test]
    fn a_tree_with_links_to_the_machine_is_not_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        for top in ["proc", "sys"] {
            std::os::unix::fs::symlink(Path::new("/").join(top), dir.path().join(top)).unwrap();
        }
        let root = Root::at(dir.path());
        assert!(!root.is_live() && !root.is_of_host() && !root.is_container());
    }
}
