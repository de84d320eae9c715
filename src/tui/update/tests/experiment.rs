//! Experiments: keys, news and answers, and what they cause.

use super::stage::experiment::{
    DIR, answer, judge_arms, kept, knobs, look, planned, progress, report, round, say, started, tell,
};
use super::stage::press;
use super::stage::tune::{Tree, news, on_lease};
use super::{SIZE, outward, paint, state};
use crate::experiment::message::{Message, Phase};
use crate::experiment::report::{End, Report};
use crate::experiment::spec::{Arm, Then};
use crate::tui::bench::Opened;
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::experiment::run::Ended;
use crate::tui::experiment::{Arms, ExperimentEffect, ExperimentNews, Judged, Row};
use crate::tui::child_runner::ChildEvent;
use crate::tui::state::{App, Overlay};
use crate::tui::tuning::survey::Standing;
use crate::tui::tuning::{TuneEffect, TuneNews};
use crate::tui::update::update;
use crate::worker::file::Existing;
use crate::worker::job::{Job, Reply};
use std::path::PathBuf;

/// Effects but looks at knobs, arms, the directory and what is kept, which follow much of what is done.
fn deeds(effects: Vec<Effect>) -> Vec<Effect> {
    let look = |e: &Effect| {
        matches!(
            e,
            Effect::Tune(TuneEffect::Survey(_))
                | Effect::Experiment(ExperimentEffect::Check(_))
                | Effect::RunJob(Job::AtBoot { .. } | Job::Look { .. } | Job::Experiments)
        )
    };
    outward(effects).into_iter().filter(|e| !look(e)).collect()
}

fn checks(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::Experiment(ExperimentEffect::Check(_)))).count()
}

fn dialog(app: &App) -> String {
    match &app.ui.overlay {
        Some(Overlay::Dialog(d)) => format!("{}\n{}", d.title, d.text),
        other => panic!("no question: {other:?}"),
    }
}

fn message(app: &App) -> &str {
    app.ui.message.as_ref().map_or("", |m| m.text.as_str())
}

/// The screen with an experiment that has ended and is kept.
fn ended(factor: f64) -> (App, Tree, Box<Report>) {
    let (mut app, tree) = started(SIZE);
    let done = Box::new(report(&tree, "1795277000-fsync", 4, factor));
    say(&mut app, Message::Report(done.clone()));
    (app, tree, done)
}

/// Selects a line of the form.
fn to(app: &mut App, name: &str) {
    let at = app.ui.experiment.form.place_of(name).unwrap();
    press(app, "<home>");
    press(app, &"j".repeat(at));
}

#[test]
fn b_is_what_is_proposed_the_preset_or_the_selected_knob() {
    for (keys, want, b) in [
        ("e", "Tune/Experiment prompt \"vm.dirty_ratio=20\"", "vm.dirty_ratio=20"),
        ("<enter><c-u>30<enter>e", "Tune/Experiment", "vm.dirty_ratio=30"),
        (
            "<enter><c-u>30<enter>\\<c-u>swap<enter><enter><c-u>10<enter>e",
            "Tune/Experiment",
            "vm.dirty_ratio=30 vm.swappiness=10",
        ),
        ("pe", "Tune/Experiment", "vm.dirty_background_ratio=50 vm.dirty_ratio=80 vm.swappiness=10"),
        ("p<end>e", "Tune/Tune", ""),
        ("E", "Tune/ExperimentList", ""),
    ] {
        let (mut app, _tree) = knobs(SIZE);
        let effects = press(&mut app, keys);
        assert_eq!(state(&app), want, "after {keys:?}");
        assert_eq!(deeds(effects), [], "{keys:?} does nothing outside");
        let mut set = app.ui.experiment.form.set.clone();
        set.sort();
        assert_eq!(set.join(" "), b, "{keys}");
    }
}

