//! Experiments: keys, news and answers, and what they cause.

use super::ExperimentForm;
use crate::experiment::message::{ExperimentMessage, RoundPhase};
use crate::experiment::report::{ExperimentReport, RunEnd};
use crate::experiment::spec::{Arm, ExperimentSpec, OnComplete};
use crate::jobs::atomic_write::IfExists;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::subprocess::runner::ChildEvent;
use crate::tui::app::App;
use crate::tui::app::tests::fixture::experiment::{
    DIR, answer, kept, knobs, look, planned, progress, report, round, say, send_checked_arms, started, tell,
};
use crate::tui::app::tests::fixture::press;
use crate::tui::app::tests::fixture::tune::{Tree, change_on_lease, news};
use crate::tui::app::tests::{SIZE, click, draw_screen, find_text, state_summary, visible_effects};
use crate::tui::app::update;
use crate::tui::knob_snapshot::ChangeStatus;
use crate::tui::view::{ArmCheck, Effect, Event, LeaseCommand, Overlay, RunEffect, TuneEffect, TuneEvent};
use crate::tui::views::runs::{OpenedResult, RunEnding, RunForms, RunKind, RunRow};
use ratatui::layout::Rect;
use std::path::PathBuf;

/// Index of a line of the form.
fn line_index(app: &App, name: &str) -> Option<usize> {
    app.views.experiments.form.lines(0, &app.shared).iter().position(|line| line.name == name)
}

/// The run in the header.
fn status(app: &App) -> &str {
    app.shared.running.as_ref().map_or("", |running| &running.status)
}

/// Effects but looks at knobs, arms, the directory and what is kept, which follow much of what is done.
fn main_effects(effects: Vec<Effect>) -> Vec<Effect> {
    let look = |e: &Effect| {
        matches!(
            e,
            Effect::Tune(TuneEffect::Refresh(_))
                | Effect::CheckArms(_)
                | Effect::RunJob(
                    WorkerJob::BootValues(..)
                        | WorkerJob::InspectTarget(..)
                        | WorkerJob::ExperimentReports(StoreJob::List)
                )
        )
    };
    visible_effects(effects).into_iter().filter(|e| !look(e)).collect()
}

fn count_checks(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::CheckArms(_))).count()
}

fn dialog_text(app: &App) -> String {
    match &app.screen.overlay {
        Some(Overlay::Dialog(d)) => format!("{}\n{}", d.title, d.text),
        other => panic!("no question: {other:?}"),
    }
}

fn message_text(app: &App) -> &str {
    app.screen.message.as_ref().map_or("", |m| m.text.as_str())
}

/// The screen with an experiment that has ended and is kept.
fn app_with_report(factor: f64) -> (App, Tree, Box<ExperimentReport>) {
    let (mut app, tree) = started(SIZE);
    let done = Box::new(report(&tree, "1795277000-fsync", 4, factor));
    say(&mut app, ExperimentMessage::Report(done.clone()));
    (app, tree, done)
}

/// Selects a line of the form.
fn select_line(app: &mut App, name: &str) {
    let at = line_index(app, name).unwrap();
    press(app, "<home>");
    press(app, &"j".repeat(at));
}

#[test]
fn arm_b_is_taken_from_pending_changes_preset_or_selected_knob() {
    for (keys, want, b) in [
        ("B", "Tune/ExperimentPage prompt \"vm.dirty_ratio=20\"", "vm.dirty_ratio=20"),
        ("<enter><c-u>30<enter>B", "Tune/ExperimentPage", "vm.dirty_ratio=30"),
        (
            "<enter><c-u>30<enter>\\<c-u>swap<enter><enter><c-u>10<enter>B",
            "Tune/ExperimentPage",
            "vm.dirty_ratio=30 vm.swappiness=10",
        ),
        ("lB", "Tune/ExperimentPage", "vm.dirty_background_ratio=50 vm.dirty_ratio=80 vm.swappiness=10"),
        ("l<end>B", "Tune/TuneKnobs", ""),
        ("E", "Tune/ExperimentList", ""),
    ] {
        let (mut app, _tree) = knobs(SIZE);
        let effects = press(&mut app, keys);
        assert_eq!(state_summary(&app), want, "after {keys:?}");
        assert_eq!(main_effects(effects), [], "{keys:?} does nothing outside");
        let mut set = app.views.experiments.form.spec.set_assignments.clone();
        set.sort();
        assert_eq!(set.join(" "), b, "{keys}");
    }
}

