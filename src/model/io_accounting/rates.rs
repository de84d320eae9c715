//! Turns two readings of the accounts into rates by process and by control group, in total and by device.

use super::{AccountKey, AccountKind, IoAccount, IoAccountsRaw};
use crate::model::disk::DevId;
use crate::model::latency::{BucketScale, SparseHistogram};
use crate::sanitize::sanitize_cow;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use strum::VariantArray as _;

/// I/O of a process or control group in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct IoRates {
    /// Reads completed per second.
    pub reads_per_s: f64,
    /// Writes completed per second.
    pub writes_per_s: f64,
    /// Flushes completed per second.
    pub flushes_per_s: f64,
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Mean time of reads and writes from allocation to completion, in microseconds; `None` if none completed.
    pub mean_us: Option<f64>,
    /// 99th percentile of those times in microseconds; at most 25 % off.
    pub p99_us: Option<f64>,
    /// Mean number of reads in flight: the times of the reads completed, per second of the interval.
    pub reads_in_flight: f64,
    /// The same for writes.
    pub writes_in_flight: f64,
    /// The same for flushes without data; a flush that comes with a write is part of its time.
    pub flushes_in_flight: f64,
    /// Discards completed per second.
    pub discards_per_s: f64,
    pub discard_bytes_per_s: f64,
    /// Mean number of discards in flight.
    pub discards_in_flight: f64,
    /// Bytes per second of page cache that it dirtied and that was written back, by whatever process.
    pub writeback_bytes_per_s: f64,
    /// Those of them that it wrote back itself, as by a sync.
    pub own_writeback_bytes_per_s: f64,
    /// Extents per second that it wrote back itself.
    pub own_writebacks_per_s: f64,
    /// Mean number of requests in flight with which others write back what it dirtied.
    pub writeback_in_flight: f64,
}

impl IoRates {
    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }
}

/// I/O on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceIo {
    /// The whole device.
    pub device: DevId,
    /// It takes bios (dm, md, zram).
    pub is_stacked: bool,
    pub rates: IoRates,
}

/// I/O of one process or control group.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerIo<W> {
    /// The process or control group.
    pub owner: W,
    /// On all devices that have requests: what dm and md get comes to the disks below as well.
    pub total: IoRates,
    pub devices: Vec<DeviceIo>,
}

impl<W> OwnerIo<W> {
    pub fn on_device(&self, id: DevId) -> Option<&IoRates> {
        self.devices.iter().find(|d| d.device == id).map(|d| &d.rates)
    }
}

/// Bytes per second written to a device that belong to no process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UnattributedIo {
    /// Page cache that was dirtied before tracing began, or by an unknown process.
    pub unknown: f64,
    /// Swapped out.
    pub swap: f64,
    /// File system metadata.
    pub metadata: f64,
}

/// All I/O of an interval. Processes and control groups without I/O are not listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoAttribution {
    /// By process id.
    pub processes: Vec<OwnerIo<u32>>,
    /// Names of those processes by process id, sanitized. Needed for processes that have exited.
    pub names: Vec<(u32, Arc<str>)>,
    /// Names of the devices, sanitized; a device that has gone has none.
    pub device_names: Vec<(DevId, Arc<str>)>,
    /// By path, sanitized; `group 123` if the path is unknown.
    pub cgroups: Vec<OwnerIo<Arc<str>>>,
    /// Bytes that belong to no process, by device.
    pub unattributed: Vec<(DevId, UnattributedIo)>,
    /// Requests of the interval that could not be traced.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

/// Kinds of accounts.
const KINDS: usize = AccountKind::VARIANTS.len();

/// Counts of an interval, before they become rates.
#[derive(Default)]
struct IoAccountSum {
    /// Indexed by [`AccountKind`].
    requests: [u64; KINDS],
    bytes: [u64; KINDS],
    total_ns: [u64; KINDS],
    /// Times of reads and writes.
    histogram: BTreeMap<u16, u32>,
}

