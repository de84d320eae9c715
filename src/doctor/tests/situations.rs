//! What the benchmark of situations found wrong, each as a rule sees it.

use super::test_machine::*;
use crate::doctor::device_users::{DeviceUsers, Requests};
use crate::doctor::finding::Severity;
use crate::doctor::rule_context::RuleContext;
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::process::{IoBytes, TaskRaw};
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::Reading;
use crate::model::slow_facts::{CgroupFacts, TaskWait};
use crate::model::snapshot::Snapshot;
use crate::model::topology::BackingMount;
use std::sync::Arc;

fn set_children(t: &mut Snapshot, children: &[(u32, &str)]) {
    let rates = IoRates { writes_in_flight: 2.0, writes_per_s: 50.0, ..IoRates::default() };
    let io =
        |pid| OwnerIo { owner: pid, total: rates, devices: vec![DeviceIo { device: SDA, is_stacked: false, rates }] };
    let processes = children.iter().map(|(pid, _)| io(*pid)).collect();
    let names = children.iter().map(|(pid, name)| (*pid, (*name).into())).collect();
    t.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes, names, ..IoAttribution::default() }));
}

#[test]
fn short_lived_children_of_one_name_count_as_one_user() {
    let users = |names: [&'static str; 4]| {
        let mut machine = TestMachine::new();
        let children: Vec<(u32, &str)> = (801..).zip(names).collect();
        machine.ticks(8, |t| set_children(t, &children));
        let users = DeviceUsers::traced(&RuleContext::new(&machine.system), SDA, 5.0, Requests::Writes).unwrap();
        users.main().iter().map(|user| (user.name.clone(), (user.share * 100.0).round())).collect::<Vec<_>>()
    };
    assert_eq!(users(["step", "step", "step", "dd"]), [("step (803)".into(), 75.0), ("dd (804)".into(), 25.0)]);
    assert_eq!(users(["a", "b", "c", "d"]).len(), 3);
}

#[test]
fn children_count_for_their_own_parent() {
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    let child = |pid, ppid, name| TaskRaw { ppid, ..task_counters(pid, name) };
    let lasting = vec![task_counters(700, "script"), task_counters(710, "backup"), child(811, 710, "gzip")];
    machine.scan(lasting.clone(), true);
    for pid in 801..=803 {
        machine.add_task(pid, "gzip", |task| task.ppid = 700, IoBytes { write: 1 << 20, ..IoBytes::default() }, 0);
    }
    machine.idle_ticks(1);
    // The next child of the script has not yet got its name.
    let started = machine.now().boot_ns / 10_000_000;
    let mut next = child(804, 700, "script");
    next.key.starttime = started;
    machine.scan(lasting.into_iter().chain([next]).collect(), true);
    let children = [(801, "gzip"), (802, "gzip"), (803, "gzip"), (804, "script"), (811, "gzip")];
    machine.ticks(3, |t| set_children(t, &children));
    let users = DeviceUsers::traced(&RuleContext::new(&machine.system), SDA, 5.0, Requests::Writes).unwrap();
    let shares: Vec<(u32, f64)> = users.users.iter().map(|user| (user.pid, (user.share * 100.0).round())).collect();
    assert_eq!(shares, [(700, 80.0), (811, 20.0)], "the one that lasts is not the script's");
}

#[test]
fn a_frozen_file_system_is_named() {
    let mut machine = TestMachine::new();
    let key = machine.add_hung_task(930, "dd", "percpu_rwsem_wait", 10);
    let title = |machine: &TestMachine| machine.evaluate_rule("hung-task").0.remove(0);
    assert!(title(&machine).title.ends_with("in percpu_rwsem_wait"), "{}", title(&machine).title);
    let mount_id = 77;
    let device = machine.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == SDA1).unwrap();
    device.mounts[0].id = mount_id;
    machine.change_facts(|facts| facts.waits.push(TaskWait { key, mount_id, path: RawBytes::from("/srv/log") }));
    let found = title(&machine);
    assert!(found.title.contains("/srv on sda1 is frozen"), "{}", found.title);
    assert_eq!((found.devices, found.files), (vec![SDA1, SDA], vec!["/srv/log".into()]));
}

#[test]
fn the_server_of_a_stalled_backing_file_is_named() {
    let mut machine = TestMachine::new();
    let device = machine.system.topology.ok_mut().unwrap().devices.iter_mut().find(|d| d.id == LOOP0).unwrap();
    device.parent = None;
    device.backing_mount = Some(BackingMount { mount_point: "/mnt/cloud".into(), fs_type: "fuse.rclone".into() });
    let mut stalled = busy_device(LOOP0, "loop0", (0.0, 0.0, 2.0, 4.0, 1.0));
    stalled.stalled = true;
    machine.ticks(8, |t| set_device(t, stalled.clone()));
    let found = machine.evaluate_rule("device-stalled").0.remove(0);
    assert!(found.title.ends_with("; the FUSE server of /mnt/cloud does not answer"), "{}", found.title);
}

#[test]
fn damage_that_btrfs_mended_is_not_critical() {
    let severity = |messages: &[&str]| {
        let mut machine = TestMachine::new();
        machine.idle_ticks(5);
        for message in messages {
            machine.kernel_message(message);
        }
        machine.evaluate_rule("filesystem-error").0[0].severity
    };
    let fixed = "BTRFS error (device sda1): fixed up error at logical 30408704 on dev /dev/sda1 physical 38797312";
    let counters = "BTRFS error (device sda1): bdev /dev/sda1 errs: wr 0, rd 0, flush 0, corrupt 10, gen 0";
    let lost = "BTRFS error (device sda1): unable to fixup (regular) error at logical 30408704 on dev /dev/sda1";
    assert_eq!(severity(&[fixed, counters]), Severity::Warn);
    assert_eq!(severity(&[fixed, lost, counters]), Severity::Critical);
    assert_eq!(severity(&[counters]), Severity::Critical);
}

#[test]
fn processes_of_a_limited_group_are_its_victims() {
    let mut machine = TestMachine::new();
    let key = machine.add_task(940, "report", |_| {}, Default::default(), 0);
    let group = |events| CgroupFacts {
        path: "/small".into(),
        pids: vec![key.pid],
        memory_high: Some(60 << 20),
        high_events: Some(events),
        ..CgroupFacts::default()
    };
    machine.change_previous_facts(|facts| facts.cgroups.push(group(0)));
    machine.change_facts(|facts| facts.cgroups.push(group(500)));
    let found = machine.evaluate_rule("cgroup-memory").0.remove(0);
    assert_eq!(found.victims.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["report (940)"]);
}
