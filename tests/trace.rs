//! BPF tracing on the running kernel: what it counts, the reason shown without permission, and that nothing of it
//! stays.
//!
//! Needs root, loop devices and BTF; skipped by name elsewhere.

#[path = "trace/machine.rs"]
mod machine;
mod pty_harness;
#[path = "trace/stalls.rs"]
mod stalls;
#[path = "trace/syncs.rs"]
mod syncs;
#[path = "fixture/tree.rs"]
mod tree;

use iotop_plus::bpf::Tracer;
use iotop_plus::model::latency::{DeviceHistograms, LatencyRaw};
use iotop_plus::model::reading::Reading;
use iotop_plus::model::request_pattern::RequestPattern;
use iotop_plus::root::Root;
use machine::{
    LoopDevice, UnprivilegedUser, any_loaded, bpf_programs, check_clang, check_tracing, read_direct, read_direct_at,
    write_flushed,
};
use pty_harness::{BINARY, TIMEOUT, Terminal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Polls until there is a value.
fn poll_until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(began.elapsed() < TIMEOUT, "timed out waiting for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn bpf_objects_match_their_sources() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/trace");
    if let Err(why) = check_clang() {
        return println!("skipped the_object_is_what_its_source_gives: {why}");
    }
    let out = tempfile::tempdir().unwrap();
    assert!(Command::new(dir.join("build.sh")).arg(out.path()).status().unwrap().success());
    let mut compared = 0;
    for built in std::fs::read_dir(out.path()).unwrap().flatten() {
        let committed = std::fs::read(dir.join(built.file_name())).unwrap();
        let same = std::fs::read(built.path()).unwrap() == committed;
        assert!(same, "{:?} is stale: run assets/trace/build.sh", built.file_name());
        compared += 1;
    }
    assert!(compared > 0);
}

fn device_counts(raw: &LatencyRaw, id: (u32, u32)) -> Option<&DeviceHistograms> {
    raw.devices.iter().find(|d| (d.id.major, d.id.minor) == id)
}

/// Number of requests of a kind: all, and those with a known service time.
fn sample_counts(tracer: &Tracer, id: (u32, u32), kind: usize) -> [u64; 2] {
    let Reading::Ok(raw) = tracer.latency.read() else { panic!("{:?}", tracer.latency.read()) };
    let kind = device_counts(&raw, id).map(|d| &d.kinds[kind]);
    kind.map_or([0; 2], |k| [k.total.total(), k.service.total()])
}

#[test]
fn request_counts_match_diskstats() {
    if let Err(why) = check_tracing() {
        return println!("skipped every_request_is_counted_as_the_kernel_counts_it: {why}");
    }
    let device = match LoopDevice::new(64 << 20) {
        Ok(device) => device,
        Err(why) => return println!("skipped every_request_is_counted_as_the_kernel_counts_it: {why}"),
    };
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    poll_until("the programs", || tracer.latency.read().ok().map(drop));
    // Others that read a new device (udev) disturb the count: one undisturbed run is enough.
    let agreed = (0..20).any(|_| {
        let (kernel, ours) = (device.reads(), sample_counts(&tracer, device.id, 0));
        read_direct(&device.path, 4000);
        let (kernel, now) = (device.reads() - kernel, sample_counts(&tracer, device.id, 0));
        println!("/proc/diskstats {kernel}, tracing {:?}", [now[0] - ours[0], now[1] - ours[1]]);
        kernel == 4000 && now[0] - ours[0] == 4000 && now[1] - ours[1] == 4000
    });
    assert!(agreed, "never the same count");
}

/// `block_rq_complete` fires twice for each of these writes.
#[test]
fn flushed_writes_are_counted_once_with_the_time_of_their_flush() {
    let name = "flushed_writes_are_counted_once_with_the_time_of_their_flush";
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped {name}: {why}"),
    };
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    poll_until("the programs", || tracer.latency.read().ok().map(drop));
    let pattern = || {
        let Reading::Ok(raw) = tracer.latency.read() else { panic!("{:?}", tracer.latency.read()) };
        device_counts(&raw, device.id).map(|d| d.kinds[1].pattern).unwrap_or_default()
    };
    // Others that write to a new device disturb the count: one undisturbed run is enough.
    let agreed = (0..20).any(|_| {
        let (kernel, before, sized) = (device.writes(), sample_counts(&tracer, device.id, 1), pattern());
        write_flushed(&device.path, 1000);
        let (kernel, now) = (device.writes() - kernel, sample_counts(&tracer, device.id, 1));
        let sized = pattern().since(&sized).sizes;
        println!("/proc/diskstats {kernel}, tracing {:?}, {sized:?}", [now[0] - before[0], now[1] - before[1]]);
        // The kernel may add a flush without data to each, which is never issued.
        now[0] - before[0] == kernel && now[1] - before[1] == 1000 && sized[3] == 1000
    });
    assert!(agreed, "never the same count");
}