#[test]
fn keys_lead_where_they_should_and_nothing_is_started_without_a_yes() {
    for (keys, want) in [
        ("", "Tune/Experiment"),
        ("<esc>", "Tune/ExperimentList"),
        ("<esc><esc>", "Tune/Tune"),
        ("<esc><esc>E", "Tune/ExperimentList"),
        ("<left><right>", "Tune/Experiment"),
        ("z", "Tune/Experiment zoomed"),
        ("z<esc>", "Tune/Experiment"),
        ("t", "Tune/Tune"),
        ("7", "Tune/Tune"),
        ("1", "Overview/Processes"),
        ("1t", "Tune/ExperimentList"),
        ("r", "Tune/Experiment dialog \"Start the experiment\""),
        ("rn", "Tune/Experiment"),
        ("r<esc>", "Tune/Experiment"),
        ("<left><enter>", "Tune/Experiment"),
        ("<left>e", "Tune/Experiment"),
        ("<home><enter><c-u>bogus<enter>", "Tune/Experiment prompt \"bogus\" wrong"),
        ("<home><enter><down>", "Tune/Experiment prompt \"append\""),
        ("<home><enter><up><up>", "Tune/Experiment prompt \"seqwrite\""),
        ("<home><down><down><enter><c-u>'<enter>", "Tune/Experiment prompt \"'\" wrong"),
        ("<home><down><down><enter><c-u><enter>r", "Tune/Experiment"),
        (":tune swappiness<enter>", "Tune/Tune"),
        ("a", "Tune/Experiment"),
        ("K", "Tune/Experiment"),
        ("o", "Tune/Experiment"),
        ("x", "Tune/Experiment"),
        ("u", "Tune/Experiment"),
        ("m", "Tune/Experiment"),
        ("c", "Tune/Experiment"),
    ] {
        let (mut app, _tree) = planned(SIZE);
        let effects = deeds(press(&mut app, keys));
        assert_eq!(state(&app), want, "after {keys:?}");
        assert_eq!(effects, [], "{keys:?} does nothing outside");
        paint(&app);
    }
}

#[test]
fn the_form_changes_what_would_be_done() {
    let (mut app, _tree) = planned(SIZE);
    let spec = app.planned_experiment();
    assert_eq!(spec.plan.time_ms, 39_000, "longer than pages stay dirty");
    for (line, typed) in [
        ("rounds", "<enter><c-u>6<enter>"),
        ("control", "<enter>"),
        ("then", "<enter><enter>"),
        ("calm", "<enter><c-u>0<enter>"),
        ("time", "<enter><c-u>5<enter>"),
        ("A sets", "<enter><c-u>vm.dirty_ratio=25<enter>"),
    ] {
        to(&mut app, line);
        press(&mut app, typed);
    }
    let spec = app.planned_experiment();
    assert_eq!((spec.rounds, spec.control, spec.then), (6, true, Then::Lease(120)));
    assert_eq!((spec.calm_ms, spec.plan.time_ms), (0, 5000), "a length that was chosen stays");
    assert_eq!(spec.base, ["vm.dirty_ratio=25"]);
    to(&mut app, "rounds");
    press(&mut app, "<del>");
    assert_eq!(app.planned_experiment().rounds, 4);
    to(&mut app, "directory");
    let asked = press(&mut app, "<enter><c-u>../other<enter>");
    assert!(asked.contains(&Effect::RunJob(Job::Look { directory: "/srv/lab/../other".into() })), "{asked:?}");
}

#[test]
fn arms_are_looked_at_when_they_change_and_only_the_newest_answer_counts() {
    let (mut app, tree) = knobs(SIZE);
    assert_eq!(checks(&press(&mut app, "<enter><c-u>30<enter>e")), 1);
    press(&mut app, "r");
    assert!(message(&app).contains("has not answered yet"), "{}", message(&app));
    answer(&mut app, &tree);
    assert!(app.ui.experiment.found(&app.planned_experiment()).unwrap().is_ok());
    assert_eq!(checks(&press(&mut app, "<enter><c-u>vm.dirty_ratio=40<enter>")), 1);
    assert!(app.ui.experiment.found(&app.planned_experiment()).is_none());
    press(&mut app, "r");
    assert!(message(&app).contains("still being looked at"), "{}", message(&app));
    let old = Arms { base: Vec::new(), set: vec!["vm.dirty_ratio=30".into()], control: false };
    let late = Judged { arms: old, found: Err("late".into()) };
    update(&mut app, Event::Experiment(Box::new(ExperimentNews::Checked(late))));
    assert!(app.ui.experiment.found(&app.planned_experiment()).is_none());
    press(&mut app, "<enter><c-u>vm.dirty_ratio=20<enter>");
    judge_arms(&mut app, &tree);
    press(&mut app, "r");
    assert!(message(&app).contains("A and B are the same"), "{}", message(&app));
}

