//! Limits of control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst) and the version 1
//! controllers blkio, memory and cpu (Documentation/admin-guide/cgroup-v1/).

use super::small_number;
use crate::collect::read::read_once;
use crate::collect::scan::{lines, number, words};
use crate::model::disk::DevId;
use crate::model::facts::{GroupFacts, IoLimit};
use crate::model::process::TaskKey;
use crate::root::Root;
use crate::text::clean;
use std::path::{Path, PathBuf};

/// Groups looked at; a machine with more has most of them idle.
const MOST: usize = 256;
/// Levels above a group that may hold a limit.
const DEPTH: usize = 16;

/// Where the version 1 controllers' files may be: mounted alone or together.
const V1: &[(&str, &[&str])] =
    &[("blkio", &["blkio"]), ("memory", &["memory"]), ("cpu", &["cpu", "cpu,cpuacct", "cpuacct,cpu"])];

/// The groups of these tasks and those above them, as far as they have a limit.
pub fn groups(root: &Root, tasks: &[TaskKey], buf: &mut Vec<u8>) -> Vec<GroupFacts> {
    let mut seen: Vec<(PathBuf, Kind, GroupFacts)> = Vec::new();
    for task in tasks {
        let Ok(text) = read_once(&root.proc(&format!("{}/cgroup", task.pid)), buf) else { continue };
        for (kind, path) in memberships(text) {
            for dir in dirs(root, kind, &path) {
                let room = seen.len() < MOST;
                match seen.iter_mut().find(|(at, of, _)| *at == dir.0 && *of == kind) {
                    Some((_, _, group)) => group.pids.push(task.pid),
                    None if room => {
                        let group =
                            GroupFacts { path: clean(dir.1), pids: vec![task.pid], ..GroupFacts::default() };
                        seen.push((dir.0, kind, group));
                    }
                    None => {}
                }
            }
        }
    }
    let mut out: Vec<GroupFacts> = Vec::new();
    for (dir, kind, mut group) in seen {
        let limited = match kind {
            Kind::Unified => unified(&dir, &mut group, buf),
            Kind::Blkio => blkio(&dir, &mut group, buf),
            Kind::Memory => memory(&dir, &mut group, buf),
            Kind::Cpu => cpu(&dir, &mut group, buf),
        };
        if limited {
            out.push(group);
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unified,
    Blkio,
    Memory,
    Cpu,
}

/// The task's groups of the hierarchies that limit.
fn memberships(text: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut out = Vec::new();
    for line in lines(text) {
        let mut fields = line.splitn(3, |b| *b == b':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let mut add = |kind| out.push((kind, path.to_vec()));
        if controllers.is_empty() {
            add(Kind::Unified);
        }
        for controller in controllers.split(|b| *b == b',') {
            match controller {
                b"blkio" => add(Kind::Blkio),
                b"memory" => add(Kind::Memory),
                b"cpu" => add(Kind::Cpu),
                _ => {}
            }
        }
    }
    out
}

/// The directory of the group and of those above it, but for the root, which has no limits.
fn dirs(root: &Root, kind: Kind, path: &[u8]) -> Vec<(PathBuf, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt;
    // Seen from a namespace a path may lead upwards; nothing is to be found there.
    if path.split(|b| *b == b'/').any(|part| part == b"..") {
        return Vec::new();
    }
    let top = top(root, kind);
    let mut out = Vec::new();
    let mut at = path;
    while at.len() > 1 && out.len() < DEPTH {
        let below = std::ffi::OsStr::from_bytes(&at[1..]);
        out.push((top.join(below), at.to_vec()));
        at = &at[..at.iter().rposition(|b| *b == b'/').unwrap_or(0)];
    }
    out
}

fn top(root: &Root, kind: Kind) -> PathBuf {
    let place = |name: &str| root.sys(&format!("fs/cgroup/{name}"));
    let name = match kind {
        Kind::Unified => {
            // Hybrid machines mount it beside the others.
            let beside = place("unified");
            return if beside.is_dir() { beside } else { root.sys("fs/cgroup") };
        }
        Kind::Blkio => "blkio",
        Kind::Memory => "memory",
        Kind::Cpu => "cpu",
    };
    let places = V1.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, places)| places);
    places.iter().map(|p| place(p)).find(|p| p.is_dir()).unwrap_or_else(|| place(name))
}

fn device(word: &[u8]) -> Option<DevId> {
    let at = word.iter().position(|b| *b == b':')?;
    Some(DevId { major: number(&word[..at])? as u32, minor: number(&word[at + 1..])? as u32 })
}

/// `max` and nonsense are no limit.
fn limit(dir: &Path, file: &str, buf: &mut Vec<u8>) -> Option<u64> {
    // Version 1 writes "no limit" as the largest number of whole pages.
    small_number(&dir.join(file), buf).filter(|n| *n < 1 << 62)
}

/// The value after a name in a file of `name value` lines.
fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    lines(text).find_map(|line| {
        let mut w = words(line);
        (w.next()? == name).then(|| number(w.next()?))?
    })
}

