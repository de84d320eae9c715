//! Copies of the table: some rows for the history, all of it for a recording.

use super::stored_row::AccumulatedCounters;
use super::table::ProcessTable;
use super::update::{ProcessUpdate, TaskChange};

impl ProcessTable {
    /// A table of these rows, in this order.
    pub(crate) fn copy_rows(&self, rows: &[u32]) -> Self {
        let mut out = Self::new();
        (out.rows_are_threads, out.time) = (self.rows_are_threads, self.time);
        out.stall_percentages = self.stall_percentages.clone();
        out.io_attribution.current = self.io_attribution.current.clone();
        out.container_names = self.container_names.clone();
        for at in rows {
            let mut row = self.rows[*at as usize].clone();
            if let Some(rates) = self.rates.get(row.rates_slot as usize) {
                row.rates_slot = out.rates.len() as u32;
                out.rates.push(*rates);
            }
            out.wait_channels.extend(self.wait_channel(&row).map(|wait| (row.raw.key, wait.clone())));
            out.users.extend(row.raw.uid.zip(self.user_name(&row).cloned()));
            out.rows.push(row);
        }
        out
    }

    /// Bytes that the rows of a copy need, estimated.
    pub(crate) fn heap_bytes(&self) -> usize {
        let accumulated = self.rows.iter().filter(|row| row.accumulated.is_some()).count();
        let accumulated = accumulated * size_of::<AccumulatedCounters>();
        size_of_val(&*self.rows) + size_of_val(&*self.rates) + accumulated
    }

    /// The whole table as one update with `reset`, for a recording that begins.
    pub fn full_update(&self) -> ProcessUpdate {
        let rows = || self.rows.iter().filter(|row| !row.exited);
        ProcessUpdate {
            seq: 1,
            time: self.time,
            rows_are_threads: self.rows_are_threads,
            reset: true,
            changed: rows()
                .map(|row| TaskChange { raw: row.raw, scanned_ns: row.state_since_ns, previous_scan_ns: 0 })
                .collect(),
            names: rows().filter_map(|row| Some((row.raw.key, row.names.clone()?))).collect(),
            users: self.users(),
            wait_channels: rows().filter_map(|row| Some((row.raw.key, self.wait_channel(row)?.clone()))).collect(),
            total: rows().count(),
            hidden_count: self.hidden_count,
            blocked: self.blocked_tasks.clone(),
            delays: self.delay_accounting.clone(),
            ..ProcessUpdate::default()
        }
    }
}