#[test]
fn keys_change_the_experiment_state_and_start_nothing_unconfirmed() {
    for (keys, want) in [
        ("", "Tune/ExperimentPage"),
        ("<esc>", "Tune/ExperimentList"),
        ("<esc><esc>", "Tune/TuneKnobs"),
        ("<esc><esc>E", "Tune/ExperimentList"),
        ("<left><right>", "Tune/ExperimentPage"),
        ("z", "Tune/ExperimentPage zoomed"),
        ("z<esc>", "Tune/ExperimentPage"),
        ("7", "Tune/TuneKnobs"),
        ("7", "Tune/TuneKnobs"),
        ("1", "Overview/Processes"),
        ("17", "Tune/ExperimentList"),
        ("S", "Tune/ExperimentPage dialog \"Start the experiment\""),
        ("Sn", "Tune/ExperimentPage"),
        ("S<esc>", "Tune/ExperimentPage"),
        ("<left><enter>", "Tune/ExperimentPage"),
        ("<left><f2>", "Tune/ExperimentPage"),
        ("<home><enter><c-u>bogus<enter>", "Tune/ExperimentPage prompt \"bogus\" wrong"),
        ("<home><enter><down>", "Tune/ExperimentPage prompt \"append\""),
        ("<home><enter><up><up>", "Tune/ExperimentPage prompt \"steady\""),
        ("<home><down><down><enter><c-u>'<enter>", "Tune/ExperimentPage prompt \"'\" wrong"),
        ("<home><down><down><enter><c-u><enter>S", "Tune/ExperimentPage"),
        (":tune swappiness<enter>", "Tune/TuneKnobs"),
        ("A", "Tune/ExperimentPage"),
        ("K", "Tune/ExperimentPage"),
        ("O", "Tune/ExperimentPage"),
        ("C", "Tune/ExperimentPage"),
        ("U", "Tune/ExperimentPage"),
        ("m", "Tune/ExperimentPage"),
        ("c", "Tune/ExperimentPage"),
    ] {
        let (mut app, _tree) = planned(SIZE);
        let effects = main_effects(press(&mut app, keys));
        assert_eq!(state_summary(&app), want, "after {keys:?}");
        assert_eq!(effects, [], "{keys:?} does nothing outside");
        draw_screen(&app);
    }
}

#[test]
fn editing_the_form_changes_the_plan() {
    let (mut app, _tree) = planned(SIZE);
    let spec = app.views.experiments.form.planned(&app.shared);
    assert_eq!(spec.plan.time_ms, 39_000, "longer than pages stay dirty");
    for (line, typed) in [
        ("rounds", "<enter><c-u>6<enter>"),
        ("control", "<enter>"),
        ("then", "<enter><enter>"),
        ("baseline", "<enter><c-u>0<enter>"),
        ("time", "<enter><c-u>5<enter>"),
        ("A sets", "<enter><c-u>vm.dirty_ratio=25<enter>"),
    ] {
        select_line(&mut app, line);
        press(&mut app, typed);
    }
    let spec = app.views.experiments.form.planned(&app.shared);
    assert_eq!((spec.rounds, spec.control, spec.on_complete), (6, true, OnComplete::Lease(120)));
    assert_eq!((spec.baseline_ms, spec.plan.time_ms), (0, 5000), "a length that was chosen stays");
    assert_eq!(spec.base_assignments, ["vm.dirty_ratio=25"]);
    select_line(&mut app, "rounds");
    press(&mut app, "<del>");
    assert_eq!(app.views.experiments.form.planned(&app.shared).rounds, 4);
    select_line(&mut app, "directory");
    let asked = press(&mut app, "<enter><c-u>../other<enter>");
    assert!(asked.contains(&Effect::RunJob(WorkerJob::InspectTarget("/srv/lab/../other".into()))), "{asked:?}");
}

