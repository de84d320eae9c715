//! Processes that wait for syncs, and those that do not.

use super::firing::FiringCase;
use super::quiet::QuietCase as Case;
use super::test_machine::*;
use crate::doctor::finding::Severity::{Critical, Warn};
use crate::model::disk::DevId;
use crate::model::latency::{LatencySummary, SparseHistogram, bucket_index};
use crate::model::process::IoBytes;
use crate::model::reading::Reading;
use crate::model::slow_facts::TaskWait;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::{InFlightSync, NOT_REQUESTED, SlowSync, SyncActivity, SyncFile, SyncRate};
use crate::model::topology::{DeviceMatch, MountRef};
use std::sync::Arc;

/// Syncs of postgres on sda1: calls per second, share of its time in them, p99 in ms, now and since tracing began.
pub(super) fn set_syncs(snap: &mut Snapshot, calls_per_s: f64, wait_pct: f64, p99_ms: f64) {
    set_syncs_on(SDA1, snap, calls_per_s, wait_pct, p99_ms);
}

/// The same on a file system with this number.
fn set_syncs_on(file_system: DevId, snap: &mut Snapshot, calls_per_s: f64, wait_pct: f64, p99_ms: f64) {
    let file = Arc::new(SyncFile {
        pid: 78205,
        comm: "postgres".into(),
        device: file_system,
        ino: 12,
        path_tail: "pg/wal/0001".into(),
        is_full_path: true,
        ..SyncFile::default()
    });
    let us = p99_ms * 1e3;
    let spread = LatencySummary { samples: 100, p50: us / 2.0, p90: us, p99: us, p999: us, max: us };
    let rate = SyncRate {
        file: file.clone(),
        calls_per_s,
        wait_pct,
        calls: 100,
        errors: 0,
        mean_us: Some(us / 2.0),
        latency: Some(spread),
        ended: calls_of(calls_per_s, p99_ms),
        max_ns: (us * 1e3) as u64,
        last_ended_ns: Some(1),
    };
    let on = Some("jbd2_log_wait_commit".to_owned());
    let slow = vec![Arc::new(SlowSync { id: 1, file: file.clone(), waiting_on: on.clone(), ..SlowSync::default() })];
    let flying = if calls_per_s > 0.0 {
        Vec::new()
    } else {
        vec![InFlightSync { file, waiting_on: on, ..InFlightSync::default() }]
    };
    snap.syncs =
        Reading::Ok(Arc::new(SyncActivity { rows: vec![rate], slow, in_flight: flying, ..SyncActivity::default() }));
}

/// The calls of a second that all took this long.
fn calls_of(calls_per_s: f64, ms: f64) -> SparseHistogram {
    SparseHistogram::from_sparse([(bucket_index((ms * 1e6) as u64), calls_per_s as u32)])
}

fn stream_beside_syncs(s: &mut TestMachine, calls_per_s: f64, wait_pct: f64, p99_ms: f64) {
    s.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        set_syncs(t, calls_per_s, wait_pct, p99_ms);
    });
    s.add_task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
}

/// Hundreds of fast syncs per second, and one that took most of the window.
fn stalled_sync(s: &mut TestMachine) {
    s.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        set_syncs(t, 300.0, 80.0, 0.6);
        let Reading::Ok(all) = &mut t.syncs else { return };
        let all = Arc::make_mut(all);
        all.rows[0].max_ns = 3_000_000_000;
        let file = all.rows[0].file.clone();
        all.read_ns = 60_000_000_000;
        let began_ns = all.read_ns - 3_500_000_000;
        all.slow = vec![Arc::new(SlowSync {
            id: 1,
            file,
            started_ns: began_ns,
            duration_ns: 3_000_000_000,
            ..SlowSync::default()
        })];
    });
    s.add_task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
}

