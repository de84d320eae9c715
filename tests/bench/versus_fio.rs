//! Compares the benchmark engine with fio on the same file: `cargo bench --bench versus_fio -- DIR [options]`.
//!
//! The file is created as for every benchmark (unnamed, filled with data) and passed to fio as `/proc/PID/fd/N`. A
//! round runs the three contenders in the order A B C, the next round in the order C B A; medians are reported. CPU per
//! I/O is user and system time of the process during measurement: for iotop-plus that of all its threads and kernel
//! workers, for fio that of the job in its JSON output. `machine` is the CPU time of the whole machine, including
//! kernel threads of a loop device, without what fio needs to start and to end.
//!
//! Options: `--pairs N` (5), `--seconds S` (5), `--patterns a,b` (randread,randwrite,randrw; also read,write), `--blocks a,b`
//! (4096 bytes), `--depths a,b` (64), `--size MIB` (1024),
//! `--rate IOPS`: fixed rate, to compare percentiles (one direction only); `--batch S/C`: iotop-plus submits S at a
//! time and waits for C; `--best-only`: without fio's run that measures no latency; `--loop-tmpfs`: ignores DIR; creates ext4 on
//! a loop device on tmpfs and removes it (root, 3 GiB of memory); `--workers other`: both programs run on CPU 0 and the kernel's
//! workers, such as a loop device's, on CPU 1, `--workers same`: all on CPU 0 (root; changes the machine's
//! `workqueue/cpumask`, and back at the end). Without it the scheduler places them, and at small depths a run has one of two speeds.

use iotop_plus::bench::io_spec::AccessOrder;
use iotop_plus::bench::plan::BenchPlan;
use iotop_plus::bench::run_progress::RunProgress;
use iotop_plus::bench::session::{BenchSession, RunError};
use iotop_plus::bench::workloads::{self, io};
use iotop_plus::root::Root;
use serde_json::Value;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FIO_BEST: &str = "--ioengine=io_uring --registerfiles --fixedbufs --iodepth_batch_complete_min=1";

#[derive(Clone, Copy)]
enum Contender {
    Ours,
    Fio,
    FioNoClock,
}

const CONTENDERS: [(Contender, &str); 3] =
    [(Contender::Ours, "iotop-plus"), (Contender::Fio, "fio, best"), (Contender::FioNoClock, "fio, gtod_reduce")];

/// Figures of one run.
#[derive(Clone, Copy, Default)]
struct Figures {
    iops: f64,
    cpu_ns: f64,
    /// The part of `cpu_ns` that was spent in the kernel.
    kernel_ns: f64,
    machine_ns: f64,
    p50_us: f64,
    p99_us: f64,
}

struct Options {
    dir: PathBuf,
    pairs: usize,
    seconds: u64,
    patterns: Vec<String>,
    mib: u64,
    blocks: Vec<u32>,
    depths: Vec<u32>,
    rate: u64,
    batch: Option<(u32, u32)>,
    loop_tmpfs: bool,
    best_only: bool,
    /// The CPU of the kernel's workers; both programs then run on CPU 0.
    worker_cpu: Option<u32>,
}

fn parse_options() -> Option<Options> {
    let mut o = Options {
        dir: PathBuf::new(),
        pairs: 5,
        seconds: 5,
        patterns: ["randread", "randwrite", "randrw"].map(String::from).to_vec(),
        mib: 1024,
        blocks: vec![4096],
        depths: vec![64],
        rate: 0,
        batch: None,
        loop_tmpfs: false,
        best_only: false,
        worker_cpu: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" | "--test" => {}
            "--pairs" => o.pairs = args.next()?.parse().ok()?,
            "--seconds" => o.seconds = args.next()?.parse().ok()?,
            "--batch" => {
                let text = args.next()?;
                let (submit, complete) = text.split_once('/')?;
                o.batch = Some((submit.parse().ok()?, complete.parse().ok()?));
            }
            "--rate" => o.rate = args.next()?.parse().ok()?,
            "--blocks" => o.blocks = args.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?,
            "--depths" => o.depths = args.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?,
            "--size" => o.mib = args.next()?.parse().ok()?,
            "--patterns" => o.patterns = args.next()?.split(',').map(String::from).collect(),
            "--loop-tmpfs" => o.loop_tmpfs = true,
            "--best-only" => o.best_only = true,
            "--workers" => {
                o.worker_cpu = match args.next()?.as_str() {
                    "same" => Some(0),
                    "other" => Some(1),
                    _ => return None,
                }
            }
            dir if !dir.starts_with('-') => o.dir = dir.into(),
            _ => return None,
        }
    }
    (o.loop_tmpfs || o.dir.is_dir()).then_some(o)
}