/// Returns the request pattern of reads of a device.
fn request_pattern(tracer: &Tracer, id: (u32, u32)) -> RequestPattern {
    let Reading::Ok(raw) = tracer.latency.read() else { panic!("{:?}", tracer.latency.read()) };
    device_counts(&raw, id).map(|d| d.kinds[0].pattern).unwrap_or_default()
}

/// Name, block number (4 KiB) of the i-th request, length, and expected number of sequential requests.
type LoadPattern = (&'static str, fn(u64) -> u64, usize, RangeInclusive<u32>);

#[test]
fn request_sizes_and_sequential_share_match_the_load() {
    let device = match check_tracing().and_then(|()| LoopDevice::new(64 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped sizes_and_order_of_requests_are_those_asked_for: {why}"),
    };
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    poll_until("the programs", || tracer.latency.read().ok().map(drop));
    const N: u64 = 500;
    let loads: [LoadPattern; 4] = [
        ("one after the other", |i| i, 4096, 499..=500),
        ("two streams in turn", |i| i / 2 + i % 2 * 8192, 4096, 498..=500),
        ("anywhere", |i| i * 7919 % 8192 * 2, 4096, 0..=5),
        ("larger ones, in a row", |i| i * 16, 65536, 499..=500),
    ];
    for (what, at, len, sequential) in loads {
        // Others that read the device (udev) disturb the count: one undisturbed run is enough.
        let agreed = (0..20).any(|_| {
            let (kernel, before) = (device.reads(), request_pattern(&tracer, device.id));
            read_direct_at(&device.path, len, (0..N).map(|i| at(i) * 4096));
            let (kernel, now) = (device.reads() - kernel, request_pattern(&tracer, device.id).since(&before));
            println!("{what}: {now:?}");
            let sized = now.sizes[(len / 512).ilog2() as usize];
            kernel == N && u64::from(sized) == N && sequential.contains(&now.sequential)
        });
        assert!(agreed, "{what}: never as asked for");
    }
}

#[test]
fn the_histograms_of_a_removed_device_are_freed() {
    let device = match check_tracing().and_then(|()| LoopDevice::new(4 << 20)) {
        Ok(device) => device,
        Err(why) => return println!("skipped the_histograms_of_a_removed_device_are_freed: {why}"),
    };
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    let id = device.id;
    let has_histogram = || tracer.latency.read().ok().map(|raw| device_counts(raw, id).is_some());
    poll_until("its histogram", || {
        read_direct(&device.path, 1);
        has_histogram().filter(|has| *has)
    });
    // A loop device without a file stays in /sys/block and has no size.
    drop(device);
    poll_until("the end of its histogram", || has_histogram().filter(|has| !has));
}

fn snapshot(mut command: Command, args: &[&str]) -> Value {
    command.args(args).args(["snapshot", "--pane", "devices", "--format", "json", "-d", "1"]);
    let out = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    assert!(out.status.success());
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Returns why there are no latencies; checks that no field has a value.
fn latency_reason(object: &Value) -> String {
    let devices = object["devices"].as_array().unwrap();
    assert!(!devices.is_empty());
    for d in devices {
        for kind in ["read", "write", "flush"] {
            for name in ["p50", "p90", "p99", "p999", "max", "samples"] {
                assert!(d["latency_us"][kind][name].is_null() && d["service_us"][kind][name].is_null(), "{d}");
            }
        }
    }
    let gaps = object["unavailable"].as_array().unwrap();
    let gap = gaps.iter().find(|g| g["source"] == "latency").unwrap_or_else(|| panic!("no reason: {gaps:?}"));
    gap["reason"].as_str().unwrap().to_owned()
}

#[test]
fn without_tracing_everything_else_works_and_the_reason_is_shown() {
    let why = |args: &[&str]| latency_reason(&snapshot(Command::new(BINARY), args));
    assert!(why(&["--no-tracing"]).contains("--no-tracing"));
    assert!(why(&["--root", tree::captured("busy-vm/t0").to_str().unwrap()]).contains("CONFIG_DEBUG_INFO_BTF"));
}

#[test]
fn an_unprivileged_user_sees_which_capabilities_are_missing() {
    let nobody = match check_tracing().and_then(|()| UnprivilegedUser::new()) {
        Ok(nobody) => nobody,
        Err(why) => return println!("skipped an_ordinary_user_is_told_what_is_missing: {why}"),
    };
    let why = latency_reason(&snapshot(nobody.command(&[]), &[]));
    assert!(why.contains("CAP_BPF") && why.contains("CAP_PERFMON"), "{why}");
    let mut command = nobody.command(&["bpf", "perfmon"]);
    command.args(["snapshot", "--pane", "devices", "--format", "json", "-d", "0.2", "-n", "100"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    // Loading takes time; the first samples may have no latencies.
    let measured = |d: &Value| d["latency_us"]["read"]["samples"].is_u64();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut objects = lines.map(|l| serde_json::from_str::<Value>(&l.unwrap()).unwrap());
    assert!(objects.any(|o| o["devices"].as_array().unwrap().iter().any(measured)), "none in 100 samples");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// In a PID namespace the numbers that programs report belong to other tasks.
#[test]
fn in_a_pid_namespace_no_task_is_charged() {
    let name = "in_a_pid_namespace_no_task_is_charged";
    if let Err(why) = check_tracing() {
        return println!("skipped {name}: {why}");
    }
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", BINARY, "snapshot", "--format", "json", "-d", "1"]);
    for pane in ["devices", "processes", "memory", "syncs"] {
        command.args(["--pane", pane]);
    }
    let out = match command.stdin(Stdio::null()).output() {
        Ok(out) if out.status.success() => out,
        other => return println!("skipped {name}: no PID namespace: {other:?}"),
    };
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    for source in ["syncs", "processes_by_device", "stalls"] {
        let gaps = object["unavailable"].as_array().unwrap();
        let reason = gaps.iter().find(|gap| gap["source"] == source).map(|gap| gap["reason"].as_str().unwrap());
        assert!(reason.is_some_and(|why| why.contains("initial PID namespace")), "{source}: {reason:?}");
    }
}

/// Waits until a process has loaded its programs; returns their IDs.
fn wait_for_programs(pid: u32) -> Vec<u32> {
    poll_until("programs in the kernel", || {
        let ids = bpf_programs(pid);
        (ids.len() >= 2).then_some(ids)
    })
}

fn wait_until_unloaded(ids: &[u32]) {
    poll_until("the programs to go", || (!any_loaded(ids)).then_some(()));
}

/// A recording process, killed when this is dropped.
struct RecordingProcess(Child);

impl RecordingProcess {
    fn start(dir: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["record", "-q"]).arg(dir.join("r")).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for RecordingProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn programs_are_unloaded_however_the_process_ends() {
    if let Err(why) = check_tracing() {
        return println!("skipped nothing_stays_in_the_kernel_however_it_ends: {why}");
    }
    for signal in [Signal::TERM, Signal::KILL, Signal::ABORT] {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = RecordingProcess::start(dir.path());
        let ids = wait_for_programs(recording.0.id());
        kill_process(Pid::from_child(&recording.0), signal).unwrap();
        recording.0.wait().unwrap();
        wait_until_unloaded(&ids);
    }
    let mut screen = Terminal::with_args(&[]);
    screen.wait_for_text("q quit");
    let ids = wait_for_programs(screen.pid());
    screen.send("q");
    assert_eq!(screen.wait_for_exit().exit_code(), 0);
    wait_until_unloaded(&ids);
}

#[test]
fn programs_are_unloaded_after_a_panic() {
    const NAME: &str = "programs_are_unloaded_after_a_panic";
    const ROLE: &str = "IOTOP_PLUS_TEST_PANICS";
    if let Err(why) = check_tracing() {
        return println!("skipped {NAME}: {why}");
    }
    if std::env::var_os(ROLE).is_some() {
        let tracer = Tracer::new(&Root::live());
        tracer.start();
        poll_until("the programs", || tracer.latency.read().ok().map(drop));
        // Wait until the parent has seen the programs.
        let _ = std::io::stdin().read_line(&mut String::new());
        panic!("on request");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(ROLE, "1").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ids = wait_for_programs(child.id());
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success(), "it panicked");
    wait_until_unloaded(&ids);
}
