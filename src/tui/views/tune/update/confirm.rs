//! Confirmation dialogs of the Tune view, and what runs once they are confirmed.

use crate::jobs::job::WorkerJob;
use crate::tui::action::TuneAction;
use crate::tui::effect::Effect;
use crate::tui::effect::TuneEffect;
use crate::tui::knob_snapshot::{ChangeRow, ChangeStatus};
use crate::tui::panes::PaneId;
use crate::tui::screen::Confirmation;
use crate::tui::state::App;
use crate::tui::views::tune::cached_knobs;
use crate::tui::views::tune::update::{is_unobstructed, open_confirmation, orphaned_changes};
use crate::tuning::plan::TuneError;
use crate::tuning::presets::PRESETS;
use crate::tuning::sudo::sudo_command_line;
use crate::units::format_duration;

/// Asks whether to apply the pending values.
pub fn ask_apply(app: &mut App) {
    let assignments = app.views.tune.pending_assignments();
    if assignments.is_empty() {
        return app.screen.error("nothing is pending: Enter edits a knob, p lists presets");
    }
    ask_apply_assignments(app, assignments, true);
}

/// Asks whether to apply these assignments, on a lease or for good.
pub fn ask_apply_assignments(app: &mut App, assignments: Vec<String>, on_lease: bool) {
    if app.views.tune.busy_with.is_some() {
        return app.screen.error("another change is being applied; wait for it");
    }
    if app.shared.running.as_ref().is_some_and(|r| r.is_experiment) {
        return app.screen.error("an experiment is running and this would falsify it: x on its page ends it (E)");
    }
    let tune = &mut app.views.tune;
    let Some(snapshot) = &tune.snapshot else { return };
    let diffs = match cached_knobs::diff_assignments(snapshot, &assignments) {
        Ok(diffs) => diffs,
        Err(why) => return show_refusal(app, why),
    };
    if !snapshot.can_write {
        let lease = tune.lease_secs;
        let args = ["tune", "set"].map(String::from).into_iter().chain(assignments);
        let lease_args = if on_lease { vec!["--for".into(), format!("{lease}s")] } else { vec!["--keep".into()] };
        return offer_root_command(app, "Changing a knob", args.chain(lease_args));
    }
    let mut text = String::new();
    for diff in &diffs {
        text += &diff.text;
        let target = tune.knob(&diff.name).filter(|_| !diff.is_unchanged).map(|r| r.written_to.as_str());
        text += &target.map(|t| format!(", written to {t}")).unwrap_or_default();
        text += "\n";
    }
    if !on_lease {
        text += "\nAll or none. The old values are saved in /run/iotop-plus first. The new ones stay until the machine \
                 boots, or until u reverts them.";
        return open_confirmation(app, "Set for good", text, Confirmation::ApplyPermanent(assignments));
    }
    let secs = format_duration(tune.lease_secs);
    text += &format!(
        "\nAll or none. The old values are saved in /run/iotop-plus first and are restored in {secs}, or when this \
         program ends, unless K keeps the new ones. R restarts the time, u reverts at once."
    );
    open_confirmation(app, "Apply", text, Confirmation::Apply(assignments));
}

/// Shows why a request was refused: above the knobs, and in the message line where the knobs are not visible.
fn show_refusal(app: &mut App, why: TuneError) {
    let why = crate::sanitize::sanitize(why.to_string());
    if app.views.experiments.is_open {
        app.screen.error(&why);
    }
    app.views.tune.error = Some(why);
}

/// Offers to copy the command that does it as root.
pub fn offer_root_command(app: &mut App, what: &str, args: impl IntoIterator<Item = String>) {
    let line = sudo_command_line("iotop-plus", args);
    let text = format!(
        "{what} needs root, and this program does not run as root. Nothing has changed. In a shell:\n\n{line}\n\n\
         y copies the line to your terminal's clipboard (OSC 52), if it supports that."
    );
    open_confirmation(app, "Needs root", text, Confirmation::CopyCommand(line));
}

/// Whether this program may change knobs.
pub fn can_write(app: &App) -> bool {
    app.views.tune.snapshot.as_ref().is_some_and(|s| s.can_write)
}

/// The knobs a preset would change here, with their values.
fn preset_changes(app: &App, at: usize) -> Result<Vec<(String, String)>, TuneError> {
    let Some(snapshot) = &app.views.tune.snapshot else { return Ok(Vec::new()) };
    let (assignments, _) = cached_knobs::preset_assignments(snapshot, &PRESETS[at]);
    let diffs = cached_knobs::diff_assignments(snapshot, &assignments)?;
    Ok(assignments
        .iter()
        .zip(&diffs)
        .filter(|(_, d)| !d.is_unchanged)
        .filter_map(|(w, d)| {
            let (_, text) = w.rsplit_once('=')?;
            Some((d.name.clone(), cached_knobs::canonical_value(snapshot, &d.name, text).ok()?))
        })
        .collect())
}

