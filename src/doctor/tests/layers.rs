//! Thin pools, devices that pass their I/O on to others, and servers of network file systems.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::device_files::main_files;
use crate::doctor::device_users::{DeviceUsers, Requests, counted_devices};
use crate::doctor::finding::Severity::{Critical, Note, Warn};
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
use crate::model::file_io::{FileActivity, FileClass, FileId, FileIoRates, FileName, FileRate};
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::network::NetFsRaw;
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::slow_facts::{BlockCount, TaskWait, ThinPoolFacts, ThinPoolMode};
use crate::model::snapshot::Snapshot;
use crate::model::task_waits::{TaskWaits, WaitKey, WaitRate, WaitReason};
use crate::model::topology::DeviceKind;
use std::sync::Arc;

const LOW: &str = "device-mapper: thin: 7:0: reached low water mark for data device: sending event.";
const WAITS: &str = "device-mapper: thin: 7:0: switching pool to out-of-data-space (queue IO) mode";
const FAILS: &str = "device-mapper: thin: 7:0: switching pool to out-of-data-space (error IO) mode";
const WRITES: &str = "device-mapper: thin: 7:0: switching pool to write mode";

/// A pool with its metadata on sda1 and its data on vda.
fn say(machine: &mut TestMachine, messages: &[&str]) {
    let topology = machine.system.topology.ok_mut().unwrap();
    let pool = topology.devices.iter_mut().find(|device| device.id == LOOP0).unwrap();
    (pool.kind, pool.parent, pool.slaves) = (DeviceKind::Dm, None, vec![SDA1, VDA]);
    machine.idle_ticks(2);
    for message in messages {
        machine.kernel_message(message);
    }
}

/// What device mapper says of the pool now: used blocks of 1000, of which 100 are the low water mark.
fn report(machine: &mut TestMachine, mode: ThinPoolMode, used: u64) {
    let time = machine.now();
    let pool = ThinPoolFacts {
        device: LOOP0,
        mode,
        data: Some(BlockCount { used, total: 1000 }),
        metadata: Some(BlockCount { used: 5, total: 1000 }),
        data_low_water_blocks: Some(100),
        metadata_low_water_blocks: Some(100),
        ..ThinPoolFacts::default()
    };
    machine.change_facts(|facts| (facts.time, facts.thin_pools) = (time, vec![pool]));
}

/// A logical volume on two disks has the number.
fn replace_by_volume(machine: &mut TestMachine, label: &str) {
    let topology = machine.system.topology.ok_mut().unwrap();
    let volume = topology.devices.iter_mut().find(|device| device.id == LOOP0).unwrap();
    (volume.kind, volume.label) = (DeviceKind::Lvm, Some(label.into()));
}

