//! Clicks and the wheel: the same actions as the keys.

use super::act;
use crate::tui::action::Action;
use crate::tui::draw::{FooterPart, footer_parts};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::panes::{PaneId, devices, kernel, processes};
use crate::tui::state::{App, Overlay};
use crate::tui::widgets::table::Scroll;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

/// A mouse event.
pub fn mouse(app: &mut App, event: MouseEvent, effects: &mut Vec<Effect>) {
    match event.kind {
        MouseEventKind::ScrollUp => wheel(app, event, -3, effects),
        MouseEventKind::ScrollDown => wheel(app, event, 3, effects),
        MouseEventKind::Down(MouseButton::Left) => click(app, event.column, event.row, effects),
        _ => return,
    }
    app.pick_tasks();
    super::data::focus(app, effects);
}

fn wheel(app: &mut App, event: MouseEvent, by: i16, effects: &mut Vec<Effect>) {
    if app.ui.overlay.is_none() {
        focus_at(app, event.column, event.row);
    }
    if !matches!(app.ui.overlay, Some(Overlay::Prompt(_) | Overlay::Dialog(_))) {
        act::act(app, Action::Move(by), effects);
    }
}

fn focus_at(app: &mut App, x: u16, y: u16) -> Option<(PaneId, Rect)> {
    let (at, id, area) = layout::arrange(app).pane_at(x, y)?;
    if !app.ui.zoomed && app.ui.detail.is_none() {
        app.ui.focus = at;
    }
    Some((id, area))
}

fn click(app: &mut App, x: u16, y: u16, effects: &mut Vec<Effect>) {
    if layout::too_small(app.ui.size) {
        return;
    }
    let footer = layout::arrange(app).footer;
    if y == footer.y {
        let hit = footer_parts(app, footer).into_iter().find(|(at, w, _)| x >= *at && x < at + w);
        match (hit, app.ui.overlay.is_some()) {
            (Some((_, _, FooterPart::Tab(view))), false) => act::act(app, Action::View(view), effects),
            (Some((_, _, FooterPart::Key(b))), false) => act::act(app, b.action, effects),
            _ => {}
        }
        return;
    }
    if app.ui.overlay.is_some() {
        // A click beside a question or the help leaves it, as Esc does.
        return act::act(app, Action::Back, effects);
    }
    let Some((id, area)) = focus_at(app, x, y) else { return };
    let inner = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    if x < inner.x || x >= inner.right() || y < inner.y || y >= inner.bottom() {
        return;
    }
    match id {
        PaneId::Devices => click_devices(app, inner, x, y),
        PaneId::Syncs | PaneId::SlowSyncs => super::syncs::click(app, id, inner, x, y),
        PaneId::Processes => click_tasks(app, inner, x, y),
        PaneId::Tune | PaneId::TuneChanges => super::tune::click(app, id, inner, y),
        PaneId::Findings | PaneId::FindingPage => super::findings::click(app, id, inner.height, y - inner.y),
        PaneId::FindingsStrip => act::act(app, Action::Open, effects),
        PaneId::BenchList | PaneId::Bench => super::bench::click(app, id, inner, x, y),
        PaneId::ExperimentList | PaneId::Experiment => super::experiment::click(app, id, inner, x, y),
        PaneId::Kernel => {
            if let Some((first, at)) = kernel::entry_at(app, inner.height, y - inner.y) {
                app.ui.kernel.scroll = Scroll { offset: first, selected: at };
                app.ui.kernel.pinned = at + 1 == app.ui.kernel.shown.len();
            }
        }
        _ => {}
    }
}

fn click_devices(app: &mut App, inner: Rect, x: u16, y: u16) {
    if y == inner.y {
        let (set, fitted) = devices::fitted(app, inner.width);
        let Some(at) = fitted.column_at(x - inner.x) else { return };
        let all = devices::columns(app, u16::MAX);
        let at = all.iter().position(|c| c.id == set[at].id);
        // A second click on the same head turns the order round; on the name it is the tree again.
        match at {
            Some(0) => app.ui.devices.sort = None,
            same if same == app.ui.devices.sort => app.ui.devices.reverse = !app.ui.devices.reverse,
            other => app.ui.devices.sort = other,
        }
        return;
    }
    let len = devices::lines(app).len();
    let scroll = &mut app.ui.devices.scroll;
    scroll.follow(len, usize::from(inner.height.saturating_sub(1)));
    let at = scroll.offset + usize::from(y - inner.y - 1);
    if at < len {
        scroll.selected = at;
    }
}

fn click_tasks(app: &mut App, inner: Rect, x: u16, y: u16) {
    if y == inner.y {
        let (set, fitted) = processes::fitted(app, inner.width);
        let Some(at) = fitted.column_at(x - inner.x) else { return };
        if set[at].id == processes::query(app, 0, 0).sort_by {
            app.ui.procs.reverse = !app.ui.procs.reverse;
        } else {
            act::sort_tasks(app, set[at].id);
        }
        return;
    }
    let at = app.ui.procs.scroll.offset + usize::from(y - inner.y - 1);
    if at < app.task_count() {
        app.ui.procs.scroll.selected = at;
    }
}
