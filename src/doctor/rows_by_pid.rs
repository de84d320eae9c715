//! Finds tasks by number. The rules look up each process with I/O on a device several times a tick, and there may be tens of
//! thousands of tasks.

use crate::model::process::{ProcessRow, ProcessTable};
use std::cell::OnceCell;
use std::collections::HashMap;

/// Index of each row by the number of its task; empty until it is asked for.
#[derive(Default)]
pub(super) struct RowsByPid(OnceCell<HashMap<u32, u32>>);

impl RowsByPid {
    /// The row in `table`, which has to be the same in all calls.
    pub(super) fn find<'a>(&self, table: &'a ProcessTable, pid: u32) -> Option<ProcessRow<'a>> {
        let index = || {
            let mut out = HashMap::new();
            for (at, row) in (0..).zip(table.iter()) {
                // Of two rows the first one counts, as in the table.
                out.entry(row.tid()).or_insert(at);
            }
            out
        };
        self.0.get_or_init(index).get(&pid).map(|at| table.row(*at))
    }
}
