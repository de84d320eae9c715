//! The messages between a tuner process and its clients: one JSON object per line, on its pipes and its socket.

use super::change_set::ChangeSet;
use super::journal_record::KnobValuePair;
use super::knob_id::KnobId;
use super::plan::TuneError;
use super::restore::RestoreResult;
use serde::{Deserialize, Serialize};

/// The longest line that either side reads, bytes.
pub const MAX_LINE: u64 = 256 * 1024;

/// A request to the tuner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TunerRequest {
    /// Makes a change. Must be the first request, and comes on the pipe only.
    Set {
        /// `KNOB[@WHERE]=VALUE`.
        assignments: Vec<String>,
        /// The lease in seconds; `None`: without a lease.
        lease_secs: Option<u64>,
    },
    /// Restarts the lease.
    Renew {
        /// Its new duration.
        secs: u64,
    },
    /// Keeps the change; the tuner exits.
    Keep,
    /// Restores the old values now; the tuner exits.
    Undo,
    /// From now on the tuner ignores the end of the pipe; only the lease counts.
    Detach,
    /// Asks for the time left.
    Status,
}

/// A reply of the tuner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TunerReply {
    /// The change was made.
    Applied {
        /// The change's id.
        id: u64,
        /// The knobs that were changed.
        members: Vec<AppliedKnob>,
        /// The lease in seconds; `None`: without a lease.
        lease_secs: Option<u64>,
    },
    /// The change was not made.
    Refused(TuneError),
    /// The time left of the lease.
    TimeLeft {
        /// Seconds until the old values come back.
        secs: u64,
    },
    /// The change stays.
    Kept,
    /// The old values were restored.
    Restored(Vec<(KnobId, RestoreResult)>),
    /// The request was invalid or could not be carried out.
    Error(String),
}

/// A changed knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedKnob {
    /// The values before: the knob itself first, then its linked knobs.
    pub before: Vec<KnobValuePair>,
    /// The same after the change; empty if the knob already had the value.
    pub after: Vec<KnobValuePair>,
}

impl TunerReply {
    /// The reply for a change that was made.
    pub fn for_change(change: &ChangeSet) -> Self {
        let one = |m: &super::journal_record::KnobChange| AppliedKnob {
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
