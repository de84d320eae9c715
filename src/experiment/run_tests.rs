//! Whole experiments in a fake environment: order, restores, every kind of end.

use super::message::{ExperimentMessage, RoundPhase};
use super::report::verdict::TrialOutcome;
use super::report::{Baseline, DirtyThresholds, ExperimentReport, SCHEMA, compare, markdown, text};
use super::run::{Environment, ExperimentOutcome, RoundResult, WorkloadEvent, run_experiment};
use super::spec::{Arm, ExperimentSpec, OnComplete};
use crate::bench::engine::test_engine::NullEngine;
use crate::bench::io_spec::IoSpec;
use crate::bench::measure::recorder::OpRecorder;
use crate::bench::message::BenchProgress;
use crate::bench::plan::BenchPlan;
use crate::bench::report::{BenchReport, Measurement, ReportTarget, RunEnd};
use crate::bench::run_progress::merge_recorders;
use crate::bench::session::RunError;
use crate::bench::store::tests::empty_report as bench_report;
use crate::bench::worker_loop::run_worker_loop;
use crate::tuning::plan::TuneError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

/// A disk that takes `b_ns` per operation under B's values and 1 ms otherwise.
struct FakeEnvironment {
    log: Vec<String>,
    assignments: Vec<String>,
    b_ns: u64,
    /// In round `n` (from 1) the workload ends so.
    end_in_round: Option<(usize, Result<RunEnd, RunError>)>,
    /// In round `n` this step goes wrong so.
    fail_in_round: Option<(usize, &'static str, RunError)>,
    rounds: usize,
    /// A cache answers every round.
    is_cached: bool,
}

impl FakeEnvironment {
    fn new(b_ns: u64) -> Self {
        let (log, assignments) = (Vec::new(), Vec::new());
        Self { log, assignments, b_ns, end_in_round: None, fail_in_round: None, rounds: 0, is_cached: false }
    }

    fn step(&mut self, what: &'static str) -> Result<(), RunError> {
        self.log.push(what.into());
        match &self.fail_in_round {
            Some((n, step, fail)) if *n == self.rounds && *step == what => Err(fail.clone()),
            _ => Ok(()),
        }
    }
}

/// A real run of the measuring loop on the null engine: `n` operations of `ns` each.
fn measured_report(plan: &BenchPlan, ns: u64, n: u64) -> BenchReport {
    let recorder = Arc::new(OpRecorder::default());
    let spec = IoSpec { byte_limit: n * 4096, fsync_every: 10, ..IoSpec::for_layout(n * 4096, 4096, 1, 1) };
    let stop = AtomicBool::new(false);
    run_worker_loop(&mut NullEngine::new(4096, ns), &spec, &recorder, &stop, &mut || {}, &mut || {}).unwrap();
    let part = merge_recorders(Measurement { label: "randwrite".into(), ..Measurement::default() }, &[recorder]);
    BenchReport {
        plan: plan.clone(),
        measurements: vec![part],
        target: Some(ReportTarget {
            directory: "/data".into(),
            filesystem: "ext4".into(),
            source: "/dev/sda".into(),
            device: Some("8:0".into()),
            ..ReportTarget::default()
        }),
        ..bench_report("1-x")
    }
}

impl Environment for FakeEnvironment {
    fn drain_dirty_pages(&mut self, _: &BenchPlan) -> Result<u64, RunError> {
        self.rounds += 1;
        self.step("drain").map(|()| 1500)
    }

    fn watch_baseline(&mut self) -> Result<Baseline, RunError> {
        self.step("calm").map(|()| Baseline {
            cpu_pct: Some(40.0),
            disks: vec![("8:0".into(), 5e6)],
            sync_timed_out: false,
        })
    }

    fn apply(&mut self, words: &[String]) -> Result<(), RunError> {
        self.step("apply")?;
        assert!(self.assignments.is_empty(), "the values before were not put back");
        self.assignments = words.to_vec();
        Ok(())
    }

    fn thresholds(&mut self) -> DirtyThresholds {
        let [background, limit] =
            if self.assignments.is_empty() { [16 * MIB, 256 * MIB] } else { [8 << 30, 16 << 30] }.map(Some);
        DirtyThresholds { background, limit }
    }

