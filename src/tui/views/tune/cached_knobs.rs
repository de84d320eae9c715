//! The knob values of the last snapshot as a read-only [`KnobIo`], so that a request is checked here as the tuner will
//! check it, before the user confirms it.

use crate::tui::knob_snapshot::KnobSnapshot;
use crate::tuning::knob_id::KnobId;
use crate::tuning::knob_io::{KnobError, KnobIo, KnobReading};
use crate::tuning::plan::{PlannedWrite, TuneError, plan_writes};
use crate::tuning::value;

pub(super) struct CachedKnobs<'a>(pub(super) &'a KnobSnapshot);

impl KnobIo for CachedKnobs<'_> {
    fn read(&mut self, knob_id: &KnobId) -> Result<KnobReading, KnobError> {
        let row = self.0.rows.iter().find(|r| r.id == *knob_id);
        let row = row.ok_or_else(|| KnobError::Absent(format!("{knob_id}: does not exist on this machine")))?;
        row.reading.clone()
    }

    fn write(&mut self, knob_id: &KnobId, _: &str) -> Result<(), KnobError> {
        Err(KnobError::Denied(format!("{knob_id}: only the tuner process writes knobs")))
    }

    fn identity(&mut self, knob_id: &KnobId) -> Result<String, KnobError> {
        self.read(knob_id).map(|_| String::new())
    }
}

/// The effect of a change on one knob, ready for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnobDiff {
    pub name: String,
    /// Old and new value, sanitized: `vm.dirty_ratio: 20 % (4.05 GiB here) -> 80 % (16.2 GiB here)`.
    pub text: String,
    pub is_unchanged: bool,
}

/// Checks `KNOB=VALUE` assignments as the tuner will, and returns what would change.
pub(super) fn diff_assignments(snapshot: &KnobSnapshot, assignments: &[String]) -> Result<Vec<KnobDiff>, TuneError> {
    let planned = plan_writes(&mut CachedKnobs(snapshot), &snapshot.machine, assignments)?;
    Ok(planned.iter().map(|write| knob_diff(snapshot, write)).collect())
}

fn knob_diff(snapshot: &KnobSnapshot, write: &PlannedWrite) -> KnobDiff {
    let format = |v: &str| value::format_with_meaning(write.knob.definition(), v, &snapshot.machine);
    let is_unchanged = write.current.value == write.target;
    let mut text = match is_unchanged {
        true => format!("{}: is {} already", write.knob, format(&write.target)),
        false => format!("{}: {} -> {}", write.knob, format(&write.current.value), format(&write.target)),
    };
    if let Some((other, now)) = write.zeroed_partner.as_ref().filter(|_| !is_unchanged) {
        text += &format!("; sets {other} from {} to 0", value::format_short(other.definition(), now));
    }
    KnobDiff { name: write.knob.to_string(), text: crate::sanitize::sanitize(text), is_unchanged }
}

/// Converts typed text to the value the kernel would be given.
pub(super) fn canonical_value(snapshot: &KnobSnapshot, name: &str, text: &str) -> Result<String, String> {
    let row = snapshot.rows.iter().find(|r| r.name == name).ok_or("this knob no longer exists")?;
    let reading = row.reading.as_ref().map_err(|fail| fail.to_string())?;
    value::parse_value(row.knob(), text, &snapshot.machine, reading).map_err(|error| error.to_string())
}

/// Describes a value as it is being typed.
pub(super) fn describe_value(snapshot: &KnobSnapshot, name: &str, value: &str) -> String {
    let Some(row) = snapshot.rows.iter().find(|r| r.name == name) else { return String::new() };
    crate::sanitize::sanitize(value::format_with_meaning(row.knob(), value, &snapshot.machine))
}
