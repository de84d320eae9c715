//! Turns two readings of the accounts into rates by file and process.

use super::{FileClass, FileId, FileIoAccount, FileIoKey, FileIoRaw, FileName};
use crate::model::coverage::SinceStart;
use crate::model::disk::DevId;
use crate::model::latency::SparseHistogram;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most rows in a tick; the others are counted.
const MAX_ROWS: usize = 1000;

/// I/O in an interval, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FileIoRates {
    /// Requests completed per second.
    pub requests_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean number of requests in flight: the times of the requests completed, per second of the interval.
    pub in_flight: f64,
}

impl std::ops::AddAssign for FileIoRates {
    fn add_assign(&mut self, other: Self) {
        self.requests_per_s += other.requests_per_s;
        self.bytes_per_s += other.bytes_per_s;
        self.in_flight += other.in_flight;
    }
}

/// I/O of a process on a file, or on something that is no file, at a device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileRate {
    /// The whole device.
    pub device: DevId,
    /// What it is for.
    pub class: FileClass,
    /// The file, without a path if that is unknown; the default one for other classes.
    pub file: Arc<FileName>,
    /// The process; 0 if unknown.
    pub pid: u32,
    /// Reads.
    pub reads: FileIoRates,
    /// Writes.
    pub writes: FileIoRates,
    /// Histogram of the times of reads and writes, as in [`FileIoAccount`].
    pub histogram: SparseHistogram,
}

/// All I/O of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileActivity {
    /// By device, class and file.
    pub rows: Vec<FileRate>,
    /// Rows that are not listed because there are too many; those with the fewest bytes.
    pub hidden_rows: usize,
    /// Names of the processes by process id, sanitized.
    pub processes: Vec<(u32, Arc<str>)>,
    /// Seconds that the rates cover: less than the interval if tracing began in it, more if the reading before is missing.
    pub covered_secs: f64,
    /// Requests of the interval that could not be traced, or found no free account.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

type RowKey = (DevId, FileClass, FileId, u32);

impl FileActivity {
    /// Rates between two readings `secs` apart; without `before`, since tracing began.
    pub fn derive(before: Option<&FileIoRaw>, now: &FileIoRaw, secs: f64) -> Self {
        // Counts restart whenever files are requested again.
        let before = before.filter(|b| b.tracing_started_ns == now.tracing_started_ns);
        let secs = if before.is_some() { secs } else { now.since_start(secs).covered_secs() }.max(1e-3);
        let mut rows: BTreeMap<RowKey, FileRate> = BTreeMap::new();
        for account in &now.accounts {
            let old = before.and_then(|raw| raw.find(&account.key));
            if old.is_some_and(|old| (old.requests, old.bytes) == (account.requests, account.bytes)) {
                continue;
            }
            let FileIoKey { device, class, file, pid, is_write } = account.key;
            let row = rows.entry((device, class, file, pid)).or_insert_with(|| FileRate {
                device,
                class,
                file: now.file(file),
                pid,
                ..FileRate::default()
            });
            *(if is_write { &mut row.writes } else { &mut row.reads }) += rates(old, account, secs);
            let none = SparseHistogram::default();
            let times = account.histogram.since(old.map_or(&none, |old| &old.histogram));
            row.histogram = SparseHistogram::sum([&row.histogram, &times]);
        }
        let mut rows: Vec<FileRate> = rows.into_values().collect();
        let hidden_rows = rows.len().saturating_sub(MAX_ROWS);
        if hidden_rows > 0 {
            rows.sort_by(|a, b| b.bytes_per_s().total_cmp(&a.bytes_per_s()));
            rows.truncate(MAX_ROWS);
            rows.sort_by_key(|row| (row.device, row.class, row.file.id, row.pid));
        }
        let has_io = |pid: u32| rows.iter().any(|row| row.pid == pid);
        Self {
            processes: now.processes.iter().filter(|(pid, _)| has_io(*pid)).cloned().collect(),
            rows,
            hidden_rows,
            covered_secs: secs,
            dropped: now.dropped.saturating_sub(before.map_or(0, |b| b.dropped)),
            unavailable: now.unavailable.clone(),
        }
    }

    /// Name of a process; `None` if unknown.
    pub fn process_name(&self, pid: u32) -> Option<&str> {
        self.processes.binary_search_by_key(&pid, |p| p.0).ok().map(|at| &*self.processes[at].1)
    }

