//! Sync tracing on the running kernel: every sync is counted for its file, and nothing stays attached when it is not
//! needed.
//!
//! Skipped by name where tracing is not permitted.

use crate::machine::{UnprivilegedUser, any_loaded, bpf_programs, check_tracing, tracepoint_programs};
use crate::poll_until;
use crate::pty_harness::{BINARY, Terminal};
use iotop_plus::bpf::Tracer;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::syncs::{SyncCall, SyncCounts, SyncsRaw};
use iotop_plus::root::Root;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Least number of programs for syncs: entry and exit of six calls.
const MIN_PROGRAMS: usize = 12;

/// Checks that this machine permits tracing system calls.
fn check_syscall_tracing() -> Result<(), String> {
    check_tracing()?;
    let point = Root::live().sys("kernel/tracing/events/syscalls/sys_enter_fsync/id");
    std::fs::read(&point).map(drop).map_err(|err| format!("{}: {err}", point.display()))
}

/// Returns a tracer with syncs loaded.
fn load_tracer(threshold: Duration) -> Tracer {
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    tracer.request_syncs(Some(threshold));
    poll_until("the programs", || tracer.syncs.read().ok().map(drop));
    tracer
}

fn read_syncs(tracer: &Tracer) -> SyncsRaw {
    match tracer.syncs.read() {
        Reading::Ok(raw) => raw,
        other => panic!("{other:?}"),
    }
}

fn find_counts(raw: &SyncsRaw, call: SyncCall, ino: u64) -> Option<&SyncCounts> {
    raw.files.iter().find(|c| c.file.pid == std::process::id() && c.file.call == call && c.file.ino == ino)
}

#[test]
fn every_sync_is_counted_for_its_file() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped every_sync_is_counted_on_its_file: {why}");
    }
    let tracer = load_tracer(Duration::ZERO);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/c/wal");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(&path).unwrap();
    let ino = rustix::fs::stat(&path).unwrap().st_ino;
    // Two threads at once would lose counts that are not atomic.
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| (0..150).for_each(|_| rustix::fs::fsync(&file).unwrap()));
        }
    });
    (0..200).for_each(|_| rustix::fs::fdatasync(&file).unwrap());
    rustix::fs::syncfs(&file).unwrap();
    rustix::fs::sync();
    // Read slow syncs once, so that there is space for more.
    read_syncs(&tracer);
    let null = File::open(Root::live().dev("null")).unwrap();
    rustix::fs::fsync(&null).unwrap_err();
    let raw = read_syncs(&tracer);
    assert_eq!((raw.unavailable.as_slice(), raw.drops.files), ([].as_slice(), 0));
    let fsync = find_counts(&raw, SyncCall::Fsync, ino).unwrap();
    assert_eq!((fsync.calls, fsync.errors, fsync.histogram.total()), (300, 0, 300));
    assert!(fsync.max_ns > 0 && fsync.total_ns >= fsync.max_ns && fsync.last_ended_ns <= raw.read_ns);
    assert!(fsync.file.path_tail.sanitized().ends_with("/a/b/c/wal"), "{}", fsync.file.path_tail.sanitized());
    assert_eq!(find_counts(&raw, SyncCall::Fdatasync, ino).unwrap().calls, 200);
    // Other tests of this process may sync as well.
    assert!(find_counts(&raw, SyncCall::Syncfs, 0).is_some_and(|c| c.calls >= 1 && c.file.file_system().is_some()));
    assert!(find_counts(&raw, SyncCall::Sync, 0).is_some_and(|c| c.calls >= 1 && c.file.file_system().is_none()));
    let failed = raw.files.iter().find(|c| c.errors > 0 && c.file.path_tail.sanitized() == "null").unwrap();
    assert_eq!((failed.calls, failed.errors), (1, 1));
    assert!(raw.slow.iter().any(|s| s.error == rustix::io::Errno::INVAL.raw_os_error() as u32));
    assert!(!raw.slow.is_empty() && raw.slow.windows(2).all(|w| w[0].id + 1 == w[1].id));
}

