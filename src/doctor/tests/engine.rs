//! Incidents and their order; findings that do not flap.

use super::test_machine::*;
use crate::doctor::finding::{Finding, FindingSubject, Severity};
use crate::doctor::incident::group_into_incidents;
use crate::doctor::known_servers::ServerKind;
use crate::doctor::rule_context::RuleContext;
use crate::doctor::{RULES, RuleEngine};
use crate::model::memory_stalls::THROTTLE;
use crate::model::observation::Observation;
use crate::model::process::{IoBytes, ProcessUpdate, TaskNames};
use crate::model::reading::Reading;
use std::sync::Arc;

fn rules_by_incident(engine: &RuleEngine) -> Vec<Vec<&'static str>> {
    engine.incidents.iter().map(|s| s.findings.iter().map(|f| f.rule).collect()).collect()
}

fn finding(rule: &'static str, severity: Severity, devices: &[crate::model::disk::DevId]) -> Finding {
    let subject = FindingSubject::Cgroup(format!("{devices:?}"));
    Finding { rule, ..Finding::new(severity, subject, rule).on_devices(devices.to_vec()) }
}

#[test]
fn failing_disk_is_one_incident_with_the_cause_first() {
    let mut machine = TestMachine::new();
    machine.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
        vec![mount("/srv", "rw,relatime", "rw,emergency_ro")];
    machine.add_hung_task(930, "postgres", "io_schedule", 10);
    machine.kernel_message("I/O error, dev sda, sector 81239 op 0x1:(WRITE)");
    machine.kernel_message(
        "EXT4-fs error (device sda1): ext4_journal_check_start:84: comm postgres: Detected aborted journal",
    );
    machine.ticks(6, |t| {
        let mut d = idle_device(SDA, "sda");
        (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
        set_device(t, d);
    });
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    assert_eq!(
        rules_by_incident(&engine),
        [["io-error", "filesystem-error", "read-only", "device-stalled", "hung-task"]],
    );
    assert_eq!(engine.worst_severity(), Some(Severity::Critical));
}

#[test]
fn writeback_storm_is_one_incident_with_the_cause_first() {
    let mut machine = TestMachine::new();
    machine.ticks(14, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 610.0, 73.0, 4.0, 0.0)));
        let w = t.writeback.ok_mut().unwrap();
        w.dirty_bytes = Some(7 * GIB / 2);
        (w.dirtied_bytes_per_s, w.written_bytes_per_s) = (Some(60.0 * MIB), Some(40.0 * MIB));
        set_stalled(t, 911, "dd", THROTTLE, 500.0, 56.0);
    });
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    assert_eq!(
        rules_by_incident(&engine),
        [["writeback-storm", "writers-throttled", "slow-drain", "device-saturated"]]
    );
    assert_eq!(engine.incidents[0].severity, Severity::Critical, "the highest severity of its findings");
}

#[test]
fn causes_explain_only_findings_on_devices_above_them() {
    let up = finding("io-error", Severity::Critical, &[LOOP0, VDA]);
    let down = finding("device-saturated", Severity::Note, &[VDA]);
    assert_eq!(group_into_incidents(vec![up.clone(), down]).len(), 2);
    let above = finding("device-stalled", Severity::Critical, &[LOOP0, VDA]);
    assert_eq!(group_into_incidents(vec![finding("io-error", Severity::Critical, &[VDA]), above]).len(), 1);
    let other = finding("device-stalled", Severity::Critical, &[SDA]);
    assert_eq!(group_into_incidents(vec![up, other]).len(), 2);
    let note = finding("device-saturated", Severity::Note, &[VDA]);
    let hung = finding("hung-task", Severity::Critical, &[]);
    assert_eq!(group_into_incidents(vec![note, hung]).len(), 2);
    // Swap traffic reaches the disk below the swap partition.
    let swap = finding("swapping", Severity::Warn, &[SDA2, SDA]);
    assert_eq!(group_into_incidents(vec![swap, finding("device-saturated", Severity::Warn, &[SDA])]).len(), 1);
}

