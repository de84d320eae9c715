//! The Tune view: key to effect, and news to state.

use super::fixture::tune::{Tree, change_on_lease, news, view};
use super::fixture::{app, press};
use super::{SIZE, state_summary, visible_effects};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::change_impact::MIN_WINDOW_TICKS;
use crate::model::observation::Observation;
use crate::tui::app::App;
use crate::tui::app::update;
use crate::tui::knob_snapshot::ChangeStatus;
use crate::tui::view::{Effect, Event, LeaseCommand, Overlay, TuneEffect, TuneEvent};

/// To the knob of that name, as a person finds it.
fn filter_keys(knob: &str) -> String {
    format!("\\<c-u>{knob}<enter>")
}

fn apply_effect(words: &[&str]) -> Effect {
    let words = words.iter().map(|w| w.to_string()).collect();
    Effect::Tune(TuneEffect::Apply { assignments: words, lease_secs: Some(120) })
}

fn dialog_text(app: &App) -> String {
    match &app.screen.overlay {
        Some(Overlay::Dialog(d)) => format!("{}\n{}", d.title, d.text),
        other => panic!("no question: {other:?}"),
    }
}

/// Effects but the looks, which follow every piece of news.
fn main_effects(effects: Vec<Effect>) -> Vec<Effect> {
    let look =
        |e: &Effect| matches!(e, Effect::Tune(TuneEffect::Refresh(_)) | Effect::RunJob(WorkerJob::BootValues(..)));
    visible_effects(effects).into_iter().filter(|e| !look(e)).collect()
}

#[test]
fn nothing_is_changed_without_confirmation() {
    for (keys, want) in [
        ("<enter>", "Tune/TuneKnobs prompt \"20\""),
        ("<enter><esc>", "Tune/TuneKnobs"),
        ("<enter><c-u>0<enter>", "Tune/TuneKnobs prompt \"0\" wrong"),
        ("<enter><c-u>101<enter>", "Tune/TuneKnobs prompt \"101\" wrong"),
        ("<enter><c-u>2x<enter>", "Tune/TuneKnobs prompt \"2x\" wrong"),
        ("<enter><c-u>30<enter>", "Tune/TuneKnobs"),
        ("<enter><c-u>30<enter>A", "Tune/TuneKnobs dialog \"Apply\""),
        ("<enter><c-u>30<enter>An", "Tune/TuneKnobs"),
        ("<enter><c-u>30<enter>A<esc>", "Tune/TuneKnobs"),
        ("<enter><c-u>30<enter>C", "Tune/TuneKnobs"),
        ("A", "Tune/TuneKnobs"),
        ("l", "Tune/TuneKnobs"),
        ("l<enter>", "Tune/TuneKnobs dialog \"Apply\""),
        ("l<esc>", "Tune/TuneKnobs"),
        ("P", "Tune/TuneKnobs dialog \"The next boot\""),
        ("U", "Tune/TuneKnobs"),
        ("K", "Tune/TuneKnobs"),
        ("M", "Tune/TuneKnobs"),
        ("L0<enter>", "Tune/TuneKnobs prompt \"0\" wrong"),
        ("L600<enter>", "Tune/TuneKnobs"),
        ("e", "Tune/KnobPage"),
        ("H", "Tune/ChangeHistory"),
        ("H<esc>", "Tune/TuneKnobs"),
        ("ww", "Tune/ChangeHistory"),
        ("g", "Memory/Memory"),
        ("<pgdn><pgdn><up>g", "Tune/DeviceDetail device 254:0"),
        (":tune bogus<enter>", "Tune/TuneKnobs prompt \"tune bogus\" wrong"),
        (":tune swappiness<enter>", "Tune/TuneKnobs"),
    ] {
        let (mut app, _tree) = view(SIZE);
        let effects = main_effects(press(&mut app, keys));
        assert_eq!(state_summary(&app), want, "after {keys:?}");
        assert_eq!(effects, [], "{keys:?} does nothing outside");
    }
}

