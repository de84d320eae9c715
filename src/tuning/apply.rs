//! Making a change: capture the group, journal, write, read back, mark applied. All or nothing.

use super::change_set::{ChangeSet, changes_from_records, next_id};
use super::journal::Journal;
use super::journal_record::{JournalRecord, KnobValuePair, RestoreOutcome};
use super::kill_points::KillPoints;
use super::knob_id::KnobId;
use super::knob_io::{KnobError, KnobIo};
use super::plan::{PlannedWrite, TuneError};
use super::restore::{RestoreResult, restore};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::Duration;

/// How long another change may take before ours is given up.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// Where changes are made: the kernel, the journal, and the count of steps.
pub struct TuningContext<'a> {
    /// The kernel.
    pub io: &'a mut dyn KnobIo,
    /// What is going on.
    pub journal: Journal,
    /// Where to be killed.
    pub kill_points: KillPoints,
}

/// Writes all of `plan`, or leaves everything as it was. `lease_secs` is for the record; who keeps the lease
/// is the caller's business.
pub fn apply(
    bench: &mut TuningContext,
    plan: &[PlannedWrite],
    lease_secs: Option<u64>,
) -> Result<ChangeSet, TuneError> {
    let failed = |err: io::Error| TuneError::Failed(format!("nothing was changed: {err}"));
    let lock = bench.journal.lock(LOCK_TIMEOUT).map_err(|err| TuneError::Unsafe(err.to_string()))?;
    let (records, _) = bench.journal.load().map_err(failed)?;
    let id = next_id(&changes_from_records(&records));
    bench.append_record(&JournalRecord::Begin { id, wall_ns: now_wall_ns(), lease_secs }).map_err(failed)?;
    for (n, planned) in (0u32..).zip(plan) {
        if let Err(why) = apply_one(bench, id, n, planned) {
            let text = format!("{why}; {}", roll_back(bench, id));
            return Err(match why {
                TuneError::Privilege(_) => TuneError::Privilege(text),
                TuneError::Unsafe(_) => TuneError::Unsafe(text),
                _ => TuneError::Failed(text),
            });
        }
    }
    if lease_secs.is_none() {
        bench.append_record(&JournalRecord::Kept { id }).map_err(|err| TuneError::Failed(err.to_string()))?;
    }
    let (records, _) = bench.journal.load().map_err(failed)?;
    drop(lock);
    changes_from_records(&records)
        .into_iter()
        .find(|c| c.id == id)
        .ok_or_else(|| TuneError::Failed("the journal lost it".into()))
}

/// Marks a change as one that stays.
pub fn mark_kept(journal: &mut Journal, steps: &mut KillPoints, id: u64) -> io::Result<()> {
    let _lock = journal.lock(LOCK_TIMEOUT)?;
    journal.append(&JournalRecord::Kept { id }, steps)
}

impl TuningContext<'_> {
    /// [`Journal::append`] with the steps counted.
    pub fn append_record(&mut self, record: &JournalRecord) -> io::Result<()> {
        self.journal.append(record, &mut self.kill_points)
    }

    /// A knob's value and of what moves with it, itself first. What moves along and cannot be read is left out.
    pub fn read_with_linked(&mut self, at: &KnobId) -> Result<Vec<KnobValuePair>, KnobError> {
        let own = self.io.read(at)?.value;
        let mut all = vec![(at.clone(), own)];
        for other in at.with_linked().into_iter().skip(1) {
            if let Ok(reading) = self.io.read(&other) {
                all.push((other, reading.value));
            }
        }
        Ok(all)
    }
}

fn apply_one(bench: &mut TuningContext, id: u64, n: u32, planned: &PlannedWrite) -> Result<(), TuneError> {
    let at = &planned.knob;
    let ident = bench.io.identity(at)?;
    let before = bench.read_with_linked(at)?;
    let journal = |err: io::Error| TuneError::Failed(format!("{at}: not written, as the journal cannot be: {err}"));
    let want = planned.target.clone();
    bench
        .append_record(&JournalRecord::Intend {
            id,
            index: n,
            knob: at.clone(),
            identity: ident,
            before: before.clone(),
            target: want.clone(),
        })
        .map_err(journal)?;
    if before[0].1 == want {
        bench
            .append_record(&JournalRecord::Closed { id, index: n, outcome: RestoreOutcome::AlreadyRestored })
            .map_err(journal)?;
        return Ok(());
    }
    bench.io.write(at, &want)?;
    bench.kill_points.reach("written");
    let after = bench.read_with_linked(at)?;
    bench.kill_points.reach("read back");
    bench.append_record(&JournalRecord::Applied { id, index: n, after: after.clone() }).map_err(journal)?;
    if !is_accepted(at, &want, &after[0].1) {
        return Err(TuneError::Failed(format!("{at}: the kernel made {} of {want}", after[0].1)));
    }
    Ok(())
}

/// Whether the value read back is what was written. `-1` asks for a default whose value is the kernel's.
pub fn is_accepted(at: &KnobId, want: &str, got: &str) -> bool {
    want == got || (at.knob().name == "wbt_lat_usec" && want == "-1")
}

fn roll_back(bench: &mut TuningContext, id: u64) -> String {
    match restore(bench, id) {
        Ok(all) => {
            let left: Vec<String> = all
                .iter()
                .filter(|(_, u)| {
                    !matches!(u, RestoreResult::Closed(RestoreOutcome::Restored | RestoreOutcome::AlreadyRestored))
                })
                .map(|(at, u)| format!("{at}: {u}"))
                .collect();
            match left.is_empty() {
                true => "nothing is changed".into(),
                false => {
                    format!("taken back except {}; `iotop-plus tune undo {id}` tries again", left.join(", "))
                }
            }
        }
        Err(err) => format!("taking back failed too: {err}; try `iotop-plus tune undo {id}`"),
    }
}

/// Now, ns since 1970.
pub fn now_wall_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
