//! Recordings in the runtime: replaying one instead of the machine, and making one.

use super::state::Runtime;
use crate::model::system_state::SystemState;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;
use crate::tui::app::App;
use crate::tui::effect::RecordingEffect;
use crate::tui::event::{Event, EventSender};
use crate::tui::shared::ReplayUi;
use crate::tui::views::replay::player::ReplayPlayer;

/// A recording to replay.
pub struct ReplaySource {
    /// The opened file.
    pub reader: RecordingReader<RemoteFile>,
    /// The file's name.
    pub name: String,
    /// Where to start: wall clock, ns since 1970. `None` starts at the beginning.
    pub start_wall_ns: Option<i64>,
}

/// Takes time zone, clock and host from the recording and starts to play it.
pub(super) fn start_replay(source: ReplaySource, app: &mut App, events: &EventSender) -> anyhow::Result<ReplayPlayer> {
    let ReplaySource { reader, name, start_wall_ns } = source;
    let header = &reader.header;
    let shared = &mut app.shared;
    shared.utc_offset_secs = header.utc_offset_secs;
    shared.log_clock = header.log_clock();
    shared.system = SystemState::new(header.host(), header.log_clock());
    shared.replay = Some(ReplayUi::new(&name, header.host(), header.log_clock(), reader.span()));
    let events = events.clone();
    let sink = Box::new(move |event| events.blocking_send(Box::new(Event::Replay(Box::new(event)))).is_ok());
    Ok(ReplayPlayer::start(reader, start_wall_ns, sink)?)
}

impl Runtime {
    /// Starts or stops a recording of what is on screen.
    pub(super) fn control_recording(&mut self, effect: RecordingEffect) -> anyhow::Result<()> {
        match effect {
            RecordingEffect::Stop => self.recording.stop(self.app.shared.system.now().wall_ns),
            RecordingEffect::Start(path) => {
                let path = std::env::current_dir().unwrap_or_default().join(path);
                if let Err(why) = self.recording.start(&self.options.root, path, &self.app) {
                    self.app.shared.recording_status = None;
                    return self.dispatch(Event::Notice(why));
                }
            }
        }
        Ok(())
    }
}
