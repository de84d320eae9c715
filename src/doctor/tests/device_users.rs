//! Who uses a device, by traced I/O: named by its share of the queue, on that device only.

use super::directions::{discarding, flushing};
use super::test_machine::*;
use crate::doctor::device_users::{DeviceUsers, Requests};
use crate::doctor::finding::{Finding, InvolvedTask, Severity};
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::memory_stalls::THROTTLE;
use crate::model::observation::Observation;
use crate::model::process::ProcessUpdate;
use crate::model::process::{IoBytes, IoPrio, TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use std::sync::Arc;

fn owner_io(pid: u32, id: DevId, rates: IoRates) -> OwnerIo<u32> {
    OwnerIo { owner: pid, total: rates, devices: vec![DeviceIo { device: id, is_stacked: false, rates }] }
}

fn set_attribution(t: &mut Snapshot, processes: Vec<OwnerIo<u32>>) {
    let names = processes.iter().map(|process| (process.owner, format!("task{}", process.owner).into())).collect();
    t.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes, names, ..IoAttribution::default() }));
}

fn reads(in_flight: f64, mb_per_s: f64) -> IoRates {
    IoRates { reads_in_flight: in_flight, read_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

fn writes(in_flight: f64, mb_per_s: f64) -> IoRates {
    IoRates { writes_in_flight: in_flight, write_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

fn writeback(mb_per_s: f64) -> IoRates {
    IoRates { writeback_bytes_per_s: mb_per_s * MIB, ..IoRates::default() }
}

fn kernel_thread(machine: &mut TestMachine, pid: u32) {
    machine.scan(vec![TaskRaw { kernel_thread: true, ..task_counters(pid, "kworker/u8:5-fl") }], false);
}

fn shares(machine: &TestMachine, id: DevId, requests: Requests) -> Vec<(u32, u32)> {
    let users = DeviceUsers::traced(&RuleContext::new(&machine.system), id, 5.0, requests).unwrap();
    users.users.iter().map(|user| (user.pid, (user.share * 100.0).round() as u32)).collect()
}

#[test]
fn random_reader_is_named_before_a_stream_with_more_bytes() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
        set_attribution(t, vec![owner_io(900, SDA, writes(1.2, 60.0)), owner_io(901, SDA, reads(10.8, 0.4))]);
    });
    let (found, _) = machine.evaluate_rule("device-saturated");
    assert!(found[0].title.ends_with("; task901 (901) has 90% of its queue"), "{}", found[0].title);
}

#[test]
fn a_light_user_with_slow_requests_waits_behind_the_heavy_one() {
    let victim = |ms: f64| IoRates { reads_per_s: 20.0, ..reads(20.0 * ms / 1e3, 0.1) };
    let title = |ms: f64| {
        let mut machine = TestMachine::new();
        machine.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
            set_attribution(t, vec![owner_io(900, SDA, reads(10.5, 60.0)), owner_io(901, SDA, victim(ms))]);
        });
        machine.evaluate_rule("device-saturated").0[0].title.clone()
    };
    assert!(title(75.0).ends_with("; task901 (901) waits 75.0 ms for each request behind it"), "{}", title(75.0));
    assert!(!title(5.0).contains("behind"), "{}", title(5.0));
}

#[test]
fn the_share_of_the_wait_that_is_due_to_others_is_told() {
    let victim = IoRates { reads_per_s: 20.0, ..reads(1.42, 0.1) };
    let scanner = IoRates { reads_per_s: 100.0, ..reads(8.0, 1.0) };
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
        set_attribution(t, vec![owner_io(900, SDA, scanner), owner_io(901, SDA, victim)]);
    });
    let (found, _) = machine.evaluate_rule("device-saturated");
    let fact = found[0].evidence.iter().find(|fact| fact.name == "delayed, by request").map(|fact| fact.value.clone());
    assert_eq!(fact.as_deref(), Some("task901 (901) 71.0 ms, up to 88% of it behind others"));
}

