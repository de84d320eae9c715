//! Restores the values from before a change, unless somebody else has changed them since.

use super::change_set::{ChangeSet, changes_from_records};
use super::context::{LOCK_TIMEOUT, TuningContext, is_accepted};
use super::journal_record::{JournalRecord, KnobChange, KnobValuePair, RestoreOutcome};
use super::knob::KnobLink;
use super::knob_id::KnobId;
use super::knob_io::KnobError;
use super::restore_linked::restore_with_linked;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

/// The result of restoring one knob.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RestoreResult {
    /// The knob needs no further action.
    Closed(RestoreOutcome),
    /// The same, but the journal could not be written, for this reason: the next restore checks the knob again.
    Unrecorded(RestoreOutcome, String),
    /// The knob could not be restored now; it stays open.
    Failed(KnobError),
}

impl RestoreResult {
    /// The outcome; `None`: the knob could not be restored now.
    pub fn outcome(&self) -> Option<&RestoreOutcome> {
        match self {
            RestoreResult::Closed(outcome) | RestoreResult::Unrecorded(outcome, _) => Some(outcome),
            RestoreResult::Failed(_) => None,
        }
    }

    /// Whether the knob has its old value.
    pub fn is_restored(&self) -> bool {
        matches!(self.outcome(), Some(RestoreOutcome::Restored | RestoreOutcome::AlreadyRestored))
    }

    /// Whether a person has to look at the knob: it could not be restored, or somebody else changed it.
    pub fn needs_attention(&self) -> bool {
        matches!(self.outcome(), None | Some(RestoreOutcome::Conflict { .. }))
    }
}

impl fmt::Display for RestoreResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreResult::Closed(outcome) => write!(f, "{outcome}"),
            RestoreResult::Unrecorded(outcome, reason) => {
                write!(f, "{outcome} (not recorded in the journal: {reason})")
            }
            RestoreResult::Failed(error) => write!(f, "FAILED: {}", error),
        }
    }
}

impl fmt::Display for RestoreOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreOutcome::Restored => f.write_str("restored"),
            RestoreOutcome::AlreadyRestored => f.write_str("already had its old value"),
            RestoreOutcome::Conflict { current } => {
                write!(f, "CONFLICT: somebody set it to {current} meanwhile; left as it is")
            }
            RestoreOutcome::Gone => f.write_str("its device, mount or process is gone"),
            RestoreOutcome::HandedOver { change_id } => {
                write!(f, "change {change_id} was made on top of it and will restore the old value")
            }
        }
    }
}

/// Takes the lock and calls [`restore`].
pub fn restore_locked(context: &mut TuningContext, id: u64) -> io::Result<Vec<(KnobId, RestoreResult)>> {
    restore_within(context, id, LOCK_TIMEOUT)
}

/// The same, waiting at most `timeout` for the lock. A lock that cannot be made (the directory of the journal was
/// removed) stops nothing.
/// Errors: `WouldBlock`: another process is making a change; and those of [`restore`].
pub(super) fn restore_within(
    context: &mut TuningContext,
    id: u64,
    timeout: Duration,
) -> io::Result<Vec<(KnobId, RestoreResult)>> {
    let lock = context.journal.lock(timeout);
    if let Err(err) = &lock
        && err.kind() == io::ErrorKind::WouldBlock
    {
        return Err(io::Error::new(err.kind(), err.to_string()));
    }
    restore(context, id)
}

/// Restores the open knobs of a change, last one first. Can be interrupted and repeated. The caller holds the lock.
///
/// A journal that cannot be written (the file system of `/run` is full) stops nothing: every knob is restored, and the
/// next restore finds the values as they were.
/// Errors: the journal cannot be read: which values to restore is unknown.
pub fn restore(context: &mut TuningContext, id: u64) -> io::Result<Vec<(KnobId, RestoreResult)>> {
    let (records, _) = context.journal.load()?;
    let changes = changes_from_records(&records);
    let Some(change) = changes.iter().find(|c| c.id == id) else { return Ok(Vec::new()) };
    let mut results = Vec::new();
    for member in change.members.iter().rev().filter(|m| m.outcome.is_none()) {
        let undone = match restore_one(context, &changes, id, member) {
            Ok(outcome) => {
                let record = JournalRecord::Closed { id, index: member.index, outcome: outcome.clone() };
                match context.append_record(&record) {
                    Ok(()) => RestoreResult::Closed(outcome),
                    Err(err) => RestoreResult::Unrecorded(outcome, err.to_string()),
                }
            }
            Err(error) => RestoreResult::Failed(error),
        };
        results.push((member.knob.clone(), undone));
    }
    Ok(results)
}

type RestoreAttempt = Result<RestoreOutcome, KnobError>;

