//! The Tune view in a pseudo-terminal on the real kernel: a change with its countdown, undone, expired, kept, and
//! with the screen killed.

use crate::machine::{LiveMachine, read_knob, read_vm_knobs};
use crate::pty_harness::{Terminal, TerminalOptions};
use rustix::process::Signal;
use std::time::{Duration, Instant};

pub const KNOB: &str = "dirty_expire_centisecs";

/// Opens the view and selects the knob, with a run directory of the test's own.
pub fn open_tune_view(m: &LiveMachine, lease: u32) -> Terminal {
    let config = m.dir.path().join("config.toml");
    std::fs::write(&config, format!("view = \"tune\"\n[tune]\nlease = {lease}\n")).unwrap();
    let (root, config) = (m.dir.path().to_str().unwrap(), config.to_str().unwrap());
    let args = vec!["--root", root, "--config", config];
    let mut t = Terminal::start(TerminalOptions { args, size: (120, 40), ..Default::default() });
    t.wait_for_text("vm.dirty_expire_centisecs");
    t.send(":tune vm.dirty_expire_centisecs\r");
    t.wait_for_text("Age at which a dirty page");
    t
}

/// Changes the knob with the keys of the view.
fn apply_value(t: &mut Terminal, value: &str) {
    t.send("\r");
    t.wait_for_text("new value:");
    t.send("\x15");
    t.send(value);
    t.send("\r");
    t.wait_for_text("1 pending: A apply");
    t.send("A");
    t.wait_for_text("All or none");
    t.send("y");
    t.wait_for_text("reverts in");
}

/// A value that differs from the current one.
pub fn different_value() -> &'static str {
    if read_knob(KNOB) == "2900" { "2800" } else { "2900" }
}

