//! The journal is lost or cannot be written at every step of a change on a lease, and settings are taken only in part:
//! the old value comes back, or nothing was changed.
//!
//! `FAULTS=all cargo test --test faults journal -- --nocapture` tries every step and writes `docs/faults-journal.md`.

use super::machine::{LiveMachine, read_knob, write_knob};
use super::{KNOB, RESTORE_TIMEOUT, has_strace, is_full_run};
use iotop_plus::tuning::protocol::TunerRequest;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What happens to the journal while the tuner is stopped.
const LOSSES: [&str; 4] = ["removed", "directory removed", "truncated", "damaged"];
/// The steps of a change of one knob, and of undoing it: see the kill points in `tests/tune/killed.rs`.
const STEPS: u32 = 21;
const CHANGE_STEPS: u32 = 16;
/// How the calls that write the journal fail: a part of the record is missing where the kernel says it wrote it.
const FAILURES: [(&str, &str); 4] = [
    ("write ENOSPC", "write:error=ENOSPC"),
    ("write EIO", "write:error=EIO"),
    ("write in part", "write:retval=7"),
    ("fdatasync EIO", "fdatasync:error=EIO"),
];
/// How the write of the setting itself fails.
const SETTING_FAILURES: [(&str, &str); 3] =
    [("write EIO", "write:error=EIO"), ("write in part", "write:retval=1"), ("openat EMFILE", "openat:error=EMFILE")];
/// The records of a change on a lease: begun, about to be written, written, restored.
const RECORDS: u32 = 4;

type Rows = BTreeMap<(&'static str, &'static str, u32), String>;

#[test]
fn a_journal_lost_at_any_step_leaves_no_setting_changed() {
    let Some(machine) = LiveMachine::acquire("a_journal_lost_at_any_step_leaves_no_setting_changed") else { return };
    let mut rows = Rows::new();
    for loss in LOSSES {
        for step in (1..=STEPS).filter(|step| is_full_run() || step % 4 == 1) {
            let outcome = lose_journal_at(&machine, loss, step);
            println!("journal {loss} at step {step}: {outcome}");
            rows.insert(("lost", loss, step), outcome);
        }
    }
    finish(rows);
}

#[test]
fn a_journal_or_setting_written_in_part_or_not_leaves_no_setting_changed() {
    const NAME: &str = "a_journal_or_setting_written_in_part_or_not_leaves_no_setting_changed";
    if !has_strace() {
        eprintln!("SKIPPED {NAME}: needs strace");
        return;
    }
    let Some(machine) = LiveMachine::acquire(NAME) else { return };
    // The journal has to exist where strace looks for its calls.
    let made = machine.tune(&["set", "--for", "60s", &assignment()]);
    assert!(made.status.success() && machine.tune(&["undo"]).status.success());
    let (journal, setting) = (machine.journal(), super::machine::knob_path(KNOB));
    let mut rows = Rows::new();
    for (kind, path, failures, calls) in [
        ("journal", journal.as_path(), &FAILURES[..], RECORDS),
        ("setting", Path::new(&setting), &SETTING_FAILURES[..], 2),
    ] {
        for (name, inject) in failures {
            for call in (1..=calls).filter(|call| is_full_run() || kind == "setting" || *call == 2) {
                let outcome = change_with_failing(&machine, path, &format!("{inject}:when={call}"));
                println!("{kind} {name} in call {call}: {outcome}");
                rows.insert((kind, *name, call), outcome);
            }
        }
    }
    finish(rows);
}

fn assignment() -> String {
    format!("vm.{KNOB}={}", read_knob(KNOB).parse::<u64>().unwrap() - 1)
}

