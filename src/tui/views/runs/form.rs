//! Forms: lines that are edited in place, and below them what a run would do.

use super::form_line::{DIRECTORY, FormLine};
use super::kind::RunKind;
use super::state::{PAGE_FOCUS, RunRow, RunView};
use crate::export::table::Table;
use crate::tui::view::{Action, Context, Outbox, Overlay, PaneClick, Prompt, PromptPurpose, Request, RunAction};
use crate::tui::widgets::{
    CellBuffer, FormLayout, Rect, StyledLine, draw_input, draw_lines, draw_text, form_layout, highlight_row, wrap_lines,
};

const NAME_WIDTH: u16 = 13;

impl<K: RunKind> RunView<K> {
    /// Edits the selected line. From the list it first focuses the form.
    pub(super) fn edit(&mut self, cx: &Context, out: &mut Outbox) {
        if K::FORMS > 1 && !matches!(self.selected, RunRow::Form(_)) {
            return out.error("select a profile to change its parameters");
        }
        if self.shown_form().is_none() || cx.screen.focus != PAGE_FOCUS {
            let form = if K::FORMS > 1 { self.selected.clone() } else { RunRow::default() };
            self.select(form, cx);
            return out.focus_pane(PAGE_FOCUS);
        }
        self.edit_line(cx, out);
    }

    /// Edits the selected line of the form on the page: a choice is cycled, other values are typed.
    pub fn edit_line(&mut self, cx: &Context, out: &mut Outbox) {
        let Some(form) = self.shown_form() else { return };
        let lines = self.form.lines(form, cx.shared);
        let at = self.form_line.min(lines.len() - 1);
        let line = &lines[at];
        if line.choices.is_empty() {
            return out.open_prompt(PromptPurpose::FormLine(Self::PAGE, at), "", &line.text);
        }
        let next = line.choices.iter().position(|c| *c == line.text).map_or(0, |i| i + 1) % line.choices.len();
        let result = self.form.set_line(form, line.name, line.choices[next]);
        self.after_edit(result, cx, out);
    }

    pub(super) fn reset_line(&mut self, cx: &Context, out: &mut Outbox) {
        let Some(form) = self.shown_form() else { return };
        let lines = self.form.lines(form, cx.shared);
        let result = self.form.reset_line(form, lines[self.form_line.min(lines.len() - 1)].name);
        self.after_edit(result, cx, out);
    }

    fn after_edit(&mut self, result: Result<(), String>, cx: &Context, out: &mut Outbox) {
        match result {
            Ok(()) => K::on_edited(self, cx, out),
            Err(why) => out.error(why),
        }
    }

    pub(super) fn set_typed_line(
        &mut self,
        at: usize,
        text: &str,
        cx: &Context,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let Some(form) = self.shown_form() else { return Ok(()) };
        let lines = self.form.lines(form, cx.shared);
        match lines.get(at).map(|line| line.name) {
            Some(DIRECTORY) if text.is_empty() => {
                return Err(format!("enter a directory on the storage to {}", K::TEXTS.purpose));
            }
            Some(DIRECTORY) => out.request(Request::SetDirectory(cx.shared.target.absolute_path(text))),
            Some(name) => {
                self.form.set_line(form, name, text)?;
                K::on_edited(self, cx, out);
            }
            None => {}
        }
        Ok(())
    }

    /// The lines of a form, their places, and the text below them. While the list is focused, the text comes first.
    fn page_layout(&self, form: usize, inner: Rect, cx: &Context) -> (Vec<FormLine>, FormLayout, Vec<StyledLine>) {
        let lines = self.form.lines(form, cx.shared);
        let text = wrap_lines(self.form.plan_text(form, cx.shared), inner.width.into());
        let least = usize::from(inner.height / 3);
        let needed = if cx.focused == Self::PAGE { text.len().min(least) } else { text.len() };
        let wide = lines.iter().filter(|line| line.is_wide).count();
        let layout = form_layout(inner, lines.len(), wide, self.form_line.min(lines.len() - 1), needed);
        (lines, layout, text)
    }

    pub(super) fn form_line_at(&self, click: PaneClick, cx: &Context) -> Option<usize> {
        let (_, layout, _) = self.page_layout(self.shown_form()?, click.inner, cx);
        let hit = |r: &Rect| r.contains((click.x, click.y).into());
        layout.cells.into_iter().find(|(_, r)| hit(r)).map(|(line, _)| line)
    }

