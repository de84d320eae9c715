//! Plans persistent values from command-line arguments, writes them, and reports which will be in force after a
//! reboot.

use super::knob::PersistMethod;
use super::knob_id::KnobId;
use super::knob_io::KnobIo;
use super::machine_limits::MachineLimits;
use super::persist::{file_for, update_files};
use super::plan::{TuneError, plan_writes};
use super::sysctl::{BootSysctls, display_path};
use crate::root::Root;

/// Knobs and the values to persist; `None` removes the knob from our file.
pub(crate) type PersistChanges = Vec<(KnobId, Option<String>)>;

/// Parses `KNOB` (the current value) and `KNOB=VALUE` arguments; checks all of them.
pub(crate) fn plan_persist(
    root: &Root,
    io: &mut dyn KnobIo,
    arguments: &[String],
) -> Result<PersistChanges, TuneError> {
    let (assignments, knobs): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(|w| w.contains('='));
    let mut changes: PersistChanges = plan_writes(io, &MachineLimits::read(root), &assignments)?
        .into_iter()
        .map(|p| (p.knob, Some(p.target)))
        .collect();
    for argument in &knobs {
        let knob_id = KnobId::parse(argument)?;
        let value = io.read(&knob_id)?.value;
        if value == "0"
            && knob_id.definition().name.starts_with("vm.dirty_")
            && !knob_id.definition().linked().is_empty()
        {
            let other = knob_id.with_linked().pop().map(|o| o.to_string()).unwrap_or_default();
            return Err(TuneError::Usage(format!("{knob_id} is 0 because {other} is in force; persist that one")));
        }
        changes.push((knob_id, Some(value)));
    }
    require_persistable(root, &changes)?;
    Ok(changes)
}

/// Parses the knobs to remove from our files.
pub(crate) fn plan_unpersist(root: &Root, arguments: &[String]) -> Result<PersistChanges, TuneError> {
    let one = |w: &String| Ok((KnobId::parse(w)?, None));
    let changes = arguments.iter().map(one).collect::<Result<PersistChanges, TuneError>>()?;
    require_persistable(root, &changes)?;
    Ok(changes)
}

fn require_persistable(root: &Root, changes: &PersistChanges) -> Result<(), TuneError> {
    changes.iter().try_for_each(|(knob_id, _)| {
        file_for(root, knob_id).map(drop).map_err(|error| TuneError::Usage(error.to_string()))
    })
}

/// Writes the files. Reports which were written and which values will be in force after a reboot. Accesses /etc, so
/// the caller must be able to wait.
pub(crate) fn write_and_report(root: &Root, changes: &PersistChanges) -> Result<Vec<String>, TuneError> {
    let mut lines = Vec::new();
    for path in update_files(root, changes).map_err(|error| TuneError::Failed(error.to_string()))? {
        let how = if path.exists() { "wrote" } else { "nothing is left in" };
        lines.push(format!("{how} {}", display_path(root, &path)));
    }
    let next = BootSysctls::read(root);
    for (knob_id, value) in
        changes.iter().filter(|(knob_id, _)| knob_id.definition().persist_method == PersistMethod::Sysctl)
    {
        let (Some(value), Some(decided)) = (value, next.effective(knob_id)) else { continue };
        lines.push(match file_for(root, knob_id).is_ok_and(|own| own == decided.file) {
            true => format!("{knob_id} will be {value} at the next boot"),
            false => format!(
                "WARNING: {knob_id} will be {} at the next boot, not {value}: {} comes after our file; change it there",
                decided.value, decided.location
            ),
        });
    }
    Ok(lines)
}