#[test]
fn arms_are_checked_on_change_and_stale_answers_ignored() {
    let (mut app, tree) = knobs(SIZE);
    assert_eq!(count_checks(&press(&mut app, "<enter><c-u>30<enter>B")), 1);
    press(&mut app, "S");
    assert!(message_text(&app).contains("has not answered"), "{}", message_text(&app));
    answer(&mut app, &tree);
    assert!(app.views.experiments.form.check_result(&app.views.experiments.form.planned(&app.shared)).unwrap().is_ok());
    assert_eq!(count_checks(&press(&mut app, "<enter><c-u>vm.dirty_ratio=40<enter>")), 1);
    assert!(app.views.experiments.form.check_result(&app.views.experiments.form.planned(&app.shared)).is_none());
    press(&mut app, "S");
    assert!(message_text(&app).contains("still being read"), "{}", message_text(&app));
    let old = ExperimentSpec { set_assignments: vec!["vm.dirty_ratio=30".into()], ..ExperimentSpec::default() };
    let late = ArmCheck { spec: old, result: Err("late".into()) };
    update(&mut app, Event::ArmsChecked(Box::new(late)));
    assert!(app.views.experiments.form.check_result(&app.views.experiments.form.planned(&app.shared)).is_none());
    press(&mut app, "<enter><c-u>vm.dirty_ratio=20<enter>");
    send_checked_arms(&mut app, &tree);
    press(&mut app, "S");
    assert!(message_text(&app).contains("A and B are the same"), "{}", message_text(&app));
}

#[test]
fn a_start_requested_during_the_check_is_asked_after_it() {
    for (meanwhile, want) in [
        ("", "Tune/ExperimentPage dialog"),
        ("2", "Devices/Devices"),
        ("<esc>", "Tune/ExperimentList dialog"),
        ("?", "Tune/ExperimentPage help"),
        ("<enter><c-u>vm.dirty_ratio=45<enter>", "Tune/ExperimentPage"),
    ] {
        let (mut app, tree) = planned(SIZE);
        select_line(&mut app, "B sets");
        press(&mut app, "<enter><c-u>vm.dirty_ratio=40<enter>S");
        assert!(message_text(&app).contains("confirmation follows"), "{}", message_text(&app));
        press(&mut app, meanwhile);
        send_checked_arms(&mut app, &tree);
        assert!(state_summary(&app).starts_with(want), "{meanwhile}: {}", state_summary(&app));
        assert_eq!(want.ends_with("dialog"), matches!(app.screen.overlay, Some(Overlay::Dialog(_))), "{meanwhile}");
        // Once only.
        press(&mut app, "<esc>");
        send_checked_arms(&mut app, &tree);
        assert!(!matches!(app.screen.overlay, Some(Overlay::Dialog(_))), "{meanwhile}");
    }
}

#[test]
fn confirming_starts_exactly_the_plan_shown() {
    let (mut app, _tree) = planned(SIZE);
    let spec = app.views.experiments.form.planned(&app.shared);
    press(&mut app, "S");
    let said = dialog_text(&app);
    for part in ["vm.dirty_ratio = 20 %", "vm.dirty_ratio = 30 %", "each round: Writes 22.0 MiB", "order A B B A", DIR]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let effects = main_effects(press(&mut app, "y"));
    let start = RunEffect::Start { run: 1, plan: Box::new(spec) };
    assert_eq!(effects, [Effect::Experiment(start)]);
    assert_eq!(app.views.experiments.selected, RunRow::CurrentRun);
    // Neither another one, nor a benchmark, nor a change meanwhile.
    press(&mut app, "<left><down>S");
    assert!(message_text(&app).contains("an experiment is still running"), "{}", message_text(&app));
    press(&mut app, "7lA");
    press(&mut app, "<esc>A");
    press(&mut app, "l<enter>");
    assert!(message_text(&app).contains("an experiment is running"), "{}", message_text(&app));
    press(&mut app, "6S");
    assert!(
        app.screen.overlay.is_none() && message_text(&app).contains("an experiment is still running"),
        "{}",
        message_text(&app)
    );
}

