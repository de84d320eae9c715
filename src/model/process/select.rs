//! Which rows a window shows: filter, then pick the window out of the whole by selection instead of
//! sorting 20,000 rows for 40 lines.

use super::table::{ProcTable, Rates, Row};
use crate::model::stalls::{RECLAIM, THROTTLE};
use std::cmp::Ordering;

/// What rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Process id, then thread id.
    Pid,
    /// Thread id.
    Tid,
    /// User name.
    User,
    /// Task name.
    Comm,
    /// Command line.
    Command,
    /// State, D first.
    State,
    /// How long the state lasts already.
    StateSince,
    /// I/O class and level, most favoured first.
    Ionice,
    /// Bytes read and written per second together.
    #[default]
    Io,
    /// Bytes read per second.
    Read,
    /// Bytes written per second.
    Write,
    /// Bytes cancelled per second.
    Cancelled,
    /// Bytes read since the task began.
    ReadTotal,
    /// Bytes written since the task began.
    WriteTotal,
    /// Bytes read since the reset.
    AccRead,
    /// Bytes written since the reset.
    AccWrite,
    /// Bytes read and written since the reset.
    AccIo,
    /// Reads and writes completed at devices per second, by tracing.
    Iops,
    /// What 99 % of them took at most, by tracing.
    IoLatency,
    /// Bytes written back for it per second, by tracing.
    Writeback,
    /// Waiting for block I/O.
    IoDelay,
    /// Waiting for swap.
    SwapinDelay,
    /// Throttled because too many pages are dirty.
    Throttled,
    /// Making room in memory.
    Reclaim,
    /// Swapped-out memory.
    Swap,
    /// Resident memory.
    Rss,
    /// Major faults per second.
    MajorFaults,
    /// Control group.
    Cgroup,
    /// Threads.
    Threads,
}

/// Which rows count at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only rows with traffic, a delay, a major fault or state D in the last interval (iotop -o).
    pub only_active: bool,
    /// Only rows that did something since the counters were reset (iotop -a -o).
    pub only_accumulated: bool,
    /// Leave out kernel threads.
    pub no_kernel_threads: bool,
    /// Only this user (name or number).
    pub user: Option<String>,
    /// Only rows whose pid, name, command line or control group contains this; ASCII case is ignored.
    pub text: Option<String>,
    /// Only the threads of this process.
    pub pid: Option<u32>,
    /// Processes whose threads are folded into their first one, see [`ProcTable::row_folding`].
    pub folded: Vec<u32>,
}

/// What to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Sort by this.
    pub by: Column,
    /// Smallest first instead of largest first (for text: Z first).
    pub reverse: bool,
    /// Which rows.
    pub filter: Filter,
    /// First row of the window.
    pub offset: usize,
    /// Rows in the window.
    pub height: usize,
}

/// The rows of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Positions for [`ProcTable::row`], sorted; valid until the next update.
    pub rows: Vec<u32>,
    /// Rows that passed the filter.
    pub matching: usize,
}

/// Where a row goes: all that most comparisons need, so that they touch no row.
struct Place {
    by: f64,
    /// A kernel thread, pid, tid.
    tie: (bool, u32, u32),
    at: u32,
}

impl Column {
    /// Text decides, not a number.
    fn is_text(self) -> bool {
        matches!(self, Column::User | Column::Comm | Column::Command | Column::Cgroup)
    }

    /// Its first row is the smallest or A, not the largest, unless reversed.
    pub fn starts_small(self) -> bool {
        use Column::{Cgroup, Comm, Command, Ionice, Pid, Tid, User};
        matches!(self, Pid | Tid | User | Comm | Command | Cgroup | Ionice)
    }
}

impl ProcTable {
    /// The rows of a window: linear in the rows, sorting only those shown. Ties go by (pid, tid), so
    /// rows do not jump. What is not known sorts after everything known.
    pub fn window(&self, query: &Query) -> Window {
        let needle = query.filter.text.as_ref().map(|t| t.to_ascii_lowercase().into_bytes());
        let mut keys: Vec<Place> = Vec::with_capacity(self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            if self.passes(row, &query.filter, needle.as_deref()) {
                let key = row.raw.key;
                let tie = (row.raw.kernel_thread, key.pid, key.tid);
                keys.push(Place { by: self.folded_key(row, query), tie, at: at as u32 });
            }
        }
        let matching = keys.len();
        let start = query.offset.min(matching);
        let end = query.offset.saturating_add(query.height).min(matching);
        let order = |a: &Place, b: &Place| self.order(a, b, query);
        if end < matching {
            keys.select_nth_unstable_by(end, order);
            keys.truncate(end);
        }
        if start > 0 && start < keys.len() {
            keys.select_nth_unstable_by(start, order);
        }
        keys.drain(..start);
        keys.sort_unstable_by(order);
        Window { rows: keys.into_iter().map(|place| place.at).collect(), matching }
    }

    fn order(&self, a: &Place, b: &Place, query: &Query) -> Ordering {
        let row = |place: &Place| &self.rows[place.at as usize];
        // Among equals programs come before kernel threads: hundreds of those do nothing, ever. Two of one number:
        // the older one has ended.
        let tie = || a.tie.cmp(&b.tie).then_with(|| row(a).raw.key.starttime.cmp(&row(b).raw.key.starttime));
        // Numbers: larger first. Text: A first. NaN stands for "not known" and is last either way.
        let mut by = match (a.by.is_nan(), b.by.is_nan()) {
            (false, false) => b.by.total_cmp(&a.by),
            (a_nan, b_nan) => return a_nan.cmp(&b_nan).then_with(tie),
        };
        if query.by.is_text() {
            by = by.then_with(|| self.text_order(row(a), row(b), query.by));
        }
        if query.reverse {
            by = by.reverse();
        }
        by.then_with(tie)
    }