fn restore_one(context: &mut TuningContext, changes: &[ChangeSet], id: u64, member: &KnobChange) -> RestoreAttempt {
    match context.io.identity(&member.knob) {
        Ok(identity) if identity == member.identity => {}
        Ok(_) | Err(KnobError::Absent(_)) => return Ok(RestoreOutcome::Gone),
        Err(error) => return Err(error),
    }
    let current = match context.read_with_linked(&member.knob) {
        Ok(current) => current,
        Err(KnobError::Absent(_)) => return Ok(RestoreOutcome::Gone),
        Err(error) => return Err(error),
    };
    if let Some((to, n, before)) = find_later_change(changes, id, member) {
        let record = JournalRecord::Inherit { id: to, index: n, before };
        context.append_record(&record).map_err(|err| KnobError::Invalid(format!("{}: {err}", member.knob)))?;
        return Ok(RestoreOutcome::HandedOver { change_id: to });
    }
    let is_at_old_value = significant_values(&current) == significant_values(&member.before);
    if !is_at_old_value && !is_our_value(member, &current) {
        return Ok(RestoreOutcome::Conflict { current: format_settings(&current) });
    }
    let was_written = member.after.is_some() || !member.seen.is_empty();
    if is_at_old_value && !was_written {
        return Ok(RestoreOutcome::AlreadyRestored);
    }
    match member.knob.definition().link {
        KnobLink::Recomputes(_) => restore_with_linked(context, changes, id, member, &current),
        _ if is_at_old_value => Ok(RestoreOutcome::AlreadyRestored),
        _ => write_back(context, member),
    }
}

fn write_back(context: &mut TuningContext, member: &KnobChange) -> RestoreAttempt {
    // Of a pair, write the half that is not 0: the kernel rejects 0 bytes, and a ratio of 0 is no limit.
    let is_pair = member.knob.definition().is_pair();
    let source = if is_pair { member.before.iter().find(|(_, v)| v != "0") } else { member.before.first() };
    let (knob_id, value) = source.ok_or_else(|| KnobError::Invalid(format!("{}: both were 0", member.knob)))?;
    context.io.write(knob_id, value)?;
    context.kill_points.reach("written back");
    let after = context.read_with_linked(&member.knob)?;
    let (read, expected) = (significant_values(&after), significant_values(&member.before));
    let same = read == expected
        || read.iter().all(|(knob_id, v)| expected.get(knob_id).is_some_and(|w| is_accepted(knob_id, w, v)));
    match same {
        true => Ok(RestoreOutcome::Restored),
        false => {
            Err(KnobError::Invalid(format!("{}: written back, but it reads {}", member.knob, format_settings(&after))))
        }
    }
}

/// Whether the current values are those our change left, or, if it died before recording them, meant to leave.
fn is_our_value(member: &KnobChange, current: &[KnobValuePair]) -> bool {
    // The kernel decrements this knob with each report.
    if member.knob.definition().name == "kernel.hung_task_warnings" {
        let left = current.first().and_then(|(_, v)| v.parse::<i64>().ok());
        let given = member.after.as_deref().and_then(<[KnobValuePair]>::first).map_or(&member.target, |(_, v)| v);
        return left.zip(given.parse().ok()).is_some_and(|(left, given)| left == given || (0..given).contains(&left));
    }
    match &member.after {
        Some(after) => significant_values(after) == significant_values(current),
        None => significant_values(&intended_values(member)) == significant_values(current),
    }
}

fn intended_values(member: &KnobChange) -> Vec<KnobValuePair> {
    let zero = |(knob_id, _): &KnobValuePair| (knob_id.clone(), "0".to_owned());
    let own = (member.knob.clone(), member.target.clone());
    std::iter::once(own).chain(member.before.iter().skip(1).map(zero)).collect()
}

/// The values that make up a setting: both halves of a pair, otherwise the knob alone.
fn significant_values(all: &[KnobValuePair]) -> BTreeMap<&KnobId, &str> {
    let is_pair = all.first().is_some_and(|(knob_id, _)| knob_id.definition().is_pair());
    all.iter().take(if is_pair { all.len() } else { 1 }).map(|(knob_id, v)| (knob_id, v.as_str())).collect()
}

/// A later change that is still open and was made on top of this one: its id, position, and the values it should
/// restore.
fn find_later_change(changes: &[ChangeSet], id: u64, member: &KnobChange) -> Option<(u64, u32, Vec<KnobValuePair>)> {
    let ours = member.after.clone().unwrap_or_else(|| intended_values(member));
    changes.iter().filter(|c| c.id > id).find_map(|c| {
        let newer = c.members.iter().find(|m| {
            m.outcome.is_none() && m.after.is_some() && significant_values(&m.before) == significant_values(&ours)
        })?;
        let mut before = member.before.clone();
        before.sort_by_key(|(knob_id, _)| *knob_id != newer.knob);
        Some((c.id, newer.index, before))
    })
}

fn format_settings(all: &[KnobValuePair]) -> String {
    significant_values(all).iter().map(|(knob_id, v)| format!("{knob_id}={v}")).collect::<Vec<_>>().join(" ")
}
