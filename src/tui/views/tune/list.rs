//! The list of knobs with their values, and the places of the panes.

use super::{KnobListLine, TuneView};
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::KnobRow;
use crate::tui::view::{Action, Context, ExperimentAction, PaneId, Shared, TuneAction};
use crate::tui::widgets::{
    CellBuffer, Rect, Theme, area_below, draw_text, draw_wrapped, highlight_row, split_columns, split_rows,
};

/// Widths of the columns: now, at start, kernel default, next boot, pending, set by.
fn column_widths(width: u16) -> [u16; 6] {
    match width {
        0..60 => [10, 0, 0, 0, 10, 0],
        60..100 => [10, 9, 9, 9, 10, 0],
        100..130 => [14, 13, 11, 13, 14, 0],
        _ => [14, 13, 11, 13, 14, width - 104],
    }
}

const HEADINGS: [&str; 6] = ["NOW", "AT START", "DEFAULT", "NEXT BOOT", "PENDING", "SET BY"];

impl TuneView {
    pub(super) fn layout_panes(body: Rect, panes: &[PaneId]) -> Vec<(PaneId, Rect)> {
        let (w, h) = (body.width, body.height);
        match *panes {
            [list, page, changes] if w >= 170 => {
                let [left, right] = split_columns(body, w * 11 / 20);
                let [upper, lower] = split_rows(right, h * 2 / 5);
                vec![(list, left), (page, upper), (changes, lower)]
            }
            [list, page, changes] => {
                let [upper, lower] = split_rows(body, h / 2);
                let [left, right] = split_columns(lower, w * 9 / 20);
                vec![(list, upper), (page, left), (changes, right)]
            }
            [list, other] => {
                let [upper, lower] = split_rows(body, (h * 11 / 20).max(h.min(5)));
                vec![(list, upper), (other, lower)]
            }
            _ => panes.iter().map(|id| (*id, body)).collect(),
        }
    }

    fn row_cells(&self, row: &KnobRow) -> [String; 6] {
        let brief = |v: Option<&String>| v.map(|v| row.format_short(v));
        let boot = self.next_boot.get(&row.name);
        // Texts such as "computed from memory size" are on the knob's page.
        let default = row.knob().default.map_or("varies".into(), |d| row.format_short(d));
        let machine = self.knobs.snapshot.as_ref().map(|s| s.machine).unwrap_or_default();
        let next = match boot {
            Some(b) if row.knob().default.is_none() && b.value.contains(' ') => "varies".into(),
            Some(b) if b.value == row.default_text(&machine) => default.clone(),
            Some(b) => row.format_short(&b.value),
            None => "-".into(),
        };
        [
            row.short_value(),
            brief(self.initial_values.get(&row.name)).unwrap_or_else(|| "-".into()),
            default,
            next,
            brief(self.pending.get(&row.name)).unwrap_or_default(),
            boot.map(|b| sanitize(&b.decided_by)).unwrap_or_default(),
        ]
    }

