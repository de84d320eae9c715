//! Questions before anything is changed, and what their answers do.

use super::{is_free, left_behind, question};
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::tuning::survey::{ChangeRow, Standing};
use crate::tui::tuning::{Ask, TuneAction, TuneEffect, known};
use crate::tune::plan::Refusal;
use crate::tune::presets::PRESETS;
use crate::tune::sudo::sudo_line;
use crate::units::format_duration;
use crate::worker::job::Job;

/// Asks whether to apply what is proposed.
pub fn apply(app: &mut App) {
    let words = app.ui.tune.proposed_words();
    if words.is_empty() {
        return app.ui.error("nothing is proposed: Enter edits a knob, p has presets");
    }
    apply_words(app, words, true);
}

/// Asks whether to set these, on a lease or for good.
pub fn apply_words(app: &mut App, words: Vec<String>, on_lease: bool) {
    if app.ui.tune.busy.is_some() {
        return app.ui.error("another change is being made; wait for it");
    }
    if app.ui.experiment.running().is_some() {
        return app.ui.error("an experiment is on, which this would spoil: x on its page ends it (E)");
    }
    let tune = &mut app.ui.tune;
    let Some(survey) = &tune.survey else { return };
    let diffs = match known::diff(survey, &words) {
        Ok(diffs) => diffs,
        Err(why) => return refused(app, why),
    };
    if !survey.writable {
        let lease = tune.lease_secs;
        let args = ["tune", "set"].map(String::from).into_iter().chain(words);
        let how = if on_lease { vec!["--for".into(), format!("{lease}s")] } else { vec!["--keep".into()] };
        return as_root(app, "Changing a knob", args.chain(how));
    }
    let mut text = String::new();
    for diff in &diffs {
        text += &diff.text;
        let target = tune.row(&diff.name).filter(|_| !diff.same).map(|r| r.target.as_str());
        text += &target.map(|t| format!(", written to {t}")).unwrap_or_default();
        text += "\n";
    }
    if !on_lease {
        text += "\nAll or none. The old values are noted in /run/iotop-plus first. The new ones stay until the machine \
                 boots, or until u takes them back.";
        return question(app, "Set for good", text, Ask::Settle(words));
    }
    let secs = format_duration(tune.lease_secs);
    text += &format!(
        "\nAll or none. The old values are noted in /run/iotop-plus first and come back by themselves in {secs}, \
         or when this screen dies, unless K keeps the new ones. R renews the time, u undoes at once."
    );
    question(app, "Apply", text, Ask::Apply(words));
}

/// Says why what was asked for is not done: above the knobs, and at the bottom where these are not seen.
fn refused(app: &mut App, why: Refusal) {
    let why = crate::text::sanitize(why.to_string());
    if app.ui.experiment.open {
        app.ui.error(&why);
    }
    app.ui.tune.problem = Some(why);
}

/// The command that does it as root, to be copied.
pub fn as_root(app: &mut App, what: &str, args: impl IntoIterator<Item = String>) {
    let line = sudo_line("iotop-plus", args);
    let text = format!(
        "{what} needs root, and this program does not run as root: nothing is changed. In a shell:\n\n{line}\n\n\
         y copies the line to the clipboard of your terminal (OSC 52), if it allows that."
    );
    question(app, "Needs root", text, Ask::Copy(line));
}

/// Whether this program may change anything.
pub fn is_root(app: &App) -> bool {
    app.ui.tune.survey.as_ref().is_some_and(|s| s.writable)
}

/// What of a preset would change something here: knob and value each.
fn new_of(app: &App, at: usize) -> Result<Vec<(String, String)>, Refusal> {
    let Some(survey) = &app.ui.tune.survey else { return Ok(Vec::new()) };
    let (words, _) = known::preset_words(survey, &PRESETS[at]);
    let diffs = known::diff(survey, &words)?;
    Ok(words
        .iter()
        .zip(&diffs)
        .filter(|(_, d)| !d.same)
        .filter_map(|(w, d)| {
            let (_, text) = w.rsplit_once('=')?;
            Some((d.name.clone(), known::canonical(survey, &d.name, text).ok()?))
        })
        .collect())
}

/// Proposes what a preset sets, and asks.
pub fn preset(app: &mut App, at: usize) {
    let new = match new_of(app, at) {
        Ok(new) => new,
        Err(why) => return app.ui.tune.problem = Some(crate::text::sanitize(why.to_string())),
    };
    app.ui.tune.presets = None;
    if new.is_empty() {
        return app.ui.info(format!("{}: everything stands so already", PRESETS[at].name));
    }
    app.ui.tune.proposed = new.into_iter().collect();
    apply(app);
}

