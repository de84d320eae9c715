//! A task as it was at an earlier tick, kept for stepping back.

use super::row::ProcRow;
use super::table::{Acc, ProcTable, Rates, Row};
use super::update::{Change, ProcUpdate};
use std::sync::Arc;

/// One row, independent of the table it came from.
#[derive(Debug, Clone)]
pub struct PastTask {
    row: Row,
    rates: Rates,
    acc: Acc,
    wait: Option<Arc<str>>,
    user: Option<Arc<str>>,
}

impl PastTask {
    /// The row as it was.
    pub fn view(&self) -> ProcRow<'_> {
        ProcRow::new(&self.row, self.rates, Some(&self.acc), self.wait.as_ref(), self.user.as_ref())
    }
}

impl ProcTable {
    /// Who stands at a position that [`ProcTable::window`] gave.
    pub fn key_at(&self, at: u32) -> super::TaskKey {
        self.rows[at as usize].raw.key
    }

    /// The process of that number.
    pub fn find_pid(&self, pid: u32) -> Option<ProcRow<'_>> {
        let at = self.rows.iter().position(|r| r.raw.key.tid == pid)?;
        Some(self.row(at as u32))
    }

    /// Tasks in state D now, in no particular order.
    /// With each, how often it was given a CPU: one that runs in between is not stuck.
    pub fn in_uninterruptible_sleep(&self) -> impl Iterator<Item = (ProcRow<'_>, u64)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.raw.state == b'D' && !row.exited);
        rows.map(|(at, row)| (self.row(at as u32), row.raw.runs))
    }

    /// The whole table as one look that tells everything: for a listener who knows nothing.
    pub fn told_anew(&self) -> ProcUpdate {
        let rows = || self.rows.iter().filter(|row| !row.exited);
        ProcUpdate {
            seq: 1,
            at: self.at(),
            prev: None,
            took_ns: 0,
            threads: self.threads(),
            reset: true,
            changed: rows()
                .map(|row| Change { raw: row.raw, at_ns: row.state_since_ns, since_ns: 0 })
                .collect(),
            gone: Vec::new(),
            names: rows().filter_map(|row| Some((row.raw.key, row.names.clone()?))).collect(),
            users: self.users(),
            waits: rows().filter_map(|row| Some((row.raw.key, self.wait_of(row)?.clone()))).collect(),
            total: rows().count(),
            hidden: self.hidden(),
            blocked: self.blocked().to_vec(),
            delays: self.delays().clone(),
            notes: Vec::new(),
        }
    }

    /// The row at a position that [`ProcTable::window`] gave, to keep.
    pub fn past(&self, at: u32) -> PastTask {
        let row = &self.rows[at as usize];
        PastTask {
            row: row.clone(),
            rates: self.rates_of(row),
            acc: self.acc_of(row),
            wait: self.wait_of(row).cloned(),
            user: self.user_of(row).cloned(),
        }
    }
}
