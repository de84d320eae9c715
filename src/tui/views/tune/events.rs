//! Events of the tuner, and replies of child processes.

use super::TuneView;
use super::apply::orphaned_changes;
use crate::jobs::job::WorkerReply;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::{ActiveLease, ChangeStatus, KnobSnapshot};
use crate::tui::view::{
    Action, Context, Effect, LeaseCommand, Outbox, TuneAction, TuneEffect, TuneEvent, ViewId, ViewRequest,
};
use crate::units::format_duration;
use std::sync::Arc;

impl TuneView {
    pub(super) fn on_tune_event(&mut self, event: TuneEvent, cx: &Context, out: &mut Outbox) {
        let [undo, keep] = [TuneAction::Undo, TuneAction::Keep].map(|action| cx.shared.key(Action::Tune(action)));
        match event {
            TuneEvent::Refreshed(snapshot) => return self.on_refreshed(snapshot, cx, out),
            TuneEvent::LeaseTime { id, secs_left, was_renewed } => {
                self.knobs.leases.iter_mut().filter(|l| l.id == id).for_each(|l| l.secs_left = secs_left);
                if was_renewed {
                    let left = format_duration(secs_left);
                    out.info(format!("change {id}: reverts in {left} unless you press {keep}"));
                    self.refresh_now(out);
                }
                return;
            }
            TuneEvent::Applied { id, lease_secs } => self.on_applied(id, lease_secs, cx, out),
            TuneEvent::AppliedPermanently(id) => {
                self.busy_with = None;
                self.show_newest_change();
                out.info(format!("change {id} applied and stays until the machine boots; {undo} reverts it"));
            }
            TuneEvent::Refused(why) => self.on_failure(why, out),
            TuneEvent::Failed(why) => {
                self.is_quitting = false;
                self.on_failure(why, out);
            }
            TuneEvent::Kept(id) => {
                self.remove_lease(id);
                out.info(format!("change {id} stays until the machine boots; {undo} reverts it"));
            }
            TuneEvent::Detached(id) => self.remove_lease(id),
            TuneEvent::Undone { id, boot_ns, was_automatic, lines, is_fully_restored, is_closed } => {
                if is_closed {
                    self.remove_lease(id);
                    self.ended_boot_ns.insert(id, boot_ns);
                }
                match (is_fully_restored, was_automatic) {
                    (true, true) => out.info(format!("the lease of change {id} has ended: the old values are back")),
                    (true, false) => out.info(format!("change {id} reverted")),
                    (false, _) => out.error(format!("change {id}: {}", lines.join("; "))),
                }
            }
            TuneEvent::TunerLost(id) => {
                self.remove_lease(id);
                out.error(format!("the tuner of change {id} was killed: the new values stay; {undo} reverts them"));
            }
        }
        self.refresh_now(out);
        out.ask(ViewRequest::CheckArms);
        if self.is_quitting && self.knobs.leases.is_empty() {
            out.push(Effect::Quit);
        }
    }

    fn on_failure(&mut self, why: String, out: &mut Outbox) {
        self.busy_with = None;
        out.error(&why);
        self.error = Some(why);
    }

    fn remove_lease(&mut self, id: u64) {
        self.knobs.leases.retain(|l| l.id != id);
    }

    fn show_newest_change(&mut self) {
        self.shows_changes = true;
        self.changes_scroll.selected = 0;
    }

    fn on_refreshed(&mut self, snapshot: KnobSnapshot, cx: &Context, out: &mut Outbox) {
        let is_first = self.knobs.snapshot.is_none();
        self.has_snapshot_arrived = true;
        let selected = self.selected_knob().map(|r| r.name.clone());
        let selected_change = self.selected_change().map(|c| c.id);
        for row in &snapshot.rows {
            if let Ok(reading) = &row.reading {
                self.initial_values.entry(row.name.clone()).or_insert_with(|| reading.value.clone());
            }
        }
        // A change that was open in the last snapshot and is closed now ended in between.
        let is_closed = |s: &ChangeStatus| matches!(s, ChangeStatus::Closed(_));
        for change in snapshot.changes.iter().filter(|c| is_closed(&c.status)) {
            if self.knobs.changes().iter().any(|c| c.id == change.id && !is_closed(&c.status)) {
                self.ended_boot_ns.entry(change.id).or_insert(cx.shared.system.now().boot_ns);
            }
        }
        self.pending.retain(|name, _| snapshot.rows.iter().any(|r| r.name == *name));
        let has_new_change = snapshot.changes.first().map(|c| c.id) != self.knobs.changes().first().map(|c| c.id);
        self.knobs.snapshot = Some(Arc::new(snapshot));
        let same_change = selected_change.and_then(|id| self.knobs.changes().iter().position(|c| c.id == id));
        if has_new_change {
            self.changes_scroll.selected = 0;
        } else if let Some(at) = same_change {
            self.changes_scroll.selected = at;
        }
        if self.knob_to_select.is_none() && !is_first {
            self.knob_to_select = selected;
        }
        self.select_requested_knob();
        self.ask_typed_assignment(cx, out);
        let is_shown = cx.screen.view == ViewId::Tune;
        if is_first {
            self.skip_heading(1);
            let has_orphans = self.knobs.snapshot.as_ref().is_some_and(|s| !orphaned_changes(s).is_empty());
            if has_orphans && !is_shown {
                out.error("an earlier program left changed settings; 7 shows them and offers to restore them");
            }
        }
        if is_shown {
            self.request_boot_values(out);
            self.offer_restore(cx, out);
        }
    }

    fn on_applied(&mut self, id: u64, lease_secs: Option<u64>, cx: &Context, out: &mut Outbox) {
        self.busy_with = None;
        for assignment in std::mem::take(&mut self.applying) {
            if let Some((name, value)) = assignment.rsplit_once('=')
                && self.pending.get(name).is_some_and(|v| v == value)
            {
                self.pending.remove(name);
            }
        }
        let Some(secs_left) = lease_secs else {
            return out.info("nothing to change: all values are set already");
        };
        self.knobs.leases.push(ActiveLease { id, secs_left });
        self.show_newest_change();
        if self.is_quitting {
            return out.push(Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Undo)));
        }
        let back = format_duration(secs_left);
        let [keep, undo, renew] =
            [TuneAction::Keep, TuneAction::Undo, TuneAction::Renew].map(|action| cx.shared.key(Action::Tune(action)));
        out.info(format!(
            "change {id} applied; reverts in {back}: {keep} keeps, {undo} reverts, {renew} restarts the lease"
        ));
    }

    pub(super) fn on_boot_values(&mut self, reply: WorkerReply, out: &mut Outbox) {
        self.is_boot_requested = false;
        match reply {
            WorkerReply::BootValues(all, notes) => {
                self.next_boot.extend(all);
                self.boot_notes = notes.into_iter().map(sanitize).collect();
            }
            WorkerReply::Failed(why) => out.error(why),
            _ => {}
        }
    }

    pub(super) fn on_persisted(&mut self, reply: WorkerReply, out: &mut Outbox) {
        let problem = match reply {
            WorkerReply::Persisted(lines) => {
                let warning = lines.iter().find(|l| l.starts_with("WARNING")).cloned();
                if warning.is_none() {
                    out.info(lines.join("; "));
                }
                warning
            }
            WorkerReply::Failed(why) => Some(why),
            _ => None,
        };
        if let Some(problem) = problem {
            out.error(&problem);
            self.error = Some(sanitize(problem));
        }
        // The values after the next boot have changed.
        self.next_boot.clear();
        self.request_boot_values(out);
    }
}