pub const FIRING: &[FiringCase] = &[
    firing_case("thin-pool-full", "low", Warn, "thin pool loop0 is nearly full: it reached its low water mark", |m| {
        say(m, &[LOW]);
    }),
    firing_case(
        "thin-pool-full",
        "writes wait",
        Critical,
        "thin pool loop0 is full: writes to its volumes wait",
        |m| {
            say(m, &[LOW, WAITS]);
        },
    ),
    firing_case(
        "thin-pool-full",
        "writes fail",
        Critical,
        "thin pool loop0 is full: writes to its volumes fail",
        |m| {
            say(m, &[LOW, WAITS, FAILS]);
        },
    ),
    firing_case("thin-pool-full", "low for hours", Note, "for data 1h23m ago; whether it has space again", |m| {
        say(m, &[LOW]);
        m.skip_secs(5000).idle_ticks(2);
    }),
    firing_case("thin-pool-full", "low, as device mapper says", Warn, "thin pool loop0 is nearly full", |m| {
        say(m, &[LOW]);
        m.skip_secs(5000).idle_ticks(2);
        report(m, ThinPoolMode::ReadWrite, 950);
    }),
    firing_case(
        "thin-pool-full",
        "full before the log begins",
        Critical,
        "loop0 is full: writes to its volumes fail",
        |m| {
            say(m, &[]);
            report(m, ThinPoolMode::OutOfDataSpace, 1000);
        },
    ),
    firing_case("thin-pool-full", "full since device mapper was asked", Critical, "loop0 is full", |m| {
        say(m, &[]);
        report(m, ThinPoolMode::ReadWrite, 500);
        m.idle_ticks(2).kernel_message(WAITS);
    }),
    firing_case("thin-pool-full", "a pool of LVM", Critical, "thin pool vg-pool-tpool is full", |m| {
        say(m, &[WAITS]);
        replace_by_volume(m, "vg-pool-tpool");
    }),
    firing_case(
        "network-slow",
        "a slow server",
        Warn,
        "/mnt/nfs is slow: its server server:/export takes 90.0 ms",
        |m| {
            m.ticks(8, |t| set_network_mount(t, 1.0, None, |fs| fs.rtt_ms = Some(90.0)));
        },
    ),
];

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("thin-pool-full", "there is space again", |m| say(m, &[LOW, WAITS, WRITES])),
    QuietCase::new("thin-pool-full", "a pool that is gone", |m| {
        say(m, &["device-mapper: thin: 253:9: switching pool to out-of-data-space (queue IO) mode"]);
    }),
    QuietCase::new("thin-pool-full", "another device has its number now", |m| {
        m.idle_ticks(2);
        m.kernel_message(WAITS);
    }),
    QuietCase::new("thin-pool-full", "another volume has its number now", |m| {
        say(m, &[WAITS]);
        replace_by_volume(m, "vg-root");
    }),
    QuietCase::new("thin-pool-full", "there is space again, as device mapper says", |m| {
        say(m, &[LOW]);
        m.idle_ticks(2);
        report(m, ThinPoolMode::ReadWrite, 500);
    }),
    QuietCase::new("thin-pool-full", "it was low two days ago", |m| {
        say(m, &[LOW]);
        m.skip_secs(2 * 86400).idle_ticks(2);
    }),
    QuietCase::new("thin-pool-full", "a message older than the device", |m| {
        say(m, &[WAITS]);
        m.idle_ticks(2).kernel_message("loop0: detected capacity change from 0 to 409600");
    }),
    QuietCase::new("network-slow", "as slow as a spinning disk", |m| {
        m.ticks(8, |t| set_network_mount(t, 1.0, None, |fs| fs.rtt_ms = Some(30.0)));
    }),
    QuietCase::new("network-slow", "one slow call now and then", |m| {
        m.ticks(8, |t| {
            set_network_mount(t, 1.0, None, |fs| (fs.rtt_ms, fs.ops_per_s) = (Some(500.0), Some(0.5)));
        });
    }),
];

#[test]
fn who_waits_for_a_slow_server_suffers() {
    let mut machine = TestMachine::new();
    let file = FileId { file_system: Default::default(), ino: 7, generation: 0 };
    let wait = |pid, secs| WaitRate {
        key: WaitKey { pid, file, ..WaitKey::default() },
        file: Arc::new(FileName { id: file, path_tail: "table".into(), is_full_path: true }),
        secs,
        ..WaitRate::default()
    };
    machine.ticks(8, |t| {
        set_network_mount(t, 1.0, None, |fs| fs.rtt_ms = Some(90.0));
        let processes = vec![(901, "shop".into()), (902, "cron".into())];
        let rows = vec![wait(901, 0.9), wait(902, 0.01)];
        t.task_waits = Reading::Ok(Arc::new(TaskWaits { rows, processes, covered_secs: 1.0, ..TaskWaits::default() }));
    });
    let found = machine.evaluate_rule("network-slow").0.remove(0);
    assert_eq!(found.victims.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["shop (901)"]);
    assert_eq!(found.files, ["/mnt/nfs/table"]);
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let mut machine = TestMachine::new();
    let key = machine.add_hung_task(930, "shop", "rpc_wait_bit_killable", 10);
    machine.change_facts(|facts| facts.waits.push(TaskWait { key, mount_id: 5, path: "/mnt/nfs/table".into() }));
    let mount = |point: &str| NetFsRaw { mount: point.into(), server: "box:/e".into(), ..NetFsRaw::default() };
    machine.system.last_sample =
        Some(Sample { netfs: Reading::Ok(vec![mount("/mnt/n"), mount("/mnt/nfs")]), ..Sample::default() });
    let found = machine.evaluate_rule("hung-task").0.remove(0);
    assert!(found.title.contains("hangs: the server box:/e of /mnt/nfs does not answer"), "{}", found.title);
}

fn set_io(t: &mut Snapshot, device: crate::model::disk::DevId) {
    let rates = IoRates { reads_in_flight: 2.0, reads_per_s: 50.0, ..IoRates::default() };
    let processes =
        vec![OwnerIo { owner: 901, total: rates, devices: vec![DeviceIo { device, is_stacked: false, rates }] }];
    let names = vec![(901, "shop".into())];
    t.io_attribution = Reading::Ok(Arc::new(IoAttribution { processes, names, ..IoAttribution::default() }));
}