impl IoAccountSum {
    fn add(&mut self, now: &IoAccount, before: Option<&IoAccount>) {
        let at = now.key.kind as usize;
        let since = |get: fn(&IoAccount) -> u64| get(now).saturating_sub(before.map_or(0, get));
        let add = |sum: &mut u64, get| *sum = sum.saturating_add(since(get));
        add(&mut self.requests[at], |a| a.requests);
        add(&mut self.bytes[at], |a| a.bytes);
        add(&mut self.total_ns[at], |a| a.total_ns);
        if matches!(now.key.kind, AccountKind::Read | AccountKind::Write) {
            let none = SparseHistogram::default();
            for (slot, n) in now.histogram.since(before.map_or(&none, |b| &b.histogram)).buckets() {
                let sum = self.histogram.entry(*slot).or_default();
                *sum = sum.saturating_add(*n);
            }
        }
    }

    fn rates(&self, secs: f64) -> IoRates {
        let per_s = |n: u64| n as f64 / secs.max(1e-9);
        let times = SparseHistogram::from_sparse(self.histogram.iter().map(|(slot, n)| (*slot, *n)));
        let timed = times.total();
        let [reads, writes, flushes, _, _, _, discards, own_backs] = self.requests;
        let [read, written, _, back, _, _, discarded, own_back] = self.bytes;
        let [read_ns, write_ns, flush_ns, back_ns, _, _, discard_ns, _] = self.total_ns;
        let in_flight = |ns: u64| per_s(ns) / 1e9;
        let mean_us = (timed > 0).then(|| (read_ns as f64 + write_ns as f64) / timed as f64 / 1e3);
        IoRates {
            reads_per_s: per_s(reads),
            writes_per_s: per_s(writes),
            flushes_per_s: per_s(flushes),
            read_bytes_per_s: per_s(read),
            write_bytes_per_s: per_s(written),
            mean_us,
            // A lower bound is not below the mean: nearly all the time is in the longest requests then.
            p99_us: percentile_us(&times, 0.99)
                .map(|us| if is_beyond_buckets(us) { us.max(mean_us.unwrap_or(us)) } else { us }),
            reads_in_flight: in_flight(read_ns),
            writes_in_flight: in_flight(write_ns),
            flushes_in_flight: in_flight(flush_ns),
            discards_per_s: per_s(discards),
            discard_bytes_per_s: per_s(discarded),
            discards_in_flight: in_flight(discard_ns),
            writeback_bytes_per_s: per_s(back.saturating_add(own_back)),
            own_writeback_bytes_per_s: per_s(own_back),
            own_writebacks_per_s: per_s(own_backs),
            writeback_in_flight: in_flight(back_ns),
        }
    }
}

/// Sums by owner, in total and by device.
struct IoAccountSums<W>(BTreeMap<W, (IoAccountSum, DeviceSums)>);

/// By device, and whether it takes bios.
type DeviceSums = BTreeMap<(DevId, bool), IoAccountSum>;

impl<W: Ord> IoAccountSums<W> {
    fn add(&mut self, who: W, now: &IoAccount, before: Option<&IoAccount>) {
        let (total, devices) = self.0.entry(who).or_default();
        if !now.key.is_stacked {
            total.add(now, before);
        }
        devices.entry((now.key.device, now.key.is_stacked)).or_default().add(now, before);
    }

    fn into_owner_io(self, secs: f64) -> Vec<OwnerIo<W>> {
        let all = self.0.into_iter().map(|(who, (total, devices))| {
            let on = devices.into_iter().map(|((device, is_stacked), sum)| DeviceIo {
                device,
                is_stacked,
                rates: sum.rates(secs),
            });
            OwnerIo { owner: who, total: total.rates(secs), devices: on.collect() }
        });
        all.collect()
    }
}

