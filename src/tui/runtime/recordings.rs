//! The loop's side of recordings: one shown instead of the machine, one made of it.

use super::super::event::Event;
use super::super::event_queue::EventSender;
use super::super::replay::ReplayUi;
use super::super::replay::player::Player;
use super::super::state::Ui;
use super::super::recording::RecordingEffect;
use super::state::Desk;
use crate::record::file_worker::RemoteFile;
use crate::record::reader::RecordingReader;

/// A recording to be shown.
pub struct Showing {
    /// Opened.
    pub reader: RecordingReader<RemoteFile>,
    /// The file's name.
    pub name: String,
    /// Begin here, wall clock in ns.
    pub at: Option<i64>,
}

/// Sets the screen to a recording and starts to play it.
pub(super) fn play(showing: Showing, ui: &mut Ui, outbox: &EventSender) -> anyhow::Result<Player> {
    let Showing { reader, name, at } = showing;
    let header = &reader.header;
    ui.utc_offset_secs = header.utc_offset_secs;
    ui.log_clock = header.log_clock();
    ui.replay = Some(ReplayUi::new(&name, header.host(), header.log_clock(), reader.span()));
    let to = outbox.clone();
    let sink = Box::new(move |news| to.blocking_send(Box::new(Event::Replay(Box::new(news)))).is_ok());
    Ok(Player::start(reader, at, sink)?)
}

impl Desk {
    /// Begins to record, or ends it.
    pub(super) fn record(&mut self, effect: RecordingEffect) -> anyhow::Result<()> {
        match effect {
            RecordingEffect::Stop => self.tape.stop(self.app.system.now().wall_ns),
            RecordingEffect::Start(path) => {
                let path = std::env::current_dir().unwrap_or_default().join(path);
                if let Err(why) = self.tape.start(&self.options.root, path, &self.app) {
                    self.app.ui.recording_status = None;
                    return self.feed_event(Event::Notice(why));
                }
            }
        }
        Ok(())
    }
}
