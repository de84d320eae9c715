//! `tune keep`, `tune renew` and `tune undo`.

use super::super::{FAILED, FINE};
use super::out::Out;
use super::{Done, careful, need_root};
use crate::root::Root;
use crate::tune::change::Change;
use crate::tune::manage::{self, Holder, opened};
use crate::tune::plan::Refusal;
use crate::tune::record::Outcome;
use crate::tune::restore::Undone;
use crate::units::format_duration;

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
        manage::keep(&mut journal, id)?;
        out.line(format!(
            "Change {id} stays until the machine boots. To take it back: iotop-plus tune undo {id}"
        ));
    }
    Ok(out.print().map(|()| FINE))
}

/// Starts leases anew. Without a number all that a tuner holds; what was left behind has none.
pub fn renew(root: &Root, id: Option<u64>, secs: u64) -> Done {
    need_root(root, "renewing a lease")?;
    let Some((journal, changes)) = opened(root)? else {
        return nothing("no change was made in this boot");
    };
    let held = |c: &Change| !c.kept && manage::holder(&journal, c.id) != Holder::Nobody;
    let ids = chosen(&changes, id, held)?;
    if ids.is_empty() {
        return nothing("no change is on lease");
    }
    let mut out = Out::default();
    for id in ids {
        let left = manage::renew(&journal, id, secs)?;
        out.line(format!("Change {id} is on lease for another {}.", format_duration(left)));
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
        for (at, undone) in manage::undo(root, &mut careful(root), id)? {
            out.line(format!("change {id}: {at}: {undone}"));
            if matches!(undone, Undone::Failed(_) | Undone::Closed(Outcome::Conflict { .. })) {
                code = FAILED;
            }
        }
    }
    Ok(out.print().map(|()| code))
}

fn nothing(text: &str) -> Done {
    let mut out = Out::default();
    out.line(text);
    Ok(out.print().map(|()| FINE))
}
