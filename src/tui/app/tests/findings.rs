//! Keys of the Findings view, and what the diagnosis asks for.

use super::fixture::{app, empty, press, send_processes};
use super::{SIZE, state_summary, visible_effects};
use crate::doctor::finding::NavTarget;
use crate::doctor::incident::Incident;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::Observation;
use crate::model::sample::Sample;
use crate::model::slow_facts::{SpaceReport, SystemFacts};
use crate::model::timestamp::Timestamp;
use crate::tui::app::App;
use crate::tui::app::update;
use crate::tui::view::{Effect, Event, PaneId};

/// The view with this story selected, and the keys on its page at this way on.
fn app_at_target(rule: &str, wanted: impl Fn(&NavTarget) -> bool) -> App {
    let mut app = app(SIZE);
    press(&mut app, "8");
    let targets = |s: &Incident| {
        let remedies = s.findings.iter().flat_map(|f| &f.remedies).filter_map(|r| r.nav_target.clone());
        remedies.chain(s.findings.iter().filter_map(|f| f.see_also.clone())).collect::<Vec<_>>()
    };
    let leads = |s: &Incident| targets(s).iter().any(&wanted);
    let stories = &app.shared.findings.incidents;
    let story = stories.iter().position(|s| s.cause().rule == rule && leads(s)).expect("the story");
    (0..story).for_each(|_| drop(press(&mut app, "<down>")));
    let way = app.views.findings.nav_targets(&app.shared).iter().position(wanted).expect("the way on");
    press(&mut app, "<right>");
    (0..way).for_each(|_| drop(press(&mut app, "<down>")));
    app
}

#[test]
fn every_nav_target_opens_its_page() {
    let mut kernel = app_at_target("hung-task", |j| matches!(j, NavTarget::KernelLog(Some(_))));
    press(&mut kernel, "<enter>");
    assert!(state_summary(&kernel).starts_with("Kernel/KernelLogDetail entry"), "{}", state_summary(&kernel));

    let mut knob = app_at_target("swapping", |j| *j == NavTarget::Knob("vm.swappiness".into()));
    press(&mut knob, "<enter>");
    assert_eq!(
        (state_summary(&knob), knob.views.tune.knob_to_select.as_deref()),
        ("Tune/TuneKnobs".into(), Some("vm.swappiness"))
    );

    let mut list = app_at_target("swapping", |j| *j == NavTarget::Processes);
    press(&mut list, "<enter>");
    assert_eq!(state_summary(&list), "Processes/Processes");

    let mut task = app_at_target("hung-task", |j| matches!(j, NavTarget::Task(_)));
    let effects = press(&mut task, "<enter>");
    assert!(state_summary(&task).contains(" task "), "{}", state_summary(&task));
    assert!(effects.iter().any(|e| matches!(e, Effect::RunJob(WorkerJob::TaskDetails { .. }))), "{effects:?}");
    press(&mut task, "<esc>");
    assert_eq!(state_summary(&task), "Findings/IncidentPage", "back to the story");
}

#[test]
fn enter_follows_the_first_target_and_the_strip_opens_the_view() {
    let mut app = app(SIZE);
    press(&mut app, "8");
    let first = app.views.findings.nav_targets(&app.shared)[0].clone();
    press(&mut app, "<enter>");
    assert!(
        matches!(first, NavTarget::Task(_)) && state_summary(&app).starts_with("Findings/ProcessDetail"),
        "{}",
        state_summary(&app)
    );
    press(&mut app, "<esc>1");
    let strip = app.arrange().0.panes.iter().position(|p| p.0 == PaneId::FindingsSummary).unwrap();
    (0..strip).for_each(|_| drop(press(&mut app, "w")));
    press(&mut app, "<enter>");
    assert_eq!(state_summary(&app), "Findings/Findings");
    press(&mut app, "<right>");
    assert_eq!(state_summary(&app), "Findings/IncidentPage");
    press(&mut app, "<esc>");
    assert_eq!(state_summary(&app), "Findings/Findings");
}

#[test]
fn a_bench_target_fills_in_the_bench_view() {
    let mut app = app_at_target("device-saturated", |j| matches!(j, NavTarget::Bench("randrw", _)));
    let Some(NavTarget::Bench(_, dir)) =
        app.views.findings.nav_targets(&app.shared).into_iter().nth(app.views.findings.selected_target)
    else {
        panic!()
    };
    press(&mut app, "<enter>");
    assert!(state_summary(&app).starts_with("Bench/"), "{}", state_summary(&app));
    if let Some(dir) = dir {
        assert_eq!(app.shared.target.directory, std::path::PathBuf::from(dir.sanitized()));
    }
    let form = app.views.bench.shown_form().unwrap();
    assert_eq!(crate::bench::workloads::WORKLOADS[form].name, "randrw");
}

