//! Stories and their order; findings that do not flap.

use super::stage::*;
use crate::diagnose::Engine;
use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Severity, Subject};
use crate::diagnose::known::Server;
use crate::diagnose::story::stories;
use crate::model::process::{IoBytes, TaskNames, ProcessUpdate};
use crate::model::reading::Reading;
use crate::model::memory_stalls::THROTTLE;
use std::sync::Arc;

fn rules(engine: &Engine) -> Vec<Vec<&'static str>> {
    engine.stories().iter().map(|s| s.findings.iter().map(|f| f.rule).collect()).collect()
}

fn finding(rule: &'static str, severity: Severity, devices: &[crate::model::disk::DevId]) -> Finding {
    Finding::new(rule, severity, Subject::Named(format!("{devices:?}")), rule.into())
        .touching(devices.to_vec())
}

#[test]
fn a_failing_disk_is_one_story_cause_first() {
    let mut stage = Stage::new();
    stage.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap().mounts =
        vec![mount("/srv", "rw,relatime", "rw,emergency_ro")];
    stage.hang(930, "postgres", "io_schedule", 10);
    stage.kernel("I/O error, dev sda, sector 81239 op 0x1:(WRITE)");
    stage.kernel(
        "EXT4-fs error (device sda1): ext4_journal_check_start:84: comm postgres: Detected aborted journal",
    );
    stage.ticks(6, |t| {
        let mut d = idle(SDA, "sda");
        (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
        with(t, d);
    });
    let mut engine = Engine::default();
    engine.look(&stage.world);
    assert_eq!(
        rules(&engine),
        [["io-error", "filesystem-error", "read-only", "device-stalled", "hung-task"]],
    );
    assert_eq!(engine.worst(), Some(Severity::Critical));
}

#[test]
fn a_storm_is_one_story_cause_first() {
    let mut stage = Stage::new();
    stage.ticks(14, |t| {
        with(t, load(SDA, "sda", (119.0, 610.0, 73.0, 4.0, 0.0)));
        let w = t.writeback.ok_mut().unwrap();
        w.dirty_bytes = Some(7 * GIB / 2);
        (w.dirtied_bytes_per_s, w.written_bytes_per_s) = (Some(60.0 * MIB), Some(40.0 * MIB));
        hold_up(t, 911, "dd", THROTTLE, 500.0, 56.0);
    });
    let mut engine = Engine::default();
    engine.look(&stage.world);
    assert_eq!(rules(&engine), [["writeback-storm", "writers-throttled", "slow-drain", "device-saturated"]]);
    assert_eq!(engine.stories()[0].severity, Severity::Critical, "as bad as the worst of it");
}

#[test]
fn a_fault_is_not_felt_below_its_device_and_a_note_explains_nothing() {
    let up = finding("io-error", Severity::Critical, &[LOOP0, VDA]);
    let down = finding("device-saturated", Severity::Note, &[VDA]);
    assert_eq!(stories(vec![up.clone(), down]).len(), 2);
    let above = finding("device-stalled", Severity::Critical, &[LOOP0, VDA]);
    assert_eq!(stories(vec![finding("io-error", Severity::Critical, &[VDA]), above]).len(), 1);
    let other = finding("device-stalled", Severity::Critical, &[SDA]);
    assert_eq!(stories(vec![up, other]).len(), 2);
    let note = finding("device-saturated", Severity::Note, &[VDA]);
    let hung = finding("hung-task", Severity::Critical, &[]);
    assert_eq!(stories(vec![note, hung]).len(), 2);
    // Swap traffic comes down on the disk that swap lies on.
    let swap = finding("swapping", Severity::Warn, &[SDA2, SDA]);
    assert_eq!(stories(vec![swap, finding("device-saturated", Severity::Warn, &[SDA])]).len(), 1);
}

#[test]
fn the_worst_story_comes_first_and_equals_keep_their_order() {
    let all = stories(vec![
        finding("filesystem-full", Severity::Warn, &[VDA]),
        finding("open-files", Severity::Critical, &[]),
        finding("cifs-version-1", Severity::Warn, &[]),
    ]);
    let names: Vec<_> = all.iter().map(|s| s.cause().rule).collect();
    assert_eq!(names, ["open-files", "filesystem-full", "cifs-version-1"]);
}

#[test]
fn a_finding_at_the_edge_does_not_blink_and_goes_when_it_is_over() {
    let mut stage = Stage::new();
    let mut engine = Engine::default();
    let busy =
        |t: &mut crate::model::snapshot::Snapshot| with(t, load(SDA, "sda", (119.0, 100.0, 12.0, 4.0, 0.6)));
    stage.ticks(8, busy);
    engine.look(&stage.world);
    let since = engine.stories()[0].since_ns();
    // A second off in every four: there all the time, since the beginning.
    for i in 0..40 {
        match i % 4 > 0 {
            true => stage.tick(busy),
            false => stage.quiet(1),
        };
        engine.look(&stage.world);
        assert_eq!(engine.stories().len(), 1, "gone at {i}");
    }
    assert_eq!(engine.stories()[0].since_ns(), since);
    let mut seen = 0;
    while !engine.stories().is_empty() {
        stage.quiet(1);
        engine.look(&stage.world);
        seen += 1;
        assert!(seen < 30, "it never goes");
    }
    assert!(seen >= 8, "it went at once");
}

#[test]
fn it_does_not_get_milder_at_once() {
    let mut stage = Stage::new();
    let mut engine = Engine::default();
    stage.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
    engine.look(&stage.world);
    assert_eq!(engine.worst(), Some(Severity::Critical));
    for i in 0..20 {
        stage.tick(|t| with(t, load(SDA, "sda", (119.0, 100.0, 12.0, 4.0, 0.6))));
        engine.look(&stage.world);
        if i == 6 {
            assert_eq!(engine.worst(), Some(Severity::Critical), "not after a moment");
        }
    }
    assert_eq!(engine.worst(), Some(Severity::Warn));
}

#[test]
fn a_replay_that_goes_back_begins_anew() {
    let mut stage = Stage::new();
    let mut engine = Engine::default();
    stage.ticks(8, |t| with(t, load(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
    engine.look(&stage.world);
    let mut early = Stage::new();
    early.quiet(1);
    engine.look(&early.world);
    assert_eq!(engine.stories(), []);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let mut stage = Stage::new();
    stage.quiet(10);
    stage.world.kernel_log_status = Reading::Denied("/dev/kmsg: needs CAP_SYSLOG".into());
    let mut engine = Engine::default();
    engine.look(&stage.world);
    let io = engine.unjudged().iter().find(|u| u.rule == "io-error").unwrap();
    assert!(!io.for_now && io.why.contains("CAP_SYSLOG"));
    let mut young = Engine::default();
    let mut stage = Stage::new();
    stage.quiet(1);
    young.look(&stage.world);
    assert!(young.unjudged().iter().any(|u| u.rule == "device-saturated" && u.for_now));
}

#[test]
fn the_same_past_gives_the_same_findings() {
    let look = || {
        let mut stage = Stage::new();
        let mut engine = Engine::default();
        for _ in 0..12 {
            stage.tick(|t| with(t, load(SDA, "sda", (119.0, 600.0, 57.0, 4.0, 0.6))));
            engine.look(&stage.world);
        }
        engine.stories().to_vec()
    };
    assert_eq!(look(), look());
}

#[test]
fn what_is_over_explains_nothing_new_and_comes_after_what_goes_on() {
    let mut stage = Stage::new();
    stage.quiet(2);
    stage.kernel("I/O error, dev sda, sector 81239 op 0x1:(WRITE)");
    stage.quiet(100);
    stage.hang(930, "dd", "submit_bio_wait", 10);
    let mut engine = Engine::default();
    engine.look(&stage.world);
    assert_eq!(rules(&engine), [["hung-task"], ["io-error"]]);
    stage.quiet(60);
    let mut later = Engine::default();
    later.look(&stage.world);
    let error = later.stories().iter().find(|s| s.cause().rule == "io-error").unwrap();
    assert_eq!(error.severity, Severity::Warn, "two minutes without another");
}

#[test]
fn errors_of_a_device_that_was_taken_away_are_no_emergency() {
    let mut stage = Stage::new();
    stage.world.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == LOOP0).unwrap().size_bytes =
        Some(0);
    stage.quiet(2);
    stage.kernel("I/O error, dev loop0, sector 8");
    assert_eq!(stage.rule("io-error").0[0].severity, Severity::Warn);
}

#[test]
fn a_hung_task_belongs_to_the_device_that_stalls() {
    let mut stage = Stage::new();
    stage.hang(930, "dd", "submit_bio_wait", 10);
    stage.kernel("I/O error, dev nvme0n1, sector 8");
    stage.ticks(6, |t| {
        let mut d = idle(SDA, "sda");
        (d.tps, d.writes_per_s, d.in_flight, d.stalled) = (0.0, 0.0, 3, true);
        with(t, d);
    });
    let mut engine = Engine::default();
    engine.look(&stage.world);
    assert_eq!(rules(&engine), [vec!["device-stalled", "hung-task"], vec!["io-error"]]);
}

#[test]
fn errors_of_a_file_that_is_no_longer_behind_the_loop_device_are_not_counted() {
    let mut stage = Stage::new();
    let error = "I/O error, dev loop0, sector 81239 op 0x1:(WRITE)";
    stage.kernel(error).kernel(error).quiet(3);
    stage.kernel("loop0: detected capacity change from 0 to 409600").quiet(3);
    stage.kernel(error);
    let (found, _) = stage.rule("io-error");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].title, format!("I/O errors on loop0: {error}"), "one of three");
    // What a program writes into the log proves nothing.
    stage.kernel_as(1, "loop0: detected capacity change from 0 to 409600");
    assert_eq!(stage.rule("io-error").0.len(), 1);
}

#[test]
fn a_server_in_a_java_machine_is_a_server() {
    let mut stage = Stage::new();
    let key = stage.task(77, "java", |_| {}, IoBytes::default(), 0);
    assert_eq!(Case::new(&stage.world).servers(|_| true).count(), 0);
    let line: &[u8] = b"java -Xmx8G -cp /x.jar org.apache.cassandra.service.CassandraDaemon";
    let names = Arc::new(TaskNames { cmdline: Some(line.into()), ..TaskNames::default() });
    let update = ProcessUpdate { seq: 9, time: stage.now(), names: vec![(key, names)], ..ProcessUpdate::default() };
    stage.world.apply_processes(Reading::Ok(update));
    let case = Case::new(&stage.world);
    let servers: Vec<_> =
        case.servers(|kind| kind == Server::Database).map(|at| case.task_name(at)).collect();
    assert_eq!(servers, ["java (77)"]);
}

#[test]
fn a_note_makes_no_fault_older_than_it_is() {
    let since = |rule, severity, at| Finding { since_ns: Some(at), ..finding(rule, severity, &[SDA]) };
    let told = stories(vec![
        since("device-stalled", Severity::Critical, 70),
        since("hung-task", Severity::Warn, 60),
        since("hung-task-silent", Severity::Note, 5),
    ]);
    assert_eq!(told.iter().map(|s| (s.findings.len(), s.since_ns())).collect::<Vec<_>>(), [(3, Some(60))]);
    assert_eq!(stories(vec![since("burst", Severity::Note, 5)])[0].since_ns(), Some(5));
}
