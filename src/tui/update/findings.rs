//! Decisions of the Findings view, and when the diagnosis looks.

use crate::doctor::{fact_requests, incident::Incident};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::reading::Reading;
use crate::tui::effect::Effect;
use crate::tui::state::App;

/// While nothing is wrong the rules, which look over several seconds, are asked no oftener than this (ns): at the usual
/// interval every second tick, so that what they find is found one tick later at most.
const IDLE_INTERVAL_NS: u64 = 1_500_000_000;

/// A tick's tasks are in: looks if it is time, and asks for slow facts if it is time for those.
pub fn run_rules_if_due(app: &mut App, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let rest =
        app.shared.findings.evaluated_at_ns()..app.shared.findings.evaluated_at_ns().saturating_add(IDLE_INTERVAL_NS);
    if !(app.shared.findings.incidents().is_empty() && rest.contains(&now)) {
        run_rules(app);
    }
    request_facts(app, effects);
}

fn run_rules(app: &mut App) {
    let known = app.shared.findings.incidents().get(app.views.findings.scroll.selected).map(incident_key);
    app.shared.findings.evaluate(&app.shared.system);
    // The selection stays with its story.
    let stories = app.shared.findings.incidents();
    if let Some(at) = known.and_then(|known| stories.iter().position(|s| incident_key(s) == known)) {
        app.views.findings.scroll.selected = at;
    }
    let last = app.shared.findings.incidents().len().saturating_sub(1);
    let selected = &mut app.views.findings.scroll.selected;
    *selected = (*selected).min(last);
}

fn incident_key(story: &Incident) -> (&'static str, crate::doctor::finding::FindingSubject) {
    (story.cause().rule, story.cause().subject.clone())
}

/// A new tick comes: the one before is looked at now, if its tasks never came.
pub fn on_tick(app: &mut App, effects: &mut Vec<Effect>) {
    if app.shared.findings.seq() < app.shared.system.snapshot.seq {
        run_rules_if_due(app, effects);
    }
}

fn request_facts(app: &mut App, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    // Some rules judge by two readings: those are had as soon as in trouble.
    let calm = app.shared.findings.incidents().is_empty() && app.shared.system.slow_facts.previous.is_some();
    let every = if calm { fact_requests::IDLE_INTERVAL_SECS } else { fact_requests::INTERVAL_SECS };
    let requests = &mut app.fact_requests;
    let due = requests.requested_at_ns.is_none_or(|at| now.saturating_sub(at) as f64 / 1e9 >= every);
    if !due
        || app.shared.system.topology.ok().is_none()
        || !matches!(app.shared.system.processes_status, Reading::Ok(()))
    {
        return;
    }
    requests.requested_at_ns = Some(now);
    // Starting a process costs more than what these find out: what hardly ever hangs shares one.
    let mut jobs = Vec::new();
    if !std::mem::replace(&mut requests.facts, true) {
        jobs.push(WorkerJob::DoctorFacts { tasks: fact_requests::tasks_to_query(&app.shared.system) });
    }
    jobs.extend(disk_space_job(app, false));
    if !jobs.is_empty() {
        effects.push(Effect::RunJobsInSequence(jobs));
    }
    effects.extend(disk_space_job(app, true).map(Effect::RunJob));
}

/// Asking file systems for their room, if there are any and none are being asked.
fn disk_space_job(app: &mut App, network: bool) -> Option<WorkerJob> {
    let asked = &mut app.fact_requests;
    let asked = if network { &mut asked.network_disk_space } else { &mut asked.local_disk_space };
    let mounts = fact_requests::mounts_to_query(&app.shared.system, network);
    (!mounts.is_empty() && !std::mem::replace(asked, true)).then_some(WorkerJob::DiskSpace { mounts, network })
}

/// What a child found out. One that failed is asked again when it is time: the rules say what is missing.
pub fn on_reply(app: &mut App, job: &WorkerJob, reply: WorkerReply) {
    match job {
        WorkerJob::DiskSpace { network: true, .. } => app.fact_requests.network_disk_space = false,
        WorkerJob::DiskSpace { network: false, .. } => app.fact_requests.local_disk_space = false,
        _ => app.fact_requests.facts = false,
    }
    if let WorkerReply::Observed(observation) = reply {
        app.shared.system.apply(observation);
    }
}
