//! When findings were there in a recording that is replayed.

use crate::doctor::finding::Severity;

/// More slots than most screens have columns for.
const MAX_SLOTS: u64 = 200;

/// The worst finding in each part of a recording, as far as it was judged. All parts have the same length of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayTimeline {
    slots: Vec<TimelineSlot>,
    first_ns: i64,
    last_ns: i64,
}

/// A part of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimelineSlot {
    /// It has no sample, or its samples were not judged yet.
    #[default]
    NotJudged,
    /// Its worst warning or critical finding, if there was one.
    Judged(Option<Severity>),
}

impl ReplayTimeline {
    /// The timeline of a recording with this many ticks between two times (wall clock, ns since 1970), of which nothing is
    /// judged.
    pub fn new(first_ns: i64, last_ns: i64, ticks: u64) -> Self {
        // Two ticks for each slot at least, so that a tick that is late leaves none empty.
        let slots = (ticks / 2).clamp(1, MAX_SLOTS) as usize;
        Self { slots: vec![TimelineSlot::default(); slots], first_ns, last_ns }
    }

    /// Whether there is no slot: nobody judges the recording, as for a picture of one time.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of a time.
    pub fn slot_at(&self, wall_ns: i64) -> usize {
        self.position(wall_ns, self.slots.len())
    }

    /// Which of `parts` equal parts of the recording a time is in.
    pub fn position(&self, wall_ns: i64, parts: usize) -> usize {
        let whole = i128::from(self.last_ns) - i128::from(self.first_ns) + 1;
        let gone = (i128::from(wall_ns) - i128::from(self.first_ns)).clamp(0, (whole - 1).max(0));
        (gone * parts as i128 / whole.max(1)) as usize
    }

    /// The middle of the part `index` of `parts` equal ones, wall clock, ns since 1970.
    pub fn time_of(&self, index: usize, parts: usize) -> i64 {
        let whole = i128::from(self.last_ns) - i128::from(self.first_ns);
        let gone = whole * (2 * index as i128 + 1) / (2 * parts.max(1) as i128);
        (i128::from(self.first_ns) + gone) as i64
    }

    /// Notes what was found in a slot.
    pub fn judge(&mut self, slot: usize, worst: Option<Severity>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = TimelineSlot::Judged(worst);
        }
    }

    /// What the part `index` of `parts` equal ones shows: the worst of its slots.
    pub fn part(&self, index: usize, parts: usize) -> TimelineSlot {
        let len = self.slots.len();
        let from = index * len / parts.max(1);
        let to = ((index + 1) * len / parts.max(1)).max(from + 1);
        let judged = self.slots.iter().take(to).skip(from).filter_map(|slot| match slot {
            TimelineSlot::Judged(worst) => Some(*worst),
            TimelineSlot::NotJudged => None,
        });
        judged.max().map_or(TimelineSlot::NotJudged, TimelineSlot::Judged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shows_the_worst_of_its_slots() {
        let mut timeline = ReplayTimeline::new(1000, 1999, 20);
        assert_eq!((timeline.slot_at(0), timeline.slot_at(1099), timeline.slot_at(1100)), (0, 0, 1));
        assert_eq!(timeline.slot_at(5000), 9);
        timeline.judge(0, None);
        timeline.judge(1, Some(Severity::Warn));
        timeline.judge(2, Some(Severity::Critical));
        timeline.judge(99, Some(Severity::Critical));
        use TimelineSlot::{Judged, NotJudged};
        let parts = |n| (0..n).map(|i| timeline.part(i, n)).collect::<Vec<_>>();
        assert_eq!(parts(5)[..3], [Judged(Some(Severity::Warn)), Judged(Some(Severity::Critical)), NotJudged]);
        // More parts than slots: a slot fills several.
        assert_eq!(
            parts(20)[..5],
            [
                Judged(None),
                Judged(None),
                Judged(Some(Severity::Warn)),
                Judged(Some(Severity::Warn)),
                Judged(Some(Severity::Critical))
            ]
        );
    }

    #[test]
    fn times_and_parts_belong_together() {
        for (first, last) in [(0, 3_600_000_000_000), (7, 7), (9, 3), (i64::MIN, i64::MAX)] {
            let timeline = ReplayTimeline::new(first, last, 1000);
            for part in 0..60 {
                let at = timeline.position(timeline.time_of(part, 60), 60);
                assert!(at == part || last - first.min(last) < 60, "{first} {last}: {part} {at}");
            }
        }
    }
}
