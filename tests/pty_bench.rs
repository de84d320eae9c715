//! The Bench view of the real program in a pseudo-terminal: runs every profile until its report is stored, and quits
//! during a run.

mod pty_harness;

use iotop_plus::bench::workloads::WORKLOADS;
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::model::system_state::{HostInfo, SystemState};
use iotop_plus::tui::shared::Shared;
use iotop_plus::tui::{BenchForm, RunForms};
use pty_harness::{Terminal, TerminalOptions, count_sequence};
use std::path::Path;

/// Starts the program with its Bench view open in `dir`; `None` if there is no space for a benchmark.
fn open_bench_view(dir: &Path) -> Option<Terminal> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    let reserve = (stat.f_blocks * stat.f_frsize / 20).max(2 << 30);
    if stat.f_bavail * stat.f_frsize < reserve + (256 << 20) {
        eprintln!("SKIPPED: no room for a benchmark's file");
        return None;
    }
    let mut t = Terminal::start(TerminalOptions { size: (120, 40), ..Default::default() });
    t.wait_for_text("q quit");
    t.send("6");
    t.wait_for_text("Plan: randrw");
    t.send(format!("\x1bOQ\r\x15{}\r", dir.display()));
    // Wait until the page no longer shows the previous directory.
    let name = dir.file_name().unwrap().to_str().unwrap();
    t.wait_until("the plan in this directory", |s| {
        let shown = s.contents();
        shown.contains(&format!("{name};")) && shown.contains("Free: ") && !shown.contains("Cannot start")
    });
    t.send("\x1b[D");
    Some(t)
}

fn temp_dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Sets a parameter; the list is focused before and after.
fn set_param(t: &mut Terminal, profile: usize, name: &str, text: &str) {
    let shared = Shared::new(SystemState::new(HostInfo::default(), LogClock::default()));
    let lines = BenchForm::default().lines(profile, &shared);
    let at = lines.iter().position(|l| l.name == name).unwrap();
    t.send(format!("\x1bOQ\x1b[H{}", "j".repeat(at)));
    match lines[at].choices.is_empty() {
        true => t.send(format!("\r\x15{text}\r")),
        false => t.send("\r"),
    }
    t.send("\x1b[D");
}

/// Selects a profile; `above` is the number of rows above the profiles.
fn select_profile(t: &mut Terminal, profile: usize, above: usize) {
    t.send(format!("\x1b[H{}", "j".repeat(profile + above)));
    t.wait_for_text(&format!("Plan: {}", WORKLOADS[profile].name));
}

#[test]
fn every_profile_runs_from_the_view() {
    let dir = temp_dir();
    let Some(mut t) = open_bench_view(dir.path()) else { return };
    for (at, w) in WORKLOADS.into_iter().enumerate() {
        select_profile(&mut t, at, usize::from(at > 0));
        for (name, text) in [("size", "64M"), ("time", "0.1"), ("ramp", "0"), ("transactions", "3")] {
            if w.params().contains(&name) {
                set_param(&mut t, at, name, text);
            }
        }
        t.send("S");
        t.wait_for_text(&format!("Run {}", w.name));
        t.send("y");
        t.wait_for_text(&format!("Result of {}", w.name));
        t.wait_for_text(&format!("-{} ", w.name));
        let kept = format!("-{}", w.name);
        t.wait_until("kept", |s| s.contents().lines().any(|l| l.contains("saved as ") && l.contains(&kept)));
        println!("{:<9} {}", w.name, t.contents().lines().find(|l| l.contains("kept as")).unwrap_or_default());
        assert!(t.contents().contains("complete"), "{}", t.contents());
        t.send("\x1b[D");
    }
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing stays in the directory");
    let store = t.home.path().join(".local/state/iotop-plus/bench");
    assert_eq!(std::fs::read_dir(store).unwrap().count(), WORKLOADS.len());
}

#[test]
fn results_are_compared_and_copied() {
    let dir = temp_dir();
    let Some(mut t) = open_bench_view(dir.path()) else { return };
    for (name, text) in [("size", "16M"), ("time", "0.1"), ("ramp", "0"), ("engine", "")] {
        set_param(&mut t, 0, name, text);
    }
    for n in 0..2 {
        select_profile(&mut t, 0, n);
        t.send("S");
        t.wait_for_text("y Yes");
        t.send("y");
        t.wait_for_text("saved as ");
        let row = regex_lite::Regex::new(r"[0-9]{2}:[0-9]{2} randrw [0-9]").unwrap();
        t.wait_until("listed", |s| row.find_iter(&s.contents()).count() == n + 1);
        t.send("\x1b[D");
    }
    t.send("\x1b[Fm");
    t.wait_for_text("*");
    t.send("kc");
    t.wait_for_text("Two results");
    t.wait_for_text("One run each cannot tell");
    t.send("y");
    t.wait_for_output("the clipboard", |seen| count_sequence(&seen.raw, "\x1b]52;c;") == 1);
}

/// The benchmark children of a process.
fn bench_children(parent: u32) -> Vec<u32> {
    let of = |entry: std::fs::DirEntry| -> Option<u32> {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let ppid = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()?;
        (ppid == parent && stat.contains("(iotop-bench)")).then_some(pid)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

/// Whether a process exists and is not a zombie.
fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| !s.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

#[test]
fn quitting_during_a_run_leaves_no_child_and_no_file() {
    let dir = temp_dir();
    let Some(mut t) = open_bench_view(dir.path()) else { return };
    set_param(&mut t, 0, "size", "16M");
    set_param(&mut t, 0, "rate", "100");
    t.send("S");
    t.wait_for_text("y Yes");
    t.send("y");
    // The run may still be creating its file, if the disk is busy.
    t.wait_until("the child", |_| bench_children(t.pid()).len() == 1);
    let running = bench_children(t.pid());
    t.send("1");
    t.wait_for_text("bench randrw");
    t.wait_for_text("Writeback");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    t.wait_until("the child's end", |_| !is_running(running[0]));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(!t.home.path().join(".local/state").exists(), "a run that was left is no result");
}

#[test]
fn a_cancelled_run_is_stored_with_partial_results() {
    let dir = temp_dir();
    let Some(mut t) = open_bench_view(dir.path()) else { return };
    set_param(&mut t, 0, "size", "16M");
    t.send("S");
    t.wait_for_text("y Yes");
    t.send("y");
    t.wait_until("figures", |s| s.contents().contains("p99") && s.contents().contains("1. randrw"));
    t.send("C");
    t.wait_for_text("cancelled: the figures are those up to then");
    t.wait_for_text("saved as ");
}

#[test]
fn unsafe_directories_are_refused() {
    let dir = temp_dir();
    let Some(mut t) = open_bench_view(dir.path()) else { return };
    for (path, why) in
        [("/proc", "a pseudo file system"), ("/nonexistent/x", "does not exist"), ("/dev/null", "device")]
    {
        t.send(format!("\x1bOQ\x1b[H\r\x15{path}\r"));
        t.wait_for_text("Cannot start");
        t.wait_for_text(why);
        t.send("S");
        t.wait_for_text("refused: ");
        assert!(!t.contents().contains("y Yes"));
        t.send("\x1b[D");
    }
}
