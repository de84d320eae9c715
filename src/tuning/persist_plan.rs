//! Making values last over a boot, from what a person typed to the lines that say what came of it.

use super::knob::PersistMethod;
use super::knob_id::KnobId;
use super::knob_io::KnobIo;
use super::machine_limits::MachineLimits;
use super::persist::{file_for, update_files};
use super::plan::{TuneError, plan_writes};
use super::sysctl::{BootSysctls, display_path};
use crate::root::Root;

/// A knob and what our file is to say of it; `None`: nothing any more.
pub type PersistChanges = Vec<(KnobId, Option<String>)>;

/// Reads `KNOB` (the value in force) and `KNOB=VALUE` words; all is checked before anything is written.
pub fn plan_persist(root: &Root, io: &mut dyn KnobIo, words: &[String]) -> Result<PersistChanges, TuneError> {
    let (given, bare): (Vec<String>, Vec<String>) = words.iter().cloned().partition(|w| w.contains('='));
    let mut wanted: PersistChanges =
        plan_writes(io, &MachineLimits::read(root), &given)?.into_iter().map(|p| (p.knob, Some(p.target))).collect();
    for word in &bare {
        let at = KnobId::parse(word).map_err(TuneError::Usage)?;
        let value = io.read(&at)?.value;
        if value == "0" && at.knob().name.starts_with("vm.dirty_") && !at.knob().linked().is_empty() {
            let other = at.with_linked().pop().map(|o| o.to_string()).unwrap_or_default();
            return Err(TuneError::Usage(format!("{at} is 0 because {other} is in force; persist that one")));
        }
        wanted.push((at, Some(value)));
    }
    require_persistable(root, &wanted)?;
    Ok(wanted)
}

/// Reads words that name knobs our files are to say nothing of any more.
pub fn plan_unpersist(root: &Root, words: &[String]) -> Result<PersistChanges, TuneError> {
    let one = |w: &String| Ok((KnobId::parse(w).map_err(TuneError::Usage)?, None));
    let wanted = words.iter().map(one).collect::<Result<PersistChanges, TuneError>>()?;
    require_persistable(root, &wanted)?;
    Ok(wanted)
}

fn require_persistable(root: &Root, wanted: &PersistChanges) -> Result<(), TuneError> {
    wanted.iter().try_for_each(|(at, _)| file_for(root, at).map(drop).map_err(TuneError::Usage))
}

/// Writes it, and says which files were written and what will win at the next boot. Touches /etc: only for a
/// process that may wait.
pub fn write_and_report(root: &Root, wanted: &PersistChanges) -> Result<Vec<String>, TuneError> {
    let mut lines = Vec::new();
    for path in update_files(root, wanted).map_err(TuneError::Failed)? {
        let how = if path.exists() { "wrote" } else { "nothing is left in" };
        lines.push(format!("{how} {}", display_path(root, &path)));
    }
    let next = BootSysctls::read(root);
    for (at, value) in wanted.iter().filter(|(at, _)| at.knob().persist_method == PersistMethod::Sysctl) {
        let (Some(value), Some(decided)) = (value, next.effective(at)) else { continue };
        lines.push(match file_for(root, at).is_ok_and(|own| own == decided.file) {
            true => format!("{at} will be {value} at the next boot"),
            false => format!(
                "WARNING: {at} will be {} at the next boot, not {value}: {} comes after our file; change it there",
                decided.value, decided.location
            ),
        });
    }
    Ok(lines)
}
