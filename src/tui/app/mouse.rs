//! Mouse clicks and wheel, translated to actions.

use super::layout;
use super::state::App;
use crate::tui::view::{Action, Effect, Overlay, PaneClick, PaneId, PromptPurpose, ReplayEffect};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Margin, Position, Rect};

impl App {
    pub(super) fn on_mouse(&mut self, event: MouseEvent, effects: &mut Vec<Effect>) {
        match event.kind {
            MouseEventKind::ScrollUp => self.on_wheel(event, -3, effects),
            MouseEventKind::ScrollDown => self.on_wheel(event, 3, effects),
            MouseEventKind::Down(MouseButton::Right) => self.on_right_click(event.column, event.row),
            MouseEventKind::Down(MouseButton::Left) => self.on_click(event.column, event.row, effects),
            _ => (),
        }
    }

    fn on_wheel(&mut self, event: MouseEvent, by: i16, effects: &mut Vec<Effect>) {
        if self.screen.overlay.is_none() {
            self.focus_pane_at(event.column, event.row);
        }
        if !matches!(self.screen.overlay, Some(Overlay::Prompt(_) | Overlay::Dialog(_))) {
            self.apply_action(Action::MoveSelection(by), effects);
        }
    }

    fn focus_pane_at(&mut self, x: u16, y: u16) -> Option<(PaneId, Rect)> {
        let (index, pane, area) = self.arrange().0.pane_at(x, y)?;
        if !self.screen.zoomed && self.screen.detail.is_none() {
            self.screen.focus = index;
        }
        Some((pane, area))
    }

    /// Explains the column or figure under the mouse.
    fn on_right_click(&mut self, x: u16, y: u16) {
        if layout::is_too_small(self.screen.size) || self.screen.overlay.is_some() {
            return;
        }
        let Some((pane, area)) = self.focus_pane_at(x, y) else { return };
        let inner = area.inner(Margin::new(1, 1));
        let click = inner.contains(Position { x, y }).then_some(PaneClick { pane, inner, x, y });
        let column = click.and_then(|click| self.with_view(pane, |view, cx| view.column_at(click, cx)).flatten());
        self.open_columns(PromptPurpose::Explain, "explain: ", column);
    }

    fn on_click(&mut self, x: u16, y: u16, effects: &mut Vec<Effect>) {
        if layout::is_too_small(self.screen.size) {
            return;
        }
        let layout = self.arrange().0;
        if y == layout.footer.y {
            let hit = self.footer_keys(layout.footer).into_iter().find(|(at, w, _)| x >= *at && x < at + w);
            let action = hit.map(|(.., binding)| binding.action);
            if let Some(action) = action.filter(|_| self.screen.overlay.is_none()) {
                self.apply_action(action, effects);
            }
            return;
        }
        if self.screen.overlay.is_some() {
            // A click beside a dialog or the help closes it, as Esc does.
            return self.apply_action(Action::Back, effects);
        }
        if let Some(time) = self.timeline_click(x, y) {
            return effects.push(Effect::Replay(ReplayEffect::SeekTime(time)));
        }
        if y == layout.tabs.y
            && let Some(tab) = self.tabs(layout.tabs).into_iter().find(|tab| x >= tab.x && x < tab.x + tab.width)
        {
            return self.apply_action(Action::ShowView(tab.view), effects);
        }
        let Some((pane, area)) = self.focus_pane_at(x, y) else { return };
        let inner = area.inner(Margin::new(1, 1));
        if !inner.contains(Position { x, y }) {
            return;
        }
        let click = PaneClick { pane, inner, x, y };
        self.update_view(pane, effects, |view, cx, out| view.on_click(click, cx, out));
    }
}
