//! Copies the files that `--root` and the tests read from the running machine: `cargo run --example capture -- DIR`.
//!
//! Names of the host and its users, network addresses and all command-line arguments except plain options are
//! replaced, because the result ends up in tests and bug reports. It may block on a hung device.

mod redact;

use anyhow::{Context, bail};
use clap::Parser;
use iotop_plus::collect::clock;
use iotop_plus::root::Root;
use iotop_plus::subprocess::owner::find_foreign_owner;
use redact::CaptureRedactor;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Captures the files that `iotop-plus --root` reads, without names and addresses, for tests and bug reports.
#[derive(Debug, Parser)]
struct CaptureArgs {
    /// Target directory; the snapshots are named t0, t1, ...
    dir: PathBuf,
    /// Number of snapshots.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: u32,
    /// Seconds between snapshots.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    delay: f64,
    /// Number of processes to capture, the busiest first.
    #[arg(long, value_name = "N", default_value_t = 40)]
    processes: usize,
    /// Read proc, sys and dev from this directory instead of the running machine.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        Ok(_) => Err("must be 0.1 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
    }
}

fn main() -> anyhow::Result<()> {
    let args = CaptureArgs::parse();
    run(&args.root.as_ref().map_or_else(Root::live, Root::at), &args)
}

/// Longer files are truncated; those the program reads are much shorter.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Threads captured per process, and the number of processes whose threads are captured; limits the size of test
/// fixtures.
const MAX_THREADS: usize = 4;
const PROCESSES_WITH_THREADS: usize = 8;
/// Kernel log records captured, the newest.
const MAX_LOG_RECORDS: usize = 120;

/// Files below `proc` for the whole machine.
const PROC_FILES: &str = "diskstats stat vmstat meminfo swaps loadavg uptime pressure/cpu pressure/memory pressure/io \
                          net/dev self/mountinfo self/mountstats fs/cifs/Stats sys/kernel/hostname \
                          sys/kernel/osrelease sys/kernel/task_delayacct sys/kernel/hung_task_warnings";
/// Files below `proc/PID` and `proc/PID/task/TID`.
const TASK_FILES: &str = "stat io status schedstat cmdline cgroup wchan comm";
/// Files below `sys/block/DISK` and its partitions.
const DISK_FILES: &str = "dev size ro removable partition loop/backing_file dm/name dm/uuid md/level md/array_state \
                          md/sync_action md/degraded device/model queue/scheduler queue/nr_requests \
                          queue/read_ahead_kb queue/rotational queue/wbt_lat_usec queue/max_sectors_kb \
                          queue/max_hw_sectors_kb queue/logical_block_size queue/physical_block_size \
                          queue/write_cache";

/// Writes `DIR/t0`, `DIR/t1`, ..., `delay` seconds apart.
fn run(root: &Root, args: &CaptureArgs) -> anyhow::Result<()> {
    let dir = std::path::absolute(&args.dir)?;
    // The names below are known: whoever may put links in their place decides which files are written.
    if let Some(owner) = find_foreign_owner(&dir)? {
        bail!("{}: user {} can put links there; name a directory that belongs to root", dir.display(), owner.uid);
    }
    let scrub = CaptureRedactor::from_root(root);
    let pids = select_processes(root, args.processes);
    for i in 0..args.count {
        if i > 0 {
            std::thread::sleep(std::time::Duration::from_secs_f64(args.delay));
        }
        let to = dir.join(format!("t{i}"));
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        // Nothing is written into what was there before.
        fs::DirBuilder::new().mode(0o700).create(&to).with_context(|| format!("cannot make {}", to.display()))?;
        TreeWriter { root, redactor: &scrub, target_dir: to }.write_snapshot(&pids)?;
    }
    Ok(())
}

/// The processes to capture: first those in state D, then by storage traffic, swap and pid.
fn select_processes(root: &Root, most: usize) -> Vec<u32> {
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let text = |pid: u32, file: &str| fs::read_to_string(root.proc(&format!("{pid}/{file}"))).unwrap_or_default();
    let mut found: Vec<(bool, u64, u64, u32)> = numeric_entries(&root.proc(""))
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

fn numeric_entries(dir: &Path) -> BTreeSet<u32> {
    entry_names(dir).iter().filter_map(|name| name.parse().ok()).collect()
}

struct TreeWriter<'a> {
    root: &'a Root,
    redactor: &'a CaptureRedactor,
    target_dir: PathBuf,
}

