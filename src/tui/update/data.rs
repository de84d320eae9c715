//! News from the machine.

use crate::model::reading::Reading;
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::panes::kernel;
use crate::tui::state::{App, Detail};
use crate::units::format_bytes_long;
use crate::worker::job::{Job, Reply};

/// Takes in an event that no person caused.
pub fn take(app: &mut App, event: Event, effects: &mut Vec<Effect>) {
    match event {
        Event::Sample(sample) => {
            super::findings::tick(app, effects);
            app.world.apply_sample(*sample);
            if app.ui.replay.is_none() {
                super::tune::tick(app, effects);
            }
            fade_message(app);
        }
        Event::Procs(update) => {
            app.world.apply_processes(*update);
            follow_selected(app);
            super::findings::look(app, effects);
            app.pick_tasks();
            focus(app, effects);
        }
        Event::Topology(topo) => topology(app, *topo, effects),
        Event::Records(records, clock) => {
            app.ui.log_clock = clock;
            app.world.kernel_log_status = Reading::Ok(());
            let before = app.world.kernel_log.revision();
            app.world.apply_records(records, clock);
            if app.world.kernel_log.revision() != before {
                kernel::refresh(app);
            }
        }
        Event::NoKernelLog(why) => app.world.kernel_log_status = why,
        Event::Worker(Job::AtBoot { .. }, reply) => super::tune::boot_known(app, reply),
        Event::Worker(Job::Persist { .. }, reply) => super::tune::persisted(app, reply, effects),
        Event::Worker(job, reply) => answered(app, job, reply, effects),
        Event::Blocked(list) => app.world.blocked_reads = list,
        Event::HungTaskWarnings(left) => app.world.hung_task_warnings = left,
        Event::IoPrioSet(key, result) => match result {
            Ok(prio) => app.ui.say(format!("task {}: I/O priority is now {prio} (read back)", key.tid)),
            Err(why) => app.ui.complain(why),
        },
        Event::Bench(news) => super::bench::take(app, *news, effects),
        Event::Experiment(news) => super::experiment::take(app, *news, effects),
        Event::Tune(news) => super::tune::take(app, *news, effects),
        Event::Replay(news) => super::replay::take(app, *news, effects),
        Event::Recording(status) => super::replay::recorded(app, *status),
        Event::Notice(text) => app.ui.complain(text),
        Event::Key(_) | Event::Mouse(_) | Event::Resize(..) => {}
    }
}

fn fade_message(app: &mut App) {
    if let Some(m) = &mut app.ui.message {
        m.ticks = m.ticks.saturating_sub(1);
        if m.ticks == 0 {
            app.ui.message = None;
        }
    }
}

/// The selection stays with its task when a detail page of it is open; otherwise with its place.
pub fn follow_selected(app: &mut App) {
    let len = app.world.processes.len();
    app.ui.procs.scroll.selected = app.ui.procs.scroll.selected.min(len.saturating_sub(1));
}

/// Tells the collector which rows are on screen.
pub fn focus(app: &mut App, effects: &mut Vec<Effect>) {
    let mut keys: Vec<_> = app.ui.procs.window.rows.iter().map(|at| app.world.processes.key_at(*at)).collect();
    if let Some(Detail::Process(p)) = &app.ui.detail {
        keys.push(p.key);
    }
    if keys != app.ui.procs.focused {
        app.ui.procs.focused = keys.clone();
        effects.push(Effect::Focus(keys));
    }
}

fn topology(app: &mut App, topo: Reading<crate::model::topology::Topology>, effects: &mut Vec<Effect>) {
    app.world.topology = topo;
    let names = app.world.devices_to_query();
    if !names.is_empty() {
        effects.push(Effect::Run(Job::Queues { names }));
    }
}

/// Asks for the facts of the task whose detail is open.
pub fn facts(app: &mut App, effects: &mut Vec<Effect>) {
    if let (Some(Detail::Process(p)), true) = (&mut app.ui.detail, app.ui.replay.is_some()) {
        // What is asked for when it is looked at was not asked then.
        let not = |what: &str| Some(Reply::Failed(format!("{what} are not in a recording")));
        (p.facts, p.mappings) = (not("limits and parents"), not("mappings"));
        return;
    }
    if let Some(Detail::Process(p)) = &app.ui.detail {
        effects.push(Effect::Run(Job::Facts { pid: p.key.pid, starttime: p.key.starttime }));
    }
}

fn answered(app: &mut App, job: Job, reply: Reply, effects: &mut Vec<Effect>) {
    match (job, reply) {
        (job, reply) if job.is_measuring() => {
            super::bench::answered(app, job, reply, effects);
        }
        (job, reply) if job.is_experiment() => super::experiment::answered(app, job, reply, effects),
        (job, reply) if job.is_diagnosis() => super::findings::answered(app, &job, reply),
        (Job::Queues { .. }, Reply::Queues(queues)) => app.world.queues.extend(queues),
        (Job::Queues { .. }, Reply::Failed(why)) => app.ui.complain(why),
        (Job::Path { path }, reply) => {
            if let Some(Detail::Path(open)) = &mut app.ui.detail
                && open.path == path
            {
                open.reply = Some(reply);
            }
        }
        (Job::Mappings { pid, starttime }, reply) => {
            if let Some(Detail::Process(p)) = &mut app.ui.detail
                && (p.key.pid, p.key.starttime) == (pid, starttime)
            {
                p.loading = false;
                p.mappings = Some(reply);
            }
        }
        (Job::Facts { pid, starttime }, reply) => {
            if let Some(Detail::Process(p)) = &mut app.ui.detail
                && (p.key.pid, p.key.starttime) == (pid, starttime)
            {
                p.facts = Some(reply);
            }
        }
        (_, Reply::Written { path, bytes }) => {
            app.ui.say(format!("written: {} ({})", path.display(), format_bytes_long(bytes)));
        }
        (_, Reply::Failed(why)) => app.ui.complain(why),
        _ => {}
    }
}
