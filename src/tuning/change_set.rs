//! The journal's records put together: what was changed, what of it still stands.

use super::journal_record::{JournalRecord, KnobValuePair, RestoreOutcome};
use super::knob_id::KnobId;

/// One `set`: one or several knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// Counted up from 1 each boot.
    pub id: u64,
    /// When, ns since 1970.
    pub wall_ns: i64,
    /// Seconds of the first lease; `None`: meant to stay.
    pub lease_secs: Option<u64>,
    /// Confirmed: it stays until somebody undoes it.
    pub is_kept: bool,
    /// In the order they were written.
    pub members: Vec<KnobChange>,
}

/// One knob of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobChange {
    /// Its number within the change.
    pub index: u32,
    /// Knob.
    pub knob: KnobId,
    /// Which device, mount or process of that name.
    pub identity: String,
    /// What a restore brings back: itself first, then what moves with it.
    pub before: Vec<KnobValuePair>,
    /// What was written.
    pub target: String,
    /// What was read back; `None`: it died before it could say.
    pub after: Option<Vec<KnobValuePair>>,
    /// How it ended.
    pub outcome: Option<RestoreOutcome>,
}

impl ChangeSet {
    /// Whether something of it may still stand.
    pub fn is_open(&self) -> bool {
        self.members.iter().any(|m| m.outcome.is_none())
    }
}

/// Puts records together. Ones that fit nowhere are left out.
pub fn changes_from_records(records: &[JournalRecord]) -> Vec<ChangeSet> {
    let mut all: Vec<ChangeSet> = Vec::new();
    for record in records {
        match record.clone() {
            JournalRecord::Begin { id, wall_ns, lease_secs } if all.iter().all(|c| c.id < id) => {
                all.push(ChangeSet { id, wall_ns, lease_secs, is_kept: false, members: Vec::new() });
            }
            JournalRecord::Begin { .. } => {}
            JournalRecord::Intend { id, index: n, knob: at, identity: ident, before, target: want } => {
                // The change's first record may be the damaged one; its knobs must be found all the same.
                if all.iter().all(|c| c.id != id) {
                    all.push(ChangeSet { id, wall_ns: 0, lease_secs: Some(0), is_kept: false, members: Vec::new() });
                    all.sort_by_key(|c| c.id);
                }
                if let Some(c) = all.iter_mut().find(|c| c.id == id && c.members.iter().all(|m| m.index != n)) {
                    c.members.push(KnobChange {
                        index: n,
                        knob: at,
                        identity: ident,
                        before,
                        target: want,
                        after: None,
                        outcome: None,
                    });
                }
            }
            JournalRecord::Applied { id, index: n, after } => {
                if let Some(m) = find_member(&mut all, id, n).filter(|m| after[0].0 == m.knob) {
                    m.after = Some(after);
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
                if let Some(c) = all.iter_mut().find(|c| c.id == id) {
                    c.is_kept = true;
                }
            }
        }
    }
    all
}

fn find_member(all: &mut [ChangeSet], id: u64, n: u32) -> Option<&mut KnobChange> {
    all.iter_mut().find(|c| c.id == id)?.members.iter_mut().find(|m| m.index == n)
}

/// The value a knob had before the first change of this boot that is on record.
pub fn value_before_first_change<'a>(changes: &'a [ChangeSet], at: &KnobId) -> Option<&'a str> {
    changes
        .iter()
        .flat_map(|c| &c.members)
        .flat_map(|m| &m.before)
        .find(|(a, _)| a == at)
        .map(|(_, value)| value.as_str())
}

/// The number for a new change.
pub fn next_id(changes: &[ChangeSet]) -> u64 {
    changes.iter().map(|c| c.id).max().unwrap_or(0) + 1
}
