//! Messages of the kernel about disks: which disk they are about, and how bad what they say is.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::RuleEngine;
use crate::doctor::finding::FindingSubject;
use crate::doctor::finding::Severity::{Critical, Warn};
use crate::model::disk::{DevId, DiskRaw};
use crate::model::reading::Reading;
use crate::model::sample::Sample;
use crate::model::topology::BlockDevice;

const FAILING_PATH: &str = "device-mapper: multipath: 253:0: Failing path 8:0.";
const CORRECTED: &str = "md/raid1:md0: read error corrected (8 sectors at 2048 on sda1)";
const USB_RESET: &str = "usb 3-3: reset full-speed USB device number 2 using xhci_hcd";
const NVME_TIMEOUT: &str = "nvme nvme0: I/O 12 QID 3 timeout, reset controller";
const OF_USB_3_3: &str = "pci0000:00/0000:00:14.0/usb3/3-3/3-3:1.0/host6/target6:0:0/6:0:0:0/block/sda";
const OF_ATA_4: &str = "pci0000:00/0000:00:1f.2/ata4/host3/target3:0:0/3:0:0:0/block/sda";

/// Says where the disk `sda` is in sysfs.
fn connect_sda(machine: &mut TestMachine, path: &str) {
    let devices = &mut machine.system.topology.ok_mut().unwrap().devices;
    devices.iter_mut().find(|device| device.id == SDA).unwrap().sysfs_path = Some(path.into());
}

fn say(machine: &mut TestMachine, messages: &[&str]) {
    machine.idle_ticks(2);
    for message in messages {
        machine.kernel_message(message);
    }
}

fn rules_by_incident(machine: &TestMachine) -> Vec<Vec<&'static str>> {
    let mut engine = RuleEngine::default();
    engine.evaluate(&machine.system);
    engine.incidents.iter().map(|incident| incident.findings.iter().map(|f| f.rule).collect()).collect()
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "io-error",
        "a path of a multipath disk",
        Warn,
        "failures of a path on sda: device-mapper: multipath: 253:0: Failing path 8:0.",
        |m| say(m, &[FAILING_PATH]),
    ),
    firing_case(
        "io-error",
        "what a mirror corrected",
        Warn,
        "corrected read errors on sda1: md/raid1:md0: read error corrected",
        |m| say(m, &[CORRECTED]),
    ),
    firing_case("io-error", "a failed request beside a failed path", Critical, "I/O errors on sda, 2 times", |m| {
        say(m, &["I/O error, dev sda, sector 81239 op 0x1:(WRITE)", FAILING_PATH]);
    }),
    firing_case("device-reset", "a USB disk", Critical, "resets or timeouts on 3-3, 3 times in 10 minutes", |m| {
        connect_sda(m, OF_USB_3_3);
        say(m, &[USB_RESET; 3]);
    }),
];

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("device-reset", "a keyboard beside a disk", |m| {
        connect_sda(m, OF_ATA_4);
        say(m, &[USB_RESET; 3]);
    }),
    QuietCase::new("device-reset", "a USB device where it is not known what disks are behind", |m| {
        say(m, &[USB_RESET; 3]);
    }),
    QuietCase::new("io-error", "a path that works again", |m| {
        say(m, &["device-mapper: multipath: 253:0: Reinstating path 8:0."]);
    }),
    QuietCase::new("filesystem-error", "old records", |m| {
        say(
            m,
            &[
                "BTRFS info (device sda1): bdev /dev/sda1 errs: wr 0, rd 0, flush 0, corrupt 5, gen 0",
                "EXT4-fs (sda1): error count since last fsck: 3",
                "EXT4-fs (sda1): last error at time 1700000500: ext4_find_entry:1455: inode 2",
            ],
        );
    }),
    QuietCase::new("filesystem-error", "a process named like a file system", |m| {
        say(m, &["EXT4-fs (sda1)[4242]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in a.out[55d0+1000]"]);
    }),
];

#[test]
fn a_reset_is_the_cause_of_errors_of_the_disk_behind() {
    let mut machine = TestMachine::new();
    connect_sda(&mut machine, OF_ATA_4);
    say(
        &mut machine,
        &["ata4.00: exception Emask 0x10 SAct 0xe000 SErr 0x280100 action 0x6 frozen", "I/O error, dev sda, sector 8"],
    );
    assert_eq!(rules_by_incident(&machine), [["device-reset", "io-error"]]);
    let found = machine.evaluate_rule("device-reset").0.remove(0);
    assert_eq!((found.subject, found.devices), (FindingSubject::Device(SDA, "sda".into()), vec![SDA]));
    assert!(found.title.starts_with("resets or timeouts on ata4.00: "), "{}", found.title);

    let mut machine = TestMachine::new();
    say(&mut machine, &[NVME_TIMEOUT, "I/O error, dev nvme0n1, sector 8"]);
    assert_eq!(rules_by_incident(&machine), [["device-reset", "io-error"]]);
    // Another disk has another cause.
    let mut machine = TestMachine::new();
    say(&mut machine, &[NVME_TIMEOUT, "I/O error, dev sda, sector 8"]);
    assert_eq!(rules_by_incident(&machine), [["io-error"], ["device-reset"]]);
}

#[test]
fn a_reset_of_a_controller_is_the_cause_for_all_its_namespaces() {
    let mut machine = TestMachine::new();
    let second = BlockDevice { id: DevId { minor: 5, ..NVME }, name: "nvme0n2".into(), ..BlockDevice::default() };
    machine.system.topology.ok_mut().unwrap().devices.push(second);
    say(&mut machine, &[NVME_TIMEOUT, "I/O error, dev nvme0n2, sector 8"]);
    assert_eq!(rules_by_incident(&machine), [["device-reset", "io-error"]]);
    let found = machine.evaluate_rule("device-reset").0.remove(0);
    assert_eq!(found.subject, FindingSubject::KernelName("nvme0".into()));
    assert_eq!(found.devices, [NVME, DevId { minor: 5, ..NVME }]);
    assert_eq!((found.evidence[0].name, &*found.evidence[0].value), ("disks behind it", "nvme0n1, nvme0n2"));
}

#[test]
fn a_reset_of_a_controller_is_that_of_the_multipath_disk() {
    let mut machine = TestMachine::new();
    let path = DiskRaw { name: "nvme0c1n1".into(), ..DiskRaw::default() };
    machine.system.last_sample = Some(Sample { disks: Reading::Ok(vec![path]), ..Sample::default() });
    say(&mut machine, &["nvme nvme1: I/O 12 QID 3 timeout, reset controller", "I/O error, dev nvme0n1, sector 8"]);
    assert_eq!(rules_by_incident(&machine), [["device-reset", "io-error"]]);
}

#[test]
fn each_damaged_file_system_of_a_disk_is_named() {
    let mut machine = TestMachine::new();
    say(
        &mut machine,
        &[
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
            "XFS (sda2): Log I/O Error (0x2) detected at xlog_ioend_work+0x71/0x90.  Shutting down filesystem.",
        ],
    );
    let mut found = machine.evaluate_rule("filesystem-error").0;
    found.sort_by_key(|f| f.devices.clone());
    let subjects: Vec<_> = found.iter().map(|f| f.subject.name()).collect();
    assert_eq!(subjects, ["sda1", "sda2"]);
    assert!(found[0].title.starts_with("file system errors on sda1, 2 times"), "{}", found[0].title);
    assert!(found[1].title.starts_with("file system errors on sda2: XFS (sda2)"), "{}", found[1].title);
}
