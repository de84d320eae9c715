//! Slow facts for the doctor: kernel settings, open files and limits of chosen processes, limits of their control
//! groups, free space of file systems, health of devices, names of containers.
//!
//! Only for child processes: statfs(2) blocks on a dead file system, and a process' files may block, too.

pub(in crate::collect) mod cgroup_limits;
mod containers;
mod health;
mod task_waits;
mod thin_pools;

pub(crate) use containers::read_container_names;

use super::clock;
use super::kernel_file::read_once;
use super::path::{is_mounted_here, read_space};
use crate::collect::limits;
use crate::model::process::TaskKey;
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::Reading;
use crate::model::slow_facts::{MountSpace, OpenFiles, SpaceReport, SystemFacts};
use crate::parse::{bracketed_choice, named_value};
use crate::root::Root;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const REPORTED_SYSCTLS: &[&str] = &[
    "kernel.hung_task_timeout_secs",
    "kernel.hung_task_warnings",
    "kernel.task_delayacct",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_ratio",
    "vm.swappiness",
];

/// All facts of these tasks except free space and stored benchmark results: of their processes, and what each waits for.
pub(crate) fn read_facts(root: &Root, tasks: &[TaskKey]) -> SystemFacts {
    let mut buf = Vec::new();
    let mut pids = HashSet::new();
    let processes: Vec<TaskKey> = tasks.iter().filter(|key| pids.insert(key.pid)).copied().collect();
    let (health, health_left_out) = health::read_health(root, &mut buf);
    let thp = read_thp_mode(root, &mut buf);
    let is_always = thp.as_deref() == Some("always");
    let without_thp = processes.iter().filter(|key| is_always && is_without_thp(root, key.pid, &mut buf));
    let without_thp = without_thp.copied().collect();
    SystemFacts {
        time: clock::now(),
        knobs: read_sysctls(root, &mut buf),
        thp,
        without_thp,
        open_files: processes.iter().filter_map(|key| count_open_files(root, *key, &mut buf)).collect(),
        cgroups: cgroup_limits::read_cgroup_limits(root, &processes, &mut buf),
        results: Vec::new(),
        waits: tasks.iter().filter_map(|key| task_waits::read_wait(root, *key, &mut buf)).collect(),
        health,
        health_left_out,
        thin_pools: thin_pools::read_thin_pools(root, &mut buf),
        containers: containers::read_container_names(root),
    }
}

fn read_sysctls(root: &Root, buf: &mut Vec<u8>) -> BTreeMap<String, String> {
    let read = |name: &&str| {
        let path = root.proc(&format!("sys/{}", name.replace('.', "/")));
        let text = String::from_utf8_lossy(read_once(&path, buf).ok()?.trim_ascii()).into_owned();
        Some((name.to_string(), text))
    };
    REPORTED_SYSCTLS.iter().filter_map(read).collect()
}

/// `always [madvise] never`: the value in brackets.
fn read_thp_mode(root: &Root, buf: &mut Vec<u8>) -> Option<String> {
    let text = read_once(&root.sys("kernel/mm/transparent_hugepage/enabled"), buf).ok()?;
    bracketed_choice(&String::from_utf8_lossy(text)).0.map(str::to_owned)
}

/// Whether a process has opted out of transparent huge pages, as Redis does since 6.2 (`THP_enabled: 0`, since Linux 5.0).
fn is_without_thp(root: &Root, pid: u32, buf: &mut Vec<u8>) -> bool {
    let status = read_once(&root.proc(&format!("{pid}/status")), buf);
    status.is_ok_and(|text| named_value(text, b"THP_enabled") == Some(0))
}

/// Since 6.2 the size of the fd directory is the number of descriptors (fs/proc/fd.c); before that they are counted.
fn count_open_files(root: &Root, key: TaskKey, buf: &mut Vec<u8>) -> Option<OpenFiles> {
    let dir = root.proc(&format!("{}/fd", key.pid));
    let told = std::fs::metadata(&dir).ok()?.size();
    let open = match root.is_live() && told > 0 {
        true => told,
        false => std::fs::read_dir(&dir).ok()?.count() as u64,
    };
    let text = read_once(&root.proc(&format!("{}/limits", key.pid)), buf).ok()?;
    let limit = limits::parse(text).find(|limit| limit.name == "Max open files")?;
    Some(OpenFiles { key, open, soft: limit.soft, hard: limit.hard })
}

/// The free space of these mounts, one after the other: blocks on a dead one.
pub(crate) fn read_disk_space(root: &Root, mounts: &[RawBytes], network: bool) -> SpaceReport {
    let at = clock::now();
    let of = |point: &RawBytes| {
        let path = Path::new(OsStr::from_bytes(point.as_bytes()));
        let space = match is_mounted_here(root, path) {
            true => read_space(root, path),
            false => Reading::Absent("the host mounted it after this container started".into()),
        };
        MountSpace { mount_point: point.clone(), space }
    };
    SpaceReport { time: at, is_network: network, mounts: mounts.iter().map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_omitted_from_facts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/sys/vm/swappiness", "60\n");
        put("proc/sys/kernel/hung_task_warnings", "-1\n");
        put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            4                    4096                 files     \n";
        put("proc/7/limits", limits);
        put("proc/7/status", "Name:\tredis-server\nTHP_enabled:\t0\nThreads:\t4\n");
        for fd in 0..3 {
            put(&format!("proc/7/fd/{fd}"), "");
        }
        let key = TaskKey { pid: 7, tid: 7, starttime: 1 };
        let gone = TaskKey { pid: 8, tid: 8, starttime: 1 };
        let got = read_facts(&Root::at(dir.path()), &[key, gone]);
        assert_eq!(got.thp.as_deref(), Some("always"));
        assert_eq!(got.without_thp, [key], "as its status says");
        assert_eq!(got.knobs.len(), 2);
        assert_eq!(got.knobs["kernel.hung_task_warnings"], "-1");
        assert_eq!(got.open_files, [OpenFiles { key, open: 3, soft: Some(4), hard: Some(4096) }]);
    }

    #[test]
    fn disk_space_matches_statfs_and_a_missing_path_is_an_error() {
        let got = read_disk_space(&Root::live(), &[RawBytes::from("/"), RawBytes::from("/nowhere/at/all")], false);
        assert!(got.mounts[0].space.ok().unwrap().total_bytes > 0);
        assert!(got.mounts[1].space.ok().is_none());
    }
}
