//! The thread that reads a recording at its pace. It asks a child for the file's bytes and may wait for ever.
//!
//! Before it tells more it waits until what it told was taken in: a file made to be huge does not pile up.

use super::search::{Course, Found, Search};
use super::{ReplayEffect, ReplayNews};
use crate::record::decoder::DecodedTick;
use crate::record::reader::{ReadAt, RecordingReader};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Ticks before the one asked for that are read too: graphs need a past, and what hangs is seen by waiting.
pub(super) const PAST: u32 = 300;
/// Rows of tasks told at once while the past is read.
const BATCH: usize = 100_000;
/// A pause in a recording is not waited for longer than this.
const LONGEST: Duration = Duration::from_secs(5);
/// A search tells how far it is as often as this.
const TOLD: Duration = Duration::from_millis(200);

/// Takes news to the run loop; false: nobody wants more.
pub type Sink = Box<dyn Fn(ReplayNews) -> bool + Send>;

enum Order {
    Do(ReplayEffect),
    Taken,
}

/// The player's other end.
pub struct Player(Sender<Order>);

impl Player {
    /// Begins at `at` (wall clock, ns), or at the start, and plays.
    pub fn start<B: ReadAt + Send + 'static>(
        reader: RecordingReader<B>,
        at: Option<i64>,
        sink: Sink,
    ) -> io::Result<Self> {
        let (to, from) = channel();
        std::thread::Builder::new().name("replay".into()).spawn(move || {
            let mut deck =
                Deck { reader, sink, from, waiting: Vec::new(), next: None, pace: 1, due: None, at: None };
            let done = deck.begin(at).and_then(|()| deck.run());
            if let Err(Stop::Failed(err)) = done {
                (deck.sink)(ReplayNews::Failed(crate::model::reading::describe_io_error(&err)));
            }
        })?;
        Ok(Self(to))
    }

    /// Has it do something.
    pub fn act(&self, effect: ReplayEffect) {
        let _ = self.0.send(Order::Do(effect));
    }

    /// What it told last was taken in.
    pub fn taken(&self) {
        let _ = self.0.send(Order::Taken);
    }
}

enum Stop {
    /// The loop is gone.
    Left,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(err: io::Error) -> Self {
        Stop::Failed(err)
    }
}

struct Deck<B> {
    reader: RecordingReader<B>,
    sink: Sink,
    from: Receiver<Order>,
    /// Orders that came while news was being taken in.
    waiting: Vec<ReplayEffect>,
    /// Read ahead: when it is due depends on its time.
    next: Option<DecodedTick>,
    pace: u16,
    /// When the next tick is to be told; `None`: paused.
    due: Option<Instant>,
    /// Number and wall clock of the tick told last.
    at: Option<(u32, i64)>,
}

impl<B: ReadAt> Deck<B> {
    fn begin(&mut self, at: Option<i64>) -> Result<(), Stop> {
        let number = match at {
            Some(at) => self.reader.tick_number_at(at)?,
            None => self.reader.span().first_number,
        };
        self.go(number)?;
        self.plan()
    }

