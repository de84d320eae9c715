//! Accuracy of tracing compared with fio, and its cost: `cargo bench --bench tracing -- accuracy DIR` or `-- overhead`.
//!
//! `accuracy`: fio at queue depth 1 with O_DIRECT on a file in DIR and on a loop device in memory. Compares counts and
//! percentiles of the same requests, measured by fio (lat: from submission to completion as seen by fio) and by
//! tracing, and the share of sequential requests. fio sleeps until completion, so its times include the wake-up; with
//! `--awake` it polls. The remaining difference is 2 to 3 us for its system calls; larger requests (`--kib N`, 4)
//! reduce their weight.
//!
//! `overhead`: one fio run on a loop device in memory at full speed. Time slices without tracing, with programs that do
//! nothing (`calls`), with everything that is on by default, with files as well, and with waits as well alternate in
//! different orders, because runs differ by more than tracing costs. Also prints the cost of loading and of one reading, and the memory left
//! afterwards.
//!
//! `programs`: the time of each program for a request, as the kernel counts it.
//!
//! Options: `--pairs N` (60), `--slices N` (10), `--slice MS` (400), `--seconds S` (8), `--arms A,B,...` of nothing,
//! calls, default, files, everything. Needs root, fio, losetup.

#[path = "tracing/empty_program.rs"]
mod empty_program;
#[path = "../trace/machine.rs"]
#[allow(dead_code)]
mod machine;
/// `machine` expects this in the crate root.
mod pty_harness {
    pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");
}

use aya::programs::loaded_programs;
use empty_program::EmptyProgram;
use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::latency::{DeviceHistograms, DeviceLatency, RequestLatency};
use iotop_plus::root::Root;
use machine::{LoopDevice, check_tracing};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let option = |name: &str, or: u64| {
        let at = args.iter().position(|a| a == name);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(or)
    };
    if let Err(why) = check_tracing() {
        return println!("skipped: {why}");
    }
    match args.first().map(String::as_str) {
        Some("accuracy") => {
            let dir = args.get(1).map_or(".", String::as_str);
            let how = if args.iter().any(|a| a == "--awake") { POLLING } else { SLEEPING };
            accuracy(Path::new(dir), option("--kib", 4), option("--seconds", 8), how);
        }
        Some("overhead") => {
            let (pairs, slice) = (option("--pairs", 60), Duration::from_millis(option("--slice", 400)));
            overhead(pairs, slice, &wanted_arms(&args));
        }
        Some("programs") => {
            let (slices, slice) = (option("--slices", 10), Duration::from_millis(option("--slice", 400)));
            program_times(slices, slice, &wanted_arms(&args));
        }
        _ => println!("accuracy DIR or overhead; see tests/bench/tracing.rs"),
    }
}

/// Longer than loading takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The arms of `--arms A,B,...`; all without it.
fn wanted_arms(args: &[String]) -> Vec<(Arm, &'static str)> {
    let wanted = args.iter().position(|a| a == "--arms").and_then(|at| args.get(at + 1));
    let is_wanted = |name: &str| wanted.is_none_or(|list| list.split(',').any(|w| w == name));
    ARMS.into_iter().filter(|(_, name)| is_wanted(name)).collect()
}

/// Loads the programs; returns how long that took.
fn load_tracer() -> (Tracer, Duration) {
    let (began, tracer) = (Instant::now(), Tracer::new(&Root::live()));
    tracer.start();
    // Wait for all probes: loading would be measured otherwise.
    while tracer.latency.read().ok().is_none()
        || tracer.io_accounting.read().ok().is_none()
        || tracer.tasks.read().ok().is_none()
    {
        assert!(began.elapsed() < TIMEOUT, "{:?} {:?}", tracer.latency.read(), tracer.io_accounting.read());
        std::thread::sleep(Duration::from_millis(1));
    }
    (tracer, began.elapsed())
}

