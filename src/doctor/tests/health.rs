//! Arrays, paths, disks and file systems with and without a problem.

use super::firing::{FiringCase, firing_case};
use super::quiet::QuietCase;
use super::test_machine::*;
use crate::doctor::finding::Severity::{Critical, Note, Warn};
use crate::model::health::{
    ArrayHealth, BtrfsHealth, BtrfsMember, CacheHealth, DeviceHealth, DiskHealth, Ext4Errors, Health, PathHealth,
    ZramHealth,
};

fn report(machine: &mut TestMachine, device: &str, health: Health) {
    let device = device.to_owned();
    machine.change_facts(|facts| facts.health.push(DeviceHealth { device, health }));
}

fn report_before(machine: &mut TestMachine, device: &str, health: Health) {
    let device = device.to_owned();
    machine.change_previous_facts(|facts| facts.health.push(DeviceHealth { device, health }));
}

fn array(level: &str, missing: u64) -> ArrayHealth {
    ArrayHealth { level: level.into(), members: 4, missing, sync_action: "idle".into(), ..Default::default() }
}

fn disk(state: &str, errors: u64, timeouts: u64) -> Health {
    Health::Disk(DiskHealth { state: state.into(), errors: Some(errors), timeouts: Some(timeouts) })
}

fn paths(states: [&str; 2]) -> Health {
    let [first, second] = states.map(String::from);
    Health::Paths(PathHealth { paths: vec![("sda".into(), first), ("sdb".into(), second)] })
}

fn ext4(count: u64, last_time: u64) -> Health {
    Health::Ext4(Ext4Errors { count, last_time, last_function: "ext4_find_entry".into() })
}

fn btrfs(is_missing: bool, corrupt: u64) -> Health {
    let member = BtrfsMember { id: 2, is_missing, errors: [0, 0, 0, corrupt, 0] };
    Health::Btrfs(BtrfsHealth { name: "data".into(), devices: vec!["sda".into()], members: vec![member] })
}

fn zram(stored_mib: u64, memory_mib: u64, limit_mib: u64, failed_writes: u64) -> Health {
    let [stored_bytes, memory_bytes, limit_bytes] = [stored_mib, memory_mib, limit_mib].map(|n| n << 20);
    Health::Zram(ZramHealth { stored_bytes, memory_bytes, limit_bytes, failed_writes })
}

/// In MiB.
fn dm_cache(state: &str, needs_check: bool, dirty: u64) -> Health {
    let (kind, state) = ("dm-cache".into(), state.into());
    let (dirty_bytes, size_bytes) = (Some(dirty << 20), Some(1000 << 20));
    Health::Cache(CacheHealth { kind, state, needs_check, dirty_bytes, size_bytes, io_errors: None })
}

fn bcache(state: &str, io_errors: u64) -> Health {
    let (kind, state) = ("bcache".into(), state.into());
    Health::Cache(CacheHealth {
        kind,
        state,
        io_errors: Some(io_errors),
        dirty_bytes: Some(512 << 20),
        ..CacheHealth::default()
    })
}

