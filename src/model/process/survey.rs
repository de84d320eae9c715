//! The rows as they are, for whoever looks at all of them at every tick: no text is made, nothing allocated.

use super::table::ProcTable;
use super::task::{TaskKey, TaskRaw};

/// What a row did in the last interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// Position for [`ProcTable::row`].
    pub at: u32,
    /// Who.
    pub key: TaskKey,
    /// Bytes read from storage per second; `None`: not known.
    pub read: Option<f64>,
    /// Bytes dirtied per second.
    pub write: Option<f64>,
    /// Page faults that needed I/O, per second.
    pub major_faults: Option<f64>,
}

impl Moved {
    /// Bytes per second either way.
    pub fn bytes_per_s(&self) -> f64 {
        self.read.unwrap_or(0.0) + self.write.unwrap_or(0.0)
    }
}

impl ProcTable {
    /// Every row that has not ended, with its position.
    pub fn raws(&self) -> impl Iterator<Item = (u32, &TaskRaw)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| !row.exited);
        rows.map(|(at, row)| (at as u32, &row.raw))
    }

    /// The command line of the row at a position, its arguments separated by blanks.
    pub fn cmdline(&self, at: u32) -> Option<&[u8]> {
        self.rows.get(at as usize)?.names.as_ref()?.cmdline.as_deref()
    }

    /// The rows that changed in the last interval: only those can have rates.
    pub fn moved(&self) -> impl Iterator<Item = Moved> + '_ {
        self.rates.iter().filter_map(|r| {
            let row = self.rows.get(r.row as usize)?;
            Some(Moved {
                at: r.row,
                key: row.raw.key,
                read: r.read,
                write: r.write,
                major_faults: r.major_faults,
            })
        })
    }
}
