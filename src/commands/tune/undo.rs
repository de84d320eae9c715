//! `tune keep` and `tune undo`: through the tuner that holds the change, or by the journal where none lives.

use super::super::{FAILED, FINE};
use super::out::Out;
use super::{Done, careful, need_root};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::apply::{self, Bench};
use crate::tune::change::{Change, fold};
use crate::tune::client::call;
use crate::tune::journal::Journal;
use crate::tune::plan::Refusal;
use crate::tune::protocol::{Reply, Request};
use crate::tune::record::Outcome;
use crate::tune::restore::{self, Undone};
use crate::tune::steps::Steps;

fn opened(root: &Root) -> Result<Option<(Journal, Vec<Change>)>, Refusal> {
    let failed = |err: std::io::Error| Refusal::Failed(err.to_string());
    let Some(mut journal) = Journal::open_existing(root).map_err(failed)? else { return Ok(None) };
    let (records, _) = journal.load().map_err(failed)?;
    Ok(Some((journal, fold(&records))))
}

/// The change of that number, or those that `pick` takes.
fn chosen(changes: &[Change], id: Option<u64>, pick: impl Fn(&Change) -> bool) -> Result<Vec<u64>, Refusal> {
    match id {
        None => Ok(changes.iter().rev().filter(|c| c.is_open() && pick(c)).map(|c| c.id).collect()),
        Some(id) => match changes.iter().find(|c| c.id == id) {
            Some(change) if change.is_open() => Ok(vec![id]),
            Some(_) => Err(Refusal::Usage(format!("change {id} was undone already"))),
            None => Err(Refusal::Usage(format!(
                "there is no change {id} in this boot; see `iotop-plus tune status`"
            ))),
        },
    }
}

/// Lets changes stay.
pub fn keep(root: &Root, id: Option<u64>) -> Done {
    need_root(root, "keeping a change")?;
    let Some((mut journal, changes)) = opened(root)? else {
        return nothing("no change was made in this boot");
    };
    let ids = chosen(&changes, id, |c| !c.kept)?;
    if ids.is_empty() {
        return nothing("no change is on lease");
    }
    let mut out = Out::default();
    for id in ids {
        match call(&journal, id, &Request::Keep) {
            Some(Ok(Reply::Kept)) => {}
            Some(Ok(other)) => {
                return Err(Refusal::Failed(format!("the tuner of change {id} said {other:?}")));
            }
            Some(Err(err)) => return Err(Refusal::Failed(format!("the tuner of change {id}: {err}"))),
            None => apply::keep(&mut journal, &mut Steps::default(), id)
                .map_err(|err| Refusal::Failed(format!("change {id}: {err}")))?,
        }
        out.line(format!(
            "Change {id} stays until the machine boots. To take it back: iotop-plus tune undo {id}"
        ));
    }
    Ok(out.print().map(|()| FINE))
}

/// Takes changes back.
pub fn undo(root: &Root, id: Option<u64>) -> Done {
    need_root(root, "taking a change back")?;
    let Some((journal, changes)) = opened(root)? else { return nothing("no change was made in this boot") };
    let mut ids = chosen(&changes, id, |c| !c.kept)?;
    if ids.is_empty() {
        ids = chosen(&changes, None, |c| c.kept)?;
        ids.truncate(1);
    }
    drop(journal);
    if ids.is_empty() {
        return nothing("nothing to undo");
    }
    let mut out = Out::default();
    let mut code = FINE;
    for id in ids {
        for (at, undone) in one(root, id)? {
            out.line(format!("change {id}: {at}: {undone}"));
            if matches!(undone, Undone::Failed(_) | Undone::Closed(Outcome::Conflict { .. })) {
                code = FAILED;
            }
        }
    }
    Ok(out.print().map(|()| code))
}

fn one(root: &Root, id: u64) -> Result<Vec<(Address, Undone)>, Refusal> {
    let failed = |err: std::io::Error| Refusal::Failed(format!("change {id}: {err}"));
    let journal = Journal::open(root).map_err(failed)?;
    match call(&journal, id, &Request::Undo) {
        Some(Ok(Reply::Undone(all))) => Ok(all),
        Some(Ok(other)) => Err(Refusal::Failed(format!("the tuner of change {id} said {other:?}"))),
        // It may have died in the middle: the journal says how far it came.
        Some(Err(_)) | None => {
            let mut io = careful(root);
            restore::undo(&mut Bench { io: &mut io, journal, steps: Steps::default() }, id).map_err(failed)
        }
    }
}

fn nothing(text: &str) -> Done {
    let mut out = Out::default();
    out.line(text);
    Ok(out.print().map(|()| FINE))
}
