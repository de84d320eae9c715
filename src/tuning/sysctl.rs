//! Determines the value a sysctl will have after the next boot, and the file that sets it.
//!
//! The order is that of procps (sysctl(8) --system). Of files with the same name, the one in the first of /etc,
//! /run, /usr/local/lib, /usr/lib and /lib counts; a link to /dev/null masks the name. Files are applied sorted by
//! name, then /etc/sysctl.conf, which systemd-sysctl ignores. `sysctl.NAME=` on the kernel command line comes before
//! all files.

use super::knob::KnobLocation;
use super::knob_id::KnobId;
use super::knobs::find_knob;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// A line that sets a sysctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SysctlAssignment {
    /// File and line for messages: `/etc/sysctl.d/x.conf:3`.
    pub(crate) location: String,
    /// The file's path, below the root directory.
    pub(crate) file: PathBuf,
    key: String,
    pub(crate) value: String,
    /// Lines before it that also set it.
    pub(crate) overridden: Vec<String>,
}

/// All sysctl assignments of the next boot, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BootSysctls {
    assignments: Vec<SysctlAssignment>,
    /// Files that are ignored, each with the file of the same name that masks it.
    pub masked_files: Vec<(PathBuf, PathBuf)>,
}

impl BootSysctls {
    /// Reads all files. They are on the root file system, so the caller must be able to wait.
    pub(crate) fn read(root: &Root) -> Self {
        let mut next = Self::default();
        let cmdline = std::fs::read_to_string(root.proc("cmdline")).unwrap_or_default();
        for word in cmdline.split_ascii_whitespace().filter_map(|w| w.strip_prefix("sysctl.")) {
            if let Some((key, value)) = word.split_once('=') {
                next.push("the kernel's command line", Path::new(""), key, value);
            }
        }
        let mut files: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for dir in root.sysctl_dirs() {
            let Ok(entries) = std::fs::read_dir(&dir) else { continue };
            let mut names: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
            names.retain(|p| p.extension().is_some_and(|e| e == "conf"));
            names.sort();
            for path in names {
                let Some(name) = path.file_name().map(ToOwned::to_owned) else { continue };
                match files.get(&name) {
                    // /lib is usually a link to /usr/lib: the same file does not mask itself.
                    Some(first) if same_file(first, &path) => {}
                    Some(first) => next.masked_files.push((path, first.clone())),
                    None => drop(files.insert(name, path)),
                }
            }
        }
        for path in files.into_values().chain([root.etc("sysctl.conf")]) {
            next.read_file(root, &path);
        }
        next
    }

    fn read_file(&mut self, root: &Root, path: &Path) {
        // A link to /dev/null reads as empty, which is what masking means.
        let Ok(file) = std::fs::File::open(path) else { return };
        let mut bytes = Vec::new();
        if file.take(MAX_FILE).read_to_end(&mut bytes).is_err() {
            return;
        }
        self.parse(&bytes, &display_path(root, path), path);
    }

    pub(crate) fn parse(&mut self, bytes: &[u8], shown: &str, path: &Path) {
        for (n, line) in (1..).zip(String::from_utf8_lossy(bytes).lines()) {
            let line = line.trim();
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some((key, value)) = line.split_once('=') {
                let key = key.trim().trim_start_matches('-').trim();
                self.push(&format!("{shown}:{n}"), path, key, value.trim());
            }
        }
    }

    fn push(&mut self, from: &str, file: &Path, key: &str, value: &str) {
        self.assignments.push(SysctlAssignment {
            location: from.into(),
            file: file.into(),
            key: normalize_key(key),
            value: sanitize(value),
            overridden: Vec::new(),
        });
    }

    /// The line that decides the value of a knob, with that value; `None` if no file sets it, so that it keeps the kernel's default.
    pub(crate) fn effective(&self, at: &KnobId) -> Option<SysctlAssignment> {
        let knob = at.definition();
        let path = sysctl_path(knob.name)?;
        let pair_path = knob.is_pair().then(|| sysctl_path(knob.linked()[0])).flatten();
        let mut last: Option<SysctlAssignment> = None;
        for a in &self.assignments {
            let sets_it = matches_pattern(&a.key, &path);
            let sets_pair = a.value != "0" && pair_path.as_ref().is_some_and(|path| matches_pattern(&a.key, path));
            // The kernel rejects 0 bytes and keeps the old value.
            let is_rejected = sets_it && a.value == "0" && knob.name.ends_with("_bytes");
            if is_rejected || !(sets_it || sets_pair) {
                continue;
            }
            let mut overridden = last.take().map(|l| [l.overridden, vec![l.location]].concat()).unwrap_or_default();
            overridden.retain(|location| *location != a.location);
            let value = if sets_it { a.value.clone() } else { "0".into() };
            last = Some(SysctlAssignment { value, overridden, ..a.clone() });
        }
        last
    }
}

/// The path of a sysctl knob below /proc/sys.
fn sysctl_path(name: &str) -> Option<String> {
    (find_knob(name)?.location == KnobLocation::Sysctl).then(|| name.replace('.', "/"))
}

/// sysctl.d(5): if the first separator is a slash, the name is a path; otherwise dots and slashes are swapped.
fn normalize_key(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        _ => c,
    };
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'.' => key.chars().map(swap).collect(),
        _ => key.to_owned(),
    }
}

/// Matches `*` and `?`, neither of which matches a slash.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == path;
    }
    let regex = regex_lite::escape(pattern).replace(r"\*", "[^/]*").replace(r"\?", "[^/]");
    regex_lite::Regex::new(&format!("^{regex}$")).is_ok_and(|regex| regex.is_match(path))
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((std::fs::canonicalize(a), std::fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b && a != Root::live().dev("null"))
}