    /// The keys, or what the tuner is doing, for the upper edge of the pane.
    fn key_hint(&self, shared: &Shared) -> String {
        let key = |action| shared.key(Action::Tune(action));
        let [apply, keep, undo] = [TuneAction::Apply, TuneAction::Keep, TuneAction::Undo].map(key);
        let [renew, presets] = [TuneAction::Renew, TuneAction::Presets].map(key);
        let try_it = shared.key(Action::Experiment(ExperimentAction::TryPending));
        let pending = self.pending.len();
        if let Some(busy) = &self.busy_with {
            return format!("{busy} ...");
        }
        match (&self.knobs.snapshot, self.knobs.leases.last()) {
            (None, _) => "reading ...".into(),
            _ if pending > 0 => {
                format!("{pending} pending: {apply} apply, {try_it} experiment, {} discard", shared.key(Action::Back))
            }
            (_, Some(lease)) => {
                format!("change {} on lease: {keep} keep  {undo} undo  {renew} restart", lease.id)
            }
            (Some(s), _) if !s.can_write => "not root: shows the sudo command".into(),
            _ => {
                let edit = shared.key(Action::Open);
                format!("{edit} edit  {presets} presets  {apply} apply  {try_it} experiment")
            }
        }
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(PaneId::TuneKnobs));
        let title = match self.filter.is_empty() {
            true => "Tune".to_owned(),
            false => format!("Tune, only {}", sanitize(&self.filter)),
        };
        let inner = cx.draw_frame(buf, PaneId::TuneKnobs, area, &title, &self.key_hint(cx.shared));
        // Above the knobs: why the last request was refused.
        let refusal_rows =
            self.error.as_ref().map_or(0, |why| draw_wrapped(buf, inner, &format!("! {why}"), theme.crit));
        let inner = area_below(inner, refusal_rows);
        if inner.height == 0 {
            return;
        }
        let widths = column_widths(inner.width);
        let used: u16 = widths.iter().filter(|w| **w > 0).map(|w| w + 1).sum();
        let name = inner.width.saturating_sub(used);
        let mut x = inner.x + name;
        draw_text(buf, inner.x + 1, inner.y, "KNOB", name, theme.header);
        for (head, width) in HEADINGS.iter().zip(widths).filter(|(_, w)| *w > 0) {
            draw_text(buf, x + 1, inner.y, head, width, theme.header);
            x += width + 1;
        }
        let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let lines = self.list_lines();
        let mut scroll = self.scroll;
        scroll.scroll_into_view(lines.len(), usize::from(body.height));
        // With the first knob selected its heading is visible, too.
        if scroll.selected == scroll.offset
            && scroll.offset > 0
            && matches!(lines[scroll.offset - 1], KnobListLine::Heading(_))
        {
            scroll.offset -= 1;
        }
        let shown = lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height));
        for ((i, line), y) in shown.zip(body.y..) {
            match line {
                KnobListLine::Heading(at) => {
                    draw_text(buf, body.x, y, &self.knobs.rows()[*at].heading, body.width, theme.title);
                }
                KnobListLine::Knob(at) => {
                    self.draw_knob(theme, Rect { y, height: 1, ..body }, buf, &self.knobs.rows()[*at], name, widths)
                }
            }
            if focused && i == scroll.selected {
                highlight_row(buf, body, y, theme);
            }
        }
        let end = body.y + lines.len().saturating_sub(scroll.offset).min(usize::from(body.height)) as u16;
        if !lines.is_empty() && self.filter.is_empty() && end + 1 < body.bottom() {
            draw_text(buf, body.x, end + 1, &task_knob_text(cx.shared), body.width, theme.dim);
        }
        if lines.is_empty() {
            let text = cx.shared.no_match_text("knob");
            let text = if self.knobs.snapshot.is_none() { "reading the knobs ..." } else { &text };
            draw_text(buf, body.x, body.y, text, body.width, theme.dim);
        }
    }

    fn draw_knob(&self, theme: &Theme, area: Rect, buf: &mut CellBuffer, row: &KnobRow, name: u16, widths: [u16; 6]) {
        let changed = self.knobs.is_changed(&row.id);
        let values = self.row_cells(row);
        // The star repeats without colour what the colour says.
        if changed {
            draw_text(buf, area.x, area.y, "*", 1, theme.changed);
        }
        draw_text(buf, area.x + 1, area.y, &row.short_name(), name.saturating_sub(1), theme.text);
        let mut x = area.x + name;
        for (i, (value, width)) in values.iter().zip(widths).enumerate().filter(|(_, (_, w))| *w > 0) {
            let style = match i {
                0 if row.reading.is_err() => theme.dim,
                0 if changed => theme.changed,
                0 => theme.text,
                4 => theme.changed,
                // Dim values that say nothing new.
                _ if *value == values[0] || value == "-" || i == 5 => theme.dim,
                _ => theme.text,
            };
            draw_text(buf, x + 1, area.y, value, width, style);
            x += width + 1;
        }
    }

    pub(super) fn list_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title("Knobs");
        let heads = ["knob", "now", "at start", "kernel default", "next boot", "pending", "set by"];
        let mut sheet = Table::new(title, &heads.map(|h| (h, false)));
        for row in self.knobs.rows() {
            let cells = self.row_cells(row);
            sheet.rows.push(std::iter::once(row.display_name.clone()).chain(cells).collect());
        }
        sheet
    }
}

/// Where the knobs of tasks are.
fn task_knob_text(shared: &Shared) -> String {
    let [knobs, command] = [Action::TaskKnobs, Action::Command].map(|action| shared.key(action));
    format!("nofile@PID, ioprio@PID: {knobs} on the page of a process, or {command}tune nofile@PID")
}
