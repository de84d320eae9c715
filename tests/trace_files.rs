//! I/O of files on the running kernel: for each way to read and write, the bytes of a file are those that were written
//! and read, and all rows together are what the device counts.
//!
//! Needs root, loop devices and BTF; skipped by name elsewhere, as is each file system whose mkfs is missing.

#[path = "trace/file_loads.rs"]
mod file_loads;
#[path = "trace/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "trace/mounted.rs"]
mod mounted;
/// `machine` expects this in the crate root.
mod pty_harness {
    pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");
}

use aya::programs::loaded_programs;
use file_loads::{LOADS, Load};
use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::file_io::{FileClass, FileIoRaw};
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use machine::{LoopDevice, check_tracing, read_direct};
use mounted::Mounted;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Devices in memory are large, so the tests of this file run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

fn load_tracer() -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.request_files(true);
    tracer.start();
    let began = Instant::now();
    while tracer.files.read().ok().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.files.read());
        std::thread::yield_now();
    }
    tracer
}

fn read_files(tracer: &Tracer) -> Arc<FileIoRaw> {
    let read = tracer.files.read();
    read.ok().cloned().unwrap_or_else(|| panic!("{read:?}"))
}

/// Requests and bytes, of reads and of writes.
type Totals = [(u64, u64); 2];

fn minus(now: Totals, before: Totals) -> Totals {
    std::array::from_fn(|i| (now[i].0 - before[i].0, now[i].1 - before[i].1))
}

/// Whether two counts are equal within 1 %, or one request or page of a bystander.
fn is_close(a: u64, b: u64, slack: u64) -> bool {
    a.abs_diff(b) * 100 <= a.max(b) || a.abs_diff(b) <= slack
}

/// Sums of the rows of a device that `is_wanted`.
fn totals(raw: &FileIoRaw, device: DevId, is_wanted: impl Fn(FileClass, u64) -> bool) -> Totals {
    let mut sums = [(0, 0); 2];
    for account in &raw.accounts {
        let key = account.key;
        if key.device == device && is_wanted(key.class, key.file.ino) {
            let sum = &mut sums[usize::from(key.is_write)];
            *sum = (sum.0 + account.requests, sum.1 + account.bytes);
        }
    }
    sums
}

/// What the device counts itself.
fn device_totals(device: &LoopDevice) -> Totals {
    let name = device.path.file_name().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(Root::live().sys(&format!("block/{name}/stat"))).unwrap();
    let n: Vec<u64> = text.split_whitespace().map(|w| w.parse().unwrap()).collect();
    [(n[0], n[2] * 512), (n[4], n[6] * 512)]
}

fn device_id(device: &LoopDevice) -> DevId {
    DevId { major: device.id.0, minor: device.id.1 }
}

/// Checks a load; returns what is wrong. Linux 6.18 does not call the programs of a tracepoint for a few events while
/// another process attaches to it or detaches: a load with a wrong
/// count is run again, as another file.
fn check_load(load: &Load, mounted: &Mounted, device: &LoopDevice, tracer: &Tracer) -> Result<(), String> {
    let mut wrong = Vec::new();
    for attempt in 1..=3 {
        match run_load(load, &format!("{}-{attempt}", load.name), mounted, device, tracer) {
            Ok(()) => return Ok(()),
            Err(why) => wrong.push(why),
        }
    }
    Err(wrong.join("; "))
}

/// Checks the bytes of one load's file; returns what is wrong.
fn run_load(
    load: &Load,
    file_name: &str,
    mounted: &Mounted,
    device: &LoopDevice,
    tracer: &Tracer,
) -> Result<(), String> {
    let dir = mounted.dir.path().join("data base");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join(file_name);
    let unknown = |raw: &FileIoRaw| totals(raw, device_id(device), |class, _| class == FileClass::Unknown);
    let unknown_before = unknown(&read_files(tracer));
    (load.prepare)(&file);
    mounted.sync();
    let before = (device_totals(device), totals(&read_files(tracer), device_id(device), |_, _| true));
    let expected = match (load.run)(&file) {
        Ok(bytes) => bytes,
        Err(why) => {
            println!("skipped {}: needs {why}", load.name);
            return Ok(());
        }
    };
    mounted.sync();
    let raw = read_files(tracer);
    let ino = std::fs::metadata(&file).unwrap().ino();
    let own = totals(&raw, device_id(device), |class, of| (class, of) == (FileClass::File, ino));
    let prepared = (load.prepared_bytes)(&file);
    let bytes = [own[0].1, own[1].1 - prepared];
    println!("{}: expected {expected:?}, attributed {bytes:?}", load.name);
    if !is_close(bytes[0], expected[0], 0) || !is_close(bytes[1], expected[1], 0) {
        return Err(format!("{}: expected {expected:?} bytes, attributed {bytes:?}", load.name));
    }
    let path = raw.files.iter().find(|f| f.id.ino == ino).map(|f| (f.path_tail.sanitized(), f.is_full_path));
    if path != Some((format!("data base/{file_name}"), true)) {
        return Err(format!("{}: path {path:?}", load.name));
    }
    let all = minus(totals(&raw, device_id(device), |_, _| true), before.1);
    let kernel = minus(device_totals(device), before.0);
    for (ours, kernel) in all.into_iter().zip(kernel) {
        if !is_close(ours.0, kernel.0, 1) || !is_close(ours.1, kernel.1, 4096) {
            return Err(format!("{}: {ours:?} attributed, {kernel:?} in the device's stat", load.name));
        }
    }
    let unknown = minus(unknown(&raw), unknown_before);
    (unknown == [(0, 0); 2]).then_some(()).ok_or_else(|| format!("{}: unknown {unknown:?}", load.name))
}

