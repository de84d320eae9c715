//! What is known of the knobs, as a kernel that can only be asked: so that a request is checked as the tuner
//! will check it, before anything is asked of anybody.

use super::survey::Survey;
use crate::tune::address::Address;
use crate::tune::kernel::{Fail, KnobIo, Reading};
use crate::tune::plan::{Planned, Refusal, plan};
use crate::tune::value;

struct Known<'a>(&'a Survey);

impl KnobIo for Known<'_> {
    fn read(&mut self, at: &Address) -> Result<Reading, Fail> {
        let row = self.0.rows.iter().find(|r| r.at == *at);
        row.map_or_else(|| Err(Fail::Absent(format!("{at}: not on this machine"))), |r| r.reading.clone())
    }

    fn write(&mut self, at: &Address, _: &str) -> Result<(), Fail> {
        Err(Fail::Denied(format!("{at}: only a tuner writes")))
    }

    fn identity(&mut self, at: &Address) -> Result<String, Fail> {
        self.read(at).map(|_| String::new())
    }
}

/// One knob's part of a change, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Which, raw.
    pub name: String,
    /// In words, cleaned: `vm.dirty_ratio: 20 % (4.05 GiB here) -> 80 % (16.2 GiB here)`.
    pub text: String,
    /// It stands so already.
    pub same: bool,
}

/// Checks the words as the tuner will, and says what would change.
pub fn diff(survey: &Survey, words: &[String]) -> Result<Vec<Diff>, Refusal> {
    let planned = plan(&mut Known(survey), &survey.machine, words)?;
    Ok(planned.iter().map(|p| one(survey, p)).collect())
}

fn one(survey: &Survey, p: &Planned) -> Diff {
    let show = |v: &str| value::show(p.at.knob(), v, &survey.machine);
    let same = p.now.value == p.want;
    let mut text = match same {
        true => format!("{}: stands at {} already", p.at, show(&p.want)),
        false => format!("{}: {} -> {}", p.at, show(&p.now.value), show(&p.want)),
    };
    if let Some((other, now)) = p.zeroes.as_ref().filter(|_| !same) {
        text += &format!("; sets {other} from {} to 0", value::brief(other.knob(), now));
    }
    Diff { name: p.at.to_string(), text: crate::text::sanitize(text), same }
}

/// What of a preset this machine has, and what not, `KNOB=VALUE` each.
pub fn preset_words(survey: &Survey, preset: &crate::tune::presets::Preset) -> (Vec<String>, Vec<String>) {
    preset.words_here(&mut Known(survey))
}

/// A value as it would be written, from what was typed.
pub fn canonical(survey: &Survey, name: &str, text: &str) -> Result<String, String> {
    let row = survey.rows.iter().find(|r| r.name == name).ok_or("no such knob any more")?;
    let reading = row.reading.as_ref().map_err(|fail| fail.text().to_owned())?;
    value::canonical(row.at.knob(), text, &survey.machine, reading)
}

/// What a value means, as it is shown while it is typed.
pub fn meaning(survey: &Survey, name: &str, value: &str) -> String {
    let Some(row) = survey.rows.iter().find(|r| r.name == name) else { return String::new() };
    crate::text::sanitize(value::show(row.at.knob(), value, &survey.machine))
}

/// The same in few characters.
pub fn brief(at: &Address, value: &str) -> String {
    crate::text::sanitize(value::brief(at.knob(), value))
}
