//! `sweep --readahead` on a real partition: it is the disk's read-ahead that changes, it changes what is read,
//! and it is given back whatever becomes of the run.

use crate::lab::{BenchDir, LongRun, skip};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// ext4 on a partition of a loop device.
struct PartitionedLoopDevice {
    dir: tempfile::TempDir,
    name: String,
    original_kb: String,
}

fn run(line: &[&str]) -> Option<String> {
    let out = Command::new(line[0]).args(&line[1..]).output().ok().filter(|o| o.status.success());
    if out.is_none() {
        skip(&format!("{} does not work here", line[0]));
    }
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

impl PartitionedLoopDevice {
    fn mounted() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("needs root to change a read-ahead");
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let (image, mnt) = (dir.path().join("img"), dir.path().join("mnt"));
        std::fs::create_dir(&mnt).ok()?;
        let file = std::fs::File::create(&image).ok()?;
        file.set_len(4 << 30).ok()?;
        drop(file);
        let device = run(&["losetup", "-f", "--show", image.to_str()?])?;
        let name = device.strip_prefix("/dev/")?.to_owned();
        let mut disk = Self { dir, name, original_kb: String::new() };
        disk.original_kb = disk.read_ahead();
        // Told to the kernel, not read from a table: not every kernel knows tables.
        let partition = format!("{device}p1");
        run(&["addpart", &device, "1", "2048", "8386560"])?;
        run(&["mkfs.ext4", "-q", "-F", &partition])?;
        run(&["mount", &partition, mnt.to_str()?])?;
        std::fs::write(disk.file(), "256").ok()?;
        Some(disk)
    }

    fn mount_point(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    fn file(&self) -> String {
        format!("/sys/block/{}/queue/read_ahead_kb", self.name)
    }

    fn read_ahead(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap_or_default().trim().to_owned()
    }

    /// The roots' own: the journal of a test is not the machine's.
    fn root(&self) -> PathBuf {
        let root = self.dir.path().join("root");
        for top in ["run", "etc"] {
            let _ = std::fs::create_dir_all(root.join(top));
        }
        for top in ["proc", "sys", "dev"] {
            let _ = std::os::unix::fs::symlink(Path::new("/").join(top), root.join(top));
        }
        root
    }
}

impl Drop for PartitionedLoopDevice {
    fn drop(&mut self) {
        let _ = std::fs::write(self.file(), &self.original_kb);
        let _ = Command::new("umount").arg("-l").arg(self.mount_point()).status();
        let _ = Command::new("delpart").args([&format!("/dev/{}", self.name), "1"]).status();
        let _ = Command::new("losetup").args(["-d", &format!("/dev/{}", self.name)]).status();
    }
}

/// The children of a process.
fn children(of: u32) -> Vec<OwnedFd> {
    let parent = |pid: &Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|e| e.file_name());
    let pids = names.filter_map(|n| Pid::from_raw(n.to_str()?.parse().ok()?));
    pids.filter(|pid| parent(pid) == Some(of)).filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}

/// Waits for a process to end.
fn wait_for_end(process: &OwnedFd) -> bool {
    let within = Timespec { tv_sec: 20, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&within)).unwrap() == 1
}

#[test]
fn both_settings_are_measured_and_the_original_is_restored() {
    let (Some(disk), Some(place)) = (PartitionedLoopDevice::mounted(), BenchDir::new()) else { return };
    let (root, mnt) = (disk.root(), disk.mount_point());
    let words = ["bench", "run", "sweep", mnt.to_str().unwrap(), "--readahead", "--size", "8M", "--time", "0.05"];
    let mut all = vec!["--root", root.to_str().unwrap()];
    all.extend(words);
    let out = place.run(&[&all[..], &["-q", "--format", "json"]].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 24);
    assert!(parts[0]["label"] == "read-ahead off 512 B" && parts[12]["label"] == "read-ahead 256 KiB 512 B");
    // Without read-ahead the kernel asks the device page by page, with it in pieces of many pages: the device
    // counts far fewer requests for each byte.
    let kib_each = |n: usize| {
        let d = &parts[n]["device"];
        d["read_mb_per_s"].as_f64().unwrap() * 1024.0 / d["reads_per_s"].as_f64().unwrap()
    };
    assert!(kib_each(3) < 6.0 && kib_each(15) > 30.0, "{} {}", kib_each(3), kib_each(15));
    assert_eq!(disk.read_ahead(), "256");
    assert_eq!(std::fs::read_dir(&mnt).unwrap().count(), 1, "lost+found only");
}

#[test]
fn readahead_is_restored_after_cancel_and_kill() {
    let Some(disk) = PartitionedLoopDevice::mounted() else { return };
    let plan = json!({
        "profile": "sweep", "directory": disk.mount_point(), "size": 64 << 20, "block": 512, "depth": 1, "read_pct": 100,
        "direct": false, "readahead": true, "ramp_ms": 0, "time_ms": 60_000,
    });
    for kill in [false, true] {
        let mut long = LongRun::start_in(&disk.root(), &plan);
        assert_eq!(disk.read_ahead(), "0", "the disk of the partition");
        if kill {
            let below = children(long.child.id());
            assert_eq!(below.len(), 2, "the tuner and the fork server");
            long.child.kill().unwrap();
            long.child.wait().unwrap();
            assert!(below.iter().all(wait_for_end), "the tuner lives on although nobody holds its pipe");
        } else {
            use std::io::Write;
            writeln!(long.child.stdin.as_mut().unwrap(), "\"cancel\"").unwrap();
            assert_eq!(long.wait_for_report()["end"], "cancelled");
            assert_eq!(disk.read_ahead(), "256", "before the report was out");
        }
        assert_eq!(disk.read_ahead(), "256", "killed: {kill}");
    }
}

#[test]
fn a_lease_undone_by_others_ends_the_run() {
    let (Some(disk), Some(place)) = (PartitionedLoopDevice::mounted(), BenchDir::new()) else { return };
    let plan = json!({
        "profile": "sweep", "directory": disk.mount_point(), "size": 64 << 20, "block": 512, "depth": 1, "read_pct": 100,
        "direct": false, "readahead": true, "ramp_ms": 0, "time_ms": 300,
    });
    let root = disk.root();
    let long = LongRun::start_in(&root, &plan);
    let undone = place.run(&["--root", root.to_str().unwrap(), "tune", "undo"]);
    assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    let report = long.wait_for_report();
    let why = report["end"]["failed"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("no longer ours"), "{}", report["end"]);
    assert!(!report["parts"].as_array().unwrap().is_empty());
    assert_eq!(disk.read_ahead(), "256");
}
