//! Hung threads of processes whose main threads sleep, and tasks that only the kernel reports.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::fact_requests::tasks_to_query;
use crate::doctor::finding::Severity::{Critical, Warn};
use crate::doctor::finding::{FindingSubject, NavTarget};
use crate::model::disk::DiskRate;
use crate::model::observation::Observation;
use crate::model::process::{ProcessUpdate, TaskKey, UninterruptibleThread};
use crate::model::reading::Reading;
use crate::model::slow_facts::TaskWait;

const MYSQLD: TaskKey = TaskKey { pid: 812, tid: 812, starttime: 100 };
const REPORT_OF_DD: &str = "INFO: task dd:931 blocked for more than 120 seconds.";

fn thread(tid: u32, timeslices: u64) -> UninterruptibleThread {
    let key = TaskKey { tid, ..MYSQLD };
    UninterruptibleThread { key, comm: *b"ib_log_flush\0\0\0\0", timeslices, wait_channel: Some("io_schedule".into()) }
}

/// A scan in which only these threads are in state D, with a tick.
fn scan(machine: &mut TestMachine, threads: &[UninterruptibleThread], all_threads_known: bool) {
    machine.idle_ticks(1);
    let update = ProcessUpdate {
        seq: 99,
        time: machine.now(),
        uninterruptible_threads: threads.to_vec(),
        all_threads_known,
        ..ProcessUpdate::default()
    };
    machine.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
}

/// mysqld, of which these threads hang for ten seconds while its main thread sleeps.
fn hang(machine: &mut TestMachine, tids: &[u32]) {
    machine.scan(vec![task_counters(MYSQLD.pid, "mysqld")], false);
    let threads: Vec<_> = tids.iter().map(|tid| thread(*tid, 5)).collect();
    (0..11).for_each(|_| scan(machine, &threads, true));
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "hung-task",
        "a thread",
        Critical,
        "mysqld (812) hangs in its thread ib_log_flush (820): in state D for at least 10s in io_schedule",
        |m| hang(m, &[820, 821]),
    ),
    firing_case(
        "hung-task",
        "reported by the kernel only",
        Warn,
        "the kernel reported that dd (931) hung; it has continued or exited since",
        |m| {
            scan(m, &[], true);
            m.kernel_message(REPORT_OF_DD);
        },
    ),
    firing_case(
        "hung-task",
        "reported by the kernel, and not all threads are read",
        Warn,
        "the kernel reported that dd (931) hung; whether it still does is not known",
        |m| {
            scan(m, &[], false);
            m.kernel_message(REPORT_OF_DD);
        },
    ),
    firing_case(
        "hung-task",
        "a thread that the kernel reported, just after the start",
        Critical,
        "the kernel reported that ib_log_flush (820) hung; it is still in state D",
        |m| {
            m.scan(vec![task_counters(MYSQLD.pid, "mysqld")], false);
            scan(m, &[thread(820, 5)], true);
            m.kernel_message("INFO: task ib_log_flush:820 blocked for more than 120 seconds.");
        },
    ),
];

pub const QUIET: &[QuietCase] = &[QuietCase::new("hung-task", "a thread that runs now and then", |m| {
    m.scan(vec![task_counters(MYSQLD.pid, "mysqld")], false);
    (0..30).for_each(|n| scan(m, &[thread(820, n)], true));
})];

#[test]
fn a_hung_thread_is_reported_with_its_process_once() {
    let mut machine = TestMachine::new();
    hang(&mut machine, &[820, 821]);
    machine.kernel_message("INFO: task ib_log_flush:821 blocked for more than 120 seconds.");
    let findings = machine.evaluate_rule("hung-task").0;
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.subject, FindingSubject::Task(MYSQLD, "mysqld".into()));
    assert_eq!(found.victims[0].name, "mysqld (812)");
    assert!(found.remedies[0].action.contains("/proc/812/task/820/stack"), "{:?}", found.remedies);
    assert!(matches!(found.see_also, Some(NavTarget::KernelLog(_))), "the report of another of its threads");
}

#[test]
fn the_file_of_a_hung_thread_is_asked_for_and_found() {
    let mut machine = TestMachine::new();
    hang(&mut machine, &[820]);
    let key = TaskKey { tid: 820, ..MYSQLD };
    let asked = tasks_to_query(&machine.system);
    assert!(asked.contains(&MYSQLD) && asked.last() == Some(&key), "{asked:?}");
    machine.change_facts(|facts| facts.waits.push(TaskWait { key, mount_id: 0, path: "/srv/ib_logfile0".into() }));
    assert_eq!(machine.evaluate_rule("hung-task").0[0].files, ["/srv/ib_logfile0"]);
}

#[test]
fn a_hung_thread_makes_its_process_a_victim_of_the_stalled_device() {
    let mut machine = TestMachine::new();
    hang(&mut machine, &[820]);
    machine.ticks(8, |t| set_device(t, DiskRate { in_flight: 3, stalled: true, ..idle_device(SDA, "sda") }));
    let found = machine.evaluate_rule("device-stalled").0.remove(0);
    assert_eq!(found.victims.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["mysqld (812)"]);
}
