//! Two readings of the accounts become rates: for each process and each control group, in all and by device.

use super::times::percentile_us;
use super::{Account, ChargeRaw, Key, Kind};
use crate::model::disk::DevId;
use crate::model::latency::Counts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was done in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Reads completed per second.
    pub reads_per_s: f64,
    /// Writes completed per second.
    pub writes_per_s: f64,
    /// Flushes completed per second.
    pub flushes_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes of the writes submitted, per second.
    pub write_bytes_per_s: f64,
    /// Mean time of reads and writes from allocation to completion, in microseconds; `None`: none was completed.
    pub mean_us: Option<f64>,
    /// 99 % of them took no longer; at most 25 % off.
    pub p99_us: Option<f64>,
    /// Bytes of page cache written back per second that it had dirtied, whoever submitted them.
    pub writeback_bytes_per_s: f64,
}

impl Figures {
    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.reads_per_s + self.writes_per_s
    }
}

/// On one device.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDevice {
    /// Which, whole.
    pub id: DevId,
    /// What was done there.
    pub figures: Figures,
}

/// What one process or one control group did.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge<W> {
    /// Who.
    pub who: W,
    /// On all devices.
    pub total: Figures,
    /// On each.
    pub devices: Vec<OnDevice>,
}

impl<W> Charge<W> {
    /// On that device.
    pub fn on(&self, id: DevId) -> Option<&Figures> {
        self.devices.iter().find(|d| d.id == id).map(|d| &d.figures)
    }
}

/// Pages written to a device that are charged to no process, bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Apart {
    /// Page cache that was dirtied before tracing began, or whose dirtier was forgotten.
    pub unknown: f64,
    /// Swapped out.
    pub swapped: f64,
    /// Metadata of a file system.
    pub metadata: f64,
}

/// All that was done in an interval. Who did nothing is not in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Charged {
    /// By process id.
    pub tasks: Vec<Charge<u32>>,
    /// Names of those, by process id, cleaned: of processes that nobody else knows (any more).
    pub names: Vec<(u32, Arc<str>)>,
    /// By path, cleaned; `group 123` where it is not known.
    pub groups: Vec<Charge<Arc<str>>>,
    /// By device.
    pub apart: Vec<(DevId, Apart)>,
    /// Requests that could not be followed in the interval.
    pub lost: u64,
    /// What could not be had, and why.
    pub without: Vec<String>,
}

/// Counts of an interval, before they are rates.
#[derive(Default)]
struct Sum {
    requests: [u64; 4],
    bytes: [u64; 4],
    ns: u64,
    times: BTreeMap<u16, u32>,
}

impl Sum {
    fn add(&mut self, now: &Account, before: Option<&Account>) {
        let at = now.key.kind as usize;
        let (Some(requests), Some(bytes)) = (self.requests.get_mut(at), self.bytes.get_mut(at)) else {
            return;
        };
        let since = |get: fn(&Account) -> u64| get(now).saturating_sub(before.map_or(0, get));
        *requests = requests.saturating_add(since(|a| a.requests));
        *bytes = bytes.saturating_add(since(|a| a.bytes));
        if matches!(now.key.kind, Kind::Read | Kind::Write) {
            self.ns = self.ns.saturating_add(since(|a| a.ns));
            let none = Counts::default();
            for (slot, n) in now.times.since(before.map_or(&none, |b| &b.times)).buckets() {
                let sum = self.times.entry(*slot).or_default();
                *sum = sum.saturating_add(*n);
            }
        }
    }

    fn figures(&self, secs: f64) -> Figures {
        let per_s = |n: u64| n as f64 / secs.max(1e-9);
        let times = Counts::sparse(self.times.iter().map(|(slot, n)| (*slot, *n)));
        let timed = times.samples();
        let [reads, writes, flushes, _] = self.requests;
        let [read, written, _, back] = self.bytes;
        Figures {
            reads_per_s: per_s(reads),
            writes_per_s: per_s(writes),
            flushes_per_s: per_s(flushes),
            read_bytes_per_s: per_s(read),
            write_bytes_per_s: per_s(written),
            mean_us: (timed > 0).then(|| self.ns as f64 / timed as f64 / 1e3),
            p99_us: percentile_us(&times, 0.99),
            writeback_bytes_per_s: per_s(back),
        }
    }
}