#[test]
fn confirming_applies_exactly_what_was_shown() {
    for (keys, words) in [
        ("<enter><c-u>30<enter>Ay".to_owned(), vec!["vm.dirty_ratio=30"]),
        (
            "<enter><c-u>6G<enter>".to_owned() + &filter_keys("expire") + "<enter><c-u>20s<enter>\\<c-u><enter>Ay",
            vec!["vm.dirty_ratio=30", "vm.dirty_expire_centisecs=2000"],
        ),
        (filter_keys("expire") + "<enter><c-u>20s<enter>Ay", vec!["vm.dirty_expire_centisecs=2000"]),
        (filter_keys("scheduler") + "<enter><down><enter>Ay", vec!["scheduler@vda=bfq"]),
        (filter_keys("scheduler") + "<enter><up><enter>Ay", vec!["scheduler@vda=none"]),
        (filter_keys("delayacct") + "<enter><down><enter>Ay", vec!["kernel.task_delayacct=1"]),
        // Of a pair the half proposed last counts.
        (
            "<enter><c-u>30<enter>".to_owned() + &filter_keys("dirty_bytes") + "<enter><c-u>6G<enter>Ay",
            vec!["vm.dirty_bytes=6442450944"],
        ),
        // What stands already is no proposal.
        ("<enter><c-u>30<enter><enter><c-u>20%<enter>A".to_owned(), vec![]),
        // The background threshold would not be below the limit.
        ("<enter><c-u>10<enter>A".to_owned(), vec![]),
        ("l<enter>y".to_owned(), vec!["vm.dirty_ratio=80", "vm.dirty_background_ratio=50", "vm.swappiness=10"]),
    ] {
        let (mut app, _tree) = view(SIZE);
        let effects = main_effects(press(&mut app, &keys));
        let want: Vec<Effect> = if words.is_empty() { Vec::new() } else { vec![apply_effect(&words)] };
        assert_eq!(effects, want, "{keys}");
        assert_eq!(app.views.tune.busy_with.is_some(), !words.is_empty(), "{keys}");
    }
}

#[test]
fn the_confirmation_lists_values_files_and_lease() {
    let (mut app, _tree) = view(SIZE);
    press(&mut app, "L600<enter><enter><c-u>30<enter>");
    press(&mut app, &(filter_keys("scheduler") + "<enter><c-u>none<enter>\\<c-u><enter>A"));
    let said = dialog_text(&app);
    for part in [
        "vm.dirty_ratio: 20 % (4.00 GiB here) -> 30 % (6.00 GiB here), written to /proc/sys/vm/dirty_ratio",
        "scheduler@vda: mq-deadline -> none, written to /sys/block/vda/queue/scheduler",
        "restored in 10m00s",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}

#[test]
fn conflicting_values_are_reported_in_the_view() {
    let (mut app, _tree) = view(SIZE);
    press(&mut app, "<enter><c-u>10<enter>A");
    let problem = app.views.tune.error.clone().unwrap();
    assert!(problem.contains("would not be below vm.dirty_ratio=10"), "{problem}");
    press(&mut app, "<down>");
    assert_eq!(app.views.tune.error, None, "until the next key");
}

#[test]
fn a_lease_is_kept_renewed_or_undone_only_by_key() {
    let (mut app, tree) = view(SIZE);
    let id = change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
    assert_eq!(app.views.tune.knobs.leases.iter().map(|l| (l.id, l.secs_left)).collect::<Vec<_>>(), [(id, 90)]);
    for _ in 0..20 {
        let tick = app.shared.system.last_sample.clone().unwrap();
        assert_eq!(
            main_effects(update(&mut app, Event::Observed(Observation::Sample(Box::new(tick))))),
            [],
            "nobody renews by himself"
        );
    }
    assert_eq!(
        main_effects(press(&mut app, "M")),
        [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Renew(120)))]
    );
    assert_eq!(main_effects(press(&mut app, "K")), [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Keep))]);
    assert_eq!(main_effects(press(&mut app, "U")), [], "asks");
    assert!(dialog_text(&app).contains("vm.swappiness: 10 -> 60"), "{}", dialog_text(&app));
    assert_eq!(main_effects(press(&mut app, "y")), [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Undo))]);
    news(&mut app, undone_event(id, true, true));
    assert!(app.views.tune.knobs.leases.is_empty() && app.views.tune.ended_boot_ns.contains_key(&id));
}

fn undone_event(id: u64, clean: bool, over: bool) -> TuneEvent {
    let lines = vec!["vm.swappiness: what happened".to_owned()];
    TuneEvent::Undone { id, boot_ns: 1, was_automatic: false, lines, is_fully_restored: clean, is_closed: over }
}

