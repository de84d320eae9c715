//! The list above a prompt: the commands of the palette, the columns to sort by or to explain.

use super::state::App;
use crate::model::column::ColumnSource;
use crate::tui::view::{Action, Effect, KeyContext, Prompt, PromptPurpose};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_popup_above, draw_text, highlight_row, wrap};
use crossterm::event::KeyCode;

/// Commands that are typed with an argument: what is typed, and what they do.
const TYPED_COMMANDS: &[(&str, &str)] = &[
    ("path DIR", "the device that a directory is on"),
    ("tune KNOB", "a setting of the kernel in the Tune view"),
    ("syncs MS", "list syncs that take so many milliseconds one by one"),
    ("interval S", "seconds between samples"),
    ("theme NAME", "a theme by its name"),
    ("include RE", "only kernel lines that match"),
    ("exclude RE", "hide kernel lines that match"),
    ("q", "quit"),
];
/// Rows of the list at most.
const MAX_ROWS: u16 = 16;
/// Rows below the list for the whole text of the chosen entry, and for what columns are read from.
const TEXT_ROWS: u16 = 1;
const SOURCE_ROWS: u16 = 3;
/// Cells of the keys and headers before the texts.
const KEY_WIDTH: u16 = 12;
/// The same in the list of figures, which have longer names.
const FIGURE_WIDTH: u16 = 20;

/// An entry of the list.
pub(super) struct Choice {
    /// The key, the typed command or the header of the column.
    pub(super) key: String,
    text: String,
    /// What a column is read from, and why a cell is `-`.
    source: String,
    pub(super) pick: Pick,
}

