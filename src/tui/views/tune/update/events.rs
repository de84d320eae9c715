//! Events of the tuner, and replies of child processes, in the Tune view.

use crate::jobs::job::WorkerReply;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::effect::TuneEffect;
use crate::tui::event::TuneEvent;
use crate::tui::knob_snapshot::ActiveLease;
use crate::tui::knob_snapshot::{ChangeStatus, KnobSnapshot};
use crate::tui::state::App;
use crate::tui::views::tune::SidePane;
use crate::tui::views::tune::update::{
    confirm, orphaned_changes, request_boot_values, request_refresh, select_requested_knob, skip_heading,
};
use crate::units::format_duration;

/// Handles an event of the tuner.
pub fn on_event(app: &mut App, event: TuneEvent, effects: &mut Vec<Effect>) {
    match event {
        TuneEvent::Refreshed(snapshot) => return on_refreshed(app, snapshot, effects),
        TuneEvent::LeaseTime { id, secs_left: secs, was_renewed: renewed } => {
            return on_lease_time(app, id, secs, renewed, effects);
        }
        TuneEvent::Applied { id, lease_secs } => on_applied(app, id, lease_secs, effects),
        TuneEvent::AppliedPermanently(id) => on_applied_permanently(app, id),
        TuneEvent::Refused(why) => {
            app.views.tune.busy_with = None;
            app.screen.error(&why);
            app.views.tune.error = Some(why);
        }
        TuneEvent::Kept(id) => {
            remove_lease(app, id);
            app.screen.info(format!("change {id} stays until the machine boots; u reverts it"));
        }
        TuneEvent::Detached(id) => remove_lease(app, id),
        TuneEvent::Undone {
            id,
            boot_ns,
            was_automatic: by_itself,
            lines,
            is_fully_restored: clean,
            is_closed: over,
        } => {
            if over {
                remove_lease(app, id);
                app.views.tune.ended_boot_ns.insert(id, boot_ns);
            }
            let text = undone_text(id, by_itself, &lines, clean);
            if clean { app.screen.info(text) } else { app.screen.error(text) }
        }
        TuneEvent::TunerLost(id) => {
            remove_lease(app, id);
            app.screen.error(format!("the tuner of change {id} was killed: the new values stay; u reverts them"));
        }
        TuneEvent::Failed(why) => {
            app.views.tune.busy_with = None;
            app.views.tune.is_quitting = false;
            app.screen.error(&why);
            app.views.tune.error = Some(why);
        }
    }
    refresh_now(app, effects);
    crate::tui::update::ask_view(app, crate::tui::view::ViewRequest::CheckArms, effects);
    if app.views.tune.is_quitting && app.views.tune.leases.is_empty() {
        effects.push(Effect::Quit);
    }
}

/// Requests a snapshot even if one is under way, which may be older than the event.
pub fn refresh_now(app: &mut App, effects: &mut Vec<Effect>) {
    app.views.tune.is_refreshing = false;
    request_refresh(app, effects);
}

fn remove_lease(app: &mut App, id: u64) {
    app.views.tune.leases.retain(|l| l.id != id);
}

fn on_refreshed(app: &mut App, snapshot: KnobSnapshot, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let tune = &mut app.views.tune;
    let first = tune.snapshot.is_none();
    tune.is_refreshing = false;
    let selected = tune.selected_knob().map(|r| r.name.clone());
    let selected_change = tune.selected_change().map(|c| c.id);
    for row in &snapshot.rows {
        if let Ok(reading) = &row.reading {
            tune.initial_values.entry(row.name.clone()).or_insert_with(|| reading.value.clone());
        }
    }
    // A change that was open in the last snapshot and is closed now ended in between.
    let is_closed = |s: &ChangeStatus| matches!(s, ChangeStatus::Closed(_));
    for change in snapshot.changes.iter().filter(|c| is_closed(&c.status)) {
        let was_open = tune.changes().iter().any(|c| c.id == change.id && !is_closed(&c.status));
        if was_open {
            tune.ended_boot_ns.entry(change.id).or_insert(now);
        }
    }
    tune.pending.retain(|name, _| snapshot.rows.iter().any(|r| r.name == *name));
    let has_new_change = snapshot.changes.first().map(|c| c.id) != tune.changes().first().map(|c| c.id);
    tune.snapshot = Some(snapshot);
    if let Some(at) =
        selected_change.filter(|_| !has_new_change).and_then(|id| tune.changes().iter().position(|c| c.id == id))
    {
        tune.changes_scroll.selected = at;
    } else if has_new_change {
        tune.changes_scroll.selected = 0;
    }
    if tune.knob_to_select.is_none() && !first {
        tune.knob_to_select = selected;
    }
    select_requested_knob(app);
    if first {
        skip_heading(app, 1);
        warn_about_orphans(app);
    }
    if app.screen.view == ViewId::Tune {
        request_boot_values(app, effects);
        confirm::offer_restore(app);
    }
}

