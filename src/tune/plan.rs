//! From what a person typed to what will be written: everything is checked before anything is.

use super::address::Address;
use super::kernel::{Fail, KnobIo, Reading};
use super::knob::{Link, Place};
use super::machine::Machine;
use super::value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// What was typed is wrong.
    Usage(String),
    /// It would not be safe now.
    Unsafe(String),
    /// It needs a privilege.
    Privilege(String),
    /// It was tried and did not work; what had been written was taken back.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Usage(t) | Refusal::Unsafe(t) | Refusal::Privilege(t) | Refusal::Failed(t) => {
                f.write_str(t)
            }
        }
    }
}

impl From<Fail> for Refusal {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Absent(t) | Fail::Invalid(t) => Refusal::Failed(t),
            Fail::Denied(t) => Refusal::Privilege(t),
            Fail::Blocked(t) => Refusal::Unsafe(t),
        }
    }
}

/// One knob to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Which.
    pub at: Address,
    /// How it stands.
    pub now: Reading,
    /// What will be written.
    pub want: String,
    /// What the kernel will set to 0 along with it, and its value now.
    pub zeroes: Option<(Address, String)>,
}

/// Reads and checks `KNOB[@WHERE]=VALUE` words, all of them before anything is written.
pub fn plan(io: &mut dyn KnobIo, machine: &Machine, words: &[String]) -> Result<Vec<Planned>, Refusal> {
    let mut all: Vec<Planned> = Vec::new();
    for word in words {
        // A mount point may hold an equals sign, a value never does.
        let (knob, text) = word
            .rsplit_once('=')
            .ok_or_else(|| Refusal::Usage(format!("{word}: write KNOB=VALUE, as in vm.dirty_ratio=20")))?;
        let at = Address::parse(knob).map_err(Refusal::Usage)?;
        if all.iter().any(|p| p.at == at || p.at.group().iter().skip(1).any(|o| pair(&p.at) && *o == at)) {
            return Err(Refusal::Usage(format!(
                "{at}: set twice, or together with the other half of its pair"
            )));
        }
        io.identity(&at).map_err(absent_is_usage)?;
        let now = io.read(&at).map_err(absent_is_usage)?;
        let want = value::canonical(at.knob(), text, machine, &now)
            .map_err(|why| Refusal::Usage(format!("{at}: {why}")))?;
        hard_limit(machine, &at, &now.value, &want)?;
        let zeroes = match at.knob().link {
            Link::Pair(other) => at.sibling(other).and_then(|o| io.read(&o).ok().map(|r| (o, r.value))),
            _ => None,
        };
        all.push(Planned { at, now, want, zeroes: zeroes.filter(|(_, v)| v != "0") });
    }
    thresholds(io, machine, &all)?;
    shares(io, &all)?;
    Ok(all)
}

/// A hard limit lowered without the capability to raise it could never be taken back.
fn hard_limit(machine: &Machine, at: &Address, now: &str, want: &str) -> Result<(), Refusal> {
    let hard = |v: &str| v.split_once(':').map(|(_, hard)| hard.to_owned());
    if at.knob().place == Place::Nofile && hard(now) != hard(want) && !machine.sys_resource {
        return Err(Refusal::Privilege(format!(
            "{at}: changing the hard limit (from {now} to {want}) needs CAP_SYS_RESOURCE, lowering it too: it could not \
             be taken back; a soft limit within the hard one can be set"
        )));
    }
    Ok(())
}

fn pair(at: &Address) -> bool {
    matches!(at.knob().link, Link::Pair(_))
}

fn absent_is_usage(fail: Fail) -> Refusal {
    match fail {
        Fail::Absent(text) => Refusal::Usage(text),
        other => other.into(),
    }
}

/// The value a knob will have when all is written.
fn later(io: &mut dyn KnobIo, all: &[Planned], at: &Address) -> Option<u64> {
    if let Some(p) = all.iter().find(|p| p.at == *at) {
        return p.want.parse().ok();
    }
    if all.iter().any(|p| pair(&p.at) && p.at.group().contains(at)) {
        return Some(0);
    }
    io.read(at).ok()?.value.parse().ok()
}

/// Background at or above the limit makes the kernel silently use half the limit: not what was asked for.
fn thresholds(io: &mut dyn KnobIo, machine: &Machine, all: &[Planned]) -> Result<(), Refusal> {
    if !all.iter().any(|p| p.at.knob().name.starts_with("vm.dirty_") && pair(&p.at)) {
        return Ok(());
    }
    let mut one = |name: &str| Address::parse(name).ok().and_then(|at| later(io, all, &at));
    let (bg, bg_bytes) = (one("vm.dirty_background_ratio"), one("vm.dirty_background_bytes"));
    let (fg, fg_bytes) = (one("vm.dirty_ratio"), one("vm.dirty_bytes"));
    let bytes = |ratio: Option<u64>, bytes: Option<u64>| match bytes {
        Some(b) if b > 0 => Some(b),
        _ => machine.percent_in_bytes(ratio?),
    };
    let wrong = match (bg, fg) {
        (Some(b), Some(f)) if b > 0 && f > 0 => b >= f,
        _ => match (bytes(bg, bg_bytes), bytes(fg, fg_bytes)) {
            (Some(b), Some(f)) => b >= f,
            _ => false,
        },
    };
    if wrong {
        let half = |name: &str, ratio: Option<u64>, bytes: Option<u64>| match bytes {
            Some(b) if b > 0 => format!("vm.{name}_bytes={b}"),
            _ => format!("vm.{name}_ratio={}", ratio.unwrap_or(0)),
        };
        return Err(Refusal::Usage(format!(
            "{} would not be below {}: the kernel would silently use half the limit; set both, background first below \
             the limit",
            half("dirty_background", bg, bg_bytes),
            half("dirty", fg, fg_bytes)
        )));
    }
    Ok(())
}

/// A device's kept share above its largest one is refused by the kernel: said before anything is written.
fn shares(io: &mut dyn KnobIo, all: &[Planned]) -> Result<(), Refusal> {
    let devices: BTreeMap<String, Address> = all
        .iter()
        .filter(|p| p.at.knob().name == "bdi.min_ratio" || p.at.knob().name == "bdi.max_ratio")
        .map(|p| (p.at.at().to_owned(), p.at.clone()))
        .collect();
    for (device, at) in devices {
        let mut one = |name: &str| at.sibling(name).and_then(|a| later(io, all, &a));
        if let (Some(min), Some(max)) = (one("bdi.min_ratio"), one("bdi.max_ratio"))
            && min > max
        {
            return Err(Refusal::Usage(format!(
                "bdi.min_ratio@{device} {min} would be above bdi.max_ratio {max}"
            )));
        }
    }
    Ok(())
}