    fn run(&mut self) -> Result<(), Stop> {
        loop {
            if let Some(effect) = (!self.waiting.is_empty()).then(|| self.waiting.remove(0)) {
                self.act(effect)?;
                continue;
            }
            let order = match self.due {
                Some(due) => self.from.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => self.from.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(Order::Do(effect)) => self.act(effect)?,
                Ok(Order::Taken) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.on()?;
                    self.plan()?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Left),
            }
        }
    }

    fn act(&mut self, effect: ReplayEffect) -> Result<(), Stop> {
        match effect {
            ReplayEffect::Play(pace) => {
                self.pace = pace;
                self.plan()?;
            }
            ReplayEffect::Pause => self.due = None,
            ReplayEffect::Step(1) => self.on()?,
            ReplayEffect::Step(by) => {
                let (now, _) = self.at.unwrap_or_default();
                let span = self.reader.span();
                self.go(now.saturating_add_signed(by).clamp(span.first_number, span.last_number))?;
            }
            ReplayEffect::Time(wall_ns) => {
                let number = self.reader.tick_number_at(wall_ns)?;
                self.go(number)?;
            }
            ReplayEffect::Find { forward } => {
                self.due = None;
                self.find(forward)?;
            }
        }
        // Whoever plays goes on from there.
        if self.due.is_some() { self.plan() } else { Ok(()) }
    }

    /// Reads the tick ahead and sets when it is due.
    fn plan(&mut self) -> Result<(), Stop> {
        if self.next.is_none() {
            self.next = self.reader.next_tick()?;
        }
        let Some(next) = &self.next else {
            self.due = None;
            return self.tell(ReplayNews::End);
        };
        let gap = self.at.map_or(0, |(_, wall)| next.wall_ns.saturating_sub(wall).max(0) as u64);
        let wait = Duration::from_nanos(gap).min(LONGEST) / u32::from(self.pace.max(1));
        // In step with the recording, unless that is too quick for us.
        let now = Instant::now();
        self.due =
            Some(self.due.map_or(now, |due| due.max(now - wait.min(Duration::from_millis(50)))) + wait);
        Ok(())
    }

    /// Tells the next tick.
    fn on(&mut self) -> Result<(), Stop> {
        let next = match self.next.take() {
            Some(next) => Some(next),
            None => self.reader.next_tick()?,
        };
        match next {
            Some(moment) => self.ticks(vec![moment], true),
            None => self.tell(ReplayNews::End),
        }
    }

    fn ticks(&mut self, moments: Vec<DecodedTick>, settled: bool) -> Result<(), Stop> {
        if let Some(last) = moments.last() {
            self.at = Some((last.number, last.wall_ns));
        }
        let unreadable = self.reader.unreadable_frames;
        self.tell(ReplayNews::Ticks { moments, settled, unreadable })
    }

    /// To the tick of this number, by way of the ticks before it.
    fn go(&mut self, number: u32) -> Result<(), Stop> {
        let first = self.reader.span().first_number;
        let lines = self.reader.seek(number.saturating_sub(PAST).max(first))?;
        self.next = None;
        self.tell(ReplayNews::Anew(lines))?;
        let (mut batch, mut rows) = (Vec::new(), 0);
        // The last one of a damaged file may have a lower number than was asked for.
        while let Some(moment) = self.reader.next_tick()? {
            if moment.number > number && !batch.is_empty() {
                self.next = Some(moment);
                break;
            }
            let there = moment.number >= number;
            rows += moment.row_count();
            batch.push(moment);
            if there {
                break;
            }
            if rows > BATCH {
                rows = 0;
                let last = batch.pop();
                self.ticks(std::mem::take(&mut batch), false)?;
                batch.extend(last);
            }
        }
        self.ticks(batch, true)
    }

    /// To the tick at which a finding begins, unless something else is wanted meanwhile.
    fn find(&mut self, forward: bool) -> Result<(), Stop> {
        let Some((now, wall_ns)) = self.at else { return Ok(()) };
        self.tell(ReplayNews::Searching { forward, wall_ns })?;
        let unreadable = self.reader.unreadable_frames;
        let found = self.search(now, forward)?;
        // What was read twice is not damaged twice.
        self.reader.unreadable_frames = unreadable;
        self.next = None;
        if let Some(Some(Found { number, .. })) = &found {
            self.go(*number)?;
        } else {
            self.reader.seek(now)?;
            while let Some(moment) = self.reader.next_tick()? {
                if moment.number > now {
                    self.next = Some(moment);
                    break;
                }
            }
        }
        let onsets = found.map(|found| found.map(|f| f.onsets).unwrap_or_default());
        self.tell(ReplayNews::Searched { forward, onsets })
    }

    /// `None`: something else is wanted.
    fn search(&mut self, from: u32, forward: bool) -> Result<Option<Option<Found>>, Stop> {
        let mut search = Search::new(&self.reader, from, forward);
        let mut told = Instant::now();
        loop {
            match search.step(&mut self.reader)? {
                Course::Found(found) => return Ok(Some(Some(found))),
                Course::Nothing => return Ok(Some(None)),
                Course::On(wall_ns) if told.elapsed() >= TOLD => {
                    self.tell(ReplayNews::Searching { forward, wall_ns })?;
                    told = Instant::now();
                }
                Course::On(_) => {}
            }
            match self.from.try_recv() {
                Ok(Order::Do(effect)) => self.waiting.push(effect),
                Ok(Order::Taken) | Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(Stop::Left),
            }
            if !self.waiting.is_empty() {
                return Ok(None);
            }
        }
    }

    fn tell(&mut self, news: ReplayNews) -> Result<(), Stop> {
        if !(self.sink)(news) {
            return Err(Stop::Left);
        }
        loop {
            match self.from.recv() {
                Ok(Order::Taken) => return Ok(()),
                Ok(Order::Do(effect)) => self.waiting.push(effect),
                Err(_) => return Err(Stop::Left),
            }
        }
    }
}
