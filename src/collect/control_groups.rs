//! The tree of control groups below `/sys/fs/cgroup`: version 2, or the version 1 controllers blkio and memory, with the
//! pressure of version 2 where both are mounted.

use super::facts::cgroup_limits::{
    device_lines, read_blkio_limits, read_memory_limit, read_unified_limits, values_after,
};
use super::kernel_file::{read_number, read_once};
use super::source::Source;
use crate::model::control_groups::{ControlGroupRaw, ControlGroupsRaw, GroupDeviceIo};
use crate::model::reading::Reading;
use crate::parse::bytes::{parse_u64, words};
use crate::parse::{named_value, pressure};
use crate::root::Root;
use crate::sanitize::sanitize;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Groups read at most: a dozen files each.
const MAX_GROUPS: usize = 400;
/// Directories looked at, to count the groups that are left out.
const MAX_DIRECTORIES: u64 = 20_000;

/// Reads the groups while `is_wanted`.
pub(super) fn source(root: &Root, is_wanted: Arc<AtomicBool>) -> Source {
    let (root, mut buf) = (root.clone(), Vec::new());
    Source::new(
        "/sys/fs/cgroup",
        |s| &mut s.control_groups,
        move || match is_wanted.load(Ordering::Relaxed) {
            true => read(&root, &mut buf),
            false => Reading::default(),
        },
    )
}

/// Where the files of a group are, by controller.
struct Hierarchies {
    /// Version 2, which has pressure also where its controllers are with version 1.
    unified: Option<PathBuf>,
    /// Version 1.
    blkio: Option<PathBuf>,
    /// Version 1.
    memory: Option<PathBuf>,
}

impl Hierarchies {
    fn find(root: &Root) -> Self {
        let dir = |name: &str, file: &str| {
            let dir = root.sys(&format!("fs/cgroup/{name}"));
            dir.join(file).exists().then_some(dir)
        };
        Self {
            unified: dir("", "cgroup.procs").or_else(|| dir("unified", "cgroup.procs")),
            blkio: dir("blkio", "cgroup.procs"),
            memory: dir("memory", "cgroup.procs"),
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.unified, &self.blkio, &self.memory].into_iter().flatten()
    }

    /// The groups below one, in any hierarchy: with version 1 a group may be in one only.
    fn children(&self, relative: &Path) -> BTreeSet<PathBuf> {
        let names = self.all().flat_map(|top| child_directories(&top.join(relative)));
        names.map(|name| relative.join(name)).collect()
    }

    fn read_group(&self, relative: &Path, buf: &mut Vec<u8>) -> ControlGroupRaw {
        let mut group = ControlGroupRaw::default();
        group.limits.path = format!("/{}", sanitize(relative.as_os_str().as_bytes()));
        if let Some(dir) = self.unified.as_ref().map(|top| top.join(relative)) {
            group.io_stall_us = stall_us(&dir.join("io.pressure"), buf);
            group.memory_stall_us = stall_us(&dir.join("memory.pressure"), buf);
            read_unified(&dir, &mut group, buf);
        }
        if let Some(dir) = self.blkio.as_ref().map(|top| top.join(relative)) {
            group.io = read_blkio(&dir, buf);
            read_blkio_limits(&dir, &mut group.limits, buf);
        }
        if let Some(dir) = self.memory.as_ref().map(|top| top.join(relative)) {
            read_v1_memory(&dir, &mut group, buf);
        }
        group
    }
}

fn read(root: &Root, buf: &mut Vec<u8>) -> Reading<Arc<ControlGroupsRaw>> {
    let hierarchies = Hierarchies::find(root);
    if hierarchies.all().next().is_none() {
        return Reading::Absent("no control groups at /sys/fs/cgroup: mount -t cgroup2 none /sys/fs/cgroup".into());
    }
    let mut out = ControlGroupsRaw::default();
    // Level by level, so that the groups above those that are left out are there.
    let mut level: VecDeque<PathBuf> = hierarchies.children(Path::new("")).into_iter().collect();
    while let Some(relative) = level.pop_front() {
        if out.groups.len() < MAX_GROUPS {
            out.groups.push(hierarchies.read_group(&relative, buf));
        } else {
            out.left_out += 1;
        }
        if out.left_out < MAX_DIRECTORIES {
            level.extend(hierarchies.children(&relative));
        }
    }
    Reading::Ok(Arc::new(out))
}

fn child_directories(dir: &Path) -> impl Iterator<Item = OsString> + use<> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_dir).map(|entry| entry.file_name())
}

