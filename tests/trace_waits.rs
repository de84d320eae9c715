//! What tasks wait for on the running kernel: for each reason a task that waits for it, with its file, its device and who
//! holds the lock.
//!
//! Needs root, loop devices, BTF and mkfs.ext4; skipped by name elsewhere.

#[path = "trace/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "trace/mounted.rs"]
mod mounted;
/// `machine` expects this in the crate root.
mod pty_harness {
    pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");
}

use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::task_waits::{TaskWaitsRaw, WaitAccount, WaitReason};
use iotop_plus::root::Root;
use machine::{LoopDevice, check_tracing, read_direct};
use mounted::Mounted;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Devices in memory are large, so the tests of this file run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

fn load_tracer() -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.request_waits(true);
    tracer.start();
    let began = Instant::now();
    while tracer.waits.read().ok().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.waits.read());
        std::thread::sleep(Duration::from_millis(5));
    }
    tracer
}

fn read_waits(tracer: &Tracer) -> Arc<TaskWaitsRaw> {
    let read = tracer.waits.read();
    read.ok().cloned().unwrap_or_else(|| panic!("{read:?}"))
}

/// Reads until there is such a wait; checks that no process with one thread waits longer than it was traced.
fn find_wait(tracer: &Tracer, pid: u32, is_wanted: impl Fn(&WaitAccount) -> bool) -> WaitAccount {
    let began = Instant::now();
    loop {
        let raw = read_waits(tracer);
        let own = raw.accounts.iter().filter(|account| account.key.pid == pid);
        let total_ns: u64 = own.clone().map(|account| account.waits.total_ns).sum();
        assert!(total_ns <= raw.read_ns - raw.tracing_started_ns, "{:#?}", own.collect::<Vec<_>>());
        if let Some(found) = own.clone().find(|account| is_wanted(account)) {
            return found.clone();
        }
        assert!(began.elapsed() < TIMEOUT, "{:#?}", own.collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An ext4 on a loop device in memory, or why there is none.
fn ext4(mib: u64) -> Result<(LoopDevice, Mounted), String> {
    let device = check_tracing().and_then(|()| LoopDevice::new(mib << 20))?;
    let mounted = Mounted::new(&["mkfs.ext4", "-q", "-F", "-E", "nodiscard"], &device.path)?;
    Ok((device, mounted))
}

fn device_id(device: &LoopDevice) -> DevId {
    DevId { major: device.id.0, minor: device.id.1 }
}

/// A program that works until this is dropped.
struct Running(Child);

impl Running {
    fn sh(script: &str, path: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().unwrap())
    }

    fn dd(args: &[&str]) -> Self {
        let mut command = Command::new("dd");
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        // A shell leads a group, with what it has started.
        let group = Pid::from_raw(self.0.id() as i32).unwrap();
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
        let began = Instant::now();
        while test_kill_process_group(group).is_ok() && began.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A frozen file system; thawed when this is dropped.
struct Frozen<'a>(&'a Mounted);

impl<'a> Frozen<'a> {
    fn new(mounted: &'a Mounted) -> Self {
        assert!(Command::new("fsfreeze").arg("-f").arg(mounted.dir.path()).status().unwrap().success());
        Self(mounted)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(self.0.dir.path()).status();
    }
}

#[test]
fn direct_reads_wait_for_their_device() {
    let _lock = lock();
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped direct_reads_wait_for_their_device: {why}"),
    };
    let tracer = load_tracer();
    let is_wanted = |account: &WaitAccount| {
        account.key.pid == std::process::id()
            && account.key.reason == WaitReason::DirectIo
            && account.key.device == device_id(&device)
    };
    let began = Instant::now();
    loop {
        read_direct(&device.path, 100);
        let raw = read_waits(&tracer);
        assert_eq!(raw.unavailable, Vec::<String>::new());
        if let Some(found) = raw.accounts.iter().find(|account| is_wanted(account)) {
            let name = raw.processes.iter().find(|(pid, _)| *pid == std::process::id());
            assert!(name.is_some_and(|(_, name)| name.starts_with("trace_waits")), "{name:?}");
            assert!(found.waits.count > 0 && found.waits.total_ns >= found.waits.max_ns, "{found:?}");
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{:#?}", raw.accounts);
    }
}

#[test]
fn waits_for_asynchronous_io_are_those_for_direct_io() {
    let _lock = lock();
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped waits_for_asynchronous_io_are_those_for_direct_io: {why}"),
    };
    let tracer = load_tracer();
    for (engine, function) in [("io_uring", "io_cqring_wait"), ("libaio", "read_events")] {
        let mut command = Command::new("fio");
        command.args(["--name=t", "--thread", "--direct=1", "--rw=randread", "--bs=64k", "--iodepth=4", "--size=64M"]);
        command.args(["--time_based", "--runtime=600"]).arg(format!("--ioengine={engine}"));
        command.arg(format!("--filename={}", device.path.display())).stdin(Stdio::null()).stdout(Stdio::null());
        let Ok(load) = command.spawn().map(Running) else {
            return println!("skipped waits_for_asynchronous_io_are_those_for_direct_io: no fio");
        };
        let found = find_wait(&tracer, load.pid(), |account| *account.key.function == *function);
        assert_eq!((found.key.reason, found.key.device), (WaitReason::DirectIo, device_id(&device)), "{engine}");
    }
}

#[test]
fn files_are_known_for_syncs_faults_reads_and_synchronous_writes() {
    let _lock = lock();
    let (device, mounted) = match ext4(96) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped files_are_known_for_syncs_faults_reads_and_synchronous_writes: {why}"),
    };
    let path = mounted.dir.path().join("data");
    std::fs::write(&path, vec![7; 16 << 20]).unwrap();
    mounted.sync();
    let ino = std::fs::metadata(&path).unwrap().ino();
    let tracer = load_tracer();
    let file = path.to_str().unwrap();
    let (read_from, write_to) = (format!("if={file}"), format!("of={file}"));
    // The page cache is dropped for each round; dd reads or writes in one process, without a child.
    let uncached = |what: &str| {
        format!(
            "import mmap,os,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nwhile True:\n os.posix_fadvise(f.fileno(),0,0,4)\n m.madvise(4)\n {what}"
        )
    };
    let python = |what: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", &uncached(what), file]).stdin(Stdio::null());
        command.spawn().map(Running).ok()
    };
    let dd = |args: &[&str]| Some(Running::dd(args));
    let loads = [
        (
            WaitReason::SyncWrite,
            dd(&["if=/dev/zero", &write_to, "bs=4k", "oflag=dsync", "conv=notrunc", "count=900000"]),
        ),
        (
            WaitReason::SyncWrite,
            dd(&["if=/dev/zero", &write_to, "bs=4k", "oflag=direct,dsync", "conv=notrunc", "count=900000"]),
        ),
        (WaitReason::DirectIo, dd(&[&read_from, "of=/dev/null", "bs=4k", "iflag=direct", "count=900000"])),
        (WaitReason::Sync, python("f.seek(0); f.write(b'x'); f.flush(); os.fsync(f.fileno())")),
        (WaitReason::FileFault, python("[m[i] for i in range(0,len(m),65536)]")),
        (WaitReason::Read, python("os.pread(f.fileno(),1<<20,0)")),
    ];
    for (reason, load) in loads {
        let Some(load) = load else {
            println!("skipped {reason:?}: no python3");
            continue;
        };
        let found =
            find_wait(&tracer, load.pid(), |account| account.key.reason == reason && account.key.file.ino == ino);
        assert_eq!(found.key.file.file_system, device_id(&device), "{reason:?}");
        let raw = read_waits(&tracer);
        let name = raw.files.iter().find(|file| file.id == found.key.file).map(|file| file.path_tail.sanitized());
        assert_eq!(name.as_deref(), Some("data"), "{reason:?}");
    }
}

#[test]
fn a_frozen_file_system_is_named_also_for_a_new_file() {
    let _lock = lock();
    let (device, mounted) = match ext4(64) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped a_frozen_file_system_is_named_also_for_a_new_file: {why}"),
    };
    let tracer = load_tracer();
    let frozen = Frozen::new(&mounted);
    let writer = Running::sh("exec dd if=/dev/zero of=\"$1/new\" bs=4k count=1", mounted.dir.path());
    let found = find_wait(&tracer, writer.pid(), |account| account.key.reason == WaitReason::Frozen);
    assert_eq!(found.key.file.file_system, device_id(&device));
    drop(frozen);
}

