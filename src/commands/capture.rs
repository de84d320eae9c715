//! `capture`, hidden: writes the tree that `--root` and the tests read, from the machine it runs on.
//!
//! Nothing secret may get into a test or a bug report: the host's and the people's names, network
//! addresses and every argument of a command line that is not a plain option are replaced. Runs in the
//! foreground and may wait for a hung device; that is why it is nobody's key.

mod scrub;

use super::FINE;
use crate::cli::Capture;
use crate::collect::clock;
use crate::root::Root;
use anyhow::Context;
use scrub::Scrub;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A captured file is cut here; the program's own files are far smaller.
const FILE_MAX: u64 = 64 * 1024;
/// Threads kept of one process, and the processes whose threads are kept at all: the size of a test.
const THREADS: usize = 4;
const THREADED: usize = 8;
/// Records kept of the kernel log, the newest.
const RECORDS: usize = 120;

/// Below `proc`, for the whole machine.
const PROC: &[&str] = &[
    "diskstats",
    "stat",
    "vmstat",
    "meminfo",
    "swaps",
    "loadavg",
    "uptime",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
    "net/dev",
    "self/mountinfo",
    "self/mountstats",
    "fs/cifs/Stats",
    "sys/kernel/hostname",
    "sys/kernel/osrelease",
    "sys/kernel/task_delayacct",
    "sys/kernel/hung_task_warnings",
];
/// Below `proc/PID` and `proc/PID/task/TID`.
const TASK: &[&str] = &["stat", "io", "status", "schedstat", "cmdline", "cgroup", "wchan", "comm"];
/// Below `sys/block/DISK` and its partitions.
const DISK: &[&str] = &[
    "dev",
    "size",
    "ro",
    "removable",
    "partition",
    "loop/backing_file",
    "dm/name",
    "dm/uuid",
    "md/level",
    "md/array_state",
    "md/sync_action",
    "md/degraded",
    "device/model",
    "queue/scheduler",
    "queue/nr_requests",
    "queue/read_ahead_kb",
    "queue/rotational",
    "queue/wbt_lat_usec",
    "queue/max_sectors_kb",
    "queue/max_hw_sectors_kb",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/write_cache",
];

/// Writes `DIR/t0`, `DIR/t1`, ... `delay` seconds apart.
pub fn run(root: &Root, args: &Capture) -> anyhow::Result<u8> {
    let scrub = Scrub::of(root);
    let pids = choose(root, args.processes);
    for i in 0..args.count {
        if i > 0 {
            std::thread::sleep(std::time::Duration::from_secs_f64(args.delay));
        }
        let to = args.dir.join(format!("t{i}"));
        fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
        Writer { root, scrub: &scrub, to }.moment(&pids)?;
    }
    Ok(FINE)
}

/// The processes worth keeping: those in state D, then most storage traffic, then most swap, then the
/// rest by number.
fn choose(root: &Root, most: usize) -> Vec<u32> {
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let text =
        |pid: u32, file: &str| fs::read_to_string(root.proc(&format!("{pid}/{file}"))).unwrap_or_default();
    let mut found: Vec<(bool, u64, u64, u32)> = numbers(&root.proc(""))
        .into_iter()
        .map(|pid| {
            let io = text(pid, "io");
            let bytes = number(&io, "read_bytes:") + number(&io, "write_bytes:");
            let status = text(pid, "status");
            (status.contains("State:\tD"), bytes, number(&status, "VmSwap:"), pid)
        })
        .collect();
    found.sort_by_key(|(d, bytes, swap, pid)| (std::cmp::Reverse((*d, *bytes, *swap)), *pid));
    found.into_iter().take(most).map(|f| f.3).collect()
}

fn numbers(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut out: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    out.sort_unstable();
    out
}

struct Writer<'a> {
    root: &'a Root,
    scrub: &'a Scrub,
    to: PathBuf,
}

