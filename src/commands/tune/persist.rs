//! `tune persist` and `tune unpersist`.

use super::super::FINE;
use super::out::Out;
use super::{Done, addresses, careful, need_root};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::kernel::KnobIo;
use crate::tune::knob::Persist;
use crate::tune::machine::Machine;
use crate::tune::persist::{change, file};
use crate::tune::plan::{Refusal, plan};
use crate::tune::sysctl::{NextBoot, shown};

/// Writes values into our files: the given ones, or those in force.
pub fn persist(root: &Root, words: &[String]) -> Done {
    let mut io = careful(root);
    let (given, bare): (Vec<String>, Vec<String>) = words.iter().cloned().partition(|w| w.contains('='));
    let mut wanted: Vec<(Address, Option<String>)> =
        plan(&mut io, &Machine::read(root), &given)?.into_iter().map(|p| (p.at, Some(p.want))).collect();
    for at in addresses(&bare)? {
        let value = io.read(&at)?.value;
        if value == "0" && at.knob().name.starts_with("vm.dirty_") && !at.knob().linked().is_empty() {
            let other = at.group().pop().map(|o| o.to_string()).unwrap_or_default();
            return Err(Refusal::Usage(format!("{at} is 0 because {other} is in force; persist that one")));
        }
        wanted.push((at, Some(value)));
    }
    for (at, _) in &wanted {
        file(root, at).map_err(Refusal::Usage)?;
    }
    need_root(root, "writing below /etc")?;
    let files = change(root, &wanted).map_err(Refusal::Failed)?;
    let mut out = Out::default();
    for path in files {
        out.line(format!("wrote {}", shown(root, &path)));
    }
    let next = NextBoot::read(root);
    for (at, value) in wanted.iter().filter(|(at, _)| at.knob().persist == Persist::Sysctl) {
        let (Some(value), Some(decided)) = (value, next.of(at)) else { continue };
        match file(root, at).is_ok_and(|own| own == decided.file) {
            true => out.line(format!("{at} will be {value} at the next boot")),
            false => out.line(format!(
                "WARNING: {at} will be {} at the next boot, not {value}: {} comes after our file; change it there",
                decided.value, decided.from
            )),
        }
    }
    Ok(out.print().map(|()| FINE))
}

/// Takes values out of our files. What is in force now stays.
pub fn unpersist(root: &Root, words: &[String]) -> Done {
    let wanted: Vec<(Address, Option<String>)> = addresses(words)?.into_iter().map(|at| (at, None)).collect();
    for (at, _) in &wanted {
        file(root, at).map_err(Refusal::Usage)?;
    }
    need_root(root, "writing below /etc")?;
    let files = change(root, &wanted).map_err(Refusal::Failed)?;
    let mut out = Out::default();
    for path in files {
        let how = if path.exists() { "wrote" } else { "nothing is left in" };
        out.line(format!("{how} {}", shown(root, &path)));
    }
    Ok(out.print().map(|()| FINE))
}