#[test]
fn a_backlog_of_the_flushers_alone_is_a_note() {
    let severity = |others: f64| {
        let mut machine = TestMachine::new();
        kernel_thread(&mut machine, 12);
        machine.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (119.0, 610.0, 73.0, 512.0, 0.0)));
            let mut processes =
                vec![owner_io(12, SDA, writes(73.0 - others, 60.0)), owner_io(900, SDA, writeback(60.0))];
            processes.push(owner_io(901, SDA, writes(others, 0.1)));
            set_attribution(t, processes);
        });
        machine.evaluate_rule("device-saturated").0[0].severity
    };
    assert_eq!(severity(0.0), Severity::Note);
    assert_eq!(severity(30.0), Severity::Critical);
}

#[test]
fn a_backlog_is_one_also_for_a_sync_whose_flush_waits_behind_it() {
    let mut machine = TestMachine::new();
    kernel_thread(&mut machine, 12);
    let flush = IoRates { flushes_per_s: 1.0, flushes_in_flight: 4.0, ..IoRates::default() };
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 4400.0, 59.0, 512.0, 0.0)));
        let flushers = owner_io(12, SDA, writes(55.0, 60.0));
        set_attribution(t, vec![flushers, owner_io(900, SDA, writeback(60.0)), owner_io(901, SDA, flush)]);
    });
    let found = &machine.evaluate_rule("device-saturated").0[0];
    assert_eq!(found.severity, Severity::Note, "{}", found.title);
}

#[test]
fn writes_are_not_judged_before_tracing_has_seen_whose_they_are() {
    let found = |ticks, read_share: f64, is_traced: bool| {
        let mut machine = TestMachine::new();
        machine.ticks(ticks, |t| {
            set_device(t, busy_device(SDA, "sda", (119.0, 610.0, 73.0, 512.0, read_share)));
            if is_traced {
                set_attribution(t, Vec::new());
            }
        });
        machine.evaluate_rule("device-saturated").0.first().map(|found| found.severity)
    };
    assert_eq!(found(8, 0.0, true), None);
    assert_eq!(found(8, 0.5, true), Some(Severity::Critical), "reads are waited for");
    assert_eq!(found(8, 0.0, false), Some(Severity::Critical), "without tracing nobody will be known");
    assert_eq!(found(20, 0.0, true), Some(Severity::Critical), "a device whose requests are not traced");
}

#[test]
fn users_of_a_slow_device_are_named() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(VDA, "vda", (15.0, 66.0, 1.0, 4.0, 0.5)));
        set_attribution(t, vec![owner_io(900, VDA, writes(0.9, 0.1)), owner_io(901, VDA, reads(0.1, 0.1))]);
    });
    let (found, _) = machine.evaluate_rule("slow-device");
    assert!(found[0].title.ends_with("aqu-sz 1.0; task900 (900) has 90% of its queue"), "{}", found[0].title);
}

#[test]
fn who_uses_a_slow_device_alone_is_not_blamed_for_its_queue() {
    let rules_that_fire = |neighbours_reads: f64| -> Vec<&'static str> {
        let neighbour = IoRates { reads_per_s: neighbours_reads, ..reads(neighbours_reads * 0.04, 0.01) };
        let mut machine = TestMachine::new();
        // Two requests in flight, of 40 ms each: the queue is now a little longer than two, now a little shorter.
        machine.ticks(8, |t| {
            set_device(t, busy_device(VDA, "vda", (50.0, 40.4, 2.02, 4.0, 1.0)));
            set_attribution(t, vec![owner_io(900, VDA, reads(2.0, 0.2)), owner_io(901, VDA, neighbour)]);
        });
        ["slow-device", "device-saturated"]
            .into_iter()
            .filter(|rule| !machine.evaluate_rule(rule).0.is_empty())
            .collect()
    };
    assert_eq!(rules_that_fire(0.0), ["slow-device"]);
    assert_eq!(rules_that_fire(2.0), ["slow-device", "device-saturated"], "another one waits behind it");
}

#[test]
fn two_equal_users_are_both_named() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
        set_attribution(t, vec![owner_io(900, SDA, reads(6.0, 1.0)), owner_io(901, SDA, reads(5.4, 1.0))]);
    });
    let (found, _) = machine.evaluate_rule("device-saturated");
    assert!(found[0].title.ends_with("task900 (900) has 53% of its queue, task901 (901) 47%"), "{}", found[0].title);
}

