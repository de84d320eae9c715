//! Cost of scanning all processes and of updating the table: `cargo bench --bench process`. For large figures run it
//! beside 5,000 or 20,000 sleeping processes (`cargo bench --bench peers -- --herd 5000` starts them).
//!
//! Before divan's wall-clock figures it prints CPU time per scan: with taskstats as root, by `schedstat` as another user.

use divan::Bencher;
use iotop_plus::collect::processes::ScanOptions;
use iotop_plus::model::process::{ProcessColumn, ProcessQuery, ProcessTable, ProcessUpdate, TaskChange, TaskKey};
use iotop_plus::root::Root;
use rustix::time::{ClockId, clock_gettime};

#[path = "../fixture/process_collector.rs"]
mod process_collector;
use process_collector::ProcessCollector;

fn main() {
    cpu_per_scan(ProcessCollector::new(&Root::live()));
    divan::main();
}

/// Prints the CPU time of this process per scan, including its reading threads, over several quiet scans.
fn cpu_per_scan(mut collector: ProcessCollector) {
    let scans = 10;
    let first_cpu = cpu_ms();
    let mut tasks = 0;
    let update = collector.scan(&ScanOptions::default());
    let first = cpu_ms() - first_cpu;
    // The names of many processes are read over several scans.
    for _ in 0..9 {
        let _ = collector.scan(&ScanOptions::default());
    }
    let before = cpu_ms();
    for _ in 0..scans {
        let update = collector.scan(&ScanOptions::default());
        tasks = update.ok().map_or(0, |u| u.total);
    }
    let each = (cpu_ms() - before) / scans as f64;
    let reported = update.ok().map_or(0, |u| u.changed.len());
    println!("{tasks} processes, first scan {first:.1} ms CPU ({reported} rows), then {each:.2} ms CPU per scan");
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
    bencher.bench_local(|| table.window(&query).rows.iter().map(|at| table.row(*at).comm().len()).sum::<usize>());
}

/// Selects and sorts the rows of a screen among 20,000 processes.
#[divan::bench(args = [ProcessColumn::Io, ProcessColumn::Rss, ProcessColumn::Command])]
fn window_of_20000(bencher: Bencher, sort_by: ProcessColumn) {
    let mut update = first_update();
    let (change, names) = (update.changed[0], update.names[0].1.clone());
    let task = |n: u32| TaskKey { pid: n, tid: n, starttime: 100 };
    update.changed = (1..=20_000)
        .map(|n| {
            let mut raw = change.raw;
            (raw.key, raw.rss_bytes) = (task(n), u64::from(n * 7919 % 20_011));
            TaskChange { raw, ..change }
        })
        .collect();
    update.names = (1..=20_000).map(|n| (task(n), names.clone())).collect();
    let mut table = ProcessTable::new();
    table.apply(&update);
    let query = ProcessQuery { sort_by, height: 40, ..ProcessQuery::default() };
    bencher.bench_local(|| table.window(&query));
}
