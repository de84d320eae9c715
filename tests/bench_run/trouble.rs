//! Bad days in the middle of a run: each ends with a named error, what was measured up to then, and nothing
//! left on the disk.

use crate::lab::{BenchDir, LongRun, LoopDevice, skip};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount of a test, taken down when dropped.
struct TestMount(PathBuf);

impl TestMount {
    fn new(at: &Path, words: &[&str]) -> Option<Self> {
        std::fs::create_dir_all(at).ok()?;
        let done = Command::new("mount").args(words).arg(at).output().ok()?;
        if !done.status.success() {
            skip(&format!("mount {words:?}: {}", String::from_utf8_lossy(&done.stderr).trim()));
            return None;
        }
        Some(Self(at.into()))
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn randread(dir: &Path) -> Value {
    json!({
        "profile": "randread", "read_pct": 100, "directory": dir, "size": 16 << 20, "ramp_ms": 0, "time_ms": 60_000,
        "stall_limit_ms": 1000,
    })
}

/// What every such run must have left: figures, and no file.
fn assert_partial_report(report: &Value, dir: &Path) {
    let part = &report["parts"][0];
    let counted = ["read", "write"].iter().map(|k| part[*k]["ios"].as_u64().unwrap_or(0)).sum::<u64>();
    assert!(counted > 0, "{report}");
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|n| n == "lost+found" || n == "fill"), "{left:?}");
}

fn failure_reason(report: &Value) -> String {
    report["end"]["failed"].as_str().unwrap_or_else(|| panic!("{}", report["end"])).to_owned()
}

