//! What the tuner and the children say.

use super::{ask, ask_boot, left_behind, look, select_wanted, settle};
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::tuning::survey::{Standing, Survey};
use crate::tui::tuning::{Lease, Lower, TuneEffect, TuneNews};
use crate::units::format_duration;
use crate::worker::job::Reply;

/// News for the view.
pub fn take(app: &mut App, news: TuneNews, effects: &mut Vec<Effect>) {
    match news {
        TuneNews::Survey(survey) => return looked(app, survey, effects),
        TuneNews::Left { id, secs, renewed } => return left(app, id, secs, renewed, effects),
        TuneNews::Applied { id, lease_secs } => applied(app, id, lease_secs, effects),
        TuneNews::Settled(id) => settled(app, id),
        TuneNews::Refused(why) => {
            app.ui.tune.busy = None;
            app.ui.error(&why);
            app.ui.tune.problem = Some(why);
        }
        TuneNews::Kept(id) => {
            drop_lease(app, id);
            app.ui.info(format!("change {id} stays until the machine boots; u takes it back"));
        }
        TuneNews::Detached(id) => drop_lease(app, id),
        TuneNews::Undone { id, boot_ns, by_itself, lines, clean, over } => {
            if over {
                drop_lease(app, id);
                app.ui.tune.ended.insert(id, boot_ns);
            }
            let text = undone(id, by_itself, &lines, clean);
            if clean { app.ui.info(text) } else { app.ui.error(text) }
        }
        TuneNews::Lost(id) => {
            drop_lease(app, id);
            app.ui.error(format!(
                "the process that held change {id} was killed: the new values stand; u takes them back"
            ));
        }
        TuneNews::Failed(why) => {
            app.ui.tune.busy = None;
            app.ui.tune.leaving = false;
            app.ui.error(&why);
            app.ui.tune.problem = Some(why);
        }
    }
    again(app, effects);
    crate::tui::update::experiment::check(app, effects);
    if app.ui.tune.leaving && app.ui.tune.leases.is_empty() {
        effects.push(Effect::Quit);
    }
}

/// A new look, whatever is under way: what it sees may be older than the news.
pub fn again(app: &mut App, effects: &mut Vec<Effect>) {
    app.ui.tune.looking = false;
    look(app, effects);
}

fn drop_lease(app: &mut App, id: u64) {
    app.ui.tune.leases.retain(|l| l.id != id);
}

fn looked(app: &mut App, survey: Survey, effects: &mut Vec<Effect>) {
    let now = app.system.now().boot_ns;
    let tune = &mut app.ui.tune;
    let first = tune.survey.is_none();
    tune.looking = false;
    let selected = tune.selected().map(|r| r.name.clone());
    let chosen = tune.selected_change().map(|c| c.id);
    for row in &survey.rows {
        if let Ok(reading) = &row.reading {
            tune.start.entry(row.name.clone()).or_insert_with(|| reading.value.clone());
        }
    }
    // What stood at the last look and does not any more ended in between.
    let over = |s: &Standing| matches!(s, Standing::Over(_));
    for change in survey.changes.iter().filter(|c| over(&c.standing)) {
        let stood = tune.changes().iter().any(|c| c.id == change.id && !over(&c.standing));
        if stood {
            tune.ended.entry(change.id).or_insert(now);
        }
    }
    tune.proposed.retain(|name, _| survey.rows.iter().any(|r| r.name == *name));
    let newer = survey.changes.first().map(|c| c.id) != tune.changes().first().map(|c| c.id);
    tune.survey = Some(survey);
    if let Some(at) = chosen.filter(|_| !newer).and_then(|id| tune.changes().iter().position(|c| c.id == id))
    {
        tune.changes.selected = at;
    } else if newer {
        tune.changes.selected = 0;
    }
    if tune.wanted.is_none() && !first {
        tune.wanted = selected;
    }
    select_wanted(app);
    if first {
        settle(app, 1);
        told_left_behind(app);
    }
    if app.ui.view == ViewId::Tune {
        ask_boot(app, effects);
        ask::offer(app);
    }
}

