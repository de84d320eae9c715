//! Everything the loop works with, in one place: the state, the screen, and the hands that act.
//!
//! Whoever has news takes the seat, brings the state up to date and draws: the loop for what the person and the
//! children say, a collector for what it has read. At rest most of the cost of a tick is in waking up, so a tick
//! wakes one thread, its collector's, and the loop sleeps until a key is pressed. Nobody at the desk waits for
//! anything but the seat.

use super::super::diff_renderer::DiffRenderer;
use super::super::draw::draw;
use super::super::event::Event;
use super::super::event_queue::EventSender;
use super::super::recording::ActiveRecording;
use super::super::replay::player::ReplayPlayer;
use super::super::signals::SignalEvent;
use super::super::state::App;
use super::super::terminal::Tty;
use super::super::update::{self, update};
use super::super::{bench, experiment, tune};
use super::TuiOptions;
use super::recordings::start_replay;
use super::timer::Timer;
use crate::collect::collectors::{CollectorEvent, Collectors};
use crate::collect::kmsg::read_hung_task_warnings;
use crate::collect::processes::ScanOptions;
use crate::collect::sampler::READ_DEADLINE;
use crate::collect::{clock, host};
use crate::jobs::pool::WorkerPool;
use crate::model::reading::BlockedRead;
use crate::model::system_state::SystemState;
use anyhow::Context;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A child that has not answered for so long is shown as blocked.
const CHILD_BLOCKED_AFTER: Duration = Duration::from_secs(1);
/// How long a tick's counters wait for its processes, so that both are drawn at once.
const PROCESS_WAIT: Duration = Duration::from_millis(25);
/// How often a terminal that does not take a whole frame is tried again.
const TERMINAL_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How often what does not return is looked at while no tick comes.
const BLOCKED_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The desk's one seat. Clones are the same one.
#[derive(Clone, Default)]
pub struct SharedRuntime(Arc<Mutex<Option<Runtime>>>);

impl SharedRuntime {
    /// Works at the desk, for the loop.
    pub fn with<T>(&self, work: impl FnOnce(&mut Runtime) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut place = self.lock();
        work(place.as_mut().context("the screen is closed")?)
    }

    /// Takes in what a collector says, and draws; false when nobody wants more.
    fn handle_collector_event(&self, news: CollectorEvent) -> bool {
        let mut place = self.lock();
        let Some(desk) = place.as_mut() else { return false };
        if let Err(err) = desk.on_collector_event(news).and_then(|()| desk.draw_if_due()) {
            desk.collector_error = Some(err);
        }
        desk.set_timer();
        !desk.should_quit
    }

    /// Takes everything off it: whoever comes later finds nothing.
    pub fn take(&self) -> Option<Runtime> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What the loop works with.
pub struct Runtime {
    pub(super) app: App,
    pub(super) options: TuiOptions,
    pub(super) tty: Tty,
    pub(super) screen: DiffRenderer,
    /// Not there in a replay, which has a player instead.
    pub(super) collectors: Option<Collectors>,
    pub(super) player: Option<ReplayPlayer>,
    pub(super) recording: ActiveRecording,
    pub(super) pool: WorkerPool,
    pub(super) bench: bench::runner::BenchEffectRunner,
    pub(super) experiment: experiment::runner::ExperimentEffectRunner,
    pub(super) tuning: tune::runner::TuneEffectRunner,
    timer: Timer,
    /// When the next frame is due, if anything changed.
    draw_due: Option<Instant>,
    /// When a tick of counters should have come.
    pub(super) sample_due: Instant,
    pub(super) should_quit: bool,
    /// What went wrong for a collector here; the loop ends with it.
    collector_error: Option<anyhow::Error>,
}

impl Runtime {
    /// Lays everything out and starts the collectors; who comes to the seat early waits for it.
    pub fn start(
        seat: &SharedRuntime,
        mut options: TuiOptions,
        tty: Tty,
        alarm: Timer,
        outbox: EventSender,
    ) -> anyhow::Result<()> {
        let mut place = seat.lock();
        let size = tty.size();
        let system = SystemState::new(host::read_host(&options.root), clock::now_log_clock());
        let mut app = App::new(system, size, &options.settings, options.no_color);
        app.shared.utc_offset_secs = crate::tui::timezone::utc_offset_secs(clock::now().wall_ns);
        app.shared.log_clock = clock::now_log_clock();
        app.views.bench.set_working_directory(std::env::current_dir().unwrap_or_default());
        let (feed, player) = match options.replay.take() {
            Some(showing) => (None, Some(start_replay(showing, &mut app, &outbox)?)),
            None => {
                let wants =
                    ScanOptions { threads: app.views.processes.show_threads, delays: true, ..Default::default() };
                let seat = seat.clone();
                let sink = Arc::new(move |news| seat.handle_collector_event(news));
                (Some(Collectors::start(&options.root, app.shared.interval, wants, sink)?), None)
            }
        };
        let send = |to: &EventSender, event| drop(to.blocking_send(Box::new(event)));
        let root = || options.root.clone();
        let to = outbox.clone();
        let pool = WorkerPool::new(root(), Arc::new(move |job, reply| send(&to, Event::JobReply(job, reply))));
        let to = outbox.clone();
        let news = move |n| send(&to, Event::Bench(Box::new(n)));
        let bench = bench::runner::BenchEffectRunner::new(root(), Arc::new(news));
        let to = outbox.clone();
        let news = move |n| send(&to, Event::Experiment(Box::new(n)));
        let experiment = experiment::runner::ExperimentEffectRunner::new(root(), Arc::new(news));
        let news = move |n| send(&outbox, Event::Tune(Box::new(n)));
        let tuning = tune::runner::TuneEffectRunner::new(root(), Arc::new(news));
        let sample_due = Instant::now() + app.shared.interval;
        *place = Some(Self {
            app,
            options,
            tty,
            screen: DiffRenderer::new(size),
            collectors: feed,
            player,
            recording: ActiveRecording::default(),
            pool,
            bench,
            experiment,
            tuning,
            timer: alarm,
            draw_due: None,
            sample_due,
            should_quit: false,
            collector_error: None,
        });
        Ok(())
    }

