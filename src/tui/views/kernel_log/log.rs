//! The list of kernel log entries, with their classes and counts.
//!
//! Tasks that stay in state D come first, whether or not the kernel reports them.

use super::KernelLogView;
pub(super) use crate::export::kernel_log::class_label;
use crate::export::kernel_log::hung_task_text;
use crate::export::{self, table::Table};
use crate::model::kernel_log::{KernelLogClass, LogEntry};
use crate::sanitize::{sanitize, sanitize_cow};
use crate::tui::view::{Context, PaneId, Shared, ViewId};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_reason, draw_text, highlight_row, title_with_filter,
};
use std::fmt::Write as _;
use strum::VariantArray as _;

impl KernelLogView {
    /// The visible entries, newest first.
    pub fn visible_entries<'a>(&'a self, shared: &'a Shared) -> impl Iterator<Item = &'a LogEntry> {
        let shown = &self.visible_entries;
        let entries = shared.system.kernel_log.entries().enumerate();
        entries.rev().filter(move |(i, _)| shown.binary_search(&(*i as u32)).is_ok()).map(|(_, e)| e)
    }

    /// At most `most` visible entries from the `first` on, each with its index among the visible ones.
    fn visible_window<'a>(
        &'a self,
        shared: &'a Shared,
        first: usize,
        most: usize,
    ) -> impl Iterator<Item = (usize, &'a LogEntry)> {
        self.visible_entries(shared).enumerate().skip(first).take(most)
    }

    fn pane_title(&self, shared: &Shared) -> String {
        let dropped = shared.system.kernel_log.dropped;
        let patterns = [("only", self.include.as_deref()), ("not", self.exclude.as_deref())];
        let patterns = patterns.map(|(what, pattern)| match pattern {
            None | Some("") => String::new(),
            Some(pattern) => format!(" · {what} /{}/", sanitize(pattern)),
        });
        let dropped = if dropped > 0 { format!(" · {dropped} lines dropped") } else { String::new() };
        title_with_filter(format!("Kernel log, newest first{}", patterns.concat()), &self.filter) + &dropped
    }

    pub(super) fn render_log(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (shared, theme, focused) = (cx.shared, &cx.theme, cx.is_focused(PaneId::KernelLog));
        let (title, counts) = (self.pane_title(shared), recent_class_counts(shared));
        let inner = cx.draw_frame(buf, PaneId::KernelLog, area, &title, &counts);
        let inner = draw_hung_tasks(cx, inner, buf);
        if let Some(why) = shared.kernel_log_unavailable_reason() {
            draw_reason(buf, inner, &why, theme.warn);
            return;
        }
        let (height, total) = (usize::from(inner.height), self.visible_entries.len());
        if total == 0 && height > 0 {
            draw_text(buf, inner.x, inner.y, "nothing the kernel warns of", inner.width, theme.dim);
            return;
        }
        // An unfocused pane shows the newest entries.
        let selected = if focused { self.scroll.selected } else { 0 };
        let (mut rows, mut scratch) = (inner.top()..inner.bottom(), String::new());
        for (i, entry) in self.visible_window(shared, self.first_visible(shared, selected, height), height) {
            let Some(y) = rows.next() else { break };
            self.draw_entry(cx, Rect { y, height: 1, ..inner }, buf, entry, &mut scratch);
            if focused && i == selected {
                highlight_row(buf, inner, y, theme);
            }
            for (text, y) in entry.folded.iter().filter(|_| self.is_unfolded).zip(rows.by_ref()) {
                draw_text(buf, inner.x + 4, y, &sanitize(text), inner.width.saturating_sub(4), theme.dim);
            }
        }
    }

    fn entry_rows(&self, entry: &LogEntry) -> usize {
        1 + if self.is_unfolded { entry.folded.len() } else { 0 }
    }

    /// Lines that the log would fill; with unfolded entries it takes what it can get.
    pub fn wanted_lines(&self) -> usize {
        if self.is_unfolded { usize::MAX } else { self.visible_entries.len() }
    }

    /// The first entry on screen, such that the selected one is fully visible if it fits.
    fn first_visible(&self, shared: &Shared, selected: usize, height: usize) -> usize {
        let selected = selected.min(self.visible_entries.len().saturating_sub(1));
        if !self.is_unfolded {
            let mut scroll = self.scroll;
            scroll.selected = selected;
            scroll.scroll_into_view(self.visible_entries.len(), height);
            return scroll.offset;
        }
        let heights: Vec<usize> = self.visible_entries(shared).take(selected + 1).map(|e| self.entry_rows(e)).collect();
        let mut used = 0;
        let fitting = heights.iter().rev().take_while(|rows| {
            used += **rows;
            used <= height
        });
        selected + 1 - fitting.count().max(1).min(selected + 1)
    }

    /// The first entry on screen, and the entry at a row of the pane's inside.
    pub fn entry_at(&self, shared: &Shared, inner_height: u16, row: u16) -> Option<(usize, usize)> {
        let stuck = hung_task_rows(shared, inner_height);
        let row = usize::from(row.checked_sub(stuck)?);
        let from = self.first_visible(shared, self.scroll.selected, usize::from(inner_height - stuck));
        let mut below = 0;
        let at = self.visible_entries(shared).skip(from).position(|e| {
            below += self.entry_rows(e);
            row < below
        })?;
        Some((from, from + at))
    }

    /// Draws an entry: `14:02:11  12s I/O error ×3 text`, in the Overview without the time. `scratch` is a reused buffer.
    fn draw_entry(&self, cx: &Context, area: Rect, buf: &mut CellBuffer, e: &LogEntry, scratch: &mut String) {
        let theme = &cx.theme;
        let mut x = area.x;
        let mut part = |buf: &mut CellBuffer, text: &str, style: Style| {
            let used = draw_text(buf, x, area.y, text, area.right().saturating_sub(x), style);
            x += used;
        };
        scratch.clear();
        if cx.screen.view == ViewId::Kernel {
            crate::units::write_time_of_day(scratch, e.wall_ns, cx.shared.utc_offset_secs);
            scratch.push(' ');
        }
        let age_ns = cx.shared.snapshot().time.wall_ns.saturating_sub(e.wall_ns);
        crate::units::write_age(scratch, u64::try_from(age_ns).unwrap_or(0) / 1_000_000_000);
        scratch.push(' ');
        part(buf, scratch, theme.dim);
        let class = if e.is_from_program() { "from a program" } else { class_label(e.class) };
        if e.class != KernelLogClass::Other || e.is_from_program() {
            part(buf, class, if e.is_from_program() { theme.dim } else { entry_style(e, theme) });
            part(buf, " ", theme.text);
        }
        scratch.clear();
        if e.count > 1 {
            let _ = write!(scratch, "×{} ", e.count);
        }
        if e.suppressed > 0 {
            let _ = write!(scratch, "(+{} rate-limited) ", e.suppressed);
        }
        part(buf, scratch, theme.warn);
        part(buf, &sanitize_cow(e.message.as_bytes()), if e.level <= 3 { entry_style(e, theme) } else { theme.text });
        if !e.folded.is_empty() && !self.is_unfolded {
            scratch.clear();
            let _ = write!(scratch, "  [+{} lines]", e.folded.len() + e.folded_dropped as usize);
            part(buf, scratch, theme.dim);
        }
    }

    pub(super) fn log_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title(&self.pane_title(shared));
        let mut sheet = export::kernel_log::build_table(title, self.visible_entries(shared), &shared.system, 0);
        sheet.notes.extend(shared.kernel_log_unavailable_reason());
        sheet
    }
}

