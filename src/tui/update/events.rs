//! Events of collectors, child processes and the player.

use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::{Change, Observation};
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, DetailPage};
use crate::units::format_bytes_long;

/// Handles an event that is not user input.
pub fn on_event(app: &mut App, event: Event, effects: &mut Vec<Effect>) {
    match event {
        Event::Observed(observation) => on_observation(app, observation, effects),
        Event::JobReply(WorkerJob::BootValues { .. }, reply) => {
            crate::tui::views::tune::update::on_boot_values(app, reply)
        }
        Event::JobReply(WorkerJob::Persist { .. }, reply) => {
            crate::tui::views::tune::update::on_persisted(app, reply, effects)
        }
        Event::JobReply(job, reply) => on_reply(app, job, reply, effects),
        Event::IoPrioSet(key, result) => match result {
            Ok(prio) => app.screen.info(format!("task {}: I/O priority is now {prio} (read back)", key.tid)),
            Err(why) => app.screen.error(why),
        },
        Event::Bench(..) => send(app, PaneId::BenchPage, event, effects),
        Event::Experiment(..) | Event::ArmsChecked(_) => send(app, PaneId::ExperimentPage, event, effects),
        Event::Tune(news) => crate::tui::views::tune::update::on_event(app, *news, effects),
        Event::Replay(news) => crate::tui::views::replay::update::on_event(app, *news, effects),
        Event::RecordingStatus(status) => crate::tui::views::replay::update::on_recorder_status(app, *status),
        Event::Notice(text) => app.screen.error(text),
        Event::Key(_) | Event::Mouse(_) | Event::Resize(..) => {}
    }
}

/// Hands an event to the view that owns a pane.
fn send(app: &mut App, pane: PaneId, event: Event, effects: &mut Vec<Effect>) {
    app.update_view(pane, effects, |view, cx, out| view.on_event(event, cx, out));
}

/// Updates the system state with what a collector read, and what is shown of it.
pub fn on_observation(app: &mut App, observation: Observation, effects: &mut Vec<Effect>) {
    match &observation {
        Observation::Sample(_) => super::findings::on_tick(app, effects),
        Observation::KernelLog(_, clock) => app.shared.log_clock = *clock,
        _ => {}
    }
    match app.shared.system.apply(observation) {
        Change::Counters => {
            if app.shared.replay.is_none() {
                crate::tui::views::tune::update::on_tick(app, effects);
            }
            age_message(app);
        }
        Change::Tasks => {
            clamp_selection(app);
            super::findings::run_rules_if_due(app, effects);
        }
        Change::Topology => request_queue_settings(app, effects),
        Change::KernelLog => app.views.kernel_log.refresh_entries(&app.shared),
        Change::Other | Change::None => {}
    }
}

fn age_message(app: &mut App) {
    if let Some(m) = &mut app.screen.message {
        m.ticks_left = m.ticks_left.saturating_sub(1);
        if m.ticks_left == 0 {
            app.screen.message = None;
        }
    }
}

/// Keeps the selection within the list.
pub fn clamp_selection(app: &mut App) {
    let len = app.shared.system.processes.len();
    app.views.processes.scroll.selected = app.views.processes.scroll.selected.min(len.saturating_sub(1));
}

fn request_queue_settings(app: &App, effects: &mut Vec<Effect>) {
    let names = app.shared.system.devices_to_query();
    if !names.is_empty() {
        effects.push(Effect::RunJob(WorkerJob::QueueSettings { names }));
    }
}

/// Requests the facts of the task whose page is open.
pub fn request_task_facts(app: &mut App, effects: &mut Vec<Effect>) {
    if let (Some(DetailPage::Process(p)), true) = (&mut app.screen.detail, app.shared.replay.is_some()) {
        // These facts are read on request, so a recording has none.
        let not = |what: &str| Some(WorkerReply::Failed(format!("{what} are not in a recording")));
        (p.facts, p.mappings) = (not("limits and parents"), not("mappings"));
        return;
    }
    if let Some(DetailPage::Process(p)) = &app.screen.detail {
        effects.push(Effect::RunJob(WorkerJob::TaskDetails { pid: p.key.pid, starttime: p.key.starttime }));
    }
}

fn on_reply(app: &mut App, job: WorkerJob, reply: WorkerReply, effects: &mut Vec<Effect>) {
    match (job, reply) {
        (WorkerJob::InspectTarget { directory }, reply) => {
            app.shared.target.on_inspected(directory, reply);
            super::select_target_device(app);
        }
        (job, reply) if job.is_for_bench() => send(app, PaneId::BenchPage, Event::JobReply(job, reply), effects),
        (job, reply) if job.is_for_experiments() => {
            send(app, PaneId::ExperimentPage, Event::JobReply(job, reply), effects);
        }
        (job, reply) if job.is_for_doctor() => super::findings::on_reply(app, &job, reply),
        (WorkerJob::QueueSettings { .. }, WorkerReply::Observed(queues)) => _ = app.shared.system.apply(queues),
        (WorkerJob::QueueSettings { .. }, WorkerReply::Failed(why)) => app.screen.error(why),
        (WorkerJob::ResolvePath { path }, reply) => {
            if let Some(DetailPage::Path(open)) = &mut app.screen.detail
                && open.path == path
            {
                open.reply = Some(reply);
            }
        }
        (WorkerJob::Mappings { pid, starttime }, reply) => {
            if let Some(DetailPage::Process(p)) = &mut app.screen.detail
                && (p.key.pid, p.key.starttime) == (pid, starttime)
            {
                p.mappings_requested = false;
                p.mappings = Some(reply);
            }
        }
        (WorkerJob::TaskDetails { pid, starttime }, reply) => {
            if let Some(DetailPage::Process(p)) = &mut app.screen.detail
                && (p.key.pid, p.key.starttime) == (pid, starttime)
            {
                p.facts = Some(reply);
            }
        }
        (_, WorkerReply::FileWritten { path, bytes }) => {
            app.screen.info(format!("written: {} ({})", path.display(), format_bytes_long(bytes)));
        }
        (_, WorkerReply::Failed(why)) => app.screen.error(why),
        _ => {}
    }
}
