//! Accuracy of tracing compared with fio, and its cost: `cargo bench --bench tracing -- accuracy DIR` or `-- overhead`.
//!
//! `accuracy`: fio at queue depth 1 with O_DIRECT on a file in DIR and on a loop device in memory. Compares counts and
//! percentiles of the same requests, measured by fio (lat: from submission to completion as seen by fio) and by
//! tracing, and the share of sequential requests. fio sleeps until completion, so its times include the wake-up; with
//! `--awake` it polls. The remaining difference is 2 to 3 us for its system calls; larger requests (`--kib N`, 4)
//! reduce their weight.
//!
//! `overhead`: one fio run on a loop device in memory at full speed. Time slices without tracing, with histograms only,
//! with everything that is on by default, with files as well, and with waits as well alternate in different orders, because runs differ by more than tracing costs. Also prints the cost
//! of loading and of one reading, and the memory left afterwards.
//!
//! Options: `--pairs N` (60), `--slice MS` (400), `--seconds S` (8). Needs root, fio, losetup.

#[path = "../trace/machine.rs"]
#[allow(dead_code)]
mod machine;
/// `machine` expects this in the crate root.
mod pty_harness {
    pub const BINARY: &str = env!("CARGO_BIN_EXE_iotop-plus");
}

use iotop_plus::bpf::Tracer;
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::latency::{DeviceHistograms, DeviceLatency, RequestLatency};
use iotop_plus::root::Root;
use machine::{LoopDevice, check_tracing};
use serde_json::Value;
use std::path::Path;
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
        Some("overhead") => overhead(option("--pairs", 60), Duration::from_millis(option("--slice", 400))),
        _ => println!("accuracy DIR or overhead; see tests/bench/tracing.rs"),
    }
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

fn overhead(pairs: u64, slice: Duration) {
    let device = LoopDevice::new(1 << 30).expect("a loop device");
    let load_args = ["--rw=randread", "--bs=4k", "--iodepth=64", "--ioengine=io_uring", "--size=1G"];
    // Threads, because separate jobs would outlive it.
    let more = ["--runtime=3600", "--numjobs=2", "--thread", "--registerfiles", "--fixedbufs", "--gtod_reduce=1"];
    let mut command = fio_command(&device.path, &[load_args.as_slice(), &more].concat());
    let _fio = RunningFio(command.stdout(Stdio::null()).spawn().expect("fio"));
    std::thread::sleep(Duration::from_secs(1));
    let rate = || {
        std::thread::sleep(Duration::from_millis(200));
        let (began, ios) = (Instant::now(), device.reads());
        std::thread::sleep(slice);
        (device.reads() - ios) as f64 / began.elapsed().as_secs_f64()
    };
    let mut arms = [const { Vec::new() }; 5];
    for pair in 0..pairs {
        // Ten orders in turn, so that drift affects each arm alike.
        let mut order = [0, 1, 2, 3, 4];
        order.rotate_left(pair as usize % 5);
        if pair / 5 % 2 == 1 {
            order.reverse();
        }
        for arm in order {
            let tracer = (arm > 0).then(|| load_tracer().0);
            if let Some(tracer) = tracer.as_ref().filter(|_| arm >= 3) {
                request_files(tracer);
            }
            if let Some(tracer) = tracer.as_ref().filter(|_| arm == 4) {
                request_waits(tracer);
            }
            if let Some(tracer) = tracer.as_ref().filter(|_| arm == 1) {
                tracer.io_accounting.unload();
            }
            arms[arm].push(rate());
        }
    }
    let [none, histograms, all, files, waits] = arms;
    println!("{pairs} rounds of slices of {} ms at {:.0} IOPS", slice.as_millis(), median(&none));
    print_overhead("histograms", &none, &histograms);
    print_overhead("everything", &none, &all);
    print_overhead("everything beside histograms", &histograms, &all);
    print_overhead("everything and files", &none, &files);
    print_overhead("files beside everything", &all, &files);
    print_overhead("everything, files and waits", &none, &waits);
    print_overhead("waits beside everything and files", &files, &waits);
    own_cost();
}

/// Loads the programs for files, which are loaded only on request.
fn request_files(tracer: &Tracer) {
    tracer.request_files(true);
    while tracer.files.read().ok().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Loads the programs for waits, which are loaded only on request.
fn request_waits(tracer: &Tracer) {
    tracer.request_waits(true);
    while tracer.waits.read().ok().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Prints the relative loss of throughput, from pairs of slices of one round.
fn print_overhead(what: &str, off: &[f64], on: &[f64]) {
    let ratios: Vec<f64> = off.iter().zip(on).map(|(off, on)| (on / off - 1.0) * 100.0).collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let sd = (ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    println!("{what}: mean {mean:+.2} % (standard error {:.2}), median {:+.2} %", sd / n.sqrt(), median(&ratios));
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
