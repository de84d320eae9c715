//! Evaluates the rules, and requests the slow facts they need.

use super::state::App;
use crate::doctor::{fact_requests, finding::Finding};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::reading::Reading;
use crate::tui::view::{Effect, ViewId};

/// Shortest time between evaluations while there are no incidents, ns: every second tick at the default interval. The rules
/// look at several seconds, so a finding comes at most one tick later.
const IDLE_INTERVAL_NS: u64 = 1_500_000_000;

impl App {
    /// Evaluates the rules and requests slow facts, each if it is due.
    pub(super) fn run_rules_if_due(&mut self, effects: &mut Vec<Effect>) {
        let now = self.shared.system.now().boot_ns;
        let evaluated_ns = self.shared.findings.evaluated_at_ns;
        let rest = evaluated_ns..evaluated_ns.saturating_add(IDLE_INTERVAL_NS);
        if !(self.shared.findings.incidents.is_empty() && rest.contains(&now)) {
            self.run_rules();
        }
        self.request_facts(effects);
    }

    fn run_rules(&mut self) {
        let (findings, selected) = (&mut self.shared.findings, &mut self.views.findings.scroll.selected);
        let is_open = self.screen.view == ViewId::Findings;
        let cause = findings.incidents.get(*selected).filter(|_| is_open).map(|incident| incident.cause().clone());
        findings.evaluate(&self.shared.system);
        // The same incident stays selected while the view is open; otherwise the view opens at the worst one.
        let incidents = &findings.incidents;
        let is_same = |cause: &Finding| incidents.iter().position(|incident| incident.cause().key() == cause.key());
        let same = cause.as_ref().and_then(is_same);
        *selected = same.unwrap_or(if is_open { *selected } else { 0 }).min(incidents.len().saturating_sub(1));
    }

    /// Before a new tick: evaluates the one before, if its scan of tasks never came.
    pub(super) fn run_overdue_rules(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.findings.seq < self.shared.system.snapshot.seq {
            self.run_rules_if_due(effects);
        }
    }

    fn request_facts(&mut self, effects: &mut Vec<Effect>) {
        let system = &self.shared.system;
        let now = system.now().boot_ns;
        // Some rules compare two readings: read twice soon after an incident begins.
        let is_idle = self.shared.findings.incidents.is_empty() && system.slow_facts.previous.is_some();
        let interval = if is_idle { fact_requests::IDLE_INTERVAL_SECS } else { fact_requests::INTERVAL_SECS };
        // A new container gets its name soon.
        let interval = match system.processes.has_new_container() {
            true => fact_requests::NEW_CONTAINER_SECS,
            false => interval,
        };
        let requests = &mut self.fact_requests;
        let is_due = requests.requested_at_ns.is_none_or(|at| now.saturating_sub(at) as f64 / 1e9 >= interval);
        if !is_due || system.topology.ok().is_none() || !matches!(system.processes_status, Reading::Ok(())) {
            return;
        }
        requests.requested_at_ns = Some(now);
        // Starting a process costs more than these jobs: those that hardly ever hang share one.
        let mut jobs = Vec::new();
        if !std::mem::replace(&mut requests.facts, true) {
            jobs.push(WorkerJob::DoctorFacts(fact_requests::tasks_to_query(system)));
        }
        let [local, network] = [false, true].map(|network| {
            let mounts = fact_requests::mounts_to_query(system, network);
            let is_running = &mut requests.disk_space[usize::from(network)];
            (!mounts.is_empty() && !std::mem::replace(is_running, true))
                .then_some(WorkerJob::DiskSpace { mounts, network })
        });
        jobs.extend(local);
        if !jobs.is_empty() {
            effects.push(Effect::RunJobsInSequence(jobs));
        }
        effects.extend(network.map(Effect::RunJob));
    }

    /// Handles a reply. A failed job is repeated when it is due; the rules report what is missing.
    pub(super) fn on_facts(&mut self, job: &WorkerJob, reply: WorkerReply) {
        match job {
            WorkerJob::DiskSpace { network, .. } => self.fact_requests.disk_space[usize::from(*network)] = false,
            _ => self.fact_requests.facts = false,
        }
        if let WorkerReply::Observed(observation) = reply {
            self.shared.system.apply(observation);
        }
    }
}