#[test]
fn who_reads_or_writes_elsewhere_is_not_named() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
        set_attribution(t, vec![owner_io(900, VDA, writes(40.0, 900.0)), owner_io(901, SDA, reads(12.0, 1.0))]);
    });
    assert_eq!(shares(&machine, SDA, Requests::All), [(901, 100)]);
    assert_eq!(shares(&machine, VDA, Requests::Writes), [(900, 100)]);
}

#[test]
fn flusher_writes_belong_to_the_processes_that_dirtied_the_pages() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        let flusher = writes(8.0, 100.0);
        let (first, second) = (writeback(60.0), writeback(20.0));
        set_attribution(t, vec![owner_io(12, SDA, flusher), owner_io(900, SDA, first), owner_io(901, SDA, second)]);
        let Reading::Ok(all) = &mut t.io_attribution else { return };
        let unknown = crate::model::io_accounting::rates::UnattributedIo { unknown: 20.0 * MIB, ..Default::default() };
        Arc::make_mut(all).unattributed.push((SDA, unknown));
    });
    kernel_thread(&mut machine, 12);
    assert_eq!(shares(&machine, SDA, Requests::Writes), [(900, 60), (901, 20)], "20 % belong to nobody");
}

#[test]
fn requests_of_a_loop_device_belong_to_its_users() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        let backing = owner_io(12, VDA, reads(4.0, 40.0));
        set_attribution(t, vec![backing, owner_io(900, LOOP0, reads(4.0, 40.0)), owner_io(901, VDA, reads(1.0, 1.0))]);
    });
    kernel_thread(&mut machine, 12);
    assert_eq!(shares(&machine, VDA, Requests::All), [(900, 80), (901, 20)]);
}

#[test]
fn without_tracing_nobody_is_named_where_other_disks_are_busy_too() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (800.0, 40.0, 32.0, 512.0, 0.0)));
        set_device(t, busy_device(NVME, "nvme0n1", (800.0, 1.0, 1.0, 512.0, 0.0)));
    });
    machine.add_task(900, "dd", |_| {}, IoBytes { write: 400 << 20, ..IoBytes::default() }, 0);
    let (found, _) = machine.evaluate_rule("device-saturated");
    assert!(!found[0].title.contains("dd"), "{}", found[0].title);
}

#[test]
fn idle_class_is_not_advised_where_it_is_set() {
    let advice_with = |class: u8| {
        let mut machine = TestMachine::new();
        machine.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0))));
        let read = IoBytes { write: 400 << 20, ..IoBytes::default() };
        machine.add_task(900, "dd", |t| t.ioprio = Some(IoPrio { class, level: 0 }), read, 0);
        let (found, _) = machine.evaluate_rule("device-saturated");
        found[0].remedies[0].action.clone()
    };
    assert!(advice_with(2).contains("ionice class idle"));
    assert_eq!(advice_with(3), "limit dd (900) (io.max of its cgroup)");
}

#[test]
fn stream_that_delays_syncs_writes_to_the_same_device() {
    let mut machine = TestMachine::new();
    machine.ticks(16, |t| {
        set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        super::syncs::set_syncs(t, 6.0, 62.0, 180.0);
        set_attribution(t, vec![owner_io(900, VDA, writes(40.0, 900.0)), owner_io(901, SDA, writes(12.0, 140.0))]);
    });
    machine.add_task(900, "decoy", |_| {}, IoBytes { write: 900 << 20, ..IoBytes::default() }, 0);
    let (found, _) = machine.evaluate_rule("syncs-behind-a-stream");
    assert!(found[0].title.contains("because task901 (901) streams 140 MiB/s"), "{}", found[0].title);
}

#[test]
fn process_is_named_by_traced_io_not_by_its_counters() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0)));
        let (flusher, dirtier) = (writes(32.0, 400.0), writeback(400.0));
        let elsewhere = owner_io(900, SDA, reads(0.0, 900.0));
        set_attribution(t, vec![owner_io(12, VDA, flusher), elsewhere, owner_io(901, VDA, dirtier)]);
    });
    kernel_thread(&mut machine, 12);
    machine.add_task(901, "fio", |_| {}, IoBytes::default(), 0);
    machine.add_task(900, "dd", |_| {}, IoBytes { write: 400 << 20, ..IoBytes::default() }, 0);
    let (found, _) = machine.evaluate_rule("device-saturated");
    assert!(found[0].title.contains("fio (901) has 100% of its queue"), "{}", found[0].title);
}