#[test]
fn a_failed_undo_keeps_the_lease_and_is_reported() {
    let (mut app, tree) = view(SIZE);
    let id = change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
    news(&mut app, undone_event(id, false, false));
    assert_eq!(app.views.tune.knobs.leases.len(), 1);
    let said = app.screen.message.clone().unwrap();
    assert!(said.is_error && said.text.contains("what happened"), "{said:?}");
    news(&mut app, TuneEvent::TunerLost(id));
    assert!(app.views.tune.knobs.leases.is_empty());
    assert!(app.screen.message.unwrap().text.contains("was killed"));
}

#[test]
fn quitting_with_a_lease_asks_and_waits_for_the_answer() {
    let end = |id| [undone_event(id, true, true), TuneEvent::Kept(id), TuneEvent::Detached(id)];
    for (n, key) in ["u", "k", "l"].into_iter().enumerate() {
        let (mut app, tree) = view(SIZE);
        let id = change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
        let want = [
            TuneEffect::Command(vec![id], LeaseCommand::Undo),
            TuneEffect::Command(vec![id], LeaseCommand::Keep),
            TuneEffect::Command(vec![id], LeaseCommand::Detach),
        ];
        assert_eq!(main_effects(press(&mut app, "1q")), [], "never silently, whatever the view");
        assert!(dialog_text(&app).contains("vm.swappiness: 10 -> 60"), "{}", dialog_text(&app));
        assert_eq!(main_effects(press(&mut app, key)), [Effect::Tune(want[n].clone())], "{key}");
        let news = news(&mut app, end(id).into_iter().nth(n).unwrap());
        assert_eq!(main_effects(news), [Effect::Quit], "{key}");
    }
    let (mut app, tree) = view(SIZE);
    change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
    assert_eq!(main_effects(press(&mut app, "q<esc>")), [], "stays");
    assert_eq!(app.screen.overlay, None);
    assert_eq!(main_effects(press(&mut app, ":q<enter>")), [], "the command asks, too");
    let effects = main_effects(press(&mut app, "uq"));
    assert_eq!(effects.last(), Some(&Effect::Quit), "asked again it leaves: the pipe's end is the change's");
    let (mut app, _tree) = view(SIZE);
    press(&mut app, "l<enter>y");
    assert_eq!(main_effects(press(&mut app, "q")), [], "a change in the making counts");
    assert_eq!(main_effects(press(&mut app, "u")), [Effect::Quit]);
    assert_eq!(main_effects(press(&mut view(SIZE).0, "q")), [Effect::Quit]);
}

#[test]
fn restoring_orphaned_changes_is_offered_once() {
    let tree = Tree::at_defaults();
    let id = tree.set(&["vm.swappiness=10"]);
    let mut app = app(SIZE);
    tree.tell(&mut app, &[(500, ChangeStatus::Orphaned)]);
    assert!(app.screen.message.clone().unwrap().text.contains("left changed settings"));
    press(&mut app, "7");
    assert!(dialog_text(&app).contains("vm.swappiness: 10 -> 60"), "{}", dialog_text(&app));
    assert_eq!(main_effects(press(&mut app, "y")), [Effect::Tune(TuneEffect::Command(vec![id], LeaseCommand::Undo))]);
    tree.tell(&mut app, &[(500, ChangeStatus::Orphaned)]);
    assert_eq!(app.screen.overlay, None, "once");
    tree.undo(id);
    tree.tell(&mut app, &[]);
    assert!(matches!(&app.views.tune.knobs.changes()[0].status, ChangeStatus::Closed(how) if how == "reverted"));
    assert!(app.views.tune.ended_boot_ns.contains_key(&id));
}

#[test]
fn without_root_the_sudo_command_is_offered() {
    let (mut app, tree) = view(SIZE);
    let id = tree.set(&["vm.page-cluster=2"]);
    let mut look = tree.look(&app, &[], &[(40, ChangeStatus::Leased(80))]);
    look.can_write = false;
    news(&mut app, TuneEvent::Refreshed(look));
    for (keys, line) in [
        ("<enter><c-u>12<enter>A".to_owned(), "sudo iotop-plus tune set vm.dirty_ratio=12 --for 120s".to_owned()),
        ("C".to_owned() + "U", format!("sudo iotop-plus tune undo {id}")),
        ("K".to_owned(), format!("sudo iotop-plus tune keep {id}")),
        ("M".to_owned(), format!("sudo iotop-plus tune renew {id} --for 120s")),
        ("P".to_owned(), "sudo iotop-plus tune persist vm.dirty_ratio=20".to_owned()),
    ] {
        assert_eq!(main_effects(press(&mut app, &keys)), [], "{keys}");
        assert!(dialog_text(&app).contains(&line), "{keys}: {}", dialog_text(&app));
        assert_eq!(main_effects(press(&mut app, "y")), [Effect::CopyToClipboard(line)], "{keys}");
    }
}

