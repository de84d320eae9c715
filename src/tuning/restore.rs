//! Taking a change back: only while the value is still ours.

use super::apply::{LOCK_TIMEOUT, TuningContext, is_accepted};
use super::change_set::{ChangeSet, KnobChange, changes_from_records};
use super::journal_record::{JournalRecord, KnobValuePair, RestoreOutcome};
use super::knob::KnobLink;
use super::knob_id::KnobId;
use super::knob_io::KnobError;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// What came of taking one knob back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RestoreResult {
    /// It is dealt with.
    Closed(RestoreOutcome),
    /// It could not be now; it stays on the list.
    Failed(KnobError),
}

impl fmt::Display for RestoreResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreResult::Closed(RestoreOutcome::Restored) => f.write_str("restored"),
            RestoreResult::Closed(RestoreOutcome::AlreadyRestored) => f.write_str("stood at its old value already"),
            RestoreResult::Closed(RestoreOutcome::Conflict { current: now }) => {
                write!(f, "CONFLICT: somebody set it to {now} meanwhile; left as it is")
            }
            RestoreResult::Closed(RestoreOutcome::Gone) => f.write_str("its device, mount or process is gone"),
            RestoreResult::Closed(RestoreOutcome::HandedOver { change_id: to }) => {
                write!(f, "change {to} stands on it and will restore the old value")
            }
            RestoreResult::Failed(fail) => write!(f, "FAILED: {}", fail.message()),
        }
    }
}

/// [`restore`] under the lock.
pub fn restore_locked(bench: &mut TuningContext, id: u64) -> io::Result<Vec<(KnobId, RestoreResult)>> {
    let _lock = bench.journal.lock(LOCK_TIMEOUT)?;
    restore(bench, id)
}

/// Takes back what is open of a change, last knob first. Safe to be cut off and done again. The caller holds
/// the lock.
pub fn restore(bench: &mut TuningContext, id: u64) -> io::Result<Vec<(KnobId, RestoreResult)>> {
    let (records, _) = bench.journal.load()?;
    let changes = changes_from_records(&records);
    let Some(change) = changes.iter().find(|c| c.id == id) else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    for member in change.members.iter().rev().filter(|m| m.outcome.is_none()) {
        let undone = match restore_one(bench, &changes, id, member)? {
            Ok(outcome) => {
                bench.append_record(&JournalRecord::Closed { id, index: member.index, outcome: outcome.clone() })?;
                RestoreResult::Closed(outcome)
            }
            Err(fail) => RestoreResult::Failed(fail),
        };
        told.push((member.knob.clone(), undone));
    }
    Ok(told)
}

type RestoreAttempt = Result<RestoreOutcome, KnobError>;

fn restore_one(
    bench: &mut TuningContext,
    changes: &[ChangeSet],
    id: u64,
    member: &KnobChange,
) -> io::Result<RestoreAttempt> {
    match bench.io.identity(&member.knob) {
        Ok(ident) if ident == member.identity => {}
        Ok(_) | Err(KnobError::Absent(_)) => return Ok(Ok(RestoreOutcome::Gone)),
        Err(fail) => return Ok(Err(fail)),
    }
    let now = match bench.read_with_linked(&member.knob) {
        Ok(now) => now,
        Err(KnobError::Absent(_)) => return Ok(Ok(RestoreOutcome::Gone)),
        Err(fail) => return Ok(Err(fail)),
    };
    if let Some((to, n, before)) = find_later_change(changes, id, member) {
        bench.append_record(&JournalRecord::Inherit { id: to, index: n, before })?;
        return Ok(Ok(RestoreOutcome::HandedOver { change_id: to }));
    }
    let never_written = member.after.is_none();
    if significant_values(&now) == significant_values(&member.before)
        && (never_written || linked_knobs_unchanged(&now, &member.before))
    {
        return Ok(Ok(RestoreOutcome::AlreadyRestored));
    }
    if !is_our_value(member, &now) && significant_values(&now) != significant_values(&member.before) {
        return Ok(Ok(RestoreOutcome::Conflict { current: format_settings(&now) }));
    }
    Ok(write_back(bench, member, &now))
}

