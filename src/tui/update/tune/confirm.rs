//! Questions before anything is changed, and what their answers do.

use super::{is_unobstructed, open_confirmation, orphaned_changes};
use crate::jobs::job::WorkerJob;
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::tune::knob_snapshot::{ChangeRow, ChangeStatus};
use crate::tui::tune::{Confirmation, TuneAction, TuneEffect, cached_knobs};
use crate::tuning::plan::TuneError;
use crate::tuning::presets::PRESETS;
use crate::tuning::sudo::sudo_command_line;
use crate::units::format_duration;

/// Asks whether to apply what is proposed.
pub fn ask_apply(app: &mut App) {
    let words = app.views.tune.pending_assignments();
    if words.is_empty() {
        return app.screen.error("nothing is proposed: Enter edits a knob, p has presets");
    }
    ask_apply_assignments(app, words, true);
}

/// Asks whether to set these, on a lease or for good.
pub fn ask_apply_assignments(app: &mut App, words: Vec<String>, on_lease: bool) {
    if app.views.tune.busy_with.is_some() {
        return app.screen.error("another change is being made; wait for it");
    }
    if app.views.experiments.active_run().is_some() {
        return app.screen.error("an experiment is on, which this would spoil: x on its page ends it (E)");
    }
    let tune = &mut app.views.tune;
    let Some(survey) = &tune.snapshot else { return };
    let diffs = match cached_knobs::diff_assignments(survey, &words) {
        Ok(diffs) => diffs,
        Err(why) => return show_refusal(app, why),
    };
    if !survey.can_write {
        let lease = tune.lease_secs;
        let args = ["tune", "set"].map(String::from).into_iter().chain(words);
        let how = if on_lease { vec!["--for".into(), format!("{lease}s")] } else { vec!["--keep".into()] };
        return offer_root_command(app, "Changing a knob", args.chain(how));
    }
    let mut text = String::new();
    for diff in &diffs {
        text += &diff.text;
        let target = tune.knob(&diff.name).filter(|_| !diff.is_unchanged).map(|r| r.written_to.as_str());
        text += &target.map(|t| format!(", written to {t}")).unwrap_or_default();
        text += "\n";
    }
    if !on_lease {
        text += "\nAll or none. The old values are noted in /run/iotop-plus first. The new ones stay until the machine \
                 boots, or until u takes them back.";
        return open_confirmation(app, "Set for good", text, Confirmation::ApplyPermanent(words));
    }
    let secs = format_duration(tune.lease_secs);
    text += &format!(
        "\nAll or none. The old values are noted in /run/iotop-plus first and come back by themselves in {secs}, \
         or when this screen dies, unless K keeps the new ones. R renews the time, u undoes at once."
    );
    open_confirmation(app, "Apply", text, Confirmation::Apply(words));
}

/// Says why what was asked for is not done: above the knobs, and at the bottom where these are not seen.
fn show_refusal(app: &mut App, why: TuneError) {
    let why = crate::sanitize::sanitize(why.to_string());
    if app.views.experiments.is_open {
        app.screen.error(&why);
    }
    app.views.tune.error = Some(why);
}

/// The command that does it as root, to be copied.
pub fn offer_root_command(app: &mut App, what: &str, args: impl IntoIterator<Item = String>) {
    let line = sudo_command_line("iotop-plus", args);
    let text = format!(
        "{what} needs root, and this program does not run as root: nothing is changed. In a shell:\n\n{line}\n\n\
         y copies the line to the clipboard of your terminal (OSC 52), if it allows that."
    );
    open_confirmation(app, "Needs root", text, Confirmation::CopyCommand(line));
}

/// Whether this program may change anything.
pub fn can_write(app: &App) -> bool {
    app.views.tune.snapshot.as_ref().is_some_and(|s| s.can_write)
}

/// What of a preset would change something here: knob and value each.
fn preset_changes(app: &App, at: usize) -> Result<Vec<(String, String)>, TuneError> {
    let Some(survey) = &app.views.tune.snapshot else { return Ok(Vec::new()) };
    let (words, _) = cached_knobs::preset_assignments(survey, &PRESETS[at]);
    let diffs = cached_knobs::diff_assignments(survey, &words)?;
    Ok(words
        .iter()
        .zip(&diffs)
        .filter(|(_, d)| !d.is_unchanged)
        .filter_map(|(w, d)| {
            let (_, text) = w.rsplit_once('=')?;
            Some((d.name.clone(), cached_knobs::canonical_value(survey, &d.name, text).ok()?))
        })
        .collect())
}

/// Proposes what a preset sets, and asks.
pub fn ask_apply_preset(app: &mut App, at: usize) {
    let new = match preset_changes(app, at) {
        Ok(new) => new,
        Err(why) => return app.views.tune.error = Some(crate::sanitize::sanitize(why.to_string())),
    };
    app.views.tune.selected_preset = None;
    if new.is_empty() {
        return app.screen.info(format!("{}: everything stands so already", PRESETS[at].name));
    }
    app.views.tune.pending = new.into_iter().collect();
    ask_apply(app);
}

