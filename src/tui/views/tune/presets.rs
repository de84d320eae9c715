//! The presets: purpose and cost of each, and what it would change here.

use super::TuneView;
use super::cached_knobs::{self, CachedKnobs};
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::KnobSnapshot;
use crate::tui::view::{Action, Context, ExperimentAction};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_frame, draw_text, highlight_row, wrap,
};
use crate::tuning::presets::{PRESETS, Preset};

impl TuneView {
    pub(super) fn render_presets(&self, cx: &Context, area: Rect, buf: &mut CellBuffer, at: usize) {
        let theme = &cx.theme;
        let [apply, close] = [Action::Open, Action::Back].map(|action| cx.shared.key(action));
        let try_it = cx.shared.key(Action::Experiment(ExperimentAction::TryPending));
        let note = format!("{apply} apply  {try_it} experiment  {close} close");
        let inner = draw_frame(buf, area, "Presets", &note, true, theme);
        let Some(snapshot) = &self.knobs.snapshot else { return };
        for (i, (preset, y)) in PRESETS.iter().zip(inner.y..inner.bottom()).enumerate() {
            draw_text(buf, inner.x + 1, y, preset.name, 12, theme.key);
            draw_text(buf, inner.x + 13, y, preset.title, inner.width.saturating_sub(13), theme.text);
            if i == at {
                highlight_row(buf, inner, y, theme);
            }
        }
        if let Some(preset) = PRESETS.get(at) {
            draw_preset(snapshot, preset, theme, area_below(inner, PRESETS.len() as u16 + 1), buf);
        }
    }
}

fn draw_preset(snapshot: &KnobSnapshot, preset: &Preset, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let width = usize::from(area.width.min(100));
    let mut lines: Vec<(String, Style)> = Vec::new();
    let mut add = |text: &str, style| lines.extend(wrap(text, width).into_iter().map(|l| (l, style)));
    add(preset.description, theme.text);
    add(&format!("Source: {}", preset.source), theme.dim);
    add("", theme.text);
    let (assignments, missing) = preset.available_assignments(&mut CachedKnobs(snapshot));
    match cached_knobs::diff_assignments(snapshot, &assignments) {
        Err(why) => add(&format!("! {}", sanitize(why.to_string())), theme.crit),
        Ok(diffs) => {
            for diff in diffs {
                add(&diff.text, if diff.is_unchanged { theme.dim } else { theme.changed });
            }
        }
    }
    for assignment in missing {
        add(&format!("{assignment}: not available on this machine, left out"), theme.dim);
    }
    draw_column(buf, area, lines);
}