fn told_left_behind(app: &mut App) {
    let ids = app.ui.tune.survey.as_ref().map(left_behind).unwrap_or_default();
    if !ids.is_empty() && app.ui.view != ViewId::Tune {
        app.ui.error(
            "an earlier program left changed settings behind: t shows them and offers to restore them",
        );
    }
}

fn left(app: &mut App, id: u64, secs: u64, renewed: bool, effects: &mut Vec<Effect>) {
    if let Some(lease) = app.ui.tune.leases.iter_mut().find(|l| l.id == id) {
        lease.left = secs;
    }
    if let Some(survey) = &mut app.ui.tune.survey
        && let Some(change) = survey.changes.iter_mut().find(|c| c.id == id)
        && let Standing::Lease(left) = &mut change.standing
    {
        *left = secs;
    }
    if renewed {
        app.ui.info(format!("change {id}: the old values come back in {} unless you press K", format_duration(secs)));
        again(app, effects);
    }
}

fn applied(app: &mut App, id: u64, lease_secs: Option<u64>, effects: &mut Vec<Effect>) {
    let tune = &mut app.ui.tune;
    tune.busy = None;
    for word in std::mem::take(&mut tune.applying) {
        if let Some((name, value)) = word.rsplit_once('=')
            && tune.proposed.get(name).is_some_and(|v| v == value)
        {
            tune.proposed.remove(name);
        }
    }
    let Some(left) = lease_secs else {
        return app.ui.info("nothing to change: all values stood so already");
    };
    tune.leases.push(Lease { id, left });
    tune.lower = Lower::Changes;
    tune.changes.selected = 0;
    if tune.leaving {
        return effects.push(Effect::Tune(TuneEffect::Undo(vec![id])));
    }
    let back = format_duration(left);
    app.ui.info(format!("change {id} is made; old values come back in {back}: K keeps, u undoes, R renews"));
}

fn settled(app: &mut App, id: u64) {
    let tune = &mut app.ui.tune;
    tune.busy = None;
    tune.lower = Lower::Changes;
    tune.changes.selected = 0;
    app.ui.info(format!("change {id} is made and stays until the machine boots; u takes it back"));
}

fn undone(id: u64, by_itself: bool, lines: &[String], clean: bool) -> String {
    match (clean, by_itself) {
        (true, true) => format!("the lease of change {id} is over: the old values are back"),
        (true, false) => format!("change {id} is taken back"),
        (false, _) => format!("change {id}: {}", lines.join("; ")),
    }
}

/// What the next boot brings.
pub fn boot_known(app: &mut App, reply: Reply) {
    let tune = &mut app.ui.tune;
    tune.boot_asked = false;
    match reply {
        Reply::AtBoot(all, notes) => {
            tune.boot.extend(all);
            tune.boot_notes = notes.into_iter().map(crate::text::sanitize).collect();
        }
        Reply::Failed(why) => app.ui.error(why),
        _ => {}
    }
}

/// Our files were written, or not.
pub fn persisted(app: &mut App, reply: Reply, effects: &mut Vec<Effect>) {
    match reply {
        Reply::Told(lines) => {
            let warning = lines.iter().find(|l| l.starts_with("WARNING")).cloned();
            match warning {
                Some(warning) => {
                    app.ui.error(&warning);
                    app.ui.tune.problem = Some(crate::text::sanitize(warning));
                }
                None => app.ui.info(lines.join("; ")),
            }
        }
        Reply::Failed(why) => {
            app.ui.error(&why);
            app.ui.tune.problem = Some(crate::text::sanitize(why));
        }
        _ => {}
    }
    // What the next boot brings is another now.
    app.ui.tune.boot.clear();
    ask_boot(app, effects);
}