#[test]
fn nobody_is_named_where_tracing_attributes_nothing() {
    let mut machine = TestMachine::new();
    machine.ticks(20, |t| {
        set_device(t, busy_device(VDA, "vda", (800.0, 40.0, 32.0, 512.0, 0.0)));
        set_attribution(t, Vec::new());
    });
    machine.add_task(900, "dd", |_| {}, IoBytes { write: 400 << 20, ..IoBytes::default() }, 0);
    let (found, _) = machine.evaluate_rule("device-saturated");
    assert!(!found[0].title.contains("dd"), "{}", found[0].title);
}

#[test]
fn storm_is_attributed_to_who_writes_to_the_device_that_pages_pile_up_for() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        let w = t.writeback.ok_mut().unwrap();
        (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
            (Some(5 << 29), Some(60.0 * MIB), Some(60.0 * MIB));
        set_device(t, busy_device(SDA, "sda", (8.0, 4500.0, 36.0, 1024.0, 0.0)));
        set_device(t, busy_device(VDA, "vda", (50.0, 2.0, 0.1, 1024.0, 0.0)));
        set_attribution(t, vec![owner_io(900, SDA, writeback(8.0)), owner_io(901, VDA, writeback(50.0))]);
        for (pid, name, bdi, ms_per_s) in
            [(901, "task901", "254:0", 90.0), (902, "task902", "254:0", 250.0), (900, "task900", "8:0", 700.0)]
        {
            set_stalled(t, pid, name, THROTTLE, ms_per_s, 200.0);
            Arc::make_mut(t.memory_stalls.ok_mut().unwrap()).processes.last_mut().unwrap().bdi = bdi.into();
        }
    });
    let (found, _) = machine.evaluate_rule("writeback-storm");
    let title = &found[0].title;
    assert!(title.starts_with("writeback storm on sda: task900 (900) has 100% of what is written back"), "{title}");
    let (found, _) = machine.evaluate_rule("writers-throttled");
    assert!(found[0].title.contains("task900 (900) sleeps 70% of the time and 1 more"), "{}", found[0].title);
    let victims: Vec<&str> = found[0].victims.iter().map(|task| &*task.name).collect();
    assert_eq!(
        victims,
        ["task900 (900)", "task902 (902)"],
        "a writer to a fast device that hardly sleeps is no victim"
    );
}

#[test]
fn the_device_of_a_storm_does_not_depend_on_the_little_that_others_are_written() {
    for other_mb_per_s in [0.0, 0.3, 0.6] {
        let mut machine = TestMachine::new();
        machine.ticks(8, |t| {
            let w = t.writeback.ok_mut().unwrap();
            (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
                (Some(5 << 29), Some(9.0 * MIB), Some(9.0 * MIB));
            set_device(t, busy_device(SDA, "sda", (8.0, 4500.0, 36.0, 1024.0, 0.0)));
            set_device(t, busy_device(VDA, "vda", (other_mb_per_s, 2.0, 0.1, 1024.0, 0.0)));
            set_attribution(t, vec![owner_io(900, SDA, writeback(8.0)), owner_io(901, VDA, writeback(other_mb_per_s))]);
        });
        let (found, _) = machine.evaluate_rule("writeback-storm");
        let title = &found[0].title;
        assert!(title.starts_with("writeback storm on sda: task900 (900) has 100% of"), "{other_mb_per_s}: {title}");
    }
}

#[test]
fn storm_is_attributed_to_the_process_that_dirtied_the_pages() {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        let w = t.writeback.ok_mut().unwrap();
        (w.dirty_bytes, w.dirtied_bytes_per_s, w.written_bytes_per_s) =
            (Some(5 << 29), Some(60.0 * MIB), Some(40.0 * MIB));
        set_attribution(t, vec![owner_io(900, VDA, writeback(10.0)), owner_io(901, VDA, writeback(30.0))]);
    });
    machine.add_task(900, "dd", |_| {}, IoBytes { write: 60 << 20, ..IoBytes::default() }, 0);
    let (found, _) = machine.evaluate_rule("writeback-storm");
    assert!(found[0].title.contains("60.0 MiB/s are dirtied, 75% of it by task901 (901),"), "{}", found[0].title);
    let fact = found[0].evidence.iter().find(|f| f.name == "most dirtied by").unwrap();
    assert_eq!(fact.value, "task901 (901), 75%");
}

