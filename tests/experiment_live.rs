//! `experiment` on the real kernel: whatever ends it, the old values come back. Needs root.

#[path = "tune/machine.rs"]
mod machine;

use machine::{BIN, LiveMachine, output_text, read_knob, read_vm_knobs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

const KNOB: &str = "dirty_expire_centisecs";

/// `KNOB=VALUE` so far from the value in force.
fn assignment(by: u64) -> String {
    format!("vm.{KNOB}={}", knob_value(by))
}

fn knob_value(by: u64) -> String {
    // From the value at the start of the test: an arm may be on.
    (read_knob(KNOB).parse::<u64>().unwrap() + by).to_string()
}

/// The tool with the shortest work there is, and results of its own.
fn experiment(m: &LiveMachine, args: &[&str]) -> Command {
    let mut command = m.command(&["experiment"]);
    command.args(args).env("XDG_STATE_HOME", m.dir.path().join("state")).stdin(Stdio::null());
    command
}

fn run(m: &LiveMachine, args: &[&str]) -> Output {
    experiment(m, args).output().unwrap()
}

/// Nothing of a change stands, and every value is what it was.
fn assert_restored(m: &LiveMachine, when: &str) {
    assert_eq!(read_vm_knobs(), m.saved, "{when}");
    let status = output_text(&m.tune(&["status", &format!("vm.{KNOB}")]));
    assert!(status.contains("No change of this boot stands"), "{when}: {status}");
}

#[test]
fn a_complete_experiment_is_saved_and_restores_all_values() {
    let Some(m) = LiveMachine::acquire("a_whole_experiment_is_kept_and_puts_everything_back") else { return };
    let set = assignment(100);
    let base = ["--workload", "intrinsic", "--time", "0.05", "--calm", "0", "--rounds", "4", "-q", "--set", &set];
    let dry = run(&m, &[&base[..], &["--dry-run"]].concat());
    assert!(output_text(&dry).contains("order A B B A A B B A"), "{}", output_text(&dry));
    assert_restored(&m, "after a dry run");
    assert!(!m.dir.path().join("run/iotop-plus").exists(), "a dry run leaves no journal");

    let out = run(&m, &[&base[..], &["--format", "json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", output_text(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["end"], "complete");
    let rounds = report["trials"][0]["rounds"].as_array().unwrap();
    let order: String = rounds.iter().filter_map(|r| r["arm"].as_str()).collect();
    assert_eq!(order, "ABBAABBA");
    assert!(rounds.iter().all(|r| r["value"].as_f64() > Some(0.0)), "{rounds:?}");
    assert_eq!(report["settings"][0]["values"], json!([m.saved[KNOB], knob_value(100)]));
    assert_restored(&m, "at its end");
    // Four rounds of B, each a change of its own in the journal.
    assert_eq!(std::fs::read_to_string(m.journal()).unwrap().matches("Intend").count(), 4);

    let list = output_text(&run(&m, &["list"]));
    assert!(list.contains("intrinsic") && list.contains(&set), "{list}");
    let shown = output_text(&run(&m, &["show", "1", "--format", "markdown"]));
    assert!(shown.starts_with("## Experiment: intrinsic"), "{shown}");
    assert!(output_text(&run(&m, &["compare", "1", "1"])).contains("intervals overlap"));
    let file = m.dir.path().join("out");
    let written = run(&m, &["show", "1", "-o", file.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0), "{}", output_text(&written));
    assert!(std::fs::read_to_string(file).unwrap().starts_with("Experiment: intrinsic"));
}

#[test]
fn invalid_experiments_are_refused_before_any_write() {
    let Some(m) = LiveMachine::acquire("what_is_wrong_is_refused_before_anything_is_written") else { return };
    let (same, other) = (assignment(0), assignment(100));
    let dir = m.dir.path().to_str().unwrap().to_owned();
    for (code, args) in [
        (2, vec!["--workload", "intrinsic", "--set", "vm.bogus=1"]),
        (2, vec!["--workload", "intrinsic", "--set", "vm.dirty_ratio=0"]),
        (2, vec!["--workload", "intrinsic", "--set", &same]),
        (2, vec!["--workload", "nothing", "--set", &other]),
        (2, vec!["--workload", "fsync", "--set", &other]),
        (2, vec!["--workload", "intrinsic", "--control", "--set", &other]),
        (2, vec!["--workload", "fsync", "--dir", &dir, "--control", "--set", "vm.swappiness=1"]),
        (3, vec!["--workload", "fsync", "--dir", "/proc", "-q", "--calm", "0", "--set", &other]),
        (3, vec!["--workload", "fsync", "--dir", "/nonexistent", "-q", "--calm", "0", "--set", &other]),
    ] {
        let out = run(&m, &args);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", output_text(&out));
        assert!(out.stdout.is_empty() && !out.stderr.is_empty(), "{args:?}");
        assert_restored(&m, &format!("{args:?}"));
    }
    assert!(!m.dir.path().join("state").exists(), "nothing is kept of what was refused");
}

#[test]
fn an_unprivileged_user_gets_the_sudo_command_line() {
    let Some(_m) = LiveMachine::acquire("nobody_is_told_the_sudo_line") else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("iotop-plus");
    std::fs::copy(BIN, &program).unwrap();
    let args = ["experiment", "--workload", "intrinsic", "--set", "vm.swappiness=61"];
    let got = Command::new(&program).args(args).uid(65534).gid(65534).output().unwrap();
    assert_eq!(got.status.code(), Some(4), "{}", output_text(&got));
    let line = format!("sudo {} {}\n", program.display(), args.join(" "));
    assert!(output_text(&got).contains(&line), "{}", output_text(&got));
}

/// The child process of an experiment in the middle of its first round, its values in force.
struct RunningExperiment {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// The tuner and the measuring process.
    descendants: Vec<OwnedFd>,
}

fn pidfd(pid: i32) -> OwnedFd {
    pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap()
}

fn children(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>()).collect()
}

fn process_name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn wait_for_end(fd: &OwnedFd) -> bool {
    let within = Timespec { tv_sec: 20, tv_nsec: 0 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&within)).unwrap() == 1
}

impl RunningExperiment {
    fn start(m: &LiveMachine) -> Self {
        let spec = json!({
            "plan": {"profile": "intrinsic", "depth": 1, "direct": false, "ramp_ms": 0, "time_ms": 600_000},
            "base": [assignment(200)], "set": [assignment(100)], "calm_ms": 0,
        });
        let want = knob_value(200);
        let mut child = m
            .command(&["experiment-child"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        writeln!(child.stdin.as_mut().unwrap(), "{spec}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next().expect("messages go on").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let progress = message.get("progress").unwrap_or_else(|| panic!("{line}"));
            if progress["phase"] == "work" && progress["bench"]["part"] == 0 {
                break;
            }
        }
        assert_eq!(read_knob(KNOB), want, "A's value is in force");
        let mut names: Vec<String> = children(child.id()).into_iter().map(process_name).collect();
        names.sort();
        assert_eq!(names, ["iotop-bench", "iotop-fork", "iotop-tuner"]);
        let below: Vec<OwnedFd> = children(child.id()).into_iter().map(pidfd).collect();
        Self { child, lines, descendants: below }
    }

    /// All below it end, too.
    fn wait_for_last_message(mut self) -> Option<Value> {
        let last = self.lines.by_ref().map_while(Result::ok).last();
        self.child.wait().unwrap();
        assert!(self.descendants.iter().all(wait_for_end), "the tuner or the measuring process lives on");
        serde_json::from_str(&last?).ok()
    }
}

#[test]
fn cancel_signals_and_a_closed_pipe_restore_and_report() {
    let Some(m) = LiveMachine::acquire("cancel_signals_and_a_closed_pipe_restore_and_report") else { return };
    for how in ["cancel", "close", "INT", "TERM", "HUP"] {
        let mut it = RunningExperiment::start(&m);
        let pid = Pid::from_child(&it.child);
        match how {
            "cancel" => writeln!(it.child.stdin.as_mut().unwrap(), "\"cancel\"").unwrap(),
            "close" => drop(it.child.stdin.take()),
            "INT" => kill_process(pid, Signal::INT).unwrap(),
            "TERM" => kill_process(pid, Signal::TERM).unwrap(),
            _ => kill_process(pid, Signal::HUP).unwrap(),
        }
        let last = it.wait_for_last_message().expect("a last message");
        assert_eq!(last["report"]["end"], "cancelled", "{how}: {last}");
        assert_restored(&m, how);
    }
}

#[test]
fn the_tuner_restores_after_the_killed_child_of_an_experiment_and_the_reverse() {
    let Some(m) = LiveMachine::acquire("a_killed_one_is_restored_by_its_tuner_and_a_killed_tuner_by_it") else {
        return;
    };
    let it = RunningExperiment::start(&m);
    kill_process(Pid::from_child(&it.child), Signal::KILL).unwrap();
    it.wait_for_last_message();
    assert_restored(&m, "SIGKILL of the child of the experiment");

    let it = RunningExperiment::start(&m);
    let tuner = children(it.child.id()).into_iter().find(|pid| process_name(*pid) == "iotop-tuner");
    kill_process(Pid::from_raw(tuner.expect("a tuner")).unwrap(), Signal::KILL).unwrap();
    let last = it.wait_for_last_message().expect("a last message");
    assert!(last["failed"].as_str().or(last["report"]["end"]["failed"].as_str()).is_some(), "{last}");
    assert_restored(&m, "SIGKILL of the tuner");
}

#[test]
fn a_concurrent_admin_change_is_not_overwritten() {
    let Some(m) = LiveMachine::acquire("an_admin_in_between_is_not_overwritten") else { return };
    let mut it = RunningExperiment::start(&m);
    machine::write_knob(KNOB, "4321");
    writeln!(it.child.stdin.as_mut().unwrap(), "\"cancel\"").unwrap();
    let last = it.wait_for_last_message().expect("a last message");
    let end = last["report"]["end"]["failed"].as_str().unwrap();
    assert!(end.contains("CONFLICT") && end.contains("4321"), "{end}");
    assert!(last["report"]["after"].as_str().unwrap().contains("Not all old values are back"));
    assert_eq!(read_knob(KNOB), "4321");
}

#[test]
fn signals_and_a_killed_program_restore_the_values() {
    let Some(m) = LiveMachine::acquire("ctrl_c_and_a_killed_program_restore") else { return };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let (base, set) = (assignment(200), assignment(100));
        let mut program = experiment(
            &m,
            &[
                "--workload",
                "intrinsic",
                "--time",
                "0.2",
                "--calm",
                "0",
                "--rounds",
                "50",
                "--base",
                &base,
                "--set",
                &set,
            ],
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        // Into the second round, wherever in it.
        let mut said = BufReader::new(program.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line.starts_with("round 1 of 100, A: ")), "{signal:?}");
        let child: Vec<OwnedFd> = children(program.id()).into_iter().map(pidfd).collect();
        assert_eq!(child.len(), 1);
        kill_process(Pid::from_child(&program), signal).unwrap();
        let out = program.wait_with_output().unwrap();
        assert!(wait_for_end(&child[0]), "{signal:?}: the child lives on");
        if signal != Signal::KILL {
            assert_eq!(out.status.code(), Some(0), "{signal:?}: {}", output_text(&out));
            assert!(output_text(&out).contains("cancelled: the figures are those up to then"), "{}", output_text(&out));
        }
        assert_restored(&m, &format!("{signal:?}"));
    }
}