#[test]
fn an_experiment_on_a_network_mount_needs_a_second_confirmation() {
    let (mut app, _tree) = planned(SIZE);
    let mut far = look();
    far.info.as_mut().unwrap().report.is_network = true;
    update(
        &mut app,
        Event::JobReply(WorkerJob::InspectTarget(DIR.into()), WorkerReply::TargetInspection(Box::new(far))),
    );
    assert_eq!(main_effects(press(&mut app, "Sy")), []);
    assert!(dialog_text(&app).starts_with("Over the network?"));
    let effects = main_effects(press(&mut app, "y"));
    let [Effect::Experiment(RunEffect::Start { plan: spec, .. })] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(spec.plan.network, Some(PathBuf::from(DIR)));
}

#[test]
fn without_root_the_sudo_command_is_offered_to_copy() {
    let (mut app, _tree) = planned(SIZE);
    crate::tui::app::tests::fixture::tune::drop_privileges(&mut app);
    press(&mut app, "S");
    let line = "sudo iotop-plus experiment --workload fsync --dir /srv/lab --set vm.dirty_ratio=30 --time 39";
    assert!(dialog_text(&app).contains(line), "{}", dialog_text(&app));
    assert_eq!(main_effects(press(&mut app, "y")), [Effect::CopyToClipboard(line.into())]);
    assert!(app.views.experiments.run.is_none());
}

#[test]
fn an_experiment_can_be_followed_cancelled_and_killed() {
    let (mut app, _tree) = started(SIZE);
    assert!(status(&app).contains("starting"));
    say(&mut app, progress(1, Arm::A, RoundPhase::Work, 10));
    press(&mut app, "1");
    press(&mut app, "7");
    assert_eq!(state_summary(&app), "Tune/ExperimentPage", "back to what is under way");
    // News of another run are nobody's.
    let other = ChildEvent::Message(ExperimentMessage::Failed("x".into()));
    update(&mut app, Event::Experiment(7, Box::new(other)));
    assert!(app.views.experiments.active_run().is_some());
    assert_eq!(main_effects(press(&mut app, "C")), [Effect::Experiment(RunEffect::Cancel)]);
    assert!(status(&app).contains("stopping"));
    assert_eq!(main_effects(press(&mut app, "C")), [Effect::Experiment(RunEffect::Kill)]);
    assert!(matches!(app.views.experiments.run.as_ref().unwrap().ending, Some(RunEnding::Failed(_))));
    press(&mut app, "C");
    assert!(message_text(&app).contains("no experiment is running"));
    // Leaving ends it without a question: the values come back by themselves.
    let (mut app, _tree) = started(SIZE);
    assert_eq!(main_effects(press(&mut app, "q")), [Effect::Quit]);
}

#[test]
fn complete_and_partial_reports_are_stored_and_announced() {
    for end in [RunEnd::Complete, RunEnd::Cancelled, RunEnd::Failed("no space".into())] {
        let (mut app, tree) = started(SIZE);
        say(&mut app, progress(1, Arm::A, RoundPhase::Work, 10));
        say(&mut app, ExperimentMessage::Round(Box::new(round(1, Arm::A, 4.0))));
        let done = Box::new(ExperimentReport { end: end.clone(), ..report(&tree, "1795277000-fsync", 1, 1.0) });
        press(&mut app, "1");
        let effects = main_effects(say(&mut app, ExperimentMessage::Report(done.clone())));
        assert_eq!(effects, [Effect::RunJob(WorkerJob::ExperimentReports(StoreJob::Save(done.clone())))], "{end:?}");
        assert!(message_text(&app).starts_with("experiment: "), "{}", message_text(&app));
        let job = WorkerJob::ExperimentReports(StoreJob::Save(done));
        let effects = update(&mut app, Event::JobReply(job, WorkerReply::Saved("1795277000-fsync-1".into())));
        assert!(effects.contains(&Effect::RunJob(WorkerJob::ExperimentReports(StoreJob::List))));
        assert_eq!(app.views.experiments.run.as_ref().unwrap().stored, Some(Ok("1795277000-fsync-1".into())));
        press(&mut app, "7E");
        draw_screen(&app);
    }
    let (mut app, _tree) = started(SIZE);
    tell(&mut app, ChildEvent::Message(ExperimentMessage::Failed("the tuner is gone".into())));
    assert!(app.views.experiments.active_run().is_none());
    assert_eq!(main_effects(press(&mut app, "17S")), []);
}

