//! The program next to hung file systems: a frozen ext4 with a writer stuck on it, a FUSE mount whose server never
//! replies, where not even SIGKILL ends a waiting task, a task stuck in a page fault and one stuck in exec, all at the
//! same time.
//!
//! Needs root, loop devices, util-linux and e2fsprogs; otherwise the test prints that it is skipped. Everything happens in
//! its own mount namespace, so that no other `df` hangs. Time limits are loose; times are printed.

mod hung_fs;
mod pty_harness;

use hung_fs::{
    DeadFuse, FAULT_ENV, FrozenFs, StuckProcesses, child_pids, missing_requirement, process_state,
    run_in_mount_namespace,
};
use pty_harness::{Terminal, TerminalOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LAB_ENV: &str = "IOTOP_PLUS_HANG_LAB";
/// Maximum number of child processes left behind, see `subprocess::budget::MAX_CHILDREN`.
const MAX_CHILDREN: usize = iotop_plus::subprocess::budget::MAX_CHILDREN;
/// The fork server, and the process that holds the program's pages.
const HELPERS: usize = 2;

#[test]
fn hung_file_systems_do_not_block_the_program() {
    if let Some(missing) = missing_requirement(&["unshare", "mount", "fsfreeze", "mkfs.ext4"]) {
        eprintln!("SKIPPED hung_file_systems_do_not_block_the_program: {missing}");
        return;
    }
    run_in_mount_namespace("hung_file_systems_do_not_block_the_program", LAB_ENV);
}

/// Prints percentiles and returns the maximum.
fn print_percentiles(name: &str, mut all: Vec<Duration>) -> Duration {
    all.sort();
    let at = |p: usize| all[(all.len() - 1) * p / 100];
    println!("{name}: {} of them, p50 {:?}, p99 {:?}, max {:?}", all.len(), at(50), at(99), at(100));
    at(100)
}

/// Switches views and measures the time until each is visible.
fn time_view_switches(t: &mut Terminal, rounds: usize) -> Vec<Duration> {
    let mut out = Vec::new();
    for i in 0..rounds {
        let (key, text) = [("4", "Pressure"), ("2", "recent past"), ("3", "READ/s")][i % 3];
        let start = Instant::now();
        t.send(key);
        t.wait_for_text(text);
        out.push(start.elapsed());
    }
    out
}

#[test]
#[ignore = "run by hung_file_systems_do_not_block_the_program in a mount namespace of its own"]
fn in_mount_namespace() {
    let lab = PathBuf::from(std::env::var(LAB_ENV).expect("set by hung_file_systems_do_not_block_the_program"));
    let made = FrozenFs::mount(&lab).and_then(|frozen| Ok((frozen, DeadFuse::mount(&lab)?)));
    let (mut frozen, dead) = match made {
        Ok(made) => made,
        Err(why) => {
            eprintln!("SKIPPED {why}");
            return;
        }
    };
    let start = Instant::now();
    while process_state(frozen.writer_pid()).is_some_and(|s| s.0 != 'D') {
        assert!(start.elapsed() < pty_harness::TIMEOUT, "the writer does not block");
    }
    let victims = StuckProcesses::start(&mut frozen);
    run_beside(&frozen, &dead, &victims);
    start_with_config_on(&dead);
}

#[test]
#[ignore = "run by in_mount_namespace, as the task that is stuck in a page fault"]
fn hang_in_a_page_fault() {
    if let Some(path) = std::env::var_os(FAULT_ENV) {
        hung_fs::hang_in_page_fault(Path::new(&path));
    }
}

/// Uses the program next to all of them.
fn run_beside(frozen: &FrozenFs, dead: &DeadFuse, victims: &StuckProcesses) {
    let config = frozen.mount_point.join("config.toml");
    let mut t = Terminal::start(TerminalOptions {
        args: vec!["-d", "0.1", "--config", config.to_str().unwrap(), "--path", dead.mount_point.to_str().unwrap()],
        size: (200, 50),
        ..Default::default()
    });
    let start = Instant::now();
    t.wait_for_text("q quit");
    println!("first frame {:?}", start.elapsed());
    t.wait_for_text("does not answer");
    t.wait_for_text("BLOCKED");
    println!("said to be blocked after {:?}", start.elapsed());
    // Saving the config there blocks another child, and must not block anything else.
    t.send("1W");
    // More paths than children are allowed: the rest is refused.
    for i in 0..MAX_CHILDREN + 4 {
        t.send(format!(":path {}/{i}\r", dead.mount_point.display()));
    }
    t.wait_for_text("children are stuck already");
    assert!(child_pids(t.pid()).len() <= MAX_CHILDREN + HELPERS, "{:?}", child_pids(t.pid()));
    check_pace(&mut t);
    // For one of the two the counters cannot be read, for the other only the command line.
    t.send("3");
    t.wait_for_text("2 BLOCKED");
    for pid in [victims.exec_pid, victims.fault_pid] {
        t.send(format!("/{pid}\r"));
        t.wait_until("the stuck task in the table", |s| s.contents().contains(&format!(" {pid} ")));
    }
    println!("{}", t.contents());
    t.send(format!("3/{}\r", frozen.writer_pid()));
    t.wait_for_text("frozen fs");
    t.send("5");
    t.wait_until("the writer called stuck", |s| s.contents().contains("stuck: dd"));
    quit_quickly(&mut t);
}

/// Checks that frames and keys are still handled.
fn check_pace(t: &mut Terminal) {
    t.take_frame_times();
    let slowest = print_percentiles("key to screen", time_view_switches(t, 60));
    assert!(slowest < Duration::from_secs(3));
    t.take_frame_times();
    // On an idle machine only the clock in the header changes.
    t.wait_for_output("frames", |seen| seen.frame_times.len() > 12);
    let gaps = t.take_frame_times().windows(2).map(|w| w[1] - w[0]).collect();
    assert!(print_percentiles("between frames, samples at 0.1 s", gaps) < Duration::from_secs(3));
}

/// The program exits at once, whatever children are stuck.
fn quit_quickly(t: &mut Terminal) {
    let left = child_pids(t.pid());
    let start = Instant::now();
    t.send("q");
    let status = t.wait_for_exit();
    println!("ended {:?} after q, {} children were out", start.elapsed(), left.len());
    assert_eq!(status.exit_code(), 0);
    assert!(start.elapsed() < Duration::from_secs(3));
    t.assert_restored(1);
    let stuck = left.iter().filter(|pid| process_state(**pid).is_some_and(|s| s.0 != 'Z')).count();
    println!("{stuck} children left behind");
    assert!(stuck <= MAX_CHILDREN);
}

/// The same measurements next to file systems hung by other means.
#[test]
#[ignore = "by hand: IOTOP_PLUS_BESIDE names paths on what does not answer, with colons between"]
fn by_hand() {
    let Ok(paths) = std::env::var("IOTOP_PLUS_BESIDE") else { return };
    let mut t = Terminal::start(TerminalOptions { args: vec!["-d", "0.1"], size: (200, 50), ..Default::default() });
    t.wait_for_text("q quit");
    for path in paths.split(':') {
        t.send(format!(":path {path}\r"));
        t.wait_for_text(&format!("Path {path}"));
    }
    check_pace(&mut t);
    t.send("1");
    t.wait_for_text("Writeback");
    println!("{}", t.contents());
    quit_quickly(&mut t);
}

/// The config file is on a hung file system.
fn start_with_config_on(dead: &DeadFuse) {
    let config = dead.mount_point.join("config.toml");
    let start = Instant::now();
    let mut t = Terminal::with_args(&["--config", config.to_str().unwrap()]);
    t.wait_for_text("q quit");
    println!("first frame {:?} with a config file that does not answer", start.elapsed());
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
}