/// What the person means to try, `KNOB=VALUE` each: what is proposed, the preset, or the selected knob as it
/// stands, for which a value is still to be asked (`true`).
pub fn knobs_to_try(app: &App) -> Result<(Vec<String>, bool), String> {
    let tune = &app.views.tune;
    if let Some(at) = tune.selected_preset {
        let new = preset_changes(app, at).map_err(|why| why.to_string())?;
        let words: Vec<String> = new.into_iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        return match words.is_empty() {
            true => Err(format!("{}: everything stands so already", PRESETS[at].name)),
            false => Ok((words, false)),
        };
    }
    let proposed = tune.pending_assignments();
    if !proposed.is_empty() {
        return Ok((proposed, false));
    }
    let row = tune.selected_knob().ok_or("the knobs have not been looked at yet")?;
    match &row.reading {
        Ok(reading) => Ok((vec![format!("{}={}", row.name, reading.value)], true)),
        Err(fail) => Err(format!("{}: {}", row.display_name, fail)),
    }
}

/// The change a key is about: the selected one if the changes have the keys, else the newest it fits.
fn target_change(app: &App, fits: impl Fn(&ChangeRow) -> bool) -> Option<u64> {
    let tune = &app.views.tune;
    if app.focused_pane() == PaneId::ChangeHistory {
        return tune.selected_change().filter(|c| fits(c)).map(|c| c.id);
    }
    tune.changes().iter().find(|c| fits(c)).map(|c| c.id)
}

/// Whether a change takes itself back in some time.
pub fn is_on_lease(c: &ChangeRow) -> bool {
    matches!(c.status, ChangeStatus::Leased(_) | ChangeStatus::TunerSilent)
}

/// Lets a change stay. Nothing is written to the kernel, so the key is the answer.
pub fn keep_selected(app: &mut App, effects: &mut Vec<Effect>) {
    match target_change(app, |c| is_on_lease(c) || c.status == ChangeStatus::Orphaned) {
        None => app.screen.error("no change is on lease"),
        Some(id) => keep_change(app, id, effects),
    }
}

/// Lets this one stay.
pub fn keep_change(app: &mut App, id: u64, effects: &mut Vec<Effect>) {
    if !can_write(app) {
        return offer_root_command(app, "Keeping a change", ["tune".into(), "keep".into(), id.to_string()]);
    }
    effects.push(Effect::Tune(TuneEffect::Keep(vec![id])));
}

/// Starts a lease anew.
pub fn renew_selected(app: &mut App, effects: &mut Vec<Effect>) {
    let secs = app.views.tune.lease_secs;
    match target_change(app, is_on_lease) {
        None => app.screen.error("no change is on lease"),
        Some(id) if !can_write(app) => {
            let words = ["tune".into(), "renew".into(), id.to_string(), "--for".into(), format!("{secs}s")];
            offer_root_command(app, "Renewing a lease", words);
        }
        Some(id) => effects.push(Effect::Tune(TuneEffect::Renew { id, secs })),
    }
}

/// Asks whether to take a change back.
pub fn ask_undo(app: &mut App) {
    let open = |c: &ChangeRow| !matches!(c.status, ChangeStatus::Closed(_) | ChangeStatus::Applying);
    match target_change(app, open) {
        None => app.screen.error("there is no change to take back"),
        Some(id) if !can_write(app) => {
            offer_root_command(app, "Taking a change back", ["tune".into(), "undo".into(), id.to_string()]);
        }
        Some(id) => {
            let text = format!("{}{CONFLICT_NOTE}", old_values_text(app, &[id]));
            open_confirmation(app, &format!("Take change {id} back"), text, Confirmation::Undo(vec![id]));
        }
    }
}

const CONFLICT_NOTE: &str = "\nOnly where the value is still ours: what somebody else set meanwhile is left and told.";

/// What would be written to take changes back.
fn old_values_text(app: &App, ids: &[u64]) -> String {
    let changes = app.views.tune.changes().iter().filter(|c| ids.contains(&c.id));
    let mut text = String::new();
    for m in changes.flat_map(|c| c.members.iter().rev()).filter(|m| m.outcome.is_none()) {
        text += &format!("{}: {} -> {}\n", m.display_name, m.new_value, m.old_value);
    }
    text
}

/// Offers, once, to restore what a dead program left behind.
pub fn offer_restore(app: &mut App) {
    let Some(survey) = &app.views.tune.snapshot else { return };
    let ids = orphaned_changes(survey);
    if ids.is_empty() || app.views.tune.is_restore_offered || !survey.can_write || !is_unobstructed(app) {
        return;
    }
    app.views.tune.is_restore_offered = true;
    let text = format!(
        "An earlier program was killed before it could take these back:\n{}{CONFLICT_NOTE} Without a restore they stay; c \
         shows them, u takes one back, K marks one as kept.",
        old_values_text(app, &ids)
    );
    open_confirmation(app, "Restore what was left behind", text, Confirmation::Undo(ids));
}