/// What the person means to try, `KNOB=VALUE` each: what is proposed, the preset, or the selected knob as it
/// stands, for which a value is still to be asked (`true`).
pub fn wanted(app: &App) -> Result<(Vec<String>, bool), String> {
    let tune = &app.ui.tune;
    if let Some(at) = tune.presets {
        let new = new_of(app, at).map_err(|why| why.to_string())?;
        let words: Vec<String> = new.into_iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        return match words.is_empty() {
            true => Err(format!("{}: everything stands so already", PRESETS[at].name)),
            false => Ok((words, false)),
        };
    }
    let proposed = tune.proposed_words();
    if !proposed.is_empty() {
        return Ok((proposed, false));
    }
    let row = tune.selected().ok_or("the knobs have not been looked at yet")?;
    match &row.reading {
        Ok(reading) => Ok((vec![format!("{}={}", row.name, reading.value)], true)),
        Err(fail) => Err(format!("{}: {}", row.shown, fail.text())),
    }
}

/// The change a key is about: the selected one if the changes have the keys, else the newest it fits.
fn target(app: &App, fits: impl Fn(&ChangeRow) -> bool) -> Option<u64> {
    let tune = &app.ui.tune;
    if app.focused_pane() == PaneId::ChangeHistory {
        return tune.selected_change().filter(|c| fits(c)).map(|c| c.id);
    }
    tune.changes().iter().find(|c| fits(c)).map(|c| c.id)
}

/// Whether a change takes itself back in some time.
pub fn on_lease(c: &ChangeRow) -> bool {
    matches!(c.standing, Standing::Lease(_) | Standing::Silent)
}

/// Lets a change stay. Nothing is written to the kernel, so the key is the answer.
pub fn keep(app: &mut App, effects: &mut Vec<Effect>) {
    match target(app, |c| on_lease(c) || c.standing == Standing::LeftBehind) {
        None => app.ui.error("no change is on lease"),
        Some(id) => keep_one(app, id, effects),
    }
}

/// Lets this one stay.
pub fn keep_one(app: &mut App, id: u64, effects: &mut Vec<Effect>) {
    if !is_root(app) {
        return as_root(app, "Keeping a change", ["tune".into(), "keep".into(), id.to_string()]);
    }
    effects.push(Effect::Tune(TuneEffect::Keep(vec![id])));
}

/// Starts a lease anew.
pub fn renew(app: &mut App, effects: &mut Vec<Effect>) {
    let secs = app.ui.tune.lease_secs;
    match target(app, on_lease) {
        None => app.ui.error("no change is on lease"),
        Some(id) if !is_root(app) => {
            let words = ["tune".into(), "renew".into(), id.to_string(), "--for".into(), format!("{secs}s")];
            as_root(app, "Renewing a lease", words);
        }
        Some(id) => effects.push(Effect::Tune(TuneEffect::Renew { id, secs })),
    }
}

/// Asks whether to take a change back.
pub fn undo(app: &mut App) {
    let open = |c: &ChangeRow| !matches!(c.standing, Standing::Over(_) | Standing::Making);
    match target(app, open) {
        None => app.ui.error("there is no change to take back"),
        Some(id) if !is_root(app) => {
            as_root(app, "Taking a change back", ["tune".into(), "undo".into(), id.to_string()]);
        }
        Some(id) => {
            let text = format!("{}{UNLESS}", old_values(app, &[id]));
            question(app, &format!("Take change {id} back"), text, Ask::Undo(vec![id]));
        }
    }
}

const UNLESS: &str =
    "\nOnly where the value is still ours: what somebody else set meanwhile is left and told.";

/// What would be written to take changes back.
fn old_values(app: &App, ids: &[u64]) -> String {
    let changes = app.ui.tune.changes().iter().filter(|c| ids.contains(&c.id));
    let mut text = String::new();
    for m in changes.flat_map(|c| c.members.iter().rev()).filter(|m| m.closed.is_none()) {
        text += &format!("{}: {} -> {}\n", m.shown, m.after, m.before);
    }
    text
}

/// Offers, once, to restore what a dead program left behind.
pub fn offer(app: &mut App) {
    let Some(survey) = &app.ui.tune.survey else { return };
    let ids = left_behind(survey);
    if ids.is_empty() || app.ui.tune.offered || !survey.writable || !is_free(app) {
        return;
    }
    app.ui.tune.offered = true;
    let text = format!(
        "An earlier program was killed before it could take these back:\n{}{UNLESS} Without a restore they stay; c \
         shows them, u takes one back, K marks one as kept.",
        old_values(app, &ids)
    );
    question(app, "Restore what was left behind", text, Ask::Undo(ids));
}

