//! Editing a knob's value: shows what the text means while it is typed, and why it is refused.

use crate::tui::settings::LEASE_SECS_RANGE;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::tune::cached_knobs;
use crate::tuning::knob::{AllowedValues, KnobLink, KnobUnit};
use crossterm::event::KeyCode;

/// Opens the prompt for the selected knob.
pub fn edit_selected(app: &mut App) {
    let tune = &mut app.views.tune;
    let Some(row) = tune.selected_knob() else { return };
    let (name, text) = match &row.reading {
        Ok(reading) => (row.name.clone(), tune.pending.get(&row.name).unwrap_or(&reading.value).clone()),
        Err(fail) => {
            tune.error = Some(crate::sanitize::sanitize(format!("cannot be changed: {}", fail)));
            return;
        }
    };
    tune.editing_knob = Some(name);
    update_preview(app, &text);
    open_prompt(app, PromptPurpose::KnobValue, text);
}

/// Asks for the length of leases.
pub fn ask_lease_duration(app: &mut App) {
    open_prompt(app, PromptPurpose::Lease, String::new());
}

fn open_prompt(app: &mut App, what: PromptPurpose, text: String) {
    let cursor = text.len();
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// Sets the length of leases.
pub fn set_lease_duration(app: &mut App, text: &str) -> Result<(), String> {
    let secs = text.parse::<u64>().ok().filter(|s| LEASE_SECS_RANGE.contains(s));
    app.views.tune.lease_secs = secs.ok_or_else(|| format!("\"{text}\": a lease is 1 to 86400 seconds"))?;
    app.screen.info(format!("changes revert after {} s; W saves this", app.views.tune.lease_secs));
    Ok(())
}

/// Returns the edited knob and the typed text as the value the kernel takes.
fn typed_value(app: &App, text: &str) -> Result<(String, String), String> {
    let tune = &app.views.tune;
    let (Some(snapshot), Some(name)) = (&tune.snapshot, &tune.editing_knob) else {
        return Err("this knob no longer exists".into());
    };
    Ok((name.clone(), cached_knobs::canonical_value(snapshot, name, text)?))
}

/// Shows what the text typed so far means.
pub fn update_preview(app: &mut App, text: &str) {
    app.views.tune.preview = match typed_value(app, text.trim()) {
        Ok((name, value)) => {
            let snapshot = app.views.tune.snapshot.as_ref();
            Ok(snapshot.map(|s| cached_knobs::describe_value(s, &name, &value)).unwrap_or_default())
        }
        Err(why) => Err(crate::sanitize::sanitize(why)),
    };
}

/// Makes the typed value pending.
pub fn propose_typed(app: &mut App, text: &str) -> Result<(), String> {
    let (name, value) = typed_value(app, text)?;
    set_pending(app, &name, value);
    Ok(())
}

/// Makes a value pending, unless the knob has it already. Of a pair of knobs only one can be pending.
pub fn set_pending(app: &mut App, name: &str, value: String) {
    let tune = &mut app.views.tune;
    let Some(row) = tune.knob(name) else { return };
    let same = row.reading.as_ref().is_ok_and(|r| r.value == value);
    let other = match row.id.definition().link {
        KnobLink::Pair(other) => row.id.sibling(other).map(|o| o.to_string()),
        _ => None,
    };
    if same {
        tune.pending.remove(name);
        let shown = crate::sanitize::sanitize(name);
        return app.screen.info(format!("{shown} has this value already"));
    }
    if let Some(other) = other {
        tune.pending.remove(&other);
    }
    tune.pending.insert(name.to_owned(), value);
}

/// Goes to the next or previous of the words to choose from.
pub fn cycle_choice(app: &App, p: &mut Prompt, key: KeyCode) {
    let tune = &app.views.tune;
    let Some(row) = tune.editing_knob.as_ref().and_then(|name| tune.knob(name)) else { return };
    let knob = row.id.definition();
    let fixed = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
    let words = match (knob.values, knob.unit) {
        (AllowedValues::Listed, _) => row.reading.as_ref().map(|r| r.choices.clone()).unwrap_or_default(),
        (AllowedValues::Atime, _) => fixed(&["relatime", "noatime", "strictatime"]),
        (_, KnobUnit::Switch) => fixed(&["0", "1"]),
        _ => return,
    };
    let at = words.iter().position(|w| *w == p.text).unwrap_or(0);
    let by = if key == KeyCode::Up { words.len().saturating_sub(1) } else { 1 };
    if let Some(word) = words.get((at + by) % words.len().max(1)) {
        p.text.clone_from(word);
        p.cursor = p.text.len();
        p.error = None;
    }
}
