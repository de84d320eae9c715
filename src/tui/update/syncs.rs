//! The Syncs view: moving, sorting, ways on; and that syncs are traced only while it is open.

use super::actions;
use crate::model::columns::syncs::SYNC_COLUMNS;
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::panes::syncs::{self as pane, slow};
use crate::tui::settings::SYNC_THRESHOLD_MS_RANGE;
use crate::tui::state::App;
use ratatui::layout::Rect;

/// Tells the collector what is wanted, if that has changed. However a view is come to or left: this comes after.
pub fn update_trace_request(app: &mut App, effects: &mut Vec<Effect>) {
    let wanted = app.slow_sync_threshold();
    if wanted != app.views.syncs.requested_threshold {
        app.views.syncs.requested_threshold = wanted;
        effects.push(Effect::ListSlowSyncs(wanted));
    }
}

/// `:syncs MS`
pub fn set_threshold(app: &mut App, text: &str) -> Result<(), String> {
    let ms = text.trim_end_matches("ms").trim().parse().ok().filter(|ms| SYNC_THRESHOLD_MS_RANGE.contains(ms));
    let ms =
        ms.ok_or_else(|| format!("syncs \"{text}\": must be 0 to {} milliseconds", SYNC_THRESHOLD_MS_RANGE.end()))?;
    app.views.syncs.threshold_ms = ms;
    app.screen.info(format!("syncs that take {ms} ms are listed one by one"));
    Ok(())
}

/// The page of the process that waits.
pub fn open_process(app: &mut App, effects: &mut Vec<Effect>) {
    let pid = match app.focused_pane() {
        PaneId::Syncs => pane::sync_lines(app).get(app.views.syncs.scroll.selected).map(|l| l.rate.file.pid),
        _ => slow::slow_sync_lines(app).get(app.views.syncs.slow_scroll.selected).map(|l| l.file.pid),
    };
    let Some(pid) = pid else { return };
    let key = app.shared.system.processes.live_tasks().map(|(_, raw)| raw.key).find(|key| key.pid == pid);
    match key {
        Some(key) => actions::open_task(app, key, effects),
        None => app.screen.error(format!("process {pid} has ended, or is not seen yet")),
    }
}

/// Moves the selection.
pub fn move_selection(app: &mut App, by: isize) {
    match app.focused_pane() {
        PaneId::Syncs => {
            let len = pane::sync_lines(app).len();
            app.views.syncs.scroll.move_selection(by, len);
        }
        _ => {
            let len = slow::slow_sync_lines(app).len();
            app.views.syncs.slow_scroll.move_selection(by, len);
        }
    }
}

/// Moves the sort column; before the first there is a place for the order by waiting.
pub fn move_sort_column(app: &mut App, by: isize) {
    let at = app.views.syncs.sort_column.map_or(0, |i| i as isize + 1) + by;
    let at = at.rem_euclid(SYNC_COLUMNS.len() as isize + 1);
    app.views.syncs.sort_column = (at > 0).then(|| at as usize - 1);
}

/// Passes over one column more or less.
pub fn scroll_columns(app: &mut App, by: isize) {
    app.views.syncs.column_offset = app.views.syncs.column_offset.saturating_add_signed(by).min(SYNC_COLUMNS.len() - 3);
}

/// Which lines of the focused list contain a text.
pub fn matching_lines(app: &App, needle: &str) -> Vec<bool> {
    let has = |texts: [&str; 3]| texts.iter().any(|t| t.to_lowercase().contains(needle));
    match app.focused_pane() {
        PaneId::Syncs => pane::sync_lines(app).iter().map(|l| has([&l.comm, &l.path, &l.device])).collect(),
        _ => {
            let on = |l: &crate::model::syncs::SlowSyncRow| l.waiting_on.clone().unwrap_or_default();
            slow::slow_sync_lines(app).iter().map(|l| has([&l.comm, &l.path, &on(l)])).collect()
        }
    }
}

/// A click into one of the lists: a head sorts, a row is selected.
pub fn on_click(app: &mut App, id: PaneId, inner: Rect, x: u16, y: u16) {
    if y == inner.y {
        let (_, fitted) = pane::fitted_columns(app, inner.width);
        let Some(at) = fitted.column_at(x - inner.x).filter(|_| id == PaneId::Syncs) else { return };
        let s = &mut app.views.syncs;
        if s.sort_column == Some(at) {
            s.reverse = !s.reverse
        } else {
            s.sort_column = Some(at)
        }
        return;
    }
    let len = match id {
        PaneId::Syncs => pane::sync_lines(app).len(),
        _ => slow::slow_sync_lines(app).len(),
    };
    let s = &mut app.views.syncs;
    let scroll = if id == PaneId::Syncs { &mut s.scroll } else { &mut s.slow_scroll };
    let mut shown = *scroll;
    shown.scroll_into_view(len, usize::from(inner.height.saturating_sub(1)));
    let at = shown.offset + usize::from(y - inner.y - 1);
    if at < len {
        scroll.selected = at;
    }
}
