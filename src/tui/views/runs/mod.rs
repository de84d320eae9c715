//! What benchmarks and experiments have in common: a list with forms, the run of this session and stored results, and
//! beside it the page of the selected row. A form is edited in place, and started after a confirmation; a child process
//! runs it and sends its progress and a report, which is stored.

mod form;
mod form_line;
mod kind;
mod list;
mod page;
mod state;
mod update;

#[cfg(test)]
pub(crate) use self::list::stored_text;
#[cfg(any(test, fuzzing))]
pub(crate) use self::state::OpenedResult;
pub(crate) use form_line::FormLine;
pub use kind::RunForms;
pub(crate) use kind::{RunKind, RunReports, RunStatus};
pub(crate) use list::list_and_page;
pub(crate) use page::report_text;
pub(crate) use state::{Run, RunEnding, RunRow, RunTexts, RunTypes, RunView};

use crate::export::table::Table;
use crate::tui::view::{
    Action, Context, Event, Outbox, PaneClick, PaneId, PaneSpec, PendingChange, Prompt, PromptPurpose, Running, Shared,
    Target, View,
};
use crate::tui::widgets::{CellBuffer, Rect};
use crossterm::event::KeyCode;

impl<K: RunKind> View for RunView<K> {
    fn panes(&self) -> &'static [PaneSpec] {
        K::PANES
    }

    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        K::arrange_panes(body, cx.screen.focus)
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        if pane == Self::LIST { self.render_list(cx, area, buf) } else { self.render_page(cx, area, buf) }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        if pane == Self::LIST { self.list_table(cx) } else { self.page_table(cx) }
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        if pane == Self::LIST {
            self.move_row(by, cx)
        } else {
            self.scroll_page(by, cx)
        }
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open => self.open_selected(pane, cx, out),
            Action::Back => return self.close_topmost(cx, out),
            Action::Run(action) => self.apply_action(action, cx, out),
            other => return K::on_action(self, other, cx, out),
        }
        true
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.pane == Self::LIST {
            if let Some(row) = self.row_at(click.inner.height, click.y - click.inner.y) {
                self.select(row, cx);
            }
        } else if let Some(line) = self.form_line_at(click, cx) {
            self.form_line = line;
        }
    }

    fn on_tab(&mut self, cx: &Context, out: &mut Outbox) {
        K::on_tab(self, cx, out);
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        K::on_target(self, target, cx, out)
    }

    fn on_event(&mut self, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event> {
        K::on_event(self, event, cx, out)
    }

    fn on_confirm(&mut self, _: PendingChange, cx: &Context, out: &mut Outbox) {
        self.start_confirmed(cx, out);
    }

    fn on_input(&mut self, purpose: PromptPurpose, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        match purpose {
            PromptPurpose::FormLine(_, line) => self.set_typed_line(line, text, cx, out),
            _ => K::on_input(self, text, cx, out),
        }
    }

    fn on_prompt_key(&mut self, prompt: &mut Prompt, key: KeyCode) -> bool {
        let PromptPurpose::FormLine(_, line) = prompt.purpose else { return false };
        let by = if key == KeyCode::Up { -1 } else { 1 };
        let Some(text) = K::neighbour_value(line, &prompt.text, by) else { return false };
        prompt.set_text(text);
        true
    }

    /// The page draws the prompt of a line of its form.
    fn draw_prompt(&self, prompt: &Prompt, _: &Context, _: &mut CellBuffer) -> bool {
        matches!(prompt.purpose, PromptPurpose::FormLine(..))
    }

    fn publish(&self, shared: &mut Shared) {
        let running = self.active_run().map(|run| Running {
            is_experiment: K::IS_EXPERIMENT,
            profile: run.profile.clone(),
            status: K::status_text(run),
        });
        if running.is_some() || shared.running.as_ref().is_some_and(|r| r.is_experiment == K::IS_EXPERIMENT) {
            shared.running = running;
        }
    }
}
