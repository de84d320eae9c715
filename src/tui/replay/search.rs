//! Searching a recording for the tick at which a finding begins: the same engine looks at every tick on the way.
//!
//! A day takes a while, so it goes in steps: whoever searches can say how far it is, and stop.

use super::player::PAST;
use crate::diagnose::RuleEngine;
use crate::diagnose::transitions::{FindingTransition, TransitionDetector};
use crate::model::system_state::SystemState;
use crate::record::Observation;
use crate::record::apply;
use crate::record::decoder::DecodedTick;
use crate::record::reader::{ReadAt, RecordingReader};
use std::io;
use std::ops::Range;

/// Ticks looked through at once on the way back: of these the last onset counts.
const STRETCH: u32 = 1200;

/// A tick at which something begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub number: u32,
    /// What begins; at least one.
    pub onsets: Vec<FindingTransition>,
}

/// How a search is.
#[derive(Debug)]
pub enum Course {
    /// Not at its end: the wall clock it has come to, ns.
    On(i64),
    /// There.
    Found(Found),
    /// There is none that way.
    Nothing,
}

/// A search under way. It moves the reader; whoever reads on must find the place again.
pub struct Search {
    forward: bool,
    first: u32,
    /// Ticks whose onsets count in this stretch.
    range: Range<u32>,
    walk: Option<Walk>,
    /// The last one of this stretch, on the way back.
    last: Option<Found>,
    /// Wall clock of the tick read last, ns.
    wall_ns: i64,
}

impl Search {
    /// From the tick of this number on, or back; its own onsets do not count.
    pub fn new<B: ReadAt>(reader: &RecordingReader<B>, from: u32, forward: bool) -> Self {
        let span = reader.span();
        let range = match forward {
            true => from.saturating_add(1)..span.last_number.saturating_add(1),
            false => from.saturating_sub(STRETCH).max(span.first_number)..from,
        };
        Self { forward, first: span.first_number, range, walk: None, last: None, wall_ns: 0 }
    }

    /// Looks at one more tick.
    pub fn step<B: ReadAt>(&mut self, reader: &mut RecordingReader<B>) -> io::Result<Course> {
        if self.range.is_empty() {
            return Ok(Course::Nothing);
        }
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => {
                let from = self.range.start.saturating_sub(PAST).max(self.first);
                let lines = reader.seek(from)?;
                none.insert(Walk::new(reader, lines))
            }
        };
        let Some(moment) = reader.next_tick()?.filter(|m| m.number < self.range.end) else {
            return Ok(self.end_of_stretch());
        };
        let number = moment.number;
        self.wall_ns = moment.wall_ns;
        let onsets = walk.take(moment);
        if number >= self.range.start && !onsets.is_empty() {
            let found = Found { number, onsets };
            match self.forward {
                true => return Ok(Course::Found(found)),
                false => self.last = Some(found),
            }
        }
        Ok(Course::On(self.wall_ns))
    }

    fn end_of_stretch(&mut self) -> Course {
        if let Some(found) = self.last.take() {
            return Course::Found(found);
        }
        let end = self.range.start;
        if self.forward || end <= self.first {
            self.range = 0..0;
            return Course::Nothing;
        }
        self.range = end.saturating_sub(STRETCH).max(self.first)..end;
        self.walk = None;
        Course::On(self.wall_ns)
    }
}

/// A world of its own that follows the recording.
struct Walk {
    world: SystemState,
    engine: RuleEngine,
    onsets: TransitionDetector,
}

impl Walk {
    fn new<B: ReadAt>(reader: &RecordingReader<B>, lines: Vec<Observation>) -> Self {
        let mut world = SystemState::new(reader.header.host(), reader.header.log_clock());
        lines.into_iter().for_each(|entry| apply(&mut world, entry));
        Self { world, engine: RuleEngine::default(), onsets: TransitionDetector::default() }
    }

    fn take(&mut self, moment: DecodedTick) -> Vec<FindingTransition> {
        moment
            .full_state
            .into_iter()
            .flatten()
            .chain(moment.observations)
            .for_each(|entry| apply(&mut self.world, entry));
        self.engine.evaluate(&self.world);
        self.onsets.update(&self.engine)
    }
}