/// Makes a preset's values pending and asks whether to apply them.
pub fn ask_apply_preset(app: &mut App, at: usize) {
    let changes = match preset_changes(app, at) {
        Ok(changes) => changes,
        Err(why) => return app.views.tune.error = Some(crate::sanitize::sanitize(why.to_string())),
    };
    app.views.tune.selected_preset = None;
    if changes.is_empty() {
        return app.screen.info(format!("{}: all values are set already", PRESETS[at].name));
    }
    app.views.tune.pending = changes.into_iter().collect();
    ask_apply(app);
}

/// The assignments to try in an experiment: the pending values, those of the selected preset, or the selected knob's
/// current value. The flag says that the user must still choose a value.
pub fn knobs_to_try(app: &App) -> Result<(Vec<String>, bool), String> {
    let tune = &app.views.tune;
    if let Some(at) = tune.selected_preset {
        let changes = preset_changes(app, at).map_err(|why| why.to_string())?;
        let assignments: Vec<String> = changes.into_iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        return match assignments.is_empty() {
            true => Err(format!("{}: all values are set already", PRESETS[at].name)),
            false => Ok((assignments, false)),
        };
    }
    let proposed = tune.pending_assignments();
    if !proposed.is_empty() {
        return Ok((proposed, false));
    }
    let row = tune.selected_knob().ok_or("the knobs have not been read yet")?;
    match &row.reading {
        Ok(reading) => Ok((vec![format!("{}={}", row.name, reading.value)], true)),
        Err(fail) => Err(format!("{}: {}", row.display_name, fail)),
    }
}

/// The change a key acts on: the selected one if the list of changes has the focus, else the newest that fits.
fn target_change(app: &App, fits: impl Fn(&ChangeRow) -> bool) -> Option<u64> {
    let tune = &app.views.tune;
    if app.focused_pane() == PaneId::ChangeHistory {
        return tune.selected_change().filter(|c| fits(c)).map(|c| c.id);
    }
    tune.changes().iter().find(|c| fits(c)).map(|c| c.id)
}

/// Whether a change reverts itself when its lease ends.
pub fn is_on_lease(c: &ChangeRow) -> bool {
    matches!(c.status, ChangeStatus::Leased(_) | ChangeStatus::TunerSilent)
}

/// Keeps a leased change. It writes no knob, so no confirmation is asked.
pub fn keep_selected(app: &mut App, effects: &mut Vec<Effect>) {
    match target_change(app, |c| is_on_lease(c) || c.status == ChangeStatus::Orphaned) {
        None => app.screen.error("no change is on lease"),
        Some(id) => keep_change(app, id, effects),
    }
}

/// Keeps this change.
pub fn keep_change(app: &mut App, id: u64, effects: &mut Vec<Effect>) {
    if !can_write(app) {
        return offer_root_command(app, "Keeping a change", ["tune".into(), "keep".into(), id.to_string()]);
    }
    effects.push(Effect::Tune(TuneEffect::Keep(vec![id])));
}

/// Restarts a lease.
pub fn renew_selected(app: &mut App, effects: &mut Vec<Effect>) {
    let secs = app.views.tune.lease_secs;
    match target_change(app, is_on_lease) {
        None => app.screen.error("no change is on lease"),
        Some(id) if !can_write(app) => {
            let assignments = ["tune".into(), "renew".into(), id.to_string(), "--for".into(), format!("{secs}s")];
            offer_root_command(app, "Restarting a lease", assignments);
        }
        Some(id) => effects.push(Effect::Tune(TuneEffect::Renew { id, secs })),
    }
}

/// Asks whether to revert a change.
pub fn ask_undo(app: &mut App) {
    let open = |c: &ChangeRow| !matches!(c.status, ChangeStatus::Closed(_) | ChangeStatus::Applying);
    match target_change(app, open) {
        None => app.screen.error("there is no change to revert"),
        Some(id) if !can_write(app) => {
            offer_root_command(app, "Reverting a change", ["tune".into(), "undo".into(), id.to_string()]);
        }
        Some(id) => {
            let text = format!("{}{CONFLICT_NOTE}", old_values_text(app, &[id]));
            open_confirmation(app, &format!("Revert change {id}"), text, Confirmation::Undo(vec![id]));
        }
    }
}

const CONFLICT_NOTE: &str = "\nA value that somebody else has set meanwhile is left alone and reported.";

/// Lists what reverting these changes would write.
fn old_values_text(app: &App, ids: &[u64]) -> String {
    let changes = app.views.tune.changes().iter().filter(|c| ids.contains(&c.id));
    let mut text = String::new();
    for m in changes.flat_map(|c| c.members.iter().rev()).filter(|m| m.outcome.is_none()) {
        text += &format!("{}: {} -> {}\n", m.display_name, m.new_value, m.old_value);
    }
    text
}

