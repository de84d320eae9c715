//! The one loop: terminal, samples, children, signals in; effects out.

mod kernel;
mod tape;

use super::draw::draw;
use super::effect::Effect;
use super::event::Event;
use super::inbox::{Input, QUEUE, deliver};
use super::ready::register;
use super::replay::player::Player;
use super::screen::Screen;
use super::settings::Settings;
use super::signals::{self, Sig};
use super::state::{App, Detail, Ui};
use super::tape::Tape;
use super::terminal::{self, Tty};
use super::update::update;
use crate::collect::feed::{Feed, News};
use crate::collect::kmsg::hung_task_warnings;
use crate::collect::process::{Wants, ionice};
use crate::collect::{clock, host};
use crate::model::section::Blocked;
use crate::model::world::World;
use crate::root::Root;
use crate::worker::file::Existing;
use crate::worker::job::{Job, Reply};
use crate::worker::pool::Pool;
use anyhow::Context;
use kernel::{Kmsg, read_kmsg};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tape::play;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// A child that has not answered for so long is shown as blocked.
const CHILD_LATE: Duration = Duration::from_secs(1);
/// How often a terminal that does not take a whole frame is tried again.
const SLOW_TERMINAL: Duration = Duration::from_millis(10);
/// How long a tick's counters wait for its processes, so that both are drawn at once.
const TOGETHER: Duration = Duration::from_millis(25);

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
    let result = runtime.block_on(async {
        // Before the terminal is taken: a signal in between would leave it as it is then.
        let signals = signals::listen()?;
        Loop::start(options)?.turn(signals).await
    });
    terminal::restore();
    // Threads and children may be waiting on a dead disk: leave them.
    runtime.shutdown_background();
    result
}

struct Loop {
    app: App,
    options: Options,
    tty: Option<AsyncFd<Tty>>,
    screen: Screen,
    /// Not there in a replay, which has a player instead.
    feed: Option<Feed>,
    player: Option<Player>,
    tape: Tape,
    pool: Pool,
    bench: super::bench::runner::Runner,
    experiment: super::experiment::runner::Runner,
    tuning: super::tuning::runner::Runner,
    inbox: mpsc::Receiver<Input>,
    outbox: mpsc::Sender<Input>,
    kmsg: Kmsg,
    /// When the next frame is due, if anything changed.
    draw_at: Option<Instant>,
    /// When a tick of counters should have come.
    sample_due: Instant,
    quit: bool,
}

impl Loop {
    fn start(mut options: Options) -> anyhow::Result<Self> {
        let tty = Tty::enter(options.settings.mouse).context("cannot take the terminal")?;
        terminal::restore_on_panic();
        let size = tty.size();
        let (outbox, inbox) = mpsc::channel(QUEUE);
        let mut ui = Ui::new(size, &options.settings, options.no_color);
        ui.utc_offset_secs = super::zone::utc_offset_secs(clock::now().wall_ns);
        ui.log_clock = clock::log_clock();
        ui.bench.start_in(std::env::current_dir().unwrap_or_default());
        let (feed, player) = match options.replay.take() {
            Some(showing) => (None, Some(play(showing, &mut ui, &outbox)?)),
            None => {
                let wants = Wants { threads: ui.procs.threads, delays: true, ..Default::default() };
                let (to, every) = (outbox.clone(), ui.interval);
                let sink = Arc::new(move |news| deliver(&to, news));
                (Some(Feed::start(&options.root, every, wants, sink)?), None)
            }
        };
        let to = outbox.clone();
        let pool = Pool::new(
            options.root.clone(),
            Arc::new(move |job: Job, reply: Reply| {
                let _ = to.blocking_send(Input::Event(Box::new(Event::Worker(job, reply))));
            }),
        );
        let to = outbox.clone();
        let news = move |n| drop(to.blocking_send(Input::Event(Box::new(Event::Bench(Box::new(n))))));
        let bench = super::bench::runner::Runner::new(options.root.clone(), Arc::new(news));
        let to = outbox.clone();
        let news = move |n| drop(to.blocking_send(Input::Event(Box::new(Event::Experiment(Box::new(n))))));
        let experiment = super::experiment::runner::Runner::new(options.root.clone(), Arc::new(news));
        let to = outbox.clone();
        let news = move |n| drop(to.blocking_send(Input::Event(Box::new(Event::Tune(Box::new(n))))));
        let tuning = super::tuning::runner::Runner::new(options.root.clone(), Arc::new(news));
        let sample_due = Instant::now() + ui.interval;
        let world = match &ui.replay {
            Some(replay) => World::new(replay.host.clone(), replay.log_clock),
            None => World::new(host::host(&options.root), clock::log_clock()),
        };
        Ok(Self {
            app: App::new(world, ui),
            options,
            // Readable only: told of every drained write, the loop would wake once more for each frame.
            tty: Some(register(tty, Interest::READABLE)?),
            screen: Screen::new(size),
            feed,
            player,
            tape: Tape::default(),
            pool,
            bench,
            experiment,
            tuning,
            inbox,
            outbox,
            kmsg: Kmsg::Done,
            draw_at: Some(Instant::now()),
            sample_due,
            quit: false,
        })
    }

