//! Everything the loop works with, in one place: the state, the screen, and the hands that act.
//!
//! Whoever has news takes the seat, brings the state up to date and draws: the loop for what the person and the
//! children say, a collector for what it has read. At rest most of the cost of a tick is in waking up, so a tick
//! wakes one thread, its collector's, and the loop sleeps until a key is pressed. Nobody at the desk waits for
//! anything but the seat.

use super::super::draw::draw;
use super::super::event::Event;
use super::super::event_queue::EventSender;
use super::super::replay::player::Player;
use super::super::diff_renderer::DiffRenderer;
use super::super::signals::SignalEvent;
use super::super::state::{App, Ui};
use super::super::recording::ActiveRecording;
use super::super::terminal::Tty;
use super::super::update::{self, update};
use super::super::{bench, experiment, tuning};
use super::TuiOptions;
use super::timer::Alarm;
use super::recordings::play;
use crate::collect::collectors::{Collectors, CollectorEvent};
use crate::collect::kmsg::read_hung_task_warnings;
use crate::collect::sampler::READ_DEADLINE;
use crate::collect::processes::ScanOptions;
use crate::collect::{clock, host};
use crate::model::reading::BlockedRead;
use crate::model::system_state::SystemState;
use crate::worker::pool::Pool;
use anyhow::Context;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A child that has not answered for so long is shown as blocked.
const CHILD_LATE: Duration = Duration::from_secs(1);
/// How long a tick's counters wait for its processes, so that both are drawn at once.
const TOGETHER: Duration = Duration::from_millis(25);
/// How often a terminal that does not take a whole frame is tried again.
const SLOW_TERMINAL: Duration = Duration::from_millis(10);
/// How often what does not return is looked at while no tick comes.
const WATCH: Duration = Duration::from_millis(500);

/// The desk's one seat. Clones are the same one.
#[derive(Clone, Default)]
pub struct Seat(Arc<Mutex<Option<Desk>>>);

impl Seat {
    /// Works at the desk, for the loop.
    pub fn with<T>(&self, work: impl FnOnce(&mut Desk) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut place = self.lock();
        work(place.as_mut().context("the screen is closed")?)
    }

    /// Takes in what a collector says, and draws; false when nobody wants more.
    fn tell(&self, news: CollectorEvent) -> bool {
        let mut place = self.lock();
        let Some(desk) = place.as_mut() else { return false };
        if let Err(err) = desk.told(news).and_then(|()| desk.draw_if_due()) {
            desk.failed = Some(err);
        }
        desk.set_alarm();
        !desk.quit
    }

