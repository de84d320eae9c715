//! What asks before it changes a knob: applying, reverting, keeping and persisting; and what runs once it is confirmed.

use super::TuneView;
use super::cached_knobs::{self, CachedKnobs};
use crate::jobs::job::WorkerJob;
use crate::sanitize::sanitize;
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus, KnobSnapshot, change_texts};
use crate::tui::view::{
    Confirmation, Context, Dialog, Effect, LeaseCommand, Outbox, PaneId, PendingChange, TuneAction, TuneEffect,
};
use crate::tuning::knob::KnobLink;
use crate::tuning::plan::TuneError;
use crate::tuning::presets::PRESETS;
use crate::tuning::sudo::sudo_command_line;
use crate::units::format_duration;

const CONFLICT_NOTE: &str = "\nA value that somebody else has set meanwhile is left alone and reported.";

fn confirm(out: &mut Outbox, title: impl Into<String>, text: String, change: Confirmation) {
    out.open_dialog(Dialog {
        title: title.into(),
        text: text.lines().map(sanitize).collect::<Vec<_>>().join("\n"),
        scroll: 0,
        on_confirm: PendingChange::Tune(change),
    });
}

fn undo(ids: Vec<u64>) -> Confirmation {
    Confirmation::Run(TuneEffect::Command(ids, LeaseCommand::Undo))
}

/// Arguments of `iotop-plus tune`.
fn tune_args<const N: usize>(args: [&str; N]) -> impl Iterator<Item = String> + use<N> {
    std::iter::once("tune".to_owned()).chain(args.map(String::from))
}

/// Changes whose tuner was killed.
pub(super) fn orphaned_changes(snapshot: &KnobSnapshot) -> Vec<u64> {
    snapshot.changes.iter().filter(|c| c.status == ChangeStatus::Orphaned).map(|c| c.id).collect()
}

impl TuneView {
    /// Offers to copy the command that does it as root.
    pub(super) fn offer_root_command(what: &str, args: impl IntoIterator<Item = String>, out: &mut Outbox) {
        let line = sudo_command_line("iotop-plus", args);
        let text = format!(
            "{what} needs root, and this program does not run as root. Nothing has changed. In a shell:\n\n{line}\n\n\
         y copies the line to your terminal's clipboard (OSC 52), if it supports that."
        );
        confirm(out, "Needs root", text, Confirmation::CopyCommand(line));
    }

    pub(super) fn ask_apply(&mut self, cx: &Context, out: &mut Outbox) {
        let assignments = self.pending_assignments();
        if assignments.is_empty() {
            return out.error("nothing is pending: Enter edits a knob, l lists presets");
        }
        self.ask_apply_assignments(assignments, true, cx, out);
    }

    /// Asks whether to apply the assignment that was typed as a command, once its knob has been read.
    pub(super) fn ask_typed_assignment(&mut self, cx: &Context, out: &mut Outbox) {
        let is_read = |text: &String| self.knobs.knob(text.split('=').next().unwrap_or_default()).is_some();
        if self.typed_assignment.as_ref().is_some_and(is_read) {
            let typed = self.typed_assignment.take();
            self.ask_apply_assignments(typed.into_iter().collect(), true, cx, out);
        }
    }

    pub(super) fn ask_apply_assignments(
        &mut self,
        assignments: Vec<String>,
        on_lease: bool,
        cx: &Context,
        out: &mut Outbox,
    ) {
        if self.busy_with.is_some() {
            return out.error("another change is being applied; wait for it");
        }
        if cx.shared.running.as_ref().is_some_and(|running| running.is_experiment) {
            return out.error("an experiment is running and this would falsify it: C on its page ends it (E)");
        }
        let Some(snapshot) = &self.knobs.snapshot else { return };
        let diffs = match cached_knobs::diff_assignments(snapshot, &assignments) {
            Ok(diffs) => diffs,
            Err(why) => return self.show_refusal(why, cx, out),
        };
        if !snapshot.can_write {
            let lease = format!("{}s", self.knobs.lease_secs);
            let mode = if on_lease { vec!["--for".into(), lease] } else { vec!["--keep".into()] };
            return Self::offer_root_command("Changing a knob", tune_args(["set"]).chain(assignments).chain(mode), out);
        }
        let mut text = String::new();
        for diff in &diffs {
            text += &diff.text;
            let target = self.knobs.knob(&diff.name).filter(|_| !diff.is_unchanged);
            text += &target.map(|row| format!(", written to {}", row.written_to())).unwrap_or_default();
            text += "\n";
        }
        if !on_lease {
            text += "\nAll or none. The old values are saved in a journal first. The new ones stay until the \
                     machine boots, or until U reverts them.";
            let effect = TuneEffect::Apply { assignments, lease_secs: None };
            return confirm(out, "Set for good", text, Confirmation::Run(effect));
        }
        let secs = format_duration(self.knobs.lease_secs);
        text += &format!(
            "\nAll or none. The old values are saved in a journal first and are restored in {secs}, or when this \
             program ends, unless K keeps the new ones. M restarts the time, U reverts at once."
        );
        let effect = TuneEffect::Apply { assignments, lease_secs: Some(self.knobs.lease_secs) };
        confirm(out, "Apply", text, Confirmation::Run(effect));
    }