/// A path relative to the root directory, as shown to users.
pub(crate) fn display_path(root: &Root, path: &Path) -> String {
    let rel = path.strip_prefix(root.base()).unwrap_or(path);
    sanitize(format!("/{}", rel.display()).replace("//", "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, path: &str, text: &str) -> &Self {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            self
        }

        fn mask(&self, path: &str) -> &Self {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink("/dev/null", path).unwrap();
            self
        }

        fn effective(&self, knob: &str) -> Option<(String, String)> {
            let next = BootSysctls::read(&Root::at(self.0.path()));
            next.effective(&KnobId::parse(knob).unwrap()).map(|d| (d.value, d.location))
        }
    }

    fn decided(value: &str, from: &str) -> Option<(String, String)> {
        Some((value.into(), from.into()))
    }

    #[test]
    fn files_take_precedence_in_procps_order() {
        let t = Tree::new();
        assert_eq!(t.effective("vm.swappiness"), None);
        t.file("usr/lib/sysctl.d/50-a.conf", "vm.swappiness = 1\n");
        assert_eq!(t.effective("vm.swappiness"), decided("1", "/usr/lib/sysctl.d/50-a.conf:1"));
        t.file("usr/local/lib/sysctl.d/50-a.conf", "# x\nvm.swappiness = 2\n");
        assert_eq!(t.effective("vm.swappiness"), decided("2", "/usr/local/lib/sysctl.d/50-a.conf:2"));
        t.file("run/sysctl.d/50-a.conf", "vm/swappiness = 3\n");
        assert_eq!(t.effective("vm.swappiness"), decided("3", "/run/sysctl.d/50-a.conf:1"));
        t.file("etc/sysctl.d/50-a.conf", "-vm.swappiness=4\n");
        assert_eq!(t.effective("vm.swappiness"), decided("4", "/etc/sysctl.d/50-a.conf:1"));
        t.file("usr/lib/sysctl.d/60-b.conf", "vm.swappiness=5\n").file("etc/sysctl.d/60-b.txt", "vm.swappiness=9");
        assert_eq!(
            t.effective("vm.swappiness"),
            decided("5", "/usr/lib/sysctl.d/60-b.conf:1"),
            "a later name beats /etc"
        );
        t.file("etc/sysctl.conf", "; no\nvm.swappiness=6\n");
        assert_eq!(t.effective("vm.swappiness"), decided("6", "/etc/sysctl.conf:2"));
        t.file("proc/cmdline", "quiet sysctl.vm.swappiness=7 sysctl.vm/page-cluster=2\n");
        assert_eq!(t.effective("vm.swappiness"), decided("6", "/etc/sysctl.conf:2"));
        assert_eq!(t.effective("vm.page-cluster"), decided("2", "the kernel's command line"));
    }

    #[test]
    fn a_masked_file_is_ignored() {
        let t = Tree::new();
        t.file("usr/lib/sysctl.d/50-a.conf", "vm.swappiness = 1\n").mask("etc/sysctl.d/50-a.conf");
        assert_eq!(t.effective("vm.swappiness"), None);
        let next = BootSysctls::read(&Root::at(t.0.path()));
        assert_eq!(next.masked_files.len(), 1);
        assert!(next.masked_files[0].0.ends_with("usr/lib/sysctl.d/50-a.conf"));
    }

    #[test]
    fn the_other_half_of_a_pair_zeroes_a_value() {
        let t = Tree::new();
        t.file("etc/sysctl.d/10.conf", "vm.dirty_ratio=40\n").file("etc/sysctl.d/20.conf", "vm.dirty_bytes=8192\n");
        assert_eq!(t.effective("vm.dirty_ratio"), decided("0", "/etc/sysctl.d/20.conf:1"));
        assert_eq!(t.effective("vm.dirty_bytes"), decided("8192", "/etc/sysctl.d/20.conf:1"));
        t.file("etc/sysctl.d/30.conf", "vm.dirty_bytes=0\n");
        assert_eq!(
            t.effective("vm.dirty_bytes"),
            decided("8192", "/etc/sysctl.d/20.conf:1"),
            "0 bytes are refused at boot"
        );
    }

    #[test]
    fn patterns_and_separators_follow_sysctl_d() {
        let t = Tree::new();
        t.file("etc/sysctl.d/1.conf", "vm.swapp* = 11\nvm.dirty_expire_centisec? = 12\n*/page-cluster=1\nvm.*=x\n");
        assert_eq!(t.effective("vm.dirty_expire_centisecs").unwrap().0, "x");
        assert!(matches_pattern("vm/swapp*", "vm/swappiness") && !matches_pattern("v*s", "vm/swappiness"));
        assert!(matches_pattern("*/page-cluster", "vm/page-cluster") && !matches_pattern("vm/swap", "vm/swappiness"));
        assert_eq!(normalize_key("net.ipv4.conf.eth0/1.x"), "net/ipv4/conf/eth0.1/x");
        assert_eq!(normalize_key("vm/swappiness"), "vm/swappiness");
    }

    #[test]
    fn overridden_lines_are_reported() {
        let t = Tree::new();
        t.file("etc/sysctl.d/99-zz-iotop-plus.conf", "vm.swappiness=1\n").file("etc/sysctl.conf", "vm.swappiness=2\n");
        let got = BootSysctls::read(&Root::at(t.0.path())).effective(&KnobId::parse("vm.swappiness").unwrap()).unwrap();
        assert_eq!(got.overridden, ["/etc/sysctl.d/99-zz-iotop-plus.conf:1"]);
    }
}