#[test]
fn arm_b_can_be_leased_made_permanent_kept_and_undone() {
    let set = || vec!["vm.dirty_ratio=30".to_owned()];
    let (mut app, _tree, _) = app_with_report(0.5);
    press(&mut app, "A");
    assert!(dialog_text(&app).contains("vm.dirty_ratio: 20 % (4.00 GiB here) -> 30 %"), "{}", dialog_text(&app));
    let lease = TuneEffect::Apply { assignments: set(), lease_secs: Some(120) };
    assert_eq!(main_effects(press(&mut app, "y")), [Effect::Tune(lease)]);

    let (mut app, _tree, _) = app_with_report(0.5);
    press(&mut app, "K");
    assert!(dialog_text(&app).starts_with("Set for good"), "{}", dialog_text(&app));
    assert_eq!(
        main_effects(press(&mut app, "y")),
        [Effect::Tune(TuneEffect::Apply { assignments: set(), lease_secs: None })]
    );
    news(&mut app, TuneEvent::AppliedPermanently(9));
    assert!(app.views.tune.busy_with.is_none() && message_text(&app).contains("change 9 applied and stays"));

    // On a lease already: K keeps it, U reverts it.
    let (mut app, tree, _) = app_with_report(0.5);
    let id = change_on_lease(&mut app, &tree, &["vm.dirty_ratio=30"], 10);
    assert_eq!(main_effects(press(&mut app, "K")), [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Keep))]);
    assert_eq!(
        main_effects(press(&mut app, "M")),
        [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Renew(120)))]
    );
    assert_eq!(main_effects(press(&mut app, "Uy")), [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Undo))]);
    // A change of other knobs is not B.
    let (mut app, tree, _) = app_with_report(0.5);
    change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 10);
    press(&mut app, "K");
    assert!(dialog_text(&app).starts_with("Set for good"), "{}", dialog_text(&app));

    let (mut app, tree, _) = app_with_report(0.5);
    tree.tell(&mut app, &[]);
    crate::tui::app::tests::fixture::tune::drop_privileges(&mut app);
    press(&mut app, "K");
    assert!(dialog_text(&app).contains("sudo iotop-plus tune set vm.dirty_ratio=30 --keep"), "{}", dialog_text(&app));
}

#[test]
fn a_closed_change_is_not_kept() {
    let (mut app, tree, _) = app_with_report(0.5);
    let id = tree.set(&["vm.dirty_ratio=30"]);
    tree.undo(id);
    tree.tell(&mut app, &[(10, ChangeStatus::Closed("old value is back".into()))]);
    press(&mut app, "K");
    assert!(dialog_text(&app).starts_with("Set for good"), "{}", dialog_text(&app));
}

