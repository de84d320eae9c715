//! Limits of control groups: version 2 (Documentation/admin-guide/cgroup-v2.rst) and the version 1 controllers blkio,
//! memory and cpu (Documentation/admin-guide/cgroup-v1/).

use crate::collect::kernel_file::{read_number, read_once};
use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit};
use crate::parse::bytes::{lines, parse_u64, words};
use crate::parse::named_value;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Groups read at most; on a machine with more, most are idle.
const MAX_GROUPS: usize = 256;
/// Ancestors of a group that may have a limit.
const MAX_ANCESTORS: usize = 16;

/// Reads the limits of the group with this directory; false if there are none.
type ReadLimits = fn(&Path, &mut CgroupFacts, &mut Vec<u8>) -> bool;

/// The hierarchies that can limit a task: a controller, where it is mounted below `/sys/fs/cgroup` (the first place that
/// exists), and how its limits are read. Version 2 has no name; in hybrid mode it is mounted beside the others.
const HIERARCHIES: [(&[u8], &[&str], ReadLimits); 4] = [
    (b"", &["unified", ""], read_unified_limits),
    (b"blkio", &["blkio"], read_blkio_limits),
    (b"memory", &["memory"], read_memory_limit),
    (b"cpu", &["cpu", "cpu,cpuacct", "cpuacct,cpu"], read_cpu_quota),
];

/// The control groups of these tasks and their ancestors, if they have a limit.
pub(super) fn read_cgroup_limits(root: &Root, tasks: &[TaskKey], buf: &mut Vec<u8>) -> Vec<CgroupFacts> {
    let mut seen: Vec<(PathBuf, ReadLimits, CgroupFacts)> = Vec::new();
    for task in tasks {
        let Ok(text) = read_once(&root.proc(&format!("{}/cgroup", task.pid)), buf) else { continue };
        for (dir, path, read) in lines(text).flat_map(|line| group_dirs(root, line)) {
            let has_room = seen.len() < MAX_GROUPS;
            match seen.iter_mut().find(|(known, ..)| *known == dir) {
                Some((.., group)) => group.pids.push(task.pid),
                None if has_room => {
                    let group = CgroupFacts { path: sanitize(path), pids: vec![task.pid], ..CgroupFacts::default() };
                    seen.push((dir, read, group));
                }
                None => {}
            }
        }
    }
    seen.into_iter().filter_map(|(dir, read, mut group)| read(&dir, &mut group, buf).then_some(group)).collect()
}

/// The directories of the groups in a line `ID:CONTROLLERS:PATH` and of their ancestors, without the root, which has no
/// limits.
fn group_dirs<'a>(root: &Root, line: &'a [u8]) -> Vec<(PathBuf, &'a [u8], ReadLimits)> {
    let mut out = Vec::new();
    let mut fields = line.splitn(3, |b| *b == b':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return out };
    // In a cgroup namespace a path may lead upwards, where nothing can be read.
    if path.split(|b| *b == b'/').any(|part| part == b"..") {
        return out;
    }
    for controller in controllers.split(|b| *b == b',') {
        let Some((_, mounts, read)) = HIERARCHIES.iter().find(|(name, ..)| *name == controller) else { continue };
        let mount_dir = |name: &&str| root.sys(&format!("fs/cgroup/{name}"));
        let top = mounts.iter().map(mount_dir).find(|dir| dir.is_dir()).unwrap_or_else(|| mount_dir(&mounts[0]));
        let parent = |path: &&'a [u8]| Some(&path[..path.iter().rposition(|b| *b == b'/')?]);
        let paths = std::iter::successors(Some(path), parent).take_while(|path| path.len() > 1);
        out.extend(paths.take(MAX_ANCESTORS).map(|path| (top.join(OsStr::from_bytes(&path[1..])), path, *read)));
    }
    out
}

/// The lines that begin with a device number, and their other words.
pub(in crate::collect) fn device_lines(text: &[u8]) -> impl Iterator<Item = (DevId, impl Iterator<Item = &[u8]>)> {
    lines(text).filter_map(|line| {
        let mut words = words(line);
        Some((DevId::parse(words.next()?)?, words))
    })
}

/// The numbers after these names, as in `rbps=max wbps=1048576`.
pub(in crate::collect) fn values_after<'a, const N: usize>(
    words: impl Iterator<Item = &'a [u8]>,
    names: [&[u8]; N],
) -> [Option<u64>; N] {
    let mut values = [None; N];
    for word in words {
        for (value, name) in values.iter_mut().zip(names) {
            *value = word.strip_prefix(name).and_then(parse_u64).or(*value);
        }
    }
    values
}

