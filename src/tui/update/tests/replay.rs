//! A recording on the screen: its keys, its news, and what it refuses.

use super::super::replay::NOT_THE_MACHINE;
use super::super::update;
use super::stage::{app, press};
use super::{SIZE, outward, state};
use crate::diagnose::finding::Severity;
use crate::diagnose::transitions::FindingTransition;
use crate::model::timestamp::Timestamp;
use crate::model::kernel_log::LogClock;
use crate::model::sample::Sample;
use crate::model::system_state::HostInfo;
use crate::record::Observation;
use crate::record::decoder::DecodedTick;
use crate::record::reader::RecordingSpan;
use crate::record::writer::{RecorderState, RecorderStatus};
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::event::Event;
use crate::tui::replay::{ReplayEffect, ReplayNews, ReplayUi};
use crate::tui::state::App;
use crate::tui::recording::RecordingEffect;
use crate::worker::job::Job;

const SEC: i64 = 1_000_000_000;

fn replaying() -> App {
    let mut app = app(SIZE);
    let first_ns = app.system.now().wall_ns;
    let span = RecordingSpan { first_ns, last_ns: first_ns + 3600 * SEC, first_number: 0, last_number: 3600, ..RecordingSpan::default() };
    app.ui.replay = Some(ReplayUi::new("night\u{1b}.iotop", HostInfo::default(), LogClock::default(), span));
    app
}

fn tick(number: u32, secs: u64) -> DecodedTick {
    let at = Timestamp { boot_ns: secs * SEC as u64, wall_ns: secs as i64 * SEC };
    let news = vec![Observation::Sample(Box::new(Sample { seq: u64::from(number), time, ..Sample::default() }))];
    DecodedTick { number, wall_ns: at.wall_ns, full_state: None, is_partial: false, observations: news }
}

fn told(app: &mut App, news: ReplayNews) -> Vec<Effect> {
    update(app, Event::Replay(Box::new(news)))
}

#[test]
fn keys_move_the_recording() {
    use ReplayEffect::{Find, Pause, Play, Step, Time};
    let now = app(SIZE).system.now().wall_ns;
    for (keys, want) in [
        (" ", vec![Pause]),
        ("  ", vec![Pause, Play(1)]),
        ("+", vec![Play(2)]),
        ("++-", vec![Play(2), Play(4), Play(2)]),
        (" +", vec![Pause]),
        (".", vec![Pause, Step(1)]),
        (",.", vec![Pause, Step(-1), Step(1)]),
        ("[", vec![Time(now - 60 * SEC)]),
        ("}", vec![Time(now + 600 * SEC)]),
        (")", vec![Find { forward: true }]),
        ("(", vec![Find { forward: false }]),
        ("^", vec![Time(i64::MIN)]),
        ("G", vec![Time(i64::MAX)]),
        ("J+90<enter>", vec![Time(now + 90 * SEC)]),
        (":jump -10m<enter>", vec![Time(now + 3000 * SEC)]),
        ("J<enter>", vec![]),
        ("Jnoon<enter>", vec![]),
    ] {
        let mut app = replaying();
        let want: Vec<Effect> = want.into_iter().map(Effect::Replay).collect();
        assert_eq!(outward(press(&mut app, keys)), want, "{keys:?}");
    }
}

#[test]
fn nothing_is_asked_of_the_machine_one_sits_at() {
    for keys in ["6", "b", "7", "t", "p", "d", "3i", "3<enter>m", "3<enter>t", "R"] {
        let mut app = replaying();
        assert_eq!(press(&mut app, keys), [], "{keys:?}");
        let said = app.ui.message.as_ref().is_some_and(|m| m.is_error);
        assert!(said, "{keys:?} says nothing");
        assert!(!matches!(app.ui.view, ViewId::Bench | ViewId::Tune), "{keys:?}");
    }
    for keys in [":path /srv<enter>", ":interval 2<enter>", ":tune vm.swappiness<enter>"] {
        let mut app = replaying();
        assert_eq!(press(&mut app, keys), [], "{keys:?}");
        assert!(state(&app).ends_with("wrong"), "{keys:?}: {}", state(&app));
    }
    let mut app = replaying();
    press(&mut app, "7");
    assert!(app.ui.message.unwrap().text.ends_with(NOT_THE_MACHINE));
}

#[test]
fn tab_passes_over_what_is_not_there() {
    let mut app = replaying();
    press(&mut app, "5<tab>");
    assert_eq!(app.ui.view, ViewId::Findings);
    press(&mut app, "<tab>");
    assert_eq!(app.ui.view, ViewId::Overview);
}