#[test]
fn persisting_names_the_file_and_the_overriding_one() {
    let (mut app, tree) = view(SIZE);
    press(&mut app, &(filter_keys("swappiness") + "P"));
    let said = dialog_text(&app);
    assert!(said.contains("vm.swappiness = 60 (60) to /etc/sysctl.d/99-zz-iotop-plus.conf"), "{said}");
    assert!(said.contains("it is 10, set by /etc/sysctl.d/50-db.conf:1"), "{said}");
    let job = WorkerJob::Persist { assignments: vec!["vm.swappiness=60".into()], remove: false };
    assert_eq!(main_effects(press(&mut app, "y")), [Effect::RunJob(job.clone())]);
    let reply = job.run(&tree.root);
    assert!(matches!(&reply, WorkerReply::Persisted(lines) if lines.len() == 2), "{reply:?}");
    assert!(matches!(&update(&mut app, Event::JobReply(job, reply))[..], [Effect::RunJob(WorkerJob::BootValues(..))]));
    super::fixture::tune::boot(&mut app, &tree);
    press(&mut app, "P");
    assert!(dialog_text(&app).contains("Remove vm.swappiness from"), "{}", dialog_text(&app));
    press(&mut app, &("n".to_owned() + &filter_keys("page-cluster") + "P"));
    assert!(
        dialog_text(&app).contains("WARNING: /etc/sysctl.conf:1 comes later and overrides our file"),
        "{}",
        dialog_text(&app)
    );
    press(&mut app, &("n".to_owned() + &filter_keys("atime") + "P"));
    assert!(app.views.tune.error.clone().unwrap().contains("fstab"));
}

#[test]
fn a_process_page_opens_its_own_knobs() {
    let (mut app, _tree) = view(SIZE);
    let effects = press(&mut app, "3<enter>7");
    let wanted = vec!["nofile@6393".to_owned(), "ioprio@6393".to_owned()];
    assert!(effects.contains(&Effect::Tune(TuneEffect::Refresh(wanted))), "{effects:?}");
    assert_eq!(state_summary(&app), "Tune/TuneKnobs");
}

#[test]
fn a_refresh_keeps_the_selection_and_the_initial_values() {
    let (mut app, tree) = view(SIZE);
    press(&mut app, "<pgdn>");
    let before = app.views.tune.selected_knob().unwrap().name.clone();
    std::fs::remove_file(tree.dir.path().join("proc/sys/vm/dirty_bytes")).unwrap();
    std::fs::write(tree.dir.path().join("proc/sys/vm/swappiness"), "33\n").unwrap();
    tree.tell(&mut app, &[]);
    assert_eq!(app.views.tune.selected_knob().unwrap().name, before);
    assert_eq!(app.views.tune.initial_values["vm.swappiness"], "60");
    assert_eq!(app.views.tune.knobs.knob("vm.swappiness").unwrap().short_value(), "33");
    assert_eq!(app.views.tune.knobs.knob("vm.dirty_bytes").unwrap().short_value(), "-", "not 0");
}

#[test]
fn graph_marks_and_comparison_windows_follow_the_changes() {
    let (mut app, tree) = view(SIZE);
    assert!(app.shared.change_marks(99).is_empty());
    tree.set(&["vm.swappiness=10"]);
    tree.set(&["vm.page-cluster=2"]);
    tree.tell(&mut app, &[(20, ChangeStatus::Leased(100)), (60, ChangeStatus::Kept)]);
    // Ticks of two seconds: the mark stands at the tick that has the change within it.
    assert_eq!(app.shared.change_marks(99), [9, 29]);
    assert_eq!((app.shared.change_marks(29), app.shared.change_marks(9)), (vec![9], vec![]), "no wider than the graph");
    let changes = app.views.tune.knobs.changes();
    let newest = app.views.tune.compare_change(&changes[0], &app.shared).unwrap();
    assert!(newest.after.ticks >= MIN_WINDOW_TICKS && !newest.rows.is_empty(), "{newest:?}");
    assert!(newest.before.secs <= 40.0, "the change before it ends its window: {newest:?}");
    let older = app.views.tune.compare_change(&changes[1], &app.shared).unwrap();
    assert!(older.after.secs <= 40.0, "the change after it ends its window: {older:?}");
}
