//! Whether the program stays as small as it began: `cargo bench --bench soak -- --minutes 48`, as root. With a sample every
//! 0.1 s, 48 minutes have as many as eight hours.
//!
//! Beside it processes, mounts, loop devices, control groups and kernel messages come and go. Every five seconds it reads
//! resident memory, descriptors, threads, and kernel memory of BPF maps (fdinfo, `memlock`) of the program and its helpers,
//! and at the end prints a graph of each. It fails if a figure's median in the last quarter exceeds that of the second one
//! by a tenth and more than noise.

#[path = "../pty_harness/mod.rs"]
mod pty_harness;

use pty_harness::{Terminal, TerminalOptions};
use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const READ_INTERVAL: Duration = Duration::from_secs(5);
const KEYS: &[&str] = &["1", "2", "3", "4", "5", "t", "f", "F", "3\r", "\x1b", "2\r", "\x1b"];
/// Name, unit, and the growth that is no leak.
const FIGURES: [(&str, &str, f64); 4] =
    [("resident memory", "KiB", 1024.0), ("descriptors", "", 10.0), ("threads", "", 4.0), ("BPF maps", "KiB", 512.0)];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let minutes = args.iter().skip_while(|arg| *arg != "--minutes").nth(1).and_then(|n| n.parse().ok()).unwrap_or(1.0);
    if !rustix::process::geteuid().is_root() {
        println!("soak: needs root to mount and to make devices");
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let stop = AtomicBool::new(false);
    let rows = std::thread::scope(|scope| {
        for churn in [churn_processes, churn_mounts, churn_devices, churn_groups, churn_kernel_log] {
            let (path, stop) = (dir.path(), &stop);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(Relaxed) {
                    churn(path, round);
                    round += 1;
                }
            });
        }
        let rows = watch(Duration::from_secs_f64(minutes * 60.0));
        stop.store(true, Relaxed);
        rows
    });
    report(&rows)
}

fn watch(length: Duration) -> Vec<[f64; 4]> {
    let mut t = Terminal::start(TerminalOptions { args: vec!["-d", "0.1"], size: (160, 45), ..Default::default() });
    t.wait_for_text("q quit");
    let (start, mut rows) = (Instant::now(), Vec::new());
    for key in KEYS.iter().cycle() {
        if start.elapsed() >= length {
            break;
        }
        t.send(key);
        std::thread::sleep(READ_INTERVAL);
        rows.push(read_figures(t.pid()));
    }
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    rows
}

/// The figures of a process and its children.
fn read_figures(pid: u32) -> [f64; 4] {
    let mut sums = [0.0; 4];
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for process in children.split_whitespace().map(str::to_owned).chain([pid.to_string()]) {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let field = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default()
        };
        let infos = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        let infos: Vec<String> = infos.filter_map(|e| fs::read_to_string(e.path()).ok()).collect();
        let memlock = |info: &String| info.lines().find_map(|l| l.strip_prefix("memlock:")?.trim().parse::<f64>().ok());
        let of_maps = infos.iter().filter(|info| info.contains("map_type")).filter_map(memlock).sum::<f64>();
        let all = [field("VmRSS:"), infos.len() as f64, field("Threads:"), of_maps / 1024.0];
        sums.iter_mut().zip(all).for_each(|(sum, n)| *sum += n);
    }
    sums
}

fn report(rows: &[[f64; 4]]) -> ExitCode {
    let mut grew = false;
    println!("{} readings, one each {} s; a column is the median of an eightieth", rows.len(), READ_INTERVAL.as_secs());
    for (i, (name, unit, noise)) in FIGURES.into_iter().enumerate() {
        let all: Vec<f64> = rows.iter().map(|row| row[i]).collect();
        let quarter = all.len() / 4;
        let (early, late) = (median(&all[quarter..2 * quarter]), median(&all[3 * quarter..]));
        let has_grown = late > early * 1.1 && late - early > noise;
        grew |= has_grown;
        let verdict = if has_grown { "GREW" } else { "flat" };
        println!("{name:<16} {} second quarter {early:.0}, last {late:.0} {unit}: {verdict}", graph(&all));
    }
    if grew { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// Eighty bars, from 0 to the maximum.
fn graph(all: &[f64]) -> String {
    let max = all.iter().copied().fold(1.0, f64::max);
    let chunks = all.chunks(all.len().div_ceil(80).max(1));
    chunks.map(|chunk| ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(median(chunk) / max * 7.0).round() as usize]).collect()
}

fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stderr(Stdio::null()).output();
    out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
}

fn churn_processes(_: &std::path::Path, round: u32) {
    let sleeps: Vec<_> =
        (0..20).filter_map(|_| Command::new("sleep").arg(format!("0.{}", round % 9)).spawn().ok()).collect();
    sleeps.into_iter().for_each(|mut sleep| drop(sleep.wait()));
}

fn churn_mounts(dir: &std::path::Path, round: u32) {
    let at = dir.join(format!("mount{}", round % 7));
    let _ = fs::create_dir(&at);
    let at = at.to_str().expect("a path");
    run("mount", &["-t", "tmpfs", "none", at]);
    std::thread::sleep(Duration::from_millis(150));
    run("umount", &[at]);
}

fn churn_devices(dir: &std::path::Path, round: u32) {
    let file = dir.join(format!("disk{}", round % 3));
    let _ = fs::File::create(&file).and_then(|file| file.set_len(4 << 20));
    let device = run("losetup", &["-f", "--show", file.to_str().expect("a path")]);
    run("dd", &[&format!("if={device}"), "of=/dev/null", "bs=64k", "iflag=direct"]);
    std::thread::sleep(Duration::from_millis(300));
    run("losetup", &["-d", &device]);
}

fn churn_groups(_: &std::path::Path, round: u32) {
    for parent in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"] {
        let group = format!("{parent}/iotop-plus-soak-{}", round % 50);
        if fs::create_dir(&group).is_ok() {
            if let Ok(mut sleep) = Command::new("sleep").arg("0.2").spawn() {
                let _ = fs::write(format!("{group}/cgroup.procs"), sleep.id().to_string());
                let _ = sleep.wait();
            }
            let _ = fs::remove_dir(&group);
        }
    }
}

fn churn_kernel_log(_: &std::path::Path, round: u32) {
    let _ = fs::write("/dev/kmsg", format!("<4>iotop-plus soak, message {round} of device sd{}", round % 26));
    std::thread::sleep(Duration::from_millis(100));
}