/// Asks whether to make the selected knob's value last over a boot, or no longer.
pub fn persist(app: &mut App) {
    let tune = &app.ui.tune;
    let Some(row) = tune.selected() else { return };
    let (name, shown) = (row.name.clone(), row.shown.clone());
    let refused = |app: &mut App, why: String| app.ui.tune.problem = Some(crate::text::sanitize(why));
    let file = match &row.lasts {
        Ok(file) => file.clone(),
        Err(why) => return refused(app, why.clone()),
    };
    let value = match (tune.proposed.get(&name), &row.reading) {
        (Some(value), _) => value.clone(),
        (None, Ok(reading)) => reading.value.clone(),
        (None, Err(fail)) => return refused(app, fail.text().to_owned()),
    };
    let pair = matches!(row.at.knob().link, crate::tune::knob::Link::Pair(_));
    if pair && value == "0" {
        let why = format!("{shown} is 0 because the other half of its pair is in force; persist that one");
        return refused(app, why);
    }
    let boot = tune.boot.get(&name);
    let out = boot.is_some_and(|b| b.ours.as_deref() == Some(value.as_str()));
    let brief = known::brief(&row.at, &value);
    let now = boot.map_or_else(
        || "What decides it now is not known yet.".to_owned(),
        |b| format!("Now the next boot brings {}, decided by {}.", b.value, b.by),
    );
    let wins = boot
        .and_then(|b| b.stronger.as_deref())
        .filter(|_| !out)
        .map(|line| format!("\nWARNING: {line} comes after our file and will win: change it there."));
    let what = match out {
        true => format!("Take {shown} out of {file}."),
        false => format!("Write {shown} = {value} ({brief}) into {file}, for every boot to come."),
    };
    let words = vec![if out { name } else { format!("{name}={value}") }];
    if !is_root(app) {
        let verb = if out { "unpersist" } else { "persist" };
        let args = ["tune", verb].map(String::from).into_iter().chain(words);
        return as_root(app, "Writing below /etc", args);
    }
    let text = format!("{what}\n{now}{}\nThe value in force now does not change.", wins.unwrap_or_default());
    question(app, "The next boot", text, Ask::Persist { words, out });
}

/// The answer was yes.
pub fn confirmed(app: &mut App, ask: Ask, effects: &mut Vec<Effect>) {
    match ask {
        Ask::Apply(words) => {
            let lease_secs = app.ui.tune.lease_secs;
            app.ui.tune.busy = Some("making the change".into());
            app.ui.tune.applying.clone_from(&words);
            effects.push(Effect::Tune(TuneEffect::Apply { words, lease_secs }));
        }
        Ask::Settle(words) => {
            app.ui.tune.busy = Some("making the change".into());
            app.ui.tune.applying.clone_from(&words);
            effects.push(Effect::Tune(TuneEffect::Settle(words)));
        }
        Ask::Undo(ids) => effects.push(Effect::Tune(TuneEffect::Undo(ids))),
        Ask::Persist { words, out } => effects.push(Effect::RunJob(Job::Persist { words, out })),
        Ask::Copy(line) => {
            effects.push(Effect::CopyToClipboard(line));
            app.ui.info("sent to the terminal's clipboard (OSC 52), if it allows that");
        }
        Ask::Leave => {}
    }
}

/// Leaves, or asks first what shall become of changes on lease. Asked again while it is leaving, it leaves.
pub fn quit(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &app.ui.tune;
    if tune.leaving || (tune.leases.is_empty() && tune.busy.is_none()) {
        return effects.push(Effect::Quit);
    }
    let ids: Vec<u64> = tune.leases.iter().map(|l| l.id).collect();
    let mut text = String::new();
    for lease in &tune.leases {
        text += &format!("Change {} is on lease for another {}.\n", lease.id, format_duration(lease.left));
    }
    text += &old_values(app, &ids);
    if tune.busy.is_some() {
        text += "A change is being made right now. Leaving takes back what of it was written.\n";
    }
    text += "\nu takes back the new values and leaves. k lets them stay until the machine boots. l leaves a \
             process behind that takes them back when the time is over.";
    question(app, "Leave with a change on lease?", text, Ask::Leave);
}

/// One of the three ways out.
pub fn leave(app: &mut App, how: TuneAction, effects: &mut Vec<Effect>) {
    app.ui.overlay = None;
    let ids: Vec<u64> = app.ui.tune.leases.iter().map(|l| l.id).collect();
    app.ui.tune.leaving = true;
    if ids.is_empty() {
        // Only a change in the making: the end of this program is the end of it.
        return effects.push(Effect::Quit);
    }
    app.ui.info("leaving as soon as that is done; q leaves at once, which takes the change back");
    effects.push(Effect::Tune(match how {
        TuneAction::LeaveKeep => TuneEffect::Keep(ids),
        TuneAction::LeaveLease => TuneEffect::Detach(ids),
        _ => TuneEffect::Undo(ids),
    }));
}