    /// Ends what goes on. What went wrong for a collector is the error.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.recording.finish(self.app.shared.system.now().wall_ns);
        self.collector_error.take().map_or(Ok(()), Err)
    }

    /// Before the loop waits: draws if a frame is due and nothing else is to be taken in first. False if it is over.
    pub fn before_wait(&mut self, nothing_waits: bool) -> anyhow::Result<bool> {
        if let Some(err) = self.collector_error.take() {
            return Err(err);
        }
        if nothing_waits && !self.should_quit {
            self.draw_if_due()?;
        }
        self.set_timer();
        Ok(!self.should_quit)
    }

    /// What the person is to see first, before anything is known.
    pub fn show_first_frame(&mut self) -> anyhow::Result<()> {
        self.draw()?;
        if let Some(feed) = &self.collectors {
            feed.set_tracing(self.app.shared.tracing);
        }
        let Some(path) = self.options.initial_path.take() else { return Ok(()) };
        let mut effects = Vec::new();
        update::ask_path(&mut self.app, &path, &mut effects);
        self.apply_effects(effects)
    }

    /// A key or the mouse; `None`: the terminal is gone, and nobody is there any more.
    pub fn on_input(&mut self, event: Option<crossterm::event::Event>) -> anyhow::Result<()> {
        use crossterm::event::Event as Term;
        let event = match event {
            Some(Term::Key(key)) => Event::Key(key),
            Some(Term::Mouse(mouse)) => Event::Mouse(mouse),
            // Told by the signal already, which no late reader misses.
            Some(_) => return Ok(()),
            None => {
                self.should_quit = true;
                return Ok(());
            }
        };
        self.schedule_draw(Duration::ZERO);
        self.dispatch(event)
    }

    /// What a child says, or the player.
    pub fn on_event(&mut self, event: Event) -> anyhow::Result<()> {
        let seen = match &event {
            Event::Bench(news) => !self.app.is_bench_event_invisible(news),
            Event::Experiment(news) => !self.app.is_experiment_event_invisible(news),
            Event::Replay(news) => news.needs_redraw(),
            _ => true,
        };
        if seen {
            self.schedule_draw(Duration::ZERO);
        }
        let replayed = matches!(event, Event::Replay(_));
        self.dispatch(event)?;
        if replayed {
            self.player.iter().for_each(ReplayPlayer::acknowledge);
        }
        Ok(())
    }

