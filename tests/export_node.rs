//! `export` beside node_exporter, whose figures it must agree with, and beside file systems that hang.
//!
//! Where Debian's package `prometheus-node-exporter`, root or FUSE is missing, what needs it is skipped by name.

mod export_harness;
mod hung_fs;
// Used by `hung_fs`.
mod pty_harness;

use export_harness::{PROGRAM, Running, TIMEOUT, free_port, get, is_installed, start, wait_for, wait_for_metrics};
use hung_fs::{DeadFuse, FrozenFs, missing_requirement, process_state, run_in_mount_namespace};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LAB_ENV: &str = "IOTOP_PLUS_EXPORT_LAB";

/// Devices' metrics: ours, without prefix and label, and node_exporter's.
const OF_DEVICES: [(&str, &str); 16] = [
    ("device_read_bytes_total", "node_disk_read_bytes_total"),
    ("device_written_bytes_total", "node_disk_written_bytes_total"),
    ("device_reads_completed_total", "node_disk_reads_completed_total"),
    ("device_writes_completed_total", "node_disk_writes_completed_total"),
    ("device_discards_completed_total", "node_disk_discards_completed_total"),
    ("device_flushes_completed_total", "node_disk_flush_requests_total"),
    ("device_reads_merged_total", "node_disk_reads_merged_total"),
    ("device_writes_merged_total", "node_disk_writes_merged_total"),
    ("device_discards_merged_total", "node_disk_discards_merged_total"),
    ("device_read_seconds_total", "node_disk_read_time_seconds_total"),
    ("device_write_seconds_total", "node_disk_write_time_seconds_total"),
    ("device_discard_seconds_total", "node_disk_discard_time_seconds_total"),
    ("device_flush_seconds_total", "node_disk_flush_requests_time_seconds_total"),
    ("device_busy_seconds_total", "node_disk_io_time_seconds_total"),
    ("device_queue_seconds_total", "node_disk_io_time_weighted_seconds_total"),
    ("device_discarded_bytes_total", "node_disk_discarded_sectors_total"),
];

/// The machine's metrics, and what node_exporter's are multiplied with.
const OF_MACHINE: [(&str, &str, f64); 14] = [
    ("pressure_waiting_seconds_total{resource=\"cpu\"}", "node_pressure_cpu_waiting_seconds_total", 1.0),
    ("pressure_waiting_seconds_total{resource=\"io\"}", "node_pressure_io_waiting_seconds_total", 1.0),
    ("pressure_waiting_seconds_total{resource=\"memory\"}", "node_pressure_memory_waiting_seconds_total", 1.0),
    ("pressure_stalled_seconds_total{resource=\"io\"}", "node_pressure_io_stalled_seconds_total", 1.0),
    ("pressure_stalled_seconds_total{resource=\"memory\"}", "node_pressure_memory_stalled_seconds_total", 1.0),
    ("dirtied_bytes_total", "node_vmstat_nr_dirtied", 4096.0),
    ("written_back_bytes_total", "node_vmstat_nr_written", 4096.0),
    ("paged_in_bytes_total", "node_vmstat_pgpgin", 1024.0),
    ("paged_out_bytes_total", "node_vmstat_pgpgout", 1024.0),
    ("swapped_in_bytes_total", "node_vmstat_pswpin", 4096.0),
    ("swapped_out_bytes_total", "node_vmstat_pswpout", 4096.0),
    ("major_faults_total", "node_vmstat_pgmajfault", 1.0),
    ("memory_total_bytes", "node_memory_MemTotal_bytes", 1.0),
    ("swap_total_bytes", "node_memory_SwapTotal_bytes", 1.0),
];

/// The samples of an answer by name and labels.
fn samples(answer: &str) -> BTreeMap<String, f64> {
    let lines = answer.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).filter_map(|(n, v)| Some((n.to_owned(), v.parse().ok()?))).collect()
}