#[test]
fn users_of_a_mapped_device_are_those_of_what_lies_below() {
    let mut machine = TestMachine::new();
    machine.ticks(6, |t| set_io(t, VDA));
    let users = |machine: &TestMachine| {
        let ctx = RuleContext::new(&machine.system);
        let users = DeviceUsers::traced(&ctx, LOOP0, 5.0, Requests::All);
        (counted_devices(&ctx, LOOP0, 5.0), users.map(|users| users.main()[0].name.clone()))
    };
    assert_eq!(users(&machine), (vec![LOOP0], None), "a loop device has requests of its own");
    let topology = machine.system.topology.ok_mut().unwrap();
    topology.devices.iter_mut().find(|device| device.id == LOOP0).unwrap().kind = DeviceKind::Dm;
    assert_eq!(users(&machine), (vec![VDA], Some("shop (901)".into())));
}

#[test]
fn files_of_direct_io_on_a_mapped_device_are_those_that_tasks_wait_for() {
    let index = FileId { file_system: LOOP0, ino: 7, generation: 0 };
    let file = |ino| FileId { ino, ..index };
    let name = |ino: u64| Arc::new(FileName { id: file(ino), path_tail: format!("f{ino}").into(), is_full_path: true });
    let wait = |ino, secs| WaitRate {
        key: WaitKey { reason: WaitReason::DirectIo, device: VDA, file: file(ino), ..WaitKey::default() },
        file: name(ino),
        secs,
        ..WaitRate::default()
    };
    let files = |class, waits: &[WaitRate]| {
        let mut machine = TestMachine::new();
        let topology = machine.system.topology.ok_mut().unwrap();
        topology.devices.iter_mut().find(|device| device.id == LOOP0).unwrap().kind = DeviceKind::Dm;
        machine.ticks(6, |t| {
            set_io(t, VDA);
            let reads = FileIoRates { in_flight: 9.0, ..FileIoRates::default() };
            let rows = vec![FileRate { device: VDA, class, file: name(1), reads, ..FileRate::default() }];
            t.files = Reading::Ok(Arc::new(FileActivity { rows, ..FileActivity::default() }));
            t.task_waits = Reading::Ok(Arc::new(TaskWaits { rows: waits.to_vec(), ..TaskWaits::default() }));
        });
        main_files(&RuleContext::new(&machine.system), VDA, 5.0, Requests::All)
    };
    let both = [wait(7, 8.0), wait(8, 1.0)];
    let named = files(FileClass::Device, &both);
    assert!(named.len() == 1 && named[0].ends_with("f7"), "the other one has a ninth: {named:?}");
    assert!(files(FileClass::Device, &both[1..]).is_empty(), "most of the requests are of unknown files");
    assert!(files(FileClass::File, &both)[0].ends_with("f1"), "what is known counts");
}

#[test]
fn ticks_before_tracing_was_loaded_do_not_hide_the_users() {
    let mut machine = TestMachine::new();
    machine.ticks(2, |t| t.io_attribution = Reading::Absent("tracing is being loaded".into()));
    machine.ticks(3, |t| set_io(t, VDA));
    let users = DeviceUsers::traced(&RuleContext::new(&machine.system), VDA, 5.0, Requests::All).unwrap();
    assert_eq!((users.main()[0].name.as_str(), users.main()[0].share), ("shop (901)", 1.0));
}

#[test]
fn a_path_of_an_nvme_disk_that_counts_its_requests_is_not_judged_beside_it() {
    let path = DevId { minor: 7, ..NVME };
    let is_judged = |head_reads: u64| {
        let mut machine = TestMachine::new();
        machine.tick(|t| set_device(t, idle_device(path, "nvme0c1n1")));
        let disk = |id, name: &str, ios| {
            let read = DiskOpRaw { ios, ..DiskOpRaw::default() };
            DiskRaw { id, name: name.into(), read, ..DiskRaw::default() }
        };
        let disks = Reading::Ok(vec![disk(path, "nvme0c1n1", 9), disk(NVME, "nvme0n1", head_reads)]);
        machine.system.last_sample = Some(Sample { disks, ..Sample::default() });
        let context = RuleContext::new(&machine.system);
        [path, NVME].map(|id| context.devices().any(|device| device.id == id))
    };
    assert_eq!(is_judged(9), [false, true]);
    assert_eq!(is_judged(0), [true, true], "the head of an old kernel counts nothing");
}