    fn on_collector_event(&mut self, news: CollectorEvent) -> anyhow::Result<()> {
        let ticks = matches!(news, CollectorEvent::Sample(_) | CollectorEvent::SampleAndTasks(..));
        if ticks {
            self.sample_due = Instant::now() + self.app.shared.interval;
            self.refresh_blocked();
        }
        let alone = matches!(news, CollectorEvent::Sample(_));
        self.schedule_draw(if alone { PROCESS_WAIT } else { Duration::ZERO });
        match news {
            CollectorEvent::Sample(sample) => self.dispatch(Event::Sample(sample)),
            CollectorEvent::Tasks(procs) => self.dispatch(Event::Processes(procs)),
            CollectorEvent::SampleAndTasks(sample, procs) => {
                self.dispatch(Event::Sample(sample))?;
                self.dispatch(Event::Processes(procs))
            }
            CollectorEvent::Topology(topo) => self.dispatch(Event::Topology(topo)),
        }
    }

    /// Takes in what happened and does what follows from it.
    pub fn dispatch(&mut self, event: Event) -> anyhow::Result<()> {
        let now = self.app.shared.system.now().wall_ns;
        if let Some(status) = self.recording.observe_event(&event, now) {
            update(&mut self.app, Event::RecordingStatus(Box::new(status)));
        }
        let effects = update(&mut self.app, event);
        self.apply_effects(effects)
    }

    /// Draws within `wait`, or sooner if that was promised already.
    pub fn schedule_draw(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.draw_due = Some(self.draw_due.map_or(at, |old| old.min(at)));
    }

    /// Draws if that is wanted by now, and the terminal can take a frame.
    fn draw_if_due(&mut self) -> anyhow::Result<()> {
        let due = self.draw_due.is_some_and(|at| at <= Instant::now());
        if due && self.tty.is_idle() { self.draw() } else { Ok(()) }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.draw_due = None;
        let (app, tty) = (&self.app, &mut self.tty);
        self.screen.draw_frame(|buf| draw(app, buf), |bytes| tty.send(bytes))?;
        Ok(())
    }

    /// The terminal may take more, or is gone.
    pub fn on_terminal_ready(&mut self, gone: bool) -> anyhow::Result<()> {
        self.should_quit |= gone;
        if !gone {
            self.tty.flush_nonblocking()?;
        }
        Ok(())
    }

    /// Has the loop woken when there is something to do for it.
    fn set_timer(&mut self) {
        let now = Instant::now();
        let watch = self.sample_due + READ_DEADLINE;
        let frame = match (self.draw_due, self.tty.is_idle()) {
            (_, false) => Some(now + TERMINAL_RETRY_INTERVAL),
            (at, true) => at,
        };
        let over = self.should_quit || self.collector_error.is_some();
        self.timer.set_deadline(if over { now } else { frame.map_or(watch, |at| at.min(watch)) });
    }

    /// The alarm rang.
    pub fn on_timer(&mut self) -> anyhow::Result<()> {
        self.timer.mark_expired();
        self.tty.flush_nonblocking()?;
        if self.sample_due + READ_DEADLINE <= Instant::now() {
            self.sample_due = Instant::now() + BLOCKED_CHECK_INTERVAL;
            self.refresh_blocked();
            self.schedule_draw(Duration::ZERO);
        }
        Ok(())
    }

    /// What does not return: collectors and children.
    fn refresh_blocked(&mut self) {
        let Some(feed) = &mut self.collectors else { return };
        let now = clock::now().boot_ns;
        let mut list = feed.find_blocked();
        for p in self.pool.pending() {
            if now.saturating_sub(p.started_boot_ns) > CHILD_BLOCKED_AFTER.as_nanos() as u64 {
                let on = format!("{} (child {})", p.job.key(), p.pid);
                list.push(BlockedRead { since_boot_ns: p.started_boot_ns, waiting_on: on });
            }
        }
        if list != self.app.shared.system.blocked_reads {
            let _ = self.dispatch(Event::Blocked(list));
        }
        if !self.app.shared.system.hung_tasks.is_empty() {
            let left = read_hung_task_warnings(&self.options.root).ok().copied();
            let _ = self.dispatch(Event::HungTaskWarnings(left));
        }
    }

    /// A signal came.
    pub fn on_signal(&mut self, which: SignalEvent) -> anyhow::Result<()> {
        match which {
            SignalEvent::Terminate => self.should_quit = true,
            SignalEvent::Suspend => self.suspend()?,
            SignalEvent::Continue => self.resume()?,
            SignalEvent::Resize => {
                let (w, h) = self.tty.size();
                self.dispatch(Event::Resize(w, h))?;
            }
        }
        Ok(())
    }
}
