//! The presets as rows: what each would change on this machine.

use super::{TuneUi, known};
use crate::text::sanitize;
use crate::tune::presets::PRESETS;

/// A preset, ready to be shown.
pub struct Choice {
    /// As it is called on the command line.
    pub name: &'static str,
    /// What it is for.
    pub title: &'static str,
    /// What it does and costs.
    pub about: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What it changes here, and whether it stands so already; or why it cannot be applied.
    pub diff: Result<Vec<(String, bool)>, String>,
    /// Settings this machine does not have.
    pub missing: Vec<String>,
}

/// All of them.
pub fn choices(tune: &TuneUi) -> Vec<Choice> {
    let Some(survey) = &tune.survey else { return Vec::new() };
    let one = |preset: &'static crate::tune::presets::Preset| {
        let (words, missing) = known::preset_words(survey, preset);
        let diff = known::diff(survey, &words).map_err(|why| sanitize(why.to_string()));
        Choice {
            name: preset.name,
            title: preset.title,
            about: preset.about,
            source: preset.source,
            diff: diff.map(|all| all.into_iter().map(|d| (d.text, d.same)).collect()),
            missing,
        }
    };
    PRESETS.iter().map(one).collect()
}
