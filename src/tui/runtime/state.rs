//! The state of the running program, and what each kind of event does to it.

use super::frame_limit::{FrameLimit, FrameReason};
use super::options::TuiOptions;
use super::recording::ActiveRecording;
use super::signals::SignalEvent;
use super::timer::Timer;
use crate::bench::message::BenchMessage;
use crate::collect::collectors::{CollectorCallback, Collectors};
use crate::collect::kmsg::read_hung_task_warnings;
use crate::collect::processes::ScanOptions;
use crate::collect::sampler::READ_DEADLINE;
use crate::collect::{clock, host};
use crate::experiment::message::ExperimentMessage;
use crate::jobs::WorkerPool;
use crate::model::observation::Observation;
use crate::model::reading::BlockedRead;
use crate::model::reading::describe_io_error;
use crate::model::system_state::SystemState;
use crate::subprocess::pool::PoolJob as _;
use crate::subprocess::resident;
use crate::subprocess::runner::ChildRunner;
use crate::tui::app::draw::draw;
use crate::tui::app::{App, update};
use crate::tui::diff_renderer::DiffRenderer;
use crate::tui::event::{Event, EventSender};
use crate::tui::terminal::{Tty, is_hung_up};
use crate::tui::view::Target;
use crate::tui::views::replay::player::ReplayPlayer;
use crate::tui::views::tune::runner::TuneEffectRunner;
use crossterm::event::Event as TerminalEvent;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Age at which a child process that has not replied is shown as blocked.
const CHILD_BLOCKED_AFTER: Duration = Duration::from_secs(1);
/// How long a frame waits for the processes after the counters of the same tick, so that both are drawn at once.
const PROCESS_WAIT: Duration = Duration::from_millis(25);
/// How long the first picture waits for the tasks and the kernel log, so that it is whole.
const FIRST_PICTURE_WAIT: Duration = Duration::from_millis(75);
/// Interval between writes to a terminal that has not taken the whole frame.
const TERMINAL_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// Interval between checks for blocked reads while samples are overdue.
const BLOCKED_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between looks at the size of a terminal of whose size no signal tells.
const SIZE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The running program: state, terminal, collectors, children and timers.
pub(super) struct Runtime {
    pub(super) app: App,
    pub(super) options: TuiOptions,
    pub(super) tty: Tty,
    pub(super) screen: DiffRenderer,
    /// `None` in a replay.
    pub(super) collectors: Option<Collectors>,
    /// What is requested of the tracing of syncs.
    pub(super) sync_threshold: Option<Duration>,
    /// Tracing of files is requested.
    pub(super) files_wanted: bool,
    /// Tracing of what tasks wait for is requested.
    pub(super) waits_wanted: bool,
    /// `Some` in a replay.
    pub(super) player: Option<ReplayPlayer>,
    pub(super) recording: ActiveRecording,
    pub(super) pool: WorkerPool,
    pub(super) bench: ChildRunner<BenchMessage>,
    pub(super) experiment: ChildRunner<ExperimentMessage>,
    pub(super) tuning: TuneEffectRunner,
    pub(super) events: EventSender,
    timer: Timer,
    /// When the terminal's size is looked at; `None`: a signal tells of it.
    size_check_due: Option<Instant>,
    /// When the next frame is due; `None` while nothing has changed.
    draw_due: Option<Instant>,
    frame_limit: FrameLimit,
    /// When the next sample is expected.
    pub(super) sample_due: Instant,
    pub(super) should_quit: bool,
    /// An error on a collector's thread. The event loop ends with it.
    collector_error: Option<anyhow::Error>,
}

