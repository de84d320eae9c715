//! A recording on the screen: its keys, its news, and what it refuses.

use super::super::update;
use super::fixture::{app, press};
use super::{SIZE, state_summary, visible_effects};
use crate::doctor::finding::Severity;
use crate::doctor::transitions::FindingTransition;
use crate::jobs::job::WorkerJob;
use crate::model::kernel_log::LogClock;
use crate::model::observation::Observation;
use crate::model::sample::Sample;
use crate::model::system_state::HostInfo;
use crate::model::timestamp::Timestamp;
use crate::recording::decoder::DecodedTick;
use crate::recording::reader::RecordingSpan;
use crate::recording::writer::{RecorderState, RecorderStatus};
use crate::tui::app::App;
use crate::tui::app::draw::render_to_buffer;
use crate::tui::shared::NOT_IN_REPLAY;
use crate::tui::shared::ReplayUi;
use crate::tui::view::{Effect, Event, RecordingEffect, ReplayEffect, ReplayEvent, ViewId};

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

const SEC: i64 = 1_000_000_000;

fn app_in_replay() -> App {
    let mut app = app(SIZE);
    let first_ns = app.shared.system.now().wall_ns;
    let span = RecordingSpan {
        first_ns,
        last_ns: first_ns + 3600 * SEC,
        first_number: 0,
        last_number: 3600,
        ..RecordingSpan::default()
    };
    app.shared.replay = Some(ReplayUi::new("night\u{1b}.iotop", HostInfo::default(), LogClock::default(), span));
    app
}

fn replay_tick(number: u32, secs: u64) -> DecodedTick {
    let at = Timestamp { boot_ns: secs * SEC as u64, wall_ns: secs as i64 * SEC };
    let news = vec![Observation::Sample(Box::new(Sample { seq: u64::from(number), time: at, ..Sample::default() }))];
    DecodedTick { number, wall_ns: at.wall_ns, full_state: None, is_partial: false, observations: news, cost: 0 }
}

fn send_event(app: &mut App, news: ReplayEvent) -> Vec<Effect> {
    update(app, Event::Replay(Box::new(news)))
}

#[test]
fn keys_control_playback() {
    use ReplayEffect::{FindFinding, Pause, Play, SeekTime, Step};
    let now = app(SIZE).shared.system.now().wall_ns;
    for (keys, want) in [
        (" ", vec![Pause]),
        ("  ", vec![Pause, Play(1)]),
        ("+", vec![Play(2)]),
        ("++-", vec![Play(2), Play(4), Play(2)]),
        (" +", vec![Pause]),
        (".", vec![Pause, Step(1)]),
        (",.", vec![Pause, Step(-1), Step(1)]),
        ("[", vec![SeekTime(now - 60 * SEC)]),
        ("}", vec![SeekTime(now + 600 * SEC)]),
        (")", vec![FindFinding { forward: true }]),
        ("(", vec![FindFinding { forward: false }]),
        ("^", vec![SeekTime(i64::MIN)]),
        ("G", vec![SeekTime(i64::MAX)]),
        ("J+90<enter>", vec![SeekTime(now + 90 * SEC)]),
        (":jump -10m<enter>", vec![SeekTime(now + 3000 * SEC)]),
        ("J<enter>", vec![]),
        ("Jnoon<enter>", vec![]),
    ] {
        let mut app = app_in_replay();
        let want: Vec<Effect> = want.into_iter().map(Effect::Replay).collect();
        assert_eq!(visible_effects(press(&mut app, keys)), want, "{keys:?}");
    }
}

