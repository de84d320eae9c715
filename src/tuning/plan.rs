//! From what a person typed to what will be written: everything is checked before anything is.

use super::knob::{KnobLink, KnobLocation};
use super::knob_id::KnobId;
use super::knob_io::{KnobError, KnobIo, KnobReading};
use super::machine_limits::MachineLimits;
use super::value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TuneError {
    /// What was typed is wrong.
    Usage(String),
    /// It would not be safe now.
    Unsafe(String),
    /// It needs a privilege.
    Privilege(String),
    /// It was tried and did not work; what had been written was taken back.
    Failed(String),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneError::Usage(t) | TuneError::Unsafe(t) | TuneError::Privilege(t) | TuneError::Failed(t) => {
                f.write_str(t)
            }
        }
    }
}

impl From<KnobError> for TuneError {
    fn from(fail: KnobError) -> Self {
        match fail {
            KnobError::Absent(t) | KnobError::Invalid(t) => TuneError::Failed(t),
            KnobError::Denied(t) => TuneError::Privilege(t),
            KnobError::Blocked(t) => TuneError::Unsafe(t),
        }
    }
}

/// One knob to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWrite {
    /// Which.
    pub knob: KnobId,
    /// How it stands.
    pub current: KnobReading,
    /// What will be written.
    pub target: String,
    /// What the kernel will set to 0 along with it, and its value now.
    pub zeroed_partner: Option<(KnobId, String)>,
}

/// Reads and checks `KNOB[@WHERE]=VALUE` words, all of them before anything is written.
pub fn plan_writes(
    io: &mut dyn KnobIo,
    machine: &MachineLimits,
    words: &[String],
) -> Result<Vec<PlannedWrite>, TuneError> {
    let mut all: Vec<PlannedWrite> = Vec::new();
    for word in words {
        // A mount point may hold an equals sign, a value never does.
        let (knob, text) = word
            .rsplit_once('=')
            .ok_or_else(|| TuneError::Usage(format!("{word}: write KNOB=VALUE, as in vm.dirty_ratio=20")))?;
        let at = KnobId::parse(knob).map_err(TuneError::Usage)?;
        if all
            .iter()
            .any(|p| p.knob == at || p.knob.with_linked().iter().skip(1).any(|o| is_half_of_pair(&p.knob) && *o == at))
        {
            return Err(TuneError::Usage(format!("{at}: set twice, or together with the other half of its pair")));
        }
        io.identity(&at).map_err(absent_as_usage_error)?;
        let now = io.read(&at).map_err(absent_as_usage_error)?;
        let want = value::parse_value(at.knob(), text, machine, &now)
            .map_err(|why| TuneError::Usage(format!("{at}: {why}")))?;
        require_restorable_hard_limit(machine, &at, &now.value, &want)?;
        let zeroes = match at.knob().link {
            KnobLink::Pair(other) => at.sibling(other).and_then(|o| io.read(&o).ok().map(|r| (o, r.value))),
            _ => None,
        };
        all.push(PlannedWrite {
            knob: at,
            current: now,
            target: want,
            zeroed_partner: zeroes.filter(|(_, v)| v != "0"),
        });
    }
    check_dirty_thresholds(io, machine, &all)?;
    check_bdi_shares(io, &all)?;
    Ok(all)
}

/// A hard limit lowered without the capability to raise it could never be taken back.
fn require_restorable_hard_limit(machine: &MachineLimits, at: &KnobId, now: &str, want: &str) -> Result<(), TuneError> {
    let hard = |v: &str| v.split_once(':').map(|(_, hard)| hard.to_owned());
    if at.knob().location == KnobLocation::Nofile && hard(now) != hard(want) && !machine.has_cap_sys_resource {
        return Err(TuneError::Privilege(format!(
            "{at}: changing the hard limit (from {now} to {want}) needs CAP_SYS_RESOURCE, lowering it too: it could not \
             be taken back; a soft limit within the hard one can be set"
        )));
    }
    Ok(())
}

fn is_half_of_pair(at: &KnobId) -> bool {
    matches!(at.knob().link, KnobLink::Pair(_))
}

fn absent_as_usage_error(fail: KnobError) -> TuneError {
    match fail {
        KnobError::Absent(text) => TuneError::Usage(text),
        other => other.into(),
    }
}

/// The value a knob will have when all is written.
fn value_after(io: &mut dyn KnobIo, all: &[PlannedWrite], at: &KnobId) -> Option<u64> {
    if let Some(p) = all.iter().find(|p| p.knob == *at) {
        return p.target.parse().ok();
    }
    if all.iter().any(|p| is_half_of_pair(&p.knob) && p.knob.with_linked().contains(at)) {
        return Some(0);
    }
    io.read(at).ok()?.value.parse().ok()
}

/// Background at or above the limit makes the kernel silently use half the limit: not what was asked for.
fn check_dirty_thresholds(io: &mut dyn KnobIo, machine: &MachineLimits, all: &[PlannedWrite]) -> Result<(), TuneError> {
    if !all.iter().any(|p| p.knob.knob().name.starts_with("vm.dirty_") && is_half_of_pair(&p.knob)) {
        return Ok(());
    }
    let mut one = |name: &str| KnobId::parse(name).ok().and_then(|at| value_after(io, all, &at));
    let (bg, bg_bytes) = (one("vm.dirty_background_ratio"), one("vm.dirty_background_bytes"));
    let (fg, fg_bytes) = (one("vm.dirty_ratio"), one("vm.dirty_bytes"));
    let bytes = |ratio: Option<u64>, bytes: Option<u64>| match bytes {
        Some(b) if b > 0 => Some(b),
        _ => machine.percent_to_bytes(ratio?),
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
        return Err(TuneError::Usage(format!(
            "{} would not be below {}: the kernel would silently use half the limit; set both, background first below \
             the limit",
            half("dirty_background", bg, bg_bytes),
            half("dirty", fg, fg_bytes)
        )));
    }
    Ok(())
}

/// A device's kept share above its largest one is refused by the kernel: said before anything is written.
fn check_bdi_shares(io: &mut dyn KnobIo, all: &[PlannedWrite]) -> Result<(), TuneError> {
    let devices: BTreeMap<String, KnobId> = all
        .iter()
        .filter(|p| p.knob.knob().name == "bdi.min_ratio" || p.knob.knob().name == "bdi.max_ratio")
        .map(|p| (p.knob.instance().to_owned(), p.knob.clone()))
        .collect();
    for (device, at) in devices {
        let mut one = |name: &str| at.sibling(name).and_then(|a| value_after(io, all, &a));
        if let (Some(min), Some(max)) = (one("bdi.min_ratio"), one("bdi.max_ratio"))
            && min > max
        {
            return Err(TuneError::Usage(format!("bdi.min_ratio@{device} {min} would be above bdi.max_ratio {max}")));
        }
    }
    Ok(())
}