impl Runtime {
    /// Starts collectors (or the player of a recording), the worker pool and the runners of child processes.
    pub(super) fn start(
        mut options: TuiOptions,
        tty: Tty,
        timer: Timer,
        events: EventSender,
        on_observations: CollectorCallback,
    ) -> anyhow::Result<Self> {
        let size = tty.size();
        let system = SystemState::new(host::read_host(&options.root), clock::now_log_clock());
        let mut app = App::new(system, size, &options.settings);
        app.shared.adapt_to_terminal(std::mem::take(&mut options.themes), options.no_color);
        app.shared.utc_offset_secs = crate::tui::timezone::utc_offset_secs(clock::now().wall_ns);
        app.shared.log_clock = clock::now_log_clock();
        app.shared.target.set_working_directory(std::env::current_dir().unwrap_or_default());
        let (collectors, player) = match options.replay.take() {
            Some(source) => (None, Some(source.start(&options.root, &mut app, &events)?)),
            None => {
                let threads = app.views.processes.show_threads;
                let scan = ScanOptions { threads, delays: true, ..Default::default() };
                (Some(Collectors::start(&options.root, app.shared.interval, scan, on_observations)?), None)
            }
        };
        let root = options.root.clone();
        let on_bench_event = run_callback(&events, |run, event| Event::Bench(run, Box::new(event)));
        let on_experiment_event = run_callback(&events, |run, event| Event::Experiment(run, Box::new(event)));
        let on_tune_event = callback(&events, |event| Event::Tune(Box::new(event)));
        Ok(Self {
            sample_due: Instant::now() + app.shared.interval,
            app,
            options,
            size_check_due: (!tty.signals_size).then(Instant::now),
            tty,
            screen: DiffRenderer::new(size),
            collectors,
            sync_threshold: None,
            files_wanted: false,
            waits_wanted: false,
            frame_limit: FrameLimit::new(Instant::now(), player.is_none()),
            player,
            recording: ActiveRecording::default(),
            pool: WorkerPool::new(root.clone(), run_callback(&events, Event::JobReply)),
            bench: ChildRunner::new(root.clone(), on_bench_event),
            experiment: ChildRunner::new(root.clone(), on_experiment_event),
            tuning: TuneEffectRunner::new(root, on_tune_event),
            events,
            timer,
            draw_due: None,
            should_quit: false,
            collector_error: None,
        })
    }