#[test]
fn a_replay_requests_nothing_from_the_local_machine() {
    for keys in ["6", "b", "7", "p", "d", "3i", "3<enter>v", "3<enter>7", "R"] {
        let mut app = app_in_replay();
        assert_eq!(press(&mut app, keys), [], "{keys:?}");
        let said = app.screen.message.as_ref().is_some_and(|m| m.is_error);
        assert!(said, "{keys:?} says nothing");
        assert!(!matches!(app.screen.view, ViewId::Bench | ViewId::Tune), "{keys:?}");
    }
    for keys in [":path /srv<enter>", ":interval 2<enter>", ":tune vm.swappiness<enter>"] {
        let mut app = app_in_replay();
        assert_eq!(press(&mut app, keys), [], "{keys:?}");
        assert!(state_summary(&app).ends_with("wrong"), "{keys:?}: {}", state_summary(&app));
    }
    let mut app = app_in_replay();
    press(&mut app, "7");
    assert!(app.screen.message.unwrap().text.ends_with(NOT_IN_REPLAY));
}

#[test]
fn tab_skips_unavailable_views() {
    let mut app = app_in_replay();
    press(&mut app, "5<tab>");
    assert_eq!(app.screen.view, ViewId::Findings);
    press(&mut app, "<tab><tab><tab>");
    assert_eq!(app.screen.view, ViewId::Overview);
}

