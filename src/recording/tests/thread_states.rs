//! Threads in D state in updates and key frames, and files of versions that did not write them.

use crate::model::process::{ProcessUpdate, TaskKey, UninterruptibleThread};
use crate::model::reading::Reading;
use crate::recording::codec::{Wire, written};
use crate::recording::tasks::RecordedTasks;

fn update(seq: u64, tids: &[u32], all_threads_known: bool) -> ProcessUpdate {
    let thread = |tid: &u32| UninterruptibleThread {
        key: TaskKey { pid: 7, tid: *tid, starttime: 100 },
        comm: *b"log\x1b\n\0\0\0\0\0\0\0\0\0\0\0",
        timeslices: seq,
        wait_channel: tid.is_multiple_of(2).then(|| "io_schedule".into()),
    };
    let uninterruptible_threads = tids.iter().map(thread).collect();
    ProcessUpdate { seq, uninterruptible_threads, all_threads_known, ..ProcessUpdate::default() }
}

fn code(tasks: &mut RecordedTasks, w: &mut Wire, update: ProcessUpdate) -> ProcessUpdate {
    let mut reading = Reading::Ok(update);
    tasks.code(w, &mut reading).unwrap();
    reading.ok().cloned().unwrap()
}

#[test]
fn threads_round_trip_in_updates_and_key_frames() {
    let (mut writer, mut reader) = (RecordedTasks::default(), RecordedTasks::default());
    for (seq, tids, all) in
        [(1, &[8, 9][..], true), (2, &[], true), (3, &[9], false), (4, &[], false), (5, &[10], true)]
    {
        let given = update(seq, tids, all);
        let bytes = written(|w| {
            code(&mut writer, w, given.clone());
            Ok(())
        });
        let mut wire = Wire::Read(&bytes);
        assert_eq!(code(&mut reader, &mut wire, ProcessUpdate::default()), given);
        assert!(wire.is_at_end());
        let base = written(|w| writer.clone().code_base(w, true));
        let mut other = RecordedTasks::default();
        other.code_base(&mut Wire::Read(&base), true).unwrap();
        let full = other.full_update().unwrap().ok().cloned().unwrap();
        assert_eq!(full.uninterruptible_threads, given.uninterruptible_threads);
        assert_eq!(full.all_threads_known, given.all_threads_known);
    }
}

#[test]
fn an_update_of_an_earlier_version_says_nothing_of_threads() {
    let layout = |update: ProcessUpdate| {
        written(|w| {
            code(&mut RecordedTasks::default(), w, update);
            Ok(())
        })
    };
    let (old, new) = (layout(update(1, &[], false)), layout(update(1, &[8], true)));
    assert!(new.starts_with(&old), "it is at the end, where an earlier version stops to read");
    let read = code(&mut RecordedTasks::default(), &mut Wire::Read(&old), ProcessUpdate::default());
    assert!(!read.all_threads_known && read.uninterruptible_threads.is_empty());
    for length in old.len() + 1..new.len() {
        let mut reading = Reading::Ok(ProcessUpdate::default());
        assert!(RecordedTasks::default().code(&mut Wire::Read(&new[..length]), &mut reading).is_err(), "{length}");
    }
}
