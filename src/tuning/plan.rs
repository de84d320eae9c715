//! Parses and checks assignments completely before anything is written.

use super::knob::{KnobLink, KnobLocation};
use super::knob_id::{KnobId, KnobIdError};
use super::knob_io::{KnobError, KnobIo, KnobReading};
use super::machine_limits::MachineLimits;
use super::value;
use serde::{Deserialize, Serialize};

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum TuneError {
    /// The input is wrong.
    Usage(String),
    /// It would not be safe now.
    Unsafe(String),
    /// A privilege is missing.
    Privilege(String),
    /// A write failed; what had been written was rolled back.
    Failed(String),
}

impl From<KnobError> for TuneError {
    fn from(error: KnobError) -> Self {
        match error {
            KnobError::Absent(t) | KnobError::Invalid(t) => TuneError::Failed(t),
            KnobError::Denied(t) => TuneError::Privilege(t),
            KnobError::Blocked(t) => TuneError::Unsafe(t),
        }
    }
}

impl From<KnobIdError> for TuneError {
    fn from(error: KnobIdError) -> Self {
        TuneError::Usage(error.to_string())
    }
}

/// A knob to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWrite {
    /// The knob.
    pub knob: KnobId,
    /// Its current state.
    pub current: KnobReading,
    /// The value to write.
    pub target: String,
    /// The other half of a pair, which the kernel will set to 0, and its current value.
    pub zeroed_partner: Option<(KnobId, String)>,
}

/// Parses and checks `KNOB[@WHERE]=VALUE` assignments.
pub fn plan_writes(
    io: &mut dyn KnobIo,
    limits: &MachineLimits,
    assignments: &[String],
) -> Result<Vec<PlannedWrite>, TuneError> {
    let mut all: Vec<PlannedWrite> = Vec::new();
    for assignment in assignments {
        // A mount point may contain an equals sign, a value never does.
        let (knob, text) = assignment
            .rsplit_once('=')
            .ok_or_else(|| TuneError::Usage(format!("{assignment}: write KNOB=VALUE, as in vm.dirty_ratio=20")))?;
        let knob_id = KnobId::parse(knob)?;
        if all.iter().any(|p| {
            p.knob == knob_id
                || p.knob.with_linked().iter().skip(1).any(|o| p.knob.definition().is_pair() && *o == knob_id)
        }) {
            return Err(TuneError::Usage(format!("{knob_id}: set twice, or together with the other half of its pair")));
        }
        io.identity(&knob_id).map_err(absent_as_usage_error)?;
        let now = io.read(&knob_id).map_err(absent_as_usage_error)?;
        let target = value::parse_value(knob_id.definition(), text, limits, &now)
            .map_err(|why| TuneError::Usage(format!("{knob_id}: {why}")))?;
        require_restorable_hard_limit(limits, &knob_id, &now.value, &target)?;
        let zeroes = match knob_id.definition().link {
            KnobLink::Pair(other) => knob_id.sibling(other).and_then(|o| io.read(&o).ok().map(|r| (o, r.value))),
            _ => None,
        };
        all.push(PlannedWrite {
            knob: knob_id,
            current: now,
            target,
            zeroed_partner: zeroes.filter(|(_, v)| v != "0"),
        });
    }
    check_dirty_thresholds(io, limits, &all)?;
    check_bdi_shares(io, &all)?;
    Ok(all)
}

/// Without CAP_SYS_RESOURCE a lowered hard limit could not be restored.
fn require_restorable_hard_limit(
    limits: &MachineLimits,
    knob_id: &KnobId,
    now: &str,
    target: &str,
) -> Result<(), TuneError> {
    let hard = |v: &str| v.split_once(':').map(|(_, hard)| hard.to_owned());
    if knob_id.definition().location == KnobLocation::Nofile
        && hard(now) != hard(target)
        && !limits.has_cap_sys_resource
    {
        return Err(TuneError::Privilege(format!(
            "{knob_id}: changing the hard limit (from {now} to {target}) needs CAP_SYS_RESOURCE, lowering it too: it could not \
             be reverted; a soft limit within the hard one can be set"
        )));
    }
    Ok(())
}

fn absent_as_usage_error(error: KnobError) -> TuneError {
    match error {
        KnobError::Absent(text) => TuneError::Usage(text),
        other => other.into(),
    }
}

/// The value of a knob after all writes.
fn value_after(io: &mut dyn KnobIo, all: &[PlannedWrite], knob_id: &KnobId) -> Option<u64> {
    if let Some(p) = all.iter().find(|p| p.knob == *knob_id) {
        return p.target.parse().ok();
    }
    if all.iter().any(|p| p.knob.definition().is_pair() && p.knob.with_linked().contains(knob_id)) {
        return Some(0);
    }
    io.read(knob_id).ok()?.value.parse().ok()
}

/// If the background threshold is not below the limit, the kernel silently uses half the limit.
fn check_dirty_thresholds(io: &mut dyn KnobIo, limits: &MachineLimits, all: &[PlannedWrite]) -> Result<(), TuneError> {
    if !all.iter().any(|p| p.knob.definition().name.starts_with("vm.dirty_") && p.knob.definition().is_pair()) {
        return Ok(());
    }
    let mut value = |name: String| KnobId::parse(&name).ok().and_then(|knob_id| value_after(io, all, &knob_id));
    let [background, limit] = ["dirty_background", "dirty"].map(|name| {
        let ratio = value(format!("vm.{name}_ratio"));
        let bytes = value(format!("vm.{name}_bytes")).filter(|bytes| *bytes > 0);
        let shown = match bytes {
            Some(bytes) => format!("vm.{name}_bytes={bytes}"),
            None => format!("vm.{name}_ratio={}", ratio.unwrap_or(0)),
        };
        (ratio.filter(|ratio| *ratio > 0), bytes.or_else(|| limits.percent_to_bytes(ratio?)), shown)
    });
    let is_not_below = |(background, limit): (u64, u64)| background >= limit;
    let by_ratio = background.0.zip(limit.0).map(is_not_below);
    if by_ratio.or_else(|| background.1.zip(limit.1).map(is_not_below)) == Some(true) {
        return Err(TuneError::Usage(format!(
            "{} would not be below {}: the kernel would silently use half the limit; set both, background first below \
             the limit",
            background.2, limit.2
        )));
    }
    Ok(())
}

/// The kernel rejects a bdi.min_ratio above bdi.max_ratio; report it before anything is written.
fn check_bdi_shares(io: &mut dyn KnobIo, all: &[PlannedWrite]) -> Result<(), TuneError> {
    for planned in all.iter().filter(|p| matches!(p.knob.definition().name, "bdi.min_ratio" | "bdi.max_ratio")) {
        let device = planned.knob.instance();
        let mut value = |name: &str| planned.knob.sibling(name).and_then(|a| value_after(io, all, &a));
        if let (Some(min), Some(max)) = (value("bdi.min_ratio"), value("bdi.max_ratio"))
            && min > max
        {
            return Err(TuneError::Usage(format!("bdi.min_ratio@{device} {min} would be above bdi.max_ratio {max}")));
        }
    }
    Ok(())
}