    /// Takes everything off it: whoever comes later finds nothing.
    pub fn clear(&self) -> Option<Desk> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Desk>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What the loop works with.
pub struct Desk {
    pub(super) app: App,
    pub(super) options: TuiOptions,
    pub(super) tty: Tty,
    pub(super) screen: DiffRenderer,
    /// Not there in a replay, which has a player instead.
    pub(super) feed: Option<Collectors>,
    pub(super) player: Option<Player>,
    pub(super) tape: ActiveRecording,
    pub(super) pool: Pool,
    pub(super) bench: bench::runner::Runner,
    pub(super) experiment: experiment::runner::Runner,
    pub(super) tuning: tuning::runner::Runner,
    alarm: Alarm,
    /// When the next frame is due, if anything changed.
    draw_at: Option<Instant>,
    /// When a tick of counters should have come.
    pub(super) sample_due: Instant,
    pub(super) quit: bool,
    /// What went wrong for a collector here; the loop ends with it.
    failed: Option<anyhow::Error>,
}

impl Desk {
    /// Lays everything out and starts the collectors; who comes to the seat early waits for it.
    pub fn lay_out(
        seat: &Seat,
        mut options: TuiOptions,
        tty: Tty,
        alarm: Alarm,
        outbox: EventSender,
    ) -> anyhow::Result<()> {
        let mut place = seat.lock();
        let size = tty.size();
        let mut ui = Ui::new(size, &options.settings, options.no_color);
        ui.utc_offset_secs = crate::tui::timezone::utc_offset_secs(clock::now().wall_ns);
        ui.log_clock = clock::now_log_clock();
        ui.bench.start_in(std::env::current_dir().unwrap_or_default());
        let (feed, player) = match options.replay.take() {
            Some(showing) => (None, Some(play(showing, &mut ui, &outbox)?)),
            None => {
                let wants = ScanOptions { threads: ui.processes.show_threads, delays: true, ..Default::default() };
                let seat = seat.clone();
                let sink = Arc::new(move |news| seat.tell(news));
                (Some(Collectors::start(&options.root, ui.interval, wants, sink)?), None)
            }
        };
        let send = |to: &EventSender, event| drop(to.blocking_send(Box::new(event)));
        let root = || options.root.clone();
        let to = outbox.clone();
        let pool = Pool::new(root(), Arc::new(move |job, reply| send(&to, Event::JobReply(job, reply))));
        let to = outbox.clone();
        let news = move |n| send(&to, Event::Bench(Box::new(n)));
        let bench = bench::runner::Runner::new(root(), Arc::new(news));
        let to = outbox.clone();
        let news = move |n| send(&to, Event::Experiment(Box::new(n)));
        let experiment = experiment::runner::Runner::new(root(), Arc::new(news));
        let news = move |n| send(&outbox, Event::Tune(Box::new(n)));
        let tuning = tuning::runner::Runner::new(root(), Arc::new(news));
        let sample_due = Instant::now() + ui.interval;
        let world = match &ui.replay {
            Some(replay) => SystemState::new(replay.host.clone(), replay.log_clock),
            None => SystemState::new(host::read_host(&options.root), clock::now_log_clock()),
        };
        *place = Some(Self {
            app: App::new(world, ui),
            options,
            tty,
            screen: DiffRenderer::new(size),
            feed,
            player,
            tape: ActiveRecording::default(),
            pool,
            bench,
            experiment,
            tuning,
            alarm,
            draw_at: None,
            sample_due,
            quit: false,
            failed: None,
        });
        Ok(())
    }

    /// Ends what goes on. What went wrong for a collector is the error.
    pub fn close(mut self) -> anyhow::Result<()> {
        self.tape.finish(self.app.system.now().wall_ns);
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Before the loop waits: draws if a frame is due and nothing else is to be taken in first. False if it is over.
    pub fn go_on(&mut self, nothing_waits: bool) -> anyhow::Result<bool> {
        if let Some(err) = self.failed.take() {
            return Err(err);
        }
        if nothing_waits && !self.quit {
            self.draw_if_due()?;
        }
        self.set_alarm();
        Ok(!self.quit)
    }

    /// What the person is to see first, before anything is known.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.draw()?;
        if let Some(feed) = &self.feed {
            feed.set_tracing(self.app.ui.tracing);
        }
        let Some(path) = self.options.initial_path.take() else { return Ok(()) };
        let mut effects = Vec::new();
        update::ask_path(&mut self.app, &path, &mut effects);
        self.act(effects)
    }

    /// A key or the mouse; `None`: the terminal is gone, and nobody is there any more.
    pub fn typed(&mut self, event: Option<crossterm::event::Event>) -> anyhow::Result<()> {
        use crossterm::event::Event as Term;
        let event = match event {
            Some(Term::Key(key)) => Event::Key(key),
            Some(Term::Mouse(mouse)) => Event::Mouse(mouse),
            // Told by the signal already, which no late reader misses.
            Some(_) => return Ok(()),
            None => {
                self.quit = true;
                return Ok(());
            }
        };
        self.draw_soon(Duration::ZERO);
        self.feed_event(event)
    }

    /// What a child says, or the player.
    pub fn arrived(&mut self, event: Event) -> anyhow::Result<()> {
        let seen = match &event {
            Event::Bench(news) => !self.app.bench_unseen(news),
            Event::Experiment(news) => !self.app.experiment_unseen(news),
            Event::Replay(news) => news.is_to_be_seen(),
            _ => true,
        };
        if seen {
            self.draw_soon(Duration::ZERO);
        }
        let replayed = matches!(event, Event::Replay(_));
        self.feed_event(event)?;
        if replayed {
            self.player.iter().for_each(Player::taken);
        }
        Ok(())
    }