#[test]
fn who_waits_for_flushes_is_named_by_their_time() {
    let flushes = IoRates { flushes_per_s: 3.9, flushes_in_flight: 0.95, ..writes(0.01, 0.1) };
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, flushing(4.0, 245.0, 4.0));
        set_attribution(t, vec![owner_io(900, VDA, flushes), owner_io(901, VDA, writes(0.05, 9.0))]);
    });
    let (found, _) = machine.evaluate_rule("slow-flush");
    assert!(found[0].title.ends_with("task900 (900) has 95% of its queue"), "{}", found[0].title);
    assert_eq!(shares(&machine, VDA, Requests::Writes)[0].0, 901, "by writes alone it would be another one");
}

#[test]
fn discards_belong_to_who_submits_them_and_readers_behind_them_wait() {
    let trim = IoRates { discards_per_s: 12.0, discards_in_flight: 3.6, ..reads(0.01, 0.1) };
    let reader = IoRates { reads_per_s: 20.0, ..reads(1.6, 0.1) };
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, discarding(12.0, 300.0, (20.0, 80.0)));
        set_attribution(t, vec![owner_io(900, VDA, trim), owner_io(901, VDA, reader)]);
    });
    let (found, _) = machine.evaluate_rule("slow-discards");
    assert!(found[0].title.contains("300 ms each; task900 (900) has 100% of them; reads take"), "{}", found[0].title);
    let names = |tasks: &[crate::doctor::finding::InvolvedTask]| {
        tasks.iter().map(|t| (t.name.clone(), t.share_pct)).collect::<Vec<_>>()
    };
    assert_eq!(names(&found[0].culprits), [("task900 (900)".to_owned(), Some(100))]);
    assert_eq!(names(&found[0].victims), [("task901 (901)".to_owned(), Some(99))]);
}

/// A machine with tasks in control groups, which keep so many reads in flight.
fn in_groups(tasks: &[(u32, &str, f64)]) -> TestMachine {
    let mut machine = TestMachine::new();
    machine.idle_ticks(1);
    machine.scan(tasks.iter().map(|(pid, ..)| task_counters(*pid, "worker")).collect(), false);
    let names = tasks.iter().map(|(pid, cgroup, _)| {
        let key = TaskKey { pid: *pid, tid: *pid, starttime: 100 };
        (key, Arc::new(TaskNames { cgroup: (*cgroup).into(), ..TaskNames::default() }))
    });
    let update = ProcessUpdate { seq: 50, time: machine.now(), names: names.collect(), ..ProcessUpdate::default() };
    machine.system.apply(Observation::Tasks(Box::new(Reading::Ok(update))));
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.9)));
        let rates = |in_flight: f64| IoRates { reads_per_s: 10.0, ..reads(in_flight, 1.0) };
        set_attribution(t, tasks.iter().map(|(pid, _, flight)| owner_io(*pid, SDA, rates(*flight))).collect());
    });
    machine
}

#[test]
fn the_unit_of_the_one_culprit_is_named() {
    let machine = in_groups(&[(900, "/system.slice/backup.service", 9.8), (901, "/user.slice/session-3.scope", 0.2)]);
    let found = machine.evaluate_rule("device-saturated").0.remove(0);
    let end = "; worker (900) of unit backup.service has 98% of its queue";
    assert!(found.title.contains(end), "{}", found.title);
    assert_eq!(found.culprits[0].group.as_deref(), Some("unit backup.service"));
    assert_eq!(
        found.culprit_group.map(|group| (group.name, group.share_pct)),
        Some(("unit backup.service".into(), 98))
    );
}

#[test]
fn a_unit_whose_tasks_together_fill_the_queue_is_named_with_its_sum() {
    let mut tasks: Vec<(u32, &str, f64)> = (900..908).map(|pid| (pid, "/system.slice/import.service", 1.2)).collect();
    tasks.push((950, "/system.slice/db.service", 1.0));
    let found = in_groups(&tasks).evaluate_rule("device-saturated").0.remove(0);
    assert!(found.title.contains("; unit import.service (8 tasks) has 91% of its queue"), "{}", found.title);
    let victims: Vec<(&str, Option<&str>)> =
        found.victims.iter().map(|t| (t.name.as_str(), t.group.as_deref())).collect();
    assert_eq!(victims, [("worker (950)", Some("unit db.service"))]);
}

