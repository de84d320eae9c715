//! Tasks that wait for a journal, by traced waits.

use super::test_machine::*;
use crate::model::process::TaskRaw;
use crate::model::reading::Reading;
use crate::model::task_waits::{TaskWaits, WaitKey, WaitRate, WaitReason};
use std::sync::Arc;

fn wait(pid: u32, reason: WaitReason, function: &str, secs: f64) -> WaitRate {
    let key = WaitKey { pid, starttime: 100, reason, function: function.into(), device: SDA, ..WaitKey::default() };
    WaitRate { key, secs, count: 9, ..WaitRate::default() }
}

/// The titles after eight seconds with these waits in each.
fn titles(rows: &[WaitRate]) -> Vec<String> {
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    let journal = TaskRaw { kernel_thread: true, ..task_counters(40, "jbd2/sda1-8") };
    machine.scan(vec![journal, task_counters(930, "tar"), task_counters(931, "rm")], false);
    machine.ticks(8, |tick| {
        let processes = vec![(40, "jbd2/sda1-8".into()), (930, "tar".into()), (931, "rm".into())];
        let waits = TaskWaits { rows: rows.to_vec(), processes, covered_secs: 1.0, ..TaskWaits::default() };
        tick.task_waits = Reading::Ok(Arc::new(waits));
    });
    machine.evaluate_rule("journal-full").0.into_iter().map(|found| found.title).collect()
}

#[test]
fn a_task_that_waits_for_room_much_of_its_time_is_found() {
    let rows = [
        wait(930, WaitReason::Journal, "submit_bio_wait", 0.3),
        wait(930, WaitReason::Journal, "jbd2_write_superblock", 0.2),
        wait(931, WaitReason::Journal, "do_get_write_access", 0.1),
    ];
    assert_eq!(titles(&rows), ["tar (930) waits for the ext4 journal on sda: 50% of its time"]);
}

#[test]
fn syncs_the_journal_thread_and_short_waits_are_not() {
    assert_eq!(titles(&[wait(930, WaitReason::Sync, "jbd2_log_wait_commit", 0.9)]), [""; 0]);
    assert_eq!(titles(&[wait(40, WaitReason::Journal, "jbd2_journal_commit_transaction", 0.9)]), [""; 0]);
    assert_eq!(titles(&[wait(930, WaitReason::Journal, "do_get_write_access", 0.2)]), [""; 0]);
}