    fn run_workload(&mut self, plan: &BenchPlan, seen: &mut dyn FnMut(WorkloadEvent)) -> Result<RoundResult, RunError> {
        self.log.push(format!("work {}", self.assignments.join(" ")));
        seen(WorkloadEvent::Progress(&BenchProgress::default(), None));
        let ns = if self.assignments.is_empty() || plan.direct { 1_000_000 } else { self.b_ns };
        // Rounds differ a little, as real ones do.
        let mut report = measured_report(plan, ns + 1000 * self.rounds as u64, 200);
        if let Some((n, end)) = &self.end_in_round
            && *n == self.rounds
        {
            report.end = end.clone()?;
        }
        report.measurements.iter_mut().for_each(|part| part.from_cache = self.is_cached);
        let points = (0..40).map(|n| super::report::DirtyPagesPoint {
            at_ms: n * 250,
            dirty_bytes: n * MIB,
            writeback_bytes: 0,
        });
        Ok(RoundResult { report, dirty_points: points.collect(), dirtied_bytes: Some(5 * MIB), written_bytes: None })
    }

    fn restore(&mut self) -> Result<(), RunError> {
        self.assignments.clear();
        self.step("restore")
    }

    fn apply_permanently(&mut self, words: &[String], lease: Option<u64>) -> Result<u64, RunError> {
        assert!(self.assignments.is_empty());
        self.log.push(format!("leave {} {lease:?}", words.join(" ")));
        Ok(7)
    }
}

fn spec() -> ExperimentSpec {
    let plan = BenchPlan {
        profile: "randwrite".into(),
        directory: "/data".into(),
        read_pct: 0,
        direct: false,
        ..BenchPlan::default()
    };
    ExperimentSpec { plan, set_assignments: vec!["vm.dirty_ratio=80".into()], ..ExperimentSpec::default() }
}

fn run(
    spec: &ExperimentSpec,
    lab: &mut FakeEnvironment,
) -> (Result<ExperimentOutcome, TuneError>, Vec<ExperimentMessage>) {
    let mut said = Vec::new();
    let done = run_experiment(spec, lab, &mut |m| said.push(m));
    assert!(lab.assignments.is_empty(), "the old values are back");
    (done, said)
}

fn report(spec: ExperimentSpec, done: ExperimentOutcome) -> ExperimentReport {
    let mut report = ExperimentReport {
        schema: SCHEMA,
        id: "100-randwrite".into(),
        time: "2026-01-01T00:00:00Z".into(),
        host: "h\u{1b}[2J".into(),
        kernel: "6.18".into(),
        version: "0".into(),
        spec,
        settings: vec![super::arm_settings::ArmSetting {
            knob: "vm.dirty_ratio".into(),
            values: ["20".into(), "80".into()],
            display_values: ["20 % (4 GiB)".into(), "80 % (16 GiB)".into()],
        }],
        only_page_cache: true,
        memory: super::arm_settings::DirtyMemory { expire_centisecs: Some(3000), ..Default::default() },
        thresholds: done.thresholds,
        trials: done.trials,
        warnings: Vec::new(),
        end: done.end,
        aftermath: done.aftermath,
    };
    report.warnings = super::report::warnings::warnings_for(&report);
    report
}

#[test]
fn arms_alternate_and_values_are_restored_between_rounds() {
    let mut lab = FakeEnvironment::new(100_000);
    let (done, said) = run(&spec(), &mut lab);
    let done = done.unwrap();
    let b = "work vm.dirty_ratio=80";
    let round = |work: &str| ["drain", "calm", "apply", work, "restore"].map(str::to_owned);
    let want: Vec<String> = ["work ", b, b, "work ", "work ", b, b, "work "].into_iter().flat_map(round).collect();
    assert_eq!(lab.log, want);
    assert_eq!(done.end, RunEnd::Complete);
    let trial = &done.trials[0];
    assert_eq!(trial.verdict.outcome, TrialOutcome::Better, "{}", trial.verdict.text);
    assert_eq!((trial.values(Arm::A).len(), trial.values(Arm::B).len()), (4, 4));
    assert!(trial.comparison.as_ref().is_some_and(|c| (9.0..10.5).contains(&c.ratio)));
    assert_eq!(done.thresholds[1].background, Some(8 << 30));
    assert!(done.aftermath.contains("tune set vm.dirty_ratio=80"), "{}", done.aftermath);
    let rounds = said.iter().filter(|m| matches!(m, ExperimentMessage::Round(_))).count();
    let phases: Vec<RoundPhase> = said
        .iter()
        .filter_map(|m| match m {
            ExperimentMessage::Progress(p) if p.round == 3 => Some(p.phase),
            _ => None,
        })
        .collect();
    assert_eq!(
        (rounds, phases),
        (8, vec![RoundPhase::Drain, RoundPhase::Baseline, RoundPhase::Apply, RoundPhase::Work, RoundPhase::Restore])
    );
}

#[test]
fn no_difference_and_worse_results_are_not_applied() {
    for (b_ns, outcome) in [(1_000_000, TrialOutcome::NoDifference), (9_000_000, TrialOutcome::Worse)] {
        let spec = ExperimentSpec { on_complete: OnComplete::Keep, ..spec() };
        let mut lab = FakeEnvironment::new(b_ns);
        let done = run(&spec, &mut lab).0.unwrap();
        assert_eq!(done.trials[0].verdict.outcome, outcome, "{}", done.trials[0].verdict.text);
        assert!(done.aftermath.contains("not set again"), "{}", done.aftermath);
        assert!(!lab.log.iter().any(|l| l.starts_with("leave")));
    }
}

#[test]
fn figures_of_a_cache_get_no_verdict() {
    let mut lab = FakeEnvironment { is_cached: true, ..FakeEnvironment::new(100_000) };
    let done = run(&ExperimentSpec { on_complete: OnComplete::Keep, ..spec() }, &mut lab).0.unwrap();
    let verdict = &done.trials[0].verdict;
    assert_eq!(verdict.outcome, TrialOutcome::FromCache);
    assert!(verdict.text.starts_with("No verdict: in 8 of 8 rounds a cache answered"), "{}", verdict.text);
    assert!(done.aftermath.contains("not set again"), "{}", done.aftermath);
}

#[test]
fn a_better_result_is_applied_on_request() {
    for (then, want) in [
        (OnComplete::Keep, "leave vm.dirty_ratio=80 None"),
        (OnComplete::Lease(60), "leave vm.dirty_ratio=80 Some(60)"),
    ] {
        let mut lab = FakeEnvironment::new(100_000);
        let done = run(&ExperimentSpec { on_complete: then, ..spec() }, &mut lab).0.unwrap();
        assert_eq!(lab.log.last().unwrap(), want);
        assert!(done.aftermath.contains("tune undo 7"), "{}", done.aftermath);
    }
}

#[test]
fn the_control_runs_after_the_trial_and_shows_no_difference() {
    let done = run(&ExperimentSpec { control: true, ..spec() }, &mut FakeEnvironment::new(100_000)).0.unwrap();
    assert_eq!(done.trials.len(), 2);
    let control = &done.trials[1];
    assert!(control.is_control && control.plan.direct);
    assert_eq!(control.verdict.outcome, TrialOutcome::NoDifference);
    let written = text::text_report(&report(ExperimentSpec { control: true, ..spec() }, done), usize::MAX);
    assert!(written.contains("It shows no difference, as it"), "{written}");
}

#[test]
fn a_round_that_ends_early_ends_the_experiment_with_a_partial_report() {
    for (end, want, rounds) in [
        (Ok(RunEnd::Failed("no space".into())), RunEnd::Failed("round 3: no space".into()), 3),
        (Ok(RunEnd::Stalled("hung".into())), RunEnd::Failed("round 3: hung".into()), 3),
        (Ok(RunEnd::Cancelled), RunEnd::Cancelled, 3),
        (Err(RunError::Failed("gone".into())), RunEnd::Failed("gone".into()), 2),
        (Err(RunError::Cancelled), RunEnd::Cancelled, 2),
    ] {
        let mut lab = FakeEnvironment::new(100_000);
        lab.end_in_round = Some((3, end));
        let spec = ExperimentSpec { on_complete: OnComplete::Keep, control: true, ..spec() };
        let done = run(&spec, &mut lab).0.unwrap();
        assert_eq!(done.end, want);
        assert_eq!((done.trials.len(), done.trials[0].rounds.len()), (1, rounds));
        assert_eq!(lab.log.last().unwrap(), "restore");
        assert_eq!(done.trials[0].values(Arm::B).len(), 1, "the round that ended early is not compared");
        assert!(done.aftermath.contains("old values are back"));
        let report = report(spec, done);
        assert!(report.warnings.iter().any(|w| w.contains("only 2 of 8 rounds")), "{:?}", report.warnings);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<ExperimentReport>(&json).unwrap(), report);
    }
}

