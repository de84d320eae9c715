//! The tasks on screen: of the newest scan, or of the frozen tick, which keeps only the busiest ones.

use super::sections::{INDENT, TaskLine};
use super::{ProcessesView, SelectionMove};
use crate::model::columns::process::command_text;
use crate::model::columns::stalls::waits_text;
use crate::model::process::{ProcessRow, ProcessWindow, TaskKey};
use crate::tui::view::{Action, Context, Outbox, Shared};
use crate::tui::widgets::{RowSearch, area_below};
use ratatui::layout::Rect;

/// A lower pane has the number of idle tasks in its title.
const MIN_HEIGHT_WITH_FOLD_LINE: u16 = 10;

impl ProcessesView {
    /// The inside of the pane without the indentation of sections.
    pub(super) fn table_area(&self, inner: Rect) -> Rect {
        let indent = if self.has_sections() { INDENT.min(inner.width) } else { 0 };
        Rect { x: inner.x + indent, width: inner.width - indent, ..inner }
    }

    /// The headings and rows below the section of stalled tasks, of the inside of the pane.
    pub(super) fn busy_area(&self, inner: Rect) -> Rect {
        area_below(inner, if self.stalled_rows > 0 { self.stalled_rows as u16 + 1 } else { 0 })
    }

    pub(super) fn line_at(&self, inner: Rect, y: u16) -> TaskLine {
        let (line, stalled) = (usize::from(y.saturating_sub(inner.y)), self.stalled_rows);
        match line {
            0 if stalled > 0 => TaskLine::StalledHeading,
            n if stalled > 0 && n <= stalled => TaskLine::Row(n - 1),
            n if n == usize::from(self.busy_area(inner).y - inner.y) => TaskLine::Heading,
            n => TaskLine::Row(n - 1 - usize::from(stalled > 0)),
        }
    }

