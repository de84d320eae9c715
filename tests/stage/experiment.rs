//! Experiments over the tree of the Tune view: the arms are really looked at, rounds and reports are made up.

use super::press;
use super::tune::{Tree, view};
use iotop_plus::bench::target_info::{TargetInspection, TargetInfo};
use iotop_plus::bench::measure::histogram::{Histogram, bucket_index};
use iotop_plus::bench::measure::latency::{LatencyStats, SyncStats};
use iotop_plus::bench::message::BenchProgress as BenchProgress;
use iotop_plus::bench::plan::BenchPlan;
use iotop_plus::bench::report::{Measurement, BenchReport as BenchReport, SCHEMA as BENCH_SCHEMA, ReportTarget};
use iotop_plus::bench::workloads::{find_workload, primary_metric};
use iotop_plus::experiment::arm_settings::validate;
use iotop_plus::experiment::stored::StoredExperiment;
use iotop_plus::experiment::message::{ExperimentMessage, RoundPhase, ExperimentProgress};
use iotop_plus::experiment::report::verdict::{TrialOutcome, judge};
use iotop_plus::experiment::report::{Baseline, RunEnd, DirtyPagesPoint, ExperimentReport, Round, SCHEMA, DirtyThresholds, Trial, warnings};
use iotop_plus::experiment::spec::{Arm, ExperimentSpec};
use iotop_plus::experiment::stats::ArmComparison;
use iotop_plus::tui::effect::Effect;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::experiment::{ArmSettings, ExperimentEvent, ArmCheck};
use iotop_plus::tui::child_runner::ChildEvent;
use iotop_plus::tui::state::App;
use iotop_plus::tui::update::update;
use iotop_plus::worker::job::{WorkerJob, WorkerReply};

pub const DIR: &str = "/srv/lab";
const MIB: u64 = 1 << 20;

pub fn look() -> TargetInspection {
    let place = TargetInfo {
        filesystem: "ext4".into(),
        source: "/dev/vda".into(),
        mount_point: "/srv".into(),
        size: 64 << 30,
        free: 40 << 30,
        ..TargetInfo::default()
    };
    TargetInspection { directory: DIR.into(), refusal: None, info: Some(place) }
}

/// The knobs, with all there is to know about them and about the directory.
pub fn knobs(size: (u16, u16)) -> (App, Tree) {
    let (mut app, tree) = view(size);
    app.ui.bench.set_working_directory(DIR.into());
    (app, tree)
}

/// Answers what the experiments ask as soon as they are opened.
pub fn answer(app: &mut App, tree: &Tree) {
    update(app, Event::JobReply(WorkerJob::InspectTarget { directory: DIR.into() }, WorkerReply::TargetInspection(Box::new(look()))));
    update(app, Event::JobReply(WorkerJob::ListExperiments, WorkerReply::Experiments(kept())));
    judge_arms(app, tree);
}

/// The answer of the thread that looks at the knobs.
pub fn judge_arms(app: &mut App, tree: &Tree) {
    let spec = app.planned_experiment();
    let found = validate(&tree.root, &spec).map_err(|why| why.to_string());
    let judged = ArmCheck { arms: ArmSettings::from_spec(&spec), result: found };
    update(app, Event::Experiment(Box::new(ExperimentEvent::ArmsChecked(judged))));
}

/// An experiment filled in: `dirty_ratio` at 30 %, the work of `fsync`.
pub fn planned(size: (u16, u16)) -> (App, Tree) {
    let (mut app, tree) = knobs(size);
    press(&mut app, "<enter><c-u>30<enter>e");
    answer(&mut app, &tree);
    press(&mut app, "<home><enter><c-u>fsync<enter>");
    judge_arms(&mut app, &tree);
    (app, tree)
}

/// The same, started.
pub fn started(size: (u16, u16)) -> (App, Tree) {
    let (mut app, tree) = planned(size);
    press(&mut app, "ry");
    tell(&mut app, ChildEvent::Started { pid: 4711 });
    (app, tree)
}

/// News of the newest run.
pub fn tell(app: &mut App, what: ChildEvent<ExperimentMessage>) -> Vec<Effect> {
    let run = app.ui.experiment.run_count;
    update(app, Event::Experiment(Box::new(ExperimentEvent::Child(run, what))))
}

pub fn say(app: &mut App, message: ExperimentMessage) -> Vec<Effect> {
    tell(app, ChildEvent::Message(message))
}

/// `n` moments of a round, dirty pages rising to `most`.
pub fn points(n: u64, most: u64) -> Vec<DirtyPagesPoint> {
    let point = |i: u64| DirtyPagesPoint { at_ms: i * 250, dirty_bytes: most * i / n, writeback_bytes: most / 8 * (i % 3) };
    (0..n).map(point).collect()
}

/// A moment of round `round`.
pub fn progress(round: u32, arm: Arm, phase: RoundPhase, at: u64) -> ExperimentMessage {
    let work = phase == RoundPhase::Work;
    let bench = BenchProgress {
        phase: "write + fdatasync".into(),
        measurement_index: Some(0),
        fraction_done: Some(at as f64 / 40.0),
        op_counts: [0, 100 * at, 100 * at],
        ..BenchProgress::default()
    };
    let thresholds = match arm {
        Arm::A => DirtyThresholds { background: Some(32 * MIB), limit: Some(512 * MIB) },
        Arm::B => DirtyThresholds { background: Some(600 * MIB), limit: Some(1024 * MIB) },
    };
    ExperimentMessage::Progress(ExperimentProgress {
        is_control: false,
        round,
        total_rounds: 8,
        arm,
        phase,
        bench: work.then_some(bench),
        dirty_point: work.then(|| points(40, (arm.index() as u64 + 1) * 30 * MIB)[at as usize]),
        thresholds: if work { thresholds } else { DirtyThresholds::default() },
    })
}

