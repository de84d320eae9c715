//! Reads recordings on a thread of its own: at the start, and each time another time is chosen.

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
            match is_wanted.then(|| next_time(&mut commands)).flatten() {
                Some(chosen) => (time, generation) = chosen,
                None => return,
            }
        }
    };
    std::thread::Builder::new().name("fleet".into()).spawn(body)?;
    Ok(FleetPoller::from_sender(sender))
}

/// Waits for another time, the newest one if there are several; `None`: no more will come.
fn next_time(commands: &mut mpsc::UnboundedReceiver<PollCommand>) -> Option<(Option<f64>, u64)> {
    let mut chosen = None;
    loop {
        let command = if chosen.is_some() { commands.try_recv().ok() } else { commands.blocking_recv() };
        match command {
            Some(PollCommand::ChooseTime { time, generation }) => chosen = Some((time, generation)),
            // Recordings have no series over time here; each has its replay.
            Some(PollCommand::Range(_)) => {}
            None => return chosen,
        }
    }
}