fn stall_us(path: &Path, buf: &mut Vec<u8>) -> Option<u64> {
    let [some, _] = pressure::parse(read_once(path, buf).ok()?);
    Some(some?.total_us)
}

fn read_unified(dir: &Path, group: &mut ControlGroupRaw, buf: &mut Vec<u8>) {
    read_unified_limits(dir, &mut group.limits, buf);
    if let Ok(text) = read_once(&dir.join("io.stat"), buf) {
        let io = device_lines(text).map(|(device, words)| {
            let counts = values_after(words, [b"rbytes=", b"wbytes=", b"rios=", b"wios="]);
            GroupDeviceIo { device, counts: counts.map(Option::unwrap_or_default) }
        });
        group.io = Some(io.collect());
    }
    group.memory = read_number(&dir.join("memory.current"), buf);
    group.swap = read_number(&dir.join("memory.swap.current"), buf);
    if let Ok(text) = read_once(&dir.join("memory.stat"), buf) {
        (group.dirty, group.writeback) = (named_value(text, b"file_dirty"), named_value(text, b"file_writeback"));
    }
}

/// `254:0 Read 4096`: bytes and operations; `None` without the controller.
fn read_blkio(dir: &Path, buf: &mut Vec<u8>) -> Option<Vec<GroupDeviceIo>> {
    let mut out: Vec<GroupDeviceIo> = Vec::new();
    for (at, file) in [(0, "blkio.throttle.io_service_bytes"), (2, "blkio.throttle.io_serviced")] {
        let recursive = dir.join(format!("{file}_recursive"));
        let path = if recursive.exists() { recursive } else { dir.join(file) };
        for (device, mut words) in device_lines(read_once(&path, buf).ok()?) {
            let (Some(direction), Some(n)) = (words.next(), words.next().and_then(parse_u64)) else { continue };
            let which = match direction {
                b"Read" => at,
                b"Write" => at + 1,
                _ => continue,
            };
            let index = out.iter().position(|io| io.device == device).unwrap_or_else(|| {
                out.push(GroupDeviceIo { device, counts: [0; 4] });
                out.len() - 1
            });
            out[index].counts[which] = n;
        }
    }
    Some(out)
}

