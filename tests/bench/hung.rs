//! How the program responds beside hung file systems: `cargo bench --bench hung -- --runs 30`, as root; 12 s a run. A frozen
//! ext4 with a writer in state D, a FUSE mount whose server does not reply, a task stuck in a page fault and one in exec,
//! and as many children stuck as the program may have.
//!
//! Prints the distribution of the time from a key to the screen, between two frames, and from `q` to the end of the
//! program, against the limits that the README promises. Keys come as a person types them, 130 to 390 ms apart. A screen
//! that stays the same is not drawn again, so the times between frames are those of the Memory view while the amount of
//! dirty pages changes all the time. A run in which the program does not answer for 30 s ends the benchmark with the
//! screen. ^C ends it after the run under way.

#[path = "../hung_fs/mod.rs"]
mod hung_fs;
mod interrupt;
#[path = "../pty_harness/mod.rs"]
mod pty_harness;

use clap::Parser;
use hung_fs::{DeadFuse, FAULT_ENV, FrozenFs, StuckProcesses, missing_requirement};
use pty_harness::{Terminal, TerminalOptions};
use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const LAB_ENV: &str = "IOTOP_PLUS_HUNG_BENCH";
const KEYS_PER_RUN: usize = 12;
const FRAMES_PER_RUN: usize = 30;
/// Pauses between keys are spread evenly over this range, ms.
const KEY_PAUSES_MS: (u64, u64) = (130, 390);

/// Measures keys, frames and quitting beside hung file systems.
#[derive(Parser)]
struct Args {
    /// Runs of the program; each gives one time of `q`.
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if let Some(file) = std::env::var_os(FAULT_ENV) {
        hung_fs::hang_in_page_fault(Path::new(&file));
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    interrupt::catch();
    if let Some(lab) = std::env::var_os(LAB_ENV) {
        return measure(&PathBuf::from(lab), args.runs.max(1));
    }
    if let Some(missing) = missing_requirement(&["unshare", "mount", "fsfreeze", "mkfs.ext4"]) {
        println!("hung: {missing}");
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().expect("this program"));
    command.args(["--runs", &args.runs.to_string()]);
    let status = command.env(LAB_ENV, dir.path()).status().expect("unshare");
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(lab: &Path, runs: usize) -> ExitCode {
    let mut frozen = FrozenFs::mount(lab).expect("a frozen file system");
    let _victims = StuckProcesses::start(&mut frozen);
    let mut times = Times::default();
    std::thread::scope(|scope| {
        let _end = interrupt::EndOnDrop;
        scope.spawn(|| change_dirty_pages(lab));
        for run in 1..=runs {
            if interrupt::is_over() {
                break;
            }
            let start = Instant::now();
            run_once(lab, &frozen, &mut times);
            eprintln!("run {run} of {runs}: {:.1} s", start.elapsed().as_secs_f64());
        }
    });
    if times.quits.is_empty() {
        return ExitCode::FAILURE;
    }
    println!("\n{} runs of {KEYS_PER_RUN} keys and {FRAMES_PER_RUN} frames, ms:\n", times.quits.len());
    println!("| | n | p50 | p90 | p99 | max | limit |\n|---|--:|--:|--:|--:|--:|---|");
    let all_met = [
        print_row("from a key to the screen", times.keys, &[(99, 100)]),
        print_row("between frames, one sample each 100 ms", times.gaps, &[(99, 250), (100, 1000)]),
        print_row("from `q` to the end of the program", times.quits, &[(100, 500)]),
    ];
    if all_met.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Default)]
struct Times {
    keys: Vec<Duration>,
    gaps: Vec<Duration>,
    quits: Vec<Duration>,
}

/// Appends to a file and empties it, so that each sample finds another amount of dirty pages.
fn change_dirty_pages(lab: &Path) {
    let mut file = fs::File::create(lab.join("dirty")).expect("a file");
    for round in 1.. {
        if interrupt::is_over() {
            return;
        }
        file.write_all(&[1; 256 * 1024]).expect("room on the disk of the temporary directory");
        if round % 64 == 0 {
            file.set_len(0).and_then(|()| file.rewind()).expect("an empty file");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run_once(lab: &Path, frozen: &FrozenFs, times: &mut Times) {
    // One for each run: its end ends the children that wait for it, which would otherwise pile up.
    let dir = tempfile::tempdir_in(lab).expect("a temporary directory");
    let dead = DeadFuse::mount(dir.path()).expect("a dead mount");
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
        std::thread::sleep(key_pause(times.keys.len()));
        let (key, text) = [("2", "recent past"), ("3", "READ/s"), ("4", "Pressure")][i % 3];
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

/// The pause before key `n`: steps of the golden ratio, which fill the range evenly and are the same in each benchmark.
fn key_pause(n: usize) -> Duration {
    let (least, most) = KEY_PAUSES_MS;
    Duration::from_millis(least + (n as f64 * 0.618_034).fract().mul_add((most - least) as f64, 0.5) as u64)
}

/// Prints a row of the Markdown table; whether each percentile of `limits` is within its milliseconds.
fn print_row(name: &str, mut all: Vec<Duration>, limits: &[(usize, u64)]) -> bool {
    all.sort_unstable();
    let n = all.len();
    let at = |percent: usize| all[(n * percent).div_ceil(100).clamp(1, n) - 1];
    let is_met = |&(percent, ms): &(usize, u64)| at(percent) <= Duration::from_millis(ms);
    let verdict = |limit: &(usize, u64)| {
        let which = if limit.0 == 100 { "max".into() } else { format!("p{}", limit.0) };
        format!("{which} {}: {}", limit.1, if is_met(limit) { "met" } else { "MISSED" })
    };
    let [p50, p90, p99, max] = [50, 90, 99, 100].map(|percent| at(percent).as_secs_f64() * 1e3);
    let verdicts: Vec<String> = limits.iter().map(verdict).collect();
    println!("| {name} | {n} | {p50:.1} | {p90:.1} | {p99:.1} | {max:.1} | {} |", verdicts.join(", "));
    limits.iter().all(is_met)
}
