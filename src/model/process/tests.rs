//! Tests of the process table.

use super::stored_row::StoredRow;
use super::table::ProcessTotals;
use super::*;
use crate::model::io_accounting::{IoAttribution, IoRates, OwnerIo};
use crate::model::timestamp::Timestamp;
use proptest::prelude::*;
use std::sync::Arc;

const SEC: u64 = 1_000_000_000;

pub(super) fn key(pid: u32) -> TaskKey {
    TaskKey { pid, tid: pid, starttime: 100 }
}

pub(super) fn raw(pid: u32, read: u64, write: u64) -> TaskRaw {
    TaskRaw {
        key: key(pid),
        comm: *b"task\0\0\0\0\0\0\0\0\0\0\0\0",
        state: b'S',
        kernel_thread: false,
        ioprio: None,
        ppid: 1,
        uid: Some(0),
        num_threads: 1,
        majflt: 0,
        cpu_ticks: 0,
        timeslices: read + write,
        rss_bytes: 4096,
        swap_bytes: None,
        io: TaskIoRaw::Read(IoBytes { read, write, cancelled: 0 }),
        delays: None,
    }
}

fn clock(secs: u64) -> Timestamp {
    Timestamp { boot_ns: secs * SEC, wall_ns: 0 }
}

/// A scan at `secs`, one second after the previous one; `first` has no previous one.
pub(super) fn update_at(secs: u64, first: bool, changed: &[(TaskRaw, u64)]) -> ProcessUpdate {
    ProcessUpdate {
        seq: secs,
        time: clock(secs),
        previous_time: (!first).then(|| clock(secs - 1)),
        reset: first,
        total: changed.len(),
        changed: changed
            .iter()
            .map(|(raw, since)| TaskChange { raw: *raw, scanned_ns: secs * SEC, previous_scan_ns: since * SEC })
            .collect(),
        ..ProcessUpdate::default()
    }
}

#[test]
fn stalled_processes_sort_first_and_uncounted_kinds_are_none() {
    use crate::model::memory_stalls::{MemoryStalls, ProcessStalls, StallRate, THROTTLE};
    use crate::model::reading::Reading;
    let mut stalls = MemoryStalls { totals: [Some(StallRate::default()), None], ..MemoryStalls::default() };
    let mut held = ProcessStalls { key: key(2), ..ProcessStalls::default() };
    held.rates[THROTTLE].ms_per_s = 812.0;
    stalls.processes.push(held);
    let rows_of = |threads: bool, stalls: &Reading<MemoryStalls>| {
        let mut table = ProcessTable::new();
        table.apply(&ProcessUpdate {
            rows_are_threads: threads,
            ..update_at(10, true, &[(raw(1, 0, 0), 0), (raw(2, 0, 0), 0)])
        });
        table.set_stalls(stalls.ok());
        let query = ProcessQuery { sort_by: ProcessColumn::Throttled, height: 9, ..ProcessQuery::default() };
        let rows: Vec<_> = table.window(&query).rows.iter().map(|at| table.row(*at)).collect();
        rows.iter().map(|r| (r.pid(), r.throttled_pct(), r.reclaim_pct())).collect::<Vec<_>>()
    };
    let stalls = Reading::Ok(stalls);
    assert_eq!(rows_of(false, &stalls), [(2, Some(81.2), None), (1, Some(0.0), None)]);
    assert_eq!(rows_of(true, &stalls), [(1, None, None), (2, None, None)]);
    assert_eq!(rows_of(false, &Reading::Denied("no".into())), [(1, None, None), (2, None, None)]);
}

#[test]
fn a_rate_needs_two_scans_and_uses_its_own_interval() {
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(raw(1, 1000, 0), 0)]));
    assert_eq!(table.get(&key(1)).unwrap().rates().read_bytes_per_s, None, "no second look yet");
    assert_eq!(table.get(&key(1)).unwrap().raw.io.bytes().map(|b| b.read), Some(1000));
    table.apply(&update_at(11, false, &[]));
    assert_eq!(table.get(&key(1)).unwrap().rates().read_bytes_per_s, Some(0.0), "looked at and unchanged");
    // The row's last scan was at 11.5 s: the rate is over half a second, not over the tick.
    let mut update = update_at(12, false, &[(raw(1, 3000, 500), 0)]);
    update.changed[0].previous_scan_ns = 23 * SEC / 2;
    table.apply(&update);
    let row = table.get(&key(1)).unwrap();
    assert_eq!((row.rates().read_bytes_per_s, row.rates().write_bytes_per_s), (Some(4000.0), Some(1000.0)));
    assert_eq!(table.totals(), ProcessTotals { read_bytes_per_s: 4000.0, write_bytes_per_s: 1000.0 });
    table.apply(&update_at(13, false, &[]));
    assert_eq!(table.get(&key(1)).unwrap().rates().read_bytes_per_s, Some(0.0));
    assert_eq!(table.totals(), ProcessTotals::default());
}

