//! The journal's records put together: what was changed, what of it still stands.

use super::address::Address;
use super::record::{Outcome, Record, Setting};

/// One `set`: one or several knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Counted up from 1 each boot.
    pub id: u64,
    /// When, ns since 1970.
    pub wall_ns: i64,
    /// Seconds of the first lease; `None`: meant to stay.
    pub lease_secs: Option<u64>,
    /// Confirmed: it stays until somebody undoes it.
    pub kept: bool,
    /// In the order they were written.
    pub members: Vec<Member>,
}

/// One knob of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its number within the change.
    pub n: u32,
    /// Knob.
    pub at: Address,
    /// Which device, mount or process of that name.
    pub ident: String,
    /// What a restore brings back: itself first, then what moves with it.
    pub before: Vec<Setting>,
    /// What was written.
    pub want: String,
    /// What was read back; `None`: it died before it could say.
    pub after: Option<Vec<Setting>>,
    /// How it ended.
    pub closed: Option<Outcome>,
}

impl Change {
    /// Whether something of it may still stand.
    pub fn is_open(&self) -> bool {
        self.members.iter().any(|m| m.closed.is_none())
    }
}

/// Puts records together. Ones that fit nowhere are left out.
pub fn fold(records: &[Record]) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for record in records {
        match record.clone() {
            Record::Begin { id, wall_ns, lease_secs } if all.iter().all(|c| c.id < id) => {
                all.push(Change { id, wall_ns, lease_secs, kept: false, members: Vec::new() });
            }
            Record::Begin { .. } => {}
            Record::Intend { id, n, at, ident, before, want } => {
                // The change's first record may be the damaged one; its knobs must be found all the same.
                if all.iter().all(|c| c.id != id) {
                    all.push(Change {
                        id,
                        wall_ns: 0,
                        lease_secs: Some(0),
                        kept: false,
                        members: Vec::new(),
                    });
                    all.sort_by_key(|c| c.id);
                }
                if let Some(c) = all.iter_mut().find(|c| c.id == id && c.members.iter().all(|m| m.n != n)) {
                    c.members.push(Member { n, at, ident, before, want, after: None, closed: None });
                }
            }
            Record::Applied { id, n, after } => {
                if let Some(m) = member(&mut all, id, n).filter(|m| after[0].0 == m.at) {
                    m.after = Some(after);
                }
            }
            Record::Inherit { id, n, before } => {
                if let Some(m) = member(&mut all, id, n).filter(|m| before[0].0 == m.at) {
                    m.before = before;
                }
            }
            Record::Closed { id, n, outcome } => {
                if let Some(m) = member(&mut all, id, n) {
                    m.closed = Some(outcome);
                }
            }
            Record::Kept { id } => {
                if let Some(c) = all.iter_mut().find(|c| c.id == id) {
                    c.kept = true;
                }
            }
        }
    }
    all
}

fn member(all: &mut [Change], id: u64, n: u32) -> Option<&mut Member> {
    all.iter_mut().find(|c| c.id == id)?.members.iter_mut().find(|m| m.n == n)
}

/// The value a knob had before the first change of this boot that is on record.
pub fn at_start<'a>(changes: &'a [Change], at: &Address) -> Option<&'a str> {
    changes
        .iter()
        .flat_map(|c| &c.members)
        .flat_map(|m| &m.before)
        .find(|(a, _)| a == at)
        .map(|(_, value)| value.as_str())
}

/// The number for a new change.
pub fn next_id(changes: &[Change]) -> u64 {
    changes.iter().map(|c| c.id).max().unwrap_or(0) + 1
}