    async fn turn(mut self, mut signals: mpsc::Receiver<Sig>) -> anyhow::Result<()> {
        let mut keys = listen()?;
        self.draw()?;
        if let Some(feed) = &self.feed {
            feed.trace(self.app.ui.tracing);
            self.open_kmsg();
        }
        if let Some(path) = self.options.path.take() {
            let mut effects = Vec::new();
            super::update::ask_path(&mut self.app, &path, &mut effects);
            self.act(effects)?;
        }
        while !self.quit {
            if self.draw_is_due() && keys.is_empty() {
                self.draw()?;
            }
            let draw_at = self.draw_at;
            let watch_at = self.sample_due + crate::collect::lane::DEADLINE;
            let tty = self.tty.as_ref().context("terminal lost")?;
            let (idle, kmsg) = (tty.get_ref().is_idle(), &self.kmsg);
            tokio::select! {
                biased;
                Some(which) = signals.recv() => self.signalled(which)?,
                event = keys.recv() => match event {
                    Some(event) => self.typed(event)?,
                    // The terminal is gone: nobody is there any more.
                    None => self.quit = true,
                },
                Some(input) = self.inbox.recv() => self.arrived(input)?,
                ready = tty.readable() => {
                    let mut ready = ready?;
                    let gone = tty.get_ref().hung_up();
                    ready.clear_ready();
                    if gone { self.quit = true } else { self.flush()? }
                }
                () = sleep(SLOW_TERMINAL), if !idle => self.flush()?,
                records = read_kmsg(kmsg) => self.kernel_said(records)?,
                () = async { sleep_until(draw_at.unwrap_or_else(Instant::now)).await }, if draw_at.is_some() && idle => self.draw()?,
                () = sleep_until(watch_at) => self.watch()?,
            }
        }
        terminal::restore();
        self.tape.finish(self.app.world.now().wall_ns);
        Ok(())
    }

    fn typed(&mut self, event: crossterm::event::Event) -> anyhow::Result<()> {
        use crossterm::event::Event as Term;
        let event = match event {
            Term::Key(key) => Event::Key(key),
            Term::Mouse(mouse) => Event::Mouse(mouse),
            // Told by the signal already, which no late reader misses.
            _ => return Ok(()),
        };
        self.draw_soon(Duration::ZERO);
        self.feed_event(event)
    }