#[test]
fn sessions_and_the_root_group_are_no_unit() {
    for group in
        ["/user.slice/user-0.slice/session-3.scope", "/", "/user.slice/user-1000.slice/user@1000.service/x", "/a.slice"]
    {
        let found = in_groups(&[(900, group, 9.8)]).evaluate_rule("device-saturated").0.remove(0);
        assert!(found.title.contains("; worker (900) has 100%") && found.culprit_group.is_none(), "{}", found.title);
    }
}

/// What is said of a disk that takes `ms` for each request of a database beside a stream of 1 MiB requests, one at a time.
fn beside_stream(queue: f64, ms: f64, stream: IoRates, database: IoRates) -> Vec<Finding> {
    let mut machine = TestMachine::new();
    machine.ticks(8, |t| {
        set_device(t, busy_device(VDA, "vda", (queue / ms * 1e3, ms, queue, 460.0, 0.0)));
        set_attribution(t, vec![owner_io(900, VDA, stream), owner_io(901, VDA, database)]);
    });
    ["slow-device", "device-saturated"].iter().flat_map(|rule| machine.evaluate_rule(rule).0).collect()
}

fn names(tasks: &[InvolvedTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.name.as_str()).collect()
}

#[test]
fn a_sync_behind_a_stream_with_half_of_the_queue_is_its_victim_not_the_disks() {
    // 15 ms a request and 40 MB/s, in two measured cases: requests of 1 MiB whole, and in two parts.
    let stream = |in_flight: f64, per_s: f64| IoRates { writes_per_s: per_s, ..writes(in_flight, 17.0) };
    let database = IoRates { writes_per_s: 21.0, ..writes(0.84, 0.1) };
    for (queue, stream) in [(1.7, stream(0.86, 17.0)), (2.4, stream(1.5, 34.0))] {
        let found = beside_stream(queue, 45.0, stream, database);
        assert_eq!(found.len(), 1, "{found:?}");
        let finding = &found[0];
        assert_eq!(finding.rule, "device-saturated");
        assert!(
            finding.title.ends_with("; task901 (901) waits 40.0 ms for each request behind it"),
            "{}",
            finding.title
        );
        assert_eq!((names(&finding.culprits), names(&finding.victims)), (vec!["task900 (900)"], vec!["task901 (901)"]));
    }
}

#[test]
fn a_disk_that_is_slow_without_the_stream_is_slow_itself() {
    let stream = IoRates { writes_per_s: 10.0, ..writes(1.0, 10.0) };
    let found = beside_stream(2.0, 100.0, stream, IoRates { writes_per_s: 10.0, ..writes(1.0, 0.1) });
    let rules: Vec<_> = found.iter().map(|finding| finding.rule).collect();
    assert!(rules.contains(&"slow-device"), "{rules:?}");
}

#[test]
fn who_waits_behind_writeback_of_unknown_processes_is_named_and_is_no_culprit() {
    // Waiting gives the second one a fifth of the queue.
    for (in_flight, ms) in [(0.9, "100 ms"), (3.0, "333 ms")] {
        let mut machine = TestMachine::new();
        kernel_thread(&mut machine, 12);
        machine.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (30.0, 400.0, 12.0, 400.0, 0.3)));
            let flusher = IoRates { writes_per_s: 21.0, ..writes(11.0, 12.0) };
            let reader = IoRates { reads_per_s: 9.0, ..reads(in_flight, 0.1) };
            set_attribution(t, vec![owner_io(12, SDA, flusher), owner_io(901, SDA, reader)]);
        });
        let found = &machine.evaluate_rule("device-saturated").0[0];
        let said = format!("; task901 (901) waits {ms} for each request behind those of kernel threads");
        assert!(found.title.ends_with(&said), "{}", found.title);
        assert_eq!((names(&found.culprits), names(&found.victims)), (vec![], vec!["task901 (901)"]));
    }
}