/// A limit; `None` for `max` and malformed values.
fn read_limit(dir: &Path, file: &str, buf: &mut Vec<u8>) -> Option<u64> {
    // Version 1 writes "no limit" as the largest number of whole pages.
    read_number(&dir.join(file), buf).filter(|n| *n < 1 << 62)
}

/// The limits of a group of version 2; false if it has none.
pub(in crate::collect) fn read_unified_limits(dir: &Path, group: &mut CgroupFacts, buf: &mut Vec<u8>) -> bool {
    if let Ok(text) = read_once(&dir.join("io.max"), buf) {
        // `254:0 rbps=max wbps=1048576 riops=66 wiops=max`
        group.io = device_lines(text)
            .map(|(device, words)| {
                let [read_bytes_per_s, write_bytes_per_s, reads_per_s, writes_per_s] =
                    values_after(words, [b"rbps=", b"wbps=", b"riops=", b"wiops="]);
                let transferred = None;
                CgroupIoLimit { device, read_bytes_per_s, write_bytes_per_s, reads_per_s, writes_per_s, transferred }
            })
            .collect();
    }
    if !group.io.is_empty()
        && let Ok(text) = read_once(&dir.join("io.stat"), buf)
    {
        for (id, words) in device_lines(text) {
            if let Some(limit) = group.io.iter_mut().find(|limit| limit.device == id) {
                let counts = values_after(words, [b"rbytes=", b"wbytes=", b"rios=", b"wios="]);
                limit.transferred = Some(counts.map(Option::unwrap_or_default));
            }
        }
    }
    group.memory_high = read_limit(dir, "memory.high", buf);
    group.memory_max = read_limit(dir, "memory.max", buf);
    if group.memory_high.or(group.memory_max).is_some() {
        group.memory_now = read_number(&dir.join("memory.current"), buf);
        if let Ok(text) = read_once(&dir.join("memory.events"), buf) {
            (group.high_events, group.max_events) = (named_value(text, b"high"), named_value(text, b"max"));
        }
    }
    if let Ok(text) = read_once(&dir.join("cpu.max"), buf) {
        let mut w = words(text);
        group.cpu_max = w.next().and_then(parse_u64).zip(w.next().and_then(parse_u64));
    }
    if group.cpu_max.is_some() {
        group.cpu_periods = read_cpu_periods(dir, buf);
    }
    !group.io.is_empty() || group.memory_high.or(group.memory_max).is_some() || group.cpu_max.is_some()
}

/// `nr_periods` and `nr_throttled` of cpu.stat, the same in both versions.
fn read_cpu_periods(dir: &Path, buf: &mut Vec<u8>) -> Option<(u64, u64)> {
    let text = read_once(&dir.join("cpu.stat"), buf).ok()?;
    named_value(text, b"nr_periods").zip(named_value(text, b"nr_throttled"))
}

