//! Whole experiments on a machine that is not there: order, restores, ends of every kind.

use super::lab::{Fail, Lab, Seen, Worked};
use super::message::{Message, Phase};
use super::report::verdict::Outcome;
use super::report::{Calm, Report, SCHEMA, compare, markdown, text};
use super::run::{Conducted, conduct};
use super::spec::{Arm, Spec, Then};
use crate::bench::drive::drive;
use crate::bench::engine::null::Null;
use crate::bench::measure::recorder::Recorder;
use crate::bench::message::Progress;
use crate::bench::plan::Plan;
use crate::bench::report::{End, Part, Report as BenchReport, Target};
use crate::bench::spec::{IoSpec, Limits};
use crate::bench::store::tests::report as bench_report;
use crate::bench::watch::gather;
use crate::tune::plan::Refusal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

/// A disk that takes `b_ns` per operation under B's values and 1 ms otherwise.
struct Fake {
    log: Vec<String>,
    words: Vec<String>,
    b_ns: u64,
    /// In round `n` (from 1) the workload ends so.
    ends: Option<(usize, Result<End, Fail>)>,
    /// In round `n` this step goes wrong so.
    breaks: Option<(usize, &'static str, Fail)>,
    rounds: usize,
}

impl Fake {
    fn new(b_ns: u64) -> Self {
        Self { log: Vec::new(), words: Vec::new(), b_ns, ends: None, breaks: None, rounds: 0 }
    }

    fn step(&mut self, what: &'static str) -> Result<(), Fail> {
        self.log.push(what.into());
        match &self.breaks {
            Some((n, step, fail)) if *n == self.rounds && *step == what => Err(fail.clone()),
            _ => Ok(()),
        }
    }
}

/// A real run of the measuring loop on the null engine: `n` operations of `ns` each.
fn measured(plan: &Plan, ns: u64, n: u64) -> BenchReport {
    let recorder = Arc::new(Recorder::new());
    let spec = IoSpec { bytes: n * 4096, fsync_every: 10, ..IoSpec::layout(n * 4096, 4096, 1, 1) };
    let stop = AtomicBool::new(false);
    drive(&mut Null::new(4096, ns), &spec, Limits::default(), &recorder, &stop, &mut || {});
    let part = gather(Part { label: "randwrite".into(), ..Part::default() }, &[recorder]);
    BenchReport {
        plan: plan.clone(),
        parts: vec![part],
        target: Some(Target {
            directory: "/data".into(),
            filesystem: "ext4".into(),
            source: "/dev/sda".into(),
            device: Some("8:0".into()),
            ..Target::default()
        }),
        ..bench_report("1-x")
    }
}

impl Lab for Fake {
    fn drain(&mut self, _: &Plan) -> Result<u64, Fail> {
        self.rounds += 1;
        self.step("drain").map(|()| 1500)
    }

    fn calm(&mut self) -> Result<Calm, Fail> {
        self.step("calm").map(|()| Calm {
            cpu_pct: Some(40.0),
            disks: vec![("8:0".into(), 5e6)],
            undrained: false,
        })
    }

    fn apply(&mut self, words: &[String]) -> Result<(), Fail> {
        self.step("apply")?;
        assert!(self.words.is_empty(), "the values before were not put back");
        self.words = words.to_vec();
        Ok(())
    }

    fn thresholds(&mut self) -> (Option<u64>, Option<u64>) {
        if self.words.is_empty() {
            (Some(16 * MIB), Some(256 * MIB))
        } else {
            (Some(8 << 30), Some(16 << 30))
        }
    }

    fn work(&mut self, plan: &Plan, seen: &mut dyn FnMut(Seen)) -> Result<Worked, Fail> {
        self.log.push(format!("work {}", self.words.join(" ")));
        seen(Seen::Progress(&Progress::default(), None));
        let ns = if self.words.is_empty() || plan.direct { 1_000_000 } else { self.b_ns };
        // Rounds differ a little, as real ones do.
        let mut report = measured(plan, ns + 1000 * self.rounds as u64, 200);
        if let Some((n, end)) = &self.ends
            && *n == self.rounds
        {
            report.end = end.clone()?;
        }
        let points = (0..40).map(|n| super::report::Point { at_ms: n * 250, dirty: n * MIB, writeback: 0 });
        Ok(Worked { report, points: points.collect(), dirtied: Some(5 * MIB), written: None })
    }

    fn restore(&mut self) -> Result<(), Fail> {
        self.words.clear();
        self.step("restore")
    }

