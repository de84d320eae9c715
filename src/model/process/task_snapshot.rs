//! A task as it was at an earlier tick, for stepping back through the history.

use super::row::{AccumulatedCounters, ProcessRow, StoredRow, TaskRates};
use super::table::ProcessTable;
use super::update::{ProcessUpdate, TaskChange};
use std::sync::Arc;

/// One row, independent of its table.
#[derive(Debug, Clone)]
pub struct TaskSnapshot {
    row: StoredRow,
    rates: TaskRates,
    accumulated: AccumulatedCounters,
    wait_channel: Option<Arc<str>>,
    user: Option<Arc<str>>,
}

impl TaskSnapshot {
    /// The row.
    pub fn row(&self) -> ProcessRow<'_> {
        ProcessRow::new(&self.row, self.rates, self.accumulated)
            .with_names(self.wait_channel.as_ref(), self.user.as_ref())
    }
}

impl ProcessTable {
    /// The key of the row at an index from [`ProcessTable::window`].
    pub fn key_at(&self, at: u32) -> super::TaskKey {
        self.rows[at as usize].raw.key
    }

    /// The task with this id.
    pub fn find_by_pid(&self, pid: u32) -> Option<ProcessRow<'_>> {
        let at = self.rows.iter().position(|r| r.raw.key.tid == pid)?;
        Some(self.row(at as u32))
    }

    /// Tasks in D state, in no particular order, each with its number of timeslices: a task that runs in between is not
    /// hung.
    pub fn tasks_in_d_state(&self) -> impl Iterator<Item = (ProcessRow<'_>, u64)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.raw.state == b'D' && !row.exited);
        rows.map(|(at, row)| (self.row(at as u32), row.raw.timeslices))
    }

    /// The whole table as one update with `reset`, for a recording that begins.
    pub fn full_update(&self) -> ProcessUpdate {
        let rows = || self.rows.iter().filter(|row| !row.exited);
        ProcessUpdate {
            seq: 1,
            time: self.time(),
            previous_time: None,
            duration_ns: 0,
            rows_are_threads: self.rows_are_threads(),
            reset: true,
            changed: rows()
                .map(|row| TaskChange { raw: row.raw, scanned_ns: row.state_since_ns, previous_scan_ns: 0 })
                .collect(),
            exited: Vec::new(),
            names: rows().filter_map(|row| Some((row.raw.key, row.names.clone()?))).collect(),
            users: self.users(),
            wait_channels: rows().filter_map(|row| Some((row.raw.key, self.wait_channel(row)?.clone()))).collect(),
            total: rows().count(),
            hidden_count: self.hidden_count(),
            blocked: self.blocked_tasks().to_vec(),
            delays: self.delay_accounting().clone(),
            notes: Vec::new(),
        }
    }

    /// A copy of the row at an index from [`ProcessTable::window`].
    pub fn task_snapshot(&self, at: u32) -> TaskSnapshot {
        let row = &self.rows[at as usize];
        TaskSnapshot {
            row: row.clone(),
            rates: self.rates_of(row),
            accumulated: self.accumulated_of(row),
            wait_channel: self.wait_channel(row).cloned(),
            user: self.user_name(row).cloned(),
        }
    }
}
