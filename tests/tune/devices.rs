//! Knobs of devices, mounts and processes that are created for the test.

use crate::apart::MountNamespace;
use crate::killed::{Victim, kill_and_undo, steps_of_change_and_undo};
use crate::machine::{LiveMachine, output_text};
use iotop_plus::root::Root;
use iotop_plus::tuning::apply::apply;
use iotop_plus::tuning::context::TuningContext;
use iotop_plus::tuning::journal::Journal;
use iotop_plus::tuning::kill_points::KillPoints;
use iotop_plus::tuning::knob_io::{DirectKnobIo, KnobIo};
use iotop_plus::tuning::machine_limits::MachineLimits as Sizes;
use iotop_plus::tuning::plan::{TuneError, plan_writes};
use iotop_plus::tuning::restore::restore_locked;
use std::process::{Command, Stdio};

/// A loop device, removed when dropped, and the settings that tests change. They outlive it, so they are restored.
struct LoopDisk(String, Vec<(&'static str, String)>);

impl LoopDisk {
    fn new(m: &LiveMachine) -> Option<Self> {
        let file = m.dir.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(&file).output().ok()?;
        let name = String::from_utf8_lossy(&made.stdout).trim().strip_prefix("/dev/")?.to_owned();
        let value = |file| std::fs::read_to_string(format!("/sys/block/{name}/queue/{file}")).unwrap();
        let saved = ["read_ahead_kb", "nr_requests"].map(|file| (file, value(file))).to_vec();
        Some(Self(name, saved))
    }

    /// Has a number of requests that no scheduler begins with: switching the scheduler resets it.
    fn use_few_requests(&self) {
        let schedulers = std::fs::read_to_string(format!("/sys/block/{}/queue/scheduler", self.0)).unwrap();
        let file = format!("/sys/block/{}/queue/nr_requests", self.0);
        std::fs::write(&file, "96").unwrap_or_else(|why| panic!("{schedulers}: {why}"));
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), "96");
    }

    fn settings(&self) -> Vec<String> {
        let files = [
            "queue/scheduler",
            "queue/nr_requests",
            "queue/wbt_lat_usec",
            "queue/read_ahead_kb",
            "queue/max_sectors_kb",
            "bdi/max_ratio",
            "bdi/min_ratio",
            "bdi/strict_limit",
        ];
        let read = |f| std::fs::read_to_string(format!("/sys/block/{}/{f}", self.0)).unwrap_or_default();
        files.into_iter().map(read).collect()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        for (file, value) in &self.1 {
            let _ = std::fs::write(format!("/sys/block/{}/queue/{file}", self.0), value);
        }
        let _ = Command::new("losetup").args(["-d", &format!("/dev/{}", self.0)]).status();
    }
}

/// A value for every knob of a device.
const CHANGES: [&str; 10] = [
    "scheduler=mq-deadline",
    "scheduler=bfq",
    "read_ahead_kb=3000",
    "nr_requests=64",
    "wbt_lat_usec=10ms",
    "wbt_lat_usec=0",
    "max_sectors_kb=64",
    "bdi.max_ratio=50",
    "bdi.min_ratio=1",
    "bdi.strict_limit=on",
];

#[test]
fn every_device_knob_is_set_and_restored() {
    let test = "every_knob_of_a_device_goes_there_and_back";
    let Some(m) = LiveMachine::acquire(test) else { return };
    let Some(disk) = LoopDisk::new(&m) else {
        eprintln!("SKIPPED {test}: no loop device");
        return;
    };
    let before = disk.settings();
    for change in CHANGES {
        let (knob, value) = change.split_once('=').unwrap();
        let word = format!("{knob}@{}={value}", disk.0);
        if knob == "scheduler" && !before[0].contains(value) {
            eprintln!("SKIPPED {word}: this kernel has no such scheduler");
            continue;
        }
        let set = m.tune(&["set", "--keep", &word]);
        assert_eq!(set.status.code(), Some(0), "{word}: {}", output_text(&set));
        assert_ne!(disk.settings(), before, "{word}");
        let undone = m.tune(&["undo"]);
        assert_eq!(undone.status.code(), Some(0), "{word}: {}", output_text(&undone));
        assert_eq!(disk.settings(), before, "{word}: {}", output_text(&undone));
    }
    let got = m.tune(&["set", &format!("bdi.min_ratio@{}=60", disk.0), &format!("bdi.max_ratio@{}=50", disk.0)]);
    assert_eq!(got.status.code(), Some(2), "{}", output_text(&got));
    // A different device of the same name is not changed.
    let set = m.tune(&["set", "--keep", &format!("read_ahead_kb@{}=3000", disk.0)]);
    assert_eq!(set.status.code(), Some(0), "{}", output_text(&set));
    let name = disk.0.clone();
    drop(disk);
    let again = LoopDisk::new(&m).unwrap();
    if again.0 == name {
        assert!(output_text(&m.tune(&["undo"])).contains("is gone"));
    }
}

