//! The event loop: keys, signals, reports of the source, and a clock of one second by which ages grow.

use super::screen::FleetScreen;
use super::update::FleetEffect;
use crate::fleet::poller::{FleetEvent, FleetPoller, FleetSink};
use crate::tui::diff_renderer::DiffRenderer;
use crate::tui::runtime::async_fd::register_fd;
use crate::tui::runtime::signals::{SignalEvent, spawn_signal_listener};
use crate::tui::runtime::spawn_input_reader;
use crate::tui::terminal::{self, Tty};
use anyhow::Context;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::Interest;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

/// Ages on screen grow this often.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two frames, at least.
const FRAME_INTERVAL: Duration = Duration::from_millis(50);
/// Time between writes to a terminal that has not taken the whole frame.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// How long the thread that reads keys takes to end.
const INPUT_READER_TIME: Duration = Duration::from_millis(50);

/// Starts what reports to the screen.
type StartSource = Box<dyn FnOnce(FleetSink) -> anyhow::Result<FleetPoller>>;

/// How to run the screen.
pub struct FleetOptions<'a> {
    /// Its state; its size is taken from the terminal.
    pub screen: &'a mut FleetScreen,
    /// Starts the source.
    pub start: StartSource,
    /// Draw without colour.
    pub no_color: bool,
}

/// Why the screen has ended.
#[derive(Debug, PartialEq)]
pub enum FleetExit {
    /// The user quits.
    Quit,
    /// The user wants to see a recording at a time, seconds since 1970.
    Replay(PathBuf, f64),
}

/// Runs until the user quits, or wants to see a recording.
///
/// # Errors
/// The terminal cannot be set up or stops taking output, or a thread cannot be created.
pub fn run(options: FleetOptions<'_>) -> anyhow::Result<FleetExit> {
    // Reads the zone's file, which must not happen once the terminal is taken.
    let offset = crate::tui::timezone::utc_offset_secs(crate::collect::clock::now().wall_ns);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = tokio.block_on(async {
        // Before raw mode: a signal that came in between would end the program and leave the terminal raw.
        let signals = spawn_signal_listener()?;
        // The source reports a few times a second, and the loop never waits for anything else.
        let (sender, reports) = mpsc::unbounded_channel();
        let poller = (options.start)(Box::new(move |event| sender.send(event).is_ok()))?;
        let tty = Tty::enter(false).context("cannot take the terminal")?;
        let screen = options.screen;
        (screen.size, screen.utc_offset_secs) = (tty.size(), offset);
        screen.adapt_to_terminal(options.no_color);
        let renderer = DiffRenderer::new(screen.size);
        let mut fleet_loop = FleetLoop { screen, tty, renderer, poller, draw_due: Some(Instant::now()), exit: None };
        fleet_loop.run(signals, reports).await
    });
    terminal::restore();
    // Do not join: the reader of keys may wait for ever.
    tokio.shutdown_background();
    result
}

/// Ends the thread that reads keys, of this screen or of a replay: it waits in a read, which a signal of a new size ends.
///
/// # Errors
/// The signal cannot be sent.
pub fn end_input_reader() -> anyhow::Result<()> {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH)?;
    std::thread::sleep(INPUT_READER_TIME);
    Ok(())
}

struct FleetLoop<'a> {
    screen: &'a mut FleetScreen,
    tty: Tty,
    renderer: DiffRenderer,
    poller: FleetPoller,
    draw_due: Option<Instant>,
    exit: Option<FleetExit>,
}

