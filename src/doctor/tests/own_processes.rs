//! This program and its helpers are not named in findings.

use super::test_machine::*;
use crate::model::memory_stalls::RECLAIM;
use crate::model::observation::Observation;
use crate::model::process::{IoBytes, ProcessUpdate, TaskRaw};
use crate::model::reading::Reading;

const PROGRAM: u32 = 700;

fn in_d_state(pid: u32, name: &str, ppid: u32) -> TaskRaw {
    TaskRaw { ppid, state: b'D', ..task_counters(pid, name) }
}

/// A machine on which these tasks hang for ten seconds.
fn hanging(tasks: &[TaskRaw]) -> TestMachine {
    let mut machine = TestMachine::new();
    machine.system.host.program_pid = Some(PROGRAM);
    machine.idle_ticks(1);
    machine.scan(tasks.to_vec(), false);
    for _ in 0..10 {
        machine.idle_ticks(1);
        let update = ProcessUpdate { seq: 99, time: machine.now(), ..ProcessUpdate::default() };
        machine.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
    }
    machine
}

#[test]
fn hung_helpers_of_the_program_are_no_victims() {
    let tasks = [
        in_d_state(800, "shop", 1),
        TaskRaw { ppid: 1, ..task_counters(PROGRAM, "iotop-plus") },
        in_d_state(701, "iotop-worker", PROGRAM),
        in_d_state(702, "smartctl", 701),
    ];
    let machine = hanging(&tasks);
    let (findings, _) = machine.evaluate_rule("hung-task");
    let titles: Vec<&str> = findings.iter().map(|f| f.title.as_str()).collect();
    assert!(titles.len() == 1 && titles[0].starts_with("shop (800) hangs"), "{titles:?}");
    assert_eq!(machine.system.hung_tasks.len(), 1);
}

#[test]
fn a_benchmark_of_the_program_is_named_as_any_load() {
    let tasks = [in_d_state(701, "iotop-bench", PROGRAM), in_d_state(702, "fio", 701)];
    let machine = hanging(&tasks);
    assert_eq!(machine.evaluate_rule("hung-task").0.len(), 2);
}

#[test]
fn reports_of_the_kernel_about_helpers_are_left_out() {
    let mut machine = hanging(&[TaskRaw { ppid: PROGRAM, ..task_counters(701, "iotop-worker") }]);
    for (name, pid) in [("iotop-worker", 701), ("dd", 931)] {
        machine.kernel_message(&format!("INFO: task {name}:{pid} blocked for more than 120 seconds."));
    }
    let (findings, _) = machine.evaluate_rule("hung-task");
    assert!(findings.len() == 1 && findings[0].title.contains("dd (931)"), "{findings:?}");
}

#[test]
fn the_program_is_no_stalled_or_busiest_task() {
    let mut machine = TestMachine::new();
    machine.system.host.program_pid = Some(PROGRAM);
    machine.idle_ticks(1);
    let did = IoBytes { write: 1 << 30, ..IoBytes::default() };
    machine.add_task(PROGRAM, "iotop-plus", |_| {}, did, 0);
    machine.ticks(5, |tick| {
        set_stalled(tick, PROGRAM, "iotop-plus", RECLAIM, 900.0, 50.0);
        set_stalled(tick, 910, "dd", RECLAIM, 300.0, 50.0);
    });
    let (findings, _) = machine.evaluate_rule("reclaim-stalls");
    assert!(findings[0].title.contains("dd (910)"), "{findings:?}");
    assert!(!format!("{findings:?}").contains("iotop-plus"), "{findings:?}");
}
