//! Threads in D state, of captured trees and of a live child whose main thread sleeps.

use super::super::task_scanner::TaskScanner;
use super::super::*;
use super::fake_proc::{FakeProc, FakeTask};
use super::process_collector::ProcessCollector;
use crate::bpf::Tracer;
use crate::bpf::task_iter::{TaskCounters, TaskRecord};
use crate::model::process::{ProcessUpdate, TaskKey};
use crate::model::reading::Reading;
use crate::root::Root;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NONE: [u32; 0] = [];

fn scan(collector: &mut ProcessCollector, threads: bool) -> ProcessUpdate {
    match collector.scan(&ScanOptions { threads, ..ScanOptions::default() }) {
        Reading::Ok(update) => update,
        other => panic!("{other:?}"),
    }
}

fn tids(update: &ProcessUpdate) -> Vec<u32> {
    update.uninterruptible_threads.iter().map(|thread| thread.key.tid).collect()
}

#[test]
fn a_thread_that_stays_in_d_state_is_reported_until_it_runs() {
    let mut fake = FakeProc::new();
    fake.write_task(&FakeTask { threads: 3, ..FakeTask::new(5) });
    for tid in 5..7 {
        fake.write_thread(5, &FakeTask::new(tid));
    }
    let mut worker = FakeTask { state: 'D', comm: b"ib_io_wr-1".to_vec(), ..FakeTask::new(7) };
    fake.write_thread(5, &worker);
    let mut collector = ProcessCollector::new(&fake.root());
    assert_eq!(tids(&scan(&mut collector, false)), NONE, "it may be busy");
    for _ in 0..3 {
        let update = scan(&mut collector, false);
        let [thread] = &update.uninterruptible_threads[..] else { panic!("{update:?}") };
        assert_eq!((thread.key, thread.comm()), (TaskKey { pid: 5, tid: 7, starttime: 1000 }, &b"ib_io_wr-1"[..]));
        assert_eq!((thread.timeslices, thread.wait_channel.as_deref()), (1, Some("io_schedule")));
        assert!(!update.all_threads_known, "files are read of few threads");
    }
    // It wakes now and then to check what it waits for.
    worker.runs += 1;
    fake.write_thread(5, &worker);
    assert_eq!(tids(&scan(&mut collector, false)), [7]);
    worker.runs += 2;
    fake.write_thread(5, &worker);
    assert_eq!(tids(&scan(&mut collector, false)), NONE);
    assert_eq!(tids(&scan(&mut collector, false)), [7]);
    worker.state = 'S';
    fake.write_thread(5, &worker);
    assert_eq!(tids(&scan(&mut collector, false)), NONE);
    worker.state = 'D';
    fake.write_thread(5, &worker);
    assert_eq!(tids(&scan(&mut collector, true)), NONE, "it has a row");
}

#[test]
fn a_thread_that_cannot_be_distinguished_from_a_busy_one_is_not_reported() {
    let mut fake = FakeProc::new();
    fake.write_task(&FakeTask { threads: 2, ..FakeTask::new(5) });
    fake.write_thread(5, &FakeTask { state: 'D', ..FakeTask::new(6) });
    std::fs::remove_file(fake.path("proc/5/task/6/schedstat")).unwrap();
    let mut collector = ProcessCollector::new(&fake.root());
    (0..5).for_each(|_| assert_eq!(tids(&scan(&mut collector, false)), NONE));
}

#[test]
fn files_of_threads_are_read_a_few_at_a_scan() {
    let mut fake = FakeProc::new();
    // One with too many threads, then six of which two fit into a scan.
    for (pid, threads) in [(50, 65)].into_iter().chain((1..=6).map(|n| (n * 100, 30))) {
        fake.write_task(&FakeTask { threads, ..FakeTask::new(pid) });
        fake.write_thread(pid, &FakeTask { state: 'D', ..FakeTask::new(pid + 1) });
    }
    let mut collector = ProcessCollector::new(&fake.root());
    let found: Vec<_> = (0..5).map(|_| tids(&scan(&mut collector, false)).len()).collect();
    assert_eq!(found, [0, 2, 4, 6, 6]);
}