#[test]
fn failed_steps_are_reported_after_restoring_the_values() {
    let broken = |n, step, fail: RunError| {
        let mut lab = FakeEnvironment::new(100_000);
        lab.fail_in_round = Some((n, step, fail));
        let done = run(&spec(), &mut lab).0;
        (done, lab.log)
    };
    let failed = |why: &str| RunError::Failed(why.into());
    let (done, log) = broken(2, "drain", failed("hung"));
    assert_eq!((done.unwrap().end, log.last().unwrap().as_str()), (RunEnd::Failed("hung".into()), "drain"));
    let (done, log) = broken(2, "apply", failed("clamped"));
    assert_eq!((done.unwrap().end, log.last().unwrap().as_str()), (RunEnd::Failed("clamped".into()), "restore"));
    let (done, _) = broken(2, "restore", failed("somebody set it"));
    let done = done.unwrap();
    assert_eq!((done.end, done.trials[0].rounds.len()), (RunEnd::Failed("somebody set it".into()), 2));
    let refusal = TuneError::Unsafe("no room".into());
    let (done, _) = broken(1, "apply", RunError::Refused(refusal.clone()));
    assert_eq!(done.err(), Some(refusal.clone()));
    let (done, _) = broken(2, "apply", RunError::Refused(refusal));
    assert_eq!(done.unwrap().end, RunEnd::Failed("no room".into()), "after a round it is no refusal any more");
}

