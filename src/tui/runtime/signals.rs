//! Signals the full-screen program handles.
//!
//! A tokio task collects them into one queue, so that the event loop polls one queue instead of seven signals.

use crate::tui::event::QUEUE_CAPACITY;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What a signal means to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum SignalEvent {
    /// SIGTERM, SIGHUP, SIGINT or SIGQUIT: end the program.
    Terminate,
    /// SIGTSTP: stop and return to the shell.
    Suspend,
    /// SIGCONT: continued after a stop.
    Continue,
    /// SIGWINCH: the terminal's size has changed.
    Resize,
}

/// Catches the signals and queues them. Needs a running tokio runtime.
pub(in crate::tui) fn spawn_signal_listener() -> std::io::Result<mpsc::Receiver<SignalEvent>> {
    let tstp = SignalKind::from_raw(libc::SIGTSTP);
    let cont = SignalKind::from_raw(libc::SIGCONT);
    let (mut term, mut hup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let (mut int, mut quit) = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
    let (mut stop, mut cont) = (signal(tstp)?, signal(cont)?);
    let mut winch = signal(SignalKind::window_change())?;
    let (tx, rx) = mpsc::channel(QUEUE_CAPACITY);
    tokio::spawn(async move {
        loop {
            let sig = tokio::select! {
                _ = term.recv() => SignalEvent::Terminate,
                _ = hup.recv() => SignalEvent::Terminate,
                _ = int.recv() => SignalEvent::Terminate,
                _ = quit.recv() => SignalEvent::Terminate,
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