#[test]
fn records_of_the_iterator_tell_which_threads_are_in_d_state() {
    let mut fake = FakeProc::new();
    fake.write_task(&FakeTask { threads: 100, ..FakeTask::new(5) });
    let mut scanner = TaskScanner::new(&fake.root());
    scanner.open_proc().unwrap();
    scanner.list_processes().unwrap();
    scanner.tasks[0].has_been_read = true;
    let record = |tid: u32, state: u32, runs: u64| TaskRecord {
        pid: 5,
        tid,
        state,
        counters: TaskCounters { runs, ..TaskCounters::default() },
        ..TaskRecord::default()
    };
    let mut report = |records: &[TaskRecord]| {
        records.iter().for_each(|record| scanner.thread_states.add_record(record));
        let mut update = ProcessUpdate::default();
        scanner.report_thread_states(true, &mut update);
        (tids(&update), update.all_threads_known)
    };
    let threads = [record(5, 2, 9), record(6, 1, 9), record(7, 2, 9), record(8, 0x102, 9), record(9, 0x402, 9)];
    assert_eq!(report(&threads), (vec![], false), "those that hang have not been seen twice");
    assert_eq!(report(&threads), (vec![7, 8], true));
    assert_eq!(report(&[]), (vec![], true));
    assert_eq!(report(&[record(7, 2, 0)]), (vec![], true));
    assert_eq!(report(&[record(7, 2, 0)]), (vec![], false), "this kernel does not count how often it ran");
    let many: Vec<TaskRecord> = (6..80).map(|tid| record(tid, 2, 9)).collect();
    report(&many);
    let (found, all_known) = report(&many);
    assert!(found.len() == 64 && !all_known);
}

/// A process whose main thread sleeps, and of which another thread waits in D state for a child to run another program,
/// while that child waits for a writer of the pipe.
struct WaitingProcess(Child, std::path::PathBuf);

impl WaitingProcess {
    fn start(dir: &Path) -> Option<Self> {
        const PROGRAM: &str = "import os, sys, threading\n\
            open_pipe = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]\n\
            spawn = lambda: os.posix_spawn('/bin/true', ['true'], {}, file_actions=open_pipe)\n\
            print('ready', flush=True)\n\
            threading.Thread(target=spawn).start()\n";
        let pipe = dir.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut command = Command::new("python3");
        let child = command.args(["-c", PROGRAM]).arg(&pipe).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (line == "ready\n").then_some(Self(child, pipe))
    }
}

impl Drop for WaitingProcess {
    fn drop(&mut self) {
        let _ = std::fs::OpenOptions::new().write(true).open(&self.1);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_live_thread_in_d_state_is_found_by_the_iterator_and_in_files() {
    let name = "a_live_thread_in_d_state_is_found_by_the_iterator_and_in_files";
    let dir = tempfile::tempdir().unwrap();
    let Some(process) = WaitingProcess::start(dir.path()) else { return println!("skipped {name}: no python3") };
    let pid = process.0.id();
    let find = |collector: &mut ProcessCollector| {
        let mut update = ProcessUpdate::default();
        for _ in 0..300 {
            update = scan(collector, false);
            if update.uninterruptible_threads.iter().any(|thread| thread.key.pid == pid) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let all_known = update.all_threads_known;
        let found = update.uninterruptible_threads.into_iter().find(|thread| thread.key.pid == pid);
        (found.expect("a thread"), all_known)
    };
    let (by_files, all_known) = find(&mut ProcessCollector::new(&Root::live()));
    assert!(by_files.key.tid != pid && by_files.timeslices > 0 && !all_known, "{by_files:?}");
    let tracer = Tracer::new(&Root::live());
    tracer.start();
    match super::task_iter::wait_until_loaded(&tracer) {
        Err(why) => println!("skipped the second part of {name}: {why}"),
        Ok(()) => {
            let mut collector = ProcessCollector::with_tracer(&Root::live(), &tracer);
            let (reported, _) = find(&mut collector);
            assert_eq!(reported, by_files);
            assert!(reported.wait_channel.is_some());
        }
    }
}
