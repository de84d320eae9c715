//! The sequence of an experiment. Whatever happens in a round, the old values are restored before anything else.

use super::message::{ExperimentMessage, ExperimentProgress, RoundPhase};
use super::report::verdict::{self, TrialOutcome};
use super::report::{Baseline, DirtyPagesPoint, DirtyThresholds, Round, Trial};
use super::spec::{Arm, ExperimentSpec, OnComplete};
use super::stats::ArmComparison;
use crate::bench::message::BenchProgress;
use crate::bench::plan::BenchPlan;
use crate::bench::report::{BenchReport, RunEnd};
use crate::bench::session::RunError;
use crate::bench::workloads::{self, PrimaryMetric};
use crate::tuning::plan::TuneError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoundResult {
    pub report: BenchReport,
    pub dirty_points: Vec<DirtyPagesPoint>,
    /// Bytes made dirty by all processes over the counted time; `None` if unknown.
    pub dirtied_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

pub(crate) enum WorkloadEvent<'a> {
    /// Progress, and dirty pages if it counts.
    Progress(&'a BenchProgress, Option<DirtyPagesPoint>),
    Note(&'a str),
}

/// The machine that an experiment runs on, behind a trait, so that tests change no machine.
pub(crate) trait Environment {
    /// Writes back dirty pages; returns the ms that took.
    fn drain_dirty_pages(&mut self, plan: &BenchPlan) -> Result<u64, RunError>;
    /// Measures the activity of other processes for a moment.
    fn watch_baseline(&mut self) -> Result<Baseline, RunError>;
    /// Sets values on a lease, all or none; without assignments it does nothing.
    fn apply(&mut self, words: &[String]) -> Result<(), RunError>;
    fn thresholds(&mut self) -> DirtyThresholds;
    fn run_workload(&mut self, plan: &BenchPlan, seen: &mut dyn FnMut(WorkloadEvent)) -> Result<RoundResult, RunError>;
    /// Restores what [`Environment::apply`] set, if anything. May be called twice.
    fn restore(&mut self) -> Result<(), RunError>;
    /// Sets values that outlive the experiment: until the next boot, or on a lease. Returns the change's number.
    fn apply_permanently(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, RunError>;
}

pub(crate) struct ExperimentOutcome {
    pub trials: Vec<Trial>,
    pub thresholds: [DirtyThresholds; 2],
    pub end: RunEnd,
    /// What became of the change, as a sentence.
    pub aftermath: String,
}

/// Runs `spec`. `Err`: refused before the end of the first round.
pub(crate) fn run_experiment(
    spec: &ExperimentSpec,
    lab: &mut dyn Environment,
    say: &mut dyn FnMut(ExperimentMessage),
) -> Result<ExperimentOutcome, TuneError> {
    let mut run = ExperimentRunner {
        spec,
        environment: lab,
        emit: say,
        thresholds: Default::default(),
        progress: ExperimentProgress {
            is_control: false,
            round: 0,
            total_rounds: spec.total_rounds(),
            arm: Arm::A,
            phase: RoundPhase::Drain,
            bench: None,
            dirty_point: None,
            thresholds: DirtyThresholds::default(),
        },
        restore_failed: false,
    };
    let mut trials = Vec::new();
    let mut end = RunEnd::Complete;
    let plans = [(false, Some(spec.plan.clone())), (true, spec.control_plan())];
    for (control, plan) in plans {
        let (Some(plan), RunEnd::Complete) = (plan, &end) else { continue };
        let (trial, fail) = run.run_trial(control, plan);
        let begun = trials.iter().chain([&trial]).any(|t: &Trial| !t.rounds.is_empty());
        match fail {
            Some(RunError::Refused(refusal)) if !begun => return Err(refusal),
            Some(RunError::Refused(refusal)) => end = RunEnd::Failed(refusal.to_string()),
            Some(RunError::Cancelled) => end = RunEnd::Cancelled,
            Some(RunError::Failed(why)) => end = RunEnd::Failed(why),
            None => {}
        }
        trials.push(trial);
    }
    let outcome = trials.first().map(|t| t.verdict.outcome);
    let after = run.finish_change(&end, outcome);
    Ok(ExperimentOutcome { trials, thresholds: run.thresholds, end, aftermath: after })
}

struct ExperimentRunner<'a> {
    spec: &'a ExperimentSpec,
    environment: &'a mut dyn Environment,
    emit: &'a mut dyn FnMut(ExperimentMessage),
    thresholds: [DirtyThresholds; 2],
    progress: ExperimentProgress,
    restore_failed: bool,
}

impl ExperimentRunner<'_> {
    /// Runs the rounds up to the first that fails, and returns that error, too.
    fn run_trial(&mut self, control: bool, plan: BenchPlan) -> (Trial, Option<RunError>) {
        let mut rounds = Vec::new();
        let mut fail = None;
        self.progress.is_control = control;
        for (n, arm) in (1..).zip(self.spec.arm_order()) {
            self.progress.round += 1;
            self.progress.arm = arm;
            let (round, failed) = self.run_round(&plan, n, arm);
            if let Some(round) = round {
                (self.emit)(ExperimentMessage::Round(Box::new(round.clone())));
                rounds.push(round);
            }
            fail = failed;
            if fail.is_some() {
                break;
            }
        }
        let workload = workloads::find_workload(&plan.profile);
        let metric = workloads::primary_metric(&plan.profile).unwrap_or(PrimaryMetric {
            name: plan.profile.clone(),
            unit: String::new(),
            higher_is_better: true,
        });
        let mut trial = Trial {
            is_control: control,
            work_description: workload.map(|w| (w.describe)(&plan)).unwrap_or_default(),
            plan,
            rounds,
            comparison: None,
            verdict: verdict::judge(&metric, None),
            metric,
        };
        trial.comparison = ArmComparison::compare(&trial.values(Arm::A), &trial.values(Arm::B));
        let cached = trial.rounds.iter().filter(|r| r.is_comparable() && r.is_from_cache()).count();
        trial.verdict = match cached {
            0 => verdict::judge(&trial.metric, trial.comparison.as_ref()),
            n => verdict::refuse_cached(n, trial.rounds.len()),
        };
        (trial, fail)
    }

    /// Runs a round, as far as it came; one that was measured but is not reliable comes with its error.
    fn run_round(&mut self, plan: &BenchPlan, number: u32, arm: Arm) -> (Option<Round>, Option<RunError>) {
        let (drained_ms, baseline) = match self.begin_round(plan) {
            Ok(begun) => begun,
            Err(failed) => return (None, Some(failed)),
        };
        self.emit_phase(RoundPhase::Apply);
        let measured = self.environment.apply(self.spec.assignments(arm)).and_then(|()| {
            self.thresholds[arm.index()] = self.environment.thresholds();
            self.run_workload(plan, self.thresholds[arm.index()])
        });
        self.emit_phase(RoundPhase::Restore);
        // Restore first, whatever the result of the round.
        let restored = self.environment.restore().err();
        self.restore_failed |= restored.is_some();
        let worked = match (measured, &restored) {
            (Ok(worked), _) => worked,
            (Err(failed), None) => return (None, Some(failed)),
            (Err(failed), Some(not_back)) => return (None, Some(RunError::Failed(format!("{failed}; {not_back}")))),
        };
        let round = Round {
            number,
            arm,
            value: workloads::primary_value(&worked.report),
            drained_ms,
            baseline,
            dirtied_bytes: worked.dirtied_bytes,
            written_bytes: worked.written_bytes,
            dirty_points: worked.dirty_points,
            bench: worked.report,
        };
        let failed = restored.or_else(|| match &round.bench.end {
            RunEnd::Complete if round.value.is_none() => {
                Some(RunError::Failed(format!("round {number}: nothing was counted")))
            }
            RunEnd::Complete => None,
            RunEnd::Cancelled => Some(RunError::Cancelled),
            RunEnd::Failed(why) | RunEnd::Stalled(why) => Some(RunError::Failed(format!("round {number}: {why}"))),
        });
        (Some(round), failed)
    }

    /// Drains dirty pages (for how long, ms) and watches what others do.
    fn begin_round(&mut self, plan: &BenchPlan) -> Result<(u64, Baseline), RunError> {
        self.emit_phase(RoundPhase::Drain);
        let drained_ms = self.environment.drain_dirty_pages(plan)?;
        self.emit_phase(RoundPhase::Baseline);
        Ok((drained_ms, self.environment.watch_baseline()?))
    }

    fn run_workload(&mut self, plan: &BenchPlan, thresholds: DirtyThresholds) -> Result<RoundResult, RunError> {
        let base = ExperimentProgress { thresholds, phase: RoundPhase::Work, ..self.progress.clone() };
        let emit = &mut *self.emit;
        self.environment.run_workload(plan, &mut |seen| {
            emit(match seen {
                WorkloadEvent::Progress(bench, dirty_point) => ExperimentMessage::Progress(ExperimentProgress {
                    bench: Some(bench.clone()),
                    dirty_point,
                    ..base.clone()
                }),
                WorkloadEvent::Note(note) => ExperimentMessage::Note(note.to_owned()),
            });
        })
    }

    fn emit_phase(&mut self, phase: RoundPhase) {
        self.progress.phase = phase;
        (self.emit)(ExperimentMessage::Progress(self.progress.clone()));
    }

    /// Sets B again if that was requested and B is better; returns a sentence about it.
    fn finish_change(&mut self, end: &RunEnd, outcome: Option<TrialOutcome>) -> String {
        if self.restore_failed {
            return "Not all old values are back; `iotop-plus tune status` shows how things stand.".into();
        }
        let lease = match self.spec.on_complete {
            OnComplete::Undo if outcome == Some(TrialOutcome::Better) => {
                return format!(
                    "The old values are back. To set B: iotop-plus tune set {}",
                    crate::sanitize::sanitize(self.spec.set_assignments.join(" "))
                );
            }
            OnComplete::Undo => return "The old values are back.".into(),
            OnComplete::Keep => None,
            OnComplete::Lease(secs) => Some(secs),
        };
        if *end != RunEnd::Complete || outcome != Some(TrialOutcome::Better) {
            return "The old values are back: B is not shown to be better, so it was not set again.".into();
        }
        match (self.environment.apply_permanently(&self.spec.set_assignments, lease), lease) {
            (Ok(id), None) => format!(
                "B is set again as change {id} and stays until the machine boots. To take it back: iotop-plus tune undo {id}"
            ),
            (Ok(id), Some(secs)) => format!(
                "B is set again as change {id} on a lease of {}. To let it stay: iotop-plus tune keep {id}    To take it \
                 back: iotop-plus tune undo {id}",
                crate::units::format_duration(secs)
            ),
            (Err(RunError::Cancelled), _) => "The old values are back: stopped before B was set again.".into(),
            (Err(why), _) => format!("The old values are back: B could not be set again: {why}"),
        }
    }
}
