//! A finding is the cause of another one only where there is a path between them.

use super::test_machine::*;
use crate::doctor::RuleEngine;
use crate::doctor::finding::{Finding, FindingSubject, Severity};
use crate::doctor::incident::group_into_incidents;
use crate::model::disk::DevId;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit};

fn finding(rule: &'static str, devices: &[DevId]) -> Finding {
    let subject = FindingSubject::Cgroup(format!("{devices:?}"));
    Finding { rule, ..Finding::new(Severity::Warn, subject, rule).on_devices(devices.to_vec()) }
}

fn rules_by_incident(machine: &TestMachine) -> Vec<Vec<&'static str>> {
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    engine.incidents.iter().map(|s| s.findings.iter().map(|f| f.rule).collect()).collect()
}

fn storm(t: &mut crate::model::snapshot::Snapshot) {
    let w = t.writeback.ok_mut().unwrap();
    w.dirty_bytes = Some(5 * GIB / 2);
    (w.dirtied_bytes_per_s, w.written_bytes_per_s) = (Some(60.0 * MIB), Some(40.0 * MIB));
}

#[test]
fn storm_does_not_lead_to_saturation_of_a_device_that_only_reads() {
    let mut machine = TestMachine::new();
    machine.ticks(14, |t| {
        storm(t);
        set_device(t, busy_device(SDA, "sda", (300.0, 2.0, 1.0, 512.0, 0.0)));
        set_device(t, busy_device(NVME, "nvme0n1", (1000.0, 30.0, 32.0, 4.0, 1.0)));
    });
    let incidents = rules_by_incident(&machine);
    assert!(incidents.contains(&vec!["device-saturated"]), "{incidents:?}");
}

#[test]
fn findings_without_a_device_reach_none() {
    let cgroup = finding("cgroup-memory", &[]);
    let saturated = finding("device-saturated", &[SDA]);
    assert_eq!(group_into_incidents(vec![cgroup.clone(), saturated.clone()]).len(), 2);
    let full = finding("cache-pressure", &[]);
    assert_eq!(group_into_incidents(vec![full, finding("swapping", &[SDA2, SDA])]).len(), 1, "memory is the machine's");
    assert_eq!(group_into_incidents(vec![cgroup, finding("oom", &[])]).len(), 2, "but not the memory of a group");
    assert_eq!(group_into_incidents(vec![finding("io-error", &[]), finding("hung-task", &[])]).len(), 2);
}

#[test]
fn limit_of_a_group_explains_what_hangs_in_the_group() {
    let limited = |path: &str| finding("cgroup-io", &[SDA]).in_cgroup(Some(path));
    let hung = |path: &str| finding("hung-task", &[]).in_cgroup(Some(path));
    assert_eq!(group_into_incidents(vec![limited("/a"), hung("/a")]).len(), 1);
    assert_eq!(group_into_incidents(vec![limited("/a"), hung("/b")]).len(), 2);
    assert_eq!(group_into_incidents(vec![limited("/a"), hung("/a/b.service")]).len(), 1);
    assert_eq!(group_into_incidents(vec![limited("/a"), hung("/ab")]).len(), 2);
}

#[test]
fn frozen_file_system_is_not_blamed_on_an_error_elsewhere() {
    let mut machine = TestMachine::new();
    machine.add_hung_task(930, "dd", "percpu_rwsem_wait", 10);
    machine.kernel_message("I/O error, dev nvme0n1, sector 8");
    machine.ticks(6, |t| {
        let mut d = idle_device(SDA, "sda");
        (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
        set_device(t, d);
    });
    let incidents = rules_by_incident(&machine);
    assert!(incidents.contains(&vec!["hung-task"]), "{incidents:?}");
}

#[test]
fn hung_task_has_no_known_device_where_two_are_stalled() {
    let mut machine = TestMachine::new();
    machine.add_hung_task(930, "dd", "submit_bio_wait", 10);
    machine.ticks(6, |t| {
        for (id, name) in [(SDA, "sda"), (NVME, "nvme0n1")] {
            let mut d = idle_device(id, name);
            (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
            set_device(t, d);
        }
    });
    let incidents = rules_by_incident(&machine);
    assert!(incidents.contains(&vec!["hung-task"]), "{incidents:?}");
}

#[test]
fn sync_that_makes_progress_does_not_hang() {
    let mut machine = TestMachine::new();
    let severity_at = |machine: &mut TestMachine, mib_per_s: f64| {
        machine.ticks(6, |t| {
            storm(t);
            t.writeback.ok_mut().unwrap().written_bytes_per_s = Some(mib_per_s * MIB);
        });
        let (found, _) = machine.evaluate_rule("hung-task");
        (found[0].severity, found[0].title.clone())
    };
    machine.add_hung_task(930, "sync", "wb_wait_for_completion", 12);
    let (severity, title) = severity_at(&mut machine, 40.0);
    assert_eq!(severity, Severity::Note, "{title}");
    assert!(title.starts_with("sync (930) waits until dirty pages are written, for 18s so far: 40.0 MiB/s"), "{title}");
    let (severity, title) = severity_at(&mut machine, 0.0);
    assert_eq!(severity, Severity::Critical, "{title}");
}

#[test]
fn corrected_errors_are_warnings() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(2);
    machine
        .kernel_message("BTRFS info (device sda1): read error corrected: ino 257 off 4096 (dev /dev/sda1 sector 2200)");
    let (found, _) = machine.evaluate_rule("filesystem-error");
    assert_eq!((found[0].severity, found[0].title.contains("corrected file system errors")), (Severity::Warn, true));
}

#[test]
fn limit_of_cgroup_v1_has_the_name_of_its_file() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(2);
    let at = |events| CgroupFacts {
        path: "/db".into(),
        is_v1_memory: true,
        memory_max: Some(GIB),
        max_events: Some(events),
        io: Vec::<CgroupIoLimit>::new(),
        ..CgroupFacts::default()
    };
    machine.change_previous_facts(|f| f.cgroups.push(at(100)));
    machine.change_facts(|f| f.cgroups.push(at(600)));
    let (found, _) = machine.evaluate_rule("cgroup-memory");
    assert!(found[0].title.contains("memory.limit_in_bytes of 1.00 GiB"), "{}", found[0].title);
}

#[test]
fn nothing_left_is_said_as_such() {
    let mut machine = TestMachine::new();
    machine.disk_space("/", 100 * GIB, 60 * GIB, 10_000, 0);
    let (found, _) = machine.evaluate_rule("filesystem-full");
    assert_eq!(found[0].title, "/ is out of inodes: none of 10000 is free");
    machine.disk_space("/", 100 * GIB, 0, 0, 0);
    let (found, _) = machine.evaluate_rule("filesystem-full");
    assert_eq!(found[0].title, "/ is full: nothing of 100 GiB is free");
}
