//! Cheap iteration over all rows, for the doctor's rules: nothing is formatted or allocated.

use super::table::ProcessTable;
use super::task::{TaskKey, TaskRaw};

/// Activity of a row in the last interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskActivity {
    /// Row index for [`ProcessTable::row`].
    pub row_index: u32,
    /// The task.
    pub key: TaskKey,
    /// Bytes read from storage per second; `None` if unknown.
    pub read: Option<f64>,
    /// Bytes dirtied per second.
    pub write: Option<f64>,
    /// Page faults that needed I/O, per second.
    pub major_faults: Option<f64>,
}

impl TaskActivity {
    /// Bytes read and written per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.read.unwrap_or(0.0) + self.write.unwrap_or(0.0)
    }
}

impl ProcessTable {
    /// Rows of tasks that have not exited, with their index.
    pub fn live_tasks(&self) -> impl Iterator<Item = (u32, &TaskRaw)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| !row.exited);
        rows.map(|(at, row)| (at as u32, &row.raw))
    }

    /// The command line of the row at an index, its arguments separated by blanks.
    pub fn cmdline_at(&self, at: u32) -> Option<&[u8]> {
        self.rows.get(at as usize)?.cmdline()
    }

    /// The rows that changed in the last interval; only those have rates.
    pub fn active_tasks(&self) -> impl Iterator<Item = TaskActivity> + '_ {
        self.rates.iter().filter_map(|r| {
            let row = self.rows.get(r.row as usize)?;
            Some(TaskActivity {
                row_index: r.row,
                key: row.raw.key,
                read: r.read,
                write: r.write,
                major_faults: r.major_faults,
            })
        })
    }
}