    /// Finishes a recording under way.
    ///
    /// # Errors
    ///
    /// An error that happened on a collector's thread.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.recording.finish(self.app.shared.system.now().wall_ns);
        self.collector_error.take().map_or(Ok(()), Err)
    }

    /// Called before the event loop waits: draws a frame that is due, unless events are queued, which come first.
    /// Returns whether the loop should go on.
    pub(super) fn before_wait(&mut self, queues_are_empty: bool) -> anyhow::Result<bool> {
        if let Some(err) = self.collector_error.take() {
            return Err(err);
        }
        if queues_are_empty && !self.should_quit {
            self.draw_if_due()?;
        }
        self.set_timer();
        Ok(!self.should_quit)
    }

    /// Draws the empty screen, then starts what takes longer: tracing, and the page of the path given at the start.
    pub(super) fn show_first_frame(&mut self) -> anyhow::Result<()> {
        self.draw()?;
        if let Some(collectors) = &self.collectors {
            collectors.set_tracing(self.app.shared.tracing);
        }
        let Some(path) = self.options.initial_path.take() else { return Ok(()) };
        let mut effects = Vec::new();
        self.app.navigate(Target::Path(path), &mut effects);
        self.apply_effects(effects)
    }

    /// Handles a key or mouse event. A terminal that is gone ends the program.
    ///
    /// # Errors
    ///
    /// If keys cannot be read any more for another reason.
    pub(super) fn on_input(&mut self, input: Option<std::io::Result<TerminalEvent>>) -> anyhow::Result<()> {
        let event = match input {
            Some(Ok(TerminalEvent::Key(key))) => Event::Key(key),
            Some(Ok(TerminalEvent::Mouse(mouse))) => Event::Mouse(mouse),
            // A resize comes as SIGWINCH too, which is handled in `on_signal`.
            Some(Ok(_)) => return Ok(()),
            Some(Err(err)) if !is_hung_up(&self.tty.fd) => {
                anyhow::bail!("cannot read keys: {}", describe_io_error(&err))
            }
            Some(Err(_)) | None => {
                self.should_quit = true;
                return Ok(());
            }
        };
        self.schedule_draw_for_input();
        self.dispatch(event)
    }

    /// Handles an event from a child process or the player of a recording.
    pub(super) fn on_event(&mut self, event: Event) -> anyhow::Result<()> {
        if !matches!(&event, Event::Replay(event) if !event.needs_redraw()) {
            self.schedule_draw(Duration::ZERO);
        }
        let is_from_player = matches!(event, Event::Replay(_));
        self.dispatch(event)?;
        if let (true, Some(player)) = (is_from_player, &self.player) {
            player.acknowledge();
        }
        Ok(())
    }

    /// Handles a collector's readings on the collector's thread, and draws. Returns whether the collector should go on.
    pub(super) fn on_observations(&mut self, observations: Vec<Observation>) -> bool {
        if let Err(err) = self.apply_observations(observations).and_then(|()| self.draw_if_due()) {
            self.collector_error = Some(err);
        }
        self.set_timer();
        !self.should_quit
    }

    fn apply_observations(&mut self, observations: Vec<Observation>) -> anyhow::Result<()> {
        if matches!(observations.first(), Some(Observation::Sample(_))) {
            self.sample_due = Instant::now() + self.app.shared.interval;
            self.refresh_blocked();
        }
        let tasks_follow = matches!(observations.last(), Some(Observation::Sample(_)));
        if self.frame_limit.awaits_first_picture() && self.is_first_picture_complete(&observations) {
            self.schedule_draw_at(Instant::now(), FrameReason::Data);
            self.frame_limit.end_first_picture();
        }
        self.schedule_draw(if tasks_follow { PROCESS_WAIT } else { Duration::ZERO });
        observations.into_iter().try_for_each(|observation| self.dispatch(Event::Observed(observation)))
    }

    /// Whether nothing more is awaited for the first picture: the tasks have been read, or take more than an interval.
    /// The kernel log comes before them.
    fn is_first_picture_complete(&self, observations: &[Observation]) -> bool {
        let has_sample = self.app.shared.system.now().boot_ns > 0;
        observations.iter().any(|observation| match observation {
            Observation::Tasks(_) => true,
            Observation::Sample(_) => has_sample,
            _ => false,
        })
    }

    /// Records the event, updates the state and applies the effects.
    pub(super) fn dispatch(&mut self, event: Event) -> anyhow::Result<()> {
        let now = self.app.shared.system.now().wall_ns;
        if let Some(status) = self.recording.observe_event(&event, now) {
            update(&mut self.app, Event::RecordingStatus(Box::new(status)));
        }
        let effects = update(&mut self.app, event);
        self.apply_effects(effects)
    }

    /// Schedules a frame for new data `wait` from now or as soon as the limit of frames allows, or earlier if one is
    /// scheduled already. Before the first picture it waits for more.
    pub(super) fn schedule_draw(&mut self, wait: Duration) {
        let wait = if self.frame_limit.awaits_first_picture() { FIRST_PICTURE_WAIT } else { wait };
        self.schedule_draw_at(Instant::now() + wait, FrameReason::Data);
    }

    /// Schedules a frame that answers the user.
    pub(super) fn schedule_draw_for_input(&mut self) {
        self.schedule_draw_at(Instant::now(), FrameReason::Input);
    }

    fn schedule_draw_at(&mut self, at: Instant, reason: FrameReason) {
        let at = at.max(self.frame_limit.earliest(reason));
        self.draw_due = Some(self.draw_due.map_or(at, |old| old.min(at)));
    }

    /// Draws if a frame is due and the terminal has taken the previous one whole.
    fn draw_if_due(&mut self) -> anyhow::Result<()> {
        let due = self.draw_due.is_some_and(|at| at <= Instant::now());
        if due && self.tty.is_idle() { self.draw() } else { Ok(()) }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.draw_due = None;
        self.frame_limit.take(Instant::now());
        let (app, tty) = (&self.app, &mut self.tty);
        self.screen.draw_frame(|buf| draw(app, buf), |bytes| tty.send(bytes))?;
        Ok(())
    }

    /// Handles a hang-up of the terminal, which ends the program.
    pub(super) fn on_terminal_ready(&mut self, is_hung_up: bool) -> anyhow::Result<()> {
        self.should_quit |= is_hung_up;
        if !is_hung_up {
            self.tty.flush_nonblocking()?;
        }
        Ok(())
    }

    /// Sets the timer to the next thing due: a frame, a retry of a write, or overdue samples.
    fn set_timer(&mut self) {
        let now = Instant::now();
        let overdue = self.sample_due + READ_DEADLINE;
        let frame = match (self.draw_due, self.tty.is_idle()) {
            (_, false) => Some(now + TERMINAL_RETRY_INTERVAL),
            (at, true) => at,
        };
        let must_end = self.should_quit || self.collector_error.is_some();
        let next = [frame, self.size_check_due].into_iter().flatten().fold(overdue, Instant::min);
        self.timer.set_deadline(if must_end { now } else { next });
    }

    /// Handles the timer: retries a write, and looks for blocked reads when samples are overdue.
    pub(super) fn on_timer(&mut self) -> anyhow::Result<()> {
        self.timer.mark_expired();
        self.tty.flush_nonblocking()?;
        if self.size_check_due.is_some_and(|due| due <= Instant::now()) {
            self.size_check_due = Some(Instant::now() + SIZE_CHECK_INTERVAL);
            self.check_size()?;
        }
        if self.app.shared.pages_locked.is_none() {
            self.app.shared.pages_locked = resident::is_locked();
        }
        if self.sample_due + READ_DEADLINE <= Instant::now() {
            self.sample_due = Instant::now() + BLOCKED_CHECK_INTERVAL;
            self.frame_limit.end_first_picture();
            self.refresh_blocked();
            self.schedule_draw(Duration::ZERO);
        }
        Ok(())
    }

    /// Updates the list of reads and child processes that do not return.
    fn refresh_blocked(&mut self) {
        let Some(collectors) = &mut self.collectors else { return };
        let now = clock::now().boot_ns;
        let mut blocked = collectors.find_blocked();
        for child in self.pool.pending() {
            if now.saturating_sub(child.started_boot_ns) > CHILD_BLOCKED_AFTER.as_nanos() as u64 {
                let waiting_on = format!("{} (child {})", child.job.key(), child.pid);
                blocked.push(BlockedRead { since_boot_ns: child.started_boot_ns, waiting_on });
            }
        }
        if blocked != self.app.shared.system.blocked_reads {
            let _ = self.dispatch(Event::Observed(Observation::BlockedSources(blocked)));
        }
        if !self.app.shared.system.hung_tasks.is_empty() {
            let left = read_hung_task_warnings(&self.options.root).ok().copied();
            let _ = self.dispatch(Event::Observed(Observation::HungTaskWarnings(left)));
        }
    }

    pub(super) fn on_signal(&mut self, signal: SignalEvent) -> anyhow::Result<()> {
        match signal {
            SignalEvent::Terminate => self.should_quit = true,
            SignalEvent::Suspend => self.suspend()?,
            SignalEvent::Continue => self.resume()?,
            SignalEvent::Resize => {
                // Even to the same size: the terminal may have moved its text meanwhile.
                let (w, h) = self.tty.size();
                self.dispatch(Event::Resize(w, h))?;
            }
        }
        Ok(())
    }

    /// Takes over the size of the terminal if it has changed.
    fn check_size(&mut self) -> anyhow::Result<()> {
        let (w, h) = self.tty.size();
        if (w, h) == self.app.screen.size {
            return Ok(());
        }
        self.dispatch(Event::Resize(w, h))
    }
}

/// A callback that sends an event to the loop, for background threads. The error is dropped: it only says that the loop has
/// ended.
pub(super) fn callback<T: 'static>(
    events: &EventSender,
    event: impl Fn(T) -> Event + Send + Sync + 'static,
) -> Arc<dyn Fn(T) + Send + Sync> {
    let events = events.clone();
    Arc::new(move |value| _ = events.blocking_send(Box::new(event(value))))
}

/// The same for events of two values.
fn run_callback<A: 'static, B: 'static>(
    events: &EventSender,
    event: fn(A, B) -> Event,
) -> Arc<dyn Fn(A, B) + Send + Sync> {
    let send = callback(events, move |(a, b)| event(a, b));
    Arc::new(move |a, b| send((a, b)))
}
