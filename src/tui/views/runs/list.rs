//! The list: the run of this session, the forms, the stored results.

use super::kind::RunKind;
use super::state::{Run, RunEnding, RunRow, RunView};
use crate::bench::store::StoredReport;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{CellBuffer, Rect, draw_text, highlight_row, split_columns, split_rows};
use crate::units::format_rfc3339;

enum ListLine {
    Heading(String),
    Row(RunRow),
}

/// The list beside the page where there is room for both, else above it.
pub(crate) fn list_and_page(area: Rect, side_by_side: bool, width: u16, height: u16) -> [Rect; 2] {
    if side_by_side { split_columns(area, width) } else { split_rows(area, height) }
}

impl<K: RunKind> RunView<K> {
    pub fn rows(&self) -> Vec<RunRow> {
        let current = self.run.is_some().then_some(RunRow::CurrentRun);
        let stored = self.stored_results().iter().map(|stored| RunRow::Stored(stored.id.clone()));
        current.into_iter().chain((0..K::FORMS).map(RunRow::Form)).chain(stored).collect()
    }

    fn list_lines(&self) -> Vec<ListLine> {
        let mut out: Vec<ListLine> = self.rows().into_iter().map(ListLine::Row).collect();
        if let Some([forms, stored]) = K::TEXTS.headings {
            let first = usize::from(self.run.is_some());
            if !self.stored_results().is_empty() {
                out.insert(first + K::FORMS, ListLine::Heading(stored.into()));
            }
            out.insert(first, ListLine::Heading(forms.into()));
        }
        match &self.stored {
            Some(Err(why)) => out.push(ListLine::Heading(format!("- {}", sanitize(why)))),
            Some(Ok(all)) if all.is_empty() => {
                out.push(ListLine::Heading(format!("No stored {}s", K::TEXTS.stored_noun)))
            }
            _ => {}
        }
        out
    }

    /// First visible line, so that the selected row is visible.
    fn scroll_offset(&self, lines: &[ListLine], height: usize) -> usize {
        let at = lines.iter().position(|l| matches!(l, ListLine::Row(row) if *row == self.selected)).unwrap_or(0);
        // Scroll the heading above the first form into view with it.
        let top = if at <= 1 { 0 } else { at };
        let offset = self.list_offset.min(lines.len().saturating_sub(height)).min(top);
        if height > 0 && at >= offset + height { at + 1 - height } else { offset }
    }

    /// The row in line `y` of a pane of this height.
    pub(super) fn row_at(&self, height: u16, y: u16) -> Option<RunRow> {
        let lines = self.list_lines();
        let from = self.scroll_offset(&lines, height.into());
        match lines.into_iter().nth(from + usize::from(y))? {
            ListLine::Row(row) => Some(row),
            ListLine::Heading(_) => None,
        }
    }

    /// Selects a row and shows its page.
    pub(super) fn select(&mut self, row: RunRow, cx: &Context) {
        if K::FORMS > 1 && self.selected != row {
            self.form_line = 0;
        }
        (self.selected, self.opened, self.text_offset) = (row, None, 0);
        self.list_offset = self.scroll_offset(&self.list_lines(), cx.inner_area(Self::LIST).height.into());
    }

    pub(super) fn move_row(&mut self, by: isize, cx: &Context) {
        let mut rows = self.rows();
        let at = rows.iter().position(|row| *row == self.selected).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(rows.len() - 1);
        self.select(rows.swap_remove(to), cx);
    }

    fn row_text(&self, row: &RunRow, shared: &Shared) -> String {
        match row {
            RunRow::CurrentRun => self.run.as_ref().map_or(String::new(), current_run_text),
            RunRow::Form(form) => self.form.list_text(*form),
            RunRow::Stored(id) => {
                let stored = self.stored_results().iter().find(|stored| stored.id == *id);
                stored.map_or_else(String::new, |stored| {
                    stored_text(stored, self.marked.as_ref() == Some(id), shared.utc_offset_secs)
                })
            }
        }
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let theme = &cx.theme;
        let note = match self.selected {
            RunRow::Form(_) if K::FORMS > 1 => "Enter: run",
            RunRow::Form(_) => "S: start",
            RunRow::CurrentRun | RunRow::Stored(_) => "Enter: show",
        };
        let inner = cx.draw_frame(buf, Self::LIST, area, K::TEXTS.list, note);
        let lines = self.list_lines();
        let from = self.scroll_offset(&lines, inner.height.into());
        for (line, y) in lines.iter().skip(from).zip(inner.y..inner.bottom()) {
            let (text, style) = match line {
                ListLine::Heading(text) => (text.clone(), theme.header),
                ListLine::Row(row) if *row == RunRow::CurrentRun => (self.row_text(row, cx.shared), theme.warn),
                ListLine::Row(row) => (self.row_text(row, cx.shared), theme.text),
            };
            draw_text(buf, inner.x, y, &text, inner.width, style);
            if matches!(line, ListLine::Row(row) if *row == self.selected) {
                highlight_row(buf, inner, y, theme);
            }
        }
    }

    pub(super) fn list_table(&self, cx: &Context) -> Table {
        let columns = K::TEXTS.columns.map(|name| (name, matches!(name, "IOPS" | "per s")));
        let mut table = Table::new(cx.shared.table_title(K::TEXTS.stored), &columns);
        for stored in self.stored_results() {
            let [a, b] = &stored.details;
            let cells = [&stored.id, &stored.time, &stored.profile, &stored.directory, a, b];
            table.rows.push(cells.map(sanitize).to_vec());
            table.notes.extend(stored.is_damaged.then(|| sanitize(&stored.summary)));
        }
        table
    }
}

fn current_run_text<K: RunKind>(run: &Run<K>) -> String {
    let name = &run.profile;
    match &run.ending {
        // The list says what it lists: without the first word.
        None => format!("> {}", K::status_text(run).split_once(' ').map_or("", |(_, rest)| rest)),
        Some(RunEnding::Report(report)) => format!("> {name}: {}", K::outcome_text(report)),
        Some(RunEnding::Refused(_)) => format!("> {name}: refused"),
        Some(RunEnding::Failed(_)) => format!("> {name}: failed"),
    }
}

/// A stored result, `*11-21 15:49 randrw 51k`.
pub(crate) fn stored_text(stored: &StoredReport, is_marked: bool, utc_offset_secs: i64) -> String {
    let mark = if is_marked { '*' } else { ' ' };
    if stored.is_damaged {
        return format!("{mark}{} unreadable", sanitize(&stored.id));
    }
    let secs: i64 = stored.id.split('-').next().and_then(|secs| secs.parse().ok()).unwrap_or(0);
    let local = format_rfc3339(secs.saturating_add(utc_offset_secs).saturating_mul(1_000_000_000));
    let time = local.get(5..16).map_or_else(String::new, |t| t.replace('T', " "));
    format!("{mark}{time} {}{}", sanitize(&stored.profile), sanitize(&stored.brief))
}
