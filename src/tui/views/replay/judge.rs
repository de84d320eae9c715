//! Judges a whole recording in the background, for its timeline.

use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::model::system_state::SystemState;
use crate::recording::reader::{ReadAt, RecordingReader};
use crate::tui::replay_timeline::ReplayTimeline;
use std::io;
use std::time::{Duration, Instant};

/// Interval between two events.
const EVENT_INTERVAL: Duration = Duration::from_millis(250);
/// The thread rests three times as long as it works: the program stays light while a long recording is judged.
const REST: u32 = 3;
/// Work between two rests.
const WORK: Duration = Duration::from_millis(5);

/// Slots of the timeline, each with the worst warning or critical finding in it.
pub(crate) type JudgedSlots = Vec<(usize, Option<Severity>)>;

/// Judges every tick from the first on; `sink` returns whether to go on.
pub(crate) fn judge_recording<B: ReadAt>(
    reader: &mut RecordingReader<B>,
    timeline: &ReplayTimeline,
    mut sink: impl FnMut(JudgedSlots) -> bool,
) -> io::Result<()> {
    let first = reader.span.first_number;
    let mut system = SystemState::new(reader.header.host(), reader.header.log_clock());
    reader.seek(first)?.into_iter().for_each(|observation| _ = system.apply(observation));
    let mut engine = RuleEngine::default();
    let (mut judged, mut sent, mut working) = (JudgedSlots::new(), Instant::now(), Instant::now());
    while let Some(tick) = reader.next_tick()? {
        let slot = timeline.slot_at(tick.wall_ns);
        let observations = tick.full_state.into_iter().flatten().chain(tick.observations);
        observations.for_each(|observation| _ = system.apply(observation));
        engine.evaluate(&system);
        let worst = engine.incidents.iter().map(|incident| incident.severity).filter(|s| *s > Severity::Note).max();
        match judged.last_mut() {
            Some((last, known)) if *last == slot => *known = worst.max(*known),
            _ => judged.push((slot, worst)),
        }
        // The newest slot is kept, because it may get worse.
        if sent.elapsed() >= EVENT_INTERVAL && judged.len() > 1 {
            let newest = judged.pop();
            if !sink(std::mem::take(&mut judged)) {
                return Ok(());
            }
            judged.extend(newest);
            sent = Instant::now();
        }
        let worked = working.elapsed();
        if worked >= WORK {
            std::thread::sleep(worked * REST);
            working = Instant::now();
        }
    }
    sink(judged);
    Ok(())
}
