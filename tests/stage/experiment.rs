//! Experiments over the tree of the Tune view: the arms are really looked at, rounds and reports are made up.

use super::press;
use super::tune::{Tree, view};
use iotop_plus::bench::look::{Look, Seen};
use iotop_plus::bench::measure::histogram::{Histogram, bucket_of};
use iotop_plus::bench::measure::latency::{Latency, Sync};
use iotop_plus::bench::message::Progress as BenchProgress;
use iotop_plus::bench::plan::Plan;
use iotop_plus::bench::report::{Part, Report as BenchReport, SCHEMA as BENCH_SCHEMA, Target};
use iotop_plus::bench::workloads::{find, headline};
use iotop_plus::experiment::arms::check;
use iotop_plus::experiment::kept::Kept;
use iotop_plus::experiment::message::{Message, Phase, Progress};
use iotop_plus::experiment::report::verdict::{Outcome, judge};
use iotop_plus::experiment::report::{Calm, End, Point, Report, Round, SCHEMA, Thresholds, Trial, warnings};
use iotop_plus::experiment::spec::{Arm, Spec};
use iotop_plus::experiment::stats::Comparison;
use iotop_plus::tui::effect::Effect;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::experiment::{ArmSettings, ExperimentEvent, ArmCheck};
use iotop_plus::tui::child_runner::ChildEvent;
use iotop_plus::tui::state::App;
use iotop_plus::tui::update::update;
use iotop_plus::worker::job::{Job, Reply};

pub const DIR: &str = "/srv/lab";
const MIB: u64 = 1 << 20;

pub fn look() -> Look {
    let place = Seen {
        filesystem: "ext4".into(),
        source: "/dev/vda".into(),
        mount: "/srv".into(),
        size: 64 << 30,
        free: 40 << 30,
        ..Seen::default()
    };
    Look { directory: DIR.into(), refused: None, place: Some(place) }
}

/// The knobs, with all there is to know about them and about the directory.
pub fn knobs(size: (u16, u16)) -> (App, Tree) {
    let (mut app, tree) = view(size);
    app.ui.bench.set_working_directory(DIR.into());
    (app, tree)
}

/// Answers what the experiments ask as soon as they are opened.
pub fn answer(app: &mut App, tree: &Tree) {
    update(app, Event::JobReply(Job::Look { directory: DIR.into() }, Reply::Look(Box::new(look()))));
    update(app, Event::JobReply(Job::Experiments, Reply::Experiments(kept())));
    judge_arms(app, tree);
}

