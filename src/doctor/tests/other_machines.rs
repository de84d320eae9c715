//! Machines that once led to a wrong finding: guests, shelves of disks, storage networks, hosts of containers.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::fact_requests::mounts_to_query;
use crate::doctor::finding::Severity::{Critical, Note, Warn};
use crate::model::disk::{DevId, DiskRate};
use crate::model::health::{ArrayHealth, DeviceHealth, DiskHealth, Ext4Errors, Health, HealthLeftOut};
use crate::model::io_accounting::rates::{DeviceIo, IoAttribution, IoRates, OwnerIo};
use crate::model::path::FilesystemSpace;
use crate::model::process::IoBytes;
use crate::model::reading::Reading;
use crate::model::slow_facts::{BenchResultFacts, BlockCount, MountSpace, SpaceReport, ThinPoolFacts};
use crate::model::topology::{BlockDevice, DeviceKind, DeviceMatch, MountRef};
use std::sync::Arc;

fn disk(device: &str, state: &str, errors: u64) -> DeviceHealth {
    let (state, errors) = (state.to_owned(), Some(errors));
    DeviceHealth { device: device.to_owned(), health: Health::Disk(DiskHealth { state, errors, timeouts: None }) }
}

/// A device of the machine, to be changed.
fn device_of(machine: &mut TestMachine, id: DevId) -> &mut BlockDevice {
    let devices = &mut machine.system.topology.ok_mut().unwrap().devices;
    devices.iter_mut().find(|device| device.id == id).unwrap()
}

/// A mount of the file system with this number.
fn numbered_mount(point: &str, minor: u32, matched_by: DeviceMatch) -> MountRef {
    MountRef { file_system: DevId { major: 0, minor }, matched_by, ..mount(point, "rw", "rw") }
}

/// An array that has lost members, and its device.
fn degraded(machine: &mut TestMachine, device: &str, level: &str, members: u64, missing: u64) {
    let (device, level) = (device.to_owned(), level.to_owned());
    let health = Health::Array(ArrayHealth { level, members, missing, ..ArrayHealth::default() });
    machine.change_facts(|facts| facts.health.push(DeviceHealth { device, health }));
}

/// A thin pool whose low water mark is not reached: used blocks of 1000 of its data and its metadata.
fn thin_pool(machine: &mut TestMachine, data: u64, metadata: u64) {
    machine.idle_ticks(2);
    let blocks = |used: u64| Some(BlockCount { used, total: 1000 });
    let (data, metadata) = (blocks(data), blocks(metadata));
    let pool = ThinPoolFacts { device: LOOP0, data, metadata, data_low_water_blocks: Some(0), ..Default::default() };
    machine.change_facts(|facts| facts.thin_pools.push(pool));
}

/// A stored result of vda, which is mounted on / and called `Some Disk`; vda is busy.
fn stored_burst(machine: &mut TestMachine, mount: &str, model: &str) {
    device_of(machine, VDA).model = Some("Some Disk".into());
    machine.ticks(8, |t| set_device(t, busy_device(VDA, "vda", (100.0, 10.0, 1.0, 4.0, 0.5))));
    let result = BenchResultFacts {
        device: Some(VDA.to_string()),
        mount: mount.to_owned(),
        model: Some(model.to_owned()),
        burst: Some((3000.0, 100.0)),
        ..BenchResultFacts::default()
    };
    machine.change_facts(|facts| facts.results.push(result));
}

/// A busy disk that says it spins, without a scheduler.
fn unsorted_sda(machine: &mut TestMachine, change: impl FnOnce(&mut BlockDevice)) {
    change(device_of(machine, SDA));
    machine.system.queues.get_mut("sda").unwrap().scheduler = Some("none".into());
    machine.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (119.0, 100.8, 12.0, 4.0, 0.6))));
}