    /// Calls `each` with the index on screen and the row of every task there, at most `height`.
    pub fn for_each_visible_task(&self, shared: &Shared, height: usize, mut each: impl FnMut(usize, &ProcessRow<'_>)) {
        for n in 0..self.window.rows.len().min(height) {
            self.window.row(shared.tasks(), n).iter().for_each(|row| each(n, row));
        }
    }

    /// Recomputes the rows on screen, after the tasks, the order, the filter, the selection or the layout has changed.
    pub(super) fn refresh_window(&mut self, shared: &Shared, area: Option<Rect>) {
        self.window = ProcessWindow::default();
        self.stalled_rows = 0;
        let Some(area) = area else { return };
        self.is_fold_in_title = self.is_folded && area.height < MIN_HEIGHT_WITH_FOLD_LINE;
        let fold_line = u16::from(self.is_folded && !self.is_fold_in_title);
        let height = usize::from(area.height.saturating_sub(3 + fold_line));
        let moved = self.selection_move.take();
        if let Some(key) = self.follow.take() {
            self.select_task(shared, &key);
        } else if let Some(key) = self.chosen_task.filter(|_| moved.is_none()) {
            self.keep_selected(shared, &key, height);
        }
        self.fill_window(shared, height);
        if let Some(moved) = moved {
            let is_first = moved == SelectionMove::ByRows && self.scroll.selected == 0;
            self.chosen_task = self.selected_task(shared).filter(|_| !is_first).map(|row| row.key());
        }
        self.stalled_rows = self.count_stalled(shared);
        if self.stalled_rows > 0 && self.stalled_rows < self.window.matching {
            // The section of busy tasks has headings of its own.
            self.fill_window(shared, height.saturating_sub(1));
            self.stalled_rows = self.count_stalled(shared);
        }
    }

    fn fill_window(&mut self, shared: &Shared, height: usize) {
        let offset = self.scroll.offset;
        let mut window = self.query_window(shared, offset, height);
        self.scroll.scroll_into_view(window.listed, height);
        if self.scroll.offset != offset {
            window = self.query_window(shared, self.scroll.offset, height);
        }
        self.window = window;
    }

    /// `height` rows from `offset` on, of the tree or the list.
    fn query_window(&mut self, shared: &Shared, offset: usize, height: usize) -> ProcessWindow {
        let query = self.task_query(offset, height);
        match self.show_tree {
            true => self.tree.window(shared.tasks(), &query),
            false => shared.tasks().window(&query),
        }
    }

    /// Selects a task that was selected before: mostly it is still on screen, which is less work to find out.
    fn keep_selected(&mut self, shared: &Shared, key: &TaskKey, height: usize) {
        let offset = self.scroll.offset;
        let window = self.query_window(shared, offset, height);
        match window.rows.iter().position(|at| shared.tasks().row(*at).key() == *key) {
            Some(place) => self.scroll.selected = offset + place,
            None => self.select_task(shared, key),
        }
    }

    /// Selects a task wherever it is in the list, if it is there.
    fn select_task(&mut self, shared: &Shared, key: &TaskKey) {
        let all = self.query_window(shared, 0, usize::MAX);
        let place = all.rows.iter().position(|at| shared.tasks().row(*at).key() == *key);
        self.scroll.selected = place.unwrap_or(self.scroll.selected);
    }

    /// Folds or unfolds the threads of the selected process; in the tree, everything below it.
    pub(super) fn toggle_fold(&mut self, cx: &Context, out: &mut Outbox) {
        if !self.show_threads && !self.show_tree {
            let [threads, tree] = [Action::ToggleThreads, Action::ToggleTree].map(|action| cx.shared.key(action));
            return out.info(format!("threads are folded; {threads} shows them, {tree} shows the tree"));
        }
        let Some(row) = self.selected_task(cx.shared) else { return };
        let (pid, process) = (row.pid(), cx.shared.tasks().find_main_thread(&row.key()));
        if let Some(i) = self.filter.folded_pids.iter().position(|p| *p == pid) {
            self.filter.folded_pids.remove(i);
        } else if !self.show_tree {
            self.filter.folded_pids.push(pid);
        } else if let Some(key) = process {
            let folded = &mut self.filter.folded_subtrees;
            match folded.iter().position(|k| *k == key) {
                Some(i) => drop(folded.remove(i)),
                None => folded.push(key),
            }
            self.follow = Some(key);
        }
    }

    /// Searches what is folded in the tree, too, and unfolds what is above the row that is found.
    pub(super) fn find_folded_row(&mut self, shared: &Shared, search: &RowSearch) -> bool {
        let folded = std::mem::take(&mut self.filter.folded_subtrees);
        if !self.show_tree || folded.is_empty() {
            self.filter.folded_subtrees = folded;
            return false;
        }
        let tasks = shared.tasks();
        let all = self.query_window(shared, 0, usize::MAX);
        let rows: Vec<bool> = self.tasks_containing(shared, search);
        let mut selected = self.scroll.selected;
        let is_found = search.select(rows.into_iter(), &mut selected);
        let found = all.rows.get(selected).copied().filter(|_| is_found);
        let above: Vec<TaskKey> =
            std::iter::successors(found.and_then(|at| self.tree.parent(at)), |at| self.tree.parent(*at))
                .map(|at| tasks.row(at).key())
                .collect();
        self.filter.folded_subtrees = folded.into_iter().filter(|key| !above.contains(key)).collect();
        self.follow = found.map(|at| tasks.row(at).key());
        is_found
    }

    pub fn selected_task<'a>(&'a self, shared: &'a Shared) -> Option<ProcessRow<'a>> {
        self.window.row(shared.tasks(), self.scroll.selected.checked_sub(self.scroll.offset)?)
    }

    /// For each task that matches, in the order shown: whether it is what is searched for.
    pub(super) fn tasks_containing(&mut self, shared: &Shared, search: &RowSearch) -> Vec<bool> {
        let contains = |row: &ProcessRow<'_>| {
            search.matches(&command_text(row))
                || search.matches(&row.comm())
                || search.matches(&waits_text(row))
                || row.tid().to_string() == search.needle
        };
        let all = self.query_window(shared, 0, usize::MAX);
        all.rows.into_iter().map(|row| contains(&shared.tasks().row(row))).collect()
    }
}
