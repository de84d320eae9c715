//! I/O accounting on the running kernel: request counts match those of the kernel, and page cache is attributed to the
//! process that dirtied it, whoever writes it back and even after that process has exited.
//!
//! Needs root, loop devices and BTF; skipped by name elsewhere.

#[path = "trace/machine.rs"]
#[allow(dead_code)]
mod machine;
/// `machine` expects this in the crate root.
mod pty_harness {
    pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");
}

use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::io_accounting::{AccountKind, IoAccountsRaw};
use iotop_plus::root::Root;
use machine::{LoopDevice, any_loaded, bpf_programs, check_tracing, read_direct, write_flushed};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn load_tracer() -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    let began = Instant::now();
    while tracer.io_accounting.read().ok().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.io_accounting.read());
        std::thread::yield_now();
    }
    tracer
}

fn read_accounting(tracer: &Tracer) -> Arc<IoAccountsRaw> {
    let read = tracer.io_accounting.read();
    read.ok().cloned().unwrap_or_else(|| panic!("{read:?}"))
}

fn device_id(device: &LoopDevice) -> DevId {
    DevId { major: device.id.0, minor: device.id.1 }
}

/// Sums requests and bytes of a process on a device.
fn counts_of(raw: &IoAccountsRaw, pid: u32, dev: DevId, kind: AccountKind) -> (u64, u64) {
    let own = raw.accounts.iter().filter(|a| (a.key.pid, a.key.device, a.key.kind) == (pid, dev, kind));
    own.fold((0, 0), |sum, a| (sum.0 + a.requests, sum.1 + a.bytes))
}

/// An ext4 file system on a device, mounted until this is dropped.
struct MountedExt4 {
    /// Mount point.
    dir: tempfile::TempDir,
}

impl MountedExt4 {
    /// Formats and mounts the device.
    fn new(device: &Path) -> Result<Self, String> {
        let run = |command: &mut Command| {
            let name = format!("{:?}", command.get_program());
            let out = command.stdin(Stdio::null()).output().map_err(|err| format!("{name}: {err}"))?;
            let message = String::from_utf8_lossy(&out.stderr).trim().to_owned();
            out.status.success().then_some(()).ok_or_else(|| format!("{name}: {message}"))
        };
        // Initialise everything now, so that no kernel thread writes tables later.
        let lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", lazy]).arg(device))?;
        let dir = tempfile::tempdir().map_err(|err| err.to_string())?;
        run(Command::new("mount").arg(device).arg(dir.path()))?;
        Ok(Self { dir })
    }

    /// Writes everything to the device.
    fn sync(&self) {
        rustix::fs::syncfs(std::fs::File::open(self.dir.path()).unwrap()).unwrap();
    }
}

impl Drop for MountedExt4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).status();
    }
}

#[test]
fn direct_read_counts_match_diskstats() {
    let name = "a_direct_readers_requests_are_counted_as_the_kernel_counts_them";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    let own = |raw: &IoAccountsRaw| counts_of(raw, std::process::id(), device_id(&device), AccountKind::Read);
    // Others that read a new device (udev) disturb the count: one undisturbed run is enough.
    let agreed = (0..20).any(|_| {
        let (kernel, before) = (device.reads(), own(&read_accounting(&tracer)));
        read_direct(&device.path, 3000);
        let (kernel, now) = (device.reads() - kernel, own(&read_accounting(&tracer)));
        println!("/proc/diskstats {kernel}, charged {} requests, {} bytes", now.0 - before.0, now.1 - before.1);
        kernel == 3000 && now.0 - before.0 == 3000 && now.1 - before.1 == 3000 * 4096
    });
    assert!(agreed, "never the same count");
    let raw = read_accounting(&tracer);
    let account =
        raw.accounts.iter().find(|a| a.key.device == device_id(&device) && a.key.kind == AccountKind::Read).unwrap();
    assert_eq!(account.histogram.total(), account.requests, "each has its time");
    let group = raw.cgroups.iter().find(|g| g.0 == account.key.cgroup_id);
    assert!(group.is_some_and(|g| g.1.starts_with('/')), "{:?} in {:?}", account.key.cgroup_id, raw.cgroups);
}

/// A device whose requests the kernel does not count until this is dropped: the setting stays when a loop device is detached.
struct Uncounted(String);