/// Sums by who and device, and by who alone.
struct Sums<W>(BTreeMap<W, (Sum, BTreeMap<DevId, Sum>)>);

impl<W: Ord> Sums<W> {
    fn add(&mut self, who: W, now: &Account, before: Option<&Account>) {
        let (total, devices) = self.0.entry(who).or_default();
        total.add(now, before);
        devices.entry(now.key.dev).or_default().add(now, before);
    }

    fn charges(self, secs: f64) -> Vec<Charge<W>> {
        let all = self.0.into_iter().map(|(who, (total, devices))| {
            let on = devices.into_iter().map(|(id, sum)| OnDevice { id, figures: sum.figures(secs) });
            Charge { who, total: total.figures(secs), devices: on.collect() }
        });
        all.collect()
    }
}

impl Charged {
    /// What was done between two readings, `secs` apart; without `before`, since tracing began.
    pub fn derive(before: Option<&ChargeRaw>, now: &ChargeRaw, secs: f64) -> Self {
        let old = before.map(|b| b.accounts.as_slice()).unwrap_or_default();
        let find = |key: &Key| old.binary_search_by_key(key, |a| a.key).ok().map(|at| &old[at]);
        let (mut tasks, mut groups) = (Sums(BTreeMap::new()), Sums(BTreeMap::new()));
        let mut apart: BTreeMap<DevId, Apart> = BTreeMap::new();
        // Where nothing was counted it is the same reading.
        let same = before.is_some_and(|before| std::ptr::eq(before, now));
        for account in now.accounts.iter().filter(|_| !same) {
            // One that has less than before was opened anew.
            let before = find(&account.key).filter(|b| b.requests <= account.requests);
            if before.is_some_and(|b| b.requests == account.requests && b.bytes == account.bytes) {
                continue;
            }
            let key = account.key;
            let bytes = account.bytes.saturating_sub(before.map_or(0, |b| b.bytes)) as f64 / secs.max(1e-9);
            match nobodys(key) {
                Some(part) => *part(apart.entry(key.dev).or_default()) += bytes,
                None => tasks.add(key.pid, account, before),
            }
            if key.group > 0 {
                groups.add(now.group(key.group), account, before);
            }
        }
        let tasks = tasks.charges(secs);
        let acted = |pid: &u32| tasks.binary_search_by_key(pid, |t: &Charge<u32>| t.who).is_ok();
        Self {
            names: now.names.iter().filter(|(pid, _)| acted(pid)).cloned().collect(),
            tasks,
            groups: groups.charges(secs),
            apart: apart.into_iter().collect(),
            lost: now.lost.saturating_sub(before.map_or(0, |b| b.lost)),
            without: now.without.clone(),
        }
    }

    /// What a process did; `None`: nothing.
    pub fn task(&self, pid: u32) -> Option<&Charge<u32>> {
        self.tasks.binary_search_by_key(&pid, |t| t.who).ok().map(|at| &self.tasks[at])
    }

    /// The name a process had when it did it.
    pub fn name(&self, pid: u32) -> Option<&Arc<str>> {
        self.names.binary_search_by_key(&pid, |n| n.0).ok().map(|at| &self.names[at].1)
    }

    /// What a control group did; `None`: nothing.
    pub fn group(&self, path: &str) -> Option<&Charge<Arc<str>>> {
        self.groups.iter().find(|g| &*g.who == path)
    }

    /// Bytes it holds, by estimate.
    pub fn bytes(&self) -> usize {
        fn of<W>(all: &[Charge<W>]) -> usize {
            all.iter().map(|c| size_of::<Charge<W>>() + size_of_val(&*c.devices)).sum()
        }
        size_of::<Self>() + of(&self.tasks) + of(&self.groups) + size_of_val(&*self.names)
    }
}