pub const FIRING: &[FiringCase] = &[
    firing_case("cache-device", "failed", Critical, "dm-cache sda has failed: the kernel permits no I/O", |m| {
        report(m, "sda", dm_cache("Fail", false, 0));
    }),
    firing_case("cache-device", "read-only", Critical, "dm-cache sda cannot change its metadata any more", |m| {
        report(m, "sda", dm_cache("ro", true, 0));
    }),
    firing_case("cache-device", "to be checked", Critical, "dm-cache sda needs a check of its metadata", |m| {
        report(m, "sda", dm_cache("rw", true, 0));
    }),
    firing_case(
        "cache-device",
        "full of dirty blocks",
        Warn,
        "dm-cache sda is 95% dirty (950 MiB): writes go at",
        |m| {
            report(m, "sda", dm_cache("rw", false, 950));
        },
    ),
    firing_case("cache-device", "stuck", Note, "dm-cache sda keeps 300 MiB dirty while it is idle", |m| {
        m.idle_ticks(10);
        report_before(m, "sda", dm_cache("rw", false, 300));
        report(m, "sda", dm_cache("rw", false, 300));
    }),
    firing_case("cache-device", "inconsistent", Critical, "bcache bcache0 was used without its cache", |m| {
        report(m, "bcache0", bcache("inconsistent", 0));
    }),
    firing_case("cache-device", "detached", Warn, "bcache bcache0 works without a cache", |m| {
        report(m, "bcache0", bcache("no cache", 0));
    }),
    firing_case("cache-device", "errors", Warn, "bcache bcache0 had 3 I/O errors since the reading before", |m| {
        report_before(m, "bcache0", bcache("dirty", 1));
        report(m, "bcache0", bcache("dirty", 4));
    }),
    firing_case(
        "array-degraded",
        "a parity array with a faulty member",
        Critical,
        "md0 (raid5) works without 1 of 4 members (sdb1 faulty)",
        |m| report(m, "md0", Health::Array(ArrayHealth { faulty: vec!["sdb1".into()], ..array("raid5", 1) })),
    ),
    firing_case("array-degraded", "still redundant", Warn, "md0 (raid6) works without 1 of 4 members", |m| {
        report(m, "md0", Health::Array(array("raid6", 1)));
    }),
    firing_case(
        "array-sync",
        "a rebuild",
        Note,
        "md0 (raid5) runs a recover, 25% done: its disks serve that, too",
        |m| {
            let sync = ArrayHealth { sync_action: "recover".into(), sync_sectors: Some((1, 4)), ..array("raid5", 1) };
            report(m, "md0", Health::Array(sync));
        },
    ),
    firing_case("array-mismatch", "parity", Warn, "md0 (raid5): 128 sectors differed in the last check", |m| {
        report(m, "md0", Health::Array(ArrayHealth { mismatched_sectors: 128, ..array("raid5", 0) }));
    }),
    firing_case("paths-down", "one path", Warn, "has lost 1 of 2 paths: sdb transport-offline", |m| {
        report(m, "dm-0", paths(["running", "transport-offline"]));
    }),
    firing_case("paths-down", "the last path", Critical, "has lost 2 of 2 paths", |m| {
        report(m, "dm-0", paths(["offline", "transport-offline"]));
    }),
    firing_case("disk-health", "offline", Critical, "sda is offline: the kernel does not send it requests", |m| {
        report(m, "sda", disk("offline", 0, 0));
    }),
    firing_case("disk-health", "resetting", Warn, "nvme0n1 is resetting", |m| {
        report(m, "nvme0n1", disk("resetting", 0, 0));
    }),
    firing_case("disk-health", "timeouts", Warn, "sda: 2 commands timed out since the reading before", |m| {
        report_before(m, "sda", disk("running", 5, 1));
        report(m, "sda", disk("running", 9, 3));
    }),
    firing_case("disk-health", "errors", Note, "sda: 4 commands ended with an error", |m| {
        report_before(m, "sda", disk("running", 5, 1));
        report(m, "sda", disk("running", 9, 1));
    }),
    firing_case("recorded-errors", "old ones of ext4", Warn, "ext4 on sda1 has recorded 3 errors", |m| {
        report_before(m, "sda1", ext4(3, 0));
        report(m, "sda1", ext4(3, 0));
    }),
    firing_case("recorded-errors", "a new one of ext4", Critical, "ext4 on sda1 has recorded 4 errors", |m| {
        report_before(m, "sda1", ext4(3, 0));
        report(m, "sda1", ext4(4, 0));
    }),
    firing_case("recorded-errors", "btrfs without a device", Critical, "btrfs data works without its device 2", |m| {
        report(m, "sda", btrfs(true, 0));
    }),
    firing_case(
        "recorded-errors",
        "corrected errors of btrfs",
        Warn,
        "btrfs data: device 2 has had errors: 7 corruption",
        |m| report(m, "sda", btrfs(false, 7)),
    ),
    firing_case("zram", "at its limit", Warn, "zram0 is at its memory limit", |m| {
        report(m, "zram0", zram(2000, 990, 1000, 0));
    }),
    firing_case("zram", "failed writes", Warn, "zram0: 3 writes failed", |m| {
        report_before(m, "zram0", zram(2000, 900, 0, 1));
        report(m, "zram0", zram(2000, 900, 0, 4));
    }),
    firing_case("zram", "compresses little", Note, "zram0 saves little: 1.00 GiB take 0.98 GiB", |m| {
        report(m, "zram0", zram(1024, 1000, 0, 0));
    }),
];

fn healthy(m: &mut TestMachine) {
    for (device, health) in [
        ("md0", Health::Array(array("raid5", 0))),
        ("dm-0", paths(["running", "running"])),
        ("sda", disk("running", 7, 1)),
        ("sda1", ext4(0, 0)),
        ("zram0", zram(1024, 300, 0, 2)),
    ] {
        report_before(m, device, health.clone());
        report(m, device, health);
    }
}

pub const QUIET: &[QuietCase] = &[
    QuietCase::new("cache-device", "it writes back", |m| {
        m.idle_ticks(10);
        report_before(m, "sda", dm_cache("rw", false, 400));
        report(m, "sda", dm_cache("rw", false, 300));
    }),
    QuietCase::new("cache-device", "it is written to", |m| {
        m.ticks(10, |t| set_device(t, busy_device(SDA, "sda", (100.0, 1.0, 0.1, 4.0, 0.0))));
        report_before(m, "sda", dm_cache("rw", false, 300));
        report(m, "sda", dm_cache("rw", false, 500));
    }),
    QuietCase::new("cache-device", "a bcache keeps a tenth dirty", |m| {
        m.idle_ticks(10);
        report_before(m, "bcache0", bcache("dirty", 0));
        report(m, "bcache0", bcache("dirty", 0));
    }),
    QuietCase::new("array-degraded", "all members", healthy),
    QuietCase::new("array-sync", "idle", healthy),
    QuietCase::new("array-mismatch", "nothing differed", healthy),
    QuietCase::new("array-mismatch", "counted while a check runs", |m| {
        let check = ArrayHealth { mismatched_sectors: 8, sync_action: "check".into(), ..array("raid5", 0) };
        report(m, "md0", Health::Array(check));
    }),
    QuietCase::new("paths-down", "both work", healthy),
    QuietCase::new("disk-health", "errors that do not grow", healthy),
    QuietCase::new("disk-health", "the path of a multipath device has its own finding", |m| {
        report(m, "dm-0", paths(["running", "offline"]));
        report(m, "sdb", disk("offline", 0, 0));
    }),
    QuietCase::new("recorded-errors", "none", healthy),
    QuietCase::new("zram", "compresses well, failures are old", healthy),
];
