//! Changes that were made before: renewed, kept, taken back. Through the tuner that holds a change where one
//! lives, by the journal where none does.

use super::address::Address;
use super::apply::{self, Bench};
use super::change::{Change, fold};
use super::client::{call, call_within};
use super::journal::Journal;
use super::kernel::KnobIo;
use super::plan::Refusal;
use super::protocol::{Reply, Request};
use super::restore::{self, Undone};
use super::steps::Steps;
use crate::root::Root;
use std::time::Duration;

/// How long a tuner may take to say how its lease stands.
const ASKED: Duration = Duration::from_secs(1);

/// The boot's journal and what it tells; `None`: there is none.
pub fn opened(root: &Root) -> Result<Option<(Journal, Vec<Change>)>, Refusal> {
    let failed = |err: std::io::Error| {
        let roots = err.kind() == std::io::ErrorKind::PermissionDenied;
        Refusal::Failed(format!("{err}{}", if roots { "; only root may read what was changed" } else { "" }))
    };
    let Some(mut journal) = Journal::open_existing(root).map_err(failed)? else { return Ok(None) };
    let (records, _) = journal.load().map_err(failed)?;
    Ok(Some((journal, fold(&records))))
}

/// Lets a change stay.
pub fn keep(journal: &mut Journal, id: u64) -> Result<(), Refusal> {
    match call(journal, id, &Request::Keep) {
        Some(Ok(Reply::Kept)) => Ok(()),
        Some(answer) => Err(said(id, answer)),
        None => apply::keep(journal, &mut Steps::default(), id)
            .map_err(|err| Refusal::Failed(format!("change {id}: {err}"))),
    }
}

/// Takes a change back.
pub fn undo(root: &Root, io: &mut dyn KnobIo, id: u64) -> Result<Vec<(Address, Undone)>, Refusal> {
    let failed = |err: std::io::Error| Refusal::Failed(format!("change {id}: {err}"));
    let journal = Journal::open(root).map_err(failed)?;
    match call(&journal, id, &Request::Undo) {
        Some(Ok(Reply::Undone(all))) => Ok(all),
        Some(Ok(other)) => Err(said(id, Ok(other))),
        // It may have died in the middle: the journal says how far it came.
        Some(Err(_)) | None => {
            restore::undo(&mut Bench { io, journal, steps: Steps::default() }, id).map_err(failed)
        }
    }
}

/// Starts a lease anew; the seconds it has now.
pub fn renew(journal: &Journal, id: u64, secs: u64) -> Result<u64, Refusal> {
    match call(journal, id, &Request::Renew { secs }) {
        Some(Ok(Reply::Left { secs })) => Ok(secs),
        Some(answer) => Err(said(id, answer)),
        None => Err(Refusal::Failed(format!(
            "change {id}: its tuner is dead, there is no lease to renew; `iotop-plus tune undo {id}` restores the old \
             values, `iotop-plus tune keep {id}` lets the new ones stay"
        ))),
    }
}

/// Who looks after a change that is neither kept nor closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A tuner; the old values come back in so many seconds.
    Lease(u64),
    /// A tuner that does not answer.
    Silent,
    /// Nobody: its tuner is dead.
    Nobody,
}

/// Asks; waits a second at most.
pub fn holder(journal: &Journal, id: u64) -> Holder {
    match call_within(journal, id, &Request::State, ASKED) {
        Some(Ok(Reply::Left { secs })) => Holder::Lease(secs),
        Some(_) => Holder::Silent,
        None => Holder::Nobody,
    }
}

fn said(id: u64, answer: std::io::Result<Reply>) -> Refusal {
    Refusal::Failed(match answer {
        Ok(Reply::Bad(why)) => format!("change {id}: {why}"),
        Ok(other) => format!("the tuner of change {id} said {other:?}"),
        Err(err) => format!("the tuner of change {id}: {err}"),
    })
}
