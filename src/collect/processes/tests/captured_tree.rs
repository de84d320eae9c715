//! Scans of captured trees, where only the test changes anything.

use super::super::*;
use super::fake_proc::{FakeProc, FakeTask};
use super::process_collector::ProcessCollector;
use crate::model::process::ProcessUpdate;
use crate::model::process::{IoBytes, ProcessTable, TaskIoRaw, TaskKey};
use crate::model::reading::Reading;
use crate::root::Root;

fn scan(collector: &mut ProcessCollector, options: &ScanOptions) -> ProcessUpdate {
    match collector.scan(options) {
        Reading::Ok(update) => update,
        other => panic!("{other:?}"),
    }
}

fn key(task: &FakeTask) -> TaskKey {
    TaskKey { pid: task.pid, tid: task.pid, starttime: task.start }
}

#[test]
fn only_changed_tasks_are_in_an_update() {
    let mut fake = FakeProc::new();
    let (mut a, b) = (FakeTask::new(5), FakeTask { comm: b"x) R 1 (\n\xff".to_vec(), ..FakeTask::new(12) });
    fake.write_task(&a);
    fake.write_task(&b);
    let mut collector = ProcessCollector::new(&fake.root());
    let first = scan(&mut collector, &ScanOptions::default());
    assert!(first.reset);
    assert_eq!((first.changed.len(), first.total, first.hidden_count), (2, 2, 0));
    assert_eq!(first.users, [(1000, "pg".into())]);
    let raw = first.changed[1].raw;
    assert_eq!((raw.comm(), raw.state, raw.uid), (&b.comm[..], b'S', Some(1000)));
    assert_eq!((raw.rss_bytes, raw.swap_bytes), (40 * 1024, Some(0)));
    assert_eq!(first.names[0].1.cmdline.as_deref(), Some(&b"/bin/task --flag"[..]));
    assert_eq!(&*first.names[0].1.cgroup, "/system.slice/task.service");

    let quiet = scan(&mut collector, &ScanOptions::default());
    assert_eq!((quiet.changed, quiet.names, quiet.exited, quiet.total), (vec![], vec![], vec![], 2));
    assert!(!quiet.reset && quiet.previous_time.is_some());

    (a.io, a.runs) = ((4096, 8192, 10), 2);
    fake.write_task(&a);
    let moved = scan(&mut collector, &ScanOptions::default());
    assert_eq!(moved.changed.len(), 1);
    assert_eq!(moved.changed[0].raw.io, TaskIoRaw::Read(IoBytes { read: 4096, write: 8192, cancelled: 10 }));
    assert!(moved.changed[0].previous_scan_ns >= quiet.time.boot_ns, "since the quiet scan, not since the first");
}

#[test]
fn a_task_that_did_not_run_is_not_read_again() {
    let mut fake = FakeProc::new();
    let mut task = FakeTask::new(5);
    fake.write_task(&task);
    let mut collector = ProcessCollector::new(&fake.root());
    scan(&mut collector, &ScanOptions::default());
    // Counters cannot change without a run: if the change stays unseen, nothing was read.
    task.io = (1, 1, 1);
    fake.write_task(&task);
    let update = scan(&mut collector, &ScanOptions::default());
    assert!(update.changed.iter().all(|c| c.raw.io == TaskIoRaw::Read(IoBytes::default())), "{update:?}");
    // For a process with threads `schedstat` covers the main thread only, so `io` is compared.
    (task.threads, task.runs) = (2, 2);
    fake.write_task(&task);
    scan(&mut collector, &ScanOptions::default());
    task.io = (7, 0, 0);
    fake.write_task(&task);
    let update = scan(&mut collector, &ScanOptions::default());
    assert_eq!(update.changed[0].raw.io.bytes().unwrap().read, 7);
    assert_eq!(scan(&mut collector, &ScanOptions::default()).changed, []);
}

#[test]
fn without_schedstat_every_task_is_read() {
    let mut fake = FakeProc::new();
    let mut task = FakeTask::new(5);
    fake.write_task(&task);
    let mut collector = ProcessCollector::new(&fake.root());
    std::fs::remove_file(fake.path("proc/5/schedstat")).unwrap();
    assert_eq!(scan(&mut collector, &ScanOptions::default()).total, 1);
    task.io = (9, 0, 0);
    fake.write_task(&task);
    std::fs::remove_file(fake.path("proc/5/schedstat")).unwrap();
    let update = scan(&mut collector, &ScanOptions::default());
    assert_eq!(update.changed[0].raw.io.bytes().unwrap().read, 9);
}

#[test]
fn exits_new_tasks_and_reused_pids_are_reported() {
    let mut fake = FakeProc::new();
    let (a, mut b) = (FakeTask::new(5), FakeTask::new(6));
    fake.write_task(&a);
    fake.write_task(&b);
    let mut collector = ProcessCollector::new(&fake.root());
    scan(&mut collector, &ScanOptions::default());
    fake.remove("proc/5");
    let old = key(&b);
    (b.start, b.runs, b.comm) = (2000, 9, b"other".to_vec());
    fake.write_task(&b);
    fake.write_task(&FakeTask::new(4));
    fake.write_task(&FakeTask::new(9));
    let update = scan(&mut collector, &ScanOptions::default());
    let mut gone = update.exited.clone();
    gone.sort_unstable();
    assert_eq!(gone, [key(&a), old]);
    let mut seen: Vec<_> = update.changed.iter().map(|c| (c.raw.key.pid, c.previous_scan_ns)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(4, 0), (6, 0), (9, 0)], "all of them are new");
    assert!(update.names.iter().any(|(k, _)| *k == key(&b)), "names of the new owner of the number");
    assert_eq!(update.total, 3);
    let again = scan(&mut collector, &ScanOptions::default());
    assert_eq!((again.changed, again.exited), (vec![], vec![]));
}

