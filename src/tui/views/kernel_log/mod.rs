//! The Kernel log view: records classified, counted and linked to devices and tasks.

mod detail;
mod log;

use super::detail::{detail_table, scroll_positions};
use crate::export::table::Table;
use crate::model::columns::figures::LOG_FIGURES;
use crate::model::kernel_log::{DEFAULT_EXCLUDE, LogPatterns};
use crate::model::observation::Change;
use crate::tui::view::{
    Action, ColumnInfo, Context, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, PromptPurpose, Request, Shared,
    Target, View, ViewId,
};
use crate::tui::widgets::{CellBuffer, Rect, RowSearch, Scroll};
use smart_default::SmartDefault;

/// Tells an entry from the others while the log changes: when it first occurred, ns.
type EntryId = i64;

#[derive(Debug, SmartDefault)]
pub struct KernelLogView {
    /// Selection among the visible entries, newest first.
    pub scroll: Scroll,
    /// The selection stays at the newest entry.
    #[default = true]
    pub follows_newest: bool,
    pub patterns: LogPatterns,
    pub include: Option<String>,
    /// The exclude pattern as typed; `None`: the default.
    pub exclude: Option<String>,
    pub filter: String,
    /// Folded lines (traces) are shown below their entries.
    pub is_unfolded: bool,
    /// Indexes of the entries that patterns and filter let through, ascending.
    pub visible_entries: Vec<u32>,
    /// Row of the entry whose page was opened last.
    pub page: usize,
    /// The selected entry, which keeps the selection while newer ones arrive above it; `None`: the newest.
    selected_entry: Option<EntryId>,
    /// The entry whose page was opened last.
    page_entry: Option<EntryId>,
}

impl KernelLogView {
    /// Sets both patterns.
    /// Errors: one of them is not a regular expression; both stay as they were.
    pub fn set_patterns(
        &mut self,
        include: Option<String>,
        exclude: Option<String>,
        shared: &Shared,
    ) -> Result<(), String> {
        self.patterns = LogPatterns::new(include.as_deref(), exclude.as_deref()).map_err(|err| err.to_string())?;
        self.include = include.filter(|p| !p.is_empty());
        self.exclude = exclude;
        self.refresh_entries(shared);
        Ok(())
    }

    /// Recomputes which entries are visible, after the log, a pattern or the filter has changed.
    pub fn refresh_entries(&mut self, shared: &Shared) {
        let needle = self.filter.to_lowercase();
        let entries = shared.system.kernel_log.entries().enumerate();
        let visible = entries.filter(|(_, e)| {
            self.patterns.shows(e) && (needle.is_empty() || e.message.to_lowercase().contains(&needle))
        });
        self.visible_entries = visible.map(|(i, _)| i as u32).collect();
        let row_of = |id| self.visible_entries(shared).position(|e| e.first_wall_ns == id);
        let selected = self.selected_entry.and_then(row_of);
        // A page whose entry is gone says so.
        let page = self.page_entry.map(|id| row_of(id).unwrap_or(usize::MAX));
        if self.follows_newest {
            self.scroll.selected = 0;
        } else if let Some(row) = selected {
            let moved = row as isize - self.scroll.selected as isize;
            self.scroll.offset = self.scroll.offset.saturating_add_signed(moved);
            self.scroll.selected = row;
        }
        self.page = page.unwrap_or(self.page);
    }

    fn open_page(&mut self, row: usize, shared: &Shared, out: &mut Outbox) {
        self.page = row;
        self.page_entry = self.entry_id(row, shared);
        out.request(Request::OpenPage(PaneId::KernelLogDetail));
    }

    fn select(&mut self, row: usize, shared: &Shared) {
        self.scroll.selected = row;
        self.follows_newest = row == 0;
        self.selected_entry = self.entry_id(row, shared);
    }

    fn entry_id(&self, row: usize, shared: &Shared) -> Option<EntryId> {
        self.visible_entries(shared).nth(row).map(|e| e.first_wall_ns)
    }
}