/// Writes and syncs a file until it is dropped.
struct WriteLoad(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl WriteLoad {
    fn start(dir: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (path, flag) = (dir.join("load"), is_over.clone());
        let write = move || {
            while !flag.load(Relaxed) {
                let mut file = std::fs::File::create(&path).unwrap();
                file.write_all(&vec![7; 4 << 20]).unwrap();
                file.sync_all().unwrap();
            }
        };
        Self(is_over, Some(std::thread::spawn(write)))
    }
}

impl Drop for WriteLoad {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

fn start_node_exporter(port: u16) -> Running {
    start(Command::new("prometheus-node-exporter").args([
        &*format!("--web.listen-address=127.0.0.1:{port}"),
        "--collector.disable-defaults",
        "--collector.diskstats",
        "--collector.diskstats.device-exclude=^$",
        "--collector.pressure",
        "--collector.meminfo",
        "--collector.vmstat",
        "--collector.vmstat.fields=.*",
    ]))
}

fn now_secs() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Waits for a sample that was read after this moment.
fn newer_sample(port: u16, after_secs: f64) -> BTreeMap<String, f64> {
    let is_new = |answer: &String| {
        samples(answer).get("iotop_plus_sample_timestamp_seconds").is_some_and(|time| *time > after_secs)
    };
    samples(&wait_for("a newer sample", || get(port, "/metrics").ok().filter(is_new)))
}

/// Compares our figures with node_exporter's of before and after them: each lies between the two, give or take 1 %.
fn compare(before: &BTreeMap<String, f64>, ours: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> usize {
    let mut pairs: Vec<(String, String, f64)> =
        OF_MACHINE.iter().map(|(our, node, unit)| (format!("iotop_plus_{our}"), (*node).to_owned(), *unit)).collect();
    for series in ours.keys() {
        let named = OF_DEVICES.iter().find_map(|(our, node)| {
            let labels = series.strip_prefix("iotop_plus_")?.strip_prefix(our)?;
            let unit = if node.ends_with("sectors_total") { 512.0 } else { 1.0 };
            Some((series.clone(), format!("{node}{labels}"), unit))
        });
        pairs.extend(named);
    }
    let mut compared = 0;
    for (our, node, unit) in pairs {
        // A device may come or go meanwhile, and a kernel may not count something.
        let (Some(our_value), Some(low), Some(high)) = (ours.get(&our), before.get(&node), after.get(&node)) else {
            continue;
        };
        let (low, high) = (low * unit * 0.99, high * unit * 1.01);
        assert!((low - 0.01..=high + 0.01).contains(our_value), "{our} {our_value}, {node} {low} to {high}");
        compared += usize::from(*our_value > 0.0);
    }
    compared
}

#[test]
fn figures_agree_with_node_exporter_under_load() {
    if !is_installed("prometheus-node-exporter", "figures_agree_with_node_exporter_under_load") {
        return;
    }
    let (port, node, dir) = (free_port(), free_port(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let listen = format!("127.0.0.1:{port}");
    let _exporter = start(Command::new(PROGRAM).args(["export", "--listen", &listen, "-d", "0.3", "--all"]));
    let _node_exporter = start_node_exporter(node);
    let _load = WriteLoad::start(dir.path());
    wait_for_metrics(port);
    let node_samples = || samples(&wait_for_metrics(node));
    let first = node_samples();
    for _ in 0..3 {
        let before = node_samples();
        let ours = newer_sample(port, now_secs());
        let after = node_samples();
        let compared = compare(&before, &ours, &after);
        println!("{compared} series agree with node_exporter within 1 %");
        assert!(compared >= 20, "{compared} series were compared: {ours:?}");
    }
    let written = "node_vmstat_pgpgout";
    assert!(node_samples()[written] > first[written], "there was no load");
}

#[test]
fn metrics_are_served_while_file_systems_hang() {
    let test = "metrics_are_served_while_file_systems_hang";
    if let Some(missing) = missing_requirement(&["unshare", "mount", "fsfreeze", "mkfs.ext4"]) {
        eprintln!("SKIPPED {test}: {missing}");
        return;
    }
    run_in_mount_namespace(test, LAB_ENV);
}

#[test]
#[ignore = "run by metrics_are_served_while_file_systems_hang in a mount namespace of its own"]
fn in_mount_namespace() {
    let lab = PathBuf::from(std::env::var(LAB_ENV).expect("set by metrics_are_served_while_file_systems_hang"));
    let made = FrozenFs::mount(&lab).and_then(|frozen| Ok((frozen, DeadFuse::mount(&lab)?)));
    let (frozen, _dead) = match made {
        Ok(made) => made,
        Err(why) => {
            eprintln!("SKIPPED {why}");
            return;
        }
    };
    let started = Instant::now();
    while process_state(frozen.writer_pid()).is_some_and(|state| state.0 != 'D') {
        assert!(started.elapsed() < TIMEOUT, "the writer does not block");
    }
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let _exporter = start(Command::new(PROGRAM).args(["export", "--listen", &listen, "-d", "0.5", "--all"]));
    wait_for_metrics(port);
    let mut times = Vec::new();
    for _ in 0..3 {
        // Samples go on, too.
        newer_sample(port, now_secs());
        for _ in 0..20 {
            let asked = Instant::now();
            assert!(get(port, "/metrics").unwrap().contains(" 200 OK"));
            times.push(asked.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    times.sort();
    let (half, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{} answers while file systems hang: p50 {half:?}, max {last:?}", times.len());
}