#[test]
fn only_syncs_above_the_threshold_are_listed() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped only_what_takes_as_long_as_was_said_is_listed: {why}");
    }
    let threshold = Duration::from_secs(3600);
    let tracer = load_tracer(threshold);
    let wait_for_threshold = |wanted: Duration| {
        poll_until("the threshold", || (read_syncs(&tracer).threshold_ns == wanted.as_nanos() as u64).then_some(()))
    };
    // Until then that of the program is in force, and syncs of other tests are listed.
    wait_for_threshold(threshold);
    let file = tempfile::tempfile().unwrap();
    let ino = file.metadata().unwrap().ino();
    let is_listed = |raw: SyncsRaw| raw.slow.iter().any(|slow| slow.file.ino == ino);
    rustix::fs::fsync(&file).unwrap();
    assert!(!is_listed(read_syncs(&tracer)));
    tracer.request_syncs(Some(Duration::ZERO));
    wait_for_threshold(Duration::ZERO);
    rustix::fs::fsync(&file).unwrap();
    assert!(is_listed(read_syncs(&tracer)));
    let slow = read_syncs(&tracer).slow;
    let distinct: BTreeSet<_> = slow.iter().map(|s| (s.tid, s.started_ns)).collect();
    assert_eq!(distinct.len(), slow.len(), "a reading repeats those of the one before");
    tracer.request_syncs(None);
    let unwanted = |why: String| why.contains("traced only").then_some(());
    poll_until("nobody to want it", || tracer.syncs.read().unavailable_reason(0).and_then(unwanted));
}

/// Compares with a benchmark that reports its own number of syncs.
#[test]
fn sync_counts_match_the_benchmark() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped a_benchmarks_syncs_are_those_it_tells_of: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let tracer = load_tracer(Duration::from_millis(10));
    let mut bench = Command::new(BINARY);
    bench.args(["bench", "run", "fsync"]).arg(dir.path());
    bench.args(["--time", "2", "--size", "1M", "--no-keep", "-q", "--format", "json"]);
    let out = bench.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let reported: Value = serde_json::from_slice(&out.stdout).unwrap();
    let reported =
        reported["parts"][0]["sync"]["ios"].as_u64().unwrap_or_else(|| panic!("no count of syncs in {reported}"));
    let raw = read_syncs(&tracer);
    let seen = raw.files.iter().filter(|c| c.file.comm.sanitized().starts_with("iotop-"));
    let seen: Vec<u64> = seen.filter(|c| c.file.call == SyncCall::Fdatasync).map(|c| c.calls).collect();
    println!("the benchmark says {reported}, the kernel {seen:?}");
    assert!(seen.contains(&reported), "the benchmark says {reported}, the kernel {seen:?}");
}

/// Waits until a process has loaded all programs for syncs; returns their IDs.
fn wait_for_sync_programs(pid: u32) -> Vec<u32> {
    poll_until("programs in the kernel", || Some(tracepoint_programs(pid)).filter(|ids| ids.len() >= MIN_PROGRAMS))
}

#[test]
fn sync_programs_are_detached_on_leaving_the_view_and_on_exit() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped nothing_stays_attached_when_the_view_is_left_or_the_program_ends: {why}");
    }
    let mut screen = Terminal::with_args(&[]);
    screen.wait_for_text("q quit");
    let without = poll_until("tracing of requests", || Some(bpf_programs(screen.pid())).filter(|ids| ids.len() >= 2));
    assert_eq!(tracepoint_programs(screen.pid()), [0; 0], "syncs are traced though nobody asked");
    screen.send("F");
    let of_syncs = wait_for_sync_programs(screen.pid());
    screen.send("1");
    poll_until("the programs to go", || (!any_loaded(&of_syncs)).then_some(()));
    assert!(any_loaded(&without), "the others stay");
    screen.send("F");
    let again = wait_for_sync_programs(screen.pid());
    screen.send("q");
    assert_eq!(screen.wait_for_exit().exit_code(), 0);
    poll_until("the programs to go", || (!any_loaded(&again)).then_some(()));
}

