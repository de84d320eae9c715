//! Evaluates the rules, and requests the slow facts they need.

use crate::doctor::{fact_requests, incident::Incident};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::reading::Reading;
use crate::tui::effect::Effect;
use crate::tui::state::App;

/// Shortest time between evaluations while there are no incidents, ns: every second tick at the default interval. The rules
/// look at several seconds, so a finding comes at most one tick later.
const IDLE_INTERVAL_NS: u64 = 1_500_000_000;

/// Evaluates the rules and requests slow facts, each if it is due.
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
    // The same incident stays selected.
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

/// Before a new tick: evaluates the one before, if its scan of tasks never came.
pub fn on_tick(app: &mut App, effects: &mut Vec<Effect>) {
    if app.shared.findings.seq() < app.shared.system.snapshot.seq {
        run_rules_if_due(app, effects);
    }
}

fn request_facts(app: &mut App, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    // Some rules compare two readings: read twice soon after an incident begins.
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
    // Starting a process costs more than these jobs: those that hardly ever hang share one.
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

/// The job that reads the free space of file systems, if there are any and it is not running.
fn disk_space_job(app: &mut App, network: bool) -> Option<WorkerJob> {
    let asked = &mut app.fact_requests;
    let asked = if network { &mut asked.network_disk_space } else { &mut asked.local_disk_space };
    let mounts = fact_requests::mounts_to_query(&app.shared.system, network);
    (!mounts.is_empty() && !std::mem::replace(asked, true)).then_some(WorkerJob::DiskSpace { mounts, network })
}

/// Handles a reply. A failed job is repeated when it is due; the rules report what is missing.
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
