//! Tasks whose files do not return. A FIFO without a writer stands in for the file: opening it waits just as long.

use super::super::stuck_read::MAX_STUCK_THREADS;
use super::super::*;
use super::fake_proc::{FakeProc, FakeTask};
use super::process_collector::ProcessCollector;
use crate::model::process::ProcessUpdate;
use crate::model::process::{ProcessTable, TaskIoRaw};
use crate::model::reading::Reading;
use std::path::Path;

fn scan(collector: &mut ProcessCollector) -> ProcessUpdate {
    match collector.scan(&ScanOptions::default()) {
        Reading::Ok(update) => update,
        other => panic!("{other:?}"),
    }
}

/// Replaces a file by a FIFO.
fn make_hang(path: &Path) {
    std::fs::remove_file(path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

/// Releases the reader of a FIFO, then writes the file.
fn release(path: &Path, text: &[u8]) {
    let fifo = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, text).unwrap();
    drop(fifo);
}

#[test]
fn one_stuck_task_does_not_delay_the_others() {
    let mut fake = FakeProc::new();
    for pid in [5, 6, 7] {
        fake.write_task(&FakeTask::new(pid));
    }
    let path = fake.path("proc/6/stat");
    let stat = std::fs::read(&path).unwrap();
    make_hang(&path);
    let mut collector = ProcessCollector::new(&fake.root());
    let update = scan(&mut collector);
    assert_eq!(update.blocked.len(), 1);
    assert_eq!(update.blocked[0].key.pid, 6);
    assert!(update.blocked[0].waiting_on.starts_with("its stat"), "{:?}", update.blocked);
    assert_eq!(update.total, 3, "the stuck one is a row too");
    let stuck = update.changed.iter().find(|c| c.raw.key.pid == 6).unwrap();
    assert_eq!((stuck.raw.io, stuck.raw.comm()), (TaskIoRaw::Blocked, &b"task"[..]));
    let mut table = ProcessTable::new();
    table.apply(&update);
    assert!(table.iter().all(|row| row.is_blocked() == (row.pid() == 6)));

    // Its files are not read again: no second thread hangs.
    let update = scan(&mut collector);
    assert_eq!(update.blocked.len(), 1);
    assert_eq!(collector.threads.hung_reads(), 1);

    release(&path, &stat);
    let update = scan_until(&mut collector, |update| update.blocked.is_empty());
    assert!(update.changed.iter().any(|c| c.raw.key.pid == 6 && c.raw.key.starttime == 1000));
}

#[test]
fn a_stuck_cmdline_does_not_hide_the_counters() {
    let mut fake = FakeProc::new();
    let mut task = FakeTask::new(5);
    fake.write_task(&task);
    let path = fake.path("proc/5/cmdline");
    make_hang(&path);
    let mut collector = ProcessCollector::new(&fake.root());
    let update = scan(&mut collector);
    assert!(update.blocked[0].waiting_on.starts_with("its cmdline") && update.blocked[0].counters_readable);
    assert_eq!(update.changed[0].raw.uid, Some(1000), "what does not hang is read");
    (task.io, task.runs) = ((64, 0, 0), 2);
    let (cmdline, fifo) = (task.cmdline.clone(), path.with_extension("fifo"));
    std::fs::rename(&path, &fifo).unwrap();
    fake.write_task(&task);
    let update = scan(&mut collector);
    assert_eq!(update.changed[0].raw.io.bytes().unwrap().read, 64);
    release(&fifo, b"");
    let named = |update: &ProcessUpdate| update.names.iter().any(|(_, names)| names.cmdline.is_some());
    let update = scan_until(&mut collector, named);
    assert_eq!(update.names[0].1.cmdline.as_ref().map(|c| c.len()), Some(cmdline.len() - 1));
}

#[test]
fn the_number_of_abandoned_threads_is_bounded() {
    let mut fake = FakeProc::new();
    let count = MAX_STUCK_THREADS as u32 + 3;
    for pid in 1..=count {
        fake.write_task(&FakeTask { state: 'S', ..FakeTask::new(pid) });
        make_hang(&fake.path(&format!("proc/{pid}/io")));
    }
    fake.write_task(&FakeTask::new(100));
    let mut collector = ProcessCollector::new(&fake.root());
    let update = scan(&mut collector);
    assert_eq!(update.blocked.len(), MAX_STUCK_THREADS);
    assert_eq!(collector.threads.hung_reads(), MAX_STUCK_THREADS);
    assert!(update.notes.iter().any(|note| note.contains("reads hang")), "{:?}", update.notes);
    let healthy = update.changed.iter().find(|c| c.raw.key.pid == 100).unwrap();
    assert_eq!(healthy.raw.io, TaskIoRaw::Blocked, "not read, and not said to be 0");
    for pid in 1..=MAX_STUCK_THREADS as u32 {
        release(&fake.path(&format!("proc/{pid}/io")), b"");
    }
    for pid in MAX_STUCK_THREADS as u32 + 1..=count {
        let path = fake.path(&format!("proc/{pid}/io"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(path, b"").unwrap();
    }
    let update = scan_until(&mut collector, |update| update.changed.iter().any(|c| c.raw.key.pid == 100));
    let healthy = update.changed.iter().find(|c| c.raw.key.pid == 100).unwrap();
    assert!(matches!(healthy.raw.io, TaskIoRaw::Read(_)), "{healthy:?}");
}

/// Scans until the condition holds: an abandoned thread returns in its own time.
fn scan_until(collector: &mut ProcessCollector, condition: impl Fn(&ProcessUpdate) -> bool) -> ProcessUpdate {
    for _ in 0..100_000 {
        let update = scan(collector);
        if condition(&update) {
            return update;
        }
        std::thread::yield_now();
    }
    panic!("the condition never held");
}
