//! Searches a recording for the tick at which a finding begins, by running the rules on every tick on the way.

use crate::doctor::RuleEngine;
use crate::doctor::transitions::{FindingTransition, TransitionDetector};
use crate::model::system_state::SystemState;
use crate::recording::reader::{ReadAt, RecordingReader};
use std::io;

/// Ticks read before those searched: hung tasks are found by how long they wait.
const PAST_TICKS: u32 = 300;
/// Ticks searched at once when going back; the last transition among them counts.
const CHUNK_TICKS: u32 = 1200;

/// The number of a tick and the findings that begin at it, at least one.
type FoundTick = (u32, Vec<FindingTransition>);

/// Searches from the tick with this number on, whose own transitions do not count; `Some(None)`: there is no such tick.
/// A day of recording takes a while: `goes_on` gets the wall clock of every tick read, ns since 1970, and may stop the
/// search (`None`). The caller must reposition the reader afterwards.
pub(super) fn find_transition<B: ReadAt, E: From<io::Error>>(
    reader: &mut RecordingReader<B>,
    from: u32,
    forward: bool,
    mut goes_on: impl FnMut(i64) -> Result<bool, E>,
) -> Result<Option<Option<FoundTick>>, E> {
    let span = reader.span;
    let chunk_before = |end: u32| end.saturating_sub(CHUNK_TICKS).max(span.first_number)..end;
    let mut range = match forward {
        true => from.saturating_add(1)..span.last_number.saturating_add(1),
        false => chunk_before(from),
    };
    while !range.is_empty() {
        let log = reader.seek(range.start.saturating_sub(PAST_TICKS).max(span.first_number))?;
        let mut system = SystemState::new(reader.header.host(), reader.header.log_clock());
        log.into_iter().for_each(|observation| _ = system.apply(observation));
        let (mut engine, mut transitions) = (RuleEngine::default(), TransitionDetector::default());
        let mut found = None;
        while let Some(tick) = reader.next_tick()?.filter(|tick| tick.number < range.end) {
            let observations = tick.full_state.into_iter().flatten().chain(tick.observations);
            observations.for_each(|observation| _ = system.apply(observation));
            engine.evaluate(&system);
            let begun = transitions.update(&engine);
            if tick.number >= range.start && !begun.is_empty() {
                found = Some((tick.number, begun));
                if forward {
                    break;
                }
            }
            if !goes_on(tick.wall_ns)? {
                return Ok(None);
            }
        }
        if forward || found.is_some() {
            return Ok(Some(found));
        }
        range = chunk_before(range.start);
    }
    Ok(Some(None))
}
