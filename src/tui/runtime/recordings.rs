//! The loop's side of recordings: one shown instead of the machine, one made of it.

use super::super::event::Event;
use super::super::event_queue::EventSender;
use super::super::recording::RecordingEffect;
use super::super::replay::ReplayUi;
use super::super::replay::player::ReplayPlayer;
use super::super::state::App;
use super::state::Runtime;
use crate::model::system_state::SystemState;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;

/// A recording to be shown.
pub struct ReplaySource {
    /// Opened.
    pub reader: RecordingReader<RemoteFile>,
    /// The file's name.
    pub name: String,
    /// Begin here, wall clock in ns.
    pub start_wall_ns: Option<i64>,
}

/// Sets the screen to a recording and starts to play it.
pub(super) fn start_replay(showing: ReplaySource, app: &mut App, outbox: &EventSender) -> anyhow::Result<ReplayPlayer> {
    let ReplaySource { reader, name, start_wall_ns: at } = showing;
    let header = &reader.header;
    let shared = &mut app.shared;
    shared.utc_offset_secs = header.utc_offset_secs;
    shared.log_clock = header.log_clock();
    shared.system = SystemState::new(header.host(), header.log_clock());
    shared.replay = Some(ReplayUi::new(&name, header.host(), header.log_clock(), reader.span()));
    let to = outbox.clone();
    let sink = Box::new(move |news| to.blocking_send(Box::new(Event::Replay(Box::new(news)))).is_ok());
    Ok(ReplayPlayer::start(reader, at, sink)?)
}

impl Runtime {
    /// Begins to record, or ends it.
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