/// The steps of restoring a knob that the kernel recomputes others from, beside those of any knob: four for a record.
const LINKED_STEPS: u32 = 4;

/// Kills the processes at every step of a change, of which there are `more` than for most knobs; `state` reads what must
/// be restored. Returns the number of kills.
fn assert_restored_from_every_kill_point(m: &LiveMachine, word: String, more: u32, state: impl Fn() -> String) -> u32 {
    let (before, words) = (state(), [word]);
    let mut points = 0;
    for victim in [Victim::Tuner, Victim::Screen, Victim::Both] {
        for step in 1..=steps_of_change_and_undo(1) + more {
            kill_and_undo(m, &words, step, victim);
            assert_eq!(state(), before, "{words:?} step {step} {victim:?}");
            points += 1;
        }
    }
    points
}

#[test]
fn device_and_huge_page_knobs_are_restored_from_every_kill_point() {
    let test = "knobs_of_devices_and_huge_pages_are_restored_from_every_step";
    let Some(m) = LiveMachine::acquire(test) else { return };
    let Some(disk) = LoopDisk::new(&m) else {
        eprintln!("SKIPPED {test}: no loop device");
        return;
    };
    disk.use_few_requests();
    let mut points = 0;
    for change in CHANGES {
        let (knob, value) = change.split_once('=').unwrap();
        if knob == "scheduler" && !disk.settings()[0].contains(value) {
            eprintln!("SKIPPED {change}: this kernel has no such scheduler");
            continue;
        }
        let (word, more) = (format!("{knob}@{}={value}", disk.0), if knob == "scheduler" { LINKED_STEPS } else { 0 });
        points += assert_restored_from_every_kill_point(&m, word, more, || disk.settings().concat());
    }
    for (file, values) in [("enabled", ["never", "madvise"]), ("defrag", ["never", "defer"])] {
        let path = format!("/sys/kernel/mm/transparent_hugepage/{file}");
        let state = || std::fs::read_to_string(&path).unwrap_or_default();
        if state().is_empty() {
            eprintln!("SKIPPED {path}: this kernel has none");
            continue;
        }
        let more = if file == "enabled" { LINKED_STEPS } else { 0 };
        let other = values.into_iter().find(|v| !state().contains(&format!("[{v}]"))).unwrap();
        points +=
            assert_restored_from_every_kill_point(&m, format!("transparent_hugepage.{file}={other}"), more, state);
    }
    println!("{points} points, all restored");
}

/// A process whose knobs are changed, killed when dropped.
struct SleepProcess(std::process::Child);

impl SleepProcess {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for SleepProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn process_and_mount_knobs_are_restored_from_every_kill_point() {
    let test = "knobs_of_processes_and_mounts_are_restored_from_every_step";
    let Some(mut m) = LiveMachine::acquire(test) else { return };
    let Some(apart) = MountNamespace::enter(&mut m, test) else { return };
    let sleeper = SleepProcess::new();
    let pid = sleeper.0.id();
    let limits = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        text.lines().find(|l| l.starts_with("Max open files")).unwrap().to_owned()
    };
    let class = || format!("{:?}", iotop_plus::collect::processes::ionice::get(pid));
    let mut points = assert_restored_from_every_kill_point(&m, format!("nofile@{pid}=77"), 0, limits);
    points += assert_restored_from_every_kill_point(&m, format!("ioprio@{pid}=idle"), 0, class);
    let dir = tempfile::tempdir().unwrap();
    let mut mount = Command::new(&m.wrapper[0]);
    mount.args(&m.wrapper[1..]).args(["mount", "-t", "tmpfs", "none"]).arg(dir.path());
    if mount.status().is_ok_and(|s| s.success()) {
        let at = dir.path().to_str().unwrap();
        let line = || apart.mountinfo().lines().find(|l| l.contains(at)).unwrap().to_owned();
        points += assert_restored_from_every_kill_point(&m, format!("atime@{at}=noatime"), 0, line);
    } else {
        eprintln!("SKIPPED the mount of {test}: cannot mount");
    }
    println!("{points} points, all restored");
}

