//! Making a change: capture the group, journal, write, read back, mark applied. All or nothing.

use super::address::Address;
use super::change::{Change, fold, next_id};
use super::journal::Journal;
use super::kernel::{Fail, KnobIo};
use super::plan::{Planned, Refusal};
use super::record::{Outcome, Record, Setting};
use super::restore::{Undone, restore};
use super::steps::Steps;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::Duration;

/// How long another change may take before ours is given up.
pub const LOCK_WITHIN: Duration = Duration::from_secs(3);

/// Where changes are made: the kernel, the journal, and the count of steps.
pub struct Bench<'a> {
    /// The kernel.
    pub io: &'a mut dyn KnobIo,
    /// What is going on.
    pub journal: Journal,
    /// Where to be killed.
    pub steps: Steps,
}

/// Writes all of `plan`, or leaves everything as it was. `lease_secs` is for the record; who keeps the lease
/// is the caller's business.
pub fn apply(bench: &mut Bench, plan: &[Planned], lease_secs: Option<u64>) -> Result<Change, Refusal> {
    let failed = |err: io::Error| Refusal::Failed(format!("nothing was changed: {err}"));
    let lock = bench.journal.lock(LOCK_WITHIN).map_err(|err| Refusal::Unsafe(err.to_string()))?;
    let (records, _) = bench.journal.load().map_err(failed)?;
    let id = next_id(&fold(&records));
    bench.append(&Record::Begin { id, wall_ns: wall_ns(), lease_secs }).map_err(failed)?;
    for (n, planned) in (0u32..).zip(plan) {
        if let Err(why) = one(bench, id, n, planned) {
            let text = format!("{why}; {}", rolled_back(bench, id));
            return Err(match why {
                Refusal::Privilege(_) => Refusal::Privilege(text),
                Refusal::Unsafe(_) => Refusal::Unsafe(text),
                _ => Refusal::Failed(text),
            });
        }
    }
    if lease_secs.is_none() {
        bench.append(&Record::Kept { id }).map_err(|err| Refusal::Failed(err.to_string()))?;
    }
    let (records, _) = bench.journal.load().map_err(failed)?;
    drop(lock);
    fold(&records)
        .into_iter()
        .find(|c| c.id == id)
        .ok_or_else(|| Refusal::Failed("the journal lost it".into()))
}

/// Marks a change as one that stays.
pub fn keep(journal: &mut Journal, steps: &mut Steps, id: u64) -> io::Result<()> {
    let _lock = journal.lock(LOCK_WITHIN)?;
    journal.append(&Record::Kept { id }, steps)
}

impl Bench<'_> {
    /// [`Journal::append`] with the steps counted.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.journal.append(record, &mut self.steps)
    }

    /// A knob's value and of what moves with it, itself first. What moves along and cannot be read is left out.
    pub fn group(&mut self, at: &Address) -> Result<Vec<Setting>, Fail> {
        let own = self.io.read(at)?.value;
        let mut all = vec![(at.clone(), own)];
        for other in at.group().into_iter().skip(1) {
            if let Ok(reading) = self.io.read(&other) {
                all.push((other, reading.value));
            }
        }
        Ok(all)
    }
}

fn one(bench: &mut Bench, id: u64, n: u32, planned: &Planned) -> Result<(), Refusal> {
    let at = &planned.at;
    let ident = bench.io.identity(at)?;
    let before = bench.group(at)?;
    let journal =
        |err: io::Error| Refusal::Failed(format!("{at}: not written, as the journal cannot be: {err}"));
    let want = planned.want.clone();
    bench
        .append(&Record::Intend { id, n, at: at.clone(), ident, before: before.clone(), want: want.clone() })
        .map_err(journal)?;
    if before[0].1 == want {
        bench.append(&Record::Closed { id, n, outcome: Outcome::Already }).map_err(journal)?;
        return Ok(());
    }
    bench.io.write(at, &want)?;
    bench.steps.pass("written");
    let after = bench.group(at)?;
    bench.steps.pass("read back");
    bench.append(&Record::Applied { id, n, after: after.clone() }).map_err(journal)?;
    if !taken(at, &want, &after[0].1) {
        return Err(Refusal::Failed(format!("{at}: the kernel made {} of {want}", after[0].1)));
    }
    Ok(())
}

/// Whether the value read back is what was written. `-1` asks for a default whose value is the kernel's.
pub fn taken(at: &Address, want: &str, got: &str) -> bool {
    want == got || (at.knob().name == "wbt_lat_usec" && want == "-1")
}

fn rolled_back(bench: &mut Bench, id: u64) -> String {
    match restore(bench, id) {
        Ok(all) => {
            let left: Vec<String> = all
                .iter()
                .filter(|(_, u)| !matches!(u, Undone::Closed(Outcome::Restored | Outcome::Already)))
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
pub fn wall_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