impl View for KernelLogView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[
            (PaneId::KernelLog, "kernel", &[KeyContext::Kernel, KeyContext::List, KeyContext::Scroll]),
            (PaneId::KernelLogDetail, "message", &[KeyContext::Detail, KeyContext::KernelDetail, KeyContext::Scroll]),
        ]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::KernelLog => self.render_log(cx, area, buf),
            _ => self.render_detail(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::KernelLog => self.log_table(cx.shared),
            _ => detail_table("Kernel log entry", cx, self.detail_lines(cx)),
        }
    }

    fn columns(&self, _: PaneId, _: &Context) -> Vec<ColumnInfo> {
        ColumnInfo::of_figures(LOG_FIGURES).collect()
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        scroll_positions(self.detail_lines(cx).len(), cx.inner_area(pane).height)
    }

    fn move_selection(&mut self, _: PaneId, by: isize, cx: &Context) -> bool {
        self.scroll.move_selection(by, self.visible_entries.len());
        self.select(self.scroll.selected, cx.shared);
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match (action, pane) {
            (Action::Open, PaneId::KernelLog) if !self.visible_entries.is_empty() => {
                self.open_page(self.scroll.selected, cx.shared, out);
            }
            (Action::Open, PaneId::KernelLogDetail) => match self.link_target(cx) {
                Some(target) => out.navigate(target),
                None => out.error("it names no task that still exists, and no device"),
            },
            (Action::ToggleFold, _) => self.is_unfolded = !self.is_unfolded,
            (Action::IncludePattern, _) => {
                let label = "show only kernel lines matching: ";
                out.open_prompt(PromptPurpose::Include, label, self.include.clone().unwrap_or_default());
            }
            (Action::ExcludePattern, _) => {
                let exclude = self.exclude.clone().unwrap_or_else(|| DEFAULT_EXCLUDE.to_owned());
                out.open_prompt(PromptPurpose::Exclude, "hide kernel lines matching: ", exclude);
            }
            _ => return false,
        }
        true
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        let Target::KernelLogRecord(seq) = *target else { return false };
        out.navigate(Target::Tab(ViewId::Kernel));
        let row = self.visible_entries(cx.shared).position(|e| seq.is_some() && e.seq == seq);
        if let Some(row) = row {
            self.select(row, cx.shared);
            self.open_page(row, cx.shared, out);
        }
        true
    }

    fn on_change(&mut self, change: Change, cx: &Context, _: &mut Outbox) {
        if change == Change::KernelLog {
            self.refresh_entries(cx.shared);
        }
    }

    fn on_command(&mut self, word: &str, args: &str, cx: &Context, out: &mut Outbox) -> Option<Result<(), String>> {
        let purpose = match word {
            "include" => PromptPurpose::Include,
            "exclude" => PromptPurpose::Exclude,
            _ => return None,
        };
        Some(self.on_input(purpose, args, cx, out))
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        let row = click.y - click.inner.y;
        if let Some((first, selected)) = self.entry_at(cx.shared, click.inner.height, row)
            && click.pane == PaneId::KernelLog
        {
            self.select(selected, cx.shared);
            self.scroll.offset = first;
        }
    }

    fn on_input(&mut self, purpose: PromptPurpose, text: &str, cx: &Context, _: &mut Outbox) -> Result<(), String> {
        match purpose {
            PromptPurpose::Include => self.set_patterns(Some(text.to_owned()), self.exclude.clone(), cx.shared),
            _ => self.set_patterns(self.include.clone(), Some(text.to_owned()), cx.shared),
        }
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, cx: &Context) {
        text.clone_into(&mut self.filter);
        self.refresh_entries(cx.shared);
    }

    fn find_row(&mut self, _: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let mut selected = self.scroll.selected;
        let is_found =
            search.select(self.visible_entries(cx.shared).map(|e| search.matches(&e.message)), &mut selected);
        if is_found {
            self.select(selected, cx.shared);
        }
        is_found
    }
}