fn latency(n: u64, ns: u64) -> LatencyStats {
    let from = bucket_index(ns / 4);
    let counts = (0..from + 200).map(|i| if i >= from { n / (2 + (i - from) as u64) } else { 0 });
    let mean_ns = ns as f64;
    let histogram = Some(Histogram::from_counts(counts));
    LatencyStats { count: n, min_ns: ns / 10, max_ns: ns * 40, mean_ns, stddev_ns: mean_ns / 2.0, histogram }
}

/// A round of `arm` that came to `value` (p99 of fdatasync, ms).
pub fn round(number: u32, arm: Arm, value: f64) -> Round {
    let part = Measurement {
        label: "write + fdatasync".into(),
        engine: "threads".into(),
        block: 2300,
        depth: 1,
        jobs: 1,
        elapsed_ns: 10_000_000_000,
        sync: SyncStats { lat: latency(4000, (value * 3e5) as u64), ..SyncStats::default() },
        ..Measurement::default()
    };
    Round {
        number,
        arm,
        value: Some(value),
        drained_ms: 300,
        baseline: Baseline::default(),
        dirtied_bytes: Some(55 * MIB),
        written_bytes: Some(54 * MIB),
        dirty_points: points(40, (arm.index() as u64 + 1) * 30 * MIB),
        bench: BenchReport {
            schema: BENCH_SCHEMA,
            id: "1-fsync".into(),
            time: "2026-11-21T15:49:16.123Z".into(),
            host: "host".into(),
            kernel: "6.18.0".into(),
            version: "0.1.0".into(),
            plan: plan(),
            target: Some(ReportTarget {
                directory: DIR.into(),
                filesystem: "ext4".into(),
                source: "/dev/vda".into(),
                device: Some("254:0".into()),
                ..ReportTarget::default()
            }),
            measurements: vec![part],
            warnings: Vec::new(),
            reference: None,
            end: RunEnd::Complete,
        },
    }
}

fn plan() -> BenchPlan {
    BenchPlan { directory: DIR.into(), time_ms: 39_000, ..find_workload("fsync").unwrap().defaults() }
}

/// A report of `n` rounds of each arm; A's figures go about 4 ms, B's `factor` times that.
pub fn report(tree: &Tree, id: &str, n: u32, factor: f64) -> ExperimentReport {
    let spec = ExperimentSpec { plan: plan(), set_assignments: vec!["vm.dirty_ratio=30".into()], rounds: n, ..ExperimentSpec::default() };
    let checked = validate(&tree.root, &spec).unwrap();
    let figure = |i: u32, arm: Arm| (4.0 + f64::from(i % 3) * 0.1) * if arm == Arm::B { factor } else { 1.0 };
    let rounds = (1..).zip(spec.arm_order()).map(|(i, arm)| round(i, arm, figure(i, arm))).collect();
    let metric = primary_metric::primary_metric("fsync").unwrap();
    let mut trial = Trial {
        is_control: false,
        work_description: find_workload("fsync").unwrap().describe(&spec.plan),
        plan: spec.plan.clone(),
        rounds,
        comparison: None,
        verdict: judge(&metric, None),
        metric,
    };
    trial.comparison = ArmComparison::compare(&trial.values(Arm::A), &trial.values(Arm::B));
    trial.verdict = judge(&trial.metric, trial.comparison.as_ref());
    let mut report = ExperimentReport {
        schema: SCHEMA,
        id: id.into(),
        time: "2026-11-21T15:49:16.123Z".into(),
        host: "host".into(),
        kernel: "6.18.0".into(),
        version: "0.1.0".into(),
        settings: checked.settings,
        only_page_cache: checked.only_page_cache,
        memory: checked.memory,
        thresholds: [
            DirtyThresholds { background: Some(32 * MIB), limit: Some(512 * MIB) },
            DirtyThresholds { background: Some(600 * MIB), limit: Some(1024 * MIB) },
        ],
        trials: vec![trial],
        warnings: Vec::new(),
        end: RunEnd::Complete,
        aftermath: "The old values are back.".into(),
        spec,
    };
    report.warnings = warnings::warnings_for(&report);
    report
}

/// Those kept, newest first.
pub fn kept() -> Vec<StoredExperiment> {
    let one = |(i, (id, outcome, complete)): (usize, (&str, TrialOutcome, bool))| StoredExperiment {
        number: i + 1,
        id: id.into(),
        profile: id.split('-').nth(1).unwrap().into(),
        time: "2026-11-21T15:49:16.123Z".into(),
        directory: DIR.into(),
        assignments: vec!["vm.dirty_background_ratio=50".into(), "vm.dirty_ratio=80".into()],
        outcome: Some(outcome),
        verdict: "B is better: tx/s of B is 7.26 times that of A.".into(),
        is_complete: complete,
        read_error: None,
    };
    let all = [
        ("1795276156-txlog", TrialOutcome::Better, true),
        ("1795270000-fsync", TrialOutcome::NoDifference, true),
        ("1795100000-fsync", TrialOutcome::TooFew, false),
    ];
    all.into_iter().enumerate().map(one).collect()
}
