//! What applying and restoring a change share.

use super::journal::Journal;
use super::journal_record::{JournalRecord, KnobValuePair};
use super::kill_points::KillPoints;
use super::knob_id::KnobId;
use super::knob_io::{KnobError, KnobIo};
use std::io;
use std::time::Duration;

/// How long to wait for another process that is making a change.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// What applying and restoring work on.
pub struct TuningContext<'a> {
    /// Reads and writes knobs.
    pub io: &'a mut dyn KnobIo,
    /// The journal of this boot.
    pub journal: Journal,
    /// Where tests kill processes.
    pub kill_points: KillPoints,
}

impl TuningContext<'_> {
    /// Appends a record and counts the kill points of doing so.
    pub fn append_record(&mut self, record: &JournalRecord) -> io::Result<()> {
        self.journal.append(record, &mut self.kill_points)
    }

    /// The values of a knob and of its linked knobs, the knob itself first. Linked knobs that cannot be read are left
    /// out.
    pub fn read_with_linked(&mut self, knob_id: &KnobId) -> Result<Vec<KnobValuePair>, KnobError> {
        let own = self.io.read(knob_id)?.value;
        let mut all = vec![(knob_id.clone(), own)];
        for other in knob_id.with_linked().into_iter().skip(1) {
            if let Ok(reading) = self.io.read(&other) {
                all.push((other, reading.value));
            }
        }
        Ok(all)
    }
}

/// Whether the kernel accepted `target` as `current`. `-1` asks wbt_lat_usec for a default that only the kernel
/// knows.
pub fn is_accepted(knob_id: &KnobId, target: &str, got: &str) -> bool {
    target == got || (knob_id.definition().name == "wbt_lat_usec" && target == "-1")
}