    /// Estimated size in bytes. Names are shared with other ticks.
    pub fn heap_bytes(&self) -> usize {
        let row = |row: &FileRate| size_of::<FileRate>() + size_of_val(row.histogram.buckets());
        size_of::<Self>() + size_of_val(&*self.processes) + self.rows.iter().map(row).sum::<usize>()
    }
}

impl FileRate {
    /// Bytes per second, read and written.
    pub fn bytes_per_s(&self) -> f64 {
        self.reads.bytes_per_s + self.writes.bytes_per_s
    }
}

impl FileIoRaw {
    /// What a reading covers that none is earlier than.
    pub(crate) fn since_start(&self, interval_secs: f64) -> SinceStart {
        SinceStart { started_ns: self.tracing_started_ns, read_ns: self.read_ns, interval_secs }
    }

    fn find(&self, key: &FileIoKey) -> Option<&FileIoAccount> {
        self.accounts.binary_search_by_key(key, |a| a.key).ok().map(|at| &self.accounts[at])
    }

    /// A file with its path, or without one.
    fn file(&self, id: FileId) -> Arc<FileName> {
        let known = self.files.binary_search_by_key(&id, |f| f.id).ok().map(|at| self.files[at].clone());
        known.unwrap_or_else(|| Arc::new(FileName { id, ..FileName::default() }))
    }
}

fn rates(before: Option<&FileIoAccount>, now: &FileIoAccount, secs: f64) -> FileIoRates {
    // An account with less than before was removed and opened again.
    let before = before.filter(|b| b.requests <= now.requests && b.bytes <= now.bytes);
    let since = |get: fn(&FileIoAccount) -> u64| get(now).saturating_sub(before.map_or(0, get)) as f64 / secs;
    FileIoRates {
        requests_per_s: since(|a| a.requests),
        bytes_per_s: since(|a| a.bytes),
        in_flight: since(|a| a.total_ns) / 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(pid: u32, is_write: bool, requests: u64) -> FileIoAccount {
        let file = FileId { ino: 7, ..FileId::default() };
        FileIoAccount {
            key: FileIoKey { class: FileClass::File, file, pid, is_write, ..FileIoKey::default() },
            requests,
            bytes: requests * 4096,
            total_ns: requests * 1_000_000,
            histogram: SparseHistogram::from_sparse([(20, requests as u32)]),
        }
    }

    fn reading(secs: u64, accounts: Vec<FileIoAccount>) -> FileIoRaw {
        let file = FileName { id: accounts[0].key.file, path_tail: "a".into(), is_full_path: true };
        FileIoRaw { read_ns: secs * 1_000_000_000, accounts, files: vec![Arc::new(file)], ..FileIoRaw::default() }
    }

    #[test]
    fn rates_are_of_the_interval_and_of_what_changed() {
        let before = reading(10, vec![account(1, false, 100), account(2, true, 50)]);
        let now = reading(12, vec![account(1, false, 300), account(2, true, 50)]);
        let files = FileActivity::derive(Some(&before), &now, 2.0);
        assert_eq!(files.rows.len(), 1, "the other one was idle");
        let row = &files.rows[0];
        assert_eq!((row.pid, row.reads.requests_per_s, row.reads.bytes_per_s), (1, 100.0, 409_600.0));
        assert_eq!((row.reads.in_flight, row.histogram.total()), (0.1, 200));
        assert_eq!(row.file.path_tail.sanitized(), "a");
    }

    #[test]
    fn the_first_rates_are_of_the_time_that_tracing_covers() {
        let now = FileIoRaw { tracing_started_ns: 6_000_000_000, ..reading(10, vec![account(1, true, 400)]) };
        let files = FileActivity::derive(None, &now, 1000.0);
        assert_eq!((files.rows[0].writes.requests_per_s, files.covered_secs), (100.0, 4.0));
        let restarted = FileIoRaw { tracing_started_ns: 5, ..reading(2, vec![account(1, true, 9000)]) };
        let files = FileActivity::derive(Some(&restarted), &now, 8.0);
        assert_eq!(files.rows[0].writes.requests_per_s, 100.0);
        let files = FileActivity::derive(None, &now, 1.0);
        assert_eq!(files.covered_secs, 4.0, "the reading before could not be read");
    }

    #[test]
    fn an_account_that_was_opened_again_counts_from_0() {
        let before = reading(1, vec![account(1, true, 500)]);
        let files = FileActivity::derive(Some(&before), &reading(2, vec![account(1, true, 10)]), 1.0);
        assert_eq!(files.rows[0].writes.requests_per_s, 10.0);
    }
}