/// What Enter does with an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pick {
    Perform(Action),
    /// Puts the command into the prompt.
    Type(&'static str),
    /// Puts the theme of this index in force.
    Theme(usize),
    /// Sorts by the column of this index; `None`: the default order.
    SortBy(Option<usize>),
    /// Shows or hides the column of this heading.
    ToggleColumn(&'static str),
    Close,
}

impl App {
    /// Whether a prompt has a list, from which the arrows choose.
    pub(super) fn has_choices(&self, prompt: &Prompt) -> bool {
        let is_listed = matches!(
            prompt.purpose,
            PromptPurpose::Command | PromptPurpose::Sort | PromptPurpose::Explain | PromptPurpose::Columns
        );
        is_listed && self.screen.overlay_owner.is_none()
    }

    /// The entries that match the text of a prompt, best first.
    pub(super) fn choices(&self, prompt: &Prompt) -> Vec<Choice> {
        if !self.has_choices(prompt) {
            return Vec::new();
        }
        let all = match prompt.purpose {
            PromptPurpose::Command => self.commands(),
            PromptPurpose::Columns => self.column_choices(),
            purpose => self.columns(purpose == PromptPurpose::Sort),
        };
        let query = prompt.text.trim().to_lowercase();
        let mut ranked: Vec<(u8, Choice)> =
            all.into_iter().filter_map(|choice| Some((choice.rank(&query)?, choice))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, choice)| choice).collect()
    }

    /// What the keys do that act where the user is, then what can be typed.
    fn commands(&self) -> Vec<Choice> {
        let mut out: Vec<(Action, Choice)> = Vec::new();
        for context in self.view_contexts().into_iter().filter(|context| *context != KeyContext::Scroll) {
            let bindings =
                self.shared.keymap.bindings().iter().filter(|b| b.context == context && b.action != Action::Command);
            for b in bindings.filter(|b| self.refusal_reason(b.action).is_none()) {
                match out.iter_mut().find(|(action, _)| *action == b.action) {
                    Some((_, choice)) => choice.key = format!("{} {}", choice.key, b.name),
                    None => {
                        let choice = Choice::new(b.name.clone(), b.help, Pick::Perform(b.action));
                        out.push((b.action, choice));
                    }
                }
            }
        }
        let typed = TYPED_COMMANDS.iter().map(|(command, text)| {
            let word = command.split_once(' ').map_or(*command, |(word, _)| word);
            Choice::new(format!(":{command}"), *text, Pick::Type(word))
        });
        let themes = self.shared.themes.names().enumerate().map(|(i, name)| {
            Choice::new(":theme", format!("theme {}", crate::sanitize::sanitize(name)), Pick::Theme(i))
        });
        out.into_iter().map(|(_, choice)| choice).chain(typed).chain(themes).collect()
    }

    /// The columns of the focused list.
    fn columns(&self, is_sort: bool) -> Vec<Choice> {
        let pane = self.focused_pane();
        let columns = self.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap_or_default();
        let entries = columns.iter().enumerate().filter(|(_, column)| !is_sort || column.can_sort);
        let entries = entries.map(|(i, column)| Choice {
            source: source_text(column.source),
            ..Choice::new(column.header, column.help, if is_sort { Pick::SortBy(Some(i)) } else { Pick::Close })
        });
        let default = Choice::new("default", "the default order", Pick::SortBy(None));
        is_sort.then_some(default).into_iter().chain(entries).collect()
    }

    /// Opens the list of the columns of the focused pane, to sort by one or to explain them, at the column of this index,
    /// else at the sort column.
    pub(super) fn open_columns(&mut self, purpose: PromptPurpose, label: &str, column: Option<usize>) {
        let pane = self.focused_pane();
        let columns = self.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap_or_default();
        let is_sort = purpose == PromptPurpose::Sort;
        if !columns.iter().any(|column| column.can_sort || !is_sort) {
            let why = if is_sort { "this list has one order" } else { "this pane has no figures to explain" };
            return self.screen.error(format!("{why}; ? explains the keys"));
        }
        let sorted = columns.iter().filter(|column| column.can_sort || !is_sort).position(|column| column.is_sorted);
        self.open_prompt(purpose, label, String::new());
        if let Some(crate::tui::view::Overlay::Prompt(prompt)) = &mut self.screen.overlay {
            // Before the columns to sort by comes the default order.
            prompt.choice = Some(if is_sort { sorted.map_or(0, |at| at + 1) } else { column.or(sorted).unwrap_or(0) });
        }
    }

    /// Moves the choice of a prompt with a list.
    pub(super) fn move_choice(&self, prompt: &mut Prompt, key: KeyCode) {
        let by = match key {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -isize::try_from(MAX_ROWS).unwrap_or(1),
            _ => isize::try_from(MAX_ROWS).unwrap_or(1),
        };
        let last = self.choices(prompt).len().saturating_sub(1);
        let at = chosen(prompt).map_or(if by > 0 { 0 } else { last }, |at| at.saturating_add_signed(by));
        prompt.choice = Some(at.min(last));
    }

    /// What Enter does in a prompt with a list; `None`: the text is to be taken as it is.
    pub(super) fn picked(&self, prompt: &Prompt) -> Option<Pick> {
        let is_typed = prompt.purpose == PromptPurpose::Command
            && TYPED_COMMANDS.iter().any(|(command, _)| {
                let word = prompt.text.trim().split(' ').next().unwrap_or_default();
                command.split(' ').next() == Some(word)
            });
        if is_typed && prompt.choice.is_none() {
            return None;
        }
        self.choices(prompt).get(chosen(prompt)?).map(|choice| choice.pick)
    }

    /// Does what was picked; returns the prompt if it stays open.
    pub(super) fn perform_pick(&mut self, pick: Pick, mut prompt: Prompt, effects: &mut Vec<Effect>) -> Option<Prompt> {
        match pick {
            Pick::Perform(action) => self.apply_action(action, effects),
            Pick::Type(word) => {
                prompt.text = format!("{word} ");
                (prompt.cursor, prompt.choice) = (prompt.text.len(), None);
                return Some(prompt);
            }
            Pick::Theme(index) => {
                let name = self.shared.themes.names().nth(index).unwrap_or_default().to_owned();
                self.select_theme(&name).unwrap_or_else(|why| self.screen.error(why));
            }
            Pick::SortBy(column) => {
                let pane = self.focused_pane();
                self.update_view(pane, effects, |view, cx, _| view.sort_by(pane, column, cx));
            }
            Pick::ToggleColumn(header) => {
                self.toggle_column(header, &mut prompt, effects);
                return Some(prompt);
            }
            Pick::Close => {}
        }
        None
    }

    /// Draws the list above the footer.
    pub(super) fn draw_choices(&self, prompt: &Prompt, theme: &Theme, footer: Rect, buf: &mut CellBuffer) {
        let choices = self.choices(prompt);
        if !self.has_choices(prompt) {
            return;
        }
        let cursor_row = self.draw_cell_cursor(prompt, theme, buf);
        let save = self.shared.key(Action::SaveConfig);
        let columns_note =
            format!("Enter shows or hides, ← → move, Delete: as at first, Esc closes, then {save} saves");
        let (title, note) = match prompt.purpose {
            PromptPurpose::Command => ("Commands", "type to search, ↑ ↓ choose, Enter does it, Esc closes"),
            PromptPurpose::Sort => ("Sort by", "type to search, ↑ ↓ choose, Enter sorts, Esc closes"),
            PromptPurpose::Columns => ("Columns", &*columns_note),
            _ => ("Columns", "← → ↑ ↓ choose, type to search, Esc closes"),
        };
        let text_rows = TEXT_ROWS + if prompt.purpose == PromptPurpose::Explain { SOURCE_ROWS } else { 0 };
        // Beside a heading that is marked there is half of the screen.
        let max_rows = cursor_row.map_or(MAX_ROWS, |_| (footer.y / 2).saturating_sub(text_rows + 2).clamp(1, MAX_ROWS));
        let height = (choices.len() as u16).clamp(1, max_rows) + text_rows + 2;
        let is_below = cursor_row.is_none_or(|y| y + height < footer.y);
        let bottom = if is_below { footer.y } else { height.min(footer.y) };
        let inner = draw_popup_above(buf, bottom, (title, note), 100, height, theme);
        let rows = Rect { height: inner.height.saturating_sub(text_rows), ..inner };
        if choices.is_empty() {
            draw_text(buf, inner.x + 1, inner.y, "nothing matches", inner.width.saturating_sub(1), theme.dim);
        }
        let has_long_names = choices.iter().any(|choice| choice.key.chars().count() > usize::from(KEY_WIDTH));
        let is_explain = prompt.purpose == PromptPurpose::Explain;
        let is_wide = prompt.purpose == PromptPurpose::Columns || is_explain && has_long_names;
        let key_width = if is_wide { FIGURE_WIDTH } else { KEY_WIDTH };
        let at = chosen(prompt).map(|at| at.min(choices.len().saturating_sub(1)));
        let offset = at.map_or(0, |at| (at + 1).saturating_sub(rows.height.into()));
        for ((i, choice), y) in choices.iter().enumerate().skip(offset).zip(rows.top()..rows.bottom()) {
            draw_text(buf, rows.x + 1, y, &choice.key, key_width, theme.key);
            let room = rows.width.saturating_sub(key_width + 3);
            draw_text(buf, rows.x + 2 + key_width, y, &choice.text, room, theme.text);
            if Some(i) == at {
                highlight_row(buf, rows, y, theme);
            }
        }
        let Some(choice) = at.and_then(|at| choices.get(at)) else { return };
        let source = if prompt.purpose == PromptPurpose::Explain { &choice.source } else { "" };
        let lines = wrap(&[&choice.text, source].join("\n"), inner.width.saturating_sub(2).into());
        for (line, y) in lines.iter().filter(|line| !line.is_empty()).zip(rows.bottom()..inner.bottom()) {
            draw_text(buf, inner.x + 1, y, line, inner.width.saturating_sub(2), theme.dim);
        }
    }
}

