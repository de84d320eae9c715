//! Reads recordings on a thread of its own: at the start, and for every journey.

use super::poller::{FleetEvent, FleetPoller, FleetSink, PollCommand};
use super::recordings::RecordingsSource;
use tokio::sync::mpsc;

/// Starts to read.
///
/// # Errors
/// There is no thread for it.
pub fn start(source: RecordingsSource, sink: FleetSink) -> std::io::Result<FleetPoller> {
    let (sender, mut commands) = mpsc::unbounded_channel();
    let body = move || {
        let (mut time, mut generation) = (None, 0);
        loop {
            let (hosts, devices) = source.read(time);
            let is_wanted =
                sink(FleetEvent::Hosts(generation, Ok(hosts))) && sink(FleetEvent::Devices(generation, devices));
            match is_wanted.then(|| next_journey(&mut commands)).flatten() {
                Some(journey) => (time, generation) = journey,
                None => return,
            }
        }
    };
    std::thread::Builder::new().name("fleet".into()).spawn(body)?;
    Ok(FleetPoller::from_sender(sender))
}

/// Waits for a journey, the newest one if there are several; `None`: no more will come.
fn next_journey(commands: &mut mpsc::UnboundedReceiver<PollCommand>) -> Option<(Option<f64>, u64)> {
    let mut journey = None;
    loop {
        let command = if journey.is_some() { commands.try_recv().ok() } else { commands.blocking_recv() };
        match command {
            Some(PollCommand::Travel { time, generation }) => journey = Some((time, generation)),
            // Recordings have no series over time here; each has its replay.
            Some(PollCommand::Range(_)) => {}
            None => return journey,
        }
    }
}