fn write_back(bench: &mut TuningContext, member: &KnobChange, now: &[KnobValuePair]) -> RestoreAttempt {
    if significant_values(now) != significant_values(&member.before) {
        // Of a pair the member that is not 0: the kernel refuses 0 bytes, and a 0 ratio is no limit at all.
        let pair = matches!(member.knob.knob().link, KnobLink::Pair(_));
        let source = if pair { member.before.iter().find(|(_, v)| v != "0") } else { member.before.first() };
        let (at, value) = source.ok_or_else(|| KnobError::Invalid(format!("{}: both were 0", member.knob)))?;
        bench.io.write(at, value)?;
        bench.kill_points.reach("written back");
    }
    if let KnobLink::Recomputes(_) = member.knob.knob().link {
        for (at, old) in member.before.iter().skip(1) {
            // What the kernel moved along goes back too, but what somebody set since is set again; and where
            // it is not known which of the two it is, it is left to the kernel.
            let of = |all: &[KnobValuePair]| all.iter().find(|(a, _)| a == at).map(|(_, v)| v.clone());
            let target = match (of(now), member.after.as_deref().map(of)) {
                (Some(stood), Some(Some(ours))) if stood != ours => stood,
                (Some(stood), None) if stood != *old => continue,
                _ => old.clone(),
            };
            if bench.io.read(at).is_ok_and(|r| r.value != target) {
                bench.io.write(at, &target)?;
                bench.kill_points.reach("a follower written back");
            }
        }
    }
    let stands = bench.read_with_linked(&member.knob)?;
    let (got, want) = (significant_values(&stands), significant_values(&member.before));
    let same = got == want || got.iter().all(|(at, v)| want.get(at).is_some_and(|w| is_accepted(at, w, v)));
    match same {
        true => Ok(RestoreOutcome::Restored),
        false => {
            Err(KnobError::Invalid(format!("{}: written back, but it reads {}", member.knob, format_settings(&stands))))
        }
    }
}

/// Whether the values are the ones our change left; if it died before saying, the ones it meant to leave.
fn is_our_value(member: &KnobChange, now: &[KnobValuePair]) -> bool {
    // The kernel itself counts this one down, a step for each report.
    if member.knob.knob().name == "kernel.hung_task_warnings" {
        let left = now.first().and_then(|(_, v)| v.parse::<i64>().ok());
        let given = member.after.as_deref().and_then(<[KnobValuePair]>::first).map_or(&member.target, |(_, v)| v);
        return left.zip(given.parse().ok()).is_some_and(|(left, given)| left == given || (0..given).contains(&left));
    }
    match &member.after {
        Some(after) => significant_values(after) == significant_values(now),
        None => significant_values(&intended_values(member)) == significant_values(now),
    }
}

fn intended_values(member: &KnobChange) -> Vec<KnobValuePair> {
    let zero = |(at, _): &KnobValuePair| (at.clone(), "0".to_owned());
    let own = (member.knob.clone(), member.target.clone());
    std::iter::once(own).chain(member.before.iter().skip(1).map(zero)).collect()
}

/// The values that make up the setting: both halves of a pair, else the knob alone.
fn significant_values(all: &[KnobValuePair]) -> BTreeMap<&KnobId, &str> {
    let pair = all.first().is_some_and(|(at, _)| matches!(at.knob().link, KnobLink::Pair(_)));
    all.iter().take(if pair { all.len() } else { 1 }).map(|(at, v)| (at, v.as_str())).collect()
}

/// Whether nothing the kernel moved along stands apart from where it was.
fn linked_knobs_unchanged(now: &[KnobValuePair], before: &[KnobValuePair]) -> bool {
    now.iter().all(|(at, v)| before.iter().all(|(b, old)| b != at || old == v))
}

/// A later, still open change made on top of this one: its number, member, and what it should restore.
fn find_later_change(changes: &[ChangeSet], id: u64, member: &KnobChange) -> Option<(u64, u32, Vec<KnobValuePair>)> {
    let ours = member.after.clone().unwrap_or_else(|| intended_values(member));
    changes.iter().filter(|c| c.id > id).find_map(|c| {
        let on = c.members.iter().find(|m| {
            m.outcome.is_none() && m.after.is_some() && significant_values(&m.before) == significant_values(&ours)
        })?;
        let mut before = member.before.clone();
        before.sort_by_key(|(at, _)| *at != on.knob);
        Some((c.id, on.index, before))
    })
}

fn format_settings(all: &[KnobValuePair]) -> String {
    significant_values(all).iter().map(|(at, v)| format!("{at}={v}")).collect::<Vec<_>>().join(" ")
}
