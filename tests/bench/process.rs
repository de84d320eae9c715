//! What one look at all processes costs, and what the table makes of it:
//! `cargo bench --bench process`. Run it beside `process-herd` of 5,000 or 20,000 for the large figures.
//!
//! Besides divan's wall-clock figures, `look_*` print the CPU time and, under
//! `strace -c -f`, the system calls of a single look.

use divan::Bencher;
use iotop_plus::collect::processes::{ProcessCollector, ScanOptions};
use iotop_plus::model::process::{ProcessQuery, ProcessTable, ProcessUpdate};
use iotop_plus::root::Root;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    for (name, collector) in [
        ("taskstats where allowed", ProcessCollector::new(&Root::live())),
        ("schedstat", ProcessCollector::without_taskstats(&Root::live())),
    ] {
        cpu_per_scan(name, collector);
    }
    divan::main();
}

/// CPU time of the process (our reading threads included) per look, over some quiet looks.
fn cpu_per_scan(name: &str, mut collector: ProcessCollector) {
    let looks = 10;
    let first_cpu = cpu_ms();
    let mut tasks = 0;
    let update = collector.scan(&ScanOptions::default());
    let first = cpu_ms() - first_cpu;
    // Names of a large herd come in over some looks.
    for _ in 0..9 {
        let _ = collector.scan(&ScanOptions::default());
    }
    let before = cpu_ms();
    for _ in 0..looks {
        let update = collector.scan(&ScanOptions::default());
        tasks = update.ok().map_or(0, |u| u.total);
    }
    let each = (cpu_ms() - before) / looks as f64;
    let told = update.ok().map_or(0, |u| u.changed.len());
    println!("{name}: {tasks} processes, first look {first:.1} ms CPU ({told} told), then {each:.2} ms CPU a look");
}

fn cpu_ms() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 * 1e3 + t.tv_nsec as f64 / 1e6
}

fn first_update() -> ProcessUpdate {
    ProcessCollector::new(&Root::live()).scan(&ScanOptions::default()).ok().expect("/proc is readable").clone()
}

#[divan::bench]
fn scan(bencher: Bencher) {
    let mut collector = ProcessCollector::new(&Root::live());
    let _ = collector.scan(&ScanOptions::default());
    bencher.bench_local(|| collector.scan(&ScanOptions::default()));
}

#[divan::bench]
fn scan_by_schedstat(bencher: Bencher) {
    let mut collector = ProcessCollector::without_taskstats(&Root::live());
    let _ = collector.scan(&ScanOptions::default());
    bencher.bench_local(|| collector.scan(&ScanOptions::default()));
}

#[divan::bench]
fn apply_all(bencher: Bencher) {
    let update = first_update();
    bencher.bench_local(|| {
        let mut table = ProcessTable::new();
        table.apply(&update);
        table
    });
}

#[divan::bench]
fn top_window(bencher: Bencher) {
    let mut table = ProcessTable::new();
    table.apply(&first_update());
    let query = ProcessQuery { height: 40, ..ProcessQuery::default() };
    bencher.bench_local(|| table.window(&query).rows.iter().map(|at| table.row(*at).comm.len()).sum::<usize>());
}
