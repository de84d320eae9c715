//! The column that is being explained, chosen with the arrows and marked in the heading of its list.

use super::state::App;
use crate::tui::view::{PaneClick, Prompt, PromptPurpose};
use crate::tui::widgets::{CellBuffer, Rect, Theme, patch_style};
use crossterm::event::KeyCode;

/// A column on screen: its place among the columns of the list, and the cells of its heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShownColumn {
    index: usize,
    heading: Rect,
}

impl App {
    /// The columns of the focused list, from left to right.
    fn shown_columns(&self) -> Vec<ShownColumn> {
        let pane = self.focused_pane();
        let columns = self.with_view(pane, |view, cx| {
            let inner = cx.inner_area(pane);
            let column_at = |x, y| view.column_at(PaneClick { pane, inner, x, y }, cx);
            let headings = |y: u16| {
                let mut out: Vec<ShownColumn> = Vec::new();
                for (x, index) in (inner.left()..inner.right()).filter_map(|x| Some((x, column_at(x, y)?))) {
                    match out.last_mut() {
                        Some(last) if last.index == index => last.heading.width = x + 1 - last.heading.x,
                        _ => out.push(ShownColumn { index, heading: Rect::new(x, y, 1, 1) }),
                    }
                }
                out
            };
            (inner.top()..inner.bottom()).map(headings).find(|columns| !columns.is_empty())
        });
        columns.flatten().unwrap_or_default()
    }

    /// Moves the choice to the next column on screen to the left or right; where none are known, in the list.
    pub(super) fn move_column_choice(&self, prompt: &mut Prompt, key: KeyCode) {
        let shown = self.shown_columns();
        let at = prompt.choice.and_then(|choice| shown.iter().position(|column| column.index == choice));
        // The list has all columns in their order only while nothing is typed.
        if shown.len() < 2 || !prompt.text.trim().is_empty() {
            return self.move_choice(prompt, if key == KeyCode::Left { KeyCode::Up } else { KeyCode::Down });
        }
        let last = shown.len() - 1;
        let at = match (at, key) {
            (Some(at), KeyCode::Left) => at.saturating_sub(1),
            (Some(at), _) => (at + 1).min(last),
            (None, KeyCode::Left) => last,
            (None, _) => 0,
        };
        prompt.choice = Some(shown[at].index);
    }

    /// Marks the heading of the column that is explained; returns its row.
    pub(super) fn draw_cell_cursor(&self, prompt: &Prompt, theme: &Theme, buf: &mut CellBuffer) -> Option<u16> {
        if prompt.purpose != PromptPurpose::Explain || !prompt.text.trim().is_empty() {
            return None;
        }
        let shown = self.shown_columns();
        let heading = shown.iter().find(|column| Some(column.index) == prompt.choice)?.heading;
        patch_style(buf, heading.x, heading.y, heading.width, theme.selected);
        Some(heading.y)
    }
}
