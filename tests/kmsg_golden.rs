//! Captured kernel logs, parsed, classified and folded as the screen shows them.
//!
//! The files `tests/fixtures/kmsg/*/dev/kmsg` have the format of `cat /dev/kmsg`: `lab` was captured while a loop
//! device failed and a frozen file system blocked a writer, `field` has messages of many kernel versions and drivers,
//! `boot` is an ordinary boot without errors, `attached` one of 6.12 with SCSI, SATA, NVMe, multipath, md, XFS and btrfs.

use iotop_plus::collect::kmsg::KmsgReader;
use iotop_plus::model::kernel_log::{KernelLog, KernelLogClass, KernelLogLimits, LogClock, LogEntry};
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use iotop_plus::sanitize::sanitize;
use std::fmt::Write as _;
use std::path::Path;

const NOW: LogClock = LogClock { mono_ns: 10_000_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

fn read(name: &str) -> KernelLog {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kmsg").join(name);
    let Reading::Ok(mut reader) = KmsgReader::open(&Root::at(base)) else { panic!("{name}: not opened") };
    let mut log = KernelLog::new(LogClock::default(), KernelLogLimits::default());
    while let Some(record) = reader.next_record().unwrap() {
        log.push(&record, NOW);
    }
    assert_eq!(log.dropped, 0);
    log
}

fn format_entry(e: &LogEntry) -> String {
    let mut out = format!("{:13} {}", e.class.name(), e.level);
    let pid = e.pid.map(|p| p.to_string());
    for field in [e.device.as_deref(), pid.as_deref(), e.comm.as_deref()] {
        let _ = write!(out, " {}", sanitize(field.unwrap_or("-")));
    }
    let _ = write!(out, " x{} +{}", e.count, e.folded.len());
    if e.suppressed > 0 {
        let _ = write!(out, " kept back {}", e.suppressed);
    }
    let _ = write!(out, "{} | {}", if e.is_from_program() { " program" } else { "" }, sanitize(&e.message));
    out.truncate(out.char_indices().nth(150).map_or(out.len(), |(i, _)| i));
    out
}

fn assert_snapshot_of(name: &str) {
    let log = read(name);
    let text: Vec<_> = log.entries().map(format_entry).collect();
    insta::with_settings!({ snapshot_path => "fixtures/kmsg", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text.join("\n"));
    });
}

#[test]
fn a_failing_loop_device_and_a_frozen_file_system_are_classified() {
    assert_snapshot_of("lab");
}

#[test]
fn messages_of_many_kernel_versions_are_classified() {
    assert_snapshot_of("field");
}

#[test]
fn an_ordinary_boot_has_nothing_to_report() {
    assert_snapshot_of("boot");
    let log = read("boot");
    assert!(log.entries().all(|e| e.class == KernelLogClass::Other));
}

#[test]
fn attaching_healthy_devices_is_no_problem() {
    let log = read("attached");
    let classified: Vec<_> = log.entries().filter(|e| e.class != KernelLogClass::Other).map(format_entry).collect();
    // Said of a device that was reset as well: the rule looks at when and how often.
    assert!(classified.iter().all(|line| line.contains("Power-on or device reset occurred")), "{classified:#?}");
    assert_eq!(classified.len(), 3, "one for each SCSI device: {classified:#?}");
}