fn unified(dir: &Path, group: &mut GroupFacts, buf: &mut Vec<u8>) -> bool {
    if let Ok(text) = read_once(&dir.join("io.max"), buf) {
        group.io = lines(text).filter_map(io_max).collect();
    }
    if !group.io.is_empty()
        && let Ok(text) = read_once(&dir.join("io.stat"), buf)
    {
        moved(text, &mut group.io);
    }
    group.memory_high = limit(dir, "memory.high", buf);
    group.memory_max = limit(dir, "memory.max", buf);
    if group.memory_high.or(group.memory_max).is_some() {
        group.memory_now = small_number(&dir.join("memory.current"), buf);
        if let Ok(text) = read_once(&dir.join("memory.events"), buf) {
            (group.high_events, group.max_events) = (field(text, b"high"), field(text, b"max"));
        }
    }
    if let Ok(text) = read_once(&dir.join("cpu.max"), buf) {
        let mut w = words(text);
        group.cpu_max = w.next().and_then(number).zip(w.next().and_then(number));
    }
    if group.cpu_max.is_some() {
        group.cpu_periods = periods(dir, buf);
    }
    !group.io.is_empty() || group.memory_high.or(group.memory_max).is_some() || group.cpu_max.is_some()
}

/// `254:0 rbps=max wbps=1048576 riops=66 wiops=max`.
fn io_max(line: &[u8]) -> Option<IoLimit> {
    let mut w = words(line);
    let mut out = IoLimit { device: device(w.next()?)?, ..IoLimit::default() };
    for word in w {
        let Some(at) = word.iter().position(|b| *b == b'=') else { continue };
        let value = number(&word[at + 1..]);
        match &word[..at] {
            b"rbps" => out.read_bytes_per_s = value,
            b"wbps" => out.write_bytes_per_s = value,
            b"riops" => out.reads_per_s = value,
            b"wiops" => out.writes_per_s = value,
            _ => {}
        }
    }
    Some(out)
}

/// `254:0 rbytes=1 wbytes=2 rios=3 wios=4 ...`.
fn moved(text: &[u8], limits: &mut [IoLimit]) {
    for line in lines(text) {
        let mut w = words(line);
        let id = w.next().and_then(device);
        let Some(limit) = limits.iter_mut().find(|l| Some(l.device) == id) else { continue };
        let mut all = [0; 4];
        for word in w {
            let names: [&[u8]; 4] = [b"rbytes=", b"wbytes=", b"rios=", b"wios="];
            for (i, name) in names.into_iter().enumerate() {
                all[i] = word.strip_prefix(name).and_then(number).unwrap_or(all[i]);
            }
        }
        limit.moved = Some(all);
    }
}

/// `nr_periods` and `nr_throttled` of cpu.stat, the same in both versions.
fn periods(dir: &Path, buf: &mut Vec<u8>) -> Option<(u64, u64)> {
    let text = read_once(&dir.join("cpu.stat"), buf).ok()?;
    field(text, b"nr_periods").zip(field(text, b"nr_throttled"))
}