    fn leave(&mut self, words: &[String], lease: Option<u64>) -> Result<u64, Fail> {
        assert!(self.words.is_empty());
        self.log.push(format!("leave {} {lease:?}", words.join(" ")));
        Ok(7)
    }
}

fn spec() -> Spec {
    let plan = Plan {
        profile: "randwrite".into(),
        directory: "/data".into(),
        read_pct: 0,
        direct: false,
        ..Plan::default()
    };
    Spec { plan, set: vec!["vm.dirty_ratio=80".into()], ..Spec::default() }
}

fn run(spec: &Spec, lab: &mut Fake) -> (Result<Conducted, Refusal>, Vec<Message>) {
    let mut said = Vec::new();
    let done = conduct(spec, lab, &mut |m| said.push(m));
    assert!(lab.words.is_empty(), "the old values are back");
    (done, said)
}

fn report(spec: Spec, done: Conducted) -> Report {
    let mut report = Report {
        schema: SCHEMA,
        id: "100-randwrite".into(),
        time: "2026-01-01T00:00:00Z".into(),
        host: "h\u{1b}[2J".into(),
        kernel: "6.18".into(),
        version: "0".into(),
        spec,
        settings: vec![super::arms::Setting {
            knob: "vm.dirty_ratio".into(),
            values: ["20".into(), "80".into()],
            shown: ["20 % (4 GiB)".into(), "80 % (16 GiB)".into()],
        }],
        only_page_cache: true,
        memory: super::arms::Memory { expire_centisecs: Some(3000), ..Default::default() },
        thresholds: done.thresholds,
        trials: done.trials,
        warnings: Vec::new(),
        end: done.end,
        after: done.after,
    };
    report.warnings = super::report::warnings::of(&report);
    report
}

#[test]
fn arms_take_turns_and_everything_is_put_back_in_between() {
    let mut lab = Fake::new(100_000);
    let (done, said) = run(&spec(), &mut lab);
    let done = done.unwrap();
    let b = "work vm.dirty_ratio=80";
    let round = |work: &str| ["drain", "calm", "apply", work, "restore"].map(str::to_owned);
    let want: Vec<String> =
        ["work ", b, b, "work ", "work ", b, b, "work "].into_iter().flat_map(round).collect();
    assert_eq!(lab.log, want);
    assert_eq!(done.end, End::Complete);
    let trial = &done.trials[0];
    assert_eq!(trial.verdict.outcome, Outcome::Better, "{}", trial.verdict.text);
    assert_eq!((trial.values(Arm::A).len(), trial.values(Arm::B).len()), (4, 4));
    assert!(trial.comparison.as_ref().is_some_and(|c| (9.0..10.5).contains(&c.ratio)));
    assert_eq!(done.thresholds[1].background, Some(8 << 30));
    assert!(done.after.contains("tune set vm.dirty_ratio=80"), "{}", done.after);
    let rounds = said.iter().filter(|m| matches!(m, Message::Round(_))).count();
    let phases: Vec<Phase> = said
        .iter()
        .filter_map(|m| match m {
            Message::Progress(p) if p.round == 3 => Some(p.phase),
            _ => None,
        })
        .collect();
    assert_eq!(
        (rounds, phases),
        (8, vec![Phase::Drain, Phase::Calm, Phase::Apply, Phase::Work, Phase::Restore])
    );
}

#[test]
fn no_difference_is_called_none_and_a_loss_a_loss() {
    for (b_ns, outcome) in [(1_000_000, Outcome::NoDifference), (9_000_000, Outcome::Worse)] {
        let spec = Spec { then: Then::Keep, ..spec() };
        let mut lab = Fake::new(b_ns);
        let done = run(&spec, &mut lab).0.unwrap();
        assert_eq!(done.trials[0].verdict.outcome, outcome, "{}", done.trials[0].verdict.text);
        assert!(done.after.contains("not set again"), "{}", done.after);
        assert!(!lab.log.iter().any(|l| l.starts_with("leave")));
    }
}

#[test]
fn what_is_better_is_set_again_if_asked() {
    for (then, want) in
        [(Then::Keep, "leave vm.dirty_ratio=80 None"), (Then::Lease(60), "leave vm.dirty_ratio=80 Some(60)")]
    {
        let mut lab = Fake::new(100_000);
        let done = run(&Spec { then, ..spec() }, &mut lab).0.unwrap();
        assert_eq!(lab.log.last().unwrap(), want);
        assert!(done.after.contains("tune undo 7"), "{}", done.after);
    }
}

#[test]
fn the_control_follows_and_shows_nothing() {
    let done = run(&Spec { control: true, ..spec() }, &mut Fake::new(100_000)).0.unwrap();
    assert_eq!(done.trials.len(), 2);
    let control = &done.trials[1];
    assert!(control.control && control.plan.direct);
    assert_eq!(control.verdict.outcome, Outcome::NoDifference);
    let written = text::report(&report(Spec { control: true, ..spec() }, done));
    assert!(written.contains("It shows no difference, as it"), "{written}");
}

#[test]
fn a_round_that_ends_early_ends_it_with_what_there_is() {
    for (end, want, rounds) in [
        (Ok(End::Failed("no space".into())), End::Failed("round 3: no space".into()), 3),
        (Ok(End::Stalled("hung".into())), End::Failed("round 3: hung".into()), 3),
        (Ok(End::Cancelled), End::Cancelled, 3),
        (Err(Fail::Failed("gone".into())), End::Failed("gone".into()), 2),
        (Err(Fail::Cancelled), End::Cancelled, 2),
    ] {
        let mut lab = Fake::new(100_000);
        lab.ends = Some((3, end));
        let spec = Spec { then: Then::Keep, control: true, ..spec() };
        let done = run(&spec, &mut lab).0.unwrap();
        assert_eq!(done.end, want);
        assert_eq!((done.trials.len(), done.trials[0].rounds.len()), (1, rounds));
        assert_eq!(lab.log.last().unwrap(), "restore");
        assert_eq!(done.trials[0].values(Arm::B).len(), 1, "the round that broke off is not compared");
        assert!(done.after.contains("old values are back"));
        let report = report(spec, done);
        assert!(report.warnings.iter().any(|w| w.contains("only 2 of 8 rounds")), "{:?}", report.warnings);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}

#[test]
fn steps_that_fail_are_said_and_values_come_back_first() {
    let broken = |n, step, fail: Fail| {
        let mut lab = Fake::new(100_000);
        lab.breaks = Some((n, step, fail));
        let done = run(&spec(), &mut lab).0;
        (done, lab.log)
    };
    let failed = |why: &str| Fail::Failed(why.into());
    let (done, log) = broken(2, "drain", failed("hung"));
    assert_eq!((done.unwrap().end, log.last().unwrap().as_str()), (End::Failed("hung".into()), "drain"));
    let (done, log) = broken(2, "apply", failed("clamped"));
    assert_eq!((done.unwrap().end, log.last().unwrap().as_str()), (End::Failed("clamped".into()), "restore"));
    let (done, _) = broken(2, "restore", failed("somebody set it"));
    let done = done.unwrap();
    assert_eq!((done.end, done.trials[0].rounds.len()), (End::Failed("somebody set it".into()), 2));
    let refusal = Refusal::Unsafe("no room".into());
    let (done, _) = broken(1, "apply", Fail::Refused(refusal.clone()));
    assert_eq!(done.err(), Some(refusal.clone()));
    let (done, _) = broken(2, "apply", Fail::Refused(refusal));
    assert_eq!(done.unwrap().end, End::Failed("no room".into()), "after a round it is no refusal any more");
}

#[test]
fn values_that_are_not_back_are_said_along_with_the_first_trouble() {
    let mut lab = Fake::new(100_000);
    lab.ends = Some((2, Err(Fail::Failed("disk gone".into()))));
    lab.breaks = Some((2, "restore", Fail::Failed("CONFLICT".into())));
    let done = run(&spec(), &mut lab).0.unwrap();
    assert_eq!(done.end, End::Failed("disk gone; CONFLICT".into()));
    assert!(done.after.contains("Not all old values are back"), "{}", done.after);
}

#[test]
fn the_written_forms_have_every_round_and_clean_names() {
    let done = run(&spec(), &mut Fake::new(100_000)).0.unwrap();
    let report = report(spec(), done);
    insta::with_settings!({ snapshot_path => "../../tests/snapshots" }, {
        insta::assert_snapshot!("experiment_text", text::report(&report));
        insta::assert_snapshot!("experiment_markdown", markdown::report(&report));
    });
    for written in [text::report(&report), markdown::report(&report)] {
        assert!(!written.contains('\u{1b}'));
        for has in
            ["p = 0.029", "B is better", "97", "20 % (4 GiB)", "mean of 4 rounds", "processors were busy"]
        {
            assert!(written.contains(has), "{has}:\n{written}");
        }
    }
    let same = compare::text(&report, &report).unwrap();
    assert!(same.contains("The intervals overlap") && same.contains("B is better"), "{same}");
}

#[test]
fn pages_of_too_short_a_round_are_not_told_and_the_report_says_why() {
    let spec = spec();
    let (done, _) = run(&spec, &mut Fake::new(1_000_000));
    let mut report = report(spec, done.unwrap());
    let said = |r: &Report| r.warnings.iter().any(|w| w.contains("vm.stat_interval"));
    assert!(!said(&report));
    for round in &mut report.trials[0].rounds {
        (round.dirtied, round.written) = (None, None);
        round.points.truncate(3);
    }
    report.warnings = super::report::warnings::of(&report);
    assert!(said(&report), "{:?}", report.warnings);
    for text in [super::report::text::report(&report), super::report::markdown::report(&report)] {
        assert!(text.contains("vm.stat_interval") && !text.contains(" 0 B "), "{text}");
    }
    assert!(serde_json::to_string(&report).unwrap().contains("\"dirtied\":null"));
}
