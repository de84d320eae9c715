//! Applies a change: captures the knobs, journals the intent, writes, reads back and marks each knob as applied. All
//! knobs or none.

use super::change_set::{ChangeSet, changes_from_records, next_id};
use super::context::{LOCK_TIMEOUT, TuningContext, is_accepted};
use super::journal::Journal;
use super::journal_record::{JournalRecord, KnobChange, RestoreOutcome};
use super::kill_points::KillPoints;
use super::plan::{PlannedWrite, TuneError};
use super::restore::restore;
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Writes all of `plan`, or leaves every knob as it was. `lease_secs` is only recorded; the caller holds the lease.
/// Errors: if a knob cannot be written, reads back another value or the journal cannot be written; the text says what was
/// rolled back.
pub fn apply(
    context: &mut TuningContext,
    plan: &[PlannedWrite],
    lease_secs: Option<u64>,
) -> Result<ChangeSet, TuneError> {
    let not_changed = |err: io::Error| TuneError::Failed(format!("nothing was changed: {err}"));
    let lock = context.journal.lock(LOCK_TIMEOUT).map_err(|err| TuneError::Unsafe(err.to_string()))?;
    let (records, _) = context.journal.load().map_err(not_changed)?;
    let id = next_id(&changes_from_records(&records));
    context.append_record(&JournalRecord::Begin { id, wall_ns: now_wall_ns(), lease_secs }).map_err(not_changed)?;
    for (n, write) in (0u32..).zip(plan) {
        if let Err(why) = apply_one(context, id, n, write) {
            let text = format!("{why}; {}", roll_back(context, id));
            return Err(match why {
                TuneError::Privilege(_) => TuneError::Privilege(text),
                TuneError::Unsafe(_) => TuneError::Unsafe(text),
                _ => TuneError::Failed(text),
            });
        }
    }
    if lease_secs.is_none()
        && let Err(err) = context.append_record(&JournalRecord::Kept { id })
    {
        let why = format!("that it stays cannot be recorded: {err}");
        return Err(TuneError::Failed(format!("{why}; {}", roll_back(context, id))));
    }
    let (records, _) = context.journal.load().map_err(not_changed)?;
    drop(lock);
    changes_from_records(&records)
        .into_iter()
        .find(|c| c.id == id)
        .ok_or_else(|| TuneError::Failed("the journal lost it".into()))
}

/// Records that the change stays.
pub fn mark_kept(journal: &mut Journal, steps: &mut KillPoints, id: u64) -> io::Result<()> {
    let _lock = journal.lock(LOCK_TIMEOUT)?;
    journal.append(&JournalRecord::Kept { id }, steps)
}

fn apply_one(context: &mut TuningContext, id: u64, n: u32, write: &PlannedWrite) -> Result<(), TuneError> {
    let knob_id = &write.knob;
    let ident = context.io.identity(knob_id)?;
    let before = context.read_with_linked(knob_id)?;
    let journal =
        |err: io::Error| TuneError::Failed(format!("{knob_id}: not written, as the journal cannot be: {err}"));
    let target = write.target.as_str();
    let change = KnobChange::new(n, knob_id.clone(), ident, before.clone(), target.into());
    context.append_record(&JournalRecord::Intend { id, knob: change }).map_err(journal)?;
    if before[0].1 == target {
        let record = JournalRecord::Closed { id, index: n, outcome: RestoreOutcome::AlreadyRestored };
        return context.append_record(&record).map_err(journal);
    }
    context.io.write(knob_id, target)?;
    context.kill_points.reach("written");
    let after = context.read_with_linked(knob_id)?;
    context.kill_points.reach("read back");
    context.append_record(&JournalRecord::Applied { id, index: n, after: after.clone() }).map_err(journal)?;
    if !is_accepted(knob_id, target, &after[0].1) {
        return Err(TuneError::Failed(format!("{knob_id}: the kernel made {} of {target}", after[0].1)));
    }
    Ok(())
}

fn roll_back(context: &mut TuningContext, id: u64) -> String {
    match restore(context, id) {
        Ok(all) => {
            let left: Vec<String> =
                all.iter().filter(|(_, u)| !u.is_restored()).map(|(knob_id, u)| format!("{knob_id}: {u}")).collect();
            match left.is_empty() {
                true => "nothing is changed".into(),
                false => {
                    format!("reverted except {}; `iotop-plus tune undo {id}` tries again", left.join(", "))
                }
            }
        }
        Err(err) => format!("taking back failed too: {err}; try `iotop-plus tune undo {id}`"),
    }
}

/// The wall clock, ns since 1970.
pub fn now_wall_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