#[test]
fn a_sleeping_child_of_an_ended_process_is_asked_for_its_new_parent() {
    let mut fake = FakeProc::new();
    fake.write_task(&FakeTask::new(5));
    let child = |pid, ppid| FakeTask { ppid, ..FakeTask::new(pid) };
    (10..20).for_each(|pid| fake.write_task(&child(pid, 5)));
    let mut collector = ProcessCollector::new(&fake.root());
    let mut table = ProcessTable::new();
    table.apply(&scan(&mut collector, &ScanOptions::default()));
    fake.remove("proc/5");
    (10..20).for_each(|pid| fake.write_task(&child(pid, 1)));
    for _ in 0..2 {
        table.apply(&scan(&mut collector, &ScanOptions::default()));
    }
    assert!(table.iter().all(|row| row.raw.ppid == 1), "{:?}", table.iter().map(|r| r.raw.ppid).collect::<Vec<_>>());
}

#[test]
fn names_are_read_again_after_an_exec() {
    let mut fake = FakeProc::new();
    let mut task = FakeTask::new(5);
    fake.write_task(&task);
    let mut collector = ProcessCollector::new(&fake.root());
    scan(&mut collector, &ScanOptions::default());
    task.cmdline = b"/bin/other\0".to_vec();
    task.runs = 2;
    fake.write_task(&task);
    assert_eq!(scan(&mut collector, &ScanOptions::default()).names, [], "it ran, but nothing indicates an exec");
    (task.runs, task.stack) = (3, 78);
    fake.write_task(&task);
    let update = scan(&mut collector, &ScanOptions::default());
    assert_eq!(update.names[0].1.cmdline.as_deref(), Some(&b"/bin/other"[..]));
}

#[test]
fn visible_tasks_are_refreshed_while_asleep() {
    let mut fake = FakeProc::new();
    let mut task = FakeTask { state: 'D', ..FakeTask::new(5) };
    fake.write_task(&task);
    let mut collector = ProcessCollector::new(&fake.root());
    let first = scan(&mut collector, &ScanOptions::default());
    assert_eq!(first.wait_channels, [(key(&task), "io_schedule".into())]);
    task.swap_kb = 64;
    fake.write_task(&task);
    fake.write("proc/vmstat", b"pswpin 0\npswpout 16\n");
    let options = ScanOptions { visible: vec![key(&task)], ..ScanOptions::default() };
    let update = scan(&mut collector, &options);
    assert_eq!(update.changed[0].raw.swap_bytes, Some(64 * 1024));
}

#[test]
fn threads_have_rows_of_their_own() {
    let mut fake = FakeProc::new();
    let main = FakeTask { threads: 2, ..FakeTask::new(5) };
    let side = FakeTask { io: (3, 0, 0), comm: b"side".to_vec(), threads: 2, ..FakeTask::new(7) };
    fake.write_task(&main);
    fake.write_thread(5, &main);
    fake.write_thread(5, &side);
    let mut collector = ProcessCollector::new(&fake.root());
    let processes = scan(&mut collector, &ScanOptions::default());
    assert_eq!((processes.total, processes.rows_are_threads), (1, false));
    let options = ScanOptions { threads: true, ..ScanOptions::default() };
    let update = scan(&mut collector, &options);
    assert!(update.reset && update.rows_are_threads);
    let mut table = ProcessTable::new();
    table.apply(&update);
    let row = table.get(&TaskKey { pid: 5, tid: 7, starttime: 1000 }).unwrap();
    assert_eq!((&*row.comm(), row.raw.io.bytes().map(|b| b.read)), ("side", Some(3)));
    assert_eq!(row.command().map(|c| c.to_string()).as_deref(), Some("/bin/task --flag"), "borrowed from its process");
    assert_eq!((row.raw.uid, row.user().as_deref()), (Some(1000), Some("pg")));
    assert_eq!(update.total, 2);
    // One thread starts later, and one exits.
    fake.write_thread(5, &FakeTask::new(8));
    fake.remove("proc/5/task/7");
    let update = scan(&mut collector, &options);
    assert_eq!(update.exited, [TaskKey { pid: 5, tid: 7, starttime: 1000 }]);
    assert!(update.changed.iter().any(|c| c.raw.key.tid == 8));
}

#[test]
fn a_full_update_contains_every_task() {
    let mut fake = FakeProc::new();
    fake.write_task(&FakeTask::new(5));
    fake.write_task(&FakeTask::new(6));
    let mut collector = ProcessCollector::new(&fake.root());
    scan(&mut collector, &ScanOptions::default());
    let full = scan(&mut collector, &ScanOptions { full_update: true, ..ScanOptions::default() });
    assert!(full.reset);
    assert_eq!((full.changed.len(), full.names.len(), full.users.len()), (2, 2, 1));
}

#[test]
fn a_tree_without_proc_is_reported_as_absent() {
    let dir = tempfile::tempdir().unwrap();
    let section = ProcessCollector::new(&Root::at(dir.path())).scan(&ScanOptions::default());
    assert_eq!(section, Reading::Absent("/proc: no such file or directory".into()));
}
