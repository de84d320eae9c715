//! The page of a knob: what it does and costs, what may be written, and the meaning of its values on this machine.

use super::{TuneView, cached_knobs};
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::view::{Action, Context, PaneId, Shared, TuneAction};
use crate::tui::widgets::{CellBuffer, Rect, Style, Theme, draw_text, wrap};

const LABEL_WIDTH: u16 = 10;

/// Label, text and style of a part of the page.
type PagePart = (&'static str, String, Style);

impl TuneView {
    fn page_parts(&self, shared: &Shared, theme: &Theme) -> Vec<PagePart> {
        let apply = shared.key(Action::Tune(TuneAction::Apply));
        let (Some(row), Some(snapshot)) = (self.selected_knob(), &self.knobs.snapshot) else { return Vec::new() };
        let (machine, knob) = (&snapshot.machine, row.knob());
        let meaning = |value: &String| cached_knobs::describe_value(snapshot, &row.name, value);
        let mut out =
            vec![("now", row.long_value(machine), if row.reading.is_err() { theme.warn } else { theme.text })];
        if let Some(value) = self.pending.get(&row.name) {
            out.push(("pending", format!("{}  ({apply} applies)", meaning(value)), theme.changed));
        }
        out.push(("at start", self.initial_values.get(&row.name).map_or("-".into(), meaning), theme.text));
        out.push(("default", row.default_text(machine), theme.text));
        out.push(match self.next_boot.get(&row.name) {
            Some(boot) => {
                let is_overridden = boot.persisted.is_some() && boot.overriding_line.is_some();
                let text = format!("{}, by {}", sanitize(&boot.value), sanitize(&boot.decided_by));
                ("next boot", text, if is_overridden { theme.warn } else { theme.text })
            }
            None => ("next boot", "- not read".into(), theme.dim),
        });
        out.push(("allowed", row.allowed_values(machine), theme.text));
        out.extend(Some(("also sets", row.linked_effect(), theme.text)).filter(|(_, text, _)| !text.is_empty()));
        out.push(("", knob.description.to_owned(), theme.text));
        out.push(("writes", row.written_to(), theme.dim));
        out.push(("needs", knob.requires.to_owned(), theme.dim));
        out.push(("persists", row.persist_path.clone().unwrap_or_else(|why| why), theme.dim));
        out.push(("source", knob.source.to_owned(), theme.dim));
        out.extend(self.boot_notes.iter().map(|note| ("note", note.clone(), theme.dim)));
        out
    }

    pub(super) fn page_lines(&self, shared: &Shared, theme: &Theme, width: u16) -> Vec<PagePart> {
        let mut out = Vec::new();
        for (label, text, style) in self.page_parts(shared, theme) {
            let indent = if label.is_empty() { 0 } else { LABEL_WIDTH };
            let lines = wrap(&text, usize::from(width.saturating_sub(indent).max(8)));
            for (i, line) in lines.into_iter().enumerate() {
                let line = " ".repeat(indent.into()) + &line;
                out.push((if i == 0 { label } else { "" }, line, style));
            }
        }
        out
    }

    pub(super) fn render_knob(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let theme = &cx.theme;
        let title = self.selected_knob().map_or("Knob", |r| &r.display_name);
        let [graph, persist] =
            [TuneAction::Graph, TuneAction::Persist].map(|action| cx.shared.key(Action::Tune(action)));
        let note = format!("{graph} graph  {persist} persist");
        let inner = cx.draw_frame(buf, PaneId::KnobPage, area, title, &note);
        let lines = self.page_lines(cx.shared, theme, inner.width);
        let last = lines.len().saturating_sub(usize::from(inner.height));
        let skip = self.page_scroll.selected.min(last);
        for ((label, text, style), y) in lines.iter().skip(skip).zip(inner.y..inner.bottom()) {
            draw_text(buf, inner.x, y, text, inner.width, *style);
            draw_text(buf, inner.x, y, label, inner.width, theme.header);
        }
        if skip < last && inner.width > 2 {
            draw_text(buf, inner.right() - 1, inner.bottom() - 1, "↓", 1, theme.dim);
        }
    }

    pub(super) fn knob_table(&self, shared: &Shared) -> Table {
        let name = self.selected_knob().map_or("", |r| r.display_name.as_str());
        let mut table = Table::new(shared.table_title(name), &[("", false), ("", false)]);
        let parts = self.page_parts(shared, &shared.theme()).into_iter();
        table.rows.extend(parts.map(|(label, text, _)| vec![label.to_owned(), text]));
        table
    }
}
