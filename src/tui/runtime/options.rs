//! How to run the full-screen program, and the recording it replays.

use crate::model::system_state::SystemState;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;
use crate::root::Root;
use crate::tui::app::App;
use crate::tui::event::{Event, EventSender};
use crate::tui::settings::Settings;
use crate::tui::shared::ReplayUi;
use crate::tui::views::replay::player::ReplayPlayer;
use std::path::PathBuf;

/// How to run the full-screen program.
pub struct TuiOptions {
    /// The live machine, or a captured tree.
    pub root: Root,
    /// From the config file and the command line.
    pub settings: Settings,
    /// File that `W` writes the settings to.
    pub config_path: Option<PathBuf>,
    /// Directory whose page is open at the start.
    pub initial_path: Option<String>,
    /// Draw without colour.
    pub no_color: bool,
    /// Show this recording instead of the machine.
    pub replay: Option<ReplaySource>,
}

/// A recording to replay.
pub struct ReplaySource {
    /// The opened file.
    pub reader: RecordingReader<RemoteFile>,
    /// The file's name.
    pub name: String,
    /// Where to start: wall clock, ns since 1970. `None` starts at the beginning.
    pub start_wall_ns: Option<i64>,
}

impl ReplaySource {
    /// Takes time zone, clock and host from the recording and starts to play it.
    pub(super) fn start(self, app: &mut App, events: &EventSender) -> anyhow::Result<ReplayPlayer> {
        let ReplaySource { reader, name, start_wall_ns } = self;
        let header = &reader.header;
        let shared = &mut app.shared;
        shared.utc_offset_secs = header.utc_offset_secs;
        shared.log_clock = header.log_clock();
        shared.system = SystemState::new(header.host(), header.log_clock());
        shared.replay = Some(ReplayUi::new(&name, header.host(), header.log_clock(), reader.span));
        let events = events.clone();
        let sink = Box::new(move |event| events.blocking_send(Box::new(Event::Replay(Box::new(event)))).is_ok());
        Ok(ReplayPlayer::start(reader, start_wall_ns, sink)?)
    }
}
