//! More hung devices than the program may have children: their queue settings cannot be read, because a change of one
//! waits for a request that never ends and holds their lock.
//!
//! Needs root, FUSE, loop devices and util-linux; otherwise the test prints that it is skipped.

mod hung_fs;
mod pty_harness;

use hung_fs::hanging_disk::HangingDisk;
use hung_fs::{child_pids, missing_requirement, process_state, read_hangs, run_in_mount_namespace};
use pty_harness::{TIMEOUT, Terminal, TerminalOptions};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LAB_ENV: &str = "IOTOP_PLUS_HUNG_DEVICES";
const DEVICES: usize = 14;
const MAX_CHILDREN: usize = iotop_plus::subprocess::budget::MAX_CHILDREN;
/// The fork server, and the process that holds the program's pages.
const HELPERS: usize = 2;

#[test]
fn hung_devices_leave_no_more_children_than_allowed() {
    if let Some(missing) = missing_requirement(&["unshare", "losetup"]) {
        eprintln!("SKIPPED hung_devices_leave_no_more_children_than_allowed: {missing}");
        return;
    }
    run_in_mount_namespace("hung_devices_leave_no_more_children_than_allowed", LAB_ENV);
}

/// A device whose queue settings nobody can read.
struct LockedDevice {
    disk: HangingDisk,
    stuck: Vec<Child>,
}

impl LockedDevice {
    fn create(dir: PathBuf) -> Result<Self, String> {
        std::fs::create_dir(&dir).map_err(|e| e.to_string())?;
        let disk = HangingDisk::create(&dir, 1 << 20)?;
        disk.hang(true);
        let name = disk.device.trim_start_matches("/dev/").to_owned();
        let run = |script: String| Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn();
        let reader = run(format!("exec dd if={} of=/dev/null bs=4k count=1 iflag=direct", disk.device)).unwrap();
        let mut it = Self { disk, stuck: vec![reader] };
        it.wait_until_stuck()?;
        let limit = format!("/sys/block/{name}/queue/max_sectors_kb");
        it.stuck.push(run(format!("echo $(cat {limit}) > {limit}")).unwrap());
        it.wait_until_stuck()?;
        match read_hangs(Path::new(&limit)) {
            true => Ok(it),
            false => Err(format!("{limit} can be read while a write to it waits")),
        }
    }

    fn wait_until_stuck(&self) -> Result<(), String> {
        let start = Instant::now();
        while process_state(self.stuck.last().unwrap().id()).is_none_or(|(state, _)| state != 'D') {
            if start.elapsed() > TIMEOUT / 6 {
                return Err(format!("{} does not hang", self.disk.device));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for LockedDevice {
    fn drop(&mut self) {
        self.disk.hang(false);
        for stuck in &mut self.stuck {
            let _ = stuck.wait();
        }
    }
}

#[test]
#[ignore = "run by hung_devices_leave_no_more_children_than_allowed in a mount namespace of its own"]
fn in_mount_namespace() {
    let lab = PathBuf::from(std::env::var(LAB_ENV).expect("set by hung_devices_leave_no_more_children_than_allowed"));
    let made: Result<Vec<_>, String> = (0..DEVICES).map(|i| LockedDevice::create(lab.join(i.to_string()))).collect();
    let devices = match made {
        Ok(devices) => devices,
        Err(why) => {
            eprintln!("SKIPPED {why}");
            return;
        }
    };
    // Loop devices are not tuned; under these names they are.
    let root = lab.join("root");
    std::fs::create_dir_all(root.join("sys/block")).unwrap();
    symlink("/proc", root.join("proc")).unwrap();
    for device in &devices {
        let name = device.disk.device.trim_start_matches("/dev/loop");
        symlink(format!("/sys/block/loop{name}"), root.join(format!("sys/block/sd{name}"))).unwrap();
    }
    let args = vec!["--root", root.to_str().unwrap()];
    let mut t = Terminal::start(TerminalOptions { args, size: (160, 45), ..Default::default() });
    t.wait_for_text("q quit");
    t.send("7\x1b[F");
    let start = Instant::now();
    while child_pids(t.pid()).len() < MAX_CHILDREN + HELPERS {
        assert!(start.elapsed() < TIMEOUT, "not enough children get stuck: {}", t.contents());
        std::thread::sleep(Duration::from_millis(5));
    }
    t.wait_for_text("are stuck already");
    let children = child_pids(t.pid());
    println!("{} children beside {DEVICES} hung devices", children.len());
    assert!(children.len() <= MAX_CHILDREN + HELPERS, "{children:?}");
    t.send("q");
    t.wait_for_exit();
    t.assert_restored(1);
    let left: Vec<u32> = children.into_iter().filter(|pid| process_state(*pid).is_some_and(|s| s.0 != 'Z')).collect();
    println!("{} left after q", left.len());
    assert!(left.len() <= MAX_CHILDREN, "{left:?}");
    drop(devices);
    // They were waiting for the devices only.
    let start = Instant::now();
    while left.iter().any(|pid| process_state(*pid).is_some_and(|s| s.0 != 'Z')) {
        assert!(start.elapsed() < TIMEOUT, "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
