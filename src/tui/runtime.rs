//! The one loop: terminal, children and signals in; effects out. What it works with is the [`Desk`].

mod effects;
mod kernel_log;
mod recordings;
mod state;
mod timer;

use super::async_fd::register_fd;
use super::event::Event;
use super::event_queue::QUEUE_CAPACITY;
use super::settings::Settings;
use super::signals::{self, SignalEvent};
use super::terminal::{self, Tty, TtyHandle};
use crate::root::Root;
use anyhow::Context;
use kernel_log::KernelLogSource;
use state::{Runtime, SharedRuntime};
use std::path::PathBuf;
pub(super) use timer::Timer;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

pub use recordings::ReplaySource;

/// How to run.
pub struct TuiOptions {
    /// Machine or capture.
    pub root: Root,
    /// From the config file and the command line.
    pub settings: Settings,
    /// Where `W` writes.
    pub config_path: Option<PathBuf>,
    /// Ask about this path first.
    pub initial_path: Option<String>,
    /// Show without colour.
    pub no_color: bool,
    /// Show a recording instead of the machine.
    pub replay: Option<ReplaySource>,
}

/// Runs until the person leaves.
pub fn run(options: TuiOptions) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seat = SharedRuntime::default();
    let result = runtime.block_on(async {
        // Before the terminal is taken: a signal in between would leave it as it is then.
        let signals = signals::spawn_signal_listener()?;
        EventLoop::start(options, seat.clone(), signals)?.run().await
    });
    // From here on nobody draws any more.
    let desk = seat.take();
    terminal::restore();
    let closed = desk.map_or(Ok(()), Runtime::finish);
    // Threads and children may be waiting on a dead disk: leave them.
    runtime.shutdown_background();
    result.and(closed)
}

/// What the loop waits for; everything else is on the desk.
struct EventLoop {
    runtime: SharedRuntime,
    signals: mpsc::Receiver<SignalEvent>,
    input: mpsc::Receiver<crossterm::event::Event>,
    events: mpsc::Receiver<Box<Event>>,
    tty: AsyncFd<TtyHandle>,
    kernel_log: KernelLogSource,
    timer: AsyncFd<Timer>,
}

impl EventLoop {
    fn start(options: TuiOptions, seat: SharedRuntime, signals: mpsc::Receiver<SignalEvent>) -> anyhow::Result<Self> {
        let tty = Tty::enter(options.settings.mouse).context("cannot take the terminal")?;
        // Readable only: told of every drained write, the loop would wake once for each frame.
        let line = register_fd(tty.try_clone_handle()?, Interest::READABLE)?;
        let alarm = Timer::new()?;
        let bell = register_fd(alarm.try_clone()?, Interest::READABLE)?;
        let (outbox, inbox) = mpsc::channel(QUEUE_CAPACITY);
        let machine = options.replay.is_none().then(|| options.root.clone());
        Runtime::start(&seat, options, tty, alarm, outbox)?;
        seat.with(Runtime::show_first_frame)?;
        let keys = spawn_input_reader()?;
        let mut this = Self {
            runtime: seat,
            signals,
            input: keys,
            events: inbox,
            tty: line,
            kernel_log: KernelLogSource::Finished,
            timer: bell,
        };
        if let Some(root) = machine {
            this.open_kernel_log(&root)?;
        }
        Ok(this)
    }

    async fn run(mut self) -> anyhow::Result<()> {
        while self.runtime.with(|desk| desk.before_wait(self.input.is_empty() && self.events.is_empty()))? {
            tokio::select! {
                biased;
                Some(which) = self.signals.recv() => self.runtime.with(|desk| desk.on_signal(which))?,
                event = self.input.recv() => self.runtime.with(|desk| desk.on_input(event))?,
                Some(event) = self.events.recv() => self.runtime.with(|desk| desk.on_event(*event))?,
                ready = self.tty.readable() => {
                    let mut ready = ready?;
                    let gone = self.tty.get_ref().is_hung_up();
                    ready.clear_ready();
                    self.runtime.with(|desk| desk.on_terminal_ready(gone))?;
                }
                ready = self.kernel_log.readable() => self.on_kernel_log_ready(ready)?,
                rang = self.timer.readable() => {
                    let mut rang = rang?;
                    self.timer.get_ref().acknowledge();
                    rang.clear_ready();
                    self.runtime.with(Runtime::on_timer)?;
                }
            }
        }
        Ok(())
    }
}

/// Keys and mouse, read on a thread of their own: crossterm's own stream takes a contended lock at every
/// turn of the loop. The thread may wait for ever on a dead terminal; nobody waits for it.
fn spawn_input_reader() -> std::io::Result<mpsc::Receiver<crossterm::event::Event>> {
    let (tx, rx) = mpsc::channel(QUEUE_CAPACITY);
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