    fn text_order(&self, a: &Row, b: &Row, by: Column) -> Ordering {
        match by {
            Column::Comm => a.raw.comm().cmp(b.raw.comm()),
            Column::Command => cmdline(a).cmp(&cmdline(b)),
            Column::User => self.user_of(a).cmp(&self.user_of(b)).then(a.raw.uid.cmp(&b.raw.uid)),
            Column::Cgroup => a.names.as_ref().map(|n| &n.cgroup).cmp(&b.names.as_ref().map(|n| &n.cgroup)),
            _ => Ordering::Equal,
        }
    }

    /// A number that sorts, largest first; NaN for "not known"; 0 where text decides.
    pub(super) fn sort_key(&self, row: &Row, by: Column) -> f64 {
        let known = |n: Option<f64>| n.unwrap_or(f64::NAN);
        let count = |n: Option<u64>| n.map_or(f64::NAN, |n| n as f64);
        let rates = || -> Rates { self.rates_of(row) };
        let bytes = row.raw.io.bytes();
        match by {
            Column::Pid => -(row.raw.key.pid as f64),
            Column::Tid => -(row.raw.key.tid as f64),
            Column::User | Column::Comm | Column::Command | Column::Cgroup => 0.0,
            Column::State => state_rank(row.raw.state),
            Column::StateSince => -(row.state_since_ns as f64),
            Column::Ionice => known(row.raw.ioprio.map(|p| -f64::from(p.class) * 8.0 - f64::from(p.level))),
            Column::Io => known(rates().read.zip(rates().write).map(|(r, w)| r + w)),
            Column::Read => known(rates().read),
            Column::Write => known(rates().write),
            Column::Cancelled => known(rates().cancelled),
            Column::ReadTotal => count(bytes.map(|b| b.read)),
            Column::WriteTotal => count(bytes.map(|b| b.write)),
            Column::AccRead => count(bytes.map(|_| self.acc_of(row).io.read)),
            Column::AccWrite => count(bytes.map(|_| self.acc_of(row).io.write)),
            Column::AccIo => count(bytes.map(|_| self.acc_of(row).io.read + self.acc_of(row).io.write)),
            Column::Iops => known(self.charged_of(row).map(|c| c.iops())),
            Column::IoLatency => known(self.charged_of(row).and_then(|c| c.p99_us)),
            Column::Writeback => known(self.charged_of(row).map(|c| c.writeback_bytes_per_s)),
            Column::IoDelay => known(rates().io_delay_pct),
            Column::SwapinDelay => known(rates().swapin_delay_pct),
            Column::Throttled => known(rates().stalled_pct[THROTTLE]),
            Column::Reclaim => known(rates().stalled_pct[RECLAIM]),
            Column::Swap => count(row.raw.swap_bytes),
            Column::Rss => row.raw.rss_bytes as f64,
            Column::MajorFaults => known(rates().major_faults),
            Column::Threads => row.raw.num_threads as f64,
        }
    }

    fn passes(&self, row: &Row, filter: &Filter, needle: Option<&[u8]>) -> bool {
        let key = row.raw.key;
        if key.tid != key.pid && filter.folded.contains(&key.pid) {
            return false;
        }
        if filter.no_kernel_threads && row.raw.kernel_thread
            || filter.pid.is_some_and(|pid| pid != row.raw.key.pid)
            || filter.only_active && !self.is_active(row)
            || filter.only_accumulated && !self.has_accumulated(row)
        {
            return false;
        }
        if let Some(user) = &filter.user {
            let named = self.user_of(row).is_some_and(|u| **u == **user);
            if !named && row.raw.uid.map(|uid| uid.to_string()).as_ref() != Some(user) {
                return false;
            }
        }
        needle.is_none_or(|needle| contains_text(row, needle))
    }

    fn is_active(&self, row: &Row) -> bool {
        if row.raw.state == b'D' || row.blocked || self.charges.acted(row.raw.key.pid) {
            return true;
        }
        let r = self.rates_of(row);
        [r.read, r.write, r.cancelled, r.io_delay_pct, r.swapin_delay_pct, r.major_faults]
            .into_iter()
            .chain(r.stalled_pct)
            .any(|rate| rate.is_some_and(|rate| rate > 0.0))
    }

    fn has_accumulated(&self, row: &Row) -> bool {
        let acc = self.acc_of(row);
        acc.io.read + acc.io.write + acc.io.cancelled + acc.major_faults + acc.blkio_ns + acc.swapin_ns > 0
    }
}

fn state_rank(state: u8) -> f64 {
    match state {
        b'D' => 9.0,
        b'R' => 8.0,
        b'Z' => 7.0,
        b'T' | b't' => 6.0,
        b'S' => 5.0,
        b'I' => 4.0,
        _ => 1.0,
    }
}

fn cmdline(row: &Row) -> Option<&[u8]> {
    row.names.as_ref()?.cmdline.as_deref()
}

fn contains_text(row: &Row, needle: &[u8]) -> bool {
    let has = |hay: &[u8]| {
        needle.is_empty() || hay.windows(needle.len()).any(|part| part.eq_ignore_ascii_case(needle))
    };
    has(row.raw.comm())
        || cmdline(row).is_some_and(has)
        || row.names.as_ref().is_some_and(|n| has(n.cgroup.as_bytes()))
        || row.raw.key.pid.to_string().as_bytes() == needle
        || row.raw.key.tid.to_string().as_bytes() == needle
}
