//! How to run the full-screen program, and the recording it replays.

use crate::model::system_state::SystemState;
use crate::recording::file_worker::RemoteFile;
use crate::recording::reader::RecordingReader;
use crate::root::Root;
use crate::tui::app::App;
use crate::tui::event::{Event, EventSender};
use crate::tui::replay_timeline::ReplayTimeline;
use crate::tui::settings::Settings;
use crate::tui::shared::ReplayUi;
use crate::tui::themes::ThemeList;
use crate::tui::views::replay::judge::judge_recording;
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
    /// The themes to choose from; that of the settings is in force.
    pub themes: ThemeList,
    /// Draw without colour.
    pub no_color: bool,
    /// Show this recording instead of the machine.
    pub replay: Option<ReplaySource>,
}

/// A recording to replay.
pub struct ReplaySource {
    /// The opened file.
    pub reader: RecordingReader<RemoteFile>,
    /// Its path, to open it a second time for the timeline.
    pub path: PathBuf,
    /// The file's name.
    pub name: String,
    /// Where to start: wall clock, ns since 1970. `None` starts at the beginning.
    pub start_wall_ns: Option<i64>,
}

impl ReplaySource {
    /// Takes time zone, clock and host from the recording and starts to play it.
    pub(super) fn start(self, root: &Root, app: &mut App, events: &EventSender) -> anyhow::Result<ReplayPlayer> {
        let ReplaySource { reader, path, name, start_wall_ns } = self;
        let header = &reader.header;
        let shared = &mut app.shared;
        shared.utc_offset_secs = header.utc_offset_secs;
        shared.log_clock = header.log_clock();
        shared.system = SystemState::new(header.host(), header.log_clock());
        let replay = ReplayUi::new(&name, header.host(), header.log_clock(), reader.span);
        judge_in_background(root.clone(), path, replay.timeline.clone(), events.clone())?;
        shared.replay = Some(replay);
        let events = events.clone();
        let sink = Box::new(move |event| events.blocking_send(Box::new(Event::Replay(Box::new(event)))).is_ok());
        Ok(ReplayPlayer::start(reader, start_wall_ns, sink)?)
    }
}

/// Fills the timeline, in a thread that reads the file a second time. What it cannot read is not judged; the player says
/// why the file cannot be read.
fn judge_in_background(
    root: Root,
    path: PathBuf,
    timeline: ReplayTimeline,
    events: EventSender,
) -> std::io::Result<()> {
    std::thread::Builder::new().name("timeline".into()).spawn(move || {
        let Ok(file) = RemoteFile::open(&root, &path) else { return };
        let Ok(mut reader) = RecordingReader::open(file) else { return };
        let sink = |slots| events.blocking_send(Box::new(Event::ReplayJudged(slots))).is_ok();
        let _ = judge_recording(&mut reader, &timeline, sink);
    })?;
    Ok(())
}
