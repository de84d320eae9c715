//! `tune keep`, `renew`, `undo`, `persist` and `unpersist`.

use super::super::exit::{EXIT_FAILED, EXIT_OK, print_text};
use super::super::text_output::TextOutput;
use super::common::{child_knob_io, require_root};
use crate::root::Root;
use crate::tuning::change_set::ChangeSet;
use crate::tuning::lifecycle::{self, LeaseStatus, open_journal};
use crate::tuning::persist_plan::{self, PersistChanges};
use crate::tuning::plan::TuneError;
use crate::units::format_duration;

/// The change with this id, or all open changes that `matches` accepts.
fn select_changes(
    changes: &[ChangeSet],
    id: Option<u64>,
    pick: impl Fn(&ChangeSet) -> bool,
) -> Result<Vec<u64>, TuneError> {
    match id {
        None => Ok(changes.iter().rev().filter(|c| c.is_open() && pick(c)).map(|c| c.id).collect()),
        Some(id) => match changes.iter().find(|c| c.id == id) {
            Some(change) if change.is_open() => Ok(vec![id]),
            Some(_) => Err(TuneError::Usage(format!("change {id} was undone already"))),
            None => {
                Err(TuneError::Usage(format!("there is no change {id} in this boot; see `iotop-plus tune status`")))
            }
        },
    }
}

const NO_CHANGE: &str = "no change was made in this boot\n";
const NO_LEASE: &str = "no change is on lease\n";

pub(super) fn keep(root: &Root, id: Option<u64>) -> anyhow::Result<u8> {
    require_root(root, "keeping a change")?;
    let Some((mut journal, changes)) = open_journal(root)? else { return print_text(NO_CHANGE) };
    let ids = select_changes(&changes, id, |c| !c.is_kept)?;
    if ids.is_empty() {
        return print_text(NO_LEASE);
    }
    let mut out = TextOutput::default();
    for id in ids {
        lifecycle::keep_change(&mut journal, id)?;
        out.push_line(format!("Change {id} stays until the machine boots. To take it back: iotop-plus tune undo {id}"));
    }
    out.print()
}

/// Renews leases. Without an id, all leases that a tuner holds; orphaned changes have none.
pub(super) fn renew(root: &Root, id: Option<u64>, secs: u64) -> anyhow::Result<u8> {
    require_root(root, "renewing a lease")?;
    let Some((journal, changes)) = open_journal(root)? else { return print_text(NO_CHANGE) };
    let held = |c: &ChangeSet| !c.is_kept && lifecycle::lease_status(&journal, c.id) != LeaseStatus::Orphaned;
    let ids = select_changes(&changes, id, held)?;
    if ids.is_empty() {
        return print_text(NO_LEASE);
    }
    let mut out = TextOutput::default();
    for id in ids {
        let left = lifecycle::renew_lease(&journal, id, secs)?;
        out.push_line(format!("Change {id} is on lease for another {}.", format_duration(left)));
    }
    out.print()
}

pub(super) fn undo(root: &Root, id: Option<u64>) -> anyhow::Result<u8> {
    require_root(root, "taking a change back")?;
    let Some((journal, changes)) = open_journal(root)? else { return print_text(NO_CHANGE) };
    let mut ids = select_changes(&changes, id, |c| !c.is_kept)?;
    if ids.is_empty() {
        ids = select_changes(&changes, None, |c| c.is_kept)?;
        ids.truncate(1);
    }
    drop(journal);
    if ids.is_empty() {
        return print_text("nothing to undo\n");
    }
    let mut out = TextOutput::default();
    let mut code = EXIT_OK;
    for id in ids {
        for (at, undone) in lifecycle::undo_change(root, &mut child_knob_io(root), id)? {
            out.push_line(format!("change {id}: {at}: {undone}"));
            if undone.needs_attention() {
                code = EXIT_FAILED;
            }
        }
    }
    out.print()?;
    Ok(code)
}

/// Persists the given values, or the current ones.
pub(super) fn persist(root: &Root, words: &[String]) -> anyhow::Result<u8> {
    let wanted = persist_plan::plan_persist(root, &mut child_knob_io(root), words)?;
    write_and_print(root, &wanted)
}

/// Removes values from our files. Current values stay.
pub(super) fn unpersist(root: &Root, words: &[String]) -> anyhow::Result<u8> {
    write_and_print(root, &persist_plan::plan_unpersist(root, words)?)
}

fn write_and_print(root: &Root, wanted: &PersistChanges) -> anyhow::Result<u8> {
    require_root(root, "writing below /etc")?;
    let mut out = TextOutput::default();
    for line in persist_plan::write_and_report(root, wanted)? {
        out.push_line(line);
    }
    out.print()
}