#[test]
fn screenshots_and_clipboard_work_in_replay() {
    let mut app = app_in_replay();
    let effects = press(&mut app, "s<enter>y");
    let [Effect::RunJob(WorkerJob::WriteFile { path, .. }), Effect::CopyToClipboard(_)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert!(path.to_string_lossy().ends_with(".png"), "{path:?}");
}

#[test]
fn replayed_ticks_are_applied_like_live_ones() {
    let mut app = app_in_replay();
    assert_eq!(send_event(&mut app, ReplayEvent::Reset(Vec::new())), []);
    assert!(app.shared.system.last_sample.is_none(), "everything before is void");
    let ticks = |moments, settled| ReplayEvent::Ticks { ticks: moments, is_settled: settled, unreadable_frames: 2 };
    assert_eq!(send_event(&mut app, ticks(vec![replay_tick(4, 100), replay_tick(5, 101)], false)), []);
    assert_eq!(send_event(&mut app, ticks(vec![replay_tick(6, 102)], true)), []);
    let replay = app.shared.replay.as_ref().unwrap();
    assert_eq!((replay.tick_number, replay.damaged, app.shared.system.history.len()), (6, 2, 3));
    assert_eq!((app.shared.system.snapshot.interval_secs, app.shared.system.snapshot.time.wall_ns), (1.0, 102 * SEC));
    send_event(&mut app, ReplayEvent::EndReached);
    assert!(!app.shared.replay.as_ref().unwrap().is_playing);
    send_event(&mut app, ReplayEvent::Failed("input/output error".into()));
    let said = app.screen.message.as_ref().unwrap();
    assert!(said.is_error && said.text.contains("input/output error") && !said.text.contains('\u{1b}'), "{said:?}");
}

#[test]
fn a_search_reports_progress_and_result() {
    let mut app = app_in_replay();
    let said = |app: &App| app.screen.message.as_ref().unwrap().text.clone();
    press(&mut app, "3<enter>");
    press(&mut app, ")");
    assert!(!app.shared.replay.as_ref().unwrap().is_playing, "a search pauses");
    let now = app.shared.system.now().wall_ns;
    send_event(&mut app, ReplayEvent::Searching { forward: true, wall_ns: now });
    assert!(said(&app).starts_with("searching for the next finding, at "), "{}", said(&app));
    // Esc is for the search before anything else.
    assert_eq!(visible_effects(press(&mut app, "<esc>")), [Effect::Replay(ReplayEffect::Pause)]);
    assert!(app.screen.detail.is_some());
    send_event(&mut app, ReplayEvent::SearchEnded { forward: true, transitions: None });
    assert_eq!(said(&app), "search stopped; still at the same sample");
    assert_eq!(visible_effects(press(&mut app, "<esc>")), []);
    assert!(app.screen.detail.is_none());
    for (forward, want) in [(true, "no later finding"), (false, "no earlier finding")] {
        send_event(&mut app, ReplayEvent::SearchEnded { forward, transitions: Some(Vec::new()) });
        assert!(said(&app).starts_with(want), "{}", said(&app));
    }
    let onset = |severity, worse| FindingTransition { severity, title: "sda is stalled".into(), got_worse: worse };
    let onsets = vec![onset(Severity::Critical, true), onset(Severity::Note, false)];
    send_event(&mut app, ReplayEvent::SearchEnded { forward: true, transitions: Some(onsets) });
    assert_eq!(said(&app), "gets worse here, critical: sda is stalled (and 1 more)");
}

#[test]
fn recording_starts_is_shown_and_ends() {
    let mut app = app(SIZE);
    assert_eq!(visible_effects(press(&mut app, "R")), []);
    assert!(state_summary(&app).contains("prompt \""), "a name is proposed: {}", state_summary(&app));
    let effects = visible_effects(press(&mut app, "<c-u>night.iotop<enter>"));
    assert_eq!(effects, [Effect::Recording(RecordingEffect::Start("night.iotop".into()))]);
    let status = RecorderStatus { frames_sent: 3, bytes_sent: 4096, ..app.shared.recording_status.clone().unwrap() };
    update(&mut app, Event::RecordingStatus(Box::new(status.clone())));
    assert_eq!(app.shared.recording_status.as_ref().unwrap().frames_sent, 3);
    assert_eq!(visible_effects(press(&mut app, "R")), [Effect::Recording(RecordingEffect::Stop)]);
    update(&mut app, Event::RecordingStatus(Box::new(RecorderStatus { state: RecorderState::Done, ..status.clone() })));
    assert!(app.shared.recording_status.is_none() && app.screen.message.as_ref().unwrap().text.contains("3 samples"));
    press(&mut app, "R<c-u>/<enter>");
    assert!(state_summary(&app).ends_with("wrong"), "{}", state_summary(&app));
    let failed = RecorderState::Failed("no space left on device".into());
    update(&mut app, Event::RecordingStatus(Box::new(RecorderStatus { state: failed, ..status })));
    assert!(app.screen.message.as_ref().unwrap().is_error);
}

#[test]
fn the_timeline_shows_findings_and_a_click_goes_there() {
    let mut app = app_in_replay();
    let now = app.shared.system.now().wall_ns;
    let span = RecordingSpan { first_ns: now, last_ns: now + 3600 * SEC, ticks: 400, ..RecordingSpan::default() };
    app.shared.replay = Some(ReplayUi::new("night.iotop", HostInfo::default(), LogClock::default(), span));
    update(&mut app, Event::Resize(120, 40));
    let half = (0..100).map(|slot| (slot, (slot >= 90).then_some(Severity::Critical))).collect();
    update(&mut app, Event::ReplayJudged(half));
    let buffer = render_to_buffer(&app);
    let line: String = (0..120).map(|x| buffer[(x, 1)].symbol()).collect();
    let [first, last] = [span.first_ns, span.last_ns].map(|ns| app.shared.format_time_of_day(ns));
    let bar = format!("┃{}{}{}", "─".repeat(44), "‼".repeat(5), "·".repeat(50));
    assert_eq!(line, format!(" {first} {bar} {last} "));
    let click = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 10 + 47,
        row: 1,
        modifiers: KeyModifiers::NONE,
    };
    let [Effect::Replay(ReplayEffect::SeekTime(at))] = update(&mut app, Event::Mouse(click))[..] else {
        panic!("no seek");
    };
    assert_eq!((at - now) / SEC, 3600 * 475 / 1000);
    // No room on a low screen.
    update(&mut app, Event::Resize(120, 19));
    let buffer = render_to_buffer(&app);
    assert!(!(0..120).any(|x| buffer[(x, 1)].symbol() == "‼"));
}
