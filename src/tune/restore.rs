//! Taking a change back: only while the value is still ours.

use super::address::Address;
use super::apply::{Bench, LOCK_WITHIN, taken};
use super::change::{Change, Member, fold};
use super::kernel::Fail;
use super::knob::Link;
use super::record::{Outcome, Record, Setting};
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// What came of taking one knob back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Undone {
    /// It is dealt with.
    Closed(Outcome),
    /// It could not be now; it stays on the list.
    Failed(Fail),
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Closed(Outcome::Restored) => f.write_str("restored"),
            Undone::Closed(Outcome::Already) => f.write_str("stood at its old value already"),
            Undone::Closed(Outcome::Conflict { now }) => {
                write!(f, "CONFLICT: somebody set it to {now} meanwhile; left as it is")
            }
            Undone::Closed(Outcome::Gone) => f.write_str("its device, mount or process is gone"),
            Undone::Closed(Outcome::HandedOver { to }) => {
                write!(f, "change {to} stands on it and will restore the old value")
            }
            Undone::Failed(fail) => write!(f, "FAILED: {}", fail.text()),
        }
    }
}

/// [`restore`] under the lock.
pub fn undo(bench: &mut Bench, id: u64) -> io::Result<Vec<(Address, Undone)>> {
    let _lock = bench.journal.lock(LOCK_WITHIN)?;
    restore(bench, id)
}

/// Takes back what is open of a change, last knob first. Safe to be cut off and done again. The caller holds
/// the lock.
pub fn restore(bench: &mut Bench, id: u64) -> io::Result<Vec<(Address, Undone)>> {
    let (records, _) = bench.journal.load()?;
    let changes = fold(&records);
    let Some(change) = changes.iter().find(|c| c.id == id) else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    for member in change.members.iter().rev().filter(|m| m.closed.is_none()) {
        let undone = match one(bench, &changes, id, member)? {
            Ok(outcome) => {
                bench.append(&Record::Closed { id, n: member.n, outcome: outcome.clone() })?;
                Undone::Closed(outcome)
            }
            Err(fail) => Undone::Failed(fail),
        };
        told.push((member.at.clone(), undone));
    }
    Ok(told)
}

type Tried = Result<Outcome, Fail>;

fn one(bench: &mut Bench, changes: &[Change], id: u64, member: &Member) -> io::Result<Tried> {
    match bench.io.identity(&member.at) {
        Ok(ident) if ident == member.ident => {}
        Ok(_) | Err(Fail::Absent(_)) => return Ok(Ok(Outcome::Gone)),
        Err(fail) => return Ok(Err(fail)),
    }
    let now = match bench.group(&member.at) {
        Ok(now) => now,
        Err(Fail::Absent(_)) => return Ok(Ok(Outcome::Gone)),
        Err(fail) => return Ok(Err(fail)),
    };
    if let Some((to, n, before)) = stands_on(changes, id, member) {
        bench.append(&Record::Inherit { id: to, n, before })?;
        return Ok(Ok(Outcome::HandedOver { to }));
    }
    let never_written = member.after.is_none();
    if essence(&now) == essence(&member.before) && (never_written || moved_back(&now, &member.before)) {
        return Ok(Ok(Outcome::Already));
    }
    if !is_ours(member, &now) && essence(&now) != essence(&member.before) {
        return Ok(Ok(Outcome::Conflict { now: words(&now) }));
    }
    Ok(write_back(bench, member, &now))
}

fn write_back(bench: &mut Bench, member: &Member, now: &[Setting]) -> Tried {
    if essence(now) != essence(&member.before) {
        // Of a pair the member that is not 0: the kernel refuses 0 bytes, and a 0 ratio is no limit at all.
        let pair = matches!(member.at.knob().link, Link::Pair(_));
        let source = if pair { member.before.iter().find(|(_, v)| v != "0") } else { member.before.first() };
        let (at, value) = source.ok_or_else(|| Fail::Invalid(format!("{}: both were 0", member.at)))?;
        bench.io.write(at, value)?;
        bench.steps.pass("written back");
    }
    if let Link::Moves(_) = member.at.knob().link {
        for (at, old) in member.before.iter().skip(1) {
            // What the kernel moved along goes back too, but what somebody set since is set again; and where
            // it is not known which of the two it is, it is left to the kernel.
            let of = |all: &[Setting]| all.iter().find(|(a, _)| a == at).map(|(_, v)| v.clone());
            let target = match (of(now), member.after.as_deref().map(of)) {
                (Some(stood), Some(Some(ours))) if stood != ours => stood,
                (Some(stood), None) if stood != *old => continue,
                _ => old.clone(),
            };
            if bench.io.read(at).is_ok_and(|r| r.value != target) {
                bench.io.write(at, &target)?;
                bench.steps.pass("a follower written back");
            }
        }
    }
    let stands = bench.group(&member.at)?;
    let (got, want) = (essence(&stands), essence(&member.before));
    let same = got == want || got.iter().all(|(at, v)| want.get(at).is_some_and(|w| taken(at, w, v)));
    match same {
        true => Ok(Outcome::Restored),
        false => Err(Fail::Invalid(format!("{}: written back, but it reads {}", member.at, words(&stands)))),
    }
}

/// Whether the values are the ones our change left; if it died before saying, the ones it meant to leave.
fn is_ours(member: &Member, now: &[Setting]) -> bool {
    // The kernel itself counts this one down, a step for each report.
    if member.at.knob().name == "kernel.hung_task_warnings" {
        let left = now.first().and_then(|(_, v)| v.parse::<i64>().ok());
        let given = member.after.as_deref().and_then(<[Setting]>::first).map_or(&member.want, |(_, v)| v);
        return left
            .zip(given.parse().ok())
            .is_some_and(|(left, given)| left == given || (0..given).contains(&left));
    }
    match &member.after {
        Some(after) => essence(after) == essence(now),
        None => essence(&meant(member)) == essence(now),
    }
}

fn meant(member: &Member) -> Vec<Setting> {
    let zero = |(at, _): &Setting| (at.clone(), "0".to_owned());
    let own = (member.at.clone(), member.want.clone());
    std::iter::once(own).chain(member.before.iter().skip(1).map(zero)).collect()
}

/// The values that make up the setting: both halves of a pair, else the knob alone.
fn essence(all: &[Setting]) -> BTreeMap<&Address, &str> {
    let pair = all.first().is_some_and(|(at, _)| matches!(at.knob().link, Link::Pair(_)));
    all.iter().take(if pair { all.len() } else { 1 }).map(|(at, v)| (at, v.as_str())).collect()
}

/// Whether nothing the kernel moved along stands apart from where it was.
fn moved_back(now: &[Setting], before: &[Setting]) -> bool {
    now.iter().all(|(at, v)| before.iter().all(|(b, old)| b != at || old == v))
}

/// A later, still open change made on top of this one: its number, member, and what it should restore.
fn stands_on(changes: &[Change], id: u64, member: &Member) -> Option<(u64, u32, Vec<Setting>)> {
    let ours = member.after.clone().unwrap_or_else(|| meant(member));
    changes.iter().filter(|c| c.id > id).find_map(|c| {
        let on = c
            .members
            .iter()
            .find(|m| m.closed.is_none() && m.after.is_some() && essence(&m.before) == essence(&ours))?;
        let mut before = member.before.clone();
        before.sort_by_key(|(at, _)| *at != on.at);
        Some((c.id, on.n, before))
    })
}

fn words(all: &[Setting]) -> String {
    essence(all).iter().map(|(at, v)| format!("{at}={v}")).collect::<Vec<_>>().join(" ")
}
