//! Each system call that the full screen, its helpers and its children make fails, or stalls, in every thread once: the
//! program goes on, or says why it cannot, and the terminal is restored. The same for a change of a setting on a lease:
//! the old value is restored.
//!
//! A run takes a second or two, so CI makes a few; `FAULTS=all cargo test --test faults -- --nocapture` makes all and
//! writes the table in `docs/faults.md`. Needs strace; otherwise the test prints that it is skipped.

#[path = "tune/journal_faults.rs"]
mod journal_faults;
#[path = "tune/machine.rs"]
#[allow(dead_code)]
mod machine;
mod pty_harness;

use machine::{LiveMachine, read_knob, write_knob};
use pty_harness::{BINARY, TIMEOUT, Terminal, TerminalOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Calls, and the errors that the kernel may give them.
const CALLS: &[(&str, &[&str])] = &[
    ("bpf", &["EPERM", "ENOMEM"]),
    ("clone", &["EAGAIN"]),
    ("clone3", &["EAGAIN"]),
    ("close_range", &["ENOSYS"]),
    ("epoll_create1", &["EMFILE"]),
    ("epoll_ctl", &["ENOMEM"]),
    ("epoll_wait", &["EINTR"]),
    ("eventfd2", &["EMFILE"]),
    ("fcntl", &["EMFILE"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("flock", &["ENOLCK"]),
    ("fstat", &["EIO"]),
    ("fstatfs", &["EIO"]),
    ("getdents64", &["EIO"]),
    ("getrandom", &["ENOSYS"]),
    ("ioctl", &["EIO"]),
    ("ioprio_get", &["ESRCH"]),
    ("kill", &["ESRCH"]),
    ("lseek", &["EIO"]),
    ("madvise", &["EINVAL"]),
    ("mlockall", &["ENOMEM"]),
    ("mmap", &["ENOMEM"]),
    ("mprotect", &["ENOMEM"]),
    ("mremap", &["ENOMEM"]),
    ("munlockall", &["EPERM"]),
    ("newfstatat", &["EIO"]),
    ("openat", &["EIO", "EMFILE"]),
    ("perf_event_open", &["EACCES"]),
    ("pipe2", &["EMFILE"]),
    ("poll", &["EINTR"]),
    ("ppoll", &["EINTR"]),
    ("prctl", &["EPERM"]),
    ("pread64", &["EIO"]),
    ("read", &["EIO", "EINTR"]),
    ("readlink", &["EIO"]),
    ("recvfrom", &["ECONNRESET"]),
    ("recvmsg", &["ENOMEM"]),
    ("sched_getaffinity", &["EINVAL"]),
    ("sendmsg", &["ENOBUFS"]),
    ("sendto", &["ENOBUFS"]),
    ("setsid", &["EPERM"]),
    ("setsockopt", &["ENOMEM"]),
    ("socket", &["EMFILE"]),
    ("socketpair", &["EMFILE"]),
    ("statfs", &["EIO"]),
    ("statx", &["EIO"]),
    ("timerfd_create", &["EMFILE"]),
    ("timerfd_settime", &["EINVAL"]),
    ("uname", &["EFAULT"]),
    ("wait4", &["ECHILD"]),
    ("write", &["EIO"]),
];
/// Which of its calls fails in each thread and process: the first, a later one, or every tenth from the fifth on.
const WHEN: &[&str] = &["1", "7", "5+10"];
/// How long a stalled call takes, as strace has it.
const STALL: &str = "delay_enter=1s:when=9";
/// What CI tries.
const FEW: &[&str] = &["clone3:error=EAGAIN:when=1", "openat:error=EMFILE:when=5+10", "read:error=EIO:when=7"];

/// What CI tries with a change of a setting.
const FEW_CHANGES: &[&str] =
    &["fdatasync:error=ENOSPC:when=2+1", "fdatasync:error=EIO:when=1", "openat:error=EMFILE:when=5+10"];
/// The knob that is changed, and how long the tuner may take to restore it: sixty tries, a second apart.
const KNOB: &str = "dirty_expire_centisecs";
const RESTORE_TIMEOUT: Duration = Duration::from_secs(75);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It drew, took keys and ended as asked.
    GoesOn,
    /// It drew, then ended with a message.
    EndsWithMessage,
    /// It ended, and had no way to say why.
    EndsSilently,
    /// It did not start, and said why.
    RefusesWithMessage,
    /// Not tried.
    NotTried,
    /// The setting was changed, and restored at the end of its lease.
    Restored,
}

impl Outcome {
    fn text(self) -> &'static str {
        match self {
            Outcome::GoesOn => "goes on",
            Outcome::EndsWithMessage => "ends, says why",
            Outcome::EndsSilently => "ends",
            Outcome::RefusesWithMessage => "does not start, says why",
            Outcome::NotTried => "-",
            Outcome::Restored => "changes and restores",
        }
    }
}

/// Runs the program under one injection of strace, presses keys and quits.
fn run_with(injection: &str) -> Result<Outcome, String> {
    let inject = format!("inject={injection}");
    let call = injection.split(':').next().unwrap();
    let trace = format!("trace={call}");
    let args = vec!["-f", "-o", "/dev/null", "-e", &trace, "-e", &inject, BINARY, "-d", "0.2"];
    let mut t = Terminal::start(TerminalOptions {
        program: Path::new("/usr/bin/strace"),
        args,
        size: (120, 40),
        ..Default::default()
    });
    let start = Instant::now();
    while t.is_running() && !t.contents().contains("q quit") {
        if start.elapsed() > TIMEOUT {
            return Err(format!("neither draws nor ends:\n{}", t.contents()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let has_drawn = t.is_running();
    for key in ["2", "3", "4", "7", "5", "1"] {
        if t.is_running() {
            t.send(key);
            std::thread::sleep(Duration::from_millis(60));
        }
    }
    let ended_itself = !t.is_running();
    if !ended_itself {
        t.send("q");
    }
    let start = Instant::now();
    while t.is_running() {
        if start.elapsed() > TIMEOUT {
            return Err(format!("does not end after q:\n{}", t.contents()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = t.wait_for_exit();
    wait_for_restored_terminal(&t)?;
    // What was said last may still be on its way.
    let start = Instant::now();
    while t.contents().trim().is_empty() && start.elapsed() < TIMEOUT / 30 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = t.contents();
    match (status.exit_code(), has_drawn) {
        _ if said.contains("internal error") => Err(format!("a panic: {said}")),
        (0, true) if !ended_itself => Ok(Outcome::GoesOn),
        (0, _) => Err(format!("ends with exit code 0 by itself: {said}")),
        (_, true) if !said.trim().is_empty() => Ok(Outcome::EndsWithMessage),
        (_, false) if !said.trim().is_empty() => Ok(Outcome::RefusesWithMessage),
        // Nothing can be said where nothing can be written, or before the dynamic linker has mapped the program.
        _ if injection.starts_with("write:") || injection == "mmap:error=ENOMEM:when=1" => Ok(Outcome::EndsSilently),
        (code, _) => Err(format!("exit code {code} without a word")),
    }
}

/// The fork server restores a terminal that the program could not.
fn wait_for_restored_terminal(t: &Terminal) -> Result<(), String> {
    let start = Instant::now();
    while t.modes() != t.initial_modes() || t.contents().contains("q quit") {
        if start.elapsed() > TIMEOUT / 6 {
            return Err(format!("the terminal is not restored:\n{}", t.contents()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Changes a setting on a lease of a second under one injection of strace.
fn change_with(machine: &LiveMachine, injection: &str) -> Result<Outcome, String> {
    let before = read_knob(KNOB);
    let assignment = format!("vm.{KNOB}={}", before.parse::<u64>().unwrap() - 1);
    let call = injection.split(':').next().unwrap();
    let (trace, inject) = (format!("trace={call}"), format!("inject={injection}"));
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "-e", &trace, "-e", &inject, BINARY, "--root"]).arg(machine.dir.path());
    command.args(["tune", "set", &assignment, "--for", "1s"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut strace = command.spawn().unwrap();
    // strace ends when the last process does, the tuner.
    let start = Instant::now();
    while strace.try_wait().unwrap().is_none() {
        if start.elapsed() > RESTORE_TIMEOUT {
            let _ = strace.kill();
            write_knob(KNOB, &before);
            return Err("the tuner does not end".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let out = strace.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let after = read_knob(KNOB);
    if after != before {
        write_knob(KNOB, &before);
        return Err(format!("{after} stays, it was {before}: {said}"));
    }
    match out.status.code() {
        _ if said.contains("internal error") => Err(format!("a panic: {said}")),
        Some(0) => Ok(Outcome::Restored),
        _ if !said.trim().is_empty() => Ok(Outcome::RefusesWithMessage),
        _ if call == "write" || injection == "mmap:error=ENOMEM:when=1" => Ok(Outcome::EndsSilently),
        code => Err(format!("exit code {code:?} without a word")),
    }
}

#[test]
fn a_failing_or_stalled_system_call_leaves_no_setting_changed() {
    const NAME: &str = "a_failing_or_stalled_system_call_leaves_no_setting_changed";
    if !has_strace() {
        eprintln!("SKIPPED {NAME}: needs strace");
        return;
    }
    let Some(machine) = LiveMachine::acquire(NAME) else { return };
    if is_full_run() {
        // strace would fail the wake-ups of the event loop, too: writes to an eventfd, which cannot fail.
        let change = |injection: &str| match injection.starts_with("write:") {
            true => Ok(Outcome::NotTried),
            false => change_with(&machine, injection),
        };
        return try_all("Changing a setting on a lease", "docs/faults-tune.md", change);
    }
    for injection in FEW_CHANGES {
        let outcome = change_with(&machine, injection);
        assert!(outcome.is_ok(), "{injection}: {}", outcome.unwrap_err());
    }
}

fn is_full_run() -> bool {
    std::env::var("FAULTS").is_ok_and(|which| which == "all")
}

fn has_strace() -> bool {
    Command::new("strace").arg("-V").output().is_ok()
}

#[test]
fn a_failing_or_stalled_system_call_leaves_a_usable_terminal() {
    if !has_strace() {
        eprintln!("SKIPPED a_failing_or_stalled_system_call_leaves_a_usable_terminal: needs strace");
        return;
    }
    if is_full_run() {
        return try_all("The full screen", "docs/faults.md", run_with);
    }
    for injection in FEW {
        let outcome = run_with(injection);
        assert!(outcome.is_ok(), "{injection}: {}", outcome.unwrap_err());
    }
}

/// Tries every call with every error, and stalled, and writes the table.
fn try_all(title: &str, page: &str, run: impl Fn(&str) -> Result<Outcome, String>) {
    let only = std::env::var("FAULTS_ONLY").unwrap_or_default();
    let (mut rows, mut failures) = (BTreeMap::new(), String::new());
    for (call, errors) in CALLS.iter().filter(|(call, _)| only.is_empty() || *call == only) {
        let error =
            |error: &&str| WHEN.iter().map(move |when| format!("error={error}:when={when}")).collect::<Vec<_>>();
        for what in errors.iter().flat_map(error).chain([STALL.to_owned()]) {
            let result = run(&format!("{call}:{what}"));
            println!("{call} {what}: {}", result.as_ref().map_or_else(|why| why.as_str(), |outcome| outcome.text()));
            if let Err(why) = &result {
                let _ = writeln!(failures, "{call} {what}: {why}");
            }
            rows.insert((*call, what), result.map_or("FAILED", Outcome::text));
        }
    }
    if only.is_empty() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(page), table(title, &rows)).unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

fn table(title: &str, rows: &BTreeMap<(&str, String), &str>) -> String {
    let mut page = format!(
        "# Failing system calls: {title}\n\nEach system call that the program, its helpers and its children make fails, or stalls for a \
         second, in every thread and process: its first call, its seventh, or every tenth from the fifth on. Whatever happens, the \
         program ends, the terminal is as it was, and so is the setting. `FAULTS=all cargo test --test faults -- --nocapture` repeats \
         it and writes this table; it needs strace.\n\n| call | error | first | seventh | every tenth | stalled |\n|---|---|---|---|---|---|\n",
    );
    for (call, errors) in CALLS {
        for error in *errors {
            let at = |what: String| rows.get(&(*call, what)).copied().unwrap_or("-");
            let cells: Vec<&str> = WHEN.iter().map(|when| at(format!("error={error}:when={when}"))).collect();
            let _ = writeln!(page, "| {call} | {error} | {} | {} |", cells.join(" | "), at(STALL.to_owned()));
        }
    }
    page
}
