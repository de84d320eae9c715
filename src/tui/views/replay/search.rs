//! Searches a recording for the tick at which a finding begins, by running the rules on every tick on the way.
//!
//! A day of recording takes a while, so the search goes in steps between which it can report progress and be stopped.

use crate::doctor::RuleEngine;
use crate::doctor::transitions::{FindingTransition, TransitionDetector};
use crate::model::observation::Observation;
use crate::model::system_state::SystemState;
use crate::recording::decoder::DecodedTick;
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::tui::views::replay::HISTORY_TICKS;
use std::io;
use std::ops::Range;

/// Ticks searched at once when going back; the last transition among them counts.
const CHUNK_TICKS: u32 = 1200;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundTick {
    pub number: u32,
    /// The findings that begin; at least one.
    pub transitions: Vec<FindingTransition>,
}

/// Outcome of a search step.
#[derive(Debug)]
pub(crate) enum SearchProgress {
    /// Not finished; holds the wall clock reached, ns since 1970.
    Searching(i64),
    Found(FoundTick),
    /// There is no such tick in this direction.
    NotFound,
}

/// A search under way. It moves the reader; the caller must reposition it afterwards.
pub(crate) struct FindingSearch {
    forward: bool,
    first_tick: u32,
    /// Ticks of this chunk whose transitions count.
    range: Range<u32>,
    scan: Option<TickScan>,
    /// The last tick found in this chunk, when going back.
    last_found: Option<FoundTick>,
    /// Wall clock of the last tick read, ns since 1970.
    wall_ns: i64,
}

impl FindingSearch {
    /// Starts at the tick with this number, whose own transitions do not count.
    pub(crate) fn new<B: ReadAt>(reader: &RecordingReader<B>, from: u32, forward: bool) -> Self {
        let span = reader.span();
        let range = match forward {
            true => from.saturating_add(1)..span.last_number.saturating_add(1),
            false => from.saturating_sub(CHUNK_TICKS).max(span.first_number)..from,
        };
        Self { forward, first_tick: span.first_number, range, scan: None, last_found: None, wall_ns: 0 }
    }

    pub(crate) fn step<B: ReadAt>(&mut self, reader: &mut RecordingReader<B>) -> io::Result<SearchProgress> {
        if self.range.is_empty() {
            return Ok(SearchProgress::NotFound);
        }
        let walk = match &mut self.scan {
            Some(walk) => walk,
            none => {
                let from = self.range.start.saturating_sub(HISTORY_TICKS).max(self.first_tick);
                let lines = reader.seek(from)?;
                none.insert(TickScan::new(reader, lines))
            }
        };
        let Some(moment) = reader.next_tick()?.filter(|m| m.number < self.range.end) else {
            return Ok(self.finish_chunk());
        };
        let number = moment.number;
        self.wall_ns = moment.wall_ns;
        let onsets = walk.apply_tick(moment);
        if number >= self.range.start && !onsets.is_empty() {
            let found = FoundTick { number, transitions: onsets };
            match self.forward {
                true => return Ok(SearchProgress::Found(found)),
                false => self.last_found = Some(found),
            }
        }
        Ok(SearchProgress::Searching(self.wall_ns))
    }

    fn finish_chunk(&mut self) -> SearchProgress {
        if let Some(found) = self.last_found.take() {
            return SearchProgress::Found(found);
        }
        let end = self.range.start;
        if self.forward || end <= self.first_tick {
            self.range = 0..0;
            return SearchProgress::NotFound;
        }
        self.range = end.saturating_sub(CHUNK_TICKS).max(self.first_tick)..end;
        self.scan = None;
        SearchProgress::Searching(self.wall_ns)
    }
}

/// The system state and findings at one point of the search.
struct TickScan {
    system_state: SystemState,
    engine: RuleEngine,
    transitions: TransitionDetector,
}

impl TickScan {
    fn new<B: ReadAt>(reader: &RecordingReader<B>, lines: Vec<Observation>) -> Self {
        let mut world = SystemState::new(reader.header.host(), reader.header.log_clock());
        lines.into_iter().for_each(|entry| _ = world.apply(entry));
        Self { system_state: world, engine: RuleEngine::default(), transitions: TransitionDetector::default() }
    }

    fn apply_tick(&mut self, moment: DecodedTick) -> Vec<FindingTransition> {
        moment
            .full_state
            .into_iter()
            .flatten()
            .chain(moment.observations)
            .for_each(|entry| _ = self.system_state.apply(entry));
        self.engine.evaluate(&self.system_state);
        self.transitions.update(&self.engine)
    }
}
