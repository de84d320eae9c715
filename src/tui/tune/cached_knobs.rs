//! What is known of the knobs, as a kernel that can only be asked: so that a request is checked as the tuner
//! will check it, before anything is asked of anybody.

use super::knob_snapshot::KnobSnapshot;
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::plan::{PlannedWrite, TuneError, plan_writes};
use crate::tuning::value;

struct CachedKnobs<'a>(&'a KnobSnapshot);

impl KnobIo for CachedKnobs<'_> {
    fn read(&mut self, at: &KnobId) -> Result<KnobReading, KnobError> {
        let row = self.0.rows.iter().find(|r| r.id == *at);
        row.map_or_else(|| Err(KnobError::Absent(format!("{at}: not on this machine"))), |r| r.reading.clone())
    }

    fn write(&mut self, at: &KnobId, _: &str) -> Result<(), KnobError> {
        Err(KnobError::Denied(format!("{at}: only a tuner writes")))
    }

    fn identity(&mut self, at: &KnobId) -> Result<String, KnobError> {
        self.read(at).map(|_| String::new())
    }
}

/// One knob's part of a change, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobDiff {
    /// Which, raw.
    pub name: String,
    /// In words, cleaned: `vm.dirty_ratio: 20 % (4.05 GiB here) -> 80 % (16.2 GiB here)`.
    pub text: String,
    /// It stands so already.
    pub is_unchanged: bool,
}

/// Checks the words as the tuner will, and says what would change.
pub fn diff_assignments(survey: &KnobSnapshot, words: &[String]) -> Result<Vec<KnobDiff>, TuneError> {
    let planned = plan_writes(&mut CachedKnobs(survey), &survey.machine, words)?;
    Ok(planned.iter().map(|p| knob_diff(survey, p)).collect())
}

fn knob_diff(survey: &KnobSnapshot, p: &PlannedWrite) -> KnobDiff {
    let show = |v: &str| value::format_with_meaning(p.knob.definition(), v, &survey.machine);
    let same = p.current.value == p.target;
    let mut text = match same {
        true => format!("{}: stands at {} already", p.knob, show(&p.target)),
        false => format!("{}: {} -> {}", p.knob, show(&p.current.value), show(&p.target)),
    };
    if let Some((other, now)) = p.zeroed_partner.as_ref().filter(|_| !same) {
        text += &format!("; sets {other} from {} to 0", value::format_short(other.definition(), now));
    }
    KnobDiff { name: p.knob.to_string(), text: crate::sanitize::sanitize(text), is_unchanged: same }
}

/// What of a preset this machine has, and what not, `KNOB=VALUE` each.
pub fn preset_assignments(
    survey: &KnobSnapshot,
    preset: &crate::tuning::presets::Preset,
) -> (Vec<String>, Vec<String>) {
    preset.available_assignments(&mut CachedKnobs(survey))
}

/// A value as it would be written, from what was typed.
pub fn canonical_value(survey: &KnobSnapshot, name: &str, text: &str) -> Result<String, String> {
    let row = survey.rows.iter().find(|r| r.name == name).ok_or("no such knob any more")?;
    let reading = row.reading.as_ref().map_err(|fail| fail.to_string())?;
    value::parse_value(row.id.definition(), text, &survey.machine, reading).map_err(|error| error.to_string())
}

/// What a value means, as it is shown while it is typed.
pub fn describe_value(survey: &KnobSnapshot, name: &str, value: &str) -> String {
    let Some(row) = survey.rows.iter().find(|r| r.name == name) else { return String::new() };
    crate::sanitize::sanitize(value::format_with_meaning(row.id.definition(), value, &survey.machine))
}

/// The same in few characters.
pub fn short_value(at: &KnobId, value: &str) -> String {
    crate::sanitize::sanitize(value::format_short(at.definition(), value))
}
