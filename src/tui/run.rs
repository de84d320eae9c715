//! The one loop: terminal, children and signals in; effects out. What it works with is the [`Desk`].

mod act;
mod alarm;
mod desk;
mod kernel;
mod tape;

use super::event::Event;
use super::inbox::QUEUE;
use super::ready::register;
use super::settings::Settings;
use super::signals::{self, Sig};
use super::terminal::{self, Line, Tty};
use crate::root::Root;
pub(super) use alarm::Alarm;
use anyhow::Context;
use desk::{Desk, Seat};
use kernel::Kmsg;
use std::path::PathBuf;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

pub use tape::Showing;

/// How to run.
pub struct Options {
    /// Machine or capture.
    pub root: Root,
    /// From the config file and the command line.
    pub settings: Settings,
    /// Where `W` writes.
    pub config: Option<PathBuf>,
    /// Ask about this path first.
    pub path: Option<String>,
    /// Show without colour.
    pub no_color: bool,
    /// Show a recording instead of the machine.
    pub replay: Option<Showing>,
}

/// Runs until the person leaves.
pub fn run(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seat = Seat::default();
    let result = runtime.block_on(async {
        // Before the terminal is taken: a signal in between would leave it as it is then.
        let signals = signals::listen()?;
        Loop::start(options, seat.clone(), signals)?.turn().await
    });
    // From here on nobody draws any more.
    let desk = seat.clear();
    terminal::restore();
    let closed = desk.map_or(Ok(()), Desk::close);
    // Threads and children may be waiting on a dead disk: leave them.
    runtime.shutdown_background();
    result.and(closed)
}

/// What the loop waits for; everything else is on the desk.
struct Loop {
    seat: Seat,
    signals: mpsc::Receiver<Sig>,
    keys: mpsc::Receiver<crossterm::event::Event>,
    inbox: mpsc::Receiver<Box<Event>>,
    line: AsyncFd<Line>,
    kmsg: Kmsg,
    alarm: AsyncFd<Alarm>,
}

impl Loop {
    fn start(options: Options, seat: Seat, signals: mpsc::Receiver<Sig>) -> anyhow::Result<Self> {
        let tty = Tty::enter(options.settings.mouse).context("cannot take the terminal")?;
        // Readable only: told of every drained write, the loop would wake once for each frame.
        let line = register(tty.line()?, Interest::READABLE)?;
        let alarm = Alarm::new()?;
        let bell = register(alarm.try_clone()?, Interest::READABLE)?;
        let (outbox, inbox) = mpsc::channel(QUEUE);
        let machine = options.replay.is_none().then(|| options.root.clone());
        Desk::lay_out(&seat, options, tty, alarm, outbox)?;
        seat.with(Desk::begin)?;
        let keys = listen()?;
        let mut this = Self { seat, signals, keys, inbox, line, kmsg: Kmsg::Done, alarm: bell };
        if let Some(root) = machine {
            this.open_kmsg(&root)?;
        }
        Ok(this)
    }

    async fn turn(mut self) -> anyhow::Result<()> {
        while self.seat.with(|desk| desk.go_on(self.keys.is_empty() && self.inbox.is_empty()))? {
            tokio::select! {
                biased;
                Some(which) = self.signals.recv() => self.seat.with(|desk| desk.signalled(which))?,
                event = self.keys.recv() => self.seat.with(|desk| desk.typed(event))?,
                Some(event) = self.inbox.recv() => self.seat.with(|desk| desk.arrived(*event))?,
                ready = self.line.readable() => {
                    let mut ready = ready?;
                    let gone = self.line.get_ref().hung_up();
                    ready.clear_ready();
                    self.seat.with(|desk| desk.terminal_stirred(gone))?;
                }
                ready = self.kmsg.ready() => self.kernel_said(ready)?,
                rang = self.alarm.readable() => {
                    let mut rang = rang?;
                    self.alarm.get_ref().hush();
                    rang.clear_ready();
                    self.seat.with(Desk::rang)?;
                }
            }
        }
        Ok(())
    }
}

/// Keys and mouse, read on a thread of their own: crossterm's own stream takes a contended lock at every
/// turn of the loop. The thread may wait for ever on a dead terminal; nobody waits for it.
fn listen() -> std::io::Result<mpsc::Receiver<crossterm::event::Event>> {
    let (tx, rx) = mpsc::channel(QUEUE);
    let body = move || {
        while let Ok(event) = crossterm::event::read() {
            if tx.blocking_send(event).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".into()).stack_size(128 * 1024).spawn(body)?;
    Ok(rx)
}
