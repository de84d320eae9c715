//! An experiment started from the screen, in a pseudo-terminal on the real kernel: complete, cancelled, and killed
//! during a round.

use crate::machine::{LiveMachine, output_text, read_knob, read_vm_knobs};
use crate::pty_harness::{TIMEOUT, Terminal, list_files};
use crate::screen::{KNOB, different_value, open_tune_view, wait_for_value};
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::model::system_state::{HostInfo, SystemState};
use iotop_plus::tui::shared::Shared;
use iotop_plus::tui::{ExperimentForm, RunForms};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The shortest workload; it uses no file.
const WORKLOAD: &str = "intrinsic";

/// Types into a field of the form, which has the keyboard focus.
fn fill_field(t: &mut Terminal, line: &str, typed: &str) {
    let mut form = ExperimentForm::default();
    form.set_line(0, "workload", WORKLOAD).unwrap();
    let shared = Shared::new(SystemState::new(HostInfo::default(), LogClock::default()));
    let at = form.lines(0, &shared).iter().position(|l| l.name == line).unwrap();
    t.send(format!("\x1b[H{}\r\x15{typed}\r", "j".repeat(at)));
}

/// Starts an experiment on the selected knob, with rounds of this many seconds.
fn start_experiment(m: &LiveMachine, secs: &str, base: &str) -> Terminal {
    let mut t = open_tune_view(m, 600);
    t.send("B");
    t.wait_for_text(&format!("B sets       vm.{KNOB}={}", read_knob(KNOB)));
    t.send(format!("\x15vm.{KNOB}={}\r", different_value()));
    fill_field(&mut t, "workload", WORKLOAD);
    fill_field(&mut t, "baseline", "0");
    fill_field(&mut t, "time", secs);
    fill_field(&mut t, "A sets", base);
    t.wait_until("a plan that can be started", |s| {
        let shown = s.contents();
        shown.contains("order A B B A A B B A") && !shown.contains("Cannot start")
    });
    t.send("S");
    t.wait_for_text("Start the experiment");
    assert!(t.contents().contains("Touches no file and no device"), "{}", t.contents());
    t.send("y");
    t
}

/// An experiment in its first round, with A's value in force.
fn experiment_in_first_round(m: &LiveMachine) -> Terminal {
    let a = if read_knob(KNOB) == "2700" { "2600" } else { "2700" };
    let t = start_experiment(m, "600", &format!("vm.{KNOB}={a}"));
    t.wait_for_text("round 1 of 8, A: measuring");
    wait_for_value(a);
    t
}

/// Checks that no change is in force and all values are restored.
fn assert_restored(m: &LiveMachine, when: &str) {
    wait_for_value(&m.saved[KNOB]);
    assert_eq!(read_vm_knobs(), m.saved, "{when}");
    // The value is restored before the journal records it.
    let start = Instant::now();
    loop {
        let status = output_text(&m.tune(&["status", &format!("vm.{KNOB}")]));
        if status.contains("No change of this boot stands") {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "{when}: {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_complete_experiment_from_selected_knob_to_applied_and_undone_result() {
    let Some(m) = LiveMachine::acquire("a_whole_experiment_from_a_knob_to_b_set_and_taken_back") else {
        return;
    };
    let new = different_value();
    let mut t = start_experiment(&m, "0.05", "");
    t.wait_for_text("Report of intrinsic");
    t.wait_for_text("saved as ");
    t.wait_for_text("Now: A's values are in effect");
    assert_restored(&m, "at its end");
    // Four rounds of B, each with a change of its own.
    assert_eq!(std::fs::read_to_string(m.journal()).unwrap().matches("Intend").count(), 4);

    t.send("A");
    t.wait_for_text("All or none");
    t.send("y");
    t.wait_for_text("change #5 reverts in 9:5");
    assert_eq!(read_knob(KNOB), new);
    t.wait_for_text("Now: B is in effect, change 5 reverts in");
    t.send("K");
    t.wait_for_text("change 5 stays until the machine boots");
    t.send("U");
    t.wait_for_text("Revert change 5");
    t.send("y");
    t.wait_for_text("Now: A's values are in effect");
    assert_restored(&m, "undone");

    t.send("O\x15report.md\r");
    t.wait_for_text("written: ");
    let report = std::fs::read_to_string(t.home.path().join("report.md")).unwrap();
    assert!(report.starts_with("## Experiment: intrinsic"), "{report}");
    let kept = list_files(&t.home.path().join(".local/state/iotop-plus/experiment"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    // It is in the list and can be opened.
    t.send("\x1b[D\x1b[F\r");
    t.wait_for_text("┬ Report 1");
    t.wait_for_text("Work of every round: intrinsic");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
    t.assert_restored(1);
    assert_restored(&m, "left");
}

#[test]
fn cancelling_saves_a_partial_report() {
    let Some(m) = LiveMachine::acquire("ended_by_key_it_gives_a_report_of_what_there_is") else { return };
    let mut t = experiment_in_first_round(&m);
    t.send("1");
    t.wait_for_text("experiment intrinsic 1/8 A");
    t.send("7C");
    t.wait_for_text("cancelled: the figures are those up to then");
    t.wait_for_text("saved as ");
    assert_restored(&m, "cancelled");
    t.send("q");
    assert_eq!(t.wait_for_exit().exit_code(), 0);
}

#[test]
fn quitting_or_killing_in_a_round_restores_the_values() {
    let Some(m) = LiveMachine::acquire("left_or_killed_in_a_round_the_old_values_come_back") else { return };
    for how in ["q", "C twice", "HUP", "TERM", "KILL"] {
        let mut t = experiment_in_first_round(&m);
        match how {
            "q" => t.send("q"),
            "C twice" => {
                t.send("CC");
                t.wait_for_text("failed: killed before it could report");
                t.send("q");
            }
            "HUP" => t.signal(Signal::HUP),
            "TERM" => t.signal(Signal::TERM),
            _ => t.signal(Signal::KILL),
        }
        t.wait_for_exit();
        assert_restored(&m, how);
        assert!(!t.home.path().join(".local/state").exists(), "{how}: one that was left is no result");
    }
}
