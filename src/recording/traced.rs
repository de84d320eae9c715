//! What the kernel counts for us by tracing, as differences to the tick before: latency and request patterns of
//! devices, memory stalls of processes, I/O accounts. Syncs are in [`super::syncs`].

use super::codec::{Coded, DecodeError, MAX_DEVICES, MAX_ROWS, Wire};
use super::table::{DeltaRow, TableRow, code_changed_rows, code_sorted_list, code_table, is_same_list};
use crate::model::io_accounting::{AccountKey, AccountKind, IoAccount, IoAccountsRaw, LATENCY_BUCKETS};
use crate::model::latency::{BUCKETS, DeviceHistograms, LatencyRaw};
use crate::model::memory_stalls::{MemoryStallsRaw, TaskStallCounters};
use crate::model::reading::Reading;
use crate::model::request_pattern::RequestPattern;
use crate::model::sample::Sample;
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) fn latency(w: &mut Wire, base: &Arc<LatencyRaw>, cur: &mut Arc<LatencyRaw>) -> Coded {
    let cur = Arc::make_mut(cur);
    w.num(&mut cur.dropped)?;
    w.reasons(&mut cur.unavailable)?;
    code_table(w, &base.devices, &mut cur.devices)
}

impl TableRow for DeviceHistograms {
    fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }

    fn identities(rows: &mut Vec<Self>, w: &mut Wire) -> Coded {
        w.list(MAX_DEVICES, rows, |w, row| w.nums([&mut row.id.major, &mut row.id.minor]))
    }
}

impl DeltaRow for DeviceHistograms {
    fn differs(&self, base: &Self) -> bool {
        self.kinds != base.kinds
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        for (cur, base) in self.kinds.iter_mut().zip(&base.kinds) {
            w.histogram(&base.total, &mut cur.total, BUCKETS)?;
            w.histogram(&base.service, &mut cur.service, BUCKETS)?;
        }
        Ok(())
    }
}

/// The request patterns of one device: a table beside [`latency`], whose devices it refers to by index. Files of
/// earlier versions have none.
#[derive(Clone, Default)]
struct DevicePatterns([RequestPattern; 3]);

/// The patterns of all devices. When reading, `cur` has the devices of [`latency`] with their patterns of the tick
/// before.
pub(crate) fn request_patterns(
    w: &mut Wire,
    base: &Reading<Arc<LatencyRaw>>,
    cur: &mut Reading<Arc<LatencyRaw>>,
) -> Coded {
    let devices = |reading: &Reading<Arc<LatencyRaw>>| reading.ok().map_or_else(Vec::new, |l| l.devices.clone());
    let patterns = |all: &[DeviceHistograms]| -> Vec<DevicePatterns> {
        all.iter().map(|d| DevicePatterns(std::array::from_fn(|i| d.kinds[i].pattern))).collect()
    };
    let (old, now) = (devices(base), devices(cur));
    let mut rows = patterns(&now);
    let base = match w.is_read() {
        true => rows.clone(),
        false if is_same_list(&old, &now, DeviceHistograms::is_same) => patterns(&old),
        false => vec![DevicePatterns::default(); rows.len()],
    };
    code_changed_rows(w, None, &base, &mut rows)?;
    if w.is_read()
        && let Reading::Ok(latency) = cur
    {
        for (device, row) in Arc::make_mut(latency).devices.iter_mut().zip(rows) {
            device.kinds.iter_mut().zip(row.0).for_each(|(kind, pattern)| kind.pattern = pattern);
        }
    }
    Ok(())
}

impl DeltaRow for DevicePatterns {
    fn differs(&self, base: &Self) -> bool {
        self.0 != base.0
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        for (cur, base) in self.0.iter_mut().zip(&base.0) {
            *cur = RequestPattern::from_row(&w.cells(base.to_row(), cur.to_row())?);
        }
        Ok(())
    }
}

pub(crate) fn memory_stalls(w: &mut Wire, base: &MemoryStallsRaw, cur: &mut MemoryStallsRaw) -> Coded {
    let [dirty, reclaim] = cur.is_counted;
    let mut is_counted = u64::from(dirty) | u64::from(reclaim) << 1;
    w.nums([&mut cur.dropped, &mut is_counted])?;
    cur.is_counted = [is_counted & 1 != 0, is_counted & 2 != 0];
    w.reasons(&mut cur.unavailable)?;
    code_table(w, &base.tasks, &mut cur.tasks)?;
    // They are looked up by binary search.
    match w.is_read() && !cur.tasks.is_sorted_by(|a, b| a.key() < b.key()) {
        true => Err(DecodeError("processes are not in order")),
        false => Ok(()),
    }
}

