//! The line below the header of a replay: the whole recording, with its findings and the place on screen.

use super::state::App;
use crate::doctor::finding::Severity;
use crate::tui::replay_timeline::TimelineSlot;
use crate::tui::view::Shared;
use crate::tui::widgets::{CellBuffer, Rect, Style, Theme, draw_text};

/// Cells of a time of day with a space on both sides.
const TIME_WIDTH: u16 = 10;

/// Draws the line between the times of its ends.
pub(super) fn draw_timeline(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let Some(replay) = shared.replay.as_ref().filter(|_| !area.is_empty()) else { return };
    let [first, last] = [replay.span.first_ns, replay.span.last_ns].map(|ns| shared.format_time_of_day(ns));
    draw_text(buf, area.x + 1, area.y, &first, TIME_WIDTH, theme.dim);
    draw_text(buf, area.right().saturating_sub(TIME_WIDTH - 1), area.y, &last, TIME_WIDTH, theme.dim);
    let bar = bar_area(area);
    let cells = usize::from(bar.width);
    let here = replay.timeline.position(shared.snapshot().time.wall_ns, cells);
    for i in 0..cells {
        let (symbol, style) = cell(replay.timeline.part(i, cells), i == here, theme);
        draw_text(buf, bar.x + i as u16, bar.y, symbol, 1, style);
    }
}

/// The line without the times.
fn bar_area(area: Rect) -> Rect {
    Rect { x: area.x + TIME_WIDTH, width: area.width.saturating_sub(2 * TIME_WIDTH), ..area }
}

fn cell(slot: TimelineSlot, is_here: bool, theme: &Theme) -> (&'static str, Style) {
    let (symbol, style) = match slot {
        TimelineSlot::NotJudged => ("·", theme.dim),
        TimelineSlot::Judged(None | Some(Severity::Note)) => ("─", theme.dim),
        TimelineSlot::Judged(Some(Severity::Warn)) => (Severity::Warn.symbol(), theme.warn),
        TimelineSlot::Judged(Some(Severity::Critical)) => (Severity::Critical.symbol(), theme.crit),
    };
    match slot {
        _ if !is_here => (symbol, style),
        TimelineSlot::Judged(Some(_)) => ("┃", style),
        _ => ("┃", theme.title),
    }
}

impl App {
    /// The time at a cell of the timeline, wall clock, ns since 1970.
    pub(super) fn timeline_click(&self, x: u16, y: u16) -> Option<i64> {
        let replay = self.shared.replay.as_ref()?;
        let area = self.arrange().0.timeline;
        let bar = bar_area(area);
        let is_inside = !area.is_empty() && y == bar.y && x >= bar.x && x < bar.right();
        is_inside.then(|| replay.timeline.time_of(usize::from(x - bar.x), usize::from(bar.width)))
    }
}