#[test]
fn incidents_are_sorted_by_severity_and_stable() {
    let all = group_into_incidents(vec![
        finding("filesystem-full", Severity::Warn, &[VDA]),
        finding("open-files", Severity::Critical, &[]),
        finding("cifs-version-1", Severity::Warn, &[]),
    ]);
    let names: Vec<_> = all.iter().map(|s| s.cause().rule).collect();
    assert_eq!(names, ["open-files", "filesystem-full", "cifs-version-1"]);
}

#[test]
fn findings_near_a_limit_do_not_flap_and_clear_later() {
    let mut machine = TestMachine::new();
    let mut engine = RuleEngine::default();
    let busy = |t: &mut crate::model::snapshot::Snapshot| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.0, 12.0, 4.0, 0.6)))
    };
    machine.ticks(8, busy);
    engine.evaluate(&machine.system);
    let since = engine.incidents[0].since_ns();
    // One idle second in four does not interrupt the finding.
    for i in 0..40 {
        match i % 4 > 0 {
            true => machine.tick(busy),
            false => machine.idle_ticks(1),
        };
        engine.evaluate(&machine.system);
        assert_eq!(engine.incidents.len(), 1, "cleared at {i}");
    }
    assert_eq!(engine.incidents[0].since_ns(), since);
    let mut seen = 0;
    while !engine.incidents.is_empty() {
        machine.idle_ticks(1);
        engine.evaluate(&machine.system);
        seen += 1;
        assert!(seen < 30, "it never clears");
    }
    assert!(seen >= 8, "it cleared at once");
}

#[test]
fn severity_falls_only_after_the_clear_time() {
    let mut machine = TestMachine::new();
    let mut engine = RuleEngine::default();
    machine.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
    engine.evaluate(&machine.system);
    assert_eq!(engine.worst_severity(), Some(Severity::Critical));
    for i in 0..20 {
        machine.tick(|t| set_device(t, busy_device(SDA, "sda", (119.0, 100.0, 12.0, 4.0, 0.6))));
        engine.evaluate(&machine.system);
        if i == 6 {
            assert_eq!(engine.worst_severity(), Some(Severity::Critical), "too early");
        }
    }
    assert_eq!(engine.worst_severity(), Some(Severity::Warn));
}

#[test]
fn going_back_in_time_resets_the_engine() {
    let mut machine = TestMachine::new();
    let mut engine = RuleEngine::default();
    machine.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
    engine.evaluate(&machine.system);
    let mut early = TestMachine::new();
    early.idle_ticks(1);
    engine.evaluate(&early.system);
    assert_eq!(engine.incidents, []);
}

#[test]
fn skipped_rules_give_their_reason() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(10);
    machine.system.kernel_log_status = Reading::Denied("/dev/kmsg: needs CAP_SYSLOG".into());
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    let io = engine.skipped_rules.iter().find(|u| u.rule == "io-error").unwrap();
    assert!(!io.needs_more_data && io.reason.contains("CAP_SYSLOG"));
    let mut young = RuleEngine::default();
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    young.evaluate(&machine.system);
    assert!(young.skipped_rules.iter().any(|u| u.rule == "device-saturated" && u.needs_more_data));
}

