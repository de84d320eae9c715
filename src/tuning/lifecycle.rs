//! Renews, keeps and undoes earlier changes: through the tuner that holds the lease if it is alive, otherwise
//! directly with the journal.

use super::apply;
use super::change_set::{ChangeSet, changes_from_records};
use super::context::TuningContext;
use super::journal::Journal;
use super::kill_points::KillPoints;
use super::knob_id::KnobId;
use super::knob_io::KnobIo;
use super::plan::TuneError;
use super::protocol::{TunerReply, TunerRequest};
use super::restore::{self, RestoreResult};
use super::tuner_client::{REPLY_TIMEOUT, call_tuner};
use crate::root::Root;
use std::time::Duration;

/// How long a tuner may take to report its lease.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The journal of this boot and its change sets; `None` if there is none.
pub(crate) fn open_journal(root: &Root) -> Result<Option<(Journal, Vec<ChangeSet>)>, TuneError> {
    let journal_error = |err: std::io::Error| {
        let root_only = err.kind() == std::io::ErrorKind::PermissionDenied;
        TuneError::Failed(format!("{err}{}", if root_only { "; only root may read what was changed" } else { "" }))
    };
    let Some(mut journal) = Journal::open_existing(root).map_err(journal_error)? else { return Ok(None) };
    let (records, _) = journal.load().map_err(journal_error)?;
    Ok(Some((journal, changes_from_records(&records))))
}

/// Lets a change stay until it is undone or the machine boots.
pub(crate) fn keep_change(journal: &mut Journal, id: u64) -> Result<(), TuneError> {
    match call_tuner(journal, id, &TunerRequest::Keep, REPLY_TIMEOUT) {
        Some(Ok(TunerReply::Kept)) => Ok(()),
        Some(answer) => Err(unexpected_reply(id, answer)),
        None => apply::mark_kept(journal, &mut KillPoints::default(), id)
            .map_err(|err| TuneError::Failed(format!("change {id}: {err}"))),
    }
}

/// Restores the values from before a change.
pub(crate) fn undo_change(
    root: &Root,
    io: &mut dyn KnobIo,
    id: u64,
) -> Result<Vec<(KnobId, RestoreResult)>, TuneError> {
    let journal_error = |err: std::io::Error| TuneError::Failed(format!("change {id}: {err}"));
    let journal = Journal::open(root).map_err(journal_error)?;
    match call_tuner(&journal, id, &TunerRequest::Undo, REPLY_TIMEOUT) {
        Some(Ok(TunerReply::Restored(all))) => Ok(all),
        Some(Ok(other)) => Err(unexpected_reply(id, Ok(other))),
        // The tuner may have died while restoring; the journal knows how far it got.
        Some(Err(_)) | None => {
            restore::restore_locked(&mut TuningContext { io, journal, kill_points: KillPoints::default() }, id)
                .map_err(journal_error)
        }
    }
}

/// Restarts a lease with `secs` seconds; returns the seconds left.
pub(crate) fn renew_lease(journal: &Journal, id: u64, secs: u64) -> Result<u64, TuneError> {
    match call_tuner(journal, id, &TunerRequest::Renew { secs }, REPLY_TIMEOUT) {
        Some(Ok(TunerReply::TimeLeft { secs })) => Ok(secs),
        Some(answer) => Err(unexpected_reply(id, answer)),
        None => Err(TuneError::Failed(format!(
            "change {id}: its tuner is dead, there is no lease to renew; `iotop-plus tune undo {id}` restores the old \
             values, `iotop-plus tune keep {id}` lets the new ones stay"
        ))),
    }
}

/// The lease of an open change that was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStatus {
    /// A tuner holds it; the old values come back in this many seconds.
    Active(u64),
    /// Its tuner does not answer.
    Unresponsive,
    /// Its tuner is dead.
    Orphaned,
}

/// Asks the tuner, waiting at most a second.
pub(crate) fn lease_status(journal: &Journal, id: u64) -> LeaseStatus {
    match call_tuner(journal, id, &TunerRequest::Status, STATUS_TIMEOUT) {
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
