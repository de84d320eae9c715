//! What panes and updates ask of the state: the tick on screen, the rows on screen, times of day.

use super::layout;
use super::panes::{PaneId, processes};
use super::state::App;
use crate::model::disk::DevId;
use crate::model::history::HistoryFrame;
use crate::model::kernel_log::LogClock;
use crate::model::process::{ProcessRow, TaskSnapshot};
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;

impl App {
    /// The tick on screen: the newest, or the one held.
    pub fn snapshot(&self) -> &Snapshot {
        match self.ui.frozen_seq.and_then(|seq| self.system.history.nearest(seq)) {
            Some(frame) => &frame.snapshot,
            None => &self.system.snapshot,
        }
    }

    /// The ticks up to the one on screen, oldest first.
    pub fn history_to_shown(
        &self,
    ) -> impl DoubleEndedIterator<Item = &HistoryFrame<TaskSnapshot>> + ExactSizeIterator + Clone {
        self.system.history.up_to(self.snapshot().seq)
    }

    /// Calls `each` with the tasks on screen, at most `height`, with their place there.
    pub fn for_each_visible_task(&self, height: usize, mut each: impl FnMut(usize, &ProcessRow<'_>)) {
        match self.ui.frozen_seq {
            Some(seq) => {
                let Some(frame) = self.system.history.nearest(seq) else { return };
                let skip = self.ui.processes.scroll.offset;
                for (n, task) in frame.tasks.iter().skip(skip).take(height).enumerate() {
                    each(n, &frame.process_row(task));
                }
            }
            None => {
                for (n, at) in self.ui.processes.window.rows.iter().take(height).enumerate() {
                    each(n, &self.system.processes.row_with_folded_threads(*at, &self.ui.processes.filter.folded_pids));
                }
            }
        }
    }

    /// Tasks that match.
    pub fn matching_task_count(&self) -> usize {
        match self.ui.frozen_seq {
            Some(seq) => self.system.history.nearest(seq).map_or(0, |f| f.tasks.len()),
            None => self.ui.processes.window.matching,
        }
    }

    /// Picks the rows of the task table that are on screen. To be called whenever the table, the order,
    /// the filter, the selection or the size changed.
    pub fn refresh_visible_tasks(&mut self) {
        let arranged = layout::compute_layout(self);
        let Some(area) = arranged.pane_area(PaneId::Processes) else {
            self.ui.processes.window = Default::default();
            return;
        };
        let height = usize::from(area.height.saturating_sub(3));
        if self.ui.frozen_seq.is_some() {
            // The table goes on meanwhile: places in it would be somebody else's soon.
            self.ui.processes.window = Default::default();
            let len = self.matching_task_count();
            self.ui.processes.scroll.scroll_into_view(len, height);
            return;
        }
        let offset = self.ui.processes.scroll.offset;
        let mut window = self.system.processes.window(&processes::task_query(self, offset, height));
        let mut scroll = self.ui.processes.scroll;
        scroll.scroll_into_view(window.matching, height);
        if scroll.offset != offset {
            window = self.system.processes.window(&processes::task_query(self, scroll.offset, height));
        }
        self.ui.processes.scroll = scroll;
        self.ui.processes.window = window;
    }

    /// The task that is selected, if the list is on screen.
    pub fn selected_task(&self) -> Option<ProcessRow<'_>> {
        let s = self.ui.processes.scroll;
        if let Some(seq) = self.ui.frozen_seq {
            let frame = self.system.history.nearest(seq)?;
            return Some(frame.process_row(frame.tasks.get(s.selected)?));
        }
        let at = *self.ui.processes.window.rows.get(s.selected.checked_sub(s.offset)?)?;
        Some(self.system.processes.row(at))
    }

    /// Which of all tasks that match contain a text (lower case), in the order shown.
    pub fn tasks_containing(&self, needle: &str) -> Vec<bool> {
        let hit = |row: &ProcessRow<'_>| {
            let command = crate::model::columns::process::command_text(row).to_lowercase();
            command.contains(needle) || row.comm.to_lowercase().contains(needle) || row.tid.to_string() == *needle
        };
        if let Some(frame) = self.ui.frozen_seq.and_then(|seq| self.system.history.nearest(seq)) {
            return frame.tasks.iter().map(|task| hit(&task.row())).collect();
        }
        let all = self.system.processes.window(&processes::task_query(self, 0, usize::MAX));
        all.rows.into_iter().map(|at| hit(&self.system.processes.row(at))).collect()
    }

    /// The device that is selected.
    pub fn selected_device(&self) -> Option<DevId> {
        super::panes::devices::device_lines(self).get(self.ui.devices.scroll.selected).map(|l| l.id)
    }

    /// Time of day in the person's zone: `14:02:11`.
    pub fn format_time_of_day(&self, wall_ns: i64) -> String {
        crate::units::format_time_of_day(wall_ns, self.ui.utc_offset_secs)
    }

    /// Date and time of the tick on screen, for exports.
    pub fn timestamp(&self) -> String {
        crate::units::format_rfc3339(self.snapshot().time.wall_ns)
    }

    /// The clocks of the newest tick, for the kernel log's counts.
    pub fn log_clock(&self) -> LogClock {
        self.ui.log_clock
    }

    /// Why the kernel log is not shown, if it is not.
    pub fn kernel_log_unavailable_reason(&self) -> Option<String> {
        match &self.system.kernel_log_status {
            Reading::Ok(()) => None,
            other => other.unavailable_reason(self.system.now().boot_ns),
        }
    }
}