/// Index of the chosen entry: the one chosen with the arrows, else the best match of what is typed.
pub(super) fn chosen(prompt: &Prompt) -> Option<usize> {
    prompt.choice.or_else(|| (!prompt.text.trim().is_empty()).then_some(0))
}

/// `Read from /proc/PID/io. A cell is - after it has ended.`
fn source_text(source: &ColumnSource) -> String {
    match source.missing {
        "" => format!("Read from {}.", source.read_from),
        when => format!("Read from {}. It is - {when}.", source.read_from),
    }
}

impl Choice {
    pub(super) fn new(key: impl Into<String>, text: impl Into<String>, pick: Pick) -> Self {
        Self { key: key.into(), text: text.into(), source: String::new(), pick }
    }

    /// How well it matches a lower-case query, 0 best; `None`: it does not.
    fn rank(&self, query: &str) -> Option<u8> {
        let (key, text) = (self.key.to_lowercase(), self.text.to_lowercase());
        let is_prefix = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with(query));
        match query {
            "" => Some(0),
            _ if key == query => Some(0),
            _ if key.starts_with(query) || text.starts_with(query) => Some(1),
            _ if is_prefix(&text) => Some(2),
            _ if text.contains(query) || key.contains(query) => Some(3),
            _ => query.split(' ').all(|part| is_fuzzy_match(part, &text)).then_some(4),
        }
    }
}

/// Whether a word of the text has all characters of `part` in this order, beginning with the first.
fn is_fuzzy_match(part: &str, text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let mut rest = word.chars();
        word.chars().next() == part.chars().next() && part.chars().all(|c| rest.any(|w| w == c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_by_their_beginning_then_anywhere_then_by_letters_in_order() {
        let choice = Choice::new("F6", "sort by a column", Pick::Close);
        let ranks = ["", "f6", "sor", "col", "olum", "srt", "xyz"].map(|query| choice.rank(query));
        assert_eq!(ranks, [Some(0), Some(0), Some(1), Some(2), Some(3), Some(4), None]);
    }
}
