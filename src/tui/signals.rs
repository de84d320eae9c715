//! The signals that mean something to the screen.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy)]
pub enum Sig {
    /// Leave.
    End,
    /// Back to the shell for now.
    Stop,
    /// Back from there.
    Continue,
    /// The terminal's size changed.
    Resize,
}

/// The signals that are listened for.
pub struct Signals {
    end: [Signal; 4],
    stop: Signal,
    cont: Signal,
    winch: Signal,
}

impl Signals {
    /// From now on none of them ends the program by itself.
    pub fn new() -> std::io::Result<Self> {
        let tstp = SignalKind::from_raw(libc::SIGTSTP);
        let cont = SignalKind::from_raw(libc::SIGCONT);
        Ok(Self {
            end: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::quit())?,
            ],
            stop: signal(tstp)?,
            cont: signal(cont)?,
            winch: signal(SignalKind::window_change())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Sig {
        let [term, hup, int, quit] = &mut self.end;
        tokio::select! {
            _ = term.recv() => Sig::End,
            _ = hup.recv() => Sig::End,
            _ = int.recv() => Sig::End,
            _ = quit.recv() => Sig::End,
            _ = self.stop.recv() => Sig::Stop,
            _ = self.cont.recv() => Sig::Continue,
            _ = self.winch.recv() => Sig::Resize,
        }
    }
}