impl TaskStallCounters {
    fn cells(&self) -> [u64; 6] {
        let [a, b] = self.counters;
        [a.count, a.total_ns, a.max_ns, b.count, b.total_ns, b.max_ns]
    }
}

impl TableRow for TaskStallCounters {
    fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key() && self.comm == other.comm && self.bdi == other.bdi
    }

    fn identities(rows: &mut Vec<Self>, w: &mut Wire) -> Coded {
        w.list(MAX_ROWS, rows, |w, row| {
            w.num(&mut row.pid)?;
            w.num(&mut row.starttime)?;
            w.blob(&mut row.comm)?;
            w.blob(&mut row.bdi)
        })
    }
}

impl DeltaRow for TaskStallCounters {
    fn differs(&self, base: &Self) -> bool {
        self.counters != base.counters
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        let row = w.cells(base.cells(), self.cells())?;
        for (counter, cells) in self.counters.iter_mut().zip(row.chunks_exact(3)) {
            (counter.count, counter.total_ns, counter.max_ns) = (cells[0], cells[1], cells[2]);
        }
        Ok(())
    }
}

/// All accounts, with the names they refer to.
pub(crate) fn io_accounts(w: &mut Wire, base: &Arc<IoAccountsRaw>, cur: &mut Arc<IoAccountsRaw>) -> Coded {
    let cur = Arc::make_mut(cur);
    w.num(&mut cur.dropped)?;
    w.reasons(&mut cur.unavailable)?;
    code_sorted_list(w, &base.names, &mut cur.names, |w, (pid, name)| {
        w.num(pid)?;
        w.shown_text(name)
    })?;
    code_sorted_list(w, &base.cgroups, &mut cur.cgroups, |w, (id, path)| {
        w.num(id)?;
        w.shown_text(path)
    })?;
    let keys_of = |raw: &IoAccountsRaw| raw.accounts.iter().map(|a| a.key).collect::<Vec<_>>();
    let mut keys = keys_of(cur);
    code_sorted_list(w, &keys_of(base), &mut keys, account_key)?;
    // What an account had before, or an empty one.
    let mut old = base.accounts.iter().peekable();
    let before = |key: AccountKey| {
        while old.next_if(|b| b.key < key).is_some() {}
        old.next_if(|b| b.key == key).cloned().unwrap_or_else(|| IoAccount { key, ..IoAccount::default() })
    };
    let before: Vec<IoAccount> = keys.into_iter().map(before).collect();
    if w.is_read() {
        cur.accounts = before.clone();
    }
    code_changed_rows(w, None, &before, &mut cur.accounts)
}

/// When accounting began: a section beside [`io_accounts`], present where it changed. Files of earlier versions have none.
pub(crate) fn io_accounts_start(
    w: &mut Wire,
    base: &Reading<Arc<IoAccountsRaw>>,
    cur: &mut Reading<Arc<IoAccountsRaw>>,
) -> Coded {
    let before = base.ok().map_or(0, |raw| raw.tracing_started_ns);
    match cur {
        Reading::Ok(raw) if w.is_read() || raw.tracing_started_ns != before => {
            w.num(&mut Arc::make_mut(raw).tracing_started_ns)
        }
        _ => Ok(()),
    }
}

/// When tracing of latency and of stalls began: a section beside [`latency`] and [`memory_stalls`], present where it changed.
/// Files of earlier versions have none.
pub(crate) fn tracing_starts(w: &mut Wire, base: &Sample, cur: &mut Sample) -> Coded {
    let starts = |sample: &Sample| {
        let (latency, stalls) = (sample.latency.ok(), sample.memory_stalls.ok());
        [latency.map_or(0, |raw| raw.tracing_started_ns), stalls.map_or(0, |raw| raw.tracing_started_ns)]
    };
    let [mut latency, mut stalls] = starts(cur);
    if !w.is_read() && starts(base) == [latency, stalls] {
        return Ok(());
    }
    w.nums([&mut latency, &mut stalls])?;
    if let (true, Reading::Ok(raw)) = (w.is_read(), &mut cur.latency) {
        Arc::make_mut(raw).tracing_started_ns = latency;
    }
    if let (true, Reading::Ok(raw)) = (w.is_read(), &mut cur.memory_stalls) {
        raw.tracing_started_ns = stalls;
    }
    Ok(())
}