#[test]
fn sync_programs_are_detached_while_the_program_is_stopped() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped sync_programs_are_detached_while_the_program_is_stopped: {why}");
    }
    let mut screen = Terminal::with_args(&[]);
    screen.wait_for_text("q quit");
    screen.send("F");
    let loaded = wait_for_sync_programs(screen.pid());
    screen.send("\x1a");
    let stat = format!("/proc/{}/stat", screen.pid());
    poll_until("stopped", || {
        let text = std::fs::read_to_string(&stat).ok()?;
        text.rsplit(')').next()?.starts_with(" T").then_some(())
    });
    // The kernel frees them a moment later.
    poll_until("the programs to go", || (!any_loaded(&loaded)).then_some(()));
    screen.signal(Signal::CONT);
    wait_for_sync_programs(screen.pid());
}

#[test]
fn sync_programs_are_detached_after_sigkill() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped nothing_stays_attached_after_a_kill: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.args(["record", "-q", "--syncs"]).arg(dir.path().join("r")).stdin(Stdio::null());
    let mut recording = command.spawn().unwrap();
    let ids = wait_for_sync_programs(recording.id());
    kill_process(Pid::from_child(&recording), Signal::KILL).unwrap();
    recording.wait().unwrap();
    poll_until("the programs to go", || (!any_loaded(&ids)).then_some(()));
}

fn syncs_reason(mut command: Command) -> String {
    command.args(["snapshot", "--pane", "syncs", "--format", "json", "-d", "0.5"]);
    let out = command.stdin(Stdio::null()).output().unwrap();
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(object["syncs"].is_null() && object.get("slow_syncs").is_some(), "{object}");
    let gaps = object["unavailable"].as_array().unwrap();
    let gap = gaps.iter().find(|g| g["source"] == "syncs").unwrap_or_else(|| panic!("no reason: {gaps:?}"));
    gap["reason"].as_str().unwrap().to_owned()
}

#[test]
fn missing_capabilities_for_sync_tracing_are_reported() {
    let nobody = match check_syscall_tracing().and_then(|()| UnprivilegedUser::new()) {
        Ok(nobody) => nobody,
        Err(why) => return println!("skipped who_may_not_trace_is_told_what_is_missing: {why}"),
    };
    let reported = syncs_reason(nobody.command(&[]));
    assert!(reported.contains("CAP_BPF") && reported.contains("CAP_PERFMON"), "{reported}");
    let reported = syncs_reason(nobody.command(&["bpf", "perfmon"]));
    assert!(reported.contains("CAP_DAC_READ_SEARCH"), "{reported}");
    let mut off = Command::new(BINARY);
    off.arg("--no-tracing");
    assert!(syncs_reason(off).contains("--no-tracing"));
}

#[test]
fn recorded_syncs_are_replayed() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped what_is_recorded_is_replayed: {why}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let mut record = Command::new(BINARY);
    record.args(["record", "-q", "--syncs", "-d", "0.2", "--for", "3"]).arg(&path).stdin(Stdio::null());
    let mut recording = record.spawn().unwrap();
    wait_for_sync_programs(recording.id());
    let file = File::create(dir.path().join("synced")).unwrap();
    while recording.try_wait().unwrap().is_none() {
        rustix::fs::fsync(&file).unwrap();
    }
    let lines = |path: &Path| {
        let mut replay = Command::new(BINARY);
        replay.arg("replay").arg(path).args(["--format", "json", "--pane", "syncs"]).stdin(Stdio::null());
        String::from_utf8(replay.output().unwrap().stdout).unwrap()
    };
    let objects: Vec<Value> = lines(&path).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let ours = |o: &&Value| {
        let rows = o["syncs"].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().any(|r| r["path"].as_str().is_some_and(|p| p.ends_with("/synced")))
    };
    assert!(objects.iter().any(|o| ours(&o)), "{} samples, none with our syncs", objects.len());
}
