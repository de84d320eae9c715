//! The thread that reads a recording at its pace. A child process reads the file, so the thread may wait forever.
//!
//! After each event it waits until the event was applied, so that a huge recording does not fill the memory.

use crate::recording::decoder::DecodedTick;
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::tui::view::{ReplayEffect, ReplayEvent};
use crate::tui::views::replay::HISTORY_TICKS;
use crate::tui::views::replay::search::find_transition;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// What ticks sent at once may cost while the past is read.
const BATCH_BYTES: usize = 16 << 20;
/// A longer gap in the recording is shortened to this.
const MAX_GAP: Duration = Duration::from_secs(5);
/// Interval between progress events of a search.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Sends an event to the event loop; false: the loop has ended.
pub(crate) type ReplayEventSink = Box<dyn Fn(ReplayEvent) -> bool + Send>;

enum PlayerCommand {
    Effect(ReplayEffect),
    Acknowledge,
}

pub(crate) struct ReplayPlayer(Sender<PlayerCommand>);

impl ReplayPlayer {
    /// Starts playing at `at` (wall clock, ns since 1970), or at the beginning.
    pub(crate) fn start<B: ReadAt + Send + 'static>(
        reader: RecordingReader<B>,
        at: Option<i64>,
        sink: ReplayEventSink,
    ) -> io::Result<Self> {
        let (to, from) = channel();
        std::thread::Builder::new().name("replay".into()).spawn(move || {
            let mut deck = PlayerThread {
                reader,
                link: LoopLink { sink, commands: from, queued_effects: Vec::new() },
                next_tick: None,
                speed: 1,
                next_due: None,
                position: None,
            };
            let done = deck.start_at(at).and_then(|()| deck.run());
            if let Err(PlayerError::Failed(err)) = done {
                (deck.link.sink)(ReplayEvent::Failed(crate::model::reading::describe_io_error(&err)));
            }
        })?;
        Ok(Self(to))
    }

    pub(crate) fn run_effect(&self, effect: ReplayEffect) {
        let _ = self.0.send(PlayerCommand::Effect(effect));
    }

    /// Tells the player that its last event was applied.
    pub(crate) fn acknowledge(&self) {
        let _ = self.0.send(PlayerCommand::Acknowledge);
    }
}

enum PlayerError {
    LoopGone,
    Failed(io::Error),
}

impl From<io::Error> for PlayerError {
    fn from(err: io::Error) -> Self {
        PlayerError::Failed(err)
    }
}

struct PlayerThread<B> {
    reader: RecordingReader<B>,
    link: LoopLink,
    /// The next tick, read ahead to know when it is due.
    next_tick: Option<DecodedTick>,
    speed: u16,
    /// When the next tick is due; `None` while paused.
    next_due: Option<Instant>,
    /// Number and wall clock of the last tick sent.
    position: Option<(u32, i64)>,
}

impl<B: ReadAt> PlayerThread<B> {
    fn start_at(&mut self, at: Option<i64>) -> Result<(), PlayerError> {
        let number = match at {
            Some(at) => self.reader.tick_number_at(at)?,
            None => self.reader.span.first_number,
        };
        self.seek(number)?;
        self.schedule_next()
    }

    fn run(&mut self) -> Result<(), PlayerError> {
        loop {
            if let Some(effect) = (!self.link.queued_effects.is_empty()).then(|| self.link.queued_effects.remove(0)) {
                self.apply_effect(effect)?;
                continue;
            }
            let order = match self.next_due {
                Some(due) => self.link.commands.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => self.link.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(PlayerCommand::Effect(effect)) => self.apply_effect(effect)?,
                Ok(PlayerCommand::Acknowledge) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.step_forward()?;
                    self.schedule_next()?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(PlayerError::LoopGone),
            }
        }
    }

    fn apply_effect(&mut self, effect: ReplayEffect) -> Result<(), PlayerError> {
        match effect {
            ReplayEffect::Play(pace) => {
                self.speed = pace;
                self.schedule_next()?;
            }
            ReplayEffect::Pause => self.next_due = None,
            ReplayEffect::Step(1) => self.step_forward()?,
            ReplayEffect::Step(by) => {
                let (now, _) = self.position.unwrap_or_default();
                let span = self.reader.span;
                self.seek(now.saturating_add_signed(by).clamp(span.first_number, span.last_number))?;
            }
            ReplayEffect::SeekTime(wall_ns) => {
                let number = self.reader.tick_number_at(wall_ns)?;
                self.seek(number)?;
            }
            ReplayEffect::FindFinding { forward } => {
                self.next_due = None;
                self.find_finding(forward)?;
            }
        }
        // While playing, go on from the new position.
        if self.next_due.is_some() { self.schedule_next() } else { Ok(()) }
    }

