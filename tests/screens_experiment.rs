//! Experiments on the screen in all their states: filled in, refused, asked, under way, ended, kept, compared.
//!
//! The pictures are kept in `tests/snapshots`; `INSTA_UPDATE=always cargo test` writes them anew.

mod fixture;
#[path = "screens/snapshot.rs"]
mod snapshot;

use fixture::experiment::{answer, knobs, planned, progress, report, round, say, started};
use fixture::press;
use fixture::tune::Tree;
use iotop_plus::experiment::message::{ExperimentMessage, RoundPhase};
use iotop_plus::experiment::report::RunEnd;
use iotop_plus::experiment::spec::Arm;
use iotop_plus::jobs::bench_jobs::StoreJob;
use iotop_plus::jobs::job::{WorkerJob, WorkerReply};
use iotop_plus::tui::app::App;
use iotop_plus::tui::app::draw;
use iotop_plus::tui::app::update;
use iotop_plus::tui::event::Event;
use iotop_plus::tuning::plan::TuneError;

const SIZES: [(u16, u16); 4] = [(40, 12), (80, 24), (120, 40), (200, 50)];

fn text(app: &App) -> String {
    let buf = draw::render_to_buffer(app);
    let row = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect::<String>();
    (0..buf.area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

fn assert_screen(name: &str, app: &App) {
    snapshot::assert_screen(&format!("experiment_{name}"), app.screen.size, text(app));
}

/// The picture at every size of what `make` makes, after `keys`.
fn assert_screens_at_every_size(name: &str, make: fn((u16, u16)) -> (App, Tree), keys: &str) {
    for size in SIZES {
        let (mut app, _tree) = make(size);
        press(&mut app, keys);
        app.screen.message = None;
        assert_screen(name, &app);
    }
}

#[test]
fn form_and_confirmation() {
    assert_screens_at_every_size("next", planned, "");
    assert_screens_at_every_size("asking", planned, "S");
    assert_screens_at_every_size("next_zoomed", planned, "z");
    // The value of a knob that nobody proposed is asked for at once.
    for size in SIZES {
        let (mut app, tree) = knobs(size);
        press(&mut app, "B");
        answer(&mut app, &tree);
        assert_screen("typing", &app);
    }
    assert_screens_at_every_size("typing_wrong", planned, "<home><enter><c-u>nothing<enter>");
}

#[test]
fn unprivileged_user_sees_the_sudo_command() {
    for size in SIZES {
        let (mut app, _tree) = planned(size);
        fixture::tune::drop_privileges(&mut app);
        update(&mut app, Event::Resize(size.0, size.1));
        assert_screen("user", &app);
        press(&mut app, "S");
        assert_screen("user_asking", &app);
    }
}

/// Two rounds over, the third, B's, under way.
fn running_experiment(size: (u16, u16)) -> (App, Tree) {
    let (mut app, tree) = started(size);
    say(&mut app, progress(1, Arm::A, RoundPhase::Drain, 0));
    for (n, arm) in [(1, Arm::A), (2, Arm::B)] {
        say(&mut app, progress(n, arm, RoundPhase::Work, 39));
        say(&mut app, ExperimentMessage::Round(Box::new(round(n, arm, 4.0))));
    }
    for at in 0..25 {
        say(&mut app, progress(3, Arm::B, RoundPhase::Work, at));
    }
    (app, tree)
}

#[test]
fn running_stopping_and_seen_from_other_views() {
    assert_screens_at_every_size("running", running_experiment, "");
    assert_screens_at_every_size("ending", running_experiment, "C");
    let (mut app, _tree) = running_experiment((80, 24));
    say(&mut app, ExperimentMessage::Note("io_uring is refused here (EPERM): threads instead".into()));
    assert_screen("noted", &app);
    press(&mut app, "1");
    assert!(text(&app).contains("experiment fsync 3/8 B 60 %"), "{}", text(&app));
}

#[test]
fn finished() {
    for size in SIZES {
        let (mut app, tree) = running_experiment(size);
        let done = Box::new(report(&tree, "1795277000-fsync", 4, 0.5));
        say(&mut app, ExperimentMessage::Report(done.clone()));
        update(
            &mut app,
            Event::JobReply(
                WorkerJob::ExperimentReports(StoreJob::Save(done)),
                WorkerReply::Saved("1795277000-fsync".into()),
            ),
        );
        assert_screen("ended", &app);
        press(&mut app, "<enter><pgdn>");
        press(&mut app, "<pgdn><pgdn><pgdn><pgdn><pgdn><pgdn>");
        assert_screen("ended_below", &app);
        press(&mut app, "<home>A");
        assert_screen("ended_setting", &app);
    }
}

#[test]
fn cancelled_inconclusive_and_refused() {
    let (mut app, tree) = running_experiment((80, 24));
    let mut part = report(&tree, "1795277000-fsync", 1, 1.0);
    part.end = RunEnd::Cancelled;
    say(&mut app, ExperimentMessage::Report(Box::new(part)));
    assert_screen("cancelled", &app);
    let (mut app, tree) = running_experiment((120, 40));
    say(&mut app, ExperimentMessage::Report(Box::new(report(&tree, "1795277000-fsync", 4, 1.001))));
    assert_screen("no_difference", &app);
    let (mut app, _tree) = started((80, 24));
    say(&mut app, ExperimentMessage::Refused(TuneError::Unsafe("vda makes no progress: 1 requests in flight".into())));
    assert_screen("refused", &app);
}

#[test]
fn stored_and_compared() {
    assert_screens_at_every_size("kept", planned, "<left><end>m<up><up>");
    for size in SIZES {
        let (mut app, tree) = planned(size);
        press(&mut app, "<left><end>m<up>c");
        let ids = vec!["1795100000-fsync".to_owned(), "1795270000-fsync".to_owned()];
        let both = vec![report(&tree, &ids[0], 4, 0.5), report(&tree, &ids[1], 4, 1.001)];
        let job = WorkerJob::ExperimentReports(StoreJob::Load(ids));
        update(&mut app, Event::JobReply(job, WorkerReply::LoadedExperiments(both)));
        assert_screen("compared", &app);
    }
}

#[test]
fn hostile_names_are_sanitized() {
    let (mut app, tree) = planned((120, 40));
    app.shared.target.directory = "/srv/\u{1b}[2J\u{202e}".into();
    app.views.experiments.form.spec.set_assignments = vec!["vm.dirty_ratio=\u{1b}[2J30".into()];
    fixture::experiment::send_checked_arms(&mut app, &tree);
    for keys in ["", "r", "n<left>", "<right><end>"] {
        press(&mut app, keys);
        let shown = text(&app);
        assert!(shown.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)), "{keys}: {shown}");
    }
}