fn warn_about_orphans(app: &mut App) {
    let ids = app.views.tune.snapshot.as_ref().map(orphaned_changes).unwrap_or_default();
    if !ids.is_empty() && app.screen.view != ViewId::Tune {
        app.screen.error("an earlier program left changed settings; t shows them and offers to restore them");
    }
}

fn on_lease_time(app: &mut App, id: u64, secs: u64, renewed: bool, effects: &mut Vec<Effect>) {
    if let Some(lease) = app.views.tune.leases.iter_mut().find(|l| l.id == id) {
        lease.secs_left = secs;
    }
    if let Some(snapshot) = &mut app.views.tune.snapshot
        && let Some(change) = snapshot.changes.iter_mut().find(|c| c.id == id)
        && let ChangeStatus::Leased(left) = &mut change.status
    {
        *left = secs;
    }
    if renewed {
        app.screen.info(format!("change {id}: reverts in {} unless you press K", format_duration(secs)));
        refresh_now(app, effects);
    }
}

fn on_applied(app: &mut App, id: u64, lease_secs: Option<u64>, effects: &mut Vec<Effect>) {
    let tune = &mut app.views.tune;
    tune.busy_with = None;
    for assignment in std::mem::take(&mut tune.applying) {
        if let Some((name, value)) = assignment.rsplit_once('=')
            && tune.pending.get(name).is_some_and(|v| v == value)
        {
            tune.pending.remove(name);
        }
    }
    let Some(left) = lease_secs else {
        return app.screen.info("nothing to change: all values are set already");
    };
    tune.leases.push(ActiveLease { id, secs_left: left });
    tune.side_pane = SidePane::Changes;
    tune.changes_scroll.selected = 0;
    if tune.is_quitting {
        return effects.push(Effect::Tune(TuneEffect::Undo(vec![id])));
    }
    let back = format_duration(left);
    app.screen.info(format!("change {id} applied; reverts in {back}: K keeps, u reverts, R restarts the lease"));
}

fn on_applied_permanently(app: &mut App, id: u64) {
    let tune = &mut app.views.tune;
    tune.busy_with = None;
    tune.side_pane = SidePane::Changes;
    tune.changes_scroll.selected = 0;
    app.screen.info(format!("change {id} applied and stays until the machine boots; u reverts it"));
}

fn undone_text(id: u64, by_itself: bool, lines: &[String], clean: bool) -> String {
    match (clean, by_itself) {
        (true, true) => format!("the lease of change {id} has ended: the old values are back"),
        (true, false) => format!("change {id} reverted"),
        (false, _) => format!("change {id}: {}", lines.join("; ")),
    }
}

/// Stores the values after the next boot.
pub fn on_boot_values(app: &mut App, reply: WorkerReply) {
    let tune = &mut app.views.tune;
    tune.is_boot_requested = false;
    match reply {
        WorkerReply::BootValues(all, notes) => {
            tune.next_boot.extend(all);
            tune.boot_notes = notes.into_iter().map(crate::sanitize::sanitize).collect();
        }
        WorkerReply::Failed(why) => app.screen.error(why),
        _ => {}
    }
}

/// Reports whether the files for the next boot were written.
pub fn on_persisted(app: &mut App, reply: WorkerReply, effects: &mut Vec<Effect>) {
    match reply {
        WorkerReply::Persisted(lines) => {
            let warning = lines.iter().find(|l| l.starts_with("WARNING")).cloned();
            match warning {
                Some(warning) => {
                    app.screen.error(&warning);
                    app.views.tune.error = Some(crate::sanitize::sanitize(warning));
                }
                None => app.screen.info(lines.join("; ")),
            }
        }
        WorkerReply::Failed(why) => {
            app.screen.error(&why);
            app.views.tune.error = Some(crate::sanitize::sanitize(why));
        }
        _ => {}
    }
    // The values after the next boot have changed.
    app.views.tune.next_boot.clear();
    request_boot_values(app, effects);
}