    fn arrived(&mut self, input: Input) -> anyhow::Result<()> {
        let event = match input {
            Input::Event(event) => match *event {
                Event::Bench(news) if self.app.bench_unseen(&news) => {
                    return self.feed_event(Event::Bench(news));
                }
                Event::Experiment(news) if self.app.experiment_unseen(&news) => {
                    return self.feed_event(Event::Experiment(news));
                }
                Event::Replay(news) => {
                    if news.is_to_be_seen() {
                        self.draw_soon(Duration::ZERO);
                    }
                    self.feed_event(Event::Replay(news))?;
                    self.player.iter().for_each(Player::taken);
                    return Ok(());
                }
                event => event,
            },
            Input::News(News::Sample(sample)) => {
                self.sample_due = Instant::now() + self.app.ui.interval;
                self.refresh_blocked();
                self.draw_soon(TOGETHER);
                return self.feed_event(Event::Sample(sample));
            }
            Input::News(News::Procs(procs)) => Event::Procs(procs),
            Input::News(News::Topology(topo)) => Event::Topology(topo),
        };
        self.draw_soon(Duration::ZERO);
        self.feed_event(event)
    }

    fn feed_event(&mut self, event: Event) -> anyhow::Result<()> {
        let now = self.app.world.now().wall_ns;
        if let Some(status) = self.tape.note(&event, now) {
            update(&mut self.app, Event::Recording(Box::new(status)));
        }
        let effects = update(&mut self.app, event);
        self.act(effects)
    }

    /// Draws within `wait`, or sooner if that was promised already.
    fn draw_soon(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.draw_at = Some(self.draw_at.map_or(at, |old| old.min(at)));
    }

    /// A frame is wanted now, the terminal can take it, and nothing else waits to be taken in: a timer would
    /// wake the loop a second time.
    fn draw_is_due(&self) -> bool {
        self.draw_at.is_some_and(|at| at <= Instant::now())
            && self.inbox.is_empty()
            && self.tty.as_ref().is_some_and(|tty| tty.get_ref().is_idle())
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        self.draw_at = None;
        let (app, tty) = (&self.app, &mut self.tty);
        let Some(tty) = tty else { return Ok(()) };
        self.screen.frame(|buf| draw(app, buf), |bytes| tty.get_mut().send(bytes))?;
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Some(tty) = &mut self.tty {
            tty.get_mut().flush_some()?;
        }
        Ok(())
    }

    fn watch(&mut self) -> anyhow::Result<()> {
        self.sample_due = Instant::now() + Duration::from_millis(500);
        self.refresh_blocked();
        self.draw_soon(Duration::ZERO);
        Ok(())
    }

    /// What does not return: collectors and children.
    fn refresh_blocked(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let now = clock::now().boot_ns;
        let mut list = feed.watch();
        for p in self.pool.pending() {
            if now.saturating_sub(p.since_boot_ns) > CHILD_LATE.as_nanos() as u64 {
                let on = format!("{} (child {})", p.job.key(), p.pid);
                list.push(Blocked { since_boot_ns: p.since_boot_ns, on });
            }
        }
        if list != self.app.world.blocked {
            let _ = self.feed_event(Event::Blocked(list));
        }
        if !self.app.world.stuck.is_empty() {
            let left = hung_task_warnings(&self.options.root).ok().copied();
            let _ = self.feed_event(Event::HungTaskWarnings(left));
        }
    }

    fn act(&mut self, effects: Vec<Effect>) -> anyhow::Result<()> {
        for effect in effects {
            match effect {
                Effect::Quit => self.quit = true,
                Effect::Suspend => self.suspend()?,
                Effect::Redraw => self.redraw(),
                Effect::Interval(_) | Effect::Threads(_) | Effect::Focus(_) | Effect::Syncs(_) => {
                    self.steer(effect);
                }
                Effect::Replay(effect) => self.player.iter().for_each(|p| p.act(effect)),
                Effect::Tape(effect) => self.record(effect)?,
                Effect::Run(job) => self.hand_out(job)?,
                Effect::Clipboard(text) => self.copy(&text)?,
                Effect::Save(settings) => self.save(&settings)?,
                Effect::Bench(effect) => {
                    if let Some(news) = self.bench.act(effect) {
                        self.feed_event(Event::Bench(Box::new(news)))?;
                    }
                }
                Effect::Experiment(effect) => {
                    if let Some(news) = self.experiment.act(effect) {
                        self.feed_event(Event::Experiment(Box::new(news)))?;
                    }
                }
                Effect::Tune(effect) => {
                    if let Err(why) = self.tuning.act(effect) {
                        self.feed_event(Event::Notice(why))?;
                    }
                }
                Effect::SetIoPrio { key, prio } => {
                    let set = ionice::set(key.tid, prio).and_then(|()| ionice::get(key.tid));
                    let result = set.map_err(|err| {
                        let why = crate::model::section::describe(&err);
                        format!(
                            "ioprio_set on task {}: {why}; it needs the task's owner or CAP_SYS_NICE",
                            key.tid
                        )
                    });
                    self.feed_event(Event::IoPrioSet(key, result))?;
                }
            }
        }
        Ok(())
    }