pub const FIRING: &[FiringCase] = &[
    FiringCase {
        rule: "syncs-behind-a-stream",
        description: "a big file beside a database",
        severity: Warn,
        title_part: "postgres (78205) waits on syncs of /srv/pg/wal/0001 (62% of its time, p99 180 ms) because dd (4711) \
               streams 300 MiB/s to the same device, sda1",
        set_up: |s| stream_beside_syncs(s, 6.0, 62.0, 180.0),
    },
    FiringCase {
        rule: "syncs-behind-a-stream",
        description: "a sync that is still running",
        severity: Critical,
        title_part: "(100% of its time",
        set_up: |s| stream_beside_syncs(s, 0.0, 100.0, 900.0),
    },
    FiringCase {
        rule: "syncs-behind-a-stream",
        description: "one long sync among many fast ones",
        severity: Critical,
        title_part: "waits on syncs of /srv/pg/wal/0001 (80% of its time, max 3000 ms) because dd (4711) streams",
        set_up: stalled_sync,
    },
    FiringCase {
        rule: "waits-on-syncs",
        description: "a slow disk without a stream",
        severity: Warn,
        title_part: "postgres (78205) waits on syncs of /srv/pg/wal/0001: 90% of its time, p99 180 ms",
        set_up: |s| {
            s.ticks(8, |t| set_syncs(t, 9.0, 90.0, 180.0));
        },
    },
];

pub const QUIET: &[Case] = &[
    Case::new("waits-on-syncs", "a benchmark that syncs at full speed", |s| {
        s.ticks(8, |t| set_syncs(t, 900.0, 97.0, 2.0));
    }),
    Case::new("waits-on-syncs", "a slow sync now and then", |s| {
        s.ticks(8, |t| set_syncs(t, 0.5, 10.0, 200.0));
    }),
    Case::new("waits-on-syncs", "reported by the other rule", |s| stream_beside_syncs(s, 6.0, 62.0, 180.0)),
    Case::new("waits-on-syncs", "tracing denied", |s| {
        s.ticks(8, |t| t.syncs = Reading::Denied("needs CAP_BPF".into()));
    })
    .unavailable(),
    Case::new("syncs-behind-a-stream", "fast syncs beside a stream", |s| {
        stream_beside_syncs(s, 200.0, 60.0, 9.0);
    }),
    Case::new("syncs-behind-a-stream", "slow syncs before the window only", |s| {
        stream_beside_syncs(s, 100.0, 25.0, 180.0);
        s.ticks(8, |t| {
            set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
            set_syncs(t, 100.0, 25.0, 180.0);
            let Reading::Ok(all) = &mut t.syncs else { return };
            Arc::make_mut(all).rows[0].ended = calls_of(100.0, 2.5);
        });
        s.add_task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
    }),
    Case::new("syncs-behind-a-stream", "no other writer", |s| {
        s.ticks(8, |t| set_syncs(t, 6.0, 62.0, 180.0));
    }),
    Case::new("syncs-behind-a-stream", "the stream goes to another disk", |s| {
        s.ticks(8, |t| {
            set_device(t, busy_device(NVME, "nvme0n1", (1500.0, 1.0, 2.0, 1024.0, 0.0)));
            set_syncs(t, 6.0, 62.0, 180.0);
        });
        s.add_task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
    }),
    Case::new("syncs-behind-a-stream", "two ticks", |s| {
        s.ticks(2, |t| set_syncs(t, 6.0, 62.0, 180.0));
    })
    .needs_more_data(),
    Case::new("syncs-behind-a-stream", "tracing not requested", |s| {
        s.ticks(8, |t| t.syncs = Reading::Absent(NOT_REQUESTED.into()));
    })
    .result(Result::is_ok),
    Case::new("syncs-behind-a-stream", "tracing not requested, in an earlier recording", |s| {
        s.ticks(8, |t| {
            t.syncs = Reading::Absent(
                "syncs are traced only while somebody wants to know: in the views Syncs and Findings".into(),
            )
        });
    })
    .result(Result::is_ok),
    Case::new("syncs-behind-a-stream", "no tracefs", |s| {
        s.ticks(8, |t| t.syncs = Reading::Absent("tracefs is not mounted".into()));
    })
    .unavailable(),
];