/// The classes logged in the last ten minutes with their counts.
fn recent_class_counts(shared: &Shared) -> String {
    let mut out = String::new();
    for class in KernelLogClass::VARIANTS.iter().copied() {
        let n = shared.system.kernel_log.count(class, shared.log_clock);
        if n.last_10min > 0 && class != KernelLogClass::Other {
            out.push_str(&format!("{} {} · ", class.name().replace('_', " "), n.last_10min));
        }
    }
    if out.is_empty() { String::new() } else { format!("{out}in 10 min") }
}

fn hung_task_rows(shared: &Shared, height: u16) -> u16 {
    (height / 2).min(shared.system.hung_tasks.len().min(usize::from(u16::MAX)) as u16)
}

/// Draws the hung tasks at the top; returns the area below them.
fn draw_hung_tasks(cx: &Context, area: Rect, buf: &mut CellBuffer) -> Rect {
    let (most, system) = (hung_task_rows(cx.shared, area.height), &cx.shared.system);
    let texts = system.hung_tasks.iter().map(|s| hung_task_text(s, system.hung_task_warnings));
    draw_column(buf, Rect { height: most, ..area }, texts.map(|text| (text, cx.theme.crit)));
    area_below(area, most)
}

fn entry_style(e: &LogEntry, theme: &Theme) -> Style {
    match e.class {
        KernelLogClass::Other | KernelLogClass::Thermal => theme.warn,
        _ if e.level <= 4 => theme.crit,
        _ => theme.warn,
    }
}