/// Stops the tuner at a step, loses the journal, lets the tuner go on, and has it restore the old value.
fn lose_journal_at(machine: &LiveMachine, loss: &str, step: u32) -> String {
    let before = read_knob(KNOB);
    let mut tuner = machine
        .command(&["tuner", "--kill", &format!("{step}:stop")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = tuner.stdin.take().unwrap();
    let mut send = |request: &TunerRequest| {
        let line = serde_json::to_string(request).unwrap() + "\n";
        input.write_all(line.as_bytes()).unwrap();
    };
    send(&TunerRequest::Set { assignments: vec![assignment()], lease_secs: Some(600) });
    if step > CHANGE_STEPS {
        send(&TunerRequest::Undo);
    }
    wait_until(&mut tuner, is_stopped);
    let (file, garbage) = (machine.journal(), vec![b'x'; 3000]);
    match loss {
        "removed" => std::fs::remove_file(file).unwrap(),
        "directory removed" => std::fs::remove_dir_all(file.parent().unwrap()).unwrap(),
        "truncated" => std::fs::write(file, "").unwrap(),
        _ => std::fs::write(file, garbage).unwrap(),
    }
    kill_process(Pid::from_raw(tuner.id() as i32).unwrap(), Signal::CONT).unwrap();
    // A closed pipe ends the lease.
    drop(input);
    wait_until(&mut tuner, |tuner| tuner.try_wait().unwrap().is_some());
    outcome_of(tuner, &before)
}

fn is_stopped(tuner: &mut Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", tuner.id())).unwrap_or_default();
    assert!(tuner.try_wait().unwrap().is_none(), "the tuner ended before that step");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn wait_until(tuner: &mut Child, is: impl Fn(&mut Child) -> bool) {
    let start = Instant::now();
    while !is(tuner) {
        assert!(start.elapsed() < RESTORE_TIMEOUT, "the tuner does not get there");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Changes the setting on a lease of a second while the calls on `path` fail.
fn change_with_failing(machine: &LiveMachine, path: &Path, injection: &str) -> String {
    let before = read_knob(KNOB);
    let call = injection.split(':').next().unwrap();
    let (trace, inject) = (format!("trace={call}"), format!("inject={injection}"));
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "-P"]).arg(path).args(["-e", &trace, "-e", &inject]);
    command.arg(super::machine::BIN).arg("--root").arg(machine.dir.path());
    command.args(["tune", "set", &assignment(), "--for", "1s"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    // strace ends when the last process does, the tuner.
    let mut strace = command.spawn().unwrap();
    wait_until(&mut strace, |strace| strace.try_wait().unwrap().is_some());
    outcome_of(strace, &before)
}

/// What came of it; the setting is put right where it was not.
fn outcome_of(child: Child, before: &str) -> String {
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let after = read_knob(KNOB);
    if after != before {
        write_knob(KNOB, before);
        return format!("FAILED: {after} stays, it was {before}: {said}");
    }
    // The reply of the tuner, or the text of `tune set`.
    match said.contains("\"Applied\"") || said.contains("is on lease") {
        true => "changes and restores".into(),
        false if said.trim().is_empty() => "FAILED: without a word".into(),
        false => "changes nothing, says why".into(),
    }
}

/// Writes the part of the page that these rows are, and fails if one of them did.
fn finish(rows: Rows) {
    if is_full_run() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults-journal.md");
        let known = std::fs::read_to_string(&page).unwrap_or_default();
        std::fs::write(page, with_tables(&known, &rows)).unwrap();
    }
    let failed: Vec<_> = rows.iter().filter(|(_, outcome)| outcome.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

const INTRODUCTION: &str = "# Failing journal and settings\n\nThe journal of a change on a lease is lost while the tuner \
    is stopped at one of the steps of making (1 to 16) and undoing (17 to 21) it, or a call that writes the journal or \
    the setting fails. Whatever happens, the old value comes back. `FAULTS=all cargo test --test faults journal -- \
    --nocapture` repeats it and writes this page; calls fail by strace.\n";

/// The page with the tables of these rows; those of the other test stay.
fn with_tables(page: &str, rows: &Rows) -> String {
    let title = |kind: &str| match kind {
        "lost" => "Journal lost at a step",
        "journal" => "Calls on the journal",
        _ => "Calls on the setting",
    };
    let old = |kind: &str| {
        let section = page.split("\n## ").find(|section| section.starts_with(title(kind)));
        section.map_or(String::new(), |section| format!("\n## {}", section.trim_end().to_owned() + "\n"))
    };
    let mut text = INTRODUCTION.to_owned();
    for kind in ["lost", "journal", "setting"] {
        if !rows.keys().any(|(of, ..)| *of == kind) {
            text += &old(kind);
            continue;
        }
        let _ = write!(text, "\n## {}\n\n| | at | outcome |\n|---|---|---|\n", title(kind));
        // Steps or calls with one outcome make one row.
        let mut grouped: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for ((_, name, at), outcome) in rows.iter().filter(|((of, ..), _)| *of == kind) {
            grouped.entry((name, outcome)).or_default().push(at.to_string());
        }
        for ((name, outcome), at) in grouped {
            let _ = writeln!(text, "| {name} | {} | {outcome} |", at.join(", "));
        }
    }
    text
}