/// Applies and undoes a change on the running machine, with the journal in a temporary directory.
fn set_and_undo(m: &LiveMachine, word: &str) -> (String, String, String) {
    let live = Root::live();
    let mut io = DirectKnobIo::new(live.clone());
    let planned = plan_writes(&mut io, &Sizes::read(&live), &[word.to_owned()]).unwrap();
    let at = planned[0].knob.clone();
    let before = planned[0].current.value.clone();
    let journal = Journal::open(&Root::at(m.dir.path())).unwrap();
    let mut bench = TuningContext { io: &mut io, journal, kill_points: KillPoints::default() };
    let change = apply(&mut bench, &planned, Some(1)).unwrap();
    let during = bench.io.read(&at).unwrap().value;
    restore_locked(&mut bench, change.id).unwrap();
    (before, during, io.read(&at).unwrap().value)
}

#[test]
fn process_limits_and_priorities_are_set_and_restored() {
    let Some(m) = LiveMachine::acquire("limits_and_priorities_of_a_process_go_there_and_back") else {
        return;
    };
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut changes = vec!["nofile@PID=77", "ioprio@PID=idle", "ioprio@PID=be/7", "ioprio@PID=rt/0"];
    let live = Root::live();
    if Sizes::read(&live).has_cap_sys_resource {
        changes.push("nofile@PID=50:60");
    } else {
        let word = format!("nofile@{}=50:60", child.id());
        let got = plan_writes(&mut DirectKnobIo::new(live.clone()), &Sizes::read(&live), &[word]);
        assert!(matches!(got, Err(TuneError::Privilege(_))), "it could not be taken back: {got:?}");
    }
    for change in changes {
        let (before, during, after) = set_and_undo(&m, &change.replace("PID", &child.id().to_string()));
        assert_ne!(before, during, "{change}");
        assert_eq!(before, after, "{change}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A mount, removed when dropped.
struct TestMount(std::path::PathBuf);

impl Drop for TestMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn mount_access_time_options_are_set_and_restored() {
    let test = "access_time_options_of_a_mount_go_there_and_back";
    let Some(m) = LiveMachine::acquire(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let point = dir.path().join("a b");
    std::fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "nosuid,nodev", "none"]).arg(&point).status();
    if !mounted.is_ok_and(|s| s.success()) {
        eprintln!("SKIPPED {test}: cannot mount");
        return;
    }
    let _mounted = TestMount(point.clone());
    let line = || {
        // Other mount points may not be UTF-8.
        let table = String::from_utf8_lossy(&std::fs::read("/proc/self/mountinfo").unwrap()).into_owned();
        table.lines().find(|l| l.contains("/a\\040b ")).unwrap().to_owned()
    };
    let before = line();
    let changes = ["noatime", "noatime,nodiratime", "strictatime", "relatime,nodiratime"];
    let got: Vec<_> = changes.iter().map(|v| set_and_undo(&m, &format!("atime@{}={v}", point.display()))).collect();
    let after = line();
    for (value, got) in changes.iter().zip(got) {
        assert_eq!(got, ("relatime".into(), value.to_string(), "relatime".into()));
    }
    assert_eq!(before, after, "nosuid and nodev are still there");
}

/// A tree with the disk sdz, which has a request in flight and completes none.
pub fn tree_with_stalled_disk() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("sys/block/sdz");
    std::fs::create_dir_all(disk.join("queue")).unwrap();
    for (file, text) in [
        ("inflight", "1 0\n"),
        ("stat", "9 0 0 0 9 0 0 0 1 0 0\n"),
        ("queue/scheduler", "[none] mq-deadline\n"),
        ("diskseq", "1\n"),
    ] {
        std::fs::write(disk.join(file), text).unwrap();
    }
    (dir, disk)
}

#[test]
fn a_stalled_device_is_refused() {
    let (dir, disk) = tree_with_stalled_disk();
    let got = Command::new(crate::machine::BIN)
        .arg("--root")
        .arg(dir.path())
        .args(["tune", "set", "scheduler@sdz=mq-deadline"])
        .output()
        .unwrap();
    assert_eq!(got.status.code(), Some(3), "{}", output_text(&got));
    assert!(output_text(&got).contains("makes no progress"), "{}", output_text(&got));
    assert_eq!(std::fs::read_to_string(disk.join("queue/scheduler")).unwrap(), "[none] mq-deadline\n");
}