impl Uncounted {
    fn new(device: &Path) -> Self {
        let file = format!("/sys/block/{}/queue/iostats", device.file_name().unwrap().to_str().unwrap());
        std::fs::write(&file, "0").unwrap();
        Self(file)
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.0, "1");
    }
}

#[test]
fn requests_that_the_kernel_does_not_count_have_no_time_of_an_earlier_one() {
    let name = "requests_that_the_kernel_does_not_count_have_no_time_of_an_earlier_one";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    let own = |raw: &IoAccountsRaw| {
        let key = (std::process::id(), device_id(&device), AccountKind::Read);
        let found = raw.accounts.iter().find(|a| (a.key.pid, a.key.device, a.key.kind) == key);
        found.map_or((0, 0), |account| (account.requests, account.total_ns))
    };
    read_direct(&device.path, 500);
    std::thread::sleep(Duration::from_secs(2));
    let _uncounted = Uncounted::new(&device.path);
    let (before, began) = (own(&read_accounting(&tracer)), Instant::now());
    read_direct(&device.path, 500);
    let (now, all) = (own(&read_accounting(&tracer)), began.elapsed().as_nanos() as u64);
    let (requests, ns) = (now.0 - before.0, now.1 - before.1);
    println!("{requests} requests, {ns} ns in {all} ns");
    assert!(requests >= 500 && ns > 0, "{requests} requests, {ns} ns");
    assert!(ns < all, "one after the other, they took {ns} of {all} ns");
}

#[test]
fn flushed_writes_are_charged_once_with_the_time_of_their_flush() {
    let name = "flushed_writes_are_charged_once_with_the_time_of_their_flush";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    let all = |kind| {
        let raw = read_accounting(&tracer);
        let own = (std::process::id(), device_id(&device), kind);
        let own = raw.accounts.iter().filter(|a| (a.key.pid, a.key.device, a.key.kind) == own);
        own.fold((0, 0, 0), |sum, a| (sum.0 + a.requests, sum.1 + a.bytes, sum.2 + a.histogram.total()))
    };
    // Others that write to a new device disturb the count: one undisturbed run is enough.
    let agreed = (0..20).any(|_| {
        let (kernel, before, flushes) = (device.writes(), all(AccountKind::Write), all(AccountKind::Flush));
        write_flushed(&device.path, 1000);
        let (kernel, now, after) = (device.writes() - kernel, all(AccountKind::Write), all(AccountKind::Flush));
        let charged = (now.0 - before.0, now.1 - before.1, now.2 - before.2);
        println!("/proc/diskstats {kernel}, charged {charged:?}, flushes {flushes:?} to {after:?}");
        // The kernel may add a flush without data to each, which it counts as a write.
        charged == (1000, 1000 * 4096, 1000) && 1000 + after.0 - flushes.0 == kernel
    });
    assert!(agreed, "never the same count");
}

