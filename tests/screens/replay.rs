//! The header of a recording, and of recording.

use super::{app, assert_screen, press};
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::recording::reader::RecordingSpan;
use iotop_plus::recording::writer::RecorderStatus;
use iotop_plus::tui::app::App;
use iotop_plus::tui::shared::ReplayUi;

pub fn open_replay(size: (u16, u16)) -> App {
    let mut app = app(size);
    let span = RecordingSpan { first_number: 10, last_number: 3609, ..RecordingSpan::default() };
    let host = app.shared.system.host.clone();
    let replay = ReplayUi::new("night.iotop", host, LogClock::default(), span);
    app.shared.replay = Some(ReplayUi { tick_number: 129, ..replay });
    app
}

#[test]
fn replay_header() {
    for size in [(80, 24), (120, 40)] {
        assert_screen("replay", &open_replay(size));
    }
    let mut app = open_replay((120, 40));
    press(&mut app, " +++");
    app.screen.message = None;
    let replay = app.shared.replay.as_mut().unwrap();
    (replay.damaged, replay.is_partial) = (3, true);
    assert_screen("replay_paused_damaged", &app);
    app.shared.replay.as_mut().unwrap().is_searching = true;
    app.screen.info("searching for the next finding, at 14:35:12; Esc ends the search");
    assert_screen("replay_searching", &app);
    app.shared.replay.as_mut().unwrap().is_searching = false;
    app.screen.message = None;
    press(&mut app, "J");
    assert_screen("replay_jump", &app);
}

#[test]
fn recording_header() {
    let mut app = app((120, 40));
    app.shared.recording_status =
        Some(RecorderStatus { bytes_sent: 3_400_000, frames_sent: 900, ..RecorderStatus::default() });
    assert_screen("recording", &app);
    app.shared.recording_status =
        Some(RecorderStatus { bytes_sent: 3_400_000, frames_dropped: 12, is_stuck: true, ..RecorderStatus::default() });
    assert_screen("recording_stuck", &app);
    app.shared.recording_status = None;
    press(&mut app, "R");
    assert_screen("recording_prompt", &app);
}
