//! Selects the rows of a window: filters, then picks the rows of the window by selection instead of sorting all
//! 20,000 rows for 40 lines.

use super::folded_sums::FoldedSums;
use super::row::ProcessRow;
use super::stored_row::StoredRow;
use super::table::ProcessTable;
use super::task::TaskKey;
use super::tree_position::TreePosition;
use crate::model::columns::process::{ProcessColumn, SortKey};
use crate::model::filter::{FilterCondition, FilterExpression, FilterField, FilterValue};
use std::cmp::Ordering;

/// Conditions that a row must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFilter {
    /// With I/O, a delay, a major fault or D state in the last interval (iotop -o).
    pub only_active: bool,
    /// With activity since the counters were reset (iotop -a -o).
    pub only_accumulated: bool,
    pub hide_kernel_threads: bool,
    /// Of this user (name or number).
    pub user: Option<String>,
    /// Whose pid, name, command line or control group contains this, ASCII case-insensitive, and for which its conditions
    /// hold, such as `state=D`: see [`FilterExpression`].
    pub text: Option<String>,
    /// Threads of this process.
    pub pid: Option<u32>,
    /// Processes whose threads are folded into the main thread, see [`ProcessTable::row_with_sums`].
    pub folded_pids: Vec<u32>,
    /// In the tree, the processes that everything below is folded into.
    pub folded_subtrees: Vec<TaskKey>,
}

/// Selection and order of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessQuery {
    /// Sort key.
    pub sort_by: ProcessColumn,
    /// Smallest first instead of largest first (for text: Z first).
    pub reverse: bool,
    /// Conditions for rows.
    pub filter: ProcessFilter,
    /// Index of the first row in the window.
    pub offset: usize,
    /// Number of rows in the window.
    pub height: usize,
}

/// The rows of a window.
#[derive(Debug, Clone, Default)]
pub struct ProcessWindow {
    /// Row indices for [`ProcessTable::row`], in order; valid until the next update.
    pub rows: Vec<u32>,
    /// Their places in the tree; empty in a flat list.
    pub positions: Vec<TreePosition>,
    /// Number of rows that the whole list has: in the tree without those folded, and with rows above a match.
    pub listed: usize,
    /// Number of rows that pass the filter.
    pub matching: usize,
    /// Number of rows that only [`ProcessFilter::only_active`] omits.
    pub idle: usize,
    /// Sums of the rows that are folded into others.
    pub(crate) sums: FoldedSums,
}

impl ProcessWindow {
    /// The row at an index of `rows`, with the sums of what is folded into it, and its place in the tree.
    pub(crate) fn row<'a>(&'a self, table: &'a ProcessTable, index: usize) -> Option<ProcessRow<'a>> {
        let mut row = table.row_with_sums(*self.rows.get(index)?, &self.sums);
        row.tree = self.positions.get(index).copied();
        Some(row)
    }
}

/// Decides which rows of a table pass a filter.
pub(super) struct Candidates<'a> {
    table: &'a ProcessTable,
    filter: &'a ProcessFilter,
    typed: FilterExpression,
    /// Number of rows so far that only [`ProcessFilter::only_active`] omits.
    pub(super) idle: usize,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(table: &'a ProcessTable, filter: &'a ProcessFilter) -> Self {
        let typed = FilterExpression::parse(filter.text.as_deref().unwrap_or_default());
        Self { table, filter, typed, idle: 0 }
    }

    pub(super) fn is_match(&mut self, at: u32) -> bool {
        let (table, row) = (self.table, &self.table.rows[at as usize]);
        let is_idle = self.filter.only_active && !table.is_active(row);
        let holds = |condition: &FilterCondition| condition.holds(filter_value(&table.row(at), condition.field));
        let matches = table.matches_filter(row, self.filter, self.typed.text.as_bytes())
            && self.typed.conditions.iter().all(holds);
        self.idle += usize::from(is_idle && matches);
        matches && !is_idle
    }
}

/// Enough of a row for comparisons without access to it.
struct SortEntry<'a> {
    key: SortKey<'a>,
    /// Among equal rows, programs come before kernel threads, because most of those never do any I/O. If two rows
    /// have the same id, the older task has exited.
    tie_breaker: (bool, TaskKey),
    row_index: u32,
}