#[test]
fn a_failing_device_ends_the_run_with_a_partial_report() {
    let Some(lab) = LoopDevice::mounted_direct_io() else { return };
    let long = LongRun::start_with(&randread(&lab.mount_point()));
    // The device loses all but its beginning: reads beyond are I/O errors, as a dying disk answers them.
    std::fs::File::options().write(true).open(lab.image()).unwrap().set_len(1 << 20).unwrap();
    let report = long.wait_for_report();
    // Whole again, so that the file system can be looked at and taken down.
    std::fs::File::options().write(true).open(lab.image()).unwrap().set_len(4 << 30).unwrap();
    let why = failure_reason(&report);
    assert!(why.contains("read of 4096 bytes at offset") && why.contains("EIO"), "{why}");
    assert!(report["parts"][0]["read"]["ios"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_frozen_file_system_stalls_the_run() {
    let Some(lab) = LoopDevice::mounted() else { return };
    let mnt = lab.mount_point();
    let plan = json!({
        "profile": "randrw", "directory": mnt, "size": 16 << 20, "ramp_ms": 0, "time_ms": 60_000,
        "stall_limit_ms": 1000,
    });
    let mut long = LongRun::start_with(&plan);
    if !lab.freeze("-f") {
        long.child.kill().unwrap();
        return skip("fsfreeze does not work here");
    }
    let report = long.last_report();
    lab.freeze("-u");
    // Now its threads come back, and it ends.
    long.child.wait().unwrap();
    let why = report["end"]["stalled"].as_str().unwrap_or_else(|| panic!("{}", report["end"])).to_owned();
    assert!(why.contains("nothing has moved for 1 s") && why.contains("frozen"), "{why}");
    assert!(report["parts"][0]["stalls"]["count"].as_u64() > Some(0));
    assert_partial_report(&report, &mnt);
}

#[test]
fn a_full_disk_ends_the_run_with_a_partial_report() {
    let Some(lab) = LoopDevice::mounted() else { return };
    let mnt = lab.mount_point();
    let plan = json!({
        "profile": "append", "directory": mnt, "size": 1 << 30, "block": 4096, "depth": 1, "read_pct": 0,
        "direct": false, "ramp_ms": 0, "time_ms": 60_000, "rate_iops": 0,
    });
    let long = LongRun::start_with(&plan);
    // Somebody else takes all that is left, in ever smaller pieces.
    let fill = std::fs::File::create(mnt.join("fill")).unwrap();
    let (mut at, mut piece) = (0, 1u64 << 30);
    while piece >= 4096 {
        match rustix::fs::fallocate(&fill, rustix::fs::FallocateFlags::empty(), at, piece) {
            Ok(()) => at += piece,
            Err(_) => piece /= 2,
        }
    }
    let report = long.wait_for_report();
    let why = failure_reason(&report);
    assert!(why.contains("write") && why.to_lowercase().contains("no space left"), "{why}");
    assert_partial_report(&report, &mnt);
}

#[test]
fn a_lazy_unmount_is_a_warning() {
    let Some(lab) = LoopDevice::mounted() else { return };
    let mnt = lab.mount_point();
    let mut plan = randread(&mnt);
    plan["time_ms"] = json!(1000);
    let long = LongRun::start_with(&plan);
    assert!(Command::new("umount").arg("-l").arg(&mnt).status().unwrap().success());
    let report = long.wait_for_report();
    // The open file holds the file system: the run is sound, and says what happened.
    assert_eq!(report["end"], "complete");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("unmounted during the run"), "{warnings}");
    assert_partial_report(&report, &mnt);
}

#[test]
fn an_overlay_is_measured_with_a_warning() {
    let (Some(lab), Some(place)) = (LoopDevice::mounted(), BenchDir::new()) else { return };
    let dirs = ["lower", "upper", "work"].map(|d| lab.mount_point().join(d));
    dirs.iter().for_each(|d| std::fs::create_dir(d).unwrap());
    let [lower, upper, work] = dirs.map(|d| d.display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let at = lab.mount_point().parent().unwrap().join("overlay");
    let Some(_mounted) = TestMount::new(&at, &["-t", "overlay", "-o", &options, "overlay"]) else { return };
    let dir = at.to_str().unwrap();
    let out = place.run(&["bench", "run", "randrw", dir, "--size", "16M", "--time", "0.2", "--ramp", "0", "-q"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(text.contains("overlay passes I/O on to other file systems"), "{text}");
    assert!(text.contains("none of its own") && std::fs::read_dir(&at).unwrap().count() == 0);
    assert_readahead_refused(&place, dir, "overlay");
}

#[test]
fn btrfs_is_measured_through_its_device() {
    let (Some(lab), Some(place)) = (LoopDevice::unmounted(), BenchDir::new()) else { return };
    let made = Command::new("mkfs.btrfs").args(["-q", "-f", lab.device()]).output();
    if !made.is_ok_and(|o| o.status.success()) {
        return skip("no mkfs.btrfs here");
    }
    let at = lab.mount_point();
    let Some(_mounted) = TestMount::new(&at, &["-t", "btrfs", lab.device()]) else { return };
    let dir = at.to_str().unwrap();
    let report = place.json_in(dir, "randread", &["--time", "0.3"]);
    assert_eq!(report["target"]["filesystem"], "btrfs");
    let name = lab.device().trim_start_matches("/dev/").to_owned();
    assert_eq!(report["parts"][0]["device"]["name"].as_str(), Some(name.as_str()), "{}", report["target"]);
    assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0);
    assert_readahead_refused(&place, dir, "btrfs");
}

/// A file system without one device has no read-ahead that a device's knob changes.
fn assert_readahead_refused(place: &BenchDir, dir: &str, kind: &str) {
    let out = place.run(&["bench", "run", "sweep", dir, "--readahead", "--size", "16M", "-q"]);
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(3), "{why}");
    assert!(why.contains(&format!("is on {kind}")) && why.contains("read-ahead of its own"), "{why}");
}

#[test]
fn a_closed_terminal_ends_the_run_and_saves_the_report() {
    use std::io::Read;
    let Some(place) = BenchDir::new() else { return };
    let pty = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
    let mut command = portable_pty::CommandBuilder::new(crate::lab::BIN);
    command.args(["bench", "run", "randread", place.path().to_str().unwrap()]);
    command.args(["--size", "16M", "--ramp", "0", "--time", "600"]);
    command.env("XDG_STATE_HOME", place.path().join("state"));
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains(" IOPS") {
        let n = reader.read(&mut buffer).unwrap();
        seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    drop(reader);
    drop(pty.master);
    child.wait().unwrap();
    let list = String::from_utf8(place.run(&["bench", "list"]).stdout).unwrap();
    assert!(list.contains("randread") && list.contains("not complete"), "{list}");
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["state"]);
}
