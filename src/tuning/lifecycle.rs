//! Changes that were made before: renewed, kept, taken back. Through the tuner that holds a change where one
//! lives, by the journal where none does.

use super::apply::{self, TuningContext};
use super::change_set::{ChangeSet, changes_from_records};
use super::journal::Journal;
use super::kill_points::KillPoints;
use super::knob_id::KnobId;
use super::knob_io::KnobIo;
use super::plan::TuneError;
use super::protocol::{TunerReply, TunerRequest};
use super::restore::{self, RestoreResult};
use super::tuner_client::{call_tuner, call_tuner_within};
use crate::root::Root;
use std::time::Duration;

/// How long a tuner may take to say how its lease stands.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The boot's journal and what it tells; `None`: there is none.
pub fn open_journal(root: &Root) -> Result<Option<(Journal, Vec<ChangeSet>)>, TuneError> {
    let failed = |err: std::io::Error| {
        let roots = err.kind() == std::io::ErrorKind::PermissionDenied;
        TuneError::Failed(format!("{err}{}", if roots { "; only root may read what was changed" } else { "" }))
    };
    let Some(mut journal) = Journal::open_existing(root).map_err(failed)? else { return Ok(None) };
    let (records, _) = journal.load().map_err(failed)?;
    Ok(Some((journal, changes_from_records(&records))))
}

/// Lets a change stay.
pub fn keep_change(journal: &mut Journal, id: u64) -> Result<(), TuneError> {
    match call_tuner(journal, id, &TunerRequest::Keep) {
        Some(Ok(TunerReply::Kept)) => Ok(()),
        Some(answer) => Err(unexpected_reply(id, answer)),
        None => apply::mark_kept(journal, &mut KillPoints::default(), id)
            .map_err(|err| TuneError::Failed(format!("change {id}: {err}"))),
    }
}

/// Takes a change back.
pub fn undo_change(root: &Root, io: &mut dyn KnobIo, id: u64) -> Result<Vec<(KnobId, RestoreResult)>, TuneError> {
    let failed = |err: std::io::Error| TuneError::Failed(format!("change {id}: {err}"));
    let journal = Journal::open(root).map_err(failed)?;
    match call_tuner(&journal, id, &TunerRequest::Undo) {
        Some(Ok(TunerReply::Restored(all))) => Ok(all),
        Some(Ok(other)) => Err(unexpected_reply(id, Ok(other))),
        // It may have died in the middle: the journal says how far it came.
        Some(Err(_)) | None => {
            restore::restore_locked(&mut TuningContext { io, journal, kill_points: KillPoints::default() }, id)
                .map_err(failed)
        }
    }
}

/// Starts a lease anew; the seconds it has now.
pub fn renew_lease(journal: &Journal, id: u64, secs: u64) -> Result<u64, TuneError> {
    match call_tuner(journal, id, &TunerRequest::Renew { secs }) {
        Some(Ok(TunerReply::TimeLeft { secs })) => Ok(secs),
        Some(answer) => Err(unexpected_reply(id, answer)),
        None => Err(TuneError::Failed(format!(
            "change {id}: its tuner is dead, there is no lease to renew; `iotop-plus tune undo {id}` restores the old \
             values, `iotop-plus tune keep {id}` lets the new ones stay"
        ))),
    }
}

/// Who looks after a change that is neither kept nor closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// A tuner; the old values come back in so many seconds.
    Active(u64),
    /// A tuner that does not answer.
    Unresponsive,
    /// Nobody: its tuner is dead.
    Orphaned,
}

/// Asks; waits a second at most.
pub fn lease_status(journal: &Journal, id: u64) -> LeaseStatus {
    match call_tuner_within(journal, id, &TunerRequest::Status, STATUS_TIMEOUT) {
        Some(Ok(TunerReply::TimeLeft { secs })) => LeaseStatus::Active(secs),
        Some(_) => LeaseStatus::Unresponsive,
        None => LeaseStatus::Orphaned,
    }
}

fn unexpected_reply(id: u64, answer: std::io::Result<TunerReply>) -> TuneError {
    TuneError::Failed(match answer {
        Ok(TunerReply::Error(why)) => format!("change {id}: {why}"),
        Ok(other) => format!("the tuner of change {id} said {other:?}"),
        Err(err) => format!("the tuner of change {id}: {err}"),
    })
}