fn read_v1_memory(dir: &Path, group: &mut ControlGroupRaw, buf: &mut Vec<u8>) {
    read_memory_limit(dir, &mut group.limits, buf);
    group.memory = read_number(&dir.join("memory.usage_in_bytes"), buf);
    if let Ok(text) = read_once(&dir.join("memory.stat"), buf) {
        let total = |name: &[u8]| {
            let find = |line: &&[u8]| words(line).next() == Some(name);
            let line = crate::parse::bytes::lines(text).find(find)?;
            words(line).nth(1).and_then(parse_u64)
        };
        // With those of the groups below, as in version 2; swap only where it is accounted.
        (group.dirty, group.writeback) = (total(b"total_dirty"), total(b"total_writeback"));
        group.swap = total(b"total_swap");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::DevId;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("sys/fs/cgroup").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_group_of_one_version_1_controller_is_listed() {
        let (_dir, root) = tree(&[
            ("blkio/cgroup.procs", ""),
            ("blkio/db/blkio.throttle.io_service_bytes", "8:0 Read 4096\n"),
            ("blkio/db/blkio.throttle.io_serviced", "8:0 Read 1\n"),
            ("memory/cgroup.procs", ""),
            ("memory/web/memory.usage_in_bytes", "8192\n"),
        ]);
        let groups = groups(&root).groups;
        let all: Vec<_> = groups.iter().map(|g| (&*g.limits.path, g.memory, g.io.is_some())).collect();
        assert_eq!(all, [("/db", None, true), ("/web", Some(8192), false)]);
    }

    fn groups(root: &Root) -> ControlGroupsRaw {
        (*read(root, &mut Vec::new()).ok().cloned().unwrap()).clone()
    }

    #[test]
    fn version_2_is_read_level_by_level() {
        let (_dir, root) = tree(&[
            ("cgroup.procs", ""),
            ("a.slice/b.service/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n"),
            ("a.slice/b.service/io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n"),
            (
                "a.slice/b.service/io.pressure",
                "some avg10=1.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
            ),
            ("a.slice/b.service/memory.current", "4096\n"),
            ("a.slice/b.service/memory.high", "8192\n"),
            ("a.slice/b.service/memory.events", "low 0\nhigh 3\nmax 0\n"),
            ("a.slice/b.service/memory.swap.current", "512\n"),
            ("a.slice/b.service/memory.stat", "anon 1\nfile 2\nfile_dirty 8192\nfile_writeback 4096\n"),
            ("c\nd/memory.current", "1\n"),
        ]);
        let all = groups(&root);
        let mut paths: Vec<&str> = all.groups.iter().map(ControlGroupRaw::path).collect();
        assert_eq!(paths.pop(), Some("/a.slice/b.service"), "after all groups of the level above");
        paths.sort_unstable();
        assert_eq!(paths, ["/a.slice", "/c\\nd"]);
        let group = all.groups.last().unwrap();
        let io = GroupDeviceIo { device: DevId { major: 8, minor: 0 }, counts: [1, 2, 3, 4] };
        assert_eq!((group.io.as_deref(), group.limits.io[0].write_bytes_per_s), (Some(&[io][..]), Some(1 << 20)));
        assert_eq!((group.io_stall_us, group.memory, group.limits.memory_high), (Some(77), Some(4096), Some(8192)));
        assert_eq!((group.dirty, group.writeback, group.swap), (Some(8192), Some(4096), Some(512)));
        assert_eq!(group.limits.high_events, Some(3));
        let slice = &all.groups[all.groups.iter().position(|g| g.path() == "/a.slice").unwrap()];
        assert_eq!((slice.io.as_ref(), slice.memory, slice.io_stall_us), (None, None, None), "controllers are off");
    }

    #[test]
    fn version_1_has_its_own_files_and_the_pressure_of_version_2() {
        let (_dir, root) = tree(&[
            ("unified/cgroup.procs", ""),
            ("unified/db/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"),
            ("blkio/cgroup.procs", ""),
            ("blkio/db/blkio.throttle.io_service_bytes", "7:0 Read 1\n"),
            (
                "blkio/db/blkio.throttle.io_service_bytes_recursive",
                "7:0 Read 500\n7:0 Write 600\n7:0 Total 1100\nTotal 1100\n",
            ),
            ("blkio/db/blkio.throttle.io_serviced", "7:0 Read 5\n7:0 Write 6\n"),
            ("blkio/db/blkio.throttle.write_bps_device", "7:0 1000\n"),
            ("memory/cgroup.procs", ""),
            ("memory/db/memory.usage_in_bytes", "4096\n"),
            ("memory/db/memory.limit_in_bytes", "16384\n"),
            ("memory/db/memory.stat", "dirty 1\ntotal_dirty 2\ntotal_writeback 3\n"),
        ]);
        let all = groups(&root);
        assert_eq!(all.groups.len(), 1);
        let db = &all.groups[0];
        assert_eq!(db.io.as_ref().unwrap()[0].counts, [500, 600, 5, 6]);
        assert_eq!((db.limits.io[0].write_bytes_per_s, db.limits.memory_max), (Some(1000), Some(16384)));
        assert_eq!((db.memory, db.dirty, db.writeback, db.swap), (Some(4096), Some(2), Some(3), None));
        assert_eq!(db.io_stall_us, Some(9));
    }

    #[test]
    fn groups_beyond_the_limit_are_counted() {
        let (dir, root) = tree(&[("cgroup.procs", "")]);
        for n in 0..MAX_GROUPS + 7 {
            std::fs::create_dir(dir.path().join(format!("sys/fs/cgroup/g{n}"))).unwrap();
        }
        let all = groups(&root);
        assert_eq!((all.groups.len(), all.left_out), (MAX_GROUPS, 7));
    }

    #[test]
    fn they_are_read_only_while_wanted_and_their_absence_is_explained() {
        let (_dir, root) = tree(&[("cgroup.procs", ""), ("a/cgroup.procs", "")]);
        let is_wanted = Arc::new(AtomicBool::new(false));
        let mut source = source(&root, is_wanted.clone());
        let mut sample = crate::model::sample::Sample::default();
        source.read(&mut sample);
        assert!(sample.control_groups.ok().is_none());
        is_wanted.store(true, Ordering::Relaxed);
        source.read(&mut sample);
        assert_eq!(sample.control_groups.ok().unwrap().groups.len(), 1);
        let nothing = tempfile::tempdir().unwrap();
        let why = read(&Root::at(nothing.path()), &mut Vec::new()).unavailable_reason(0);
        assert!(why.unwrap().contains("mount -t cgroup2"));
    }
}