impl IoAttribution {
    /// Rates between two readings `secs` apart; without `before`, since tracing began.
    pub fn derive(before: Option<&IoAccountsRaw>, now: &IoAccountsRaw, secs: f64) -> Self {
        let old = before.map(|b| b.accounts.as_slice()).unwrap_or_default();
        let find = |key: &AccountKey| old.binary_search_by_key(key, |a| a.key).ok().map(|at| &old[at]);
        let (mut tasks, mut groups) = (IoAccountSums(BTreeMap::new()), IoAccountSums(BTreeMap::new()));
        let mut apart: BTreeMap<DevId, UnattributedIo> = BTreeMap::new();
        for account in &now.accounts {
            // An account with fewer requests than before was closed and opened again.
            let before = find(&account.key).filter(|b| b.requests <= account.requests);
            if before.is_some_and(|b| b.requests == account.requests && b.bytes == account.bytes) {
                continue;
            }
            let key = account.key;
            let bytes = account.bytes.saturating_sub(before.map_or(0, |b| b.bytes)) as f64 / secs.max(1e-9);
            match unattributed_field(key) {
                Some(part) => *part(apart.entry(key.device).or_default()) += bytes,
                None => tasks.add(key.pid, account, before),
            }
            if key.cgroup_id > 0 {
                groups.add(now.cgroup_path(key.cgroup_id), account, before);
            }
        }
        let tasks = tasks.into_owner_io(secs);
        let has_io = |pid: &u32| tasks.binary_search_by_key(pid, |t: &OwnerIo<u32>| t.owner).is_ok();
        Self {
            names: now.names.iter().filter(|(pid, _)| has_io(pid)).cloned().collect(),
            processes: tasks,
            device_names: Vec::new(),
            cgroups: groups.into_owner_io(secs),
            unattributed: apart.into_iter().collect(),
            dropped: now.dropped.saturating_sub(before.map_or(0, |b| b.dropped)),
            unavailable: now.unavailable.clone(),
        }
    }

    /// I/O of a process; `None` without any.
    pub fn process(&self, pid: u32) -> Option<&OwnerIo<u32>> {
        self.processes.binary_search_by_key(&pid, |t| t.owner).ok().map(|at| &self.processes[at])
    }

    /// Name of a process at the time of its I/O.
    pub fn process_name(&self, pid: u32) -> Option<&Arc<str>> {
        self.names.binary_search_by_key(&pid, |n| n.0).ok().map(|at| &self.names[at].1)
    }

    /// Sets the names of the devices that processes have I/O on.
    pub(crate) fn name_devices<'a>(&mut self, all: impl Iterator<Item = (DevId, &'a Arc<str>)>) {
        let is_used = |id: DevId| self.processes.iter().any(|process| process.on_device(id).is_some());
        let named = all.filter(|(id, _)| is_used(*id)).map(|(id, name)| match sanitize_cow(name.as_bytes()) {
            Cow::Borrowed(_) => (id, name.clone()),
            Cow::Owned(safe) => (id, safe.into()),
        });
        self.device_names = named.collect();
    }

    /// The device that a process has most bytes on, its writeback included; `None` without I/O.
    pub fn main_device(&self, pid: u32) -> Option<DevId> {
        let bytes =
            |io: &DeviceIo| io.rates.read_bytes_per_s + io.rates.write_bytes_per_s + io.rates.writeback_bytes_per_s;
        let with_requests = self.process(pid)?.devices.iter().filter(|io| !io.is_stacked);
        let busiest = with_requests.max_by(|a, b| bytes(a).total_cmp(&bytes(b)))?;
        Some(busiest.device)
    }

    /// Name of a device, sanitized.
    pub fn device_name(&self, id: DevId) -> Option<&str> {
        self.device_names.iter().find(|(device, _)| *device == id).map(|(_, name)| &**name)
    }

    /// I/O of a control group; `None` without any.
    pub fn cgroup(&self, path: &str) -> Option<&OwnerIo<Arc<str>>> {
        self.cgroups.iter().find(|g| &*g.owner == path)
    }

    /// Estimated size in bytes.
    pub fn heap_bytes(&self) -> usize {
        fn owners_bytes<W>(all: &[OwnerIo<W>]) -> usize {
            all.iter().map(|c| size_of::<OwnerIo<W>>() + size_of_val(&*c.devices)).sum()
        }
        size_of::<Self>()
            + owners_bytes(&self.processes)
            + owners_bytes(&self.cgroups)
            + size_of_val(&*self.names)
            + size_of_val(&*self.device_names)
    }
}

/// Of the [`LATENCY_BUCKETS`](super::LATENCY_BUCKETS).
const SCALE: BucketScale = BucketScale { sub_bits: 1, min_exponent: 11 };

/// Midpoint of a bucket, in microseconds.
fn midpoint_us(slot: u16) -> f64 {
    let (low, high) = SCALE.bounds(slot);
    (low + high) as f64 / 2e3
}

