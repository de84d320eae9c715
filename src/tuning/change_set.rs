//! Change sets, reconstructed from the journal: what was changed and what is still in force.

use super::journal_record::{JournalRecord, KnobChange};
use super::knob_id::KnobId;

/// The knobs changed by one `tune set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// Counts from 1 in each boot.
    pub id: u64,
    /// When it was made, ns since 1970.
    pub wall_ns: i64,
    /// The first lease in seconds; `None`: without a lease.
    pub lease_secs: Option<u64>,
    /// Whether it was confirmed to stay until it is undone.
    pub is_kept: bool,
    /// Its knobs, in the order they were written.
    pub members: Vec<KnobChange>,
}

impl ChangeSet {
    /// Whether some of its knobs may still have the changed value.
    pub fn is_open(&self) -> bool {
        self.members.iter().any(|m| m.outcome.is_none())
    }
}

/// Rebuilds change sets from records. Records that match no change set are ignored.
pub(crate) fn changes_from_records(records: &[JournalRecord]) -> Vec<ChangeSet> {
    let mut all: Vec<ChangeSet> = Vec::new();
    for record in records {
        match record.clone() {
            JournalRecord::Begin { id, wall_ns, lease_secs } if all.iter().all(|c| c.id < id) => {
                all.push(ChangeSet { id, wall_ns, lease_secs, is_kept: false, members: Vec::new() });
            }
            JournalRecord::Begin { .. } => {}
            JournalRecord::Intend { id, knob: change } => {
                // The `Begin` record may be damaged; its knobs must still be restorable.
                if all.iter().all(|c| c.id != id) {
                    all.push(ChangeSet { id, wall_ns: 0, lease_secs: Some(0), is_kept: false, members: Vec::new() });
                    all.sort_by_key(|c| c.id);
                }
                if let Some(c) = find_change(&mut all, id).filter(|c| c.members.iter().all(|m| m.index != change.index))
                {
                    c.members.push(change);
                }
            }
            JournalRecord::Applied { id, index: n, after } => {
                if let Some(m) = find_member(&mut all, id, n).filter(|m| after[0].0 == m.knob) {
                    m.after = Some(after);
                }
            }
            JournalRecord::Restoring { id, index: n, seen } => {
                if let Some(m) = find_member(&mut all, id, n).filter(|m| seen[0].0 == m.knob) {
                    m.seen.push(seen);
                }
            }
            JournalRecord::Inherit { id, index: n, before } => {
                if let Some(m) = find_member(&mut all, id, n).filter(|m| before[0].0 == m.knob) {
                    m.before = before;
                }
            }
            JournalRecord::Closed { id, index: n, outcome } => {
                if let Some(m) = find_member(&mut all, id, n) {
                    m.outcome = Some(outcome);
                }
            }
            JournalRecord::Kept { id } => {
                if let Some(c) = find_change(&mut all, id) {
                    c.is_kept = true;
                }
            }
        }
    }
    all
}

fn find_change(all: &mut [ChangeSet], id: u64) -> Option<&mut ChangeSet> {
    all.iter_mut().find(|c| c.id == id)
}

fn find_member(all: &mut [ChangeSet], id: u64, n: u32) -> Option<&mut KnobChange> {
    find_change(all, id)?.members.iter_mut().find(|m| m.index == n)
}

/// The value a knob had before the first recorded change of this boot.
pub(crate) fn value_before_first_change<'a>(changes: &'a [ChangeSet], knob_id: &KnobId) -> Option<&'a str> {
    changes
        .iter()
        .flat_map(|c| &c.members)
        .flat_map(|m| &m.before)
        .find(|(a, _)| a == knob_id)
        .map(|(_, value)| value.as_str())
}

pub(crate) fn next_id(changes: &[ChangeSet]) -> u64 {
    changes.iter().map(|c| c.id).max().unwrap_or(0) + 1
}