/// Added to the kind of an account of a device that takes bios.
const STACKED: u64 = 64;

fn account_key(w: &mut Wire, key: &mut AccountKey) -> Coded {
    let mut kind = key.kind as u64 + if key.is_stacked { STACKED } else { 0 };
    w.nums([&mut key.pid, &mut key.device.major, &mut key.device.minor])?;
    w.nums([&mut key.cgroup_id, &mut kind])?;
    key.is_stacked = kind >= STACKED;
    let kind = kind % STACKED;
    key.kind = *AccountKind::VARIANTS.get(kind as usize).ok_or(DecodeError("an account is of an unknown kind"))?;
    Ok(())
}

impl DeltaRow for IoAccount {
    fn differs(&self, base: &Self) -> bool {
        self != base
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        w.delta(base.requests, &mut self.requests)?;
        w.delta(base.bytes, &mut self.bytes)?;
        w.delta(base.total_ns, &mut self.total_ns)?;
        w.histogram(&base.histogram, &mut self.histogram, LATENCY_BUCKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::Wire;
    use super::super::tests::{assert_damage_is_harmless, round_trip};
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::latency::{RequestHistograms, SparseHistogram};
    use crate::model::memory_stalls::StallCounter;
    use proptest::prelude::*;

    fn any_histogram(buckets: usize) -> impl Strategy<Value = SparseHistogram> {
        proptest::collection::btree_map(0..buckets as u16, 1..=u32::MAX, 0..4).prop_map(SparseHistogram::from_sparse)
    }

    fn any_latency() -> impl Strategy<Value = Reading<Arc<LatencyRaw>>> {
        let kind = || {
            let pattern = any::<([u32; 12], u32, u32)>().prop_map(|(sizes, random, sequential)| RequestPattern {
                sizes,
                random,
                sequential,
            });
            let parts = (any_histogram(BUCKETS), any_histogram(BUCKETS), pattern);
            parts.prop_map(|(total, service, pattern)| RequestHistograms { total, service, pattern })
        };
        let device = (0..3u32, [kind(), kind(), kind()])
            .prop_map(|(minor, kinds)| DeviceHistograms { id: DevId { major: 8, minor }, kinds });
        (proptest::collection::vec(device, 0..4), any::<u64>(), proptest::collection::vec("[a-z]{0,9}", 0..2)).prop_map(
            |(devices, dropped, unavailable)| {
                Reading::Ok(Arc::new(LatencyRaw { devices, dropped, unavailable, ..LatencyRaw::default() }))
            },
        )
    }

    fn any_stalls() -> impl Strategy<Value = Reading<MemoryStallsRaw>> {
        let counter =
            || any::<(u64, u64, u64)>().prop_map(|(count, total_ns, max_ns)| StallCounter { count, total_ns, max_ns });
        let name = || proptest::collection::vec(any::<u8>(), 0..4);
        let task = (0..9u32, 0..2u64, name(), name(), [counter(), counter()]).prop_map(
            |(pid, starttime, comm, bdi, counters)| TaskStallCounters { pid, starttime, comm, bdi, counters },
        );
        let tasks = proptest::collection::vec(task, 0..5).prop_map(|mut tasks| {
            tasks.sort_by_key(TaskStallCounters::key);
            tasks.dedup_by_key(|t| t.key());
            tasks
        });
        (tasks, any::<[bool; 2]>(), any::<u64>()).prop_map(|(tasks, is_counted, dropped)| {
            Reading::Ok(MemoryStallsRaw { tasks, is_counted, dropped, ..MemoryStallsRaw::default() })
        })
    }

    fn any_accounts() -> impl Strategy<Value = Reading<Arc<IoAccountsRaw>>> {
        let any_kind = (0..AccountKind::VARIANTS.len(), any::<bool>());
        let key = (0..5u32, 0..3u32, any::<u8>(), any_kind).prop_map(|(pid, minor, group, (kind, is_stacked))| {
            let device = DevId { major: 8, minor };
            let kind = AccountKind::VARIANTS[kind];
            AccountKey { pid, device, cgroup_id: u64::from(group), kind, is_stacked }
        });
        let values = (any::<u64>(), any::<u64>(), any::<u64>(), any_histogram(LATENCY_BUCKETS));
        let accounts = proptest::collection::btree_map(key, values, 0..6);
        let names = proptest::collection::btree_map(0..9u32, "[a-z]{0,9}", 0..4);
        let cgroups = proptest::collection::btree_map(any::<u64>(), "/[a-z]{0,9}", 0..4);
        (accounts, names, cgroups, any::<u64>()).prop_map(|(accounts, names, cgroups, dropped)| {
            let account =
                |(key, (requests, bytes, total_ns, histogram))| IoAccount { key, requests, bytes, total_ns, histogram };
            Reading::Ok(Arc::new(IoAccountsRaw {
                tracing_started_ns: 0,
                accounts: accounts.into_iter().map(account).collect(),
                names: names.into_iter().map(|(pid, name)| (pid, name.into())).collect(),
                cgroups: cgroups.into_iter().map(|(id, path)| (id, path.into())).collect(),
                dropped,
                unavailable: vec!["zram: no".into()],
            }))
        })
    }

    /// As a sample has them: the histograms, then the patterns in a section of their own.
    fn latency_round_trip(base: &Reading<Arc<LatencyRaw>>, cur: &Reading<Arc<LatencyRaw>>) -> Reading<Arc<LatencyRaw>> {
        let (_, mut read) = round_trip(base, cur, latency);
        let mut out = Vec::new();
        request_patterns(&mut Wire::Write(&mut out), base, &mut cur.clone()).unwrap();
        request_patterns(&mut Wire::Read(&out), base, &mut read).unwrap();
        read
    }

    #[test]
    fn a_tick_without_new_counts_takes_a_few_bytes() {
        let device = DeviceHistograms {
            kinds: std::array::from_fn(|_| RequestHistograms {
                total: SparseHistogram::from_sparse([(9, 5)]),
                ..RequestHistograms::default()
            }),
            ..DeviceHistograms::default()
        };
        let devices =
            |dropped| Arc::new(LatencyRaw { devices: vec![device.clone(); 20], dropped, ..LatencyRaw::default() });
        let (bytes, _) = round_trip(&Reading::Ok(devices(0)), &Reading::Ok(devices(1)), latency);
        assert!(bytes <= 4, "{bytes}");

        let task = |pid| TaskStallCounters { pid, comm: b"dd".to_vec(), ..TaskStallCounters::default() };
        let mut now = MemoryStallsRaw { tasks: (0..100).map(task).collect(), ..MemoryStallsRaw::default() };
        let before = Reading::Ok(now.clone());
        now.tasks[50].counters[0].count += 1;
        let (bytes, _) = round_trip(&before, &Reading::Ok(now), memory_stalls);
        assert!(bytes < 10, "{bytes}");

        let account =
            |pid| IoAccount { key: AccountKey { pid, ..AccountKey::default() }, requests: 9, ..IoAccount::default() };
        let accounts = |dropped| {
            Arc::new(IoAccountsRaw { accounts: (0..200).map(account).collect(), dropped, ..IoAccountsRaw::default() })
        };
        let (bytes, _) = round_trip(&Reading::Ok(accounts(0)), &Reading::Ok(accounts(1)), io_accounts);
        assert!(bytes <= 9, "{bytes}");
    }

    #[test]
    fn unchanged_patterns_take_no_bytes() {
        let some =
            Reading::Ok(Arc::new(LatencyRaw { devices: vec![DeviceHistograms::default()], ..LatencyRaw::default() }));
        let mut out = Vec::new();
        request_patterns(&mut Wire::Write(&mut out), &some, &mut some.clone()).unwrap();
        request_patterns(&mut Wire::Write(&mut out), &some, &mut Reading::Denied("no".into())).unwrap();
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn latency_round_trips(a in any_latency(), b in any_latency()) {
            prop_assert_eq!(latency_round_trip(&a, &b), b.clone());
            prop_assert_eq!(latency_round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn memory_stalls_round_trip(a in any_stalls(), b in any_stalls()) {
            prop_assert_eq!(round_trip(&a, &b, memory_stalls).1, b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b, memory_stalls).1, b);
        }

        #[test]
        fn io_accounts_round_trip(a in any_accounts(), b in any_accounts()) {
            prop_assert_eq!(round_trip(&a, &b, io_accounts).1, b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b, io_accounts).1, b);
        }

        #[test]
        fn damage_is_rejected_or_read(
            latencies in (any_latency(), any_latency()), stalls in (any_stalls(), any_stalls()),
            accounts in (any_accounts(), any_accounts()), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            assert_damage_is_harmless(&latencies, at, to, latency);
            assert_damage_is_harmless(&stalls, at, to, memory_stalls);
            assert_damage_is_harmless(&accounts, at, to, io_accounts);
        }
    }
}