impl TreeWriter<'_> {
    fn write_snapshot(&self, pids: &[u32]) -> anyhow::Result<()> {
        let now = clock::now();
        // Not a kernel file: both clocks, which replaying the tree needs.
        self.write_file("clock", format!("{} {}\n", now.boot_ns, now.wall_ns).as_bytes())?;
        for file in PROC_FILES.split(' ') {
            self.copy_file(&self.root.proc(file), &format!("proc/{file}"))?;
        }
        self.write_file("proc/sys/kernel/hostname", b"host\n")?;
        for (i, pid) in pids.iter().enumerate() {
            self.write_task(&format!("{pid}"))?;
            let tids = numeric_entries(&self.root.proc(&format!("{pid}/task")));
            let threads = if i < PROCESSES_WITH_THREADS { MAX_THREADS } else { 0 };
            for tid in tids.into_iter().take(threads) {
                self.write_task(&format!("{pid}/task/{tid}"))?;
            }
        }
        self.write_disks()?;
        self.write_network_speeds()?;
        self.write_file("dev/kmsg", &self.redactor.redacted_kernel_log(self.root, MAX_LOG_RECORDS))?;
        self.write_file("etc/passwd", self.redactor.passwd().as_bytes())
    }

    fn write_task(&self, rel: &str) -> anyhow::Result<()> {
        for file in TASK_FILES.split(' ') {
            let name = format!("{rel}/{file}");
            let Some(text) = read_capped(&self.root.proc(&name)) else { continue };
            let text = if file == "cmdline" { redact::redact_arguments(&text) } else { text };
            self.write_file(&format!("proc/{name}"), &self.redactor.redact(&text))?;
        }
        Ok(())
    }

    /// Disks in use and their partitions, without unused loop devices and empty drives.
    fn write_disks(&self) -> anyhow::Result<()> {
        for disk in entry_names(&self.root.sys("block")) {
            let dir = self.root.sys(&format!("block/{disk}"));
            if read_capped(&dir.join("size")).is_none_or(|t| t.trim_ascii() == b"0") {
                continue;
            }
            self.write_disk(&dir, &format!("sys/block/{disk}"))?;
            for part in entry_names(&dir).into_iter().filter(|n| dir.join(n).join("partition").exists()) {
                self.write_disk(&dir.join(&part), &format!("sys/block/{disk}/{part}"))?;
            }
        }
        Ok(())
    }

    fn write_disk(&self, from: &Path, rel: &str) -> anyhow::Result<()> {
        for file in DISK_FILES.split(' ') {
            self.copy_file(&from.join(file), &format!("{rel}/{file}"))?;
        }
        // The kernel has links here; the tree has empty files with their names.
        for name in entry_names(&from.join("slaves")) {
            self.write_file(&format!("{rel}/slaves/{name}"), b"")?;
        }
        Ok(())
    }

    fn write_network_speeds(&self) -> anyhow::Result<()> {
        for name in entry_names(&self.root.sys("class/net")) {
            let rel = format!("class/net/{name}/speed");
            self.copy_file(&self.root.sys(&rel), &format!("sys/{rel}"))?;
        }
        Ok(())
    }

    /// Copies a file. One that cannot be read is missing in the tree, as it is for the program.
    fn copy_file(&self, from: &Path, rel: &str) -> anyhow::Result<()> {
        match read_capped(from) {
            Some(text) => self.write_file(rel, &self.redactor.redact(&text)),
            None => Ok(()),
        }
    }

    fn write_file(&self, rel: &str, text: &[u8]) -> anyhow::Result<()> {
        let path = self.target_dir.join(rel);
        let dir = path.parent().unwrap_or(&self.target_dir);
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn entry_names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().into_string().ok()).collect()
}

fn read_capped(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn planted_links_are_not_followed() {
        let (from, to, other) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), to.path().join("t0")).unwrap();
        let args = CaptureArgs { dir: to.path().into(), count: 1, delay: 0.0, processes: 1, root: None };
        assert!(run(&Root::at(from.path()), &args).is_err());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(to.path(), Some(1), None).unwrap();
            let args = CaptureArgs { dir: to.path().join("new"), count: 1, delay: 0.0, processes: 1, root: None };
            let refused = run(&Root::at(from.path()), &args).unwrap_err().to_string();
            assert!(refused.contains("user 1 can put links there"), "{refused}");
        }
    }

    fn write_file(root: &Path, rel: &str, text: &str) {
        fs::create_dir_all(root.join(rel).parent().unwrap()).unwrap();
        fs::write(root.join(rel), text).unwrap();
    }

    #[test]
    fn a_tree_is_captured_without_names_and_secrets() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = from.path();
        write_file(at, "proc/sys/kernel/hostname", "prod-db-7\n");
        write_file(at, "etc/passwd", "root:x:0:0::/root:/bin/sh\njane:x:1001:1001::/home/jane:/bin/sh\n");
        write_file(at, "proc/diskstats", " 8 0 sda 1 2 3\n");
        write_file(at, "proc/77/stat", "77 (jane-tool) S 1\n");
        write_file(at, "proc/77/cmdline", "/home/jane/tool\0-v\0--password=hunter2\0hunter2\0");
        write_file(at, "proc/77/io", "read_bytes: 5\nwrite_bytes: 6\n");
        write_file(at, "proc/78/stat", "78 (idle) S 1\n");
        write_file(at, "sys/block/sda/size", "99\n");
        write_file(at, "sys/block/sda/dev", "8:0\n");
        write_file(at, "sys/block/loop0/size", "0\n");
        write_file(at, "dev/kmsg", "4,1,5,-;eth0: prod-db-7 at 10.1.2.3 aa:bb:cc:dd:ee:ff\n SUBSYSTEM=net\n");
        let args = CaptureArgs { dir: to.path().into(), count: 2, delay: 0.0, processes: 1, root: None };
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
