//! Mouse clicks and wheel, translated to actions.

use super::actions;
use crate::tui::action::Action;
use crate::tui::draw::{FooterItem, footer_items};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, Overlay};
use crate::tui::view::PaneClick;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

/// Handles a mouse event.
pub fn on_mouse(app: &mut App, event: MouseEvent, effects: &mut Vec<Effect>) {
    match event.kind {
        MouseEventKind::ScrollUp => on_wheel(app, event, -3, effects),
        MouseEventKind::ScrollDown => on_wheel(app, event, 3, effects),
        MouseEventKind::Down(MouseButton::Left) => on_click(app, event.column, event.row, effects),
        _ => (),
    }
}

fn on_wheel(app: &mut App, event: MouseEvent, by: i16, effects: &mut Vec<Effect>) {
    if app.screen.overlay.is_none() {
        focus_pane_at(app, event.column, event.row);
    }
    if !matches!(app.screen.overlay, Some(Overlay::Prompt(_) | Overlay::Dialog(_))) {
        actions::apply_action(app, Action::MoveSelection(by), effects);
    }
}

fn focus_pane_at(app: &mut App, x: u16, y: u16) -> Option<(PaneId, Rect)> {
    let (at, id, area) = layout::compute_layout(app).pane_at(x, y)?;
    if !app.screen.zoomed && app.screen.detail.is_none() {
        app.screen.focus = at;
    }
    Some((id, area))
}

fn on_click(app: &mut App, x: u16, y: u16, effects: &mut Vec<Effect>) {
    if layout::is_too_small(app.screen.size) {
        return;
    }
    let footer = layout::compute_layout(app).footer;
    if y == footer.y {
        let hit = footer_items(app, footer).into_iter().find(|(at, w, _)| x >= *at && x < at + w);
        match (hit, app.screen.overlay.is_some()) {
            (Some((_, _, FooterItem::Tab(view))), false) => actions::apply_action(app, Action::ShowView(view), effects),
            (Some((_, _, FooterItem::Key(b))), false) => actions::apply_action(app, b.action, effects),
            _ => {}
        }
        return;
    }
    if app.screen.overlay.is_some() {
        // A click beside a dialog or the help closes it, as Esc does.
        return actions::apply_action(app, Action::Back, effects);
    }
    let Some((id, area)) = focus_pane_at(app, x, y) else { return };
    let inner = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    if x < inner.x || x >= inner.right() || y < inner.y || y >= inner.bottom() {
        return;
    }
    let click = PaneClick { pane: id, inner, x, y };
    if app.update_view(id, effects, |view, cx, out| view.on_click(click, cx, out)).is_some() {
        return;
    }
    match id {
        PaneId::TuneKnobs | PaneId::ChangeHistory => crate::tui::views::tune::update::on_click(app, id, inner, y),
        _ => {}
    }
}
