//! I/O that tracing attributes to rows: requests at the devices and writeback. Restores rows of exited processes while
//! their dirty pages are being written.

use super::stored_row::{NO_SLOT, StoredRow};
use super::task::{TaskKey, TaskNames, TaskRaw};
use crate::model::io_accounting::{IoAttribution, IoRates};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of rows of exited processes that are stored.
const MAX_EXITED_ROWS: usize = 256;

/// Attributed I/O, and rows of exited processes with dirty pages.
#[derive(Debug, Default)]
pub(super) struct ProcessIoAttribution {
    pub current: Option<Arc<IoAttribution>>,
    /// Rows of exited processes, newest first.
    exited_rows: VecDeque<StoredRow>,
}

impl ProcessIoAttribution {
    /// Rates of a process, 0 without I/O; `None` if nothing is traced.
    pub(super) fn rates_of(&self, pid: u32) -> Option<IoRates> {
        Some(self.current.as_ref()?.process(pid).map(|t| t.total).unwrap_or_default())
    }

    /// The processes with I/O.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.current.iter().flat_map(|c| c.processes.iter().map(|p| p.owner))
    }

    /// Whether a process had any I/O, or pages of it were written back.
    pub(super) fn has_io(&self, pid: u32) -> bool {
        self.current.as_ref().is_some_and(|c| c.process(pid).is_some())
    }

    /// Stores the row of an exited process if pages of it may still be written.
    pub(super) fn keep_exited(&mut self, row: StoredRow) {
        if self.current.is_none() || row.raw.io.bytes().is_some_and(|b| b.write == 0) {
            return;
        }
        self.exited_rows.truncate(MAX_EXITED_ROWS - 1);
        self.exited_rows.push_front(row);
    }

    /// The row of an exited process: the stored one, or one made from its name alone.
    pub(super) fn take_exited(&mut self, pid: u32, at_ns: u64) -> StoredRow {
        let known =
            self.exited_rows.iter().position(|r| r.raw.key.pid == pid).and_then(|at| self.exited_rows.remove(at));
        let row = known.unwrap_or_else(|| {
            let name = self.current.as_ref().and_then(|c| c.process_name(pid)).map(|n| &**n).unwrap_or("?");
            row_from_name(pid, name, at_ns)
        });
        let raw = TaskRaw { state: b'X', rss_bytes: 0, swap_bytes: None, ..row.raw };
        StoredRow { raw, rates_slot: NO_SLOT, accumulated: None, exited: true, blocked: false, ..row }
    }
}

/// A row of a process of which only the name is known.
fn row_from_name(pid: u32, name: &str, at_ns: u64) -> StoredRow {
    let mut raw = TaskRaw { key: TaskKey { pid, tid: pid, starttime: 0 }, num_threads: 1, ..TaskRaw::default() };
    let len = name.len().min(15);
    raw.comm[..len].copy_from_slice(&name.as_bytes()[..len]);
    let names = TaskNames { cmdline: Some(name.as_bytes().into()), ..TaskNames::default() };
    StoredRow { names: Some(Arc::new(names)), exited: true, ..StoredRow::new(raw, at_ns) }
}
