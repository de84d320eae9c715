//! Machines on which something that is not the cause looks like it.

use super::test_machine::*;
use crate::doctor::RuleEngine;
use crate::doctor::device_users::{DeviceUsers, Requests};
use crate::doctor::finding::{Finding, InvolvedTask, Severity};
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::memory::SwapArea;
use crate::model::observation::Observation;
use crate::model::process::{IoBytes, ProcessUpdate, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit, TaskWait};
use crate::model::snapshot::Snapshot;
use crate::model::task_waits::{TaskWaits, WaitKey, WaitRate, WaitReason};
use crate::model::topology::DeviceKind;
use std::sync::Arc;

fn set_users(t: &mut Snapshot, users: &[(u32, &str, DevId, IoRates)]) {
    let on = |device, rates| vec![DeviceIo { device, is_stacked: false, rates }];
    let processes = users.iter().map(|(pid, _, device, rates)| OwnerIo {
        owner: *pid,
        total: *rates,
        devices: on(*device, *rates),
    });
    let names = users.iter().map(|(pid, name, ..)| (*pid, (*name).into())).collect();
    let attribution = IoAttribution { processes: processes.collect(), names, ..IoAttribution::default() };
    t.io_attribution = Reading::Ok(Arc::new(attribution));
}

fn writes(in_flight: f64, mb_per_s: f64) -> IoRates {
    IoRates { writes_in_flight: in_flight, write_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

fn culprits(found: &Finding) -> Vec<&str> {
    found.culprits.iter().map(|task: &InvolvedTask| task.name.as_str()).collect()
}

fn set_swapping(t: &mut Snapshot) {
    let swap = t.swap.ok_mut().unwrap();
    (swap.in_bytes_per_s, swap.out_bytes_per_s) = (Some(2.0 * MIB), Some(3.0 * MIB));
    swap.used_bytes = Some(3 * GIB);
    t.mem.ok_mut().unwrap().available = Some(12 * GIB);
}

#[test]
fn two_limits_of_one_group_are_two_findings() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(2);
    let limit = |device, reads| CgroupIoLimit {
        device,
        reads_per_s: Some(100),
        transferred: Some([0, 0, reads, 0]),
        ..CgroupIoLimit::default()
    };
    let group = |reads| CgroupFacts {
        path: "/db".into(),
        io: vec![limit(SDA, reads), limit(VDA, reads)],
        ..CgroupFacts::default()
    };
    machine.change_previous_facts(|facts| facts.cgroups.push(group(0)));
    machine.change_facts(|facts| facts.cgroups.push(group(1000)));
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    let findings = engine.incidents.iter().flat_map(|incident| &incident.findings);
    let titles: Vec<&str> = findings.filter(|f| f.rule == "cgroup-io").map(|f| f.title.as_str()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
}

#[test]
fn a_group_that_drops_cache_without_waiting_is_a_note() {
    let severity = |faults| {
        let mut machine = TestMachine::new();
        machine.idle_ticks(2);
        let group = |events| CgroupFacts {
            path: "/pod".into(),
            memory_max: Some(GIB),
            max_events: Some(events),
            ..CgroupFacts::default()
        };
        machine.change_previous_facts(|facts| facts.cgroups.push(group(100)));
        machine.change_facts(|facts| facts.cgroups.push(group(600)));
        let key = machine.add_task(950, "reader", |_| {}, Default::default(), 0);
        let names = Arc::new(TaskNames { cgroup: "/pod/main".into(), ..TaskNames::default() });
        let update =
            ProcessUpdate { seq: 9, time: machine.now(), names: vec![(key, names)], ..ProcessUpdate::default() };
        machine.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
        machine.scan(vec![TaskRaw { majflt: faults, timeslices: 2, ..task_counters(950, "reader") }], false);
        machine.evaluate_rule("cgroup-memory").0.remove(0).severity
    };
    assert_eq!(severity(0), Severity::Note);
    assert_eq!(severity(100), Severity::Warn);
}

#[test]
fn a_process_killed_at_the_limit_of_its_group_has_that_group() {
    let group = |lines: &[&str]| {
        let mut machine = TestMachine::new();
        machine.idle_ticks(1);
        for line in lines {
            machine.kernel_message(line);
        }
        machine.evaluate_rule("oom").0.remove(0).cgroup
    };
    let invoked = "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0";
    let line =
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/pod,task_memcg=/pod/a,task=java,pid=77,uid=0";
    let killed = "Memory cgroup out of memory: Killed process 77 (java) total-vm:9kB, anon-rss:8kB";
    assert_eq!(group(&[invoked, line, killed]).as_deref(), Some("/pod"));
    let line =
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,global_oom,task_memcg=/a,task=java,pid=77,uid=0";
    let killed = "Out of memory: Killed process 77 (java) total-vm:9kB, anon-rss:8kB";
    assert_eq!(group(&[invoked, line, killed]), None);
}

#[test]
fn the_file_of_an_earlier_wait_is_not_that_of_a_hang() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(20);
    // The facts were read before.
    let key = machine.add_hung_task(930, "backup", "folio_wait_bit_common", 10);
    machine.change_facts(|facts| facts.waits.push(TaskWait { key, mount_id: 5, path: "/srv/x".into() }));
    let found = machine.evaluate_rule("hung-task").0.remove(0);
    assert_eq!(found.files, [""; 0]);
    let now = machine.now();
    machine.change_facts(|facts| facts.time = now);
    assert_eq!(machine.evaluate_rule("hung-task").0.remove(0).files, ["/srv/x"]);
}

#[test]
fn swap_in_compressed_memory_waits_for_no_disk() {
    let mut machine = TestMachine::new();
    let device = machine.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA2).unwrap();
    device.kind = DeviceKind::Zram;
    let area = |name: &str| SwapArea { name: name.into(), ..SwapArea::default() };
    machine.ticks(8, |t| {
        set_swapping(t);
        t.swap_areas = Reading::Ok(vec![area("sda2")]);
    });
    let found = machine.evaluate_rule("swapping").0.remove(0);
    assert_eq!(found.severity, Severity::Note);
    assert!(found.title.starts_with("the machine is swapping to zram: si"), "{}", found.title);
    assert!(found.why.contains("no disk"), "{}", found.why);
    machine.ticks(8, |t| {
        set_swapping(t);
        t.swap_areas = Reading::Ok(vec![area("sda2"), area("/swapfile")]);
    });
    assert_eq!(machine.evaluate_rule("swapping").0.remove(0).severity, Severity::Warn, "a file on a disk as well");
}