#[test]
fn a_start_wished_for_during_the_look_is_asked_about_after_it() {
    for (meanwhile, want) in [
        ("", "Tune/Experiment dialog"),
        ("2", "Devices/Devices"),
        ("<esc>", "Tune/ExperimentList dialog"),
        ("?", "Tune/Experiment help"),
        ("<enter><c-u>vm.dirty_ratio=45<enter>", "Tune/Experiment"),
    ] {
        let (mut app, tree) = planned(SIZE);
        to(&mut app, "B sets");
        press(&mut app, "<enter><c-u>vm.dirty_ratio=40<enter>r");
        assert!(message(&app).contains("the question comes when"), "{}", message(&app));
        press(&mut app, meanwhile);
        judge_arms(&mut app, &tree);
        assert!(state(&app).starts_with(want), "{meanwhile}: {}", state(&app));
        assert_eq!(
            want.ends_with("dialog"),
            matches!(app.ui.overlay, Some(Overlay::Dialog(_))),
            "{meanwhile}"
        );
        // Once only.
        press(&mut app, "<esc>");
        judge_arms(&mut app, &tree);
        assert!(!matches!(app.ui.overlay, Some(Overlay::Dialog(_))), "{meanwhile}");
    }
}

#[test]
fn a_yes_starts_exactly_what_was_shown() {
    let (mut app, _tree) = planned(SIZE);
    let spec = app.planned_experiment();
    press(&mut app, "r");
    let said = dialog(&app);
    for part in [
        "vm.dirty_ratio = 20 %",
        "vm.dirty_ratio = 30 %",
        "each round: Writes 22.0 MiB",
        "order A B B A",
        DIR,
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let effects = deeds(press(&mut app, "y"));
    let start = ExperimentEffect::Start { run: 1, spec: Box::new(spec) };
    assert_eq!(effects, [Effect::Experiment(start)]);
    assert_eq!(app.ui.experiment.selected, Row::Now);
    // Neither another one, nor a benchmark, nor a change meanwhile.
    press(&mut app, "<left><down>r");
    assert!(message(&app).contains("an experiment is still on"), "{}", message(&app));
    press(&mut app, "tpa");
    press(&mut app, "<esc>a");
    press(&mut app, "p<enter>");
    assert!(message(&app).contains("an experiment is on"), "{}", message(&app));
    press(&mut app, "6r");
    assert!(
        app.ui.overlay.is_none() && message(&app).contains("an experiment is still on"),
        "{}",
        message(&app)
    );
}

#[test]
fn a_network_mount_is_asked_about_twice() {
    let (mut app, _tree) = planned(SIZE);
    let mut far = look();
    far.place.as_mut().unwrap().network = true;
    update(&mut app, Event::JobReply(Job::Look { directory: DIR.into() }, Reply::Look(Box::new(far))));
    assert_eq!(deeds(press(&mut app, "ry")), []);
    assert!(dialog(&app).starts_with("Over the network?"));
    let effects = deeds(press(&mut app, "y"));
    let [Effect::Experiment(ExperimentEffect::Start { spec, .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(spec.plan.network, Some(PathBuf::from(DIR)));
}

#[test]
fn an_ordinary_user_copies_the_line_for_root() {
    let (mut app, _tree) = planned(SIZE);
    app.ui.tune.survey.as_mut().unwrap().writable = false;
    press(&mut app, "r");
    let line = "sudo iotop-plus experiment --workload fsync --dir /srv/lab --set vm.dirty_ratio=30 --time 39";
    assert!(dialog(&app).contains(line), "{}", dialog(&app));
    assert_eq!(deeds(press(&mut app, "y")), [Effect::CopyToClipboard(line.into())]);
    assert!(app.ui.experiment.run.is_none());
}

#[test]
fn it_is_followed_cancelled_and_killed() {
    let (mut app, _tree) = started(SIZE);
    assert!(app.ui.experiment.word().unwrap().contains("starting"));
    say(&mut app, progress(1, Arm::A, Phase::Work, 10));
    let moment = |at| ExperimentNews::Run(1, ChildEvent::Message(progress(1, Arm::A, Phase::Work, at)));
    assert!(!app.experiment_unseen(&moment(20)), "the page is on screen");
    press(&mut app, "1");
    assert!(app.experiment_unseen(&moment(10)) && !app.experiment_unseen(&moment(20)));
    press(&mut app, "t");
    assert_eq!(state(&app), "Tune/Experiment", "back to what is under way");
    // News of another run are nobody's.
    let other = ExperimentNews::Run(7, ChildEvent::Message(Message::Failed("x".into())));
    update(&mut app, Event::Experiment(Box::new(other)));
    assert!(app.ui.experiment.running().is_some());
    assert_eq!(deeds(press(&mut app, "x")), [Effect::Experiment(ExperimentEffect::Cancel)]);
    assert!(app.ui.experiment.word().unwrap().contains("ending"));
    assert_eq!(deeds(press(&mut app, "x")), [Effect::Experiment(ExperimentEffect::Kill)]);
    assert!(matches!(app.ui.experiment.run.as_ref().unwrap().end, Some(Ended::Failed(_))));
    press(&mut app, "x");
    assert!(message(&app).contains("no experiment is on"));
    // Leaving ends it without a question: the values come back by themselves.
    let (mut app, _tree) = started(SIZE);
    assert_eq!(deeds(press(&mut app, "q")), [Effect::Quit]);
}

#[test]
fn a_report_is_kept_whole_or_in_part_and_said_where_it_is_not_seen() {
    for end in [End::Complete, End::Cancelled, End::Failed("no space".into())] {
        let (mut app, tree) = started(SIZE);
        say(&mut app, progress(1, Arm::A, Phase::Work, 10));
        say(&mut app, Message::Round(Box::new(round(1, Arm::A, 4.0))));
        let done = Box::new(Report { end: end.clone(), ..report(&tree, "1795277000-fsync", 1, 1.0) });
        press(&mut app, "1");
        let effects = deeds(say(&mut app, Message::Report(done.clone())));
        assert_eq!(effects, [Effect::RunJob(Job::KeepExperiment(done.clone()))], "{end:?}");
        assert!(message(&app).starts_with("experiment: "), "{}", message(&app));
        let job = Job::KeepExperiment(done);
        let effects = update(&mut app, Event::JobReply(job, Reply::Keeping("1795277000-fsync-1".into())));
        assert!(effects.contains(&Effect::RunJob(Job::Experiments)));
        assert_eq!(app.ui.experiment.run.as_ref().unwrap().kept, Some(Ok("1795277000-fsync-1".into())));
        press(&mut app, "tE");
        paint(&app);
    }
    let (mut app, _tree) = started(SIZE);
    tell(&mut app, ChildEvent::Message(Message::Failed("the tuner is gone".into())));
    assert!(app.ui.experiment.running().is_none());
    assert_eq!(deeds(press(&mut app, "1tr")), []);
}

#[test]
fn b_is_set_on_a_lease_or_for_good_kept_and_undone_by_keys() {
    let set = || vec!["vm.dirty_ratio=30".to_owned()];
    let (mut app, _tree, _) = ended(0.5);
    press(&mut app, "a");
    assert!(dialog(&app).contains("vm.dirty_ratio: 20 % (4.00 GiB here) -> 30 %"), "{}", dialog(&app));
    let lease = TuneEffect::Apply { words: set(), lease_secs: 120 };
    assert_eq!(deeds(press(&mut app, "y")), [Effect::Tune(lease)]);

    let (mut app, _tree, _) = ended(0.5);
    press(&mut app, "K");
    assert!(dialog(&app).starts_with("Set for good"), "{}", dialog(&app));
    assert_eq!(deeds(press(&mut app, "y")), [Effect::Tune(TuneEffect::Settle(set()))]);
    news(&mut app, TuneNews::Settled(9));
    assert!(app.ui.tune.busy.is_none() && message(&app).contains("change 9 is made and stays"));

    // On a lease already: K keeps it, u takes it back.
    let (mut app, tree, _) = ended(0.5);
    let id = on_lease(&mut app, &tree, &["vm.dirty_ratio=30"], 10);
    assert_eq!(deeds(press(&mut app, "K")), [Effect::Tune(TuneEffect::Keep(vec![id]))]);
    assert_eq!(deeds(press(&mut app, "R")), [Effect::Tune(TuneEffect::Renew { id, secs: 120 })]);
    assert_eq!(deeds(press(&mut app, "uy")), [Effect::Tune(TuneEffect::Undo(vec![id]))]);
    // A change of other knobs is not B.
    let (mut app, tree, _) = ended(0.5);
    on_lease(&mut app, &tree, &["vm.swappiness=10"], 10);
    press(&mut app, "K");
    assert!(dialog(&app).starts_with("Set for good"), "{}", dialog(&app));

    let (mut app, tree, _) = ended(0.5);
    tree.tell(&mut app, &[]);
    app.ui.tune.survey.as_mut().unwrap().writable = false;
    press(&mut app, "K");
    assert!(dialog(&app).contains("sudo iotop-plus tune set vm.dirty_ratio=30 --keep"), "{}", dialog(&app));
}

#[test]
fn a_change_that_is_over_is_not_kept() {
    let (mut app, tree, _) = ended(0.5);
    let id = tree.set(&["vm.dirty_ratio=30"]);
    tree.undo(id);
    tree.tell(&mut app, &[(10, Standing::Over("old value is back".into()))]);
    press(&mut app, "K");
    assert!(dialog(&app).starts_with("Set for good"), "{}", dialog(&app));
}

#[test]
fn kept_ones_are_shown_compared_and_written_to_files() {
    let (mut app, tree) = planned(SIZE);
    let [newest, middle, oldest] = kept().try_into().map(|k: [_; 3]| k.map(|k| k.id)).unwrap();
    let read = |ids: Vec<String>| Effect::RunJob(Job::ExperimentResults { ids });
    assert_eq!(deeds(press(&mut app, "<left><down><enter>")), [read(vec![newest.clone()])]);
    let got = |app: &mut App, ids: Vec<String>| {
        let all = ids.iter().map(|id| report(&tree, id, 4, 0.5)).collect();
        update(app, Event::JobReply(Job::ExperimentResults { ids }, Reply::ExperimentResults(all)));
    };
    // Not what is waited for.
    got(&mut app, vec![oldest.clone()]);
    assert_eq!(app.ui.experiment.opened, Some(Opened::Waiting(vec![newest.clone()])));
    got(&mut app, vec![newest.clone()]);
    assert_eq!(app.ui.experiment.shown().unwrap().id, newest);
    for (name, begins) in [
        ("x.md", "## Experiment: fsync"),
        ("x.json", "{\"schema\":1"),
        ("x", "Experiment: fsync on host"),
        ("/tmp/y.txt", "Experiment: fsync on host"),
    ] {
        let effects = deeds(press(&mut app, &format!("o<c-u>{name}<enter>")));
        let [Effect::RunJob(Job::WriteFile { path, contents, existing: Existing::Keep, make_dir: false })] =
            &effects[..]
        else {
            panic!("{effects:?}")
        };
        assert_eq!(*path, PathBuf::from(DIR).join(name));
        assert!(contents.bytes().starts_with(begins.as_bytes()), "{name}: {contents:?}");
    }
    press(&mut app, "o<c-u><enter>");
    assert_eq!(state(&app), "Tune/Experiment prompt \"\" wrong");
    press(&mut app, "<esc><esc>");
    assert_eq!(state(&app), "Tune/ExperimentList");
    press(&mut app, "c");
    assert!(message(&app).contains("mark another result first"));
    assert_eq!(deeds(press(&mut app, "m<down>c")), [read(vec![newest.clone(), middle.clone()])]);
    got(&mut app, vec![newest, middle]);
    assert!(matches!(app.ui.experiment.opened, Some(Opened::Compared(_))));
    paint(&app);
    let copied = deeds(press(&mut app, "y"));
    assert!(matches!(&copied[..], [Effect::CopyToClipboard(text)] if text.contains("median of A")), "{copied:?}");
}

#[test]
fn every_page_scrolls_to_its_end_and_is_copied_cleaned() {
    for size in [(40, 12), (80, 24), SIZE] {
        let (mut app, _tree) = planned(size);
        let top = paint(&app);
        press(&mut app, "<end>");
        let end = paint(&app);
        assert!(size.1 > 30 || top != end, "{size:?}");
        press(&mut app, "<up>");
        assert_ne!(paint(&app), end, "{size:?}: one key up is seen at once");
        press(&mut app, "<home>");
        let effects = press(&mut app, "y");
        let text = effects.iter().find_map(|e| match e {
            Effect::CopyToClipboard(text) => Some(text),
            _ => None,
        });
        assert!(text.unwrap().contains("each round: Writes"), "{text:?}");
    }
    let (mut app, _tree, _) = ended(0.5);
    let effects = press(&mut app, "y");
    let text = format!("{effects:?}");
    assert!(text.contains("fdatasync p99 (ms)") && text.contains("B is better"), "{text}");
}

#[test]
fn the_mouse_selects_rows_and_lines() {
    let (mut app, _tree) = planned(SIZE);
    super::mouse::click(&mut app, 3, 3);
    assert_eq!(
        (state(&app).as_str(), &app.ui.experiment.selected),
        ("Tune/ExperimentList", &Row::Kept(kept()[0].id.clone()))
    );
    super::mouse::click(&mut app, 3, 2);
    assert_eq!(app.ui.experiment.selected, Row::Plan);
    let (x, y) = super::find(&app, "rounds ");
    super::mouse::click(&mut app, x, y);
    assert_eq!(state(&app), "Tune/Experiment");
    assert_eq!(app.ui.experiment.form.place_of("rounds"), Some(app.ui.experiment.lines.selected));
}