fn device_counts(tracer: &Tracer, id: DevId) -> DeviceHistograms {
    let found = tracer.latency.read().ok().and_then(|r| r.devices.iter().find(|d| d.id == id).cloned());
    found.unwrap_or(DeviceHistograms { id, ..DeviceHistograms::default() })
}

fn fio_command(file: &Path, more: &[&str]) -> Command {
    let mut command = Command::new("fio");
    command.args(["--name=t", "--direct=1", "--time_based", "--output-format=json", "--randrepeat=1"]);
    // By default fio changes buffers between writes, which would be timed.
    command.args(["--lat_percentiles=1", "--scramble_buffers=0"]);
    command.arg(format!("--filename={}", file.display())).args(more).stdin(Stdio::null());
    command
}

/// fio sleeps in its system call until the request completes.
const SLEEPING: &[&str] = &["--ioengine=psync"];
/// fio polls for completion, with as little kernel work as possible between submission and device.
const POLLING: &[&str] =
    &["--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--nonvectored=1", "--iodepth_batch_complete_min=0"];

fn accuracy(dir: &Path, kib: u64, seconds: u64, how: &[&str]) {
    let device = LoopDevice::new(1 << 30).expect("a loop device");
    let file = dir.join(format!("tracing-{}.fio", std::process::id()));
    let on = rustix::fs::stat(dir).expect("the directory").st_dev;
    let disk = DevId { major: rustix::fs::major(on), minor: rustix::fs::minor(on) };
    let (major, minor) = device.id;
    println!(
        "target rw: requests fio/diskstats/tracing | p50 us fio/service/total | p99 us fio/service/total | sequential"
    );
    for (name, target, id) in [("loop", device.path.as_path(), DevId { major, minor }), ("disk", file.as_path(), disk)]
    {
        if id == disk {
            let lay = fio_command(&file, &["--rw=write", "--bs=1M", "--size=1G", "--end_fsync=1", "--time_based=0"]);
            assert!(run_fio(lay).is_object());
        }
        for rw in ["randread", "randwrite", "read", "write"] {
            let kind = rw.trim_start_matches("rand");
            let (tracer, _) = load_tracer();
            let (before, kernel_count) = (device_counts(&tracer, id), completed_requests(id, kind));
            let runtime = format!("--runtime={seconds}");
            let (rw_arg, block) = (format!("--rw={rw}"), format!("--bs={kib}k"));
            let job = [&rw_arg, &block, "--iodepth=1", "--size=1G", &runtime];
            let report = run_fio(fio_command(target, &[job.as_slice(), how].concat()));
            let kernel_count = completed_requests(id, kind) - kernel_count;
            let latency = DeviceLatency::derive(Some(&before), &device_counts(&tracer, id));
            print_accuracy(
                &format!("{name} {rw}"),
                &report["jobs"][0][kind],
                kernel_count,
                &latency.kinds[usize::from(kind == "write")],
            );
        }
    }
    let _ = std::fs::remove_file(&file);
}

/// Number of completed requests, from /proc/diskstats.
fn completed_requests(id: DevId, kind: &str) -> u64 {
    let text = std::fs::read_to_string(Root::live().proc("diskstats")).unwrap_or_default();
    let line = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let line = line.into_iter().find(|w| w[0] == id.major.to_string() && w[1] == id.minor.to_string());
    line.and_then(|w| w[if kind == "write" { 7 } else { 3 }].parse().ok()).unwrap_or(0)
}

fn print_accuracy(what: &str, fio: &Value, kernel_count: u64, ours: &RequestLatency) {
    let percentile = |p: &str| fio["lat_ns"]["percentile"][p].as_f64().unwrap_or(f64::NAN) / 1e3;
    let ios = fio["total_ios"].as_u64().unwrap_or(0);
    let (Some(total), Some(service)) = (ours.total, ours.service) else { return println!("{what}: nothing") };
    let share = (total.samples as f64 / ios as f64 - 1.0) * 100.0;
    println!(
        "{what}: {ios}/{kernel_count}/{} ({share:+.3} %) | {:.1}/{:.1}/{:.1} | {:.1}/{:.1}/{:.1} | {:.2} %",
        total.samples,
        percentile("50.000000"),
        service.p50,
        total.p50,
        percentile("99.000000"),
        service.p99,
        total.p99,
        ours.pattern.sequential_pct().unwrap_or(f64::NAN),
    );
}