/// Writes `mib` MiB through the page cache with `dd`; returns its pid after it has exited.
fn dirty_with_dd(file: &Path, mib: u64) -> u32 {
    let mut command = Command::new("dd");
    command.arg("if=/dev/zero").arg(format!("of={}", file.display()));
    command.args(["bs=64k", &format!("count={}", mib * 16)]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    assert!(child.wait().unwrap().success());
    pid
}

#[test]
fn writeback_is_attributed_to_processes_that_dirtied_it_even_after_exit() {
    let name = "what_is_written_back_is_charged_to_those_who_dirtied_it_though_they_have_ended";
    let device = match check_tracing().and_then(|()| LoopDevice::new(160 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let mounted = match MountedExt4::new(&device.path) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = load_tracer();
    let (a, b) = (dirty_with_dd(&mounted.dir.path().join("a"), 80), dirty_with_dd(&mounted.dir.path().join("b"), 20));
    mounted.sync();
    let raw = read_accounting(&tracer);
    for (pid, mib) in [(a, 80), (b, 20)] {
        let charged = raw.written_back_bytes(pid, Some(device_id(&device)));
        println!("dd {pid} dirtied {mib} MiB, charged {:.2} MiB", charged as f64 / 1_048_576.0);
        let off = charged.abs_diff(mib << 20);
        assert!(off * 100 <= mib << 20, "{charged} bytes charged for {mib} MiB");
        assert!(raw.names.iter().any(|n| n.0 == pid && &*n.1 == "dd"), "{:?}", raw.names);
    }
    // All writes together must include what was attributed.
    let written: u64 = raw
        .accounts
        .iter()
        .filter(|a| a.key.device == device_id(&device) && a.key.kind == AccountKind::Write)
        .map(|a| a.bytes)
        .sum();
    assert!(written >= 100 << 20, "{written}");
}

#[test]
fn programs_are_unloaded_after_sigkill() {
    if let Err(why) = check_tracing() {
        return println!("skipped its_programs_go_with_the_process_that_is_killed: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iotop-plus"));
    let mut child = command.args(["record", "-q"]).arg(dir.path().join("r")).stdin(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let name = |id: &u32| {
        let all = aya::programs::loaded_programs();
        all.flatten().any(|p| p.id() == *id && p.name_as_str() == Some("dirtied"))
    };
    let ids = loop {
        let ids = bpf_programs(child.id());
        if ids.iter().any(name) {
            break ids;
        }
        if began.elapsed() > TIMEOUT {
            let _ = child.kill();
            panic!("the programs never came: {ids:?}");
        }
        std::thread::yield_now();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    while any_loaded(&ids) {
        assert!(began.elapsed() < TIMEOUT, "they stayed: {ids:?}");
        std::thread::yield_now();
    }
}

/// Discards 64 MiB of a device in pieces of 4 MiB and checks whose they are; `Err`: why it cannot be done here.
fn check_discards(tracer: &Tracer, path: &Path, id: DevId) -> Result<(), String> {
    let discard = Command::new("blkdiscard").args(["-f", "--step", "4194304"]).arg(path).spawn();
    let mut discard = discard.map_err(|err| format!("blkdiscard: {err}"))?;
    assert!(discard.wait().unwrap().success(), "blkdiscard {}", path.display());
    let raw = read_accounting(tracer);
    let of = |kind| {
        let own = raw.accounts.iter().filter(|a| (a.key.pid, a.key.device) == (discard.id(), id));
        let own = own.filter(|a| a.key.kind == kind);
        own.fold((0, 0, 0), |sum, a| (sum.0 + a.requests, sum.1 + a.bytes, sum.2 + a.histogram.total()))
    };
    let (requests, bytes, timed) = of(AccountKind::Discard);
    println!("{requests} discards, {bytes} bytes, {timed} with a time; writes {:?}", of(AccountKind::Write));
    assert!(requests >= 16 && timed == requests, "{requests} discards, {timed} with a time");
    assert_eq!(bytes, 64 << 20);
    assert_eq!(of(AccountKind::Write), (0, 0, 0), "a discard is no write");
    Ok(())
}

#[test]
fn discards_are_charged_to_the_process_that_submits_them() {
    let checked = check_tracing().and_then(|()| {
        let device = LoopDevice::new(64 << 20)?;
        check_discards(&load_tracer(), &device.path, device_id(&device))
    });
    if let Err(why) = checked {
        println!("skipped discards_are_charged_to_the_process_that_submits_them: {why}");
    }
}

/// A zram device, removed when this is dropped.
struct Zram(String);

impl Zram {
    fn new() -> Result<Self, String> {
        let number =
            std::fs::read_to_string("/sys/class/zram-control/hot_add").map_err(|err| format!("zram: {err}"))?;
        let device = Self(number.trim().to_owned());
        let size = format!("/sys/block/zram{}/disksize", device.0);
        std::fs::write(size, "64M").map_err(|err| format!("zram: {err}"))?;
        Ok(device)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = std::fs::write("/sys/class/zram-control/hot_remove", &self.0);
    }
}

#[test]
fn discards_of_a_device_that_takes_bios_are_charged_as_well() {
    let checked = check_tracing().and_then(|()| {
        let device = Zram::new()?;
        let number =
            std::fs::read_to_string(format!("/sys/block/zram{}/dev", device.0)).map_err(|err| err.to_string())?;
        let id = DevId::parse(number.trim().as_bytes()).ok_or("zram: no device number")?;
        check_discards(&load_tracer(), Path::new(&format!("/dev/zram{}", device.0)), id)
    });
    if let Err(why) = checked {
        println!("skipped discards_of_a_device_that_takes_bios_are_charged_as_well: {why}");
    }
}
