//! The tasks on screen: of the newest scan, or of the frozen tick, which stores only the busiest ones.

use super::ProcessesView;
use crate::model::columns::process::command_text;
use crate::model::process::{ProcessRow, ProcessWindow};
use crate::tui::view::Shared;
use crate::tui::widgets::RowSearch;
use ratatui::layout::Rect;

impl ProcessesView {
    /// Calls `each` with the index on screen and the row of every task there, at most `height`.
    pub fn for_each_visible_task(&self, shared: &Shared, height: usize, mut each: impl FnMut(usize, &ProcessRow<'_>)) {
        if let Some(seq) = shared.frozen_seq {
            let Some(frame) = shared.system.history.nearest(seq) else { return };
            let rows = frame.tasks.iter().skip(self.scroll.offset).take(height);
            return rows.enumerate().for_each(|(n, row)| each(n, &row));
        }
        let folded = shared.system.processes.thread_sums(&self.filter.folded_pids);
        for (n, row) in self.window.rows.iter().take(height).enumerate() {
            each(n, &shared.system.processes.row_with_folded_threads(*row, &folded));
        }
    }

    pub fn matching_task_count(&self, shared: &Shared) -> usize {
        match shared.frozen_seq {
            Some(seq) => shared.system.history.nearest(seq).map_or(0, |frame| frame.tasks.len()),
            None => self.window.matching,
        }
    }

    /// Recomputes the rows on screen, after the tasks, the order, the filter, the selection or the layout has changed.
    pub(super) fn refresh_window(&mut self, shared: &Shared, area: Option<Rect>) {
        // A row of this table is only valid until the next scan: none are stored while the tick is frozen.
        self.window = ProcessWindow::default();
        let Some(area) = area else { return };
        let height = usize::from(area.height.saturating_sub(3 + u16::from(self.is_folded)));
        if shared.frozen_seq.is_some() {
            return self.scroll.scroll_into_view(self.matching_task_count(shared), height);
        }
        let offset = self.scroll.offset;
        let rows = |view: &Self| shared.system.processes.window(&view.task_query(view.scroll.offset, height));
        let mut window = rows(self);
        self.scroll.scroll_into_view(window.matching, height);
        if self.scroll.offset != offset {
            window = rows(self);
        }
        self.window = window;
    }

    pub fn selected_task<'a>(&self, shared: &'a Shared) -> Option<ProcessRow<'a>> {
        if let Some(seq) = shared.frozen_seq {
            let frame = shared.system.history.nearest(seq)?;
            return frame.tasks.iter().nth(self.scroll.selected);
        }
        let row = *self.window.rows.get(self.scroll.selected.checked_sub(self.scroll.offset)?)?;
        Some(shared.system.processes.row(row))
    }

    /// For each task that matches, in the order shown: whether it is what is searched for.
    pub(super) fn tasks_containing(&self, shared: &Shared, search: &RowSearch) -> Vec<bool> {
        let contains = |row: &ProcessRow<'_>| {
            search.matches(&command_text(row)) || search.matches(&row.comm()) || row.tid().to_string() == search.needle
        };
        if let Some(frame) = shared.frozen_seq.and_then(|seq| shared.system.history.nearest(seq)) {
            return frame.tasks.iter().map(|row| contains(&row)).collect();
        }
        let all = shared.system.processes.window(&self.task_query(0, usize::MAX));
        all.rows.into_iter().map(|row| contains(&shared.system.processes.row(row))).collect()
    }
}