/// Offers once to revert changes whose tuner was killed.
pub fn offer_restore(app: &mut App) {
    let Some(snapshot) = &app.views.tune.snapshot else { return };
    let ids = orphaned_changes(snapshot);
    if ids.is_empty() || app.views.tune.is_restore_offered || !snapshot.can_write || !is_unobstructed(app) {
        return;
    }
    app.views.tune.is_restore_offered = true;
    let text = format!(
        "An earlier program was killed before it could revert these:\n{}{CONFLICT_NOTE} Otherwise they stay; c shows \
         them, u reverts one, K marks one as kept.",
        old_values_text(app, &ids)
    );
    open_confirmation(app, "Restore orphaned changes", text, Confirmation::Undo(ids));
}

/// Asks whether to persist the selected knob's value, or to stop persisting it.
pub fn ask_persist(app: &mut App) {
    let tune = &app.views.tune;
    let Some(row) = tune.selected_knob() else { return };
    let (name, shown) = (row.name.clone(), row.display_name.clone());
    let refused = |app: &mut App, why: String| app.views.tune.error = Some(crate::sanitize::sanitize(why));
    let file = match &row.persist_path {
        Ok(file) => file.clone(),
        Err(why) => return refused(app, why.clone()),
    };
    let value = match (tune.pending.get(&name), &row.reading) {
        (Some(value), _) => value.clone(),
        (None, Ok(reading)) => reading.value.clone(),
        (None, Err(fail)) => return refused(app, fail.to_string()),
    };
    let is_pair = row.id.definition().is_pair();
    if is_pair && value == "0" {
        let why = format!("{shown} is 0 because the other knob of its pair is in effect; persist that one");
        return refused(app, why);
    }
    let boot = tune.next_boot.get(&name);
    let remove = boot.is_some_and(|b| b.persisted.as_deref() == Some(value.as_str()));
    let brief = cached_knobs::short_value(&row.id, &value);
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
    let assignments = vec![if remove { name } else { format!("{name}={value}") }];
    if !can_write(app) {
        let verb = if remove { "unpersist" } else { "persist" };
        let args = ["tune", verb].map(String::from).into_iter().chain(assignments);
        return offer_root_command(app, "Writing to /etc", args);
    }
    let text = format!("{what}\n{now}{}\nThe current value does not change.", overridden.unwrap_or_default());
    open_confirmation(app, "The next boot", text, Confirmation::Persist { assignments, remove });
}

/// Runs what was confirmed.
pub fn run_confirmed(app: &mut App, ask: Confirmation, effects: &mut Vec<Effect>) {
    match ask {
        Confirmation::Apply(assignments) => {
            let lease_secs = app.views.tune.lease_secs;
            app.views.tune.busy_with = Some("applying the change".into());
            app.views.tune.applying.clone_from(&assignments);
            effects.push(Effect::Tune(TuneEffect::Apply { assignments, lease_secs }));
        }
        Confirmation::ApplyPermanent(assignments) => {
            app.views.tune.busy_with = Some("applying the change".into());
            app.views.tune.applying.clone_from(&assignments);
            effects.push(Effect::Tune(TuneEffect::ApplyPermanent(assignments)));
        }
        Confirmation::Undo(ids) => effects.push(Effect::Tune(TuneEffect::Undo(ids))),
        Confirmation::Persist { assignments, remove } => {
            effects.push(Effect::RunJob(WorkerJob::Persist { assignments, remove }))
        }
        Confirmation::CopyCommand(line) => {
            effects.push(Effect::CopyToClipboard(line));
            app.screen.info("sent to the terminal's clipboard (OSC 52), if it supports that");
        }
        Confirmation::Quit => {}
    }
}

/// Quits, or first asks what to do with leased changes. A second request quits at once.
pub fn quit_or_ask(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &app.views.tune;
    if tune.is_quitting || (tune.leases.is_empty() && tune.busy_with.is_none()) {
        return effects.push(Effect::Quit);
    }
    let ids: Vec<u64> = tune.leases.iter().map(|l| l.id).collect();
    let mut text = String::new();
    for lease in &tune.leases {
        text += &format!("Change {} reverts in {}.\n", lease.id, format_duration(lease.secs_left));
    }
    text += &old_values_text(app, &ids);
    if tune.busy_with.is_some() {
        text += "A change is being applied. Quitting reverts what has been written.\n";
    }
    text += "\nu reverts the new values and quits. k keeps them until the machine boots. l leaves a process running \
             that reverts them when the lease ends.";
    open_confirmation(app, "Quit with a leased change?", text, Confirmation::Quit);
}

/// Quits in one of three ways.
pub fn quit_with_leases(app: &mut App, how: TuneAction, effects: &mut Vec<Effect>) {
    app.screen.overlay = None;
    let ids: Vec<u64> = app.views.tune.leases.iter().map(|l| l.id).collect();
    app.views.tune.is_quitting = true;
    if ids.is_empty() {
        // A change is only being applied: when this program ends, the tuner reverts it.
        return effects.push(Effect::Quit);
    }
    app.screen.info("quitting as soon as that is done; q quits at once, which reverts the change");
    effects.push(Effect::Tune(match how {
        TuneAction::QuitKeep => TuneEffect::Keep(ids),
        TuneAction::QuitDetach => TuneEffect::Detach(ids),
        _ => TuneEffect::Undo(ids),
    }));
}