    /// What is wanted of the collectors.
    fn steer(&mut self, effect: Effect) {
        let Some(feed) = &mut self.feed else { return };
        match effect {
            Effect::Interval(interval) => {
                feed.set_interval(interval);
                self.sample_due = Instant::now() + interval;
            }
            Effect::Syncs(from) => feed.want_syncs(from),
            Effect::Threads(threads) => {
                feed.want(|w| w.threads = threads);
                feed.look_now();
            }
            Effect::Focus(keys) => {
                let waits = matches!(self.app.ui.detail, Some(Detail::Process(_)));
                feed.want(|w| (w.focus, w.waits) = (keys, waits));
            }
            _ => {}
        }
    }

    fn hand_out(&mut self, job: Job) -> anyhow::Result<()> {
        let told = job.is_measuring() || job.is_experiment() || job.is_diagnosis();
        let waited_for = told.then(|| job.clone());
        match (self.pool.start(job), waited_for) {
            (Ok(()), _) => Ok(()),
            (Err(why), None) => self.feed_event(Event::Notice(why)),
            (Err(why), Some(job)) => self.feed_event(Event::Worker(job, Reply::Failed(why))),
        }
    }

    fn copy(&mut self, text: &str) -> anyhow::Result<()> {
        use crossterm::Command;
        let mut bytes = String::new();
        crossterm::clipboard::CopyToClipboard::to_clipboard_from(text).write_ansi(&mut bytes)?;
        if let Some(tty) = &mut self.tty {
            tty.get_mut().send(bytes.as_bytes())?;
        }
        Ok(())
    }

    fn save(&mut self, settings: &Settings) -> anyhow::Result<()> {
        match self.options.config.clone() {
            Some(path) => self.hand_out(Job::WriteFile {
                path,
                contents: settings.write().into(),
                existing: Existing::Replace,
                make_dir: true,
            }),
            None => self.feed_event(Event::Notice("no config directory: set HOME or XDG_CONFIG_HOME".into())),
        }
    }

    fn redraw(&mut self) {
        if let Some(tty) = &self.tty {
            let size = tty.get_ref().size();
            self.app.ui.size = size;
            self.screen.reset(size);
        }
        self.draw_soon(Duration::ZERO);
    }

    fn signalled(&mut self, which: Sig) -> anyhow::Result<()> {
        match which {
            Sig::End => self.quit = true,
            Sig::Stop => self.suspend()?,
            Sig::Continue => self.retake()?,
            Sig::Resize => {
                let (w, h) = self.tty.as_ref().map_or((80, 24), |t| t.get_ref().size());
                self.feed_event(Event::Resize(w, h))?;
            }
        }
        Ok(())
    }

    /// Gives the terminal back, stops, and takes it again when continued.
    fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::STOP)?;
        self.retake()
    }

    fn retake(&mut self) -> anyhow::Result<()> {
        terminal::restore();
        if let Some(tty) = &mut self.tty {
            tty.get_mut().retake()?;
        }
        self.redraw();
        Ok(())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.inbox.close();
        let _ = &self.outbox;
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