    fn told(&mut self, news: CollectorEvent) -> anyhow::Result<()> {
        let ticks = matches!(news, CollectorEvent::Sample(_) | CollectorEvent::SampleAndTasks(..));
        if ticks {
            self.sample_due = Instant::now() + self.app.ui.interval;
            self.refresh_blocked();
        }
        let alone = matches!(news, CollectorEvent::Sample(_));
        self.draw_soon(if alone { TOGETHER } else { Duration::ZERO });
        match news {
            CollectorEvent::Sample(sample) => self.feed_event(Event::Sample(sample)),
            CollectorEvent::Tasks(procs) => self.feed_event(Event::Processes(procs)),
            CollectorEvent::SampleAndTasks(sample, procs) => {
                self.feed_event(Event::Sample(sample))?;
                self.feed_event(Event::Processes(procs))
            }
            CollectorEvent::Topology(topo) => self.feed_event(Event::Topology(topo)),
        }
    }

    /// Takes in what happened and does what follows from it.
    pub fn feed_event(&mut self, event: Event) -> anyhow::Result<()> {
        let now = self.app.system.now().wall_ns;
        if let Some(status) = self.tape.observe_event(&event, now) {
            update(&mut self.app, Event::RecordingStatus(Box::new(status)));
        }
        let effects = update(&mut self.app, event);
        self.act(effects)
    }

    /// Draws within `wait`, or sooner if that was promised already.
    pub fn draw_soon(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.draw_at = Some(self.draw_at.map_or(at, |old| old.min(at)));
    }

    /// Draws if that is wanted by now, and the terminal can take a frame.
    fn draw_if_due(&mut self) -> anyhow::Result<()> {
        let due = self.draw_at.is_some_and(|at| at <= Instant::now());
        if due && self.tty.is_idle() { self.draw() } else { Ok(()) }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.draw_at = None;
        let (app, tty) = (&self.app, &mut self.tty);
        self.screen.draw_frame(|buf| draw(app, buf), |bytes| tty.send(bytes))?;
        Ok(())
    }

    /// The terminal may take more, or is gone.
    pub fn terminal_stirred(&mut self, gone: bool) -> anyhow::Result<()> {
        self.quit |= gone;
        if !gone {
            self.tty.flush_nonblocking()?;
        }
        Ok(())
    }

    /// Has the loop woken when there is something to do for it.
    fn set_alarm(&mut self) {
        let now = Instant::now();
        let watch = self.sample_due + READ_DEADLINE;
        let frame = match (self.draw_at, self.tty.is_idle()) {
            (_, false) => Some(now + SLOW_TERMINAL),
            (at, true) => at,
        };
        let over = self.quit || self.failed.is_some();
        self.alarm.set(if over { now } else { frame.map_or(watch, |at| at.min(watch)) });
    }

    /// The alarm rang.
    pub fn rang(&mut self) -> anyhow::Result<()> {
        self.alarm.rang();
        self.tty.flush_nonblocking()?;
        if self.sample_due + READ_DEADLINE <= Instant::now() {
            self.sample_due = Instant::now() + WATCH;
            self.refresh_blocked();
            self.draw_soon(Duration::ZERO);
        }
        Ok(())
    }

    /// What does not return: collectors and children.
    fn refresh_blocked(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let now = clock::now().boot_ns;
        let mut list = feed.find_blocked();
        for p in self.pool.pending() {
            if now.saturating_sub(p.since_boot_ns) > CHILD_LATE.as_nanos() as u64 {
                let on = format!("{} (child {})", p.job.key(), p.pid);
                list.push(BlockedRead { since_boot_ns: p.since_boot_ns, waiting_on: on });
            }
        }
        if list != self.app.system.blocked_reads {
            let _ = self.feed_event(Event::Blocked(list));
        }
        if !self.app.system.hung_tasks.is_empty() {
            let left = read_hung_task_warnings(&self.options.root).ok().copied();
            let _ = self.feed_event(Event::HungTaskWarnings(left));
        }
    }

    /// A signal came.
    pub fn signalled(&mut self, which: SignalEvent) -> anyhow::Result<()> {
        match which {
            SignalEvent::Terminate => self.quit = true,
            SignalEvent::Suspend => self.suspend()?,
            SignalEvent::Continue => self.retake()?,
            SignalEvent::Resize => {
                let (w, h) = self.tty.size();
                self.feed_event(Event::Resize(w, h))?;
            }
        }
        Ok(())
    }
}