/// Where an account's bytes go if they are no process's.
fn nobodys(key: Key) -> Option<fn(&mut Apart) -> &mut f64> {
    match key.kind {
        Kind::Swapped => Some(|a| &mut a.swapped),
        Kind::Metadata => Some(|a| &mut a.metadata),
        Kind::Back if key.pid == 0 => Some(|a| &mut a.unknown),
        _ => None,
    }
}

impl ChargeRaw {
    fn group(&self, id: u64) -> Arc<str> {
        let known = self.groups.binary_search_by_key(&id, |g| g.0).ok();
        known.map_or_else(|| format!("group {id}").into(), |at| self.groups[at].1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDA: DevId = DevId { major: 8, minor: 0 };
    const SDB: DevId = DevId { major: 8, minor: 16 };

    fn account(pid: u32, dev: DevId, kind: Kind, requests: u64) -> Account {
        let times = Counts::sparse([(12, requests as u32)]);
        Account {
            key: Key { pid, dev, group: 7, kind },
            requests,
            bytes: requests * 4096,
            ns: requests * 200_000,
            times,
        }
    }

    fn raw(mut accounts: Vec<Account>) -> ChargeRaw {
        accounts.sort_by_key(|a| a.key);
        let names = vec![(3, "dd".into()), (9, "idle".into())];
        ChargeRaw { accounts, names, groups: vec![(7, "/a".into())], ..ChargeRaw::default() }
    }

    #[test]
    fn rates_are_of_the_interval_and_add_up_over_devices_and_in_the_group() {
        let before = raw(vec![account(3, SDA, Kind::Read, 100), account(9, SDA, Kind::Read, 5)]);
        let now = raw(vec![
            account(3, SDA, Kind::Read, 140),
            account(3, SDB, Kind::Write, 60),
            account(3, SDB, Kind::Back, 50),
            account(5, SDB, Kind::Flush, 2),
            account(9, SDA, Kind::Read, 5),
        ]);
        let charged = Charged::derive(Some(&before), &now, 2.0);
        assert_eq!(charged.tasks.iter().map(|t| t.who).collect::<Vec<_>>(), [3, 5], "9 did nothing");
        let dd = charged.task(3).unwrap();
        assert_eq!((dd.total.iops(), dd.total.mean_us), (50.0, Some(200.0)));
        assert_eq!(dd.on(SDB).unwrap().writeback_bytes_per_s, 25.0 * 4096.0);
        assert_eq!(dd.on(SDA).map(|f| (f.reads_per_s, f.writes_per_s)), Some((20.0, 0.0)));
        assert_eq!((charged.name(3).map(|n| &**n), charged.name(9)), (Some("dd"), None));
        let group = charged.group("/a").unwrap();
        assert_eq!((group.total.iops(), group.total.flushes_per_s), (50.0, 1.0));
        let flushes = charged.task(5).unwrap().total;
        assert_eq!((flushes.mean_us, flushes.p99_us), (None, None), "a flush is no read or write");
        assert_eq!(now.written_back(3, None), 50 * 4096);
        assert_eq!(now.written_back(3, Some(SDA)), 0);
    }

    #[test]
    fn what_belongs_to_nobody_is_apart() {
        let kinds = [Kind::Back, Kind::Swapped, Kind::Metadata];
        let now = raw(kinds.into_iter().zip(1..).map(|(kind, n)| account(0, SDA, kind, n)).collect());
        let charged = Charged::derive(None, &now, 1.0);
        assert!(charged.tasks.is_empty());
        let [unknown, swapped, metadata] = [4096.0, 8192.0, 12288.0];
        assert_eq!(charged.apart, [(SDA, Apart { unknown, swapped, metadata })]);
    }

    #[test]
    fn an_account_opened_anew_begins_at_nothing() {
        let before = raw(vec![account(3, SDA, Kind::Read, 100)]);
        let now = raw(vec![account(3, SDA, Kind::Read, 4)]);
        let charged = Charged::derive(Some(&before), &now, 1.0);
        assert_eq!(charged.task(3).unwrap().total.reads_per_s, 4.0);
    }
}