fn check_file_system(name: &str, mkfs: &[&str], mib: u64) {
    let _lock = lock();
    let device = match check_tracing().and_then(|()| LoopDevice::new(mib << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    let mounted = match Mounted::new(mkfs, &device.path) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let wrong: Vec<String> =
        LOADS.iter().filter_map(|load| check_load(load, &mounted, &device, &tracer).err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let raw = read_files(&tracer);
    let classes = |class| totals(&raw, device_id(&device), |c, _| c == class)[1].1;
    println!("metadata {}, journal {}", classes(FileClass::Metadata), classes(FileClass::Journal));
    assert!(classes(FileClass::Metadata) > 0, "no metadata was written");
    let btrfs_metadata = totals(&raw, device_id(&device), |class, ino| (class, ino) == (FileClass::File, 1));
    assert_eq!(btrfs_metadata, [(0, 0); 2], "metadata of btrfs counted as a file");
    assert_eq!(raw.dropped, 0);
}

#[test]
fn files_of_ext4_have_the_bytes_of_their_loads() {
    let lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    check_file_system("files_of_ext4", &["mkfs.ext4", "-q", "-F", "-E", lazy], 160);
}

#[test]
fn files_of_xfs_have_the_bytes_of_their_loads() {
    check_file_system("files_of_xfs", &["mkfs.xfs", "-q", "-f", "-K"], 320);
}

/// Makes files on a btrfs and unmounts it: the kernel may reuse the memory of their inodes for the metadata inode of the
/// next btrfs.
fn leave_inodes_of_btrfs(mkfs: &[&str]) -> Result<(), String> {
    let device = LoopDevice::new(160 << 20)?;
    let mounted = Mounted::new(mkfs, &device.path)?;
    (0..500)
        .try_for_each(|n| std::fs::write(mounted.dir.path().join(n.to_string()), b""))
        .map_err(|err| err.to_string())
}

#[test]
fn files_of_btrfs_have_the_bytes_of_their_loads() {
    let mkfs = ["mkfs.btrfs", "-q", "-f", "-K"];
    if let Err(why) = leave_inodes_of_btrfs(&mkfs) {
        return println!("skipped files_of_btrfs: {why}");
    }
    check_file_system("files_of_btrfs", &mkfs, 320);
}

#[test]
fn direct_reads_of_an_unmounted_device_belong_to_the_device() {
    let _lock = lock();
    let name = "direct_reads_of_an_unmounted_device_belong_to_the_device";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    // Again if the count is wrong, for the reason told at `check_load`.
    let mut found = Vec::new();
    for attempt in 1..=3 {
        let before = device_reads(&read_files(&tracer), &device);
        read_direct(&device.path, 2000);
        let now = device_reads(&read_files(&tracer), &device);
        found.push([now[0] - before[0], now[1] - before[1], now[2] - before[2]]);
        println!("attempt {attempt}: {found:?}");
        if found.last() == Some(&[2000, 2000 * 4096, 2000]) {
            return;
        }
    }
    panic!("requests, bytes and times of 2000 reads: {found:?}");
}

/// Requests, bytes and times of this process's reads of a device outside files.
fn device_reads(raw: &FileIoRaw, device: &LoopDevice) -> [u64; 3] {
    let mut sums = [0; 3];
    for a in raw.accounts.iter().filter(|a| a.key.device == device_id(device) && a.key.pid == std::process::id()) {
        assert_eq!((a.key.class, a.key.is_write), (FileClass::Device, false));
        sums = [sums[0] + a.requests, sums[1] + a.bytes, sums[2] + a.histogram.total()];
    }
    sums
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|w| w == part)
}

#[test]
fn programs_for_files_are_loaded_only_on_request() {
    let _lock = lock();
    if let Err(why) = check_tracing() {
        return println!("skipped programs_for_files_are_loaded_only_on_request: {why}");
    }
    let tracer = load_tracer();
    let has_start =
        std::fs::read("/sys/kernel/btf/vmlinux").is_ok_and(|types| contains(&types, b"btf_trace_block_io_start\0"));
    let names: Vec<String> = loaded_programs().flatten().filter_map(|p| p.name_as_str().map(str::to_owned)).collect();
    // Where who submits is known by one tracepoint, they are called by the programs for requests, which look up the rest.
    assert_eq!(names.iter().any(|name| name == "after_complete"), has_start, "{names:?}");
    tracer.request_files(false);
    let began = Instant::now();
    while !matches!(tracer.files.read(), Reading::Absent(why) if why.contains("--pane files")) {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.files.read());
        std::thread::yield_now();
    }
}

#[test]
fn recorded_files_are_replayed() {
    let _lock = lock();
    let name = "recorded_files_are_replayed";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut record = Command::new(env!("CARGO_BIN_EXE_iotop-plus"));
    record.args(["record", "-q", "--files", "-d", "0.2", "--for", "4"]).arg(&path).stdin(Stdio::null());
    let mut child = record.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        read_direct(&device.path, 50);
    }
    let mut replay = Command::new(env!("CARGO_BIN_EXE_iotop-plus"));
    replay.arg("replay").arg(&path).args(["--format", "json", "--pane", "files"]).stdin(Stdio::null());
    let out = replay.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let device = device.path.file_name().unwrap().to_str().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let rows = text.lines().flat_map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["files"].as_array().cloned().unwrap_or_default()
    });
    let is_ours = |row: &serde_json::Value| {
        row["device"] == device && row["kind"] == "device" && row["pid"] == std::process::id() && row["p99_us"].is_f64()
    };
    assert!(rows.clone().any(|row| is_ours(&row)), "{:?}", rows.collect::<Vec<_>>());
}