/// ext4 on a loop device on a file in tmpfs, removed when this is dropped.
struct LoopTmpfs {
    base: PathBuf,
    device: String,
}

fn run_command(line: &[&str]) -> String {
    let out = Command::new(line[0]).args(&line[1..]).output().expect("command not found");
    assert!(out.status.success(), "{line:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

impl LoopTmpfs {
    fn create() -> Self {
        let base = std::env::temp_dir().join(format!("versus-fio-{}", std::process::id()));
        let (ram, mnt) = (base.join("ram"), base.join("mnt"));
        std::fs::create_dir_all(&ram).expect("directory");
        std::fs::create_dir_all(&mnt).expect("directory");
        let s = |p: &Path| p.to_str().expect("UTF-8").to_owned();
        run_command(&["mount", "-t", "tmpfs", "-o", "size=6g", "tmpfs", &s(&ram)]);
        let image = ram.join("disk.img");
        run_command(&["truncate", "-s", "5G", &s(&image)]);
        let device = run_command(&["losetup", "-f", "--show", &s(&image)]);
        run_command(&["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device]);
        run_command(&["mount", &device, &s(&mnt)]);
        Self { base, device }
    }
}

impl Drop for LoopTmpfs {
    fn drop(&mut self) {
        for line in [
            vec!["umount", self.base.join("mnt").to_str().unwrap_or_default()],
            vec!["losetup", "-d", &self.device],
            vec!["umount", self.base.join("ram").to_str().unwrap_or_default()],
        ] {
            // io_uring releases its file a moment after the ring was closed.
            for _ in 0..50 {
                if Command::new(line[0]).args(&line[1..]).output().is_ok_and(|o| o.status.success()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        // Removes empty directories only: what is still mounted stays.
        for dir in ["mnt", "ram", ""] {
            let _ = std::fs::remove_dir(self.base.join(dir));
        }
    }
}

/// CPUs of the kernel's unbound workers (Documentation/core-api/workqueue.rst).
const WORKER_CPUS: &str = "/sys/devices/virtual/workqueue/cpumask";

/// This process and its children on CPU 0, the kernel's workers on one CPU; those go back when this is dropped.
struct PinnedCpus {
    worker_cpus_before: String,
}

impl PinnedCpus {
    fn set(worker_cpu: u32) -> Self {
        let worker_cpus_before = std::fs::read_to_string(WORKER_CPUS).expect(WORKER_CPUS);
        std::fs::write(WORKER_CPUS, format!("{:x}", 1 << worker_cpu)).expect(WORKER_CPUS);
        let mut cpus = rustix::thread::CpuSet::new();
        cpus.set(0);
        rustix::thread::sched_setaffinity(None, &cpus).expect("sched_setaffinity");
        Self { worker_cpus_before }
    }
}

impl Drop for PinnedCpus {
    fn drop(&mut self) {
        if let Err(err) = std::fs::write(WORKER_CPUS, self.worker_cpus_before.trim()) {
            println!("{WORKER_CPUS} was {}: {err}", self.worker_cpus_before.trim());
        }
    }
}

/// CPU time of children that ended, ns (`cutime` and `cstime` of proc_pid_stat(5), 10 ms steps).
fn children_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 1e7
}

/// CPU time of the whole machine since boot, ns (10 ms steps).
fn machine_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let v: Vec<f64> =
        text.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|x| x.parse().ok()).collect();
    (v.iter().take(8).sum::<f64>() - v.get(3).unwrap_or(&0.0) - v.get(4).unwrap_or(&0.0)) * 1e7
}

/// CPU time of the machine for each operation of a run, ns; `before` is that of the machine and of ended children.
fn machine_ns_per_io(plan: &BenchPlan, f: &Figures, before: (f64, f64)) -> f64 {
    let ios = f.iops * (plan.time_ms + plan.ramp_ms) as f64 / 1e3;
    let children = children_ns() - before.1;
    // What fio used beyond its job: to start, to lay out its memory, to report.
    let around = if children > 0.0 { (children - f.cpu_ns * ios).max(0.0) } else { 0.0 };
    (machine_ns() - before.0 - around) / ios
}

fn run_ours(
    session: &mut BenchSession,
    plan: &BenchPlan,
    fd: std::os::fd::BorrowedFd<'_>,
    batch: Option<(u32, u32)>,
) -> Result<Figures, RunError> {
    let order = if plan.profile.starts_with("rand") { AccessOrder::Random } else { AccessOrder::Sequential };
    let mut specs = io::worker_specs(plan, order, plan.block, plan.read_pct);
    for spec in &mut specs {
        (spec.submit_max, spec.complete_min) = batch.unwrap_or((spec.submit_max, spec.complete_min));
    }
    let part = session.measure("run", fd, &specs)?;
    let lat = part.combined_lat();
    let us = |p| lat.percentile(p).unwrap_or(0) as f64 / 1e3;
    let (cpu_ns, kernel_ns) = part.cpu.map_or((0.0, 0.0), |c| {
        let both = c.user_pct + c.system_pct;
        (c.ns_per_io, if both > 0.0 { c.ns_per_io * c.system_pct / both } else { 0.0 })
    });
    Ok(Figures { iops: part.iops(), cpu_ns, kernel_ns, p50_us: us(50.0), p99_us: us(99.0), machine_ns: 0.0 })
}

fn run_fio(plan: &BenchPlan, fd: i32, no_clock: bool) -> Figures {
    let out = Command::new("fio")
        .arg("--name=b")
        .arg(format!("--filename=/proc/{}/fd/{fd}", std::process::id()))
        .arg(format!("--size={}", plan.size))
        .arg(format!("--rw={}", plan.profile))
        .arg(format!("--runtime={}ms", plan.time_ms))
        .arg(format!("--ramp_time={}ms", plan.ramp_ms))
        .arg(format!("--bs={}", plan.block))
        .arg(format!("--iodepth={}", plan.depth))
        .arg(format!("--iodepth_batch_submit={}", (plan.depth / 4).max(1)))
        .arg(format!("--iodepth_batch_complete_max={}", plan.depth))
        .args(["--direct=1", "--time_based", "--randrepeat=1", "--overwrite=1", "--output-format=json"])
        .args(["--lat_percentiles=1", "--rwmixread=50"])
        .args(FIO_BEST.split_whitespace())
        .args((plan.rate_iops > 0).then(|| format!("--rate_iops={}", plan.rate_iops)))
        .args(no_clock.then_some("--gtod_reduce=1"))
        .output()
        .expect("fio is needed");
    let text = String::from_utf8_lossy(&out.stdout);
    let at = text.find('{').unwrap_or_else(|| panic!("fio: {text}{}", String::from_utf8_lossy(&out.stderr)));
    let all: Value = serde_json::from_str(&text[at..]).expect("fio's JSON");
    let job = &all["jobs"][0];
    let n = |v: &Value| v.as_f64().unwrap_or(0.0);
    let ios = n(&job["read"]["total_ios"]) + n(&job["write"]["total_ios"]);
    let ns_per_io = |pct: f64| pct / 100.0 * n(&job["job_runtime"]) * 1e6 / ios.max(1.0);
    let side = if n(&job["read"]["total_ios"]) > 0.0 { "read" } else { "write" };
    let percentile = |p: &str| n(&job[side]["lat_ns"]["percentile"][p]) / 1e3;
    Figures {
        iops: n(&job["read"]["iops"]) + n(&job["write"]["iops"]),
        cpu_ns: ns_per_io(n(&job["usr_cpu"]) + n(&job["sys_cpu"])),
        kernel_ns: ns_per_io(n(&job["sys_cpu"])),
        machine_ns: 0.0,
        p50_us: percentile("50.000000"),
        p99_us: percentile("99.000000"),
    }
}

fn median(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    let mut v: Vec<f64> = runs.iter().map(of).collect();
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(0.0)
}

/// Median and range over the rounds of the ratio within a round.
fn ratio(a: &[Figures], b: &[Figures], of: impl Fn(&Figures) -> f64) -> String {
    let mut v: Vec<f64> = a.iter().zip(b).map(|(x, y)| of(x) / of(y).max(1e-9)).collect();
    v.sort_by(f64::total_cmp);
    let at = |n: usize| v.get(n).copied().unwrap_or(0.0);
    format!("{:.3} ({:.3} to {:.3})", at(v.len() / 2), at(0), at(v.len().saturating_sub(1)))
}

fn print_table(pattern: &str, runs: &[Vec<Figures>; 3]) {
    println!("\n{pattern}, medians of {} rounds:\n", runs[0].len());
    println!("| | IOPS | CPU ns per I/O | of it in the kernel | machine ns per I/O | lat p50 µs | lat p99 µs |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for ((_, name), r) in CONTENDERS.iter().zip(runs).filter(|(_, r)| !r.is_empty()) {
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            median(r, |f| f.iops),
            median(r, |f| f.cpu_ns),
            median(r, |f| f.kernel_ns),
            median(r, |f| f.machine_ns),
            median(r, |f| f.p50_us),
            median(r, |f| f.p99_us)
        );
    }
    let others = [(1, "fio's best"), (2, "fio without latencies")];
    for (other, name) in others.into_iter().filter(|(other, _)| !runs[*other].is_empty()) {
        println!(
            "ours : {name}: IOPS {}, p50 {}, p99 {}, CPU per I/O {}, machine per I/O {}",
            ratio(&runs[0], &runs[other], |f| f.iops),
            ratio(&runs[0], &runs[other], |f| f.p50_us),
            ratio(&runs[0], &runs[other], |f| f.p99_us),
            ratio(&runs[0], &runs[other], |f| f.cpu_ns),
            ratio(&runs[0], &runs[other], |f| f.machine_ns)
        );
    }
}

/// Reads progress four times a second, as the real program does, until `over`.
fn read_progress(watch: Arc<RunProgress>, over: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            std::hint::black_box(watch.snapshot(iotop_plus::bench::engine::monotonic_ns()));
            std::thread::sleep(Duration::from_millis(250));
        }
    })
}

