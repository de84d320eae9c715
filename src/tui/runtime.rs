//! The event loop of the full-screen program: waits for keys, signals, children, timers and the kernel log, and lets
//! [`Runtime`] handle what arrives. Collectors do not pass through the loop, see [`shared`].

pub(in crate::tui) mod async_fd;
mod effects;
mod frame_limit;
mod kernel_log;
mod options;
mod recording;
mod shared;
pub(in crate::tui) mod signals;
mod state;
mod timer;

use super::event::{Event, QUEUE_CAPACITY};
use super::terminal::{self, Tty};
use anyhow::{Context, anyhow};
use async_fd::register_fd;
use kernel_log::KernelLogSource;
use rustix::process::{Resource, getrlimit};
use shared::SharedRuntime;
use signals::SignalEvent;
use state::Runtime;
use std::os::fd::OwnedFd;
use timer::{Timer, acknowledge};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

pub use options::{ReplaySource, TuiOptions};

/// Open files that the program needs at the least.
const MIN_OPEN_FILES: u64 = 64;

/// Runs until the user quits.
///
/// # Errors
///
/// When the terminal cannot be set up, a thread or timer cannot be created, or the terminal stops taking output.
pub fn run(options: TuiOptions) -> anyhow::Result<()> {
    run_event_loop(options).map_err(|error| match getrlimit(Resource::Nofile).current {
        // Any error may come from that: crossterm, for one, hides the cause of most.
        Some(limit) if limit < MIN_OPEN_FILES => {
            anyhow!("{error:#}; only {limit} files may be open (ulimit -n), and it needs {MIN_OPEN_FILES}")
        }
        _ => error,
    })
}

fn run_event_loop(options: TuiOptions) -> anyhow::Result<()> {
    // Reads the zone's file, which must not happen once the terminal is taken.
    super::timezone::utc_offset_secs(0);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = SharedRuntime::default();
    let result = tokio.block_on(async {
        // Before raw mode: a signal that came in between would end the program and leave the terminal raw.
        let signals = signals::spawn_signal_listener()?;
        EventLoop::start(options, shared.clone(), signals)?.run().await
    });
    // Collector threads find nothing to draw on from here on.
    let runtime = shared.take();
    terminal::restore();
    let finished = runtime.map_or(Ok(()), Runtime::finish);
    // Do not join: threads may wait for a disk that never answers.
    tokio.shutdown_background();
    result.and(finished)
}

/// Everything the event loop waits for.
struct EventLoop {
    runtime: SharedRuntime,
    signals: mpsc::Receiver<SignalEvent>,
    input: mpsc::Receiver<std::io::Result<crossterm::event::Event>>,
    events: mpsc::Receiver<Box<Event>>,
    tty: AsyncFd<OwnedFd>,
    kernel_log: KernelLogSource,
    timer: AsyncFd<OwnedFd>,
}

impl EventLoop {
    fn start(
        options: TuiOptions,
        runtime: SharedRuntime,
        signals: mpsc::Receiver<SignalEvent>,
    ) -> anyhow::Result<Self> {
        let tty = Tty::enter(options.settings.mouse).context("cannot take the terminal")?;
        // Not WRITABLE: that would wake the loop once for each frame the terminal has taken.
        let tty_handle = register_fd(tty.fd.try_clone()?, Interest::READABLE)?;
        let timer = Timer::new()?;
        let timer_handle = register_fd(timer.try_clone_fd()?, Interest::READABLE)?;
        let (sender, events) = mpsc::channel(QUEUE_CAPACITY);
        let live_root = options.replay.is_none().then(|| options.root.clone());
        runtime.start(options, tty, timer, sender)?;
        runtime.with(Runtime::show_first_frame)?;
        let mut this = Self {
            runtime,
            signals,
            input: spawn_input_reader()?,
            events,
            tty: tty_handle,
            kernel_log: KernelLogSource::Finished,
            timer: timer_handle,
        };
        if let Some(root) = live_root {
            this.kernel_log = KernelLogSource::open(&root, &this.runtime)?;
        }
        Ok(this)
    }

    async fn run(mut self) -> anyhow::Result<()> {
        while self.runtime.with(|runtime| runtime.before_wait(self.input.is_empty() && self.events.is_empty()))? {
            tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => self.runtime.with(|runtime| runtime.on_signal(signal))?,
                input = self.input.recv() => self.runtime.with(|runtime| runtime.on_input(input))?,
                Some(event) = self.events.recv() => self.runtime.with(|runtime| runtime.on_event(*event))?,
                ready = self.tty.readable() => {
                    ready?.clear_ready();
                    let is_hung_up = terminal::is_hung_up(self.tty.get_ref());
                    self.runtime.with(|runtime| runtime.on_terminal_ready(is_hung_up))?;
                }
                ready = self.kernel_log.readable() => self.kernel_log.on_ready(ready, &self.runtime)?,
                ready = self.timer.readable() => {
                    acknowledge(self.timer.get_ref());
                    ready?.clear_ready();
                    self.runtime.with(Runtime::on_timer)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads keys and mouse events on a thread.
///
/// crossterm's `EventStream` would need no thread of ours, but takes a contended lock each time the loop polls it. The
/// thread is never joined: it may wait forever on a terminal that is gone.
pub(in crate::tui) fn spawn_input_reader() -> std::io::Result<mpsc::Receiver<std::io::Result<crossterm::event::Event>>>
{
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let body = move || {
        loop {
            let event = crossterm::event::read();
            let is_last = event.is_err();
            if sender.blocking_send(event).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".into()).stack_size(128 * 1024).spawn(body)?;
    Ok(receiver)
}