/// Waits for the value; a tuner restores it within its lease and 5 s.
pub fn wait_for_value(value: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while read_knob(KNOB) != value {
        assert!(Instant::now() < end, "{KNOB} stays at {}", read_knob(KNOB));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_change_on_the_screen_shows_its_countdown_and_can_be_undone() {
    let Some(m) = LiveMachine::acquire("a_change_made_on_the_screen_counts_down_and_is_undone") else {
        return;
    };
    let (was, new) = (read_knob(KNOB), different_value());
    let mut t = open_tune_view(&m, 600);
    apply_value(&mut t, new);
    assert_eq!(read_knob(KNOB), new);
    t.wait_for_text("change #1 reverts in 9:5");
    t.send("1");
    t.wait_until("the countdown in another view", |s| {
        !s.contents().contains("KNOB") && s.contents().contains("change #1 reverts in 9:")
    });
    t.send("7");
    // Undo acts on a listed change.
    t.wait_for_text("lease 9m");
    t.send("U");
    t.wait_for_text("Revert change 1");
    t.send("y");
    t.wait_for_text("reverted");
    assert_eq!(read_knob(KNOB), was);
    t.wait_until("no lease", |s| !s.contents().contains("reverts in"));
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn killing_the_screen_reverts_its_change() {
    let Some(m) = LiveMachine::acquire("a_screen_that_is_killed_takes_its_change_along") else { return };
    let (was, new) = (read_knob(KNOB), different_value());
    let mut t = open_tune_view(&m, 600);
    apply_value(&mut t, new);
    t.signal(Signal::KILL);
    wait_for_value(&was);
    t.wait_for_exit();
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn an_expired_lease_is_reported_on_screen() {
    let Some(m) = LiveMachine::acquire("a_lease_nobody_renews_runs_out_before_the_persons_eyes") else {
        return;
    };
    let was = read_knob(KNOB);
    let mut t = open_tune_view(&m, 2);
    apply_value(&mut t, different_value());
    t.wait_for_text("the lease of change 1 has ended");
    assert_eq!(read_knob(KNOB), was);
    t.wait_for_text("reverted");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
}

#[test]
fn quitting_offers_to_keep_undo_or_leave_the_lease() {
    let Some(m) = LiveMachine::acquire("leaving_keeps_undoes_or_leaves_the_lease") else { return };
    let (was, new) = (read_knob(KNOB), different_value());
    for (key, stands) in [("u", false), ("k", true), ("l", true)] {
        let mut t = open_tune_view(&m, 600);
        apply_value(&mut t, new);
        t.send("q");
        t.wait_for_text("Quit with a leased change?");
        t.send(key);
        assert_eq!(t.wait_for_exit().exit_code(), 0, "{key}");
        assert_eq!(read_knob(KNOB), if stands { new } else { was.as_str() }, "{key}");
        let status = crate::machine::output_text(&m.tune(&["status", "vm.dirty_expire_centisecs"]));
        let want = match key {
            "u" => "No change of this boot stands",
            "k" => "stays until the boot",
            _ => "on lease for another ",
        };
        assert!(status.contains(want), "{key}: {status}");
        // From the command line, as over ssh.
        if key == "l" {
            let renewed = crate::machine::output_text(&m.tune(&["renew", "--for", "1h"]));
            assert!(renewed.contains("on lease for another 1h00m"), "{renewed}");
        }
        m.tune(&["undo"]);
        assert_eq!(read_knob(KNOB), was, "{key}");
    }
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn changes_of_a_killed_tuner_are_offered_for_restore_at_start() {
    let Some(m) = LiveMachine::acquire("what_a_killed_tuner_left_behind_is_offered_at_the_next_start") else {
        return;
    };
    let (was, new) = (read_knob(KNOB), different_value());
    let said = crate::machine::output_text(&m.tune(&["set", "--for", "1h", &format!("vm.{KNOB}={new}")]));
    let pid = said.split("(process ").nth(1).and_then(|s| s.split(' ').next()).expect(&said);
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let config = m.dir.path().join("config.toml");
    std::fs::write(&config, "view = \"overview\"\n").unwrap();
    let (root, config) = (m.dir.path().to_str().unwrap(), config.to_str().unwrap());
    let args = vec!["--root", root, "--config", config];
    let mut t = Terminal::start(TerminalOptions { args, size: (120, 40), ..Default::default() });
    t.wait_for_text("q quit");
    // A change without a tuner counts as orphaned only once it can no longer be one that is just being made.
    let start = Instant::now();
    while !t.contents().contains("Restore orphaned changes") {
        assert!(start.elapsed() < crate::pty_harness::TIMEOUT, "never offered:\n{}", t.contents());
        t.send("17");
        std::thread::sleep(Duration::from_millis(200));
    }
    t.send("y");
    wait_for_value(&was);
    t.wait_for_text("reverted");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn a_stalled_device_is_refused_without_blocking_the_screen() {
    let (dir, disk) = crate::devices::tree_with_stalled_disk();
    std::os::unix::fs::symlink("/proc", dir.path().join("proc")).unwrap();
    let args = vec!["--root", dir.path().to_str().unwrap(), "--config", "none"];
    let mut t = Terminal::start(TerminalOptions { args, size: (120, 40), ..Default::default() });
    t.wait_for_text("q quit");
    t.send("7");
    t.wait_for_text("vm.dirty_ratio");
    t.send(":tune scheduler@sdz\r");
    t.wait_for_text("Who orders the requests");
    t.send("\r");
    t.wait_for_text("new value:");
    t.send("\x1b[B\r");
    t.wait_for_text("1 pending: A apply");
    t.send("A");
    t.wait_for_text("scheduler@sdz: none -> mq-deadline");
    t.send("y");
    // The check takes half a second; the screen must react to keys meanwhile.
    t.send("1");
    t.wait_for_text("Kernel log");
    t.send("7");
    t.wait_for_text("makes no progress: 1 requests in flight");
    assert_eq!(std::fs::read_to_string(disk.join("queue/scheduler")).unwrap(), "[none] mq-deadline\n");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
}
