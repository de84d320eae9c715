//! Presets as rows: what each would change on this machine.

use crate::sanitize::sanitize;
use crate::tui::views::tune::{TuneUi, cached_knobs};
use crate::tuning::presets::PRESETS;

/// A preset, ready for display.
pub struct PresetRow {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub title: &'static str,
    /// What it does and what it costs.
    pub description: &'static str,
    /// Reference for `description`.
    pub source: &'static str,
    /// What it would change, and whether each value is set already; or why it cannot be applied.
    pub diff: Result<Vec<(String, bool)>, String>,
    /// Assignments for knobs this machine does not have.
    pub missing_knobs: Vec<String>,
}

/// All presets.
pub fn preset_rows(tune: &TuneUi) -> Vec<PresetRow> {
    let Some(snapshot) = &tune.snapshot else { return Vec::new() };
    let one = |preset: &'static crate::tuning::presets::Preset| {
        let (assignments, missing) = cached_knobs::preset_assignments(snapshot, preset);
        let diff = cached_knobs::diff_assignments(snapshot, &assignments).map_err(|why| sanitize(why.to_string()));
        PresetRow {
            name: preset.name,
            title: preset.title,
            description: preset.description,
            source: preset.source,
            diff: diff.map(|all| all.into_iter().map(|d| (d.text, d.is_unchanged)).collect()),
            missing_knobs: missing,
        }
    };
    PRESETS.iter().map(one).collect()
}
