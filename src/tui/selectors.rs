//! What panes and updates ask of the state: the tick on screen, the rows on screen, times of day.

use super::layout;
use super::panes::{PaneId, processes};
use super::state::App;
use crate::model::disk::DevId;
use crate::model::process::ProcessRow;

impl App {
    /// Calls `each` with the tasks on screen, at most `height`, with their place there.
    pub fn for_each_visible_task(&self, height: usize, mut each: impl FnMut(usize, &ProcessRow<'_>)) {
        match self.shared.frozen_seq {
            Some(seq) => {
                let Some(frame) = self.shared.system.history.nearest(seq) else { return };
                let skip = self.views.processes.scroll.offset;
                for (n, task) in frame.tasks.iter().skip(skip).take(height).enumerate() {
                    each(n, &frame.process_row(task));
                }
            }
            None => {
                for (n, at) in self.views.processes.window.rows.iter().take(height).enumerate() {
                    each(
                        n,
                        &self
                            .shared
                            .system
                            .processes
                            .row_with_folded_threads(*at, &self.views.processes.filter.folded_pids),
                    );
                }
            }
        }
    }

    /// Tasks that match.
    pub fn matching_task_count(&self) -> usize {
        match self.shared.frozen_seq {
            Some(seq) => self.shared.system.history.nearest(seq).map_or(0, |f| f.tasks.len()),
            None => self.views.processes.window.matching,
        }
    }

    /// Picks the rows of the task table that are on screen. To be called whenever the table, the order,
    /// the filter, the selection or the size changed.
    pub fn refresh_visible_tasks(&mut self) {
        let arranged = layout::compute_layout(self);
        let Some(area) = arranged.pane_area(PaneId::Processes) else {
            self.views.processes.window = Default::default();
            return;
        };
        let height = usize::from(area.height.saturating_sub(3));
        if self.shared.frozen_seq.is_some() {
            // The table goes on meanwhile: places in it would be somebody else's soon.
            self.views.processes.window = Default::default();
            let len = self.matching_task_count();
            self.views.processes.scroll.scroll_into_view(len, height);
            return;
        }
        let offset = self.views.processes.scroll.offset;
        let mut window = self.shared.system.processes.window(&processes::task_query(self, offset, height));
        let mut scroll = self.views.processes.scroll;
        scroll.scroll_into_view(window.matching, height);
        if scroll.offset != offset {
            window = self.shared.system.processes.window(&processes::task_query(self, scroll.offset, height));
        }
        self.views.processes.scroll = scroll;
        self.views.processes.window = window;
    }

    /// The task that is selected, if the list is on screen.
    pub fn selected_task(&self) -> Option<ProcessRow<'_>> {
        let s = self.views.processes.scroll;
        if let Some(seq) = self.shared.frozen_seq {
            let frame = self.shared.system.history.nearest(seq)?;
            return Some(frame.process_row(frame.tasks.get(s.selected)?));
        }
        let at = *self.views.processes.window.rows.get(s.selected.checked_sub(s.offset)?)?;
        Some(self.shared.system.processes.row(at))
    }

    /// Which of all tasks that match contain a text (lower case), in the order shown.
    pub fn tasks_containing(&self, needle: &str) -> Vec<bool> {
        let hit = |row: &ProcessRow<'_>| {
            let command = crate::model::columns::process::command_text(row).to_lowercase();
            command.contains(needle) || row.comm.to_lowercase().contains(needle) || row.tid.to_string() == *needle
        };
        if let Some(frame) = self.shared.frozen_seq.and_then(|seq| self.shared.system.history.nearest(seq)) {
            return frame.tasks.iter().map(|task| hit(&task.row())).collect();
        }
        let all = self.shared.system.processes.window(&processes::task_query(self, 0, usize::MAX));
        all.rows.into_iter().map(|at| hit(&self.shared.system.processes.row(at))).collect()
    }

    /// The device that is selected.
    pub fn selected_device(&self) -> Option<DevId> {
        super::panes::devices::device_lines(self).get(self.views.devices.scroll.selected).map(|l| l.id)
    }
}