fn blkio(dir: &Path, group: &mut GroupFacts, buf: &mut Vec<u8>) -> bool {
    type Slot = fn(&mut IoLimit) -> &mut Option<u64>;
    let files: [(&str, Slot); 4] = [
        ("blkio.throttle.read_bps_device", |l| &mut l.read_bytes_per_s),
        ("blkio.throttle.write_bps_device", |l| &mut l.write_bytes_per_s),
        ("blkio.throttle.read_iops_device", |l| &mut l.reads_per_s),
        ("blkio.throttle.write_iops_device", |l| &mut l.writes_per_s),
    ];
    for (file, slot) in files {
        let Ok(text) = read_once(&dir.join(file), buf) else { continue };
        for line in lines(text) {
            let mut w = words(line);
            let (Some(id), Some(value)) = (w.next().and_then(device), w.next().and_then(number)) else {
                continue;
            };
            let at = group.io.iter().position(|l| l.device == id).unwrap_or_else(|| {
                group.io.push(IoLimit { device: id, ..IoLimit::default() });
                group.io.len() - 1
            });
            *slot(&mut group.io[at]) = Some(value);
        }
    }
    if group.io.is_empty() {
        return false;
    }
    // `254:0 Read 4096`: bytes first, then operations; both with what the groups below moved, if told.
    for (offset, names) in [
        (0, ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"]),
        (2, ["blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"]),
    ] {
        let Some(name) = names.into_iter().find(|n| dir.join(n).exists()) else { continue };
        let Ok(text) = read_once(&dir.join(name), buf) else { continue };
        for line in lines(text) {
            let mut w = words(line);
            let (Some(id), Some(what), Some(n)) =
                (w.next().and_then(device), w.next(), w.next().and_then(number))
            else {
                continue;
            };
            let Some(limit) = group.io.iter_mut().find(|l| l.device == id) else { continue };
            let all = limit.moved.get_or_insert([0; 4]);
            match what {
                b"Read" => all[offset] = n,
                b"Write" => all[offset + 1] = n,
                _ => {}
            }
        }
    }
    true
}

fn memory(dir: &Path, group: &mut GroupFacts, buf: &mut Vec<u8>) -> bool {
    group.memory_max = limit(dir, "memory.limit_in_bytes", buf);
    if group.memory_max.is_none() {
        return false;
    }
    group.memory_now = small_number(&dir.join("memory.usage_in_bytes"), buf);
    group.max_events = small_number(&dir.join("memory.failcnt"), buf);
    true
}

fn cpu(dir: &Path, group: &mut GroupFacts, buf: &mut Vec<u8>) -> bool {
    // -1 is no limit.
    let quota = small_number(&dir.join("cpu.cfs_quota_us"), buf);
    group.cpu_max = quota.zip(small_number(&dir.join("cpu.cfs_period_us"), buf));
    group.cpu_periods = group.cpu_max.and_then(|_| periods(dir, buf));
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

    fn look(dir: &tempfile::TempDir) -> Vec<GroupFacts> {
        groups(&Root::at(dir.path()), &[TaskKey { pid: 7, tid: 7, starttime: 1 }], &mut Vec::new())
    }

    #[test]
    fn version_2_limits_of_a_group_and_the_one_above() {
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
        let got = look(&dir);
        assert_eq!(got.len(), 2);
        let (a, slice) = (&got[0], &got[1]);
        assert_eq!((a.path.as_str(), slice.path.as_str()), ("/db.slice/a.service", "/db.slice"));
        assert_eq!((a.memory_high, a.high_events, a.max_events), (Some(1 << 20), Some(12), Some(3)));
        assert_eq!((a.cpu_max, a.cpu_periods), (Some((50_000, 100_000)), Some((100, 40))));
        let limit = &slice.io[0];
        assert_eq!((limit.reads_per_s, limit.write_bytes_per_s), (Some(66), Some(1 << 20)));
        assert_eq!((limit.read_bytes_per_s, limit.moved), (None, Some([1, 2, 3, 4])));
        assert_eq!((slice.memory_high, slice.pids.as_slice()), (None, &[7][..]));
    }

    #[test]
    fn version_1_limits() {
        let blkio = "sys/fs/cgroup/blkio/slow";
        let dir = tree(&[
            ("proc/7/cgroup", "7:blkio:/slow\n4:memory:/m\n1:cpu:/\n0::/\n"),
            (&format!("{blkio}/blkio.throttle.read_iops_device"), "7:3 66\n"),
            (
                &format!("{blkio}/blkio.throttle.io_serviced"),
                "7:3 Read 50\n7:3 Write 60\n7:3 Total 110\nTotal 110\n",
            ),
            (
                &format!("{blkio}/blkio.throttle.io_service_bytes"),
                "7:3 Read 500\n7:3 Write 600\nTotal 1100\n",
            ),
            ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let got = look(&dir);
        assert_eq!(got.len(), 1, "a group without a limit is left out: {got:?}");
        assert_eq!(got[0].io[0].moved, Some([500, 600, 50, 60]));
        assert_eq!(got[0].io[0].reads_per_s, Some(66));
    }

    #[test]
    fn a_group_outside_of_the_namespace_is_left_alone() {
        let dir = tree(&[("proc/7/cgroup", "0::/../../etc\n")]);
        assert_eq!(look(&dir), []);
    }
}