    /// Moves the selected line. Below the last line the text scrolls.
    pub(super) fn move_form_line(&mut self, form: usize, by: isize, cx: &Context) {
        let (lines, layout, text) = self.page_layout(form, cx.inner_area(Self::PAGE), cx);
        let (last, hidden) = (lines.len() - 1, text.len().saturating_sub(layout.rest.height.into()));
        let to = (self.form_line + self.text_offset.min(hidden)).saturating_add_signed(by).min(last + hidden);
        self.form_line = to.min(last);
        self.text_offset = to - self.form_line;
    }

    pub(super) fn render_form(&self, form: usize, cx: &Context, area: Rect, inner: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(Self::PAGE));
        let (lines, layout, text) = self.page_layout(form, inner, cx);
        let prompt = Self::line_prompt(cx);
        for (i, cell) in &layout.cells {
            let line = &lines[*i];
            draw_text(buf, cell.x, cell.y, line.name, NAME_WIDTH.min(cell.width), theme.header);
            let field = Rect { x: cell.x + NAME_WIDTH, width: cell.width.saturating_sub(NAME_WIDTH), ..*cell };
            if let Some((_, prompt)) = prompt.filter(|(at, _)| at == i) {
                draw_input(buf, field, "", &prompt.text, prompt.cursor, theme);
                continue;
            }
            let (mark, style) = if line.is_changed { (" *", theme.warn) } else { ("", theme.text) };
            draw_text(buf, field.x, field.y, &format!("{}{mark}", line.shown), field.width, style);
            if focused && *i == self.form_line {
                highlight_row(buf, *cell, cell.y, theme);
            }
        }
        let (hint, style) = match prompt.and_then(|(_, prompt)| prompt.error.clone()) {
            Some(why) => (why, theme.crit),
            None => (self.hint(&lines, &layout, focused), theme.dim),
        };
        draw_text(buf, layout.hint.x, layout.hint.y, &hint, layout.hint.width, style);
        let below = text.len().saturating_sub(layout.rest.height.into());
        let from = self.text_offset.min(below);
        draw_lines(theme, layout.rest, buf, &text, from);
        if from < below {
            let [edit, zoom] = [Action::Run(RunAction::Edit), Action::Zoom].map(|action| cx.shared.key(action));
            let key = if focused { "↓ scrolls".to_owned() } else { format!("{edit}, then {zoom} shows them") };
            let more = format!(" {} more lines: {key} ", below - from);
            draw_text(buf, area.x + 2, area.bottom() - 1, &more, area.width.saturating_sub(4), theme.dim);
        }
    }

    /// The prompt of a line of this form, with the line's index.
    fn line_prompt<'a>(cx: &Context<'a>) -> Option<(usize, &'a Prompt)> {
        let Some(Overlay::Prompt(prompt)) = &cx.screen.overlay else { return None };
        let PromptPurpose::FormLine(page, line) = prompt.purpose else { return None };
        (page == Self::PAGE).then_some((line, prompt))
    }

    /// What the selected line is, and how many lines do not fit.
    fn hint(&self, lines: &[FormLine], layout: &FormLayout, focused: bool) -> String {
        let hidden = match layout.hidden.0 + layout.hidden.1 {
            0 => String::new(),
            n => format!("({n} more {}) ", K::TEXTS.form_lines),
        };
        let text = match lines.get(self.form_line).filter(|_| focused) {
            Some(line) if line.name == DIRECTORY => format!("on the storage to {}", K::TEXTS.purpose),
            Some(line) => line.help.clone(),
            None if lines.iter().any(|line| line.is_changed) => K::TEXTS.changed.into(),
            None => String::new(),
        };
        hidden + &text
    }

    pub(super) fn form_table(&self, form: usize, title: String, cx: &Context) -> Table {
        let mut table = Table::new(title, &[("parameter", false), ("value", false)]);
        let lines = self.form.lines(form, cx.shared);
        table.rows.extend(lines.into_iter().map(|line| vec![line.name.into(), line.shown]));
        table.notes.extend(self.form.plan_text(form, cx.shared).into_iter().map(|(text, _)| text));
        table
    }
}