    /// Shows why a request was refused: above the knobs, and in the message line where the knobs are not visible.
    fn show_refusal(&mut self, why: TuneError, cx: &Context, out: &mut Outbox) {
        let why = sanitize(why.to_string());
        if cx.layout.pane_area(PaneId::TuneKnobs).is_none() {
            out.error(&why);
        }
        self.error = Some(why);
    }

    pub(super) fn preset_changes(&self, at: usize) -> Result<Vec<(String, String)>, TuneError> {
        let Some(snapshot) = &self.knobs.snapshot else { return Ok(Vec::new()) };
        let (assignments, _) = PRESETS[at].available_assignments(&mut CachedKnobs(snapshot));
        let diffs = cached_knobs::diff_assignments(snapshot, &assignments)?;
        let changed = assignments.iter().zip(diffs).filter(|(_, diff)| !diff.is_unchanged);
        let value = |(assignment, diff): (&String, cached_knobs::KnobDiff)| {
            let (_, text) = assignment.rsplit_once('=')?;
            let value = cached_knobs::canonical_value(snapshot, &diff.name, text).ok()?;
            Some((diff.name, value))
        };
        Ok(changed.filter_map(value).collect())
    }

    /// Makes a preset's values pending and asks whether to apply them.
    pub(super) fn ask_apply_preset(&mut self, at: usize, cx: &Context, out: &mut Outbox) {
        let changes = match self.preset_changes(at) {
            Ok(changes) => changes,
            Err(why) => return self.error = Some(sanitize(why.to_string())),
        };
        self.selected_preset = None;
        if changes.is_empty() {
            return out.info(format!("{}: all values are set already", PRESETS[at].name));
        }
        self.pending = changes.into_iter().collect();
        self.ask_apply(cx, out);
    }

    /// The change a key acts on: the selected one if the list of changes has the focus, else the newest that fits.
    fn target_change(&self, cx: &Context, fits: impl Fn(&ChangeRow) -> bool) -> Option<u64> {
        if cx.focused == PaneId::ChangeHistory {
            return self.selected_change().filter(|c| fits(c)).map(|c| c.id);
        }
        self.knobs.changes().iter().find(|c| fits(c)).map(|c| c.id)
    }

    /// Keeps a leased change. It writes no knob, so no confirmation is asked.
    pub(super) fn keep_selected(&self, cx: &Context, out: &mut Outbox) {
        match self.target_change(cx, |c| c.is_on_lease() || c.status == ChangeStatus::Orphaned) {
            None => out.error("no change is on lease"),
            Some(id) => self.keep_change(id, out),
        }
    }

