//! SIGKILL of the tuner, the screen, or both, at every step of changing each vm and kernel knob.

use crate::machine::{
    KERNEL_KNOBS, LiveMachine, knob_path, output_text, read_knob, read_vm_knobs, sysctl_dir, write_knob, write_knobs,
};
use iotop_plus::tuning::protocol::TunerRequest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernel knobs that this kernel has.
fn read_kernel_knobs() -> BTreeMap<&'static str, String> {
    KERNEL_KNOBS.iter().filter(|k| Path::new(&knob_path(k)).exists()).map(|k| (*k, read_knob(k))).collect()
}

/// The kernel knobs, restored when dropped. Only tests that change them restore them, because others may be changing
/// them at the same time.
struct SavedKernelKnobs(BTreeMap<&'static str, String>);

impl SavedKernelKnobs {
    fn save(_alone: &LiveMachine) -> Self {
        Self(read_kernel_knobs())
    }
}

impl Drop for SavedKernelKnobs {
    fn drop(&mut self) {
        write_knobs(&self.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Victim {
    Tuner,
    Screen,
    Both,
}

/// A value close to the current one that keeps the thresholds in order.
fn nearby_value(knob: &str, start: &BTreeMap<&'static str, String>, by: i64) -> String {
    let n: i64 = start[knob].parse().unwrap();
    let of = |k: &str| start[k].parse::<i64>().unwrap();
    match knob {
        // A switch has only one other value.
        "task_delayacct" => (1 - n).to_string(),
        // -1: unlimited.
        "hung_task_warnings" => (n.max(0) + by).to_string(),
        // A half that is 0 gets what its other half currently means.
        "dirty_bytes" if n == 0 => (rounded_threshold("nr_dirty_threshold ") + by * 4096).to_string(),
        "dirty_background_bytes" if n == 0 => {
            (rounded_threshold("nr_dirty_background_threshold ") + by * 4096).to_string()
        }
        "dirty_ratio" if n == 0 => (of("dirty_background_ratio") + 30 + by).to_string(),
        "dirty_background_ratio" if n == 0 => (4 + by).to_string(),
        "dirty_bytes" | "dirty_background_bytes" | "min_free_kbytes" => (n + by * 4096).to_string(),
        "page-cluster" | "dirty_background_ratio" => (n - by).to_string(),
        _ => (n + by).to_string(),
    }
}

/// A current threshold in bytes, rounded so that it does not change between calls.
fn rounded_threshold(name: &str) -> i64 {
    let vmstat = std::fs::read_to_string("/proc/vmstat").unwrap();
    let pages: i64 = vmstat.lines().find_map(|l| l.strip_prefix(name)).unwrap().parse().unwrap();
    ((pages * 4096) >> 28 << 28).max(64 << 20)
}

/// Starts a stand-in for the screen that holds the tuner's pipe, has the tuner make and undo a change, and kills at
/// the step. Returns whether the tuner was killed, and whether the step was reached.
fn run_and_kill(m: &LiveMachine, words: &[String], step: u32, victim: Victim) -> (bool, bool) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut screen = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let plan = match victim {
        Victim::Tuner => step.to_string(),
        Victim::Screen => format!("{step}:{}", screen.id()),
        Victim::Both => format!("{step}:{}:own", screen.id()),
    };
    let mut tuner = m.command(&["tuner", "--kill", &plan]).stdin(reader).stdout(Stdio::piped()).spawn().unwrap();
    let mut say = |request: &TunerRequest| {
        let mut line = serde_json::to_vec(request).unwrap();
        line.push(b'\n');
        // A tuner killed early no longer reads.
        let _ = writer.write_all(&line);
    };
    say(&TunerRequest::Set { assignments: words.to_vec(), lease_secs: Some(600) });
    let making = step <= steps_of_change(words.len());
    if !making {
        say(&TunerRequest::Undo);
    }
    drop(writer);
    let status = tuner.wait().unwrap();
    let screen_died = victim != Victim::Tuner && wait_for_exit(screen.id());
    let _ = screen.kill();
    let _ = screen.wait();
    let killed = status.signal() == Some(9);
    (killed, killed || screen_died)
}

/// Whether a process that may have received SIGKILL exits.
fn wait_for_exit(pid: u32) -> bool {
    let fd = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty()).unwrap();
    let within = Timespec { tv_sec: 5, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&within)).unwrap() == 1
}

/// The steps of making a change: four for its first record; for each knob four for each of two records, the write and
/// the read-back; two around the reply.
fn steps_of_change(knobs: usize) -> u32 {
    4 + 10 * knobs as u32 + 2
}

/// Also the steps of undoing it: for each knob the write, and four for the record.
pub fn steps_of_change_and_undo(knobs: usize) -> u32 {
    steps_of_change(knobs) + 5 * knobs as u32
}

#[test]
fn vm_knobs_are_restored_from_every_kill_point() {
    let Some(m) = LiveMachine::acquire("killed_at_every_step_everything_is_restored") else { return };
    let points = kill_at_every_point(&m, &m.saved, read_vm_knobs);
    println!("{points} points, all restored");
    assert!(points >= 500);
}

#[test]
fn kernel_knobs_are_restored_from_every_kill_point() {
    let Some(m) = LiveMachine::acquire("knobs_beside_those_of_memory_are_restored_from_every_step") else {
        return;
    };
    let SavedKernelKnobs(start) = &SavedKernelKnobs::save(&m);
    if start.is_empty() {
        eprintln!("SKIPPED knobs_beside_those_of_memory_are_restored_from_every_step: this kernel has none");
        return;
    }
    let points = kill_at_every_point(&m, start, read_kernel_knobs);
    println!("{points} points of {:?}, all restored", start.keys());
    assert_eq!(points, 3 * steps_of_change_and_undo(1) * start.len() as u32);
    // All of them in one change, restored by the tool run afterwards.
    let words: Vec<String> =
        start.keys().map(|k| format!("{}.{k}={}", sysctl_dir(k), nearby_value(k, start, 1))).collect();
    for step in 1..=steps_of_change_and_undo(words.len()) {
        kill_and_undo(&m, &words, step, Victim::Tuner);
        assert_eq!(read_kernel_knobs(), *start, "{words:?} step {step}");
    }
}

/// Kills at every step of every knob in `start`, which `now` reads; returns the number of kills.
fn kill_at_every_point(
    m: &LiveMachine,
    start: &BTreeMap<&'static str, String>,
    now: fn() -> BTreeMap<&'static str, String>,
) -> u32 {
    let mut points = 0;
    for knob in start.keys() {
        let word = format!("{}.{knob}={}", sysctl_dir(knob), nearby_value(knob, start, 1));
        for victim in [Victim::Tuner, Victim::Screen, Victim::Both] {
            for step in 1..=steps_of_change_and_undo(1) {
                kill_and_undo(m, std::slice::from_ref(&word), step, victim);
                assert_eq!(now(), *start, "{word} step {step} {victim:?}");
                points += 1;
            }
        }
    }
    points
}

/// Kills once, and undoes the change where the tuner was killed.
pub fn kill_and_undo(m: &LiveMachine, words: &[String], step: u32, victim: Victim) {
    let (killed, reached) = run_and_kill(m, words, step, victim);
    assert!(reached, "{words:?}: step {step} is never passed, {victim:?}");
    assert_eq!(killed, victim != Victim::Screen, "{words:?} step {step} {victim:?}");
    if killed {
        let undone = m.tune(&["undo"]);
        assert_eq!(undone.status.code(), Some(0), "{words:?} step {step} {victim:?}: {}", output_text(&undone));
    }
}

#[test]
fn multi_knob_changes_are_restored_from_every_kill_point() {
    let Some(m) = LiveMachine::acquire("several_knobs_at_once_are_restored_from_every_step") else { return };
    let knobs = ["dirty_background_ratio", "swappiness", "dirty_bytes"];
    let words = knobs.map(|k| format!("vm.{k}={}", nearby_value(k, &m.saved, 1)));
    for step in 1..=steps_of_change_and_undo(words.len()) {
        kill_and_undo(&m, &words, step, Victim::Tuner);
        assert_eq!(read_vm_knobs(), m.saved, "step {step}");
    }
    println!("{} points, all restored", steps_of_change_and_undo(words.len()));
}

#[test]
fn byte_limits_are_restored_as_byte_limits() {
    let Some(m) = LiveMachine::acquire("pairs_set_in_bytes_are_restored_in_bytes") else { return };
    if m.saved["dirty_ratio"] == "0" || m.saved["dirty_background_ratio"] == "0" {
        eprintln!("SKIPPED pairs_set_in_bytes_are_restored_in_bytes: this machine is in bytes already");
        return;
    }
    let mut points = 0;
    for (half, bytes) in [("dirty_bytes", 4u64 << 30), ("dirty_background_bytes", 1 << 30)] {
        let other = half.replace("bytes", "ratio");
        for knob in [half, other.as_str()] {
            for step in 1..=steps_of_change_and_undo(1) {
                write_knob(half, &bytes.to_string());
                let start = read_vm_knobs();
                let word = format!("vm.{knob}={}", nearby_value(knob, &start, 1));
                kill_and_undo(&m, std::slice::from_ref(&word), step, Victim::Tuner);
                let stands = read_vm_knobs();
                write_knobs(&m.saved);
                assert_eq!(stands, start, "{word} step {step}");
                points += 1;
            }
        }
    }
    println!("{points} points, all restored");
    assert_eq!(read_vm_knobs(), m.saved);
}

#[test]
fn an_admins_edit_after_a_crash_is_never_overwritten() {
    let Some(m) = LiveMachine::acquire("an_admins_edit_after_a_death_is_never_overwritten") else { return };
    let (mut points, mut reported) = (0, 0);
    let beside = SavedKernelKnobs::save(&m);
    let mut start = m.saved.clone();
    start.extend(beside.0.clone());
    // A switch has no third value for an admin to set.
    start.remove("task_delayacct");
    for knob in start.keys() {
        let word = format!("{}.{knob}={}", sysctl_dir(knob), nearby_value(knob, &start, 1));
        let theirs = nearby_value(knob, &start, 2);
        for step in 1..=steps_of_change_and_undo(1) {
            let (killed, _) = run_and_kill(&m, std::slice::from_ref(&word), step, Victim::Tuner);
            assert!(killed);
            write_knob(knob, &theirs);
            let undone = m.tune(&["undo"]);
            let stands = read_knob(knob);
            write_knobs(&start);
            assert_eq!(stands, theirs, "{word} step {step}: {}", output_text(&undone));
            // Once the write is recorded, undo must report the foreign value.
            if (8..steps_of_change_and_undo(1) - 1).contains(&step) {
                assert_eq!(undone.status.code(), Some(1), "{word} step {step}: {}", output_text(&undone));
                assert!(output_text(&undone).contains("CONFLICT"), "{word} step {step}: {}", output_text(&undone));
                reported += 1;
            }
            points += 1;
        }
    }
    println!("{points} points, none overwritten, {reported} reported");
}