#[test]
fn a_task_started_in_the_interval_counts_from_zero() {
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[]));
    let young = TaskRaw { key: TaskKey { pid: 7, tid: 7, starttime: 1050 }, ..raw(7, 0, 4096) };
    let old = raw(8, 0, 4096);
    table.apply(&update_at(11, false, &[(young, 0), (old, 0)]));
    assert_eq!(table.get(&young.key).unwrap().rates().write_bytes_per_s, Some(4096.0));
    assert_eq!(table.get(&old.key).unwrap().rates().write_bytes_per_s, None, "was there before, only came into sight");
}

#[test]
fn a_decreasing_counter_has_no_rate() {
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(raw(1, 5000, 0), 0)]));
    table.apply(&update_at(11, false, &[(raw(1, 100, 0), 10)]));
    assert_eq!(table.get(&key(1)).unwrap().rates().read_bytes_per_s, None);
    assert_eq!(table.get(&key(1)).unwrap().accumulated().unwrap().read, 0);
    table.apply(&update_at(12, false, &[(raw(1, 300, 0), 11)]));
    assert_eq!(table.get(&key(1)).unwrap().rates().read_bytes_per_s, Some(200.0));
}

/// `sh` (1) runs `sudo` (2), which runs `dd` (3); a parent that waits inherits the child's bytes.
#[test]
fn io_of_an_exited_child_is_not_its_parents_rate() {
    let below = |pid, ppid, write| TaskRaw { ppid, ..raw(pid, 0, write) };
    let start = |table: &mut ProcessTable| {
        table.apply(&update_at(10, true, &[(below(1, 9, 50), 0), (below(2, 1, 5), 0), (below(3, 2, 700), 0)]));
    };
    let written = |table: &ProcessTable, pid| table.get(&key(pid)).unwrap().rates().write_bytes_per_s;
    // dd wrote 100 more before it exited: only those appear at its parent.
    let mut table = ProcessTable::new();
    start(&mut table);
    table.apply(&ProcessUpdate { exited: vec![key(3)], ..update_at(11, false, &[(below(2, 1, 805), 10)]) });
    assert_eq!(written(&table, 2), Some(100.0));
    assert_eq!(table.accumulated_io.write, 100);
    assert_eq!(table.get(&key(2)).unwrap().raw.io.bytes().map(|b| b.write), Some(805), "the kernel's own count");
    assert_eq!(table.get(&key(2)).unwrap().children_io().write, 700);
    // Both exited: sh inherits their bytes through sudo.
    let mut table = ProcessTable::new();
    start(&mut table);
    table
        .apply(&ProcessUpdate { exited: vec![key(2), key(3)], ..update_at(11, false, &[(below(1, 9, 755 + 20), 10)]) });
    assert_eq!(written(&table, 1), Some(20.0));
    // Nobody waited for dd: sudo wrote these bytes itself.
    let mut table = ProcessTable::new();
    start(&mut table);
    table.apply(&ProcessUpdate { exited: vec![key(3)], ..update_at(11, false, &[(below(2, 1, 305), 10)]) });
    assert_eq!(written(&table, 2), Some(300.0));
    assert_eq!(table.get(&key(2)).unwrap().children_io().write, 0);
    // A cycle of parents, possible only in a damaged recording.
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(below(1, 2, 50), 0), (below(2, 1, 5), 0)]));
    table.apply(&ProcessUpdate { exited: vec![key(1), key(2)], ..update_at(11, false, &[]) });
    assert_eq!(table.accumulated_io.write, 0);
}

