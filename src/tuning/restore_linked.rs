//! Restores a knob together with those that the kernel recomputes when it is written: a new scheduler resets
//! `nr_requests`.
//!
//! Such a linked knob gets the newest value that somebody else gave it; if nobody did, the value from before the change.
//! What somebody else wrote is distinguished from what the kernel computed by the values read back after the change. Where a kill
//! prevented that, the kernel is asked: writing the change and its old value once more shows what it computes from each.
//! All of that overwrites values that are still needed, so they are recorded first; the next restore knows them if this
//! one is killed.

use super::change_set::ChangeSet;
use super::context::TuningContext;
use super::journal_record::{JournalRecord, KnobChange, KnobValuePair, RestoreOutcome};
use super::knob_id::KnobId;
use super::knob_io::KnobError;

/// Restores `member` and its linked knobs. `current`: their values, of which that of `member` is the one from before the
/// change or the one the change wrote.
pub(super) fn restore_with_linked(
    context: &mut TuningContext,
    changes: &[ChangeSet],
    id: u64,
    member: &KnobChange,
    current: &[KnobValuePair],
) -> Result<RestoreOutcome, KnobError> {
    let (knob, old) = &member.before[0];
    let mut restore = LinkedRestore { context, id, member, current, kernel_values: None };
    let wanted = restore.wanted_values();
    let is_asked = restore.kernel_values.is_some();
    let could_ask = restore.kernel_values != Some(None);
    if !is_asked && current[0].1 == *old && wanted.iter().all(|pair| current.contains(pair)) {
        return Ok(RestoreOutcome::AlreadyRestored);
    }
    if !is_asked {
        restore.record_current();
    }
    restore.hand_over(changes);
    if current[0].1 != *old {
        context.io.write(knob, old)?;
        context.kill_points.reach("written back");
    }
    for (linked, value) in &wanted {
        if context.io.read(linked).is_ok_and(|reading| reading.value != *value) {
            context.io.write(linked, value)?;
            context.kill_points.reach("a linked knob written back");
        }
    }
    let reading = context.io.read(knob)?;
    if reading.value != *old {
        return Err(KnobError::Invalid(format!("{knob}: written back, but it reads {}", reading.value)));
    }
    match could_ask {
        true => Ok(RestoreOutcome::Restored),
        false => Err(KnobError::Invalid(format!(
            "{knob}: written back, but {} could not be written to learn which settings the kernel computes from it",
            member.target
        ))),
    }
}

struct LinkedRestore<'a, 'c> {
    context: &'a mut TuningContext<'c>,
    id: u64,
    member: &'a KnobChange,
    current: &'a [KnobValuePair],
    /// All values as the kernel makes them, with the knob at one value and at the other; `Some(None)`: it cannot be
    /// asked.
    kernel_values: Option<Option<[Vec<KnobValuePair>; 2]>>,
}

impl LinkedRestore<'_, '_> {
    /// The value that each linked knob gets.
    fn wanted_values(&mut self) -> Vec<KnobValuePair> {
        let (member, current) = (self.member, self.current);
        let linked = member.before.iter().skip(1).map(|(knob, old)| {
            let newest_first = std::iter::once(current).chain(member.seen.iter().rev().map(Vec::as_slice));
            let others = newest_first
                .filter_map(|values| Some((value_of(values, &member.knob)?, value_of(values, knob)?)))
                .find(|(main, value)| value != old && !self.is_from_kernel(knob, old, main, value));
            (knob.clone(), others.map_or(old.as_str(), |(_, value)| value).to_owned())
        });
        linked.collect()
    }

    /// Whether the kernel computed this value of a linked knob when the knob was set to `main`.
    fn is_from_kernel(&mut self, linked: &KnobId, old: &str, main: &str, value: &str) -> bool {
        let read_back = self.member.after.as_deref().and_then(|after| value_of(after, linked));
        if let Some(after) = read_back.filter(|_| main == self.member.target) {
            return value == after;
        }
        if self.kernel_values.is_none() {
            self.record_current();
            self.kernel_values = Some(self.ask_kernel());
        }
        let Some(Some(kernel_values)) = &self.kernel_values else { return false };
        let computed = |main: &str| {
            let values = kernel_values.iter().find(|values| values[0].1 == main);
            values.and_then(|values| value_of(values, linked)).map(str::to_owned)
        };
        if computed(main).as_deref() != Some(value) {
            return false;
        }
        // The same for both values of the knob: the kernel computes it again, or leaves alone what somebody wrote.
        let is_same = kernel_values.iter().all(|values| value_of(values, linked) == Some(value));
        !is_same || self.is_computed_again(linked, old, value)
    }

    /// The values that the kernel computes: the knob is set to its other value and back.
    fn ask_kernel(&mut self) -> Option<[Vec<KnobValuePair>; 2]> {
        let (knob, now) = self.current.first()?;
        let old = &self.member.before[0].1;
        let other = if now == old { &self.member.target } else { old };
        let mut set = |value: &str| {
            self.context.io.write(knob, value)?;
            self.context.kill_points.reach("the kernel is asked");
            self.context.read_with_linked(knob)
        };
        Some([set(other).ok()?, set(now).ok()?])
    }

    /// Whether the kernel gives a linked knob `value` again after it was set to `old`.
    fn is_computed_again(&mut self, linked: &KnobId, old: &str, value: &str) -> bool {
        let is_set = self.context.io.write(linked, old).is_ok();
        self.context.kill_points.reach("the kernel is asked");
        let again = self.ask_kernel().filter(|_| is_set);
        let is_again =
            again.as_ref().is_some_and(|all| all.iter().all(|values| value_of(values, linked) == Some(value)));
        if again.is_none() {
            self.kernel_values = Some(None);
        }
        is_again
    }

    /// Records the current values. A journal that cannot be written delays nothing.
    fn record_current(&mut self) {
        let seen = self.current.to_vec();
        if self.member.seen.last() != Some(&seen) {
            let _ =
                self.context.append_record(&JournalRecord::Restoring { id: self.id, index: self.member.index, seen });
        }
    }

    /// Lets later changes of linked knobs restore the values from before this one.
    fn hand_over(&mut self, changes: &[ChangeSet]) {
        let after = self.member.after.as_deref().unwrap_or_default();
        for (linked, old) in self.member.before.iter().skip(1) {
            let Some(ours) = value_of(after, linked).filter(|ours| ours != old) else { continue };
            let is_on_top = |m: &&KnobChange| {
                m.knob == *linked && m.outcome.is_none() && m.after.is_some() && m.before[0].1 == ours
            };
            let later = changes.iter().filter(|c| c.id > self.id);
            for (to, newer) in later.filter_map(|c| Some((c.id, c.members.iter().find(is_on_top)?))) {
                let before = vec![(linked.clone(), old.clone())];
                let _ = self.context.append_record(&JournalRecord::Inherit { id: to, index: newer.index, before });
            }
        }
    }
}

fn value_of<'v>(values: &'v [KnobValuePair], knob: &KnobId) -> Option<&'v str> {
    values.iter().find(|(other, _)| other == knob).map(|(_, value)| value.as_str())
}