impl ProcessTable {
    /// The rows of a window. Linear in the number of rows; only the rows of the window are sorted. Ties are broken by
    /// (pid, tid), so rows do not jump. Unknown values sort last.
    pub fn window(&self, query: &ProcessQuery) -> ProcessWindow {
        let mut candidates = Candidates::new(self, &query.filter);
        let (column, sums) = (query.sort_by.spec(), self.thread_sums(&query.filter.folded_pids));
        let mut entries: Vec<SortEntry<'_>> = (0..self.rows.len() as u32)
            .filter(|at| candidates.is_match(*at))
            .map(|row_index| {
                let raw = &self.rows[row_index as usize].raw;
                let key = column.sort_key(&self.row_with_sums(row_index, &sums));
                SortEntry { key, tie_breaker: (raw.kernel_thread, raw.key), row_index }
            })
            .collect();
        let matching = entries.len();
        let start = query.offset.min(matching);
        let end = query.offset.saturating_add(query.height).min(matching);
        let order = |a: &SortEntry<'_>, b: &SortEntry<'_>| compare_entries(a, b, query.reverse);
        if end < matching {
            entries.select_nth_unstable_by(end, order);
            entries.truncate(end);
        }
        if start > 0 && start < entries.len() {
            entries.select_nth_unstable_by(start, order);
        }
        entries.drain(..start);
        entries.sort_unstable_by(order);
        let rows = entries.into_iter().map(|entry| entry.row_index).collect();
        let idle = candidates.idle;
        ProcessWindow { rows, listed: matching, matching, idle, sums, ..ProcessWindow::default() }
    }

    /// Whether a row passes the filter, [`ProcessFilter::only_active`] aside.
    fn matches_filter(&self, row: &StoredRow, filter: &ProcessFilter, needle: &[u8]) -> bool {
        let key = row.raw.key;
        if key.tid != key.pid && filter.folded_pids.contains(&key.pid) {
            return false;
        }
        if filter.hide_kernel_threads && row.raw.kernel_thread
            || filter.pid.is_some_and(|pid| pid != row.raw.key.pid)
            || filter.only_accumulated && row.accumulated.is_none()
        {
            return false;
        }
        if let Some(user) = &filter.user {
            let named = self.user_name(row).is_some_and(|u| **u == **user);
            if !named && row.raw.uid.map(|uid| uid.to_string()).as_ref() != Some(user) {
                return false;
            }
        }
        needle.is_empty() || contains_text(row, needle)
    }

    fn is_active(&self, row: &StoredRow) -> bool {
        if row.raw.state == b'D' || row.blocked || self.io_attribution.has_io(row.raw.key.pid) {
            return true;
        }
        let r = self.rates_of(row);
        let stalls = if self.rows_are_threads { [None; 2] } else { self.stall_percentages.of(&row.raw.key) };
        [
            r.read_bytes_per_s,
            r.write_bytes_per_s,
            r.cancelled_bytes_per_s,
            r.io_delay_pct,
            r.swapin_delay_pct,
            r.major_faults_per_s,
        ]
        .into_iter()
        .chain(stalls)
        .any(|rate| rate.is_some_and(|rate| rate > 0.0))
    }
}

fn compare_entries(a: &SortEntry<'_>, b: &SortEntry<'_>, reverse: bool) -> Ordering {
    compare_keys(&a.key, &b.key, reverse).then_with(|| a.tie_breaker.cmp(&b.tie_breaker))
}

/// Numbers: largest first, then text: A first. NaN means "unknown" and comes last either way.
pub(super) fn compare_keys(a: &SortKey<'_>, b: &SortKey<'_>, reverse: bool) -> Ordering {
    let order = match (a.number.is_nan(), b.number.is_nan()) {
        (false, false) => b.number.total_cmp(&a.number).then_with(|| a.text.cmp(&b.text)),
        (a_nan, b_nan) => return a_nan.cmp(&b_nan),
    };
    if reverse { order.reverse() } else { order }
}

/// What a condition on a field compares in this row.
fn filter_value<'a>(row: &'a ProcessRow<'_>, field: FilterField) -> FilterValue<'a> {
    let text = |text: Option<&'a str>| text.map_or(FilterValue::Unknown, FilterValue::Text);
    let number = |n: Option<f64>| n.map_or(FilterValue::Unknown, FilterValue::Number);
    match field {
        FilterField::State => text(std::str::from_utf8(std::slice::from_ref(&row.raw.state)).ok()),
        FilterField::Dev => text(row.main_device_name()),
        FilterField::User => text(row.user_name()),
        FilterField::Cgroup => text(row.cgroup()),
        FilterField::Unit => text(row.unit()),
        FilterField::Container => text(row.container()),
        FilterField::Pod => text(row.known_container().and_then(|known| known.container.pod.as_deref())),
        FilterField::Ns => text(row.known_container().and_then(|known| known.container.namespace.as_deref())),
        FilterField::Pid => FilterValue::Number(row.pid().into()),
        FilterField::Swap => number(row.raw.swap_bytes.map(|n| n as f64)),
        FilterField::Read => number(row.rates().read_bytes_per_s),
        FilterField::Write => number(row.rates().write_bytes_per_s),
    }
}

fn contains_text(row: &StoredRow, needle: &[u8]) -> bool {
    let has = |hay: &[u8]| needle.is_empty() || hay.windows(needle.len()).any(|part| part.eq_ignore_ascii_case(needle));
    has(row.raw.comm())
        || row.cmdline().is_some_and(has)
        || row.names.as_ref().is_some_and(|n| has(n.cgroup.as_bytes()))
        || row.raw.key.pid.to_string().as_bytes() == needle
        || row.raw.key.tid.to_string().as_bytes() == needle
}
