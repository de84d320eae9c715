//! What is said to a tuner process and what it says: one JSON object a line, on its pipes and on its socket.

use super::change_set::ChangeSet;
use super::journal_record::KnobValuePair;
use super::knob_id::KnobId;
use super::plan::TuneError;
use super::restore::RestoreResult;
use serde::{Deserialize, Serialize};

/// Longest line either side reads, bytes.
pub const MAX_LINE: usize = 256 * 1024;

/// To the tuner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TunerRequest {
    /// Change these; the first line, and only on the pipe.
    Set {
        /// `KNOB[@WHERE]=VALUE`.
        assignments: Vec<String>,
        /// Seconds of the lease; `None`: keep.
        lease_secs: Option<u64>,
    },
    /// The lease starts anew with so many seconds.
    Renew {
        /// From now.
        secs: u64,
    },
    /// The change stays; the tuner ends.
    Keep,
    /// The change is taken back now; the tuner ends.
    Undo,
    /// From now on the end of the pipe is not the end of the change: only the lease counts.
    Detach,
    /// How does it stand?
    Status,
}

/// From the tuner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TunerReply {
    /// It is done.
    Applied {
        /// The change's number.
        id: u64,
        /// What was changed.
        members: Vec<AppliedKnob>,
        /// Seconds of the lease; `None`: it stays.
        lease_secs: Option<u64>,
    },
    /// Nothing was done.
    Refused(TuneError),
    /// The lease.
    TimeLeft {
        /// Seconds until the old values come back.
        secs: u64,
    },
    /// It stays.
    Kept,
    /// It was taken back.
    Restored(Vec<(KnobId, RestoreResult)>),
    /// The request was not understood or could not be carried out.
    Error(String),
}

/// One changed knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedKnob {
    /// Itself first, then what moves with it.
    pub before: Vec<KnobValuePair>,
    /// The same after the change; empty if it stood so already.
    pub after: Vec<KnobValuePair>,
}

impl TunerReply {
    /// For a change that was made.
    pub fn for_change(change: &ChangeSet) -> Self {
        let one = |m: &super::change_set::KnobChange| AppliedKnob {
            before: m.before.clone(),
            after: m.after.clone().unwrap_or_default(),
        };
        TunerReply::Applied {
            id: change.id,
            members: change.members.iter().map(one).collect(),
            lease_secs: change.lease_secs,
        }
    }
}
