//! Recording and replay in a terminal, with the real binary.

mod term;

use std::process::Command;
use term::{BINARY, Start, Terminal};

fn start_wide(args: &[&str]) -> Terminal {
    Terminal::start(Start { args: args.to_vec(), size: (140, 40), ..Start::default() })
}

#[test]
fn a_recording_can_be_played_stepped_and_quit() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.iotop");
    let path = file.to_str().unwrap();
    let made = Command::new(BINARY).args(["record", path, "-q", "-d", "0.1", "--for", "3"]).status().unwrap();
    assert!(made.success());
    let mut t = start_wide(&["replay", path, "--config", "none"]);
    t.shows("REPLAY");
    // To the end by itself.
    t.send("++++");
    t.shows("paused");
    t.send("^");
    t.shows("REPLAY 1/");
    t.send(".");
    t.shows("REPLAY 2/");
    t.send(".");
    t.shows("REPLAY 3/");
    t.send(",");
    t.shows("REPLAY 2/");
    t.send("J");
    t.shows("jump to");
    t.send("+1\r");
    t.until("a tick a second on", |s| !s.contents().contains("REPLAY 2/") && s.contents().contains("paused"));
    t.send("J");
    t.shows("jump to");
    t.send("noon\r");
    t.shows("a time is 14:35");
    t.send("\x1b");
    t.until("the prompt closed", |s| !s.contents().contains("jump to"));
    for (key, text) in
        [("2", "recent past"), ("3", "READ/s"), ("4", "Pressure"), ("5", "Kernel log"), ("1", "Writeback")]
    {
        t.send(key);
        t.shows(text);
    }
    t.send("7");
    t.shows("this is a recording");
    t.send("s\r");
    t.shows("written: ");
    t.send("q");
    assert_eq!(t.ended().exit_code(), 0);
    t.given_back(1);
}

#[test]
fn the_live_screen_can_be_recorded_and_replayed() {
    let mut t = start_wide(&["-d", "0.2", "--config", "none"]);
    t.until("live figures and tasks", |s| s.contents().contains(" id ") && s.contents().contains("root "));
    t.send("R");
    t.shows("record to: ");
    // Ctrl-U empties the line.
    t.send("\x15screen.iotop\r");
    t.shows("REC ");
    let size = |text: &str| {
        text.split("REC ").nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned))
    };
    t.until("the first tick in the file", |s| size(&s.contents()).is_some_and(|n| n.ends_with('K')));
    let first = size(&t.contents());
    t.until("further ticks", |s| size(&s.contents()).is_some_and(|n| Some(n) != first));
    t.send("R");
    t.shows("recorded: ");
    t.until("the word gone", |s| !s.contents().contains("REC "));
    // The same name again: nothing is lost.
    t.send("R");
    t.shows("record to: ");
    t.send("\x15screen.iotop\r");
    t.shows("file exists");
    t.send("q");
    assert_eq!(t.ended().exit_code(), 0);
    let file = t.home.path().join("screen.iotop");
    let out =
        Command::new(BINARY).args(["replay", file.to_str().unwrap(), "--format", "json"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(first["processes"].as_array().unwrap().len() > 3, "all tasks from the first sample on");
    assert!(text.lines().count() > 1);
}

#[test]
fn quitting_while_recording_leaves_a_readable_file() {
    let mut t = start_wide(&["-d", "0.2", "--config", "none"]);
    t.shows("q quit");
    t.send("R");
    t.shows("record to: ");
    t.send("\x15left.iotop\r");
    t.shows("REC ");
    t.send("q");
    assert_eq!(t.ended().exit_code(), 0);
    let file = t.home.path().join("left.iotop");
    let readable = || {
        let out = Command::new(BINARY)
            .args(["replay", file.to_str().unwrap(), "--format", "json"])
            .output()
            .unwrap();
        out.status.success() && !out.stdout.is_empty()
    };
    // The writing child outlives the screen for a moment.
    let start = std::time::Instant::now();
    while !readable() {
        assert!(start.elapsed() < term::PATIENCE, "never readable");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The writing child of a process.
fn find_recorder_child(parent: u32) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let stat = read("stat");
        let ppid =
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        ppid == Some(parent) && read("cmdline").contains("record-io")
    })
}

/// A stopped child takes nothing, like one whose disk hangs.
#[test]
fn a_stuck_recorder_is_reported_and_not_waited_for() {
    use rustix::process::{Pid, Signal, kill_process};
    let mut t = start_wide(&["-d", "0.1", "--config", "none"]);
    t.until("live figures", |s| s.contents().contains(" id "));
    t.send("R");
    t.shows("record to: ");
    t.send("\x15stuck.iotop\r");
    t.shows("REC ");
    t.until("the child", |_| find_recorder_child(t.pid()).is_some());
    let child = Pid::from_raw(find_recorder_child(t.pid()).unwrap()).unwrap();
    kill_process(child, Signal::STOP).unwrap();
    t.shows("REC stuck");
    // The screen goes on.
    t.send("3");
    t.shows("READ/s");
    t.send("q");
    assert_eq!(t.ended().exit_code(), 0);
    t.given_back(1);
    kill_process(child, Signal::KILL).unwrap();
}
