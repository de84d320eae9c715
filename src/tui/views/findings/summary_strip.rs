//! The worst incidents in a few rows at the top of the Overview.

use super::FindingsView;
use super::list::draw_incidents;
use crate::export::findings::summarize;
use crate::tui::view::Shared;
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_frame, draw_text};

/// Most incidents shown here; the Findings tab has all.
const MAX_INCIDENTS: usize = 4;
/// Rows that the Overview must have for the strip to appear without incidents.
const MIN_BODY_WHEN_HEALTHY: u16 = 30;
/// Rows that the Overview must have for the strip to appear with incidents.
const MIN_BODY_WITH_INCIDENTS: u16 = 15;

impl FindingsView {
    /// Rows of the strip in a body of this height.
    pub fn summary_height(body: u16, stories: usize) -> u16 {
        match stories {
            0 if body < MIN_BODY_WHEN_HEALTHY => 0,
            _ if body < MIN_BODY_WITH_INCIDENTS => 0,
            // A low screen shows only the worst incident.
            _ if body < MIN_BODY_WHEN_HEALTHY => 3,
            n => n.clamp(1, MAX_INCIDENTS) as u16 + 2,
        }
    }

    pub(super) fn render_summary(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
        let note = format!("{}  8 all", summarize(&shared.findings));
        let inner = draw_frame(buf, area, "What is wrong", &note, focused, theme);
        if shared.findings.incidents().is_empty() {
            draw_text(buf, inner.x, inner.y, "nothing wrong found", inner.width, theme.dim);
            return;
        }
        draw_incidents(shared, theme, inner, buf, 0, None);
    }
}
