//! How the program responds beside hung file systems: `cargo bench --bench hung`, as root. A frozen ext4 with a writer
//! in state D, a FUSE mount whose server does not reply, a task stuck in a page fault and one in exec, and as many
//! children stuck as the program may have.
//!
//! Prints the distribution of the time from a key to the screen, between two frames, and from `q` to the end of the
//! program, against the limits that the README promises.

#[path = "../hung_fs/mod.rs"]
mod hung_fs;
#[path = "../pty_harness/mod.rs"]
mod pty_harness;

use hung_fs::{DeadFuse, FAULT_ENV, FrozenFs, StuckProcesses, missing_requirement};
use pty_harness::{Terminal, TerminalOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const LAB_ENV: &str = "IOTOP_PLUS_HUNG_BENCH";
/// Runs of the program; each gives one time of `q`.
const RUNS: usize = 30;
const KEYS_PER_RUN: usize = 30;
const FRAMES_PER_RUN: usize = 50;

fn main() -> ExitCode {
    if let Some(file) = std::env::var_os(FAULT_ENV) {
        hung_fs::hang_in_page_fault(Path::new(&file));
        return ExitCode::SUCCESS;
    }
    if let Some(lab) = std::env::var_os(LAB_ENV) {
        return measure(&PathBuf::from(lab));
    }
    if let Some(missing) = missing_requirement(&["unshare", "mount", "fsfreeze", "mkfs.ext4"]) {
        println!("hung: {missing}");
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().expect("this program"));
    let status = command.env(LAB_ENV, dir.path()).status().expect("unshare");
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(lab: &Path) -> ExitCode {
    let mut frozen = FrozenFs::mount(lab).expect("a frozen file system");
    let dead = DeadFuse::mount(lab).expect("a dead mount");
    let _victims = StuckProcesses::start(&mut frozen);
    let mut times = Times::default();
    for _ in 0..RUNS {
        run_once(&frozen, &dead, &mut times);
    }
    println!("{:<42} {:>5} {:>9} {:>9} {:>9} {:>9}   limit", "ms", "n", "p50", "p90", "p99", "max");
    let all_met = [
        print_row("from a key to the screen", times.keys, 99, 100),
        print_row("between frames, one sample each 100 ms", times.gaps, 99, 250),
        print_row("from q to the end of the program", times.quits, 100, 500),
    ];
    if all_met.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Default)]
struct Times {
    keys: Vec<Duration>,
    gaps: Vec<Duration>,
    quits: Vec<Duration>,
}

fn run_once(frozen: &FrozenFs, dead: &DeadFuse, times: &mut Times) {
    let config = frozen.mount_point.join("config.toml");
    let args = vec![
        "-d",
        "0.1",
        "--config",
        config.to_str().expect("a path"),
        "--path",
        dead.mount_point.to_str().expect("a path"),
    ];
    let mut t = Terminal::start(TerminalOptions { args, size: (200, 50), ..Default::default() });
    t.wait_for_text("does not answer");
    for i in 0..iotop_plus::subprocess::budget::MAX_CHILDREN {
        t.send(format!(":path {}/{i}\r", dead.mount_point.display()));
    }
    t.wait_for_text("are stuck already");
    for i in 0..KEYS_PER_RUN {
        let (key, text) = [("4", "Pressure"), ("2", "recent past"), ("3", "READ/s")][i % 3];
        let start = Instant::now();
        t.send(key);
        t.wait_for_text(text);
        times.keys.push(start.elapsed());
    }
    t.take_frame_times();
    t.wait_for_output("frames", |seen| seen.frame_times.len() > FRAMES_PER_RUN);
    times.gaps.extend(t.take_frame_times().windows(2).map(|w| w[1] - w[0]));
    let start = Instant::now();
    t.send("q");
    t.wait_for_exit();
    times.quits.push(start.elapsed());
}

/// Prints the distribution; whether percentile `limited` is within `limit_ms`.
fn print_row(name: &str, mut all: Vec<Duration>, limited: usize, limit_ms: u64) -> bool {
    all.sort();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    let ms = |percent| at(percent).as_secs_f64() * 1e3;
    let is_met = at(limited) <= Duration::from_millis(limit_ms);
    let (which, verdict) =
        (if limited == 100 { "max".into() } else { format!("p{limited}") }, if is_met { "met" } else { "MISSED" });
    println!(
        "{name:<42} {:>5} {:>9.1} {:>9.1} {:>9.1} {:>9.1}   {which} {limit_ms}: {verdict}",
        all.len(),
        ms(50),
        ms(90),
        ms(99),
        ms(100)
    );
    is_met
}