impl FleetLoop<'_> {
    async fn run(
        &mut self,
        mut signals: mpsc::Receiver<SignalEvent>,
        mut reports: mpsc::UnboundedReceiver<FleetEvent>,
    ) -> anyhow::Result<FleetExit> {
        let tty = register_fd(self.tty.fd.try_clone()?, Interest::READABLE)?;
        let mut input = spawn_input_reader()?;
        let mut clock = tokio::time::interval(CLOCK_INTERVAL);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Some(exit) = self.exit.take() {
                return Ok(exit);
            }
            self.screen.now = crate::collect::clock::now().wall_ns as f64 / 1e9;
            let mut due = self.draw_due.unwrap_or_else(|| Instant::now() + CLOCK_INTERVAL * 10);
            if !self.tty.is_idle() {
                due = Instant::now() + RETRY_INTERVAL;
            }
            tokio::select! {
                biased;
                Some(signal) = signals.recv() => self.on_signal(signal)?,
                event = input.recv() => self.on_input(event)?,
                Some(report) = reports.recv() => self.on_report(report)?,
                ready = tty.readable() => {
                    ready?.clear_ready();
                    if terminal::is_hung_up(tty.get_ref()) {
                        return Ok(FleetExit::Quit);
                    }
                }
                () = sleep_until(due) => self.draw()?,
                _ = clock.tick() => {
                    self.screen.on_clock();
                    let mut effects = Vec::new();
                    self.screen.request_series(&mut effects);
                    self.perform(effects)?;
                    self.schedule_draw();
                }
            }
        }
    }

    fn schedule_draw(&mut self) {
        self.draw_due.get_or_insert(Instant::now() + FRAME_INTERVAL);
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.tty.flush_nonblocking()?;
        if self.tty.is_idle() && self.draw_due.is_some_and(|due| due <= Instant::now()) {
            self.draw_due = None;
            let (screen, tty) = (&*self.screen, &mut self.tty);
            self.renderer.draw_frame(|buf| screen.draw(buf), |bytes| tty.send(bytes))?;
        }
        Ok(())
    }

    fn on_input(&mut self, event: Option<std::io::Result<crossterm::event::Event>>) -> anyhow::Result<()> {
        match event {
            Some(Ok(crossterm::event::Event::Key(key))) => {
                let effects = self.screen.on_key(key);
                // The answer to a key is drawn at once.
                self.draw_due = Some(Instant::now());
                self.perform(effects)
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(err)) if !terminal::is_hung_up(&self.tty.fd) => {
                anyhow::bail!("cannot read keys: {}", crate::model::reading::describe_io_error(&err))
            }
            _ => {
                self.exit = Some(FleetExit::Quit);
                Ok(())
            }
        }
    }

    fn on_report(&mut self, report: FleetEvent) -> anyhow::Result<()> {
        let (effects, is_shown) = self.screen.on_report(report);
        if is_shown {
            self.schedule_draw();
        }
        self.perform(effects)
    }

    fn on_signal(&mut self, signal: SignalEvent) -> anyhow::Result<()> {
        match signal {
            SignalEvent::Terminate => self.exit = Some(FleetExit::Quit),
            SignalEvent::Suspend => self.suspend()?,
            SignalEvent::Continue => self.resume()?,
            SignalEvent::Resize => self.redraw(),
        }
        Ok(())
    }

    fn redraw(&mut self) {
        self.screen.size = self.tty.size();
        self.renderer.reset(self.screen.size);
        self.draw_due = Some(Instant::now());
    }

    fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        self.resume()
    }

    fn resume(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        self.tty.enter_raw_mode()?;
        self.redraw();
        Ok(())
    }

    fn perform(&mut self, effects: Vec<FleetEffect>) -> anyhow::Result<()> {
        for effect in effects {
            match effect {
                FleetEffect::Quit => self.exit = Some(FleetExit::Quit),
                FleetEffect::Replay { file, at } => self.exit = Some(FleetExit::Replay(file, at)),
                FleetEffect::Suspend => self.suspend()?,
                FleetEffect::Redraw => self.redraw(),
                FleetEffect::Send(command) => self.poller.send(command),
                FleetEffect::Copy(text) => {
                    use crossterm::Command as _;
                    let mut sequence = String::new();
                    crossterm::clipboard::CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence)?;
                    self.tty.send(sequence.as_bytes())?;
                }
            }
        }
        Ok(())
    }
}