#[test]
fn stored_experiments_are_shown_compared_and_exported() {
    let (mut app, tree) = planned(SIZE);
    let [newest, middle, oldest] = kept().try_into().map(|k: [_; 3]| k.map(|k| k.id)).unwrap();
    let read = |ids: Vec<String>| Effect::RunJob(WorkerJob::ExperimentReports(StoreJob::Load(ids)));
    assert_eq!(main_effects(press(&mut app, "<left><down><enter>")), [read(vec![newest.clone()])]);
    let got = |app: &mut App, ids: Vec<String>| {
        let all = ids.iter().map(|id| report(&tree, id, 4, 0.5)).collect();
        update(
            app,
            Event::JobReply(WorkerJob::ExperimentReports(StoreJob::Load(ids)), WorkerReply::LoadedExperiments(all)),
        );
    };
    // Not what is waited for.
    got(&mut app, vec![oldest.clone()]);
    assert_eq!(app.views.experiments.opened, Some(OpenedResult::Loading(vec![newest.clone()])));
    got(&mut app, vec![newest.clone()]);
    assert_eq!(app.views.experiments.shown_report().unwrap().id, newest);
    for (name, begins) in [
        ("x.md", "## Experiment: fsync"),
        ("x.json", "{\"schema\":1"),
        ("x", "Experiment: fsync on host"),
        ("/tmp/y.txt", "Experiment: fsync on host"),
    ] {
        let effects = main_effects(press(&mut app, &format!("O<c-u>{name}<enter>")));
        let [Effect::RunJob(WorkerJob::WriteFile { path, contents, existing: IfExists::Fail, make_dir: false })] =
            &effects[..]
        else {
            panic!("{effects:?}")
        };
        assert_eq!(*path, PathBuf::from(DIR).join(name));
        assert!(contents.as_bytes().starts_with(begins.as_bytes()), "{name}: {contents:?}");
    }
    press(&mut app, "O<c-u><enter>");
    assert_eq!(state_summary(&app), "Tune/ExperimentPage prompt \"\" wrong");
    press(&mut app, "<esc><esc>");
    assert_eq!(state_summary(&app), "Tune/ExperimentList");
    // Without a mark another one of the same workload is needed.
    assert_eq!(main_effects(press(&mut app, "c")), []);
    assert_eq!(main_effects(press(&mut app, "m<down>c")), [read(vec![newest.clone(), middle.clone()])]);
    got(&mut app, vec![newest, middle]);
    assert!(matches!(app.views.experiments.opened, Some(OpenedResult::Comparison(_))));
    draw_screen(&app);
    let copied = main_effects(press(&mut app, "y"));
    assert!(matches!(&copied[..], [Effect::CopyToClipboard(text)] if text.contains("median of A")), "{copied:?}");
}

#[test]
fn every_page_scrolls_to_its_end_and_copies_sanitized() {
    for size in [(40, 12), (80, 24), SIZE] {
        let (mut app, _tree) = planned(size);
        let top = draw_screen(&app);
        press(&mut app, "<end>");
        let end = draw_screen(&app);
        assert!(size.1 > 30 || top != end, "{size:?}");
        press(&mut app, "<up>");
        assert_ne!(draw_screen(&app), end, "{size:?}: one key up is seen at once");
        press(&mut app, "<home>");
        let effects = press(&mut app, "y");
        let text = effects.iter().find_map(|e| match e {
            Effect::CopyToClipboard(text) => Some(text),
            _ => None,
        });
        assert!(text.unwrap().contains("each round: Writes"), "{text:?}");
    }
    let (mut app, _tree, _) = app_with_report(0.5);
    let effects = press(&mut app, "<enter>y");
    let text = format!("{effects:?}");
    assert!(text.contains("fdatasync p99 (ms)") && text.contains("B is better"), "{text}");
}

#[test]
fn clicks_select_experiment_rows_and_form_lines() {
    let (mut app, _tree) = planned(SIZE);
    click(&mut app, 3, 3);
    assert_eq!(
        (state_summary(&app).as_str(), &app.views.experiments.selected),
        ("Tune/ExperimentList", &RunRow::Stored(kept()[0].id.clone()))
    );
    click(&mut app, 3, 2);
    assert_eq!(app.views.experiments.selected, RunRow::Form(0));
    let (x, y) = find_text(&app, "rounds ");
    click(&mut app, x, y);
    assert_eq!(state_summary(&app), "Tune/ExperimentPage");
    assert_eq!(line_index(&app, "rounds"), Some(app.views.experiments.form_line));
}

#[test]
fn panes_fill_every_size_without_overlap() {
    for (w, h) in [(40, 10), (80, 22), (109, 38), (110, 38), (200, 48), (300, 90)] {
        for focus in 0..2 {
            let body = Rect::new(0, 1, w, h);
            let panes = ExperimentForm::arrange_panes(body, focus);
            assert_eq!(panes.iter().map(|(_, r)| r.area()).sum::<u32>(), body.area());
            assert!(!panes[0].1.intersects(panes[1].1), "{panes:?}");
            assert!(panes.iter().all(|(_, r)| r.height >= 3 && r.intersection(body) == *r));
        }
    }
}
