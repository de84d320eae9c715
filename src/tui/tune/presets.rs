//! The presets as rows: what each would change on this machine.

use super::{TuneUi, cached_knobs};
use crate::sanitize::sanitize;
use crate::tuning::presets::PRESETS;

/// A preset, ready to be shown.
pub struct PresetRow {
    /// As it is called on the command line.
    pub name: &'static str,
    /// What it is for.
    pub title: &'static str,
    /// What it does and costs.
    pub description: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What it changes here, and whether it stands so already; or why it cannot be applied.
    pub diff: Result<Vec<(String, bool)>, String>,
    /// Settings this machine does not have.
    pub missing_knobs: Vec<String>,
}

/// All of them.
pub fn preset_rows(tune: &TuneUi) -> Vec<PresetRow> {
    let Some(survey) = &tune.snapshot else { return Vec::new() };
    let one = |preset: &'static crate::tuning::presets::Preset| {
        let (words, missing) = cached_knobs::preset_assignments(survey, preset);
        let diff = cached_knobs::diff_assignments(survey, &words).map_err(|why| sanitize(why.to_string()));
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