#[test]
fn a_task_that_was_swapped_out_long_ago_does_not_swap_now() {
    let culprit = |faults| {
        let mut machine = TestMachine::new();
        machine.ticks(8, set_swapping);
        machine.add_task(940, "java", |task| task.swap_bytes = Some(2 * GIB), Default::default(), faults);
        machine.evaluate_rule("swapping").0.remove(0).culprits
    };
    assert_eq!(culprit(0), []);
    assert_eq!(culprit(9).len(), 1);
}

#[test]
fn a_child_that_does_the_work_itself_is_not_its_script() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    let script = vec![task_counters(700, "script")];
    machine.scan(script.clone(), true);
    for pid in 801..=803 {
        machine.add_task(pid, "gzip", |task| task.ppid = 700, IoBytes { write: 1 << 20, ..IoBytes::default() }, 0);
    }
    machine.idle_ticks(1);
    let mut dump = TaskRaw { ppid: 700, ..task_counters(804, "pg_dump") };
    dump.key.starttime = machine.now().boot_ns / 10_000_000;
    machine.scan(script.into_iter().chain([dump]).collect(), true);
    let users = |pid, name| (pid, name, SDA, writes(2.0, 1.0));
    let all = [users(801, "gzip"), users(802, "gzip"), users(803, "gzip"), users(804, "pg_dump")];
    machine.ticks(3, |t| set_users(t, &all));
    let users = DeviceUsers::traced(&RuleContext::new(&machine.system), SDA, 5.0, Requests::Writes).unwrap();
    let shares: Vec<(u32, f64)> = users.users.iter().map(|user| (user.pid, (user.share * 100.0).round())).collect();
    assert_eq!(shares, [(700, 75.0), (804, 25.0)]);
}

#[test]
fn the_journal_thread_of_another_file_system_names_no_device() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    let thread = TaskRaw { kernel_thread: true, state: b'D', ..task_counters(40, "jbd2/sda1-8") };
    let key = WaitKey {
        pid: 930,
        starttime: 100,
        reason: WaitReason::Journal,
        function: "xlog_grant_head_wait".into(),
        device: VDA,
        ..WaitKey::default()
    };
    let rows = vec![WaitRate { key, secs: 0.9, count: 9, ..WaitRate::default() }];
    let set_waits = |tick: &mut Snapshot| {
        let waits = TaskWaits {
            rows: rows.clone(),
            processes: vec![(930, "tar".into())],
            covered_secs: 1.0,
            ..TaskWaits::default()
        };
        tick.task_waits = Reading::Ok(Arc::new(waits));
    };
    for _ in 0..8 {
        machine.tick(set_waits);
        machine.scan(vec![thread, task_counters(930, "tar")], false);
    }
    let found = machine.evaluate_rule("journal-full").0.remove(0);
    assert_eq!(found.title, "tar (930) waits for the XFS log on vda: 90% of its time");
}

#[test]
fn a_stream_to_the_disk_below_is_said_to_go_there() {
    let mut machine = TestMachine::new();
    machine.ticks(16, |t| {
        set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        set_device(t, busy_device(SDA2, "sda2", (140.0, 110.0, 16.0, 1024.0, 0.0)));
        super::syncs::set_syncs(t, 6.0, 62.0, 180.0);
        set_users(t, &[(901, "copy", SDA, writes(12.0, 140.0))]);
    });
    let found = machine.evaluate_rule("syncs-behind-a-stream").0.remove(0);
    assert!(found.title.ends_with("copy (901) streams 140 MiB/s to sda, which is below sda1"), "{}", found.title);
}

#[test]
fn a_storm_that_goes_to_a_server_names_nobody_who_writes_a_disk() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        let w = t.writeback.ok_mut().unwrap();
        (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
            (Some(5 << 29), Some(110.0 * MIB), Some(100.0 * MIB));
        let rates = IoRates { writeback_bytes_per_s: 5.0 * MIB, ..IoRates::default() };
        set_users(t, &[(900, "postgres", VDA, rates)]);
    });
    let (found, _) = machine.evaluate_rule("writeback-storm");
    assert!(!found[0].title.contains("postgres"), "{}", found[0].title);
    assert_eq!(culprits(&found[0]), [""; 0]);
}

#[test]
fn no_control_group_is_advised_for_a_kernel_thread() {
    let mut machine = TestMachine::new();
    machine.scan(vec![TaskRaw { kernel_thread: true, ..task_counters(41, "md101_resync") }], false);
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 512.0, 0.9)));
        set_users(t, &[(41, "md101_resync", SDA, writes(12.0, 60.0))]);
    });
    let found = machine.evaluate_rule("device-saturated").0.remove(0);
    let advice = &found.remedies[0].action;
    assert!(advice.contains("dev.raid.speed_limit_max"), "{advice}");
}