/// Asks whether to make the selected knob's value last over a boot, or no longer.
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
    let pair = matches!(row.id.definition().link, crate::tuning::knob::KnobLink::Pair(_));
    if pair && value == "0" {
        let why = format!("{shown} is 0 because the other half of its pair is in force; persist that one");
        return refused(app, why);
    }
    let boot = tune.next_boot.get(&name);
    let out = boot.is_some_and(|b| b.persisted.as_deref() == Some(value.as_str()));
    let brief = cached_knobs::short_value(&row.id, &value);
    let now = boot.map_or_else(
        || "What decides it now is not known yet.".to_owned(),
        |b| format!("Now the next boot brings {}, decided by {}.", b.value, b.decided_by),
    );
    let wins = boot
        .and_then(|b| b.overriding_line.as_deref())
        .filter(|_| !out)
        .map(|line| format!("\nWARNING: {line} comes after our file and will win: change it there."));
    let what = match out {
        true => format!("Take {shown} out of {file}."),
        false => format!("Write {shown} = {value} ({brief}) into {file}, for every boot to come."),
    };
    let words = vec![if out { name } else { format!("{name}={value}") }];
    if !can_write(app) {
        let verb = if out { "unpersist" } else { "persist" };
        let args = ["tune", verb].map(String::from).into_iter().chain(words);
        return offer_root_command(app, "Writing below /etc", args);
    }
    let text = format!("{what}\n{now}{}\nThe value in force now does not change.", wins.unwrap_or_default());
    open_confirmation(app, "The next boot", text, Confirmation::Persist { assignments: words, remove: out });
}

/// The answer was yes.
pub fn run_confirmed(app: &mut App, ask: Confirmation, effects: &mut Vec<Effect>) {
    match ask {
        Confirmation::Apply(words) => {
            let lease_secs = app.views.tune.lease_secs;
            app.views.tune.busy_with = Some("making the change".into());
            app.views.tune.applying.clone_from(&words);
            effects.push(Effect::Tune(TuneEffect::Apply { assignments: words, lease_secs }));
        }
        Confirmation::ApplyPermanent(words) => {
            app.views.tune.busy_with = Some("making the change".into());
            app.views.tune.applying.clone_from(&words);
            effects.push(Effect::Tune(TuneEffect::ApplyPermanent(words)));
        }
        Confirmation::Undo(ids) => effects.push(Effect::Tune(TuneEffect::Undo(ids))),
        Confirmation::Persist { assignments: words, remove: out } => {
            effects.push(Effect::RunJob(WorkerJob::Persist { assignments: words, remove: out }))
        }
        Confirmation::CopyCommand(line) => {
            effects.push(Effect::CopyToClipboard(line));
            app.screen.info("sent to the terminal's clipboard (OSC 52), if it allows that");
        }
        Confirmation::Quit => {}
    }
}

/// Leaves, or asks first what shall become of changes on lease. Asked again while it is leaving, it leaves.
pub fn quit_or_ask(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &app.views.tune;
    if tune.is_quitting || (tune.leases.is_empty() && tune.busy_with.is_none()) {
        return effects.push(Effect::Quit);
    }
    let ids: Vec<u64> = tune.leases.iter().map(|l| l.id).collect();
    let mut text = String::new();
    for lease in &tune.leases {
        text += &format!("Change {} is on lease for another {}.\n", lease.id, format_duration(lease.secs_left));
    }
    text += &old_values_text(app, &ids);
    if tune.busy_with.is_some() {
        text += "A change is being made right now. Leaving takes back what of it was written.\n";
    }
    text += "\nu takes back the new values and leaves. k lets them stay until the machine boots. l leaves a \
             process behind that takes them back when the time is over.";
    open_confirmation(app, "Leave with a change on lease?", text, Confirmation::Quit);
}

/// One of the three ways out.
pub fn quit_with_leases(app: &mut App, how: TuneAction, effects: &mut Vec<Effect>) {
    app.screen.overlay = None;
    let ids: Vec<u64> = app.views.tune.leases.iter().map(|l| l.id).collect();
    app.views.tune.is_quitting = true;
    if ids.is_empty() {
        // Only a change in the making: the end of this program is the end of it.
        return effects.push(Effect::Quit);
    }
    app.screen.info("leaving as soon as that is done; q leaves at once, which takes the change back");
    effects.push(Effect::Tune(match how {
        TuneAction::QuitKeep => TuneEffect::Keep(ids),
        TuneAction::QuitDetach => TuneEffect::Detach(ids),
        _ => TuneEffect::Undo(ids),
    }));
}