#[test]
fn slow_facts_are_requested_once_per_interval() {
    let diagnoses = |effects: &[Effect]| {
        effects
            .iter()
            .filter_map(|e| match e {
                Effect::RunJob(job) if job.is_for_doctor() => Some(vec![job.clone()]),
                Effect::RunJobsInSequence(jobs) => Some(jobs.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let mut app = app(SIZE);
    assert!(app.fact_requests.facts && app.fact_requests.disk_space[0], "asked at the first look with mounts");
    // Long after, with nothing answered: nothing more is started.
    app.fact_requests.requested_at_ns = Some(0);
    send_processes(&mut app, true);
    let job = WorkerJob::DoctorFacts(Vec::new());
    update(
        &mut app,
        Event::JobReply(
            job.clone(),
            WorkerReply::Observed(Observation::Facts(Box::new(SystemFacts {
                thp: Some("never".into()),
                ..SystemFacts::default()
            }))),
        ),
    );
    assert_eq!(app.shared.system.slow_facts.latest.as_ref().unwrap().thp.as_deref(), Some("never"));
    let room = WorkerJob::DiskSpace { mounts: Vec::new(), network: false };
    update(&mut app, Event::JobReply(room, WorkerReply::Observed(Observation::DiskSpace(SpaceReport::default()))));
    assert!(!app.fact_requests.facts && !app.fact_requests.disk_space[0]);
    assert!(app.shared.system.slow_facts.local_space.is_some());
    app.fact_requests.requested_at_ns = Some(0);
    let mut effects = Vec::new();
    app.run_rules_if_due(&mut effects);
    let asked = diagnoses(&visible_effects(effects));
    assert!(
        matches!(&asked[..], [one] if matches!(&one[..], [WorkerJob::DoctorFacts(..), WorkerJob::DiskSpace { network: false, .. }])),
        "settings, then local file systems, in one child: {asked:?}"
    );
    let mut again = Vec::new();
    app.run_rules_if_due(&mut again);
    assert_eq!(diagnoses(&again), [[]; 0]);
    // What has not come back is left out: it would be refused.
    app.fact_requests.disk_space[0] = false;
    app.fact_requests.requested_at_ns = Some(0);
    let mut room = Vec::new();
    app.run_rules_if_due(&mut room);
    let asked = diagnoses(&visible_effects(room));
    assert!(matches!(&asked[..], [one] if matches!(&one[..], [WorkerJob::DiskSpace { .. }])), "{asked:?}");
    // A child that failed says nothing on screen: the rules say what is missing.
    update(&mut app, Event::JobReply(job, WorkerReply::Failed("no".into())));
    assert_eq!(app.screen.message, None);
    assert!(!app.fact_requests.facts);
}

#[test]
fn the_selection_follows_its_incident() {
    let mut app = app(SIZE);
    press(&mut app, "8<down>");
    let rule = app.views.findings.selected_incident(&app.shared).unwrap().cause().rule;
    send_processes(&mut app, true);
    assert_eq!(app.views.findings.selected_incident(&app.shared).unwrap().cause().rule, rule);
    press(&mut app, "<down><down><down><down><down>");
    assert!(app.views.findings.scroll.selected < app.shared.findings.incidents.len());
}

/// Seconds (of ticks of one second) at which the rules were asked.
fn rule_run_ticks(app: &mut App, ticks: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    let begin = app.shared.system.now();
    for n in 1..=ticks {
        let boot_ns = begin.boot_ns.max(1 << 40) + n * 1_000_000_000;
        let sample = Sample { seq: n, time: Timestamp { boot_ns, ..begin }, ..Sample::default() };
        let before = app.shared.findings.evaluated_at_ns;
        update(app, Event::Observed(Observation::Sample(Box::new(sample))));
        app.run_rules_if_due(&mut Vec::new());
        if app.shared.findings.evaluated_at_ns != before {
            assert_eq!(app.shared.findings.evaluated_at_ns, boot_ns, "never an older tick than the newest");
            asked.push(n);
        }
    }
    asked
}

#[test]
fn rules_run_every_second_tick_when_idle_and_every_tick_with_findings() {
    assert_eq!(rule_run_ticks(&mut empty(SIZE), 6), [1, 3, 5]);
    let mut trouble = app(SIZE);
    assert!(!trouble.shared.findings.incidents.is_empty());
    assert_eq!(rule_run_ticks(&mut trouble, 3), [1, 2, 3]);
}

#[test]
fn slow_facts_are_requested_half_as_often_when_idle() {
    let asks = |app: &mut App, secs: u64| {
        app.fact_requests = Default::default();
        app.fact_requests.requested_at_ns = Some(app.shared.system.now().boot_ns - secs * 1_000_000_000);
        let mut effects = Vec::new();
        app.run_rules_if_due(&mut effects);
        effects.iter().any(|e| matches!(e, Effect::RunJobsInSequence(_)))
    };
    let mut trouble = app(SIZE);
    assert_eq!([29, 31].map(|secs| asks(&mut trouble, secs)), [false, true]);
    let mut calm = app(SIZE);
    calm.shared.findings = Default::default();
    // Looked at just now, and nothing was found.
    calm.shared.findings.evaluate_rules(&calm.shared.system, &[]);
    assert_eq!([29, 31].map(|secs| asks(&mut calm, secs)), [false, true], "rules lack the second reading");
    calm.shared.system.slow_facts.previous = Some(SystemFacts::default());
    assert_eq!([31, 59, 61].map(|secs| asks(&mut calm, secs)), [false, false, true]);
}
