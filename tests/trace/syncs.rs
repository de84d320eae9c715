//! Syncs on the running kernel: every one is counted, on the file it was for, and nothing stays attached when nobody
//! looks any more.
//!
//! Skips by name where this machine does not let us trace.

use crate::machine::{Nobody, may_trace, of_calls, programs_of, still_loaded};
use crate::poll_until;
use crate::pty_harness::{BINARY, Terminal};
use iotop_plus::bpf::Tracer;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::syncs::{SyncCall, SyncCounts, SyncsRaw};
use iotop_plus::root::Root;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Programs that trace syncs, at least: a begin and an end of each of six calls.
const MIN_PROGRAMS: usize = 12;

/// Whether this machine lets us trace system calls.
fn check_syscall_tracing() -> Result<(), String> {
    may_trace()?;
    let point = Root::live().sys("kernel/tracing/events/syscalls/sys_enter_fsync/id");
    std::fs::read(&point).map(drop).map_err(|err| format!("{}: {err}", point.display()))
}

/// A tracer whose syncs are there.
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
    // Two threads at once: a count that is not atomic would lose some.
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| (0..150).for_each(|_| rustix::fs::fsync(&file).unwrap()));
        }
    });
    (0..200).for_each(|_| rustix::fs::fdatasync(&file).unwrap());
    rustix::fs::syncfs(&file).unwrap();
    rustix::fs::sync();
    // Room for what is listed one by one: that of the many is taken.
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
    // Only what is on the machine's busy edge: others of this test's process may sync as well.
    assert!(find_counts(&raw, SyncCall::Syncfs, 0).is_some_and(|c| c.calls >= 1 && c.file.device_id().is_some()));
    assert!(find_counts(&raw, SyncCall::Sync, 0).is_some_and(|c| c.calls >= 1 && c.file.device_id().is_none()));
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
    let tracer = load_tracer(Duration::from_secs(3600));
    let file = tempfile::tempfile().unwrap();
    rustix::fs::fsync(&file).unwrap();
    assert_eq!(read_syncs(&tracer).slow, []);
    tracer.request_syncs(Some(Duration::ZERO));
    poll_until("the new threshold", || (read_syncs(&tracer).threshold_ns == 0).then_some(()));
    rustix::fs::fsync(&file).unwrap();
    assert!(!read_syncs(&tracer).slow.is_empty());
    tracer.request_syncs(None);
    let unwanted = |why: String| why.contains("only while").then_some(());
    poll_until("nobody to want it", || tracer.syncs.read().unavailable_reason(0).and_then(unwanted));
}

/// A benchmark of our own, which says itself how often it synced.
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
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let told = told["parts"][0]["sync"]["ios"].as_u64().unwrap_or_else(|| panic!("no count of syncs in {told}"));
    let raw = read_syncs(&tracer);
    let seen = raw.files.iter().filter(|c| c.file.comm.sanitized() == "iotop-plus");
    let seen: Vec<u64> = seen.filter(|c| c.file.call == SyncCall::Fdatasync).map(|c| c.calls).collect();
    println!("the benchmark says {told}, the kernel {seen:?}");
    assert!(seen.contains(&told), "the benchmark says {told}, the kernel {seen:?}");
}

/// Ids of the programs a process holds for syncs, once it has them all.
fn wait_for_sync_programs(pid: u32) -> Vec<u32> {
    poll_until("programs in the kernel", || Some(of_calls(pid)).filter(|ids| ids.len() >= MIN_PROGRAMS))
}

#[test]
fn sync_programs_are_detached_on_leaving_the_view_and_on_exit() {
    if let Err(why) = check_syscall_tracing() {
        return println!("skipped nothing_stays_attached_when_the_view_is_left_or_the_program_ends: {why}");
    }
    let mut screen = Terminal::with_args(&[]);
    screen.wait_for_text("q quit");
    let without = poll_until("tracing of requests", || Some(programs_of(screen.pid())).filter(|ids| ids.len() >= 2));
    assert_eq!(of_calls(screen.pid()), [0; 0], "syncs are traced though nobody asked");
    screen.send("F");
    let of_syncs = wait_for_sync_programs(screen.pid());
    screen.send("1");
    poll_until("the programs to go", || (!still_loaded(&of_syncs)).then_some(()));
    assert!(still_loaded(&without), "the others stay");
    screen.send("F");
    let again = wait_for_sync_programs(screen.pid());
    screen.send("q");
    assert_eq!(screen.wait_for_exit().exit_code(), 0);
    poll_until("the programs to go", || (!still_loaded(&again)).then_some(()));
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
    poll_until("the programs to go", || (!still_loaded(&ids)).then_some(()));
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
    let nobody = match check_syscall_tracing().and_then(|()| Nobody::new()) {
        Ok(nobody) => nobody,
        Err(why) => return println!("skipped who_may_not_trace_is_told_what_is_missing: {why}"),
    };
    let told = syncs_reason(nobody.command(&[]));
    assert!(told.contains("CAP_BPF") && told.contains("CAP_PERFMON"), "{told}");
    let told = syncs_reason(nobody.command(&["bpf", "perfmon"]));
    assert!(told.contains("CAP_DAC_READ_SEARCH"), "{told}");
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
