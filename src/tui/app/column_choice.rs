//! Choosing the columns of a list: which are shown, and in which order.

use super::choices::{Choice, Pick, chosen};
use super::state::App;
use crate::tui::view::{Effect, Overlay, Prompt, PromptPurpose};
use crossterm::event::KeyCode;

impl App {
    /// The columns of the focused list: those shown, in their order, then the others.
    pub(super) fn column_choices(&self) -> Vec<Choice> {
        let pane = self.focused_pane();
        let columns = self.with_view(pane, |view, cx| view.column_choices(pane, cx)).unwrap_or_default();
        let choice = |column: crate::tui::view::ColumnChoice| {
            let mark = if column.is_shown { "[x]" } else { "[ ]" };
            Choice::new(format!("{mark} {}", column.header), column.help, Pick::ToggleColumn(column.header))
        };
        columns.into_iter().map(choice).collect()
    }

    fn shown_headers(&self) -> Vec<&'static str> {
        let pane = self.focused_pane();
        let columns = self.with_view(pane, |view, cx| view.column_choices(pane, cx)).unwrap_or_default();
        columns.iter().filter(|column| column.is_shown).map(|column| column.header).collect()
    }

    pub(super) fn open_column_choice(&mut self) {
        self.open_prompt(PromptPurpose::Columns, "columns: ", String::new());
        if let Some(Overlay::Prompt(prompt)) = &mut self.screen.overlay {
            prompt.choice = Some(0);
        }
    }

    /// Shows a column as the last one, or hides it; the choice stays at it.
    pub(super) fn toggle_column(&mut self, header: &'static str, prompt: &mut Prompt, effects: &mut Vec<Effect>) {
        let mut shown = self.shown_headers();
        match shown.iter().position(|other| *other == header) {
            Some(at) => drop(shown.remove(at)),
            None => shown.push(header),
        }
        self.set_columns(&shown, effects);
        self.choose_header(header, prompt);
    }

    /// Moves the chosen column to the left or right; Delete shows the columns as they were at first.
    pub(super) fn move_column(&mut self, prompt: &mut Prompt, key: KeyCode, effects: &mut Vec<Effect>) {
        let pick = chosen(prompt).and_then(|at| self.choices(prompt).get(at).map(|choice| choice.pick));
        let Some(Pick::ToggleColumn(header)) = pick else { return };
        let mut shown = self.shown_headers();
        match (shown.iter().position(|other| *other == header), key) {
            (_, KeyCode::Delete) => shown.clear(),
            (Some(at), KeyCode::Left) if at > 0 => shown.swap(at, at - 1),
            (Some(at), KeyCode::Right) if at + 1 < shown.len() => shown.swap(at, at + 1),
            _ => return,
        }
        self.set_columns(&shown, effects);
        self.choose_header(header, prompt);
    }

    fn set_columns(&mut self, headers: &[&'static str], effects: &mut Vec<Effect>) {
        let pane = self.focused_pane();
        self.update_view(pane, effects, |view, cx, _| view.set_columns(pane, headers, cx));
    }

    fn choose_header(&self, header: &'static str, prompt: &mut Prompt) {
        prompt.choice = self.choices(prompt).iter().position(|choice| choice.pick == Pick::ToggleColumn(header));
    }
}
