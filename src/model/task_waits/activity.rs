//! Turns two readings of the accounts into waits of an interval.

use super::{TaskWaitsRaw, WaitAccount, WaitKey};
use crate::model::file_io::FileName;
use crate::model::memory_stalls::StallCounter;
use crate::model::process::TaskKey;
use std::sync::Arc;

/// Most rows in a tick; the others are counted.
const MAX_ROWS: usize = 1000;

/// Waits of a process in an interval, of one reason, file, device and holder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitRate {
    /// What is waited for.
    pub key: WaitKey,
    /// The file, without a path if that is unknown; the default one without a file.
    pub file: Arc<FileName>,
    /// Waits that ended in the interval, and those that have not ended.
    pub count: u64,
    /// Time of the interval spent in them, in seconds. Threads are added up; what a wait lasted before the interval is not
    /// in it.
    pub secs: f64,
    /// The longest of them in milliseconds, from its beginning.
    pub longest_ms: f64,
}

/// All waits of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskWaits {
    /// Most time first.
    pub rows: Vec<WaitRate>,
    /// Rows with less time that are not listed.
    pub hidden_rows: usize,
    /// Length of the interval that tracing covered, in seconds.
    pub covered_secs: f64,
    /// Names of the processes and of the holders, by process id.
    pub processes: Vec<(u32, Arc<str>)>,
    /// Waits that could not be followed.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

impl TaskWaits {
    /// Waits between two readings; without `before`, since tracing began.
    pub fn derive(before: Option<&TaskWaitsRaw>, now: &TaskWaitsRaw) -> Self {
        // Counters of another tracing are not comparable.
        let before = before.filter(|b| b.tracing_started_ns == now.tracing_started_ns);
        let covered_ns = now.read_ns.saturating_sub(before.map_or(now.tracing_started_ns, |b| b.read_ns));
        let old = before.map(|b| b.accounts.as_slice()).unwrap_or_default();
        let find = |key: &WaitKey| old.binary_search_by(|account| account.key.cmp(key)).ok().map(|at| old[at].waits);
        let rate = |account: &WaitAccount| rate(account, find(&account.key).unwrap_or_default(), now);
        let mut rows: Vec<WaitRate> = now.accounts.iter().filter_map(rate).collect();
        rows.sort_by(|a, b| b.secs.total_cmp(&a.secs).then_with(|| a.key.cmp(&b.key)));
        let hidden_rows = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        Self {
            rows,
            hidden_rows,
            covered_secs: covered_ns as f64 / 1e9,
            processes: now.processes.clone(),
            dropped: now.dropped.saturating_sub(before.map_or(0, |b| b.dropped)),
            unavailable: now.unavailable.clone(),
        }
    }

    /// Waits of a process, most time first.
    pub fn of_process(&self, task: TaskKey) -> impl Iterator<Item = &WaitRate> {
        self.rows.iter().filter(move |row| row.key.pid == task.pid && row.key.starttime == task.starttime)
    }

    /// Name of a process, sanitized; of a holder that of its thread.
    pub fn process_name(&self, pid: u32) -> Option<&str> {
        self.processes.binary_search_by_key(&pid, |p| p.0).ok().map(|at| &*self.processes[at].1)
    }

    /// Share of the time that tracing covered, in percent; over 100 with several threads.
    pub fn percent(&self, row: &WaitRate) -> f64 {
        100.0 * row.secs / self.covered_secs.max(1e-9)
    }

    /// Estimated size in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.rows) + size_of_val(&*self.processes)
    }
}

/// `None` without any wait.
fn rate(account: &WaitAccount, before: StallCounter, now: &TaskWaitsRaw) -> Option<WaitRate> {
    let waits = account.waits;
    // A counter that decreased was restarted.
    let before = if before.total_ns > waits.total_ns { StallCounter::default() } else { before };
    let ns = waits.total_ns - before.total_ns;
    if ns == 0 {
        return None;
    }
    let id = account.key.file;
    let file = now.files.binary_search_by_key(&id, |file| file.id).ok().map(|at| now.files[at].clone());
    let unnamed = || Arc::new(FileName { id, ..FileName::default() });
    Some(WaitRate {
        key: account.key.clone(),
        file: file.unwrap_or_else(unnamed),
        // One that goes on counted before.
        count: waits.count.saturating_sub(before.count).max(1),
        secs: ns as f64 / 1e9,
        longest_ms: waits.max_ns as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::super::WaitReason;
    use super::*;

    fn account(pid: u32, reason: WaitReason, count: u64, ms: u64, longest_ms: u64) -> WaitAccount {
        let waits = StallCounter { count, total_ns: ms * 1_000_000, max_ns: longest_ms * 1_000_000 };
        WaitAccount { key: WaitKey { pid, starttime: 7, reason, ..WaitKey::default() }, waits }
    }

    fn raw(read_ms: u64, accounts: Vec<WaitAccount>) -> TaskWaitsRaw {
        let ns = |ms: u64| ms * 1_000_000;
        TaskWaitsRaw { tracing_started_ns: ns(1000), read_ns: ns(read_ms), accounts, ..TaskWaitsRaw::default() }
    }

    #[test]
    fn waits_count_within_the_interval_only() {
        let before =
            raw(3000, vec![account(1, WaitReason::Read, 4, 500, 9), account(2, WaitReason::Sync, 1, 1500, 1500)]);
        let now = raw(5000, vec![account(1, WaitReason::Read, 4, 500, 0), account(2, WaitReason::Sync, 1, 3500, 3500)]);
        let waits = TaskWaits::derive(Some(&before), &now);
        let task = TaskKey { pid: 2, tid: 2, starttime: 7 };
        let rows: Vec<&WaitRate> = waits.of_process(task).collect();
        assert_eq!((waits.rows.len(), rows.len()), (1, 1), "the other did not wait");
        assert_eq!((rows[0].count, rows[0].secs, rows[0].longest_ms), (1, 2.0, 3500.0));
        assert_eq!(waits.percent(rows[0]), 100.0);
    }

    #[test]
    fn the_first_interval_is_what_tracing_covered() {
        let waits = TaskWaits::derive(None, &raw(1500, vec![account(1, WaitReason::Read, 2, 250, 200)]));
        assert_eq!((waits.covered_secs, waits.percent(&waits.rows[0])), (0.5, 50.0));
    }

    #[test]
    fn another_tracing_starts_anew() {
        let mut before = raw(3000, vec![account(1, WaitReason::Read, 2, 250, 200)]);
        before.tracing_started_ns = 5;
        let waits = TaskWaits::derive(Some(&before), &raw(4000, vec![account(1, WaitReason::Read, 3, 300, 200)]));
        assert_eq!((waits.covered_secs, waits.rows[0].secs, waits.rows[0].count), (3.0, 0.3, 3));
    }
}