impl Writer<'_> {
    fn moment(&self, pids: &[u32]) -> anyhow::Result<()> {
        let now = clock::now();
        // Not a kernel's file: the two clocks, for whoever replays the tree.
        self.put("clock", format!("{} {}\n", now.boot_ns, now.wall_ns).as_bytes())?;
        for file in PROC {
            self.copy(&self.root.proc(file), &format!("proc/{file}"))?;
        }
        self.put("proc/sys/kernel/hostname", b"host\n")?;
        for (i, pid) in pids.iter().enumerate() {
            self.task(&format!("{pid}"))?;
            let tids = numbers(&self.root.proc(&format!("{pid}/task")));
            let threads = if i < THREADED { THREADS } else { 0 };
            for tid in tids.into_iter().take(threads) {
                self.task(&format!("{pid}/task/{tid}"))?;
            }
        }
        self.disks()?;
        self.links()?;
        self.put("dev/kmsg", &self.scrub.log(self.root, RECORDS))?;
        self.put("etc/passwd", self.scrub.passwd().as_bytes())
    }

    fn task(&self, rel: &str) -> anyhow::Result<()> {
        for file in TASK {
            let name = format!("{rel}/{file}");
            let Some(text) = read(&self.root.proc(&name)) else { continue };
            let text = if *file == "cmdline" { scrub::options_only(&text) } else { text };
            self.put(&format!("proc/{name}"), &self.scrub.clean(&text))?;
        }
        Ok(())
    }

    /// Disks in use and their partitions; a loop device without a file and an empty drive are left out.
    fn disks(&self) -> anyhow::Result<()> {
        for disk in names(&self.root.sys("block")) {
            let dir = self.root.sys(&format!("block/{disk}"));
            if read(&dir.join("size")).is_none_or(|t| t.trim_ascii() == b"0") {
                continue;
            }
            self.disk(&dir, &format!("sys/block/{disk}"))?;
            for part in names(&dir).into_iter().filter(|n| dir.join(n).join("partition").exists()) {
                self.disk(&dir.join(&part), &format!("sys/block/{disk}/{part}"))?;
            }
        }
        Ok(())
    }

    fn disk(&self, from: &Path, rel: &str) -> anyhow::Result<()> {
        for file in DISK {
            self.copy(&from.join(file), &format!("{rel}/{file}"))?;
        }
        // Links in the kernel; here the names alone, as empty files.
        for name in names(&from.join("slaves")) {
            self.put(&format!("{rel}/slaves/{name}"), b"")?;
        }
        Ok(())
    }

    fn links(&self) -> anyhow::Result<()> {
        for name in names(&self.root.sys("class/net")) {
            let rel = format!("class/net/{name}/speed");
            self.copy(&self.root.sys(&rel), &format!("sys/{rel}"))?;
        }
        Ok(())
    }

    /// A file that cannot be read is missing in the tree too: the program is to see the same gap.
    fn copy(&self, from: &Path, rel: &str) -> anyhow::Result<()> {
        match read(from) {
            Some(text) => self.put(rel, &self.scrub.clean(&text)),
            None => Ok(()),
        }
    }

    fn put(&self, rel: &str, text: &[u8]) -> anyhow::Result<()> {
        let path = self.to.join(rel);
        let dir = path.parent().unwrap_or(&self.to);
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().into_string().ok()).collect()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(FILE_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, rel: &str, text: &str) {
        fs::create_dir_all(root.join(rel).parent().unwrap()).unwrap();
        fs::write(root.join(rel), text).unwrap();
    }

    #[test]
    fn a_tree_is_copied_without_names_and_secrets() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = from.path();
        put(at, "proc/sys/kernel/hostname", "prod-db-7\n");
        put(at, "etc/passwd", "root:x:0:0::/root:/bin/sh\njane:x:1001:1001::/home/jane:/bin/sh\n");
        put(at, "proc/diskstats", " 8 0 sda 1 2 3\n");
        put(at, "proc/77/stat", "77 (jane-tool) S 1\n");
        put(at, "proc/77/cmdline", "/home/jane/tool\0-v\0--password=hunter2\0hunter2\0");
        put(at, "proc/77/io", "read_bytes: 5\nwrite_bytes: 6\n");
        put(at, "proc/78/stat", "78 (idle) S 1\n");
        put(at, "sys/block/sda/size", "99\n");
        put(at, "sys/block/sda/dev", "8:0\n");
        put(at, "sys/block/loop0/size", "0\n");
        put(at, "dev/kmsg", "4,1,5,-;eth0: prod-db-7 at 10.1.2.3 aa:bb:cc:dd:ee:ff\n SUBSYSTEM=net\n");
        let args = Capture { dir: to.path().into(), count: 2, delay: 0.0, processes: 1 };
        run(&Root::at(at), &args).unwrap();
        let got = |rel: &str| String::from_utf8(fs::read(to.path().join(rel)).unwrap()).unwrap();
        assert_eq!(got("t1/proc/diskstats"), " 8 0 sda 1 2 3\n");
        assert_eq!(got("t0/proc/77/cmdline"), "/home/user1/tool\0-v\0--password=...\0...\0");
        assert_eq!(got("t0/proc/77/stat"), "77 (user1-tool) S 1\n");
        assert_eq!(got("t0/proc/sys/kernel/hostname"), "host\n");
        assert_eq!(got("t0/dev/kmsg"), "4,1,5,-;eth0: host at 192.0.2.1 02:00:00:00:00:00\n SUBSYSTEM=net\n");
        assert_eq!(got("t0/etc/passwd"), "root:x:0:0:::\nuser1:x:1001:1001:::\n");
        assert!(!to.path().join("t0/proc/78").exists() && !to.path().join("t0/sys/block/loop0").exists());
        assert!(to.path().join("t0/sys/block/sda/dev").exists());
    }
}