#[test]
fn pictures_and_the_clipboard_work() {
    let mut app = replaying();
    let effects = press(&mut app, "s<enter>y");
    let [Effect::RunJob(Job::WriteFile { path, .. }), Effect::CopyToClipboard(_)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert!(path.to_string_lossy().ends_with(".png"), "{path:?}");
}

#[test]
fn ticks_come_by_the_door_of_live_ones() {
    let mut app = replaying();
    assert_eq!(told(&mut app, ReplayNews::Anew(Vec::new())), []);
    assert!(app.system.last_sample.is_none(), "everything before is void");
    let ticks = |moments, settled| ReplayNews::Ticks { moments, settled, unreadable: 2 };
    assert_eq!(told(&mut app, ticks(vec![tick(4, 100), tick(5, 101)], false)), []);
    assert_eq!(told(&mut app, ticks(vec![tick(6, 102)], true)), []);
    let replay = app.ui.replay.as_ref().unwrap();
    assert_eq!((replay.number, replay.damaged, app.system.history.len()), (6, 2, 3));
    assert_eq!((app.system.snapshot.interval_secs, app.system.snapshot.time.wall_ns), (1.0, 102 * SEC));
    told(&mut app, ReplayNews::End);
    assert!(!app.ui.replay.as_ref().unwrap().playing);
    told(&mut app, ReplayNews::Failed("input/output error".into()));
    let said = app.ui.message.as_ref().unwrap();
    assert!(
        said.is_error && said.text.contains("input/output error") && !said.text.contains('\u{1b}'),
        "{said:?}"
    );
}

#[test]
fn a_search_tells_how_far_it_is_and_what_it_found() {
    let mut app = replaying();
    let said = |app: &App| app.ui.message.as_ref().unwrap().text.clone();
    press(&mut app, "3<enter>");
    press(&mut app, ")");
    assert!(!app.ui.replay.as_ref().unwrap().playing, "a search pauses");
    let now = app.system.now().wall_ns;
    told(&mut app, ReplayNews::Searching { forward: true, wall_ns: now });
    assert!(said(&app).starts_with("searching for the next finding, at "), "{}", said(&app));
    // Esc is for the search before anything else.
    assert_eq!(outward(press(&mut app, "<esc>")), [Effect::Replay(ReplayEffect::Pause)]);
    assert!(app.ui.detail.is_some());
    told(&mut app, ReplayNews::Searched { forward: true, onsets: None });
    assert_eq!(said(&app), "search ended; still at the same sample");
    assert_eq!(outward(press(&mut app, "<esc>")), []);
    assert!(app.ui.detail.is_none());
    for (forward, want) in [(true, "no later finding"), (false, "no earlier finding")] {
        told(&mut app, ReplayNews::Searched { forward, onsets: Some(Vec::new()) });
        assert!(said(&app).starts_with(want), "{}", said(&app));
    }
    let onset = |severity, worse| FindingTransition { severity, title: "sda is stalled".into(), got_worse: worse };
    let onsets = vec![onset(Severity::Critical, true), onset(Severity::Note, false)];
    told(&mut app, ReplayNews::Searched { forward: true, onsets: Some(onsets) });
    assert_eq!(said(&app), "gets worse here, critical: sda is stalled (and 1 more)");
}

#[test]
fn recording_begins_is_shown_and_ends() {
    let mut app = app(SIZE);
    assert_eq!(outward(press(&mut app, "R")), []);
    assert!(state(&app).contains("prompt \""), "a name is proposed: {}", state(&app));
    let effects = outward(press(&mut app, "<c-u>night.iotop<enter>"));
    assert_eq!(effects, [Effect::Recording(RecordingEffect::Start("night.iotop".into()))]);
    let status = RecorderStatus { frames_sent: 3, bytes_sent: 4096, ..app.ui.recording_status.clone().unwrap() };
    update(&mut app, Event::RecordingStatus(Box::new(status.clone())));
    assert_eq!(app.ui.recording_status.as_ref().unwrap().frames_sent, 3);
    assert_eq!(outward(press(&mut app, "R")), [Effect::Recording(RecordingEffect::Stop)]);
    update(&mut app, Event::RecordingStatus(Box::new(RecorderStatus { state: RecorderState::Done, ..status.clone() })));
    assert!(app.ui.recording_status.is_none() && app.ui.message.as_ref().unwrap().text.contains("3 samples"));
    press(&mut app, "R<c-u>/<enter>");
    assert!(state(&app).ends_with("wrong"), "{}", state(&app));
    let failed = RecorderState::Failed("no space left on device".into());
    update(&mut app, Event::RecordingStatus(Box::new(RecorderStatus { state: failed, ..status })));
    assert!(app.ui.message.as_ref().unwrap().is_error);
}