#[test]
fn a_failed_restore_is_reported_with_the_first_error() {
    let mut lab = FakeEnvironment::new(100_000);
    lab.end_in_round = Some((2, Err(RunError::Failed("disk gone".into()))));
    lab.fail_in_round = Some((2, "restore", RunError::Failed("CONFLICT".into())));
    let done = run(&spec(), &mut lab).0.unwrap();
    assert_eq!(done.end, RunEnd::Failed("disk gone; CONFLICT".into()));
    assert!(done.aftermath.contains("Not all old values are back"), "{}", done.aftermath);
}

#[test]
fn reports_have_every_round_and_sanitized_names() {
    let done = run(&spec(), &mut FakeEnvironment::new(100_000)).0.unwrap();
    let report = report(spec(), done);
    insta::with_settings!({ snapshot_path => "../../tests/snapshots" }, {
        insta::assert_snapshot!("experiment_text", text::text_report(&report, usize::MAX));
        insta::assert_snapshot!("experiment_markdown", markdown::markdown_report(&report));
    });
    for written in [text::text_report(&report, usize::MAX), markdown::markdown_report(&report)] {
        assert!(!written.contains('\u{1b}'));
        for has in ["p = 0.029", "B is better", "97", "20 % (4 GiB)", "mean of 4 rounds", "processors were busy"] {
            assert!(written.contains(has), "{has}:\n{written}");
        }
    }
    let same = compare::compare_text(&report, &report).unwrap();
    assert!(same.contains("The intervals overlap") && same.contains("B is better"), "{same}");
}

#[test]
fn dirty_totals_of_short_rounds_are_omitted_with_a_warning() {
    let spec = spec();
    let (done, _) = run(&spec, &mut FakeEnvironment::new(1_000_000));
    let mut report = report(spec, done.unwrap());
    let said = |r: &ExperimentReport| r.warnings.iter().any(|w| w.contains("vm.stat_interval"));
    assert!(!said(&report));
    for round in &mut report.trials[0].rounds {
        (round.dirtied_bytes, round.written_bytes) = (None, None);
        round.dirty_points.truncate(3);
    }
    report.warnings = super::report::warnings::warnings_for(&report);
    assert!(said(&report), "{:?}", report.warnings);
    for text in
        [super::report::text::text_report(&report, usize::MAX), super::report::markdown::markdown_report(&report)]
    {
        assert!(text.contains("vm.stat_interval") && !text.contains(" 0 B "), "{text}");
    }
    assert!(serde_json::to_string(&report).unwrap().contains("\"dirtied\":null"));
}
