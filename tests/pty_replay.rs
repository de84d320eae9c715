//! Recording and replaying with the real program in a pseudo-terminal.

mod pty_harness;

use pty_harness::{BINARY, Terminal, TerminalOptions};
use std::process::Command;

fn start_wide(args: &[&str]) -> Terminal {
    Terminal::start(TerminalOptions { args: args.to_vec(), size: (140, 40), ..TerminalOptions::default() })
}

#[test]
fn a_recording_can_be_played_stepped_and_quit() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.iotop");
    let path = file.to_str().unwrap();
    let made = Command::new(BINARY).args(["record", path, "-q", "-d", "0.1", "--for", "3"]).status().unwrap();
    assert!(made.success());
    let mut t = start_wide(&["replay", path, "--config", "none"]);
    t.wait_for_text("REPLAY");
    // Plays to the end.
    t.send("++++");
    t.wait_for_text("paused");
    t.send("^");
    t.wait_for_text("REPLAY 1/");
    t.send(".");
    t.wait_for_text("REPLAY 2/");
    t.send(".");
    t.wait_for_text("REPLAY 3/");
    t.send(",");
    t.wait_for_text("REPLAY 2/");
    t.send("J");
    t.wait_for_text("jump to");
    t.send("+1\r");
    t.wait_until("a tick a second on", |s| !s.contents().contains("REPLAY 2/") && s.contents().contains("paused"));
    t.send("J");
    t.wait_for_text("jump to");
    t.send("noon\r");
    t.wait_for_text("a time is 14:35");
    t.send("\x1b");
    t.wait_until("the prompt closed", |s| !s.contents().contains("jump to"));
    for (key, text) in
        [("2", "recent past"), ("3", "READ/s"), ("4", "Pressure"), ("5", "Kernel log"), ("1", "Writeback")]
    {
        t.send(key);
        t.wait_for_text(text);
    }
    t.send("7");
    t.wait_for_text("not available in a replay");
    t.send("s\r");
    t.wait_for_text("written: ");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
}

#[test]
fn the_live_screen_can_be_recorded_and_replayed() {
    let mut t = start_wide(&["-d", "0.2", "--config", "none"]);
    t.wait_until("live figures and tasks", |s| s.contents().contains(" id ") && s.contents().contains("root "));
    t.send("R");
    t.wait_for_text("record to: ");
    // Ctrl-U clears the prompt.
    t.send("\x15screen.iotop\r");
    t.wait_for_text("REC ");
    let size =
        |text: &str| text.split("REC ").nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
    t.wait_until("the first tick in the file", |s| size(&s.contents()).is_some_and(|n| n.ends_with('K')));
    let first = size(&t.contents());
    t.wait_until("further ticks", |s| size(&s.contents()).is_some_and(|n| Some(n) != first));
    t.send("R");
    t.wait_for_text("recorded: ");
    t.wait_until("the word gone", |s| !s.contents().contains("REC "));
    // A second recording with the same name must not overwrite the file.
    t.send("R");
    t.wait_for_text("record to: ");
    t.send("\x15screen.iotop\r");
    t.wait_for_text("file exists");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    let file = t.home.path().join("screen.iotop");
    let out = Command::new(BINARY).args(["replay", file.to_str().unwrap(), "--format", "json"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(first["processes"].as_array().unwrap().len() > 3, "all tasks from the first sample on");
    assert!(text.lines().count() > 1);
}

#[test]
fn quitting_while_recording_leaves_a_readable_file() {
    let mut t = start_wide(&["-d", "0.2", "--config", "none"]);
    t.wait_for_text("q quit");
    t.send("R");
    t.wait_for_text("record to: ");
    t.send("\x15left.iotop\r");
    t.wait_for_text("REC ");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    let file = t.home.path().join("left.iotop");
    let readable = || {
        let out = Command::new(BINARY).args(["replay", file.to_str().unwrap(), "--format", "json"]).output().unwrap();
        out.status.success() && !out.stdout.is_empty()
    };
    // The recorder's child process ends a moment after the program.
    let start = std::time::Instant::now();
    while !readable() {
        assert!(start.elapsed() < pty_harness::TIMEOUT, "never readable");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The recorder's child process.
fn find_recorder_child(parent: u32) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let stat = read("stat");
        let ppid = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        ppid == Some(parent) && read("comm") == "iotop-record-io\n"
    })
}

/// A stopped child process behaves like one whose disk hangs.
#[test]
fn a_stuck_recorder_is_reported_and_not_waited_for() {
    use rustix::process::{Pid, Signal, kill_process};
    let mut t = start_wide(&["-d", "0.1", "--config", "none"]);
    t.wait_until("live figures", |s| s.contents().contains(" id "));
    t.send("R");
    t.wait_for_text("record to: ");
    t.send("\x15stuck.iotop\r");
    t.wait_for_text("REC ");
    t.wait_until("the child", |_| find_recorder_child(t.pid()).is_some());
    let child = Pid::from_raw(find_recorder_child(t.pid()).unwrap()).unwrap();
    kill_process(child, Signal::STOP).unwrap();
    t.wait_for_text("REC stuck");
    // The screen is still updated.
    t.send("3");
    t.wait_for_text("READ/s");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    kill_process(child, Signal::KILL).unwrap();
}