fn run(o: &Options) -> Result<(), RunError> {
    let plan = BenchPlan {
        directory: o.dir.clone(),
        size: o.mib << 20,
        ramp_ms: 500,
        time_ms: o.seconds * 1000,
        rate_iops: o.rate,
        ..workloads::find_workload("randrw").expect("randrw").defaults()
    };
    let watch = Arc::new(RunProgress::default());
    let unpaced = BenchPlan { rate_iops: 0, ..plan.clone() };
    let mut session = BenchSession::new(unpaced, Root::live(), watch.clone(), Arc::new(Vec::new));
    let place = session.open_target()?;
    let file = session.lay_out_file(&place, plan.size)?;
    let over = Arc::new(AtomicBool::new(false));
    let progress_reader = read_progress(watch, over.clone());
    let sizes = o.blocks.iter().flat_map(|block| o.depths.iter().map(|depth| (*block, *depth)));
    // What the layout left to be written would slow down the first run, which is always ours.
    rustix::fs::syncfs(file.io_fd()).expect("syncfs");
    let reads = BenchPlan { profile: "randread".into(), read_pct: 100, ..plan.clone() };
    run_ours(&mut session, &reads, file.io_fd(), o.batch)?;
    let cases: Vec<_> = sizes.flat_map(|size| o.patterns.iter().map(move |pattern| (pattern, size))).collect();
    for (pattern, (block, depth)) in cases {
        let read_pct = match pattern.as_str() {
            "randread" | "read" => 100,
            "randwrite" | "write" => 0,
            _ => 50,
        };
        let plan = BenchPlan { profile: pattern.clone(), read_pct, block, depth, ..plan.clone() };
        let mut runs: [Vec<Figures>; 3] = Default::default();
        for round in 0..o.pairs {
            let mut order = if o.best_only { vec![0, 1] } else { vec![0, 1, 2] };
            if round % 2 == 1 {
                order.reverse();
            }
            for i in order {
                let before = (machine_ns(), children_ns());
                let mut f = match CONTENDERS[i].0 {
                    Contender::Ours => run_ours(&mut session, &plan, file.io_fd(), o.batch)?,
                    Contender::Fio => run_fio(&plan, file.io_fd().as_raw_fd(), false),
                    Contender::FioNoClock => run_fio(&plan, file.io_fd().as_raw_fd(), true),
                };
                f.machine_ns = machine_ns_per_io(&plan, &f, before);
                eprintln!(
                    "{pattern} {}: {:.0} IOPS, {:.0} ns, machine {:.0} ns per I/O",
                    CONTENDERS[i].1, f.iops, f.cpu_ns, f.machine_ns
                );
                runs[i].push(f);
            }
        }
        print_table(&format!("{pattern}, {block} bytes, depth {depth}"), &runs);
    }
    over.store(true, Ordering::Relaxed);
    let _ = progress_reader.join();
    Ok(())
}

fn main() {
    let Some(mut o) = parse_options() else {
        // `cargo test --benches` and a bare `cargo bench` get here: there is nothing to measure.
        println!(
            "versus_fio: name a directory: cargo bench --bench versus_fio -- DIR [--pairs N] [--seconds S] [--loop-tmpfs]"
        );
        return;
    };
    let pinned = o.worker_cpu.map(PinnedCpus::set);
    let loop_tmpfs = o.loop_tmpfs.then(LoopTmpfs::create);
    if let Some(loop_tmpfs) = &loop_tmpfs {
        o.dir = loop_tmpfs.base.join("mnt");
    }
    if let Err(stop) = run(&o) {
        println!("{stop:?}");
    }
    drop(loop_tmpfs);
    drop(pinned);
}