/// Percentile in microseconds; `None` without requests. The last bucket has no upper end: its start, which
/// [`is_beyond_buckets`] tells from a midpoint.
pub(crate) fn percentile_us(counts: &SparseHistogram, share: f64) -> Option<f64> {
    let rank = (counts.total() as f64 * share).ceil() as u64;
    let us = |bucket| if bucket == LAST_BUCKET { last_bucket_start_us() } else { midpoint_us(bucket) };
    counts.bucket_of_rank(rank).map(|(bucket, ..)| us(bucket))
}

const LAST_BUCKET: u16 = super::LATENCY_BUCKETS as u16 - 1;

fn last_bucket_start_us() -> f64 {
    SCALE.bounds(LAST_BUCKET).0 as f64 / 1e3
}

/// Whether a percentile is only a lower bound, because it lies in the last bucket.
pub(crate) fn is_beyond_buckets(us: f64) -> bool {
    us >= last_bucket_start_us()
}

/// The counter for an account's bytes if they belong to no process.
fn unattributed_field(key: AccountKey) -> Option<fn(&mut UnattributedIo) -> &mut f64> {
    match key.kind {
        AccountKind::SwapOut => Some(|a| &mut a.swap),
        AccountKind::Metadata => Some(|a| &mut a.metadata),
        AccountKind::Writeback if key.pid == 0 => Some(|a| &mut a.unknown),
        _ => None,
    }
}