/// A disk whose requests the kernel does not count, and so many a second that tracing sees.
fn uncounted_sda(machine: &mut TestMachine, reads_per_s: f64) {
    machine.system.queues.get_mut("sda").unwrap().iostats = Some(false);
    let rates = IoRates { reads_per_s, ..IoRates::default() };
    let devices = vec![DeviceIo { device: SDA, is_stacked: false, rates }];
    let attribution =
        IoAttribution { processes: vec![OwnerIo { owner: 900, total: rates, devices }], ..IoAttribution::default() };
    machine.ticks(8, |t| {
        set_device(t, DiskRate { tps: 0.0, ..idle_device(SDA, "sda") });
        t.io_attribution = Reading::Ok(Arc::new(attribution.clone()));
    });
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "uncounted-device",
        "tracing sees its requests",
        Note,
        "the kernel does not count the I/O of sda: its figures are 0 everywhere, though tracing sees 120",
        |m| uncounted_sda(m, 120.0),
    ),
    firing_case(
        "uncounted-device",
        "nothing is traced",
        Note,
        "the kernel does not count the I/O of sda: its figures are 0 everywhere",
        |m| m.system.queues.get_mut("sda").unwrap().iostats = Some(false),
    ),
    firing_case(
        "recorded-errors",
        "old ones of a file system that was mounted now",
        Warn,
        "ext4 on sda1 has recorded 3 errors, the last",
        |m| {
            m.idle_ticks(1);
            let errors = Ext4Errors { count: 3, last_time: 1_600_000_000, last_function: "ext4_find_entry".into() };
            let found = DeviceHealth { device: "sda1".into(), health: Health::Ext4(errors) };
            m.change_facts(|facts| facts.health.push(found));
        },
    ),
    firing_case(
        "scheduler-unsuitable",
        "a volume of a RAID controller",
        Note,
        "sda is a volume of a RAID controller with scheduler none: mq-deadline (or bfq) may be faster",
        |m| unsorted_sda(m, |disk| disk.model = Some("PERC H740P Adp".into())),
    ),
    firing_case("burst-credits", "the same disk at the same place", Warn, "vda gives 3000 IOPS at first", |m| {
        stored_burst(m, "/", "Some Disk");
    }),
    firing_case("thin-pool-full", "its metadata", Warn, "is nearly full: 96% of its metadata is used", |m| {
        thin_pool(m, 500, 960);
    }),
    firing_case("thin-pool-full", "its data", Warn, "thin pool loop0 is nearly full: 95% of its data is used", |m| {
        thin_pool(m, 950, 100);
    }),
    firing_case("array-degraded", "a mirror of three", Warn, "md0 (raid1) works without 1 of 3 members", |m| {
        degraded(m, "md0", "raid1", 3, 1);
    }),
    firing_case("array-degraded", "a mirror of three, twice", Critical, "md0 (raid1) works without 2 of 3", |m| {
        degraded(m, "md0", "raid1", 3, 2);
    }),
    firing_case("array-degraded", "a striped mirror", Warn, "md0 (raid10) works without 1 of 4 members", |m| {
        degraded(m, "md0", "raid10", 4, 1);
    }),
    firing_case("array-degraded", "a RAID volume of LVM", Critical, "dm-9 (raid1) works without 1 of 2", |m| {
        degraded(m, "dm-9", "raid1", 2, 1);
    }),
];

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("uncounted-device", "nobody uses it", |m| uncounted_sda(m, 0.0)),
    QuietCase::new("uncounted-device", "it counts by itself", |m| {
        uncounted_sda(m, 120.0);
        m.ticks(8, |t| set_device(t, busy_device(SDA, "sda", (120.0, 8.0, 1.0, 8.0, 1.0))));
    }),
    QuietCase::new("atime-mount", "the database reads another disk", |m| {
        device_of(m, SDA1).mounts = vec![mount("/srv", "rw", "rw")];
        let rates = IoRates { reads_in_flight: 1.0, reads_per_s: 120.0, ..IoRates::default() };
        let reader = |owner, device| OwnerIo {
            owner,
            total: rates,
            devices: vec![DeviceIo { device, is_stacked: false, rates }],
        };
        let attribution = IoAttribution {
            processes: vec![reader(901, SDA), reader(950, VDA)],
            names: vec![(901, "copy".into()), (950, "postgres".into())],
            ..IoAttribution::default()
        };
        m.ticks(8, |t| {
            set_device(t, busy_device(SDA1, "sda1", (120.0, 8.0, 1.0, 8.0, 1.0)));
            t.io_attribution = Reading::Ok(Arc::new(attribution.clone()));
        });
        m.add_task(950, "postgres", |_| {}, IoBytes { read: 4 << 20, ..IoBytes::default() }, 0);
    }),
    QuietCase::new("disk-health", "a disk of a Xen guest", |m| {
        m.change_facts(|facts| facts.health.push(disk("xvda", "Connected", 0)));
    }),
    QuietCase::new("disk-health", "a disk that had no room in the list before", |m| {
        m.change_previous_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 1, others: 0 });
        m.change_facts(|facts| facts.health.push(disk("sdxy", "running", 900)));
    }),
    QuietCase::new("disk-health", "the list of disks is cut", |m| {
        m.change_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 1, others: 0 });
    })
    .unavailable(),
    QuietCase::new("recorded-errors", "the list of file systems is cut", |m| {
        m.change_facts(|facts| facts.health_left_out = HealthLeftOut { disks: 0, others: 1 });
    })
    .unavailable(),
    QuietCase::new("burst-credits", "another device has the number since the last boot", |m| {
        stored_burst(m, "/data", "Some Disk");
    }),
    QuietCase::new("burst-credits", "another disk is mounted there", |m| stored_burst(m, "/", "Other Disk")),
    QuietCase::new("hung-task", "a paused container", |m| {
        m.add_hung_task(930, "nginx", "__refrigerator", 12);
    }),
    QuietCase::new("thp-always", "a server that has opted out of huge pages", |m| {
        m.idle_ticks(1);
        let key = m.add_task(920, "redis-server", |_| {}, IoBytes::default(), 0);
        m.change_facts(|facts| (facts.thp, facts.without_thp) = (Some("always".into()), vec![key]));
    }),
    QuietCase::new("thp-always", "a sentinel", |m| {
        m.idle_ticks(1);
        m.change_facts(|facts| facts.thp = Some("always".into()));
        m.add_task(920, "redis-sentinel", |_| {}, IoBytes::default(), 0);
    }),
    QuietCase::new("thin-pool-full", "94% of each", |m| thin_pool(m, 940, 949)),
    QuietCase::new("slow-device", "a cloud volume of 500 IOPS that is attached as NVMe", |m| {
        device_of(m, NVME).model = Some("MSFT NVMe Accelerator v1.0".into());
        m.ticks(8, |t| set_device(t, busy_device(NVME, "nvme0n1", (500.0, 64.0, 32.0, 4.0, 0.5))));
    }),
    QuietCase::new("slow-device", "an SD card", |m| {
        device_of(m, NVME).name = "mmcblk0".into();
        m.ticks(8, |t| set_device(t, busy_device(NVME, "mmcblk0", (60.0, 30.0, 1.8, 4.0, 0.0))));
    }),
    QuietCase::new("scheduler-unsuitable", "a disk of a storage network", |m| {
        let path = "pci0000:00/0000:00:03.0/host2/rport-2:0-3/target2:0:3/2:0:3:1/block/sda";
        unsorted_sda(m, |disk| disk.sysfs_path = Some(path.into()));
    }),
    QuietCase::new("scheduler-unsuitable", "a path of a multipath device", |m| {
        // In the place of a swap partition, so that the list stays sorted.
        device_of(m, SDA2).kind = DeviceKind::Multipath;
        unsorted_sda(m, |disk| disk.holders = vec![SDA2]);
    }),
];