/// The number of a file system that is of no device.
const BTRFS: DevId = DevId { major: 0, minor: 44 };

/// Mounts btrfs on these devices instead of what is mounted there.
fn mount_btrfs(machine: &mut TestMachine, devices: &[DevId]) {
    let topology = machine.system.topology.ok_mut().unwrap();
    for (device, via) in devices.iter().zip([DeviceMatch::Source, DeviceMatch::Member]) {
        let device = topology.devices.iter_mut().find(|d| d.id == *device).unwrap();
        let mount = mount("/srv", "rw,relatime", "rw,subvolid=5,subvol=/");
        device.mounts = vec![MountRef { id: 77, file_system: BTRFS, matched_by: via, ..mount }];
    }
}

fn stream_beside_syncs_of_btrfs(machine: &mut TestMachine) {
    machine.ticks(8, |t| {
        set_device(t, busy_device(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        set_syncs_on(BTRFS, t, 6.0, 62.0, 180.0);
    });
    machine.add_task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
}

#[test]
fn syncs_of_a_file_system_with_a_number_of_its_own_are_judged_by_its_devices() {
    let mut machine = TestMachine::new();
    mount_btrfs(&mut machine, &[SDA1]);
    stream_beside_syncs_of_btrfs(&mut machine);
    let found = machine.evaluate_rule("syncs-behind-a-stream").0.remove(0);
    assert!(found.title.contains("syncs of /srv/pg/wal/0001 "), "{}", found.title);
    assert!(found.title.ends_with("streams 300 MiB/s to the same device, sda1"), "{}", found.title);
    assert_eq!(found.devices, [SDA1, SDA]);

    let mut machine = TestMachine::new();
    mount_btrfs(&mut machine, &[VDA, SDA1]);
    stream_beside_syncs_of_btrfs(&mut machine);
    let found = machine.evaluate_rule("syncs-behind-a-stream").0.remove(0);
    assert!(found.title.ends_with("to the same device, vda, sda1"), "{}", found.title);
    assert_eq!(found.devices, [VDA, SDA1, SDA]);
}

#[test]
fn the_class_of_the_devices_says_what_a_slow_sync_is() {
    let found = |device| {
        let mut machine = TestMachine::new();
        mount_btrfs(&mut machine, &[device]);
        // 25 ms are slow for a virtual disk, and not for a spinning one.
        machine.ticks(8, |t| set_syncs_on(BTRFS, t, 36.0, 90.0, 40.0));
        machine.evaluate_rule("waits-on-syncs").0.len()
    };
    assert_eq!((found(VDA), found(SDA1)), (1, 0));
}

#[test]
fn a_task_in_a_sync_of_a_file_system_with_a_number_of_its_own_waits_for_its_device() {
    let victims = |file_system: DevId, has_file: bool| {
        let mut machine = TestMachine::new();
        mount_btrfs(&mut machine, &[SDA1]);
        let key = machine.add_hung_task(78205, "postgres", "wait_on_page_bit", 10);
        let file = Arc::new(SyncFile { pid: 78205, device: file_system, ..SyncFile::default() });
        let sync = InFlightSync { tid: 78205, file, ..InFlightSync::default() };
        machine.tick(|t| {
            let in_flight = vec![sync];
            t.syncs = Reading::Ok(Arc::new(SyncActivity { in_flight, ..SyncActivity::default() }));
        });
        if has_file {
            let wait = TaskWait { key, mount_id: 77, path: "/srv/pg/wal/0001".into() };
            machine.change_facts(|facts| facts.waits.push(wait));
        }
        machine.evaluate_rule("hung-task").0.remove(0).devices
    };
    assert_eq!(victims(BTRFS, false), [SDA1, SDA]);
    let unknown = DevId { major: 0, minor: 99 };
    assert_eq!(victims(unknown, true), [SDA1, SDA], "the mount tells it");
    assert!(victims(unknown, false).is_empty());
}
