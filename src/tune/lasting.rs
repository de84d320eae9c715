//! Making values last over a boot, from what a person typed to the lines that say what came of it.

use super::address::Address;
use super::kernel::KnobIo;
use super::knob::Persist;
use super::machine::Machine;
use super::persist::{change, file};
use super::plan::{Refusal, plan};
use super::sysctl::{NextBoot, shown};
use crate::root::Root;

/// A knob and what our file is to say of it; `None`: nothing any more.
pub type Wanted = Vec<(Address, Option<String>)>;

/// Reads `KNOB` (the value in force) and `KNOB=VALUE` words; all is checked before anything is written.
pub fn wanted(root: &Root, io: &mut dyn KnobIo, words: &[String]) -> Result<Wanted, Refusal> {
    let (given, bare): (Vec<String>, Vec<String>) = words.iter().cloned().partition(|w| w.contains('='));
    let mut wanted: Wanted =
        plan(io, &Machine::read(root), &given)?.into_iter().map(|p| (p.at, Some(p.want))).collect();
    for word in &bare {
        let at = Address::parse(word).map_err(Refusal::Usage)?;
        let value = io.read(&at)?.value;
        if value == "0" && at.knob().name.starts_with("vm.dirty_") && !at.knob().linked().is_empty() {
            let other = at.group().pop().map(|o| o.to_string()).unwrap_or_default();
            return Err(Refusal::Usage(format!("{at} is 0 because {other} is in force; persist that one")));
        }
        wanted.push((at, Some(value)));
    }
    check(root, &wanted)?;
    Ok(wanted)
}

/// Reads words that name knobs our files are to say nothing of any more.
pub fn unwanted(root: &Root, words: &[String]) -> Result<Wanted, Refusal> {
    let one = |w: &String| Ok((Address::parse(w).map_err(Refusal::Usage)?, None));
    let wanted = words.iter().map(one).collect::<Result<Wanted, Refusal>>()?;
    check(root, &wanted)?;
    Ok(wanted)
}

fn check(root: &Root, wanted: &Wanted) -> Result<(), Refusal> {
    wanted.iter().try_for_each(|(at, _)| file(root, at).map(drop).map_err(Refusal::Usage))
}

/// Writes it, and says which files were written and what will win at the next boot. Touches /etc: only for a
/// process that may wait.
pub fn write(root: &Root, wanted: &Wanted) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    for path in change(root, wanted).map_err(Refusal::Failed)? {
        let how = if path.exists() { "wrote" } else { "nothing is left in" };
        lines.push(format!("{how} {}", shown(root, &path)));
    }
    let next = NextBoot::read(root);
    for (at, value) in wanted.iter().filter(|(at, _)| at.knob().persist == Persist::Sysctl) {
        let (Some(value), Some(decided)) = (value, next.of(at)) else { continue };
        lines.push(match file(root, at).is_ok_and(|own| own == decided.file) {
            true => format!("{at} will be {value} at the next boot"),
            false => format!(
                "WARNING: {at} will be {} at the next boot, not {value}: {} comes after our file; change it there",
                decided.value, decided.from
            ),
        });
    }
    Ok(lines)
}