#[test]
fn a_full_disk_is_one_finding_however_many_containers_and_subvolumes_are_on_it() {
    let mut machine = TestMachine::new();
    let overlay = |n: u32| numbered_mount(&format!("/run/{n}/merged"), 50 + n, DeviceMatch::Upper);
    device_of(&mut machine, VDA).mounts.extend((0..150).map(overlay));
    let subvolume = |point: &str| numbered_mount(point, 44, DeviceMatch::Source);
    device_of(&mut machine, SDA1).mounts = vec![subvolume("/srv/home"), subvolume("/srv"), subvolume("/var")];
    device_of(&mut machine, SDA2).mounts = vec![numbered_mount("/srv", 44, DeviceMatch::Member)];
    let asked: Vec<String> = mounts_to_query(&machine.system, false).iter().map(|point| point.sanitized()).collect();
    assert_eq!(asked, ["/", "/mnt/lab", "/srv", "/srv/home", "/var"], "an overlay has the space of its device");
    let full = |point: String| {
        let space = FilesystemSpace { total_bytes: 100 * GIB, ..FilesystemSpace::default() };
        MountSpace { mount_point: point.as_str().into(), space: Reading::Ok(space) }
    };
    // A recording of an older version has the overlays, too.
    let points = asked.into_iter().chain((0..150).map(|n| format!("/run/{n}/merged")));
    let report = SpaceReport { time: machine.now(), is_network: false, mounts: points.map(full).collect() };
    machine.system.slow_facts.update_space(report);
    let (found, result) = machine.evaluate_rule("filesystem-full");
    let subjects: Vec<String> = found.iter().map(|finding| finding.subject.name()).collect();
    assert_eq!(subjects, ["/", "/mnt/lab", "/srv"]);
    assert_eq!(result, Ok(()));
}

#[test]
fn an_overlay_is_judged_where_the_file_system_below_is_not_mounted() {
    let mut machine = TestMachine::new();
    device_of(&mut machine, VDA).mounts = vec![numbered_mount("/", 50, DeviceMatch::Upper)];
    machine.disk_space("/", 100 * GIB, GIB, 0, 0);
    assert_eq!(machine.evaluate_rule("filesystem-full").0.len(), 1);
}

#[test]
fn what_is_left_of_an_array_is_said_by_its_level_and_repaired_by_its_tool() {
    let said = |device: &str, level: &str, members: u64| {
        let mut machine = TestMachine::new();
        degraded(&mut machine, device, level, members, 1);
        let found = machine.evaluate_rule("array-degraded").0.remove(0);
        (found.why, found.remedies[0].action.clone())
    };
    assert!(said("md0", "raid10", 4).0.contains("depends on which member it is"));
    assert!(said("md0", "raid1", 3).0.contains("another failure loses none"));
    assert!(said("md0", "raid5", 3).1.contains("mdadm"));
    assert!(said("dm-9", "raid5", 3).1.contains("lvconvert --repair"));
}
