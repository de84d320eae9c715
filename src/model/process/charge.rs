//! What tracing says of the rows: their requests at the devices and the pages written back for them, and rows for
//! processes that have ended while their pages had not been written yet.

use super::row::ProcRow;
use super::table::{NONE, ProcTable, Row};
use super::task::{IoRaw, TaskKey, TaskRaw};
use crate::model::charge::{Charged, Figures};
use crate::model::process::Names;
use std::collections::VecDeque;
use std::sync::Arc;

/// Ended processes that are remembered because they have dirtied pages.
const REMEMBERED: usize = 256;

/// What the table knows of it.
#[derive(Debug, Default)]
pub(super) struct Charges {
    now: Option<Arc<Charged>>,
    /// Rows of processes that ended, the last one first.
    ended: VecDeque<Row>,
}

impl Charges {
    /// Of a process; `None` where nothing is traced, nothing done is 0.
    pub fn of(&self, pid: u32) -> Option<Figures> {
        Some(self.now.as_ref()?.task(pid).map(|t| t.total).unwrap_or_default())
    }

    /// Whether a process did anything at a device, or had it done.
    pub fn acted(&self, pid: u32) -> bool {
        self.now.as_ref().is_some_and(|c| c.task(pid).is_some())
    }

    /// Keeps the row of a process that goes, if pages of it may still be written.
    pub fn remember(&mut self, row: Row) {
        if self.now.is_none() || row.raw.io.bytes().is_some_and(|b| b.write == 0) {
            return;
        }
        self.ended.truncate(REMEMBERED - 1);
        self.ended.push_front(row);
    }

    /// The row of a process that has ended, as it was, or from its name alone.
    fn back(&mut self, pid: u32, at_ns: u64) -> Row {
        let known = self.ended.iter().position(|r| r.raw.key.pid == pid).and_then(|at| self.ended.remove(at));
        let row = known.unwrap_or_else(|| {
            let name = self.now.as_ref().and_then(|c| c.name(pid)).map(|n| &**n).unwrap_or("?");
            nameless(pid, name, at_ns)
        });
        let raw = TaskRaw { state: b'X', rss_bytes: 0, swap_bytes: None, ..row.raw };
        Row { raw, rates: NONE, acc: NONE, exited: true, blocked: false, ..row }
    }
}

/// A process of which nothing is known but its name.
fn nameless(pid: u32, name: &str, at_ns: u64) -> Row {
    let mut comm = [0; 16];
    let len = name.len().min(15);
    comm[..len].copy_from_slice(&name.as_bytes()[..len]);
    let key = TaskKey { pid, tid: pid, starttime: 0 };
    let raw = TaskRaw {
        key,
        comm,
        state: b'X',
        kernel_thread: false,
        ioprio: None,
        ppid: 0,
        uid: None,
        num_threads: 1,
        majflt: 0,
        cpu_ticks: 0,
        runs: 0,
        rss_bytes: 0,
        swap_bytes: None,
        io: IoRaw::Absent,
        delays: None,
    };
    let names = Names { cmdline: Some(name.as_bytes().into()), ..Names::default() };
    Row {
        raw,
        names: Some(Arc::new(names)),
        state_since_ns: at_ns,
        rates: NONE,
        acc: NONE,
        exited: true,
        blocked: false,
    }
}

impl ProcTable {
    /// Takes in what tracing says of the interval; `None`: nothing is traced.
    pub fn charge(&mut self, charged: Option<Arc<Charged>>) {
        self.charges.now = charged;
    }

    /// Why a row of a process that has ended is still to be told of: its pages are being written.
    pub fn ended_but_acting(&self, row: &ProcRow<'_>) -> bool {
        row.exited && self.charges.acted(row.pid)
    }

    /// Brings rows back of processes that have ended but had something done for them.
    pub(super) fn revive(&mut self) {
        let Some(charged) = self.charges.now.clone().filter(|_| !self.threads()) else { return };
        let mut seen = vec![false; charged.tasks.len()];
        for row in self.rows.iter().filter(|_| !charged.tasks.is_empty()) {
            if let Ok(at) = charged.tasks.binary_search_by_key(&row.raw.key.pid, |t| t.who) {
                seen[at] = true;
            }
        }
        let now = self.at().boot_ns;
        for (task, _) in charged.tasks.iter().zip(seen).filter(|(_, seen)| !seen) {
            let row = self.charges.back(task.who, now);
            self.push_ended(row);
        }
    }
}
