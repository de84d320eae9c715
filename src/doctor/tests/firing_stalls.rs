//! Machines with tasks stalled by memory management, and the finding they lead to.

use super::firing::{FiringCase, firing_case, read, set_dirty};
use super::test_machine::*;
use crate::doctor::finding::Severity::{Critical, Warn};
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;

fn disable_stall_tracing(s: &mut Snapshot) {
    s.memory_stalls = Reading::default();
}

/// Writers are slowed, and for most of the time no task that could run makes progress.
fn standstill(machine: &mut TestMachine) {
    machine.ticks(14, |t| {
        set_dirty(t, 7 * GIB / 2, 1.0 * MIB, 1.0 * MIB);
        disable_stall_tracing(t);
        std::sync::Arc::make_mut(t.pressure.ok_mut().unwrap()).io = pressure(95.0, 80.0);
    });
}

/// A task in state D.
fn add_sleeping(machine: &mut TestMachine, pid: u32, name: &str) {
    machine.add_task(pid, name, |task| task.state = b'D', read(0), 0);
}

pub const FIRING: &[FiringCase] = &[
    firing_case(
        "writers-throttled",
        "more dirty pages than writers may leave",
        Warn,
        "writers are throttled: up to 3.50 GiB",
        |s| {
            s.ticks(5, |t| {
                set_dirty(t, 7 * GIB / 2, 60.0 * MIB, 60.0 * MIB);
                disable_stall_tracing(t);
            });
        },
    ),
    firing_case("writers-throttled", "no task makes progress", Critical, "writers are throttled", |s| {
        standstill(s);
        add_sleeping(s, 911, "dd");
        add_sleeping(s, 912, "shop");
    }),
    firing_case("writers-throttled", "one task copies to a slow disk", Warn, "writers are throttled", |s| {
        standstill(s);
        add_sleeping(s, 911, "dd");
    }),
    firing_case(
        "writers-throttled",
        "traced writers",
        Warn,
        "dd (911) sleeps 81% of the time and 1 more; up to 3.50 GiB dirty and under writeback, above the 3.00 GiB",
        |s| {
            s.ticks(5, |t| {
                set_dirty(t, 7 * GIB / 2, 60.0 * MIB, 60.0 * MIB);
                set_stalled(t, 912, "cp", THROTTLE, 300.0, 200.0);
                set_stalled(t, 911, "dd", THROTTLE, 812.0, 200.0);
            });
        },
    ),
    firing_case(
        "writers-throttled",
        "traced writer limited by its device",
        Warn,
        "dd (911) sleeps 50% of the time; limited by its device or cgroup (at most 1.00 GiB dirty",
        |s| {
            s.ticks(5, |t| {
                set_dirty(t, GIB, 60.0 * MIB, 60.0 * MIB);
                set_stalled(t, 911, "dd", THROTTLE, 500.0, 56.0);
            });
        },
    ),
    firing_case(
        "reclaim-stalls",
        "a task reclaims for a stream",
        Warn,
        "redis-server (900) spends 40% of its time in direct reclaim",
        |s| {
            s.ticks(6, |t| {
                set_stalled(t, 910, "tar", RECLAIM, 90.0, 9.0);
                set_stalled(t, 900, "redis-server", RECLAIM, 400.0, 120.0);
            });
            s.add_task(910, "tar", |_| {}, read(80 << 20), 0);
        },
    ),
    firing_case("reclaim-stalls", "hardly any progress", Critical, "java (900) spends 95%", |s| {
        s.ticks(6, |t| set_stalled(t, 900, "java", RECLAIM, 950.0, 800.0));
    }),
];