#[test]
fn exited_rows_stay_for_one_interval() {
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(raw(1, 9, 9), 0), (raw(2, 0, 0), 0), (raw(3, 0, 0), 0)]));
    table.apply(&ProcessUpdate { exited: vec![key(1), key(1)], ..update_at(11, false, &[]) });
    let row = table.get(&key(1)).unwrap();
    assert!(row.has_exited());
    assert_eq!((row.raw.io.bytes().map(|b| b.read), row.rates().read_bytes_per_s), (Some(9), None));
    table.apply(&update_at(12, false, &[(raw(3, 5, 0), 11)]));
    assert!(table.get(&key(1)).is_none());
    assert_eq!(table.len(), 2);
    // The row that moved into the gap is still found by its key.
    assert_eq!(table.get(&key(3)).unwrap().rates().read_bytes_per_s, Some(5.0));
    assert_eq!(table.get(&key(2)).unwrap().pid(), 2);
}

#[test]
fn unreadable_counters_are_not_zero() {
    let mut table = ProcessTable::new();
    let denied = TaskRaw { io: TaskIoRaw::Denied, ..raw(1, 0, 0) };
    table.apply(&update_at(10, true, &[(denied, 0), (raw(2, 1, 1), 0)]));
    table.apply(&update_at(11, false, &[(TaskRaw { timeslices: 5, ..denied }, 10)]));
    let row = table.get(&key(1)).unwrap();
    assert_eq!(
        (row.rates().read_bytes_per_s, row.raw.io.bytes().map(|b| b.read), row.accumulated()),
        (None, None, None)
    );
    assert_eq!((row.rates().io_delay_pct, row.raw.swap_bytes), (None, None));
    let blocked =
        BlockedTask { key: key(2), since_boot_ns: 10 * SEC, waiting_on: "its stat".into(), counters_readable: false };
    table.apply(&ProcessUpdate { blocked: vec![blocked], ..update_at(12, false, &[]) });
    let row = table.get(&key(2)).unwrap();
    assert!(row.is_blocked());
    assert_eq!((row.rates().read_bytes_per_s, row.raw.io.bytes().map(|b| b.read)), (None, Some(1)));
    table.apply(&update_at(13, false, &[]));
    assert!(!table.get(&key(2)).unwrap().is_blocked());
}

#[test]
fn counters_accumulate_until_reset() {
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(raw(1, 1000, 0), 0)]));
    table.apply(&update_at(11, false, &[(raw(1, 1500, 8), 10)]));
    table.apply(&update_at(12, false, &[(raw(1, 1600, 8), 11)]));
    let acc = |table: &ProcessTable| table.get(&key(1)).unwrap().accumulated().unwrap();
    assert_eq!((acc(&table).read, acc(&table).write), (600, 8));
    table.reset_counters(clock(12));
    assert_eq!(acc(&table), IoBytes::default());
    assert_eq!(table.counters_since, clock(12));
    table.apply(&update_at(13, false, &[(raw(1, 1601, 8), 12)]));
    assert_eq!(acc(&table).read, 1);
}

#[test]
fn delays_are_per_cent_of_the_interval() {
    let with = |blkio_ns, swapin_ns, runs| TaskRaw {
        delays: Some(TaskDelays { blkio_ns, swapin_ns: Some(swapin_ns) }),
        timeslices: runs,
        ..raw(1, 0, 0)
    };
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(with(0, 0, 1), 0)]));
    table.apply(&update_at(11, false, &[(with(SEC / 4, SEC / 10, 2), 10)]));
    let row = table.get(&key(1)).unwrap();
    assert_eq!((row.rates().io_delay_pct, row.rates().swapin_delay_pct), (Some(25.0), Some(10.0)));
    table.apply(&update_at(12, false, &[]));
    assert_eq!(table.get(&key(1)).unwrap().rates().io_delay_pct, Some(0.0));
}

#[test]
fn a_state_lasts_only_until_the_task_runs() {
    let asleep = |runs| TaskRaw { state: b'D', timeslices: runs, ..raw(1, 0, 0) };
    let mut table = ProcessTable::new();
    table.apply(&update_at(10, true, &[(asleep(1), 0)]));
    table.apply(&update_at(11, false, &[(TaskRaw { rss_bytes: 1, ..asleep(1) }, 10)]));
    assert_eq!(table.get(&key(1)).unwrap().state_since_ns(), 10 * SEC);
    table.apply(&update_at(12, false, &[(asleep(2), 11)]));
    assert_eq!(table.get(&key(1)).unwrap().state_since_ns(), 12 * SEC, "it woke and slept again");
}