/// The I/O limits of a group of version 1; false if it has none.
pub(in crate::collect) fn read_blkio_limits(dir: &Path, group: &mut CgroupFacts, buf: &mut Vec<u8>) -> bool {
    type LimitField = fn(&mut CgroupIoLimit) -> &mut Option<u64>;
    let files: [(&str, LimitField); 4] = [
        ("blkio.throttle.read_bps_device", |l| &mut l.read_bytes_per_s),
        ("blkio.throttle.write_bps_device", |l| &mut l.write_bytes_per_s),
        ("blkio.throttle.read_iops_device", |l| &mut l.reads_per_s),
        ("blkio.throttle.write_iops_device", |l| &mut l.writes_per_s),
    ];
    for (file, slot) in files {
        let Ok(text) = read_once(&dir.join(file), buf) else { continue };
        for (id, mut words) in device_lines(text) {
            let Some(value) = words.next().and_then(parse_u64) else { continue };
            let at = group.io.iter().position(|l| l.device == id).unwrap_or_else(|| {
                group.io.push(CgroupIoLimit { device: id, ..CgroupIoLimit::default() });
                group.io.len() - 1
            });
            *slot(&mut group.io[at]) = Some(value);
        }
    }
    if group.io.is_empty() {
        return false;
    }
    // `254:0 Read 4096`: bytes, then operations; preferably with those of the groups below.
    for (offset, names) in [
        (0, ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"]),
        (2, ["blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"]),
    ] {
        let Some(name) = names.into_iter().find(|n| dir.join(n).exists()) else { continue };
        let Ok(text) = read_once(&dir.join(name), buf) else { continue };
        for (id, mut words) in device_lines(text) {
            let (Some(direction), Some(n)) = (words.next(), words.next().and_then(parse_u64)) else { continue };
            let Some(limit) = group.io.iter_mut().find(|l| l.device == id) else { continue };
            let all = limit.transferred.get_or_insert([0; 4]);
            match direction {
                b"Read" => all[offset] = n,
                b"Write" => all[offset + 1] = n,
                _ => {}
            }
        }
    }
    true
}

/// The memory limit of a group of version 1; false if it has none.
pub(in crate::collect) fn read_memory_limit(dir: &Path, group: &mut CgroupFacts, buf: &mut Vec<u8>) -> bool {
    group.memory_max = read_limit(dir, "memory.limit_in_bytes", buf);
    if group.memory_max.is_none() {
        return false;
    }
    group.is_v1_memory = true;
    group.memory_now = read_number(&dir.join("memory.usage_in_bytes"), buf);
    group.max_events = read_number(&dir.join("memory.failcnt"), buf);
    true
}

fn read_cpu_quota(dir: &Path, group: &mut CgroupFacts, buf: &mut Vec<u8>) -> bool {
    // -1 means no limit.
    let quota = read_number(&dir.join("cpu.cfs_quota_us"), buf);
    group.cpu_max = quota.zip(read_number(&dir.join("cpu.cfs_period_us"), buf));
    group.cpu_periods = group.cpu_max.and_then(|_| read_cpu_periods(dir, buf));
    group.cpu_max.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    fn read_limits(dir: &tempfile::TempDir) -> Vec<CgroupFacts> {
        read_cgroup_limits(&Root::at(dir.path()), &[TaskKey { pid: 7, tid: 7, starttime: 1 }], &mut Vec::new())
    }

    #[test]
    fn v2_limits_of_a_group_and_its_ancestors_are_read() {
        let top = "sys/fs/cgroup/db.slice";
        let dir = tree(&[
            ("proc/7/cgroup", "0::/db.slice/a.service\n"),
            (&format!("{top}/io.max"), "254:0 rbps=max wbps=1048576 riops=66 wiops=max\n"),
            (
                &format!("{top}/io.stat"),
                "7:0 rbytes=9 wbytes=9 rios=9 wios=9\n254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
            ),
            (&format!("{top}/memory.high"), "max\n"),
            (&format!("{top}/a.service/io.max"), ""),
            (&format!("{top}/a.service/memory.high"), "1048576\n"),
            (&format!("{top}/a.service/memory.current"), "1000000\n"),
            (&format!("{top}/a.service/memory.events"), "low 0\nhigh 12\nmax 3\noom 0\n"),
            (&format!("{top}/a.service/cpu.max"), "50000 100000\n"),
            (&format!("{top}/a.service/cpu.stat"), "usage_usec 5\nnr_periods 100\nnr_throttled 40\n"),
        ]);
        let got = read_limits(&dir);
        assert_eq!(got.len(), 2);
        let (a, slice) = (&got[0], &got[1]);
        assert_eq!((a.path.as_str(), slice.path.as_str()), ("/db.slice/a.service", "/db.slice"));
        assert_eq!((a.memory_high, a.high_events, a.max_events), (Some(1 << 20), Some(12), Some(3)));
        assert_eq!((a.cpu_max, a.cpu_periods), (Some((50_000, 100_000)), Some((100, 40))));
        let limit = &slice.io[0];
        assert_eq!((limit.reads_per_s, limit.write_bytes_per_s), (Some(66), Some(1 << 20)));
        assert_eq!((limit.read_bytes_per_s, limit.transferred), (None, Some([1, 2, 3, 4])));
        assert_eq!((slice.memory_high, slice.pids.as_slice()), (None, &[7][..]));
    }

    #[test]
    fn v1_limits_are_read() {
        let blkio = "sys/fs/cgroup/blkio/slow";
        let dir = tree(&[
            ("proc/7/cgroup", "7:blkio:/slow\n4:memory:/m\n1:cpu:/\n0::/\n"),
            (&format!("{blkio}/blkio.throttle.read_iops_device"), "7:3 66\n"),
            (&format!("{blkio}/blkio.throttle.io_serviced"), "7:3 Read 50\n7:3 Write 60\n7:3 Total 110\nTotal 110\n"),
            (&format!("{blkio}/blkio.throttle.io_service_bytes"), "7:3 Read 500\n7:3 Write 600\nTotal 1100\n"),
            ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let got = read_limits(&dir);
        assert_eq!(got.len(), 1, "a group without a limit is left out: {got:?}");
        assert_eq!(got[0].io[0].transferred, Some([500, 600, 50, 60]));
        assert_eq!(got[0].io[0].reads_per_s, Some(66));
    }

    #[test]
    fn a_group_outside_the_cgroup_namespace_is_skipped() {
        let dir = tree(&[("proc/7/cgroup", "0::/../../etc\n")]);
        assert_eq!(read_limits(&dir), []);
    }
}