impl IoAccountsRaw {
    fn cgroup_path(&self, id: u64) -> Arc<str> {
        let known = self.cgroups.binary_search_by_key(&id, |g| g.0).ok();
        known.map_or_else(|| format!("group {id}").into(), |at| self.cgroups[at].1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::io_accounting::LATENCY_BUCKETS;

    /// As `bucket` in `assets/trace/buckets.h` computes it.
    fn bucket_index(ns: u64) -> u16 {
        SCALE.index(ns.max(1 << SCALE.min_exponent)).min(LATENCY_BUCKETS as u64 - 1) as u16
    }

    #[test]
    fn a_bucket_midpoint_is_within_a_quarter_of_every_value_in_it() {
        let mut ns = 1u64 << SCALE.min_exponent;
        while ns < 1 << 33 {
            let midpoint = midpoint_us(bucket_index(ns)) * 1e3;
            assert!((midpoint - ns as f64).abs() <= ns as f64 / 4.0, "{ns}: {midpoint}");
            ns += ns / 7;
        }
    }

    #[test]
    fn percentiles_match_the_requests() {
        let counts = SparseHistogram::from_sparse([(bucket_index(100_000), 98), (bucket_index(5_000_000), 2)]);
        assert!(percentile_us(&counts, 0.5).is_some_and(|us| (75.0..125.0).contains(&us)));
        assert!(percentile_us(&counts, 0.99).is_some_and(|us| (3800.0..6300.0).contains(&us)));
        assert_eq!(percentile_us(&SparseHistogram::default(), 0.99), None);
        let hour = SparseHistogram::from_sparse([(bucket_index(3_600_000_000_000), 1)]);
        let us = percentile_us(&hour, 0.99).unwrap();
        assert!(is_beyond_buckets(us) && us < 6.5e6, "{us}");
        let before_last = SparseHistogram::from_sparse([(bucket_index(6_000_000_000), 1)]);
        assert!(!is_beyond_buckets(percentile_us(&before_last, 0.99).unwrap()));
    }

    const SDA: DevId = DevId { major: 8, minor: 0 };
    const SDB: DevId = DevId { major: 8, minor: 16 };
    const DM: DevId = DevId { major: 253, minor: 0 };

    fn account(pid: u32, dev: DevId, kind: AccountKind, requests: u64) -> IoAccount {
        let times = SparseHistogram::from_sparse([(12, requests as u32)]);
        IoAccount {
            key: AccountKey { pid, device: dev, cgroup_id: 7, kind, is_stacked: dev == DM },
            requests,
            bytes: requests * 4096,
            total_ns: requests * 200_000,
            histogram: times,
        }
    }

    fn raw(mut accounts: Vec<IoAccount>) -> IoAccountsRaw {
        accounts.sort_by_key(|a| a.key);
        let names = vec![(3, "dd".into()), (9, "idle".into())];
        IoAccountsRaw { accounts, names, cgroups: vec![(7, "/a".into())], ..IoAccountsRaw::default() }
    }

    #[test]
    fn rates_cover_the_interval_and_add_up_by_device_and_cgroup() {
        let before = raw(vec![account(3, SDA, AccountKind::Read, 100), account(9, SDA, AccountKind::Read, 5)]);
        let now = raw(vec![
            account(3, SDA, AccountKind::Read, 140),
            account(3, SDB, AccountKind::Write, 60),
            account(3, SDB, AccountKind::Writeback, 50),
            account(3, SDB, AccountKind::OwnWriteback, 10),
            account(3, DM, AccountKind::Write, 40),
            account(5, SDB, AccountKind::Flush, 2),
            account(6, SDB, AccountKind::Discard, 8),
            account(9, SDA, AccountKind::Read, 5),
        ]);
        let attribution = IoAttribution::derive(Some(&before), &now, 2.0);
        assert_eq!(attribution.processes.iter().map(|t| t.owner).collect::<Vec<_>>(), [3, 5, 6], "9 did nothing");
        let dd = attribution.process(3).unwrap();
        assert_eq!((dd.total.iops(), dd.total.mean_us), (50.0, Some(200.0)));
        let on_sdb = dd.on_device(SDB).unwrap();
        assert_eq!((on_sdb.writeback_bytes_per_s, on_sdb.own_writeback_bytes_per_s), (30.0 * 4096.0, 5.0 * 4096.0));
        assert_eq!(on_sdb.own_writebacks_per_s, 5.0);
        assert!((on_sdb.writeback_in_flight - 25.0 * 200e-6).abs() < 1e-12, "not those of its own requests");
        assert_eq!(dd.on_device(SDA).map(|f| (f.reads_per_s, f.writes_per_s)), Some((20.0, 0.0)));
        assert_eq!((attribution.process_name(3).map(|n| &**n), attribution.process_name(9)), (Some("dd"), None));
        let group = attribution.cgroup("/a").unwrap();
        assert_eq!((group.total.iops(), group.total.flushes_per_s), (50.0, 1.0));
        let flushes = attribution.process(5).unwrap().total;
        assert_eq!((flushes.mean_us, flushes.p99_us), (None, None), "a flush is no read or write");
        assert!((flushes.flushes_in_flight - 2.0 * 200e-6 / 2.0).abs() < 1e-12, "{flushes:?}");
        let discards = attribution.process(6).unwrap().total;
        assert_eq!((discards.discards_per_s, discards.discard_bytes_per_s), (4.0, 4.0 * 4096.0));
        assert!((discards.discards_in_flight - 4.0 * 200e-6).abs() < 1e-12, "{discards:?}");
        assert_eq!((discards.iops(), discards.writes_in_flight), (0.0, 0.0), "a discard is no write");
        assert_eq!(now.written_back_bytes(3, None), 60 * 4096);
        assert_eq!(now.written_back_bytes(3, Some(SDA)), 0);
        assert_eq!(dd.on_device(DM).map(|io| io.writes_per_s), Some(20.0), "and not once more in the total");
    }

    #[test]
    fn io_of_no_process_is_unattributed() {
        let kinds = [AccountKind::Writeback, AccountKind::SwapOut, AccountKind::Metadata];
        let now = raw(kinds.into_iter().zip(1..).map(|(kind, n)| account(0, SDA, kind, n)).collect());
        let attribution = IoAttribution::derive(None, &now, 1.0);
        assert!(attribution.processes.is_empty());
        let [unknown, swapped, metadata] = [4096.0, 8192.0, 12288.0];
        assert_eq!(attribution.unattributed, [(SDA, UnattributedIo { unknown, swap: swapped, metadata })]);
    }

    #[test]
    fn a_restarted_account_counts_from_zero() {
        let before = raw(vec![account(3, SDA, AccountKind::Read, 100)]);
        let now = raw(vec![account(3, SDA, AccountKind::Read, 4)]);
        let attribution = IoAttribution::derive(Some(&before), &now, 1.0);
        assert_eq!(attribution.process(3).unwrap().total.reads_per_s, 4.0);
    }
}