#[test]
fn names_users_and_wait_channels_reach_the_row() {
    let mut table = ProcessTable::new();
    let names =
        TaskNames { cmdline: Some((*b"evil \x1b[2J").into()), cgroup: "/a".into(), container: Some("docker:1".into()) };
    table.apply(&ProcessUpdate {
        names: vec![(key(1), Arc::new(names))],
        users: vec![(0, "root".into())],
        wait_channels: vec![(key(1), "io_schedule".into())],
        ..update_at(10, true, &[(raw(1, 0, 0), 0), (TaskRaw { uid: Some(42), kernel_thread: true, ..raw(2, 0, 0) }, 0)])
    });
    let row = table.get(&key(1)).unwrap();
    assert_eq!(row.command().map(|c| c.to_string()).as_deref(), Some("evil \\x1b[2J"));
    assert_eq!(
        (row.user().as_deref(), row.wait_channel(), row.cgroup()),
        (Some("root"), Some("io_schedule"), Some("/a"))
    );
    let row = table.get(&key(2)).unwrap();
    assert_eq!((row.user().as_deref(), row.command().map(|c| c.to_string()).as_deref()), (Some("42"), Some("[task]")));
    table.apply(&update_at(11, false, &[(raw(1, 7, 0), 10)]));
    assert_eq!(table.get(&key(1)).unwrap().wait_channel(), None, "it ran, so it waits elsewhere");
}

#[test]
fn filters_select_rows() {
    let mut table = ProcessTable::new();
    let rows = [
        (raw(1, 0, 0), 0),
        (TaskRaw { kernel_thread: true, ..raw(2, 0, 0) }, 0),
        (TaskRaw { state: b'D', uid: Some(9), ..raw(3, 0, 0) }, 0),
        (TaskRaw { comm: *b"PostGres\0\0\0\0\0\0\0\0", ..raw(4, 0, 0) }, 0),
    ];
    table.apply(&ProcessUpdate { users: vec![(9, "pg".into())], ..update_at(10, true, &rows) });
    table.apply(&update_at(11, false, &[(raw(1, 5, 0), 10)]));
    let pids = |filter: ProcessFilter| -> Vec<u32> {
        let window =
            table.window(&ProcessQuery { sort_by: ProcessColumn::Pid, filter, height: 9, ..ProcessQuery::default() });
        window.rows.iter().map(|at| table.row(*at).pid()).collect()
    };
    assert_eq!(pids(ProcessFilter { only_active: true, ..ProcessFilter::default() }), [1, 3]);
    assert_eq!(pids(ProcessFilter { only_accumulated: true, ..ProcessFilter::default() }), [1]);
    assert_eq!(pids(ProcessFilter { hide_kernel_threads: true, ..ProcessFilter::default() }), [1, 3, 4]);
    assert_eq!(pids(ProcessFilter { user: Some("pg".into()), ..ProcessFilter::default() }), [3]);
    assert_eq!(pids(ProcessFilter { user: Some("9".into()), ..ProcessFilter::default() }), [3]);
    assert_eq!(pids(ProcessFilter { text: Some("postg".into()), ..ProcessFilter::default() }), [4]);
    assert_eq!(pids(ProcessFilter { text: Some("2".into()), ..ProcessFilter::default() }), [2]);
}

#[test]
fn an_update_round_trips_through_json() {
    let mut update = update_at(10, true, &[(raw(1, 1, 2), 0)]);
    update.names.push((key(1), Arc::new(TaskNames { cmdline: Some(vec![0xff, b'a'].into()), ..TaskNames::default() })));
    update.blocked.push(BlockedTask {
        key: key(1),
        since_boot_ns: 1,
        waiting_on: "its stat".into(),
        counters_readable: false,
    });
    let back: ProcessUpdate = serde_json::from_str(&serde_json::to_string(&update).unwrap()).unwrap();
    assert_eq!(back, update);
}

#[test]
fn stored_rows_are_small() {
    // 20,000 rows, their index and their names (about 150 bytes each) need far less than 10 MiB.
    assert!(size_of::<StoredRow>() <= 200, "{}", size_of::<StoredRow>());
    assert!(size_of::<TaskChange>() <= 184, "{}", size_of::<TaskChange>());
}