fn run_fio(mut command: Command) -> Value {
    let out = command.output().expect("fio");
    let text = String::from_utf8_lossy(&out.stdout);
    serde_json::from_str(&text[text.find('{').expect("fio's JSON")..]).expect("fio's JSON")
}

/// A running fio, killed when this is dropped.
struct RunningFio(Child);

impl Drop for RunningFio {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the programs that are always on are called for each request.
const REQUEST_TRACEPOINTS: [&CStr; 3] = [c"block_io_start", c"block_rq_issue", c"block_rq_complete"];

/// What is traced in a slice.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Arm {
    Nothing,
    /// Programs that do nothing, where those of [`Arm::Default`] are called: the least that tracing each request there costs.
    Calls,
    /// What is always on.
    Default,
    Files,
    /// Files and waits.
    Everything,
}

const ARMS: [(Arm, &str); 5] = [
    (Arm::Nothing, "nothing"),
    (Arm::Calls, "calls"),
    (Arm::Default, "default"),
    (Arm::Files, "files"),
    (Arm::Everything, "everything"),
];

/// What a slice needs, removed when this is dropped.
#[derive(Default)]
struct LoadedArm {
    tracer: Option<Tracer>,
    _empty_programs: Vec<EmptyProgram>,
}

impl Arm {
    fn load(self) -> LoadedArm {
        match self {
            Arm::Nothing => LoadedArm::default(),
            Arm::Calls => LoadedArm {
                _empty_programs: REQUEST_TRACEPOINTS.iter().map(|name| EmptyProgram::attach(name)).collect(),
                ..LoadedArm::default()
            },
            _ => LoadedArm { tracer: Some(self.load_tracer()), ..LoadedArm::default() },
        }
    }

    fn load_tracer(self) -> Tracer {
        let (tracer, _) = load_tracer();
        if self >= Arm::Files {
            request_files(&tracer);
        }
        if self == Arm::Everything {
            request_waits(&tracer);
        }
        tracer
    }
}

/// fio as fast as it goes on a loop device in memory.
fn start_load(device: &LoopDevice) -> RunningFio {
    let load_args = ["--rw=randread", "--bs=4k", "--iodepth=64", "--ioengine=io_uring", "--size=1G"];
    // Threads, because separate jobs would outlive it.
    let more = ["--runtime=3600", "--numjobs=2", "--thread", "--registerfiles", "--fixedbufs", "--gtod_reduce=1"];
    let mut command = fio_command(&device.path, &[load_args.as_slice(), &more].concat());
    let fio = RunningFio(command.stdout(Stdio::null()).spawn().expect("fio"));
    std::thread::sleep(Duration::from_secs(1));
    fio
}

/// What a slice showed.
#[derive(Clone, Copy)]
struct Slice {
    iops: f64,
    /// CPU time of fio and of the kernel's workers for a request: what other programs do beside them hardly changes it.
    cpu_ns: f64,
}