    pub(super) fn keep_change(&self, id: u64, out: &mut Outbox) {
        if !self.knobs.can_write() {
            return Self::offer_root_command("Keeping a change", tune_args(["keep", &id.to_string()]), out);
        }
        out.push(Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Keep)));
    }

    pub(super) fn renew_selected(&self, cx: &Context, out: &mut Outbox) {
        let secs = self.knobs.lease_secs;
        match self.target_change(cx, ChangeRow::is_on_lease) {
            None => out.error("no change is on lease"),
            Some(id) if !self.knobs.can_write() => {
                let args = tune_args(["renew", &id.to_string(), "--for", &format!("{secs}s")]);
                Self::offer_root_command("Restarting a lease", args, out);
            }
            Some(id) => out.push(Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Renew(secs)))),
        }
    }

    pub(super) fn ask_undo(&self, cx: &Context, out: &mut Outbox) {
        let open = |c: &ChangeRow| !matches!(c.status, ChangeStatus::Closed(_) | ChangeStatus::Applying);
        match self.target_change(cx, open) {
            None => out.error("there is no change to revert"),
            Some(id) if !self.knobs.can_write() => {
                Self::offer_root_command("Reverting a change", tune_args(["undo", &id.to_string()]), out);
            }
            Some(id) => {
                let text = format!("{}{CONFLICT_NOTE}", self.old_values_text(&[id]));
                confirm(out, format!("Revert change {id}"), text, undo(vec![id]));
            }
        }
    }

    /// Lists what reverting these changes would write.
    fn old_values_text(&self, ids: &[u64]) -> String {
        let changes = self.knobs.changes().iter().filter(|c| ids.contains(&c.id));
        let members = changes.flat_map(|c| c.members.iter().rev()).filter(|m| m.outcome.is_none());
        members.map(change_texts).map(|[name, old, new]| format!("{name}: {new} -> {old}\n")).collect()
    }

    /// Offers once to revert changes whose tuner was killed.
    pub(super) fn offer_restore(&mut self, cx: &Context, out: &mut Outbox) {
        let Some(snapshot) = &self.knobs.snapshot else { return };
        let ids = orphaned_changes(snapshot);
        let is_covered = cx.screen.overlay.is_some() || cx.screen.detail.is_some();
        if ids.is_empty() || self.is_restore_offered || !snapshot.can_write || is_covered {
            return;
        }
        self.is_restore_offered = true;
        let text = format!(
            "An earlier program was killed before it could revert these:\n{}{CONFLICT_NOTE} Otherwise they stay; H \
             shows them, U reverts one, K marks one as kept.",
            self.old_values_text(&ids)
        );
        confirm(out, "Restore orphaned changes", text, undo(ids));
    }

    /// Asks whether to persist the selected knob's value, or to stop persisting it.
    /// Errors: why it cannot be persisted.
    pub(super) fn ask_persist(&self, out: &mut Outbox) -> Result<(), String> {
        let Some(row) = self.selected_knob() else { return Ok(()) };
        let (name, shown) = (&row.name, &row.display_name);
        let file = row.persist_path.as_ref()?;
        let value = match (self.pending.get(name), &row.reading) {
            (Some(value), _) => value,
            (None, Ok(reading)) => &reading.value,
            (None, Err(error)) => return Err(error.to_string()),
        };
        if matches!(row.knob().link, KnobLink::Pair(_)) && value == "0" {
            return Err(format!("{shown} is 0 because the other knob of its pair is in effect; persist that one"));
        }
        let boot = self.next_boot.get(name);
        let remove = boot.is_some_and(|b| b.persisted.as_ref() == Some(value));
        let brief = row.format_short(value);
        let now = boot.map_or_else(
            || "What sets it at boot is not known yet.".to_owned(),
            |b| format!("After the next boot it is {}, set by {}.", b.value, b.decided_by),
        );
        let overridden = boot
            .and_then(|b| b.overriding_line.as_deref())
            .filter(|_| !remove)
            .map(|line| format!("\nWARNING: {line} comes later and overrides our file: change it there."));
        let what = match remove {
            true => format!("Remove {shown} from {file}."),
            false => format!("Write {shown} = {value} ({brief}) to {file}, for every boot."),
        };
        let assignments = vec![if remove { name.clone() } else { format!("{name}={value}") }];
        if !self.knobs.can_write() {
            let verb = if remove { "unpersist" } else { "persist" };
            Self::offer_root_command("Writing to /etc", tune_args([verb]).chain(assignments), out);
            return Ok(());
        }
        let text = format!("{what}\n{now}{}\nThe current value does not change.", overridden.unwrap_or_default());
        confirm(out, "The next boot", text, Confirmation::Persist { assignments, remove });
        Ok(())
    }

    pub(super) fn run_confirmed(&mut self, confirmed: Confirmation, out: &mut Outbox) {
        match confirmed {
            Confirmation::Run(effect) => {
                if let TuneEffect::Apply { assignments, .. } = &effect {
                    self.busy_with = Some("applying the change".into());
                    self.applying.clone_from(assignments);
                }
                out.push(Effect::Tune(effect));
            }
            Confirmation::Persist { assignments, remove } => {
                out.push(Effect::RunJob(WorkerJob::Persist { assignments, remove }));
            }
            Confirmation::CopyCommand(line) => {
                out.push(Effect::CopyToClipboard(line));
                out.info("sent to the terminal's clipboard (OSC 52), if it supports that");
            }
            Confirmation::Quit => {}
        }
    }

    /// Asks what to do with leased changes before the program ends.
    pub(super) fn ask_before_quit(&self, out: &mut Outbox) {
        let leases = &self.knobs.leases;
        let ids: Vec<u64> = leases.iter().map(|l| l.id).collect();
        let mut text: String =
            leases.iter().map(|l| format!("Change {} reverts in {}.\n", l.id, format_duration(l.secs_left))).collect();
        text += &self.old_values_text(&ids);
        if self.busy_with.is_some() {
            text += "A change is being applied. Quitting reverts what has been written.\n";
        }
        text += "\nu reverts the new values and quits. k keeps them until the machine boots. l leaves a process \
                 running that reverts them when the lease ends.";
        confirm(out, "Quit with a leased change?", text, Confirmation::Quit);
    }

    pub(super) fn quit_with_leases(&mut self, how: TuneAction, out: &mut Outbox) {
        let ids: Vec<u64> = self.knobs.leases.iter().map(|l| l.id).collect();
        self.is_quitting = true;
        if ids.is_empty() {
            // A change is only being applied: when this program ends, the tuner reverts it.
            return out.push(Effect::Quit);
        }
        out.info("quitting as soon as that is done; q quits at once, which reverts the change");
        let command = match how {
            TuneAction::QuitKeep => LeaseCommand::Keep,
            TuneAction::QuitDetach => LeaseCommand::Detach,
            _ => LeaseCommand::Undo,
        };
        out.push(Effect::Tune(TuneEffect::Command(ids, command)));
    }
}