#[test]
fn equal_histories_give_equal_findings() {
    let evaluate_history = || {
        let mut machine = TestMachine::new();
        let mut engine = RuleEngine::default();
        for _ in 0..12 {
            machine.tick(|t| set_device(t, busy_device(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
            engine.evaluate(&machine.system);
        }
        engine.incidents.to_vec()
    };
    assert_eq!(evaluate_history(), evaluate_history());
}

#[test]
fn past_findings_explain_nothing_new_and_sort_after_current_ones() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(2);
    machine.kernel_message("I/O error, dev sda, sector 81239 op 0x1:(WRITE)");
    machine.idle_ticks(100);
    machine.add_hung_task(930, "dd", "submit_bio_wait", 10);
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    assert_eq!(rules_by_incident(&engine), [["hung-task"], ["io-error"]]);
    machine.idle_ticks(60);
    let mut later = RuleEngine::default();
    later.evaluate(&machine.system);
    let error = later.incidents.iter().find(|s| s.cause().rule == "io-error").unwrap();
    assert_eq!(error.severity, Severity::Warn, "two minutes without another error");
}

#[test]
fn errors_of_a_removed_device_are_only_warnings() {
    let mut machine = TestMachine::new();
    machine.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == LOOP0).unwrap().size_bytes = Some(0);
    machine.idle_ticks(2);
    machine.kernel_message("I/O error, dev loop0, sector 8");
    assert_eq!(machine.evaluate_rule("io-error").0[0].severity, Severity::Warn);
}

#[test]
fn hung_task_joins_the_incident_of_the_stalled_device() {
    let mut machine = TestMachine::new();
    machine.add_hung_task(930, "dd", "submit_bio_wait", 10);
    machine.kernel_message("I/O error, dev nvme0n1, sector 8");
    machine.ticks(6, |t| {
        let mut d = idle_device(SDA, "sda");
        (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
        set_device(t, d);
    });
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    assert_eq!(rules_by_incident(&engine), [vec!["device-stalled", "hung-task"], vec!["io-error"]]);
}

#[test]
fn errors_before_a_loop_device_was_reattached_are_not_counted() {
    let mut machine = TestMachine::new();
    let error = "I/O error, dev loop0, sector 81239 op 0x1:(WRITE)";
    machine.kernel_message(error).kernel_message(error).idle_ticks(3);
    machine.kernel_message("loop0: detected capacity change from 0 to 409600").idle_ticks(3);
    machine.kernel_message(error);
    let (found, _) = machine.evaluate_rule("io-error");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].title, format!("I/O errors on loop0: {error}"), "the newest of three only");
    // Messages of programs do not count.
    machine.kernel_message_from(1, "loop0: detected capacity change from 0 to 409600");
    assert_eq!(machine.evaluate_rule("io-error").0.len(), 1);
}

#[test]
fn java_servers_are_found_by_command_line() {
    let mut machine = TestMachine::new();
    let key = machine.add_task(77, "java", |_| {}, IoBytes::default(), 0);
    assert_eq!(RuleContext::new(&machine.system).task_survey().servers.len(), 0);
    let line: &[u8] = b"java -Xmx8G -cp /x.jar org.apache.cassandra.service.CassandraDaemon";
    let names = Arc::new(TaskNames { cmdline: Some(line.into()), ..TaskNames::default() });
    let update = ProcessUpdate { seq: 9, time: machine.now(), names: vec![(key, names)], ..ProcessUpdate::default() };
    machine.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
    let ctx = RuleContext::new(&machine.system);
    let servers: Vec<_> = ctx.servers(ServerKind::Database).map(|row| row.label()).collect();
    assert_eq!(servers, ["java (77)"]);
}

#[test]
fn every_rule_is_named_once_on_the_page_of_findings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/findings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table = page.lines().filter(|line| line.starts_with('|')).collect::<String>();
    for rule in RULES {
        assert_eq!(table.matches(&format!("`{}`", rule.name)).count(), 1, "{}", rule.name);
    }
}

#[test]
fn notes_do_not_move_the_start_of_an_incident() {
    let since = |rule, severity, at| Finding { since_ns: Some(at), ..finding(rule, severity, &[SDA]) };
    let incidents = group_into_incidents(vec![
        since("device-stalled", Severity::Critical, 70),
        since("hung-task", Severity::Warn, 60),
        since("hung-task-silent", Severity::Note, 5),
    ]);
    assert_eq!(incidents.iter().map(|s| (s.findings.len(), s.since_ns())).collect::<Vec<_>>(), [(3, Some(60))]);
    assert_eq!(group_into_incidents(vec![since("burst", Severity::Note, 5)])[0].since_ns(), Some(5));
}