/// CPU time of the threads of a process and of the kernel's workers, ns, by thread.
fn load_cpu_ns(pid: u32) -> BTreeMap<PathBuf, u64> {
    let run_time = |path: &Path| -> u64 {
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let paths = |dir: &str| std::fs::read_dir(Root::live().proc(dir)).into_iter().flatten().flatten().map(|e| e.path());
    let is_worker = |path: &PathBuf| {
        let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        comm.starts_with("kworker/") || comm.starts_with("ksoftirqd/")
    };
    let threads = paths(&format!("{pid}/task")).chain(paths("").filter(is_worker));
    threads.map(|path| (path.clone(), run_time(&path))).collect()
}

fn overhead(pairs: u64, slice: Duration, arms: &[(Arm, &str)]) {
    let device = LoopDevice::new(1 << 30).expect("a loop device");
    let fio = start_load(&device);
    let measure = || {
        std::thread::sleep(Duration::from_millis(200));
        let (began, ios, cpu) = (Instant::now(), device.reads(), load_cpu_ns(fio.0.id()));
        std::thread::sleep(slice);
        let ios = (device.reads() - ios).max(1) as f64;
        let spent = |(thread, now): (PathBuf, u64)| now.saturating_sub(cpu.get(&thread).copied().unwrap_or(0));
        let cpu_ns = load_cpu_ns(fio.0.id()).into_iter().map(spent).sum::<u64>() as f64 / ios;
        Slice { iops: ios / began.elapsed().as_secs_f64(), cpu_ns }
    };
    let mut slices = vec![Vec::new(); arms.len()];
    for pair in 0..pairs as usize {
        // All rotations, forwards and backwards, so that drift affects each arm alike.
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.rotate_left(pair % arms.len());
        if pair / arms.len() % 2 == 1 {
            order.reverse();
        }
        for arm in order {
            let loaded = arms[arm].0.load();
            settle(loaded.tracer.as_ref());
            slices[arm].push(measure());
            drop(loaded);
        }
    }
    let iops: Vec<Vec<f64>> = slices.iter().map(|arm| arm.iter().map(|s| s.iops).collect()).collect();
    // Requests for the same CPU time, to have the same sign.
    let thrift: Vec<Vec<f64>> = slices.iter().map(|arm| arm.iter().map(|s| 1e9 / s.cpu_ns).collect()).collect();
    println!(
        "{pairs} rounds of slices of {} ms at {:.0} IOPS, {:.0} ns of CPU for a request",
        slice.as_millis(),
        median(&iops[0]),
        1e9 / median(&thrift[0])
    );
    for (what, figures) in [("requests per second", &iops), ("requests per CPU second", &thrift)] {
        for (at, (_, name)) in arms.iter().enumerate().skip(1) {
            print_overhead(&format!("{what}: {name} beside {}", arms[0].1), &figures[0], &figures[at]);
            if at > 1 {
                print_overhead(&format!("{what}: {name} beside {}", arms[at - 1].1), &figures[at - 1], &figures[at]);
            }
        }
    }
    own_cost();
}

/// Waits until the thread that loaded the programs is done, and until the kernel has freed what the slice before had.
fn settle(tracer: Option<&Tracer>) {
    while tracer.is_some_and(|t| !t.is_settled()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(200));
}

/// The time of each program for a request, as the kernel counts it (`kernel.bpf_stats_enabled`), which costs time itself:
/// the least of some slices, because interrupts and other machines take their part.
fn program_times(slices: u64, slice: Duration, arms: &[(Arm, &str)]) {
    let device = LoopDevice::new(1 << 30).expect("a loop device");
    let _fio = start_load(&device);
    let statistics = Root::live().proc("sys/kernel/bpf_stats_enabled");
    std::fs::write(&statistics, "1").expect("kernel.bpf_stats_enabled");
    for (arm, name) in arms {
        let loaded = arm.load();
        let mut least: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for _ in 0..slices {
            let (before, reads) = (program_counts(), device.reads());
            std::thread::sleep(slice);
            let (after, reads) = (program_counts(), (device.reads() - reads).max(1) as f64);
            for (id, (ns, runs)) in after {
                let (ns, runs) = before.get(&id).map_or((ns, runs), |b| (ns - b.0, runs - b.1));
                let (per_request, share) = (ns as f64 / reads, runs as f64 / reads);
                let least = least.entry(id).or_insert((per_request, share));
                *least = (least.0.min(per_request), share);
            }
        }
        let names: BTreeMap<u32, String> =
            loaded_programs().flatten().map(|p| (p.id(), p.name_as_str().unwrap_or("?").to_owned())).collect();
        println!("{name}: {:.0} ns for each request", least.values().map(|l| l.0).sum::<f64>());
        for (id, (ns, share)) in least.iter().filter(|(_, l)| l.0 >= 0.5) {
            println!("  {}: {ns:.0} ns, {share:.2} runs", names.get(id).map_or("?", |n| n));
        }
        drop(loaded);
    }
    let _ = std::fs::write(&statistics, "0");
}

/// Time in ns and number of runs of each program of this process.
fn program_counts() -> BTreeMap<u32, (u64, u64)> {
    let dir = Root::live().proc("self/fdinfo");
    let texts = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = texts.filter_map(|e| std::fs::read_to_string(e.path()).ok()).filter(|t| t.contains("prog_jited"));
    let number = |text: &str, name: &str| -> Option<u64> {
        text.lines().find_map(|l| l.strip_prefix(name))?.trim().parse().ok()
    };
    texts
        .filter_map(|t| Some((number(&t, "prog_id:")? as u32, (number(&t, "run_time_ns:")?, number(&t, "run_cnt:")?))))
        .collect()
}

/// Loads the programs for files, which are loaded only on request.
fn request_files(tracer: &Tracer) {
    tracer.request_files(true);
    let began = Instant::now();
    while tracer.files.read().ok().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.files.read());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Loads the programs for waits, which are loaded only on request.
fn request_waits(tracer: &Tracer) {
    tracer.request_waits(true);
    let began = Instant::now();
    while tracer.waits.read().ok().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{:?}", tracer.waits.read());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Prints the relative loss, from pairs of slices of one round: mean, and median with its 95 % range.
fn print_overhead(what: &str, off: &[f64], on: &[f64]) {
    let mut ratios: Vec<f64> = off.iter().zip(on).map(|(off, on)| (on / off - 1.0) * 100.0).collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let sd = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    ratios.sort_by(f64::total_cmp);
    // Ranks of a median's range, by the normal approximation of the sign test.
    let reach = 0.98 * n.sqrt();
    let rank = |at: f64| ratios[(at.round().max(0.0) as usize).min(ratios.len() - 1)];
    println!(
        "{what}: median {:+.2} % ({:+.2} to {:+.2}), mean {mean:+.2} % (standard error {:.2})",
        median(&ratios),
        rank(n / 2.0 - reach - 0.5),
        rank(n / 2.0 + reach - 0.5),
        sd / n.sqrt(),
    );
}

/// Prints the cost for this process: CPU and memory of loading, and CPU of a reading.
fn own_cost() {
    let (rss, cpu) = (resident_kb(), cpu_us());
    let (tracer, duration) = load_tracer();
    // The thread returns memory after the last probe is loaded.
    std::thread::sleep(Duration::from_millis(300));
    println!(
        "loading: {} ms, {:.0} ms of CPU; resident {rss} KB before, {} KB after",
        duration.as_millis(),
        (cpu_us() - cpu) as f64 / 1e3,
        resident_kb()
    );
    let cpu = cpu_us();
    for _ in 0..1000 {
        let _ = tracer.latency.read();
    }
    let each = (cpu_us() - cpu) as f64 / 1000.0;
    let cpu = cpu_us();
    for _ in 0..1000 {
        let _ = tracer.io_accounting.read();
    }
    let charge = (cpu_us() - cpu) as f64 / 1000.0;
    let devices = tracer.latency.read().ok().map_or(0, |r| r.devices.len());
    println!("reading: {each:.0} us of CPU for {devices} devices, {:.3} % of a core at 1 Hz", each / 1e4);
    let accounts = tracer.io_accounting.read().ok().map_or(0, |r| r.accounts.len());
    println!("reading who does the I/O: {charge:.0} us of CPU for {accounts} accounts");
}

fn resident_kb() -> u64 {
    let text = std::fs::read_to_string(Root::live().proc("self/status")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// User and system time of all threads, including those that exited.
fn cpu_us() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000 + spent.tv_nsec as u64 / 1000
}