#[test]
fn a_wait_that_began_before_tracing_is_found() {
    let _lock = lock();
    let (_device, mounted) = match ext4(64) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped a_wait_that_began_before_tracing_is_found: {why}"),
    };
    let path = mounted.dir.path().join("old");
    std::fs::write(&path, b"x").unwrap();
    let ino = std::fs::metadata(&path).unwrap().ino();
    let frozen = Frozen::new(&mounted);
    let writer = Running::sh("exec dd if=/dev/zero of=\"$1/old\" bs=4k count=1 conv=notrunc", mounted.dir.path());
    let wchan = Root::live().proc(&format!("{}/wchan", writer.pid()));
    let began = Instant::now();
    while !std::fs::read_to_string(&wchan).is_ok_and(|function| function.contains("percpu")) {
        assert!(began.elapsed() < TIMEOUT, "the writer does not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    let tracer = load_tracer();
    let found = find_wait(&tracer, writer.pid(), |account| account.key.reason == WaitReason::Frozen);
    assert_eq!((found.key.file.ino, found.waits.count), (ino, 1));
    drop(frozen);
}

#[test]
fn the_holder_of_an_inode_lock_is_known() {
    let _lock = lock();
    let (_device, mounted) = match ext4(256) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped the_holder_of_an_inode_lock_is_known: {why}"),
    };
    let path = mounted.dir.path().join("shared");
    std::fs::write(&path, b"x").unwrap();
    let tracer = load_tracer();
    let write = |bs: &str| {
        let script = format!("while :; do dd if=/dev/zero of=\"$1\" bs={bs} count=1 conv=notrunc; done");
        Running::sh(&script, &path)
    };
    let (_large, _small) = (write("64M"), write("1k"));
    let began = Instant::now();
    loop {
        let raw = read_waits(&tracer);
        let is_dd = |pid: u32| raw.processes.iter().any(|(id, name)| *id == pid && &**name == "dd");
        let is_held = |account: &&WaitAccount| {
            let key = &account.key;
            key.reason == WaitReason::Lock && is_dd(key.pid) && is_dd(key.holder) && key.holder != key.pid
        };
        if raw.accounts.iter().any(|account| is_held(&account)) {
            return;
        }
        let locks = raw.accounts.iter().filter(|account| account.key.reason == WaitReason::Lock);
        assert!(began.elapsed() < TIMEOUT, "{:#?}", locks.collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn programs_for_waits_are_loaded_only_on_request() {
    let _lock = lock();
    if let Err(why) = check_tracing() {
        return println!("skipped programs_for_waits_are_loaded_only_on_request: {why}");
    }
    let tracer = load_tracer();
    tracer.request_waits(false);
    let began = Instant::now();
    while !matches!(tracer.waits.read(), Reading::Absent(why) if why.contains("--waits")) {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.waits.read());
        std::thread::yield_now();
    }
}