    /// Reads the next tick ahead and computes when it is due.
    fn schedule_next(&mut self) -> Result<(), PlayerError> {
        if self.next_tick.is_none() {
            self.next_tick = self.reader.next_tick()?;
        }
        let Some(next) = &self.next_tick else {
            self.next_due = None;
            return self.link.send_event(ReplayEvent::EndReached);
        };
        let gap = self.position.map_or(0, |(_, wall)| next.wall_ns.saturating_sub(wall).max(0) as u64);
        let wait = Duration::from_nanos(gap).min(MAX_GAP) / u32::from(self.speed.max(1));
        // Keep the recorded pace; if reading is slower, do not try to catch up.
        let now = Instant::now();
        self.next_due =
            Some(self.next_due.map_or(now, |due| due.max(now - wait.min(Duration::from_millis(50)))) + wait);
        Ok(())
    }

    fn step_forward(&mut self) -> Result<(), PlayerError> {
        let next = match self.next_tick.take() {
            Some(next) => Some(next),
            None => self.reader.next_tick()?,
        };
        match next {
            Some(moment) => self.send_ticks(vec![moment], true),
            None => self.link.send_event(ReplayEvent::EndReached),
        }
    }

    fn send_ticks(&mut self, moments: Vec<DecodedTick>, settled: bool) -> Result<(), PlayerError> {
        if let Some(last) = moments.last() {
            self.position = Some((last.number, last.wall_ns));
        }
        let unreadable = self.reader.unreadable_frames;
        self.link.send_event(ReplayEvent::Ticks { ticks: moments, is_settled: settled, unreadable_frames: unreadable })
    }

    /// Goes to the tick with this number, by way of the ticks before it.
    fn seek(&mut self, number: u32) -> Result<(), PlayerError> {
        let first = self.reader.span.first_number;
        let lines = self.reader.seek(number.saturating_sub(HISTORY_TICKS).max(first))?;
        self.next_tick = None;
        self.link.send_event(ReplayEvent::Reset(lines))?;
        let (mut batch, mut cost) = (Vec::new(), 0);
        // The last tick of a damaged file may have a lower number than requested.
        while let Some(moment) = self.reader.next_tick()? {
            if moment.number > number && !batch.is_empty() {
                self.next_tick = Some(moment);
                break;
            }
            let there = moment.number >= number;
            cost += moment.cost;
            batch.push(moment);
            if there {
                break;
            }
            if cost > BATCH_BYTES {
                let last: Option<DecodedTick> = batch.pop();
                cost = last.as_ref().map_or(0, |tick| tick.cost);
                self.send_ticks(std::mem::take(&mut batch), false)?;
                batch.extend(last);
            }
        }
        self.send_ticks(batch, true)
    }

    /// Goes to the tick at which a finding begins, unless another effect arrives meanwhile.
    fn find_finding(&mut self, forward: bool) -> Result<(), PlayerError> {
        let Some((now, wall_ns)) = self.position else { return Ok(()) };
        self.link.send_event(ReplayEvent::Searching { forward, wall_ns })?;
        let unreadable = self.reader.unreadable_frames;
        let (link, mut told) = (&mut self.link, Instant::now());
        let found = find_transition(&mut self.reader, now, forward, |wall_ns| {
            if told.elapsed() >= PROGRESS_INTERVAL {
                link.send_event(ReplayEvent::Searching { forward, wall_ns })?;
                told = Instant::now();
            }
            link.poll().map(|is_asked| !is_asked)
        })?;
        // The search has read these frames a second time: do not count damage twice.
        self.reader.unreadable_frames = unreadable;
        self.next_tick = None;
        if let Some(Some((number, _))) = &found {
            self.seek(*number)?;
        } else {
            self.reader.seek(now)?;
            while let Some(moment) = self.reader.next_tick()? {
                if moment.number > now {
                    self.next_tick = Some(moment);
                    break;
                }
            }
        }
        let onsets = found.map(|found| found.map(|(_, transitions)| transitions).unwrap_or_default());
        self.link.send_event(ReplayEvent::SearchEnded { forward, transitions: onsets })
    }
}

/// The player's link to the event loop.
struct LoopLink {
    sink: ReplayEventSink,
    commands: Receiver<PlayerCommand>,
    /// Effects that came while an event was being applied.
    queued_effects: Vec<ReplayEffect>,
}

impl LoopLink {
    /// Whether an effect is queued.
    fn poll(&mut self) -> Result<bool, PlayerError> {
        match self.commands.try_recv() {
            Ok(PlayerCommand::Effect(effect)) => self.queued_effects.push(effect),
            Ok(PlayerCommand::Acknowledge) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(PlayerError::LoopGone),
        }
        Ok(!self.queued_effects.is_empty())
    }

    fn send_event(&mut self, event: ReplayEvent) -> Result<(), PlayerError> {
        if !(self.sink)(event) {
            return Err(PlayerError::LoopGone);
        }
        loop {
            match self.commands.recv() {
                Ok(PlayerCommand::Acknowledge) => return Ok(()),
                Ok(PlayerCommand::Effect(effect)) => self.queued_effects.push(effect),
                Err(_) => return Err(PlayerError::LoopGone),
            }
        }
    }
}