/// The answer of the thread that looks at the knobs.
pub fn judge_arms(app: &mut App, tree: &Tree) {
    let spec = app.planned_experiment();
    let found = check(&tree.root, &spec).map_err(|why| why.to_string());
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
pub fn tell(app: &mut App, what: ChildEvent<Message>) -> Vec<Effect> {
    let run = app.ui.experiment.run_count;
    update(app, Event::Experiment(Box::new(ExperimentEvent::Child(run, what))))
}

pub fn say(app: &mut App, message: Message) -> Vec<Effect> {
    tell(app, ChildEvent::Message(message))
}

/// `n` moments of a round, dirty pages rising to `most`.
pub fn points(n: u64, most: u64) -> Vec<Point> {
    let point = |i: u64| Point { at_ms: i * 250, dirty: most * i / n, writeback: most / 8 * (i % 3) };
    (0..n).map(point).collect()
}

/// A moment of round `round`.
pub fn progress(round: u32, arm: Arm, phase: Phase, at: u64) -> Message {
    let work = phase == Phase::Work;
    let bench = BenchProgress {
        phase: "write + fdatasync".into(),
        part: Some(0),
        done: Some(at as f64 / 40.0),
        counts: [0, 100 * at, 100 * at],
        ..BenchProgress::default()
    };
    let thresholds = match arm {
        Arm::A => Thresholds { background: Some(32 * MIB), limit: Some(512 * MIB) },
        Arm::B => Thresholds { background: Some(600 * MIB), limit: Some(1024 * MIB) },
    };
    Message::Progress(Progress {
        control: false,
        round,
        of: 8,
        arm,
        phase,
        bench: work.then_some(bench),
        point: work.then(|| points(40, (arm.index() as u64 + 1) * 30 * MIB)[at as usize]),
        thresholds: if work { thresholds } else { Thresholds::default() },
    })
}

fn latency(n: u64, ns: u64) -> Latency {
    let from = bucket_of(ns / 4);
    let counts = (0..from + 200).map(|i| if i >= from { n / (2 + (i - from) as u64) } else { 0 });
    let mean_ns = ns as f64;
    let histogram = Some(Histogram::of(counts));
    Latency { n, min_ns: ns / 10, max_ns: ns * 40, mean_ns, stddev_ns: mean_ns / 2.0, histogram }
}

/// A round of `arm` that came to `value` (p99 of fdatasync, ms).
pub fn round(number: u32, arm: Arm, value: f64) -> Round {
    let part = Part {
        label: "write + fdatasync".into(),
        engine: "threads".into(),
        block: 2300,
        depth: 1,
        jobs: 1,
        elapsed_ns: 10_000_000_000,
        sync: Sync { lat: latency(4000, (value * 3e5) as u64), ..Sync::default() },
        ..Part::default()
    };
    Round {
        number,
        arm,
        value: Some(value),
        drained_ms: 300,
        calm: Calm::default(),
        dirtied: Some(55 * MIB),
        written: Some(54 * MIB),
        points: points(40, (arm.index() as u64 + 1) * 30 * MIB),
        bench: BenchReport {
            schema: BENCH_SCHEMA,
            id: "1-fsync".into(),
            time: "2026-11-21T15:49:16.123Z".into(),
            host: "host".into(),
            kernel: "6.18.0".into(),
            version: "0.1.0".into(),
            plan: plan(),
            target: Some(Target {
                directory: DIR.into(),
                filesystem: "ext4".into(),
                source: "/dev/vda".into(),
                device: Some("254:0".into()),
                ..Target::default()
            }),
            parts: vec![part],
            warnings: Vec::new(),
            ruler: None,
            end: End::Complete,
        },
    }
}

fn plan() -> Plan {
    Plan { directory: DIR.into(), time_ms: 39_000, ..find("fsync").unwrap().defaults() }
}

/// A report of `n` rounds of each arm; A's figures go about 4 ms, B's `factor` times that.
pub fn report(tree: &Tree, id: &str, n: u32, factor: f64) -> Report {
    let spec = Spec { plan: plan(), set: vec!["vm.dirty_ratio=30".into()], rounds: n, ..Spec::default() };
    let checked = check(&tree.root, &spec).unwrap();
    let figure = |i: u32, arm: Arm| (4.0 + f64::from(i % 3) * 0.1) * if arm == Arm::B { factor } else { 1.0 };
    let rounds = (1..).zip(spec.order()).map(|(i, arm)| round(i, arm, figure(i, arm))).collect();
    let metric = headline::metric("fsync").unwrap();
    let mut trial = Trial {
        control: false,
        work: find("fsync").unwrap().describe(&spec.plan),
        plan: spec.plan.clone(),
        rounds,
        comparison: None,
        verdict: judge(&metric, None),
        metric,
    };
    trial.comparison = Comparison::of(&trial.values(Arm::A), &trial.values(Arm::B));
    trial.verdict = judge(&trial.metric, trial.comparison.as_ref());
    let mut report = Report {
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
            Thresholds { background: Some(32 * MIB), limit: Some(512 * MIB) },
            Thresholds { background: Some(600 * MIB), limit: Some(1024 * MIB) },
        ],
        trials: vec![trial],
        warnings: Vec::new(),
        end: End::Complete,
        after: "The old values are back.".into(),
        spec,
    };
    report.warnings = warnings::of(&report);
    report
}

/// Those kept, newest first.
pub fn kept() -> Vec<Kept> {
    let one = |(i, (id, outcome, complete)): (usize, (&str, Outcome, bool))| Kept {
        number: i + 1,
        id: id.into(),
        profile: id.split('-').nth(1).unwrap().into(),
        time: "2026-11-21T15:49:16.123Z".into(),
        place: DIR.into(),
        set: vec!["vm.dirty_background_ratio=50".into(), "vm.dirty_ratio=80".into()],
        outcome: Some(outcome),
        verdict: "B is better: tx/s of B is 7.26 times that of A.".into(),
        complete,
        damaged: None,
    };
    let all = [
        ("1795276156-txlog", Outcome::Better, true),
        ("1795270000-fsync", Outcome::NoDifference, true),
        ("1795100000-fsync", Outcome::TooFew, false),
    ];
    all.into_iter().enumerate().map(one).collect()
}