proptest! {
    /// The window equals the same slice of a full sort.
    #[test]
    fn a_window_is_a_slice_of_the_sorted_table(
        io in proptest::collection::vec((0u64..5, 0u64..5), 0..60),
        offset in 0usize..70, height in 0usize..70, reverse: bool, by in 0usize..4,
    ) {
        let by = [ProcessColumn::Io, ProcessColumn::Rss, ProcessColumn::Pid, ProcessColumn::Swap][by];
        let mut table = ProcessTable::new();
        let rows: Vec<_> = io.iter().enumerate().map(|(n, (r, w))| {
            let swap_bytes = (r % 2 == 0).then_some(*w);
            (TaskRaw { swap_bytes, ..raw(n as u32 + 1, *r, *w) }, 0)
        }).collect();
        table.apply(&update_at(10, true, &[]));
        table.apply(&update_at(11, false, &rows));
        let query = ProcessQuery { sort_by: by, reverse, offset, height, ..ProcessQuery::default() };
        let all = table.window(&ProcessQuery { offset: 0, height: usize::MAX, ..query.clone() });
        let window = table.window(&query);
        prop_assert_eq!(window.matching, io.len());
        let want: Vec<u32> = all.rows.iter().copied().skip(offset).take(height).collect();
        prop_assert_eq!(window.rows, want);
        let known = |at: &u32| table.row(*at).raw.swap_bytes;
        if by == ProcessColumn::Swap && !reverse {
            let values: Vec<_> = all.rows.iter().map(known).collect();
            prop_assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
        }
    }
}

/// Attributed I/O with writeback bytes per second by pid.
fn io_attribution(back: &[(u32, f64)]) -> Option<Arc<IoAttribution>> {
    let figures = |n| IoRates { writeback_bytes_per_s: n, ..IoRates::default() };
    let tasks = back.iter().map(|(who, n)| OwnerIo { owner: *who, total: figures(*n), devices: Vec::new() });
    let names = back.iter().map(|(who, _)| (*who, "dd".into())).collect();
    Some(Arc::new(IoAttribution { processes: tasks.collect(), names, ..IoAttribution::default() }))
}

#[test]
fn an_exited_process_is_restored_while_its_pages_are_written() {
    let mut table = ProcessTable::new();
    table.set_io_attribution(io_attribution(&[]));
    table.apply(&update_at(10, true, &[(raw(1, 0, 0), 0), (raw(2, 0, 4096), 0)]));
    let names = TaskNames { cmdline: Some(b"cp a b".as_slice().into()), ..TaskNames::default() };
    table.apply(&ProcessUpdate { names: vec![(key(2), Arc::new(names))], ..update_at(11, false, &[]) });
    table.apply(&ProcessUpdate { exited: vec![key(2)], ..update_at(12, false, &[]) });
    table.apply(&update_at(13, false, &[]));
    let by_writeback = ProcessQuery { sort_by: ProcessColumn::Writeback, height: 9, ..ProcessQuery::default() };
    let shown = |table: &ProcessTable| {
        let rows = table.window(&by_writeback).rows.into_iter().map(|at| table.row(at));
        let all = rows.map(|r| {
            (
                r.pid(),
                r.attributed_io().map(|c| c.writeback_bytes_per_s),
                r.has_exited(),
                r.command().map(|c| c.to_string()),
            )
        });
        all.collect::<Vec<_>>()
    };
    assert_eq!(shown(&table), [(1, Some(0.0), false, None)]);
    // Two ticks: one process with a stored row, one never seen.
    for secs in [14, 15] {
        table.set_io_attribution(io_attribution(&[(2, 5.0), (7, 3.0)]));
        table.apply(&update_at(secs, false, &[]));
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            shown(&table),
            [(2, Some(5.0), true, named("cp a b")), (7, Some(3.0), true, named("dd")), (1, Some(0.0), false, None)]
        );
        let active = ProcessFilter { only_active: true, ..ProcessFilter::default() };
        assert_eq!(table.window(&ProcessQuery { filter: active, ..by_writeback.clone() }).matching, 2);
        assert!(table.iter().all(|r| r.has_exited_with_io() == r.has_exited()));
    }
    table.set_io_attribution(io_attribution(&[]));
    table.apply(&update_at(16, false, &[]));
    assert_eq!(shown(&table).len(), 1);
    table.set_io_attribution(None);
    assert_eq!(shown(&table), [(1, None, false, None)], "not traced is not 0");
}
