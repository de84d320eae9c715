//! The signals that mean something to the screen.
//!
//! They are listened for in a task of its own, so that the loop asks one queue at every turn, not seven signals.

use super::event_queue::QUEUE_CAPACITY;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// Leave.
    Terminate,
    /// Back to the shell for now.
    Suspend,
    /// Back from there.
    Continue,
    /// The terminal's size changed.
    Resize,
}

/// From now on none of them ends or stops the program by itself. Needs a running tokio runtime.
pub fn spawn_signal_listener() -> std::io::Result<mpsc::Receiver<SignalEvent>> {
    let tstp = SignalKind::from_raw(libc::SIGTSTP);
    let cont = SignalKind::from_raw(libc::SIGCONT);
    let mut end = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::quit())?,
    ];
    let (mut stop, mut cont) = (signal(tstp)?, signal(cont)?);
    let mut winch = signal(SignalKind::window_change())?;
    let (tx, rx) = mpsc::channel(QUEUE_CAPACITY);
    tokio::spawn(async move {
        loop {
            let sig = tokio::select! {
                () = recv_any(&mut end) => SignalEvent::Terminate,
                _ = stop.recv() => SignalEvent::Suspend,
                _ = cont.recv() => SignalEvent::Continue,
                _ = winch.recv() => SignalEvent::Resize,
            };
            if tx.send(sig).await.is_err() {
                return;
            }
        }
    });
    Ok(rx)
}

async fn recv_any(end: &mut [Signal; 4]) {
    let [term, hup, int, quit] = end;
    tokio::select! {
        _ = term.recv() => {}
        _ = hup.recv() => {}
        _ = int.recv() => {}
        _ = quit.recv() => {}
    }
}
