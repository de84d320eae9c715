//! The recent past in bounded memory, for graphs and for stepping back.

use super::disk::DiskRate;
use super::memory_stalls::MemoryStalls;
use super::pressure::PressureRaw;
use super::process::ProcessTable;
use super::snapshot::Snapshot;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of ticks.
pub(crate) const MAX_FRAMES: usize = 900;
/// Maximum size in bytes, estimated.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// Bytes that a tick needs for the rates of a device; rates shared with another tick count 0.
fn device_bytes(rate: &Arc<DiskRate>) -> usize {
    let latency = rate.latency.as_ref().map_or(0, |l| unshared_bytes(l, l.heap_bytes()));
    size_of::<Arc<DiskRate>>() + unshared_bytes(rate, size_of::<DiskRate>() + latency)
}

/// `bytes`, or 0 if another tick shares the value.
fn unshared_bytes<T>(shared: &Arc<T>, bytes: usize) -> usize {
    if Arc::strong_count(shared) > 1 { 0 } else { bytes }
}

#[derive(Debug)]
pub struct HistoryFrame {
    pub snapshot: Arc<Snapshot>,
    /// The busiest tasks, in this order.
    pub tasks: ProcessTable,
    bytes: usize,
}

/// Ticks, oldest first.
#[derive(Debug, Default)]
pub struct History {
    frames: VecDeque<HistoryFrame>,
    bytes: usize,
}

impl History {
    /// Appends the newest tick, and drops the oldest ones that exceed a limit.
    pub fn push(&mut self, snap: Arc<Snapshot>) {
        let bytes = size_of::<HistoryFrame>()
            + size_of::<Snapshot>()
            + snap.devices.ok().map_or(0, |d| d.iter().map(device_bytes).sum())
            + snap.syncs.ok().map_or(0, |s| s.heap_bytes())
            + snap.memory_stalls.ok().map_or(0, |s| unshared_bytes(s, size_of::<MemoryStalls>() + s.heap_bytes()))
            + snap.pressure.ok().map_or(0, |p| unshared_bytes(p, size_of::<PressureRaw>()))
            + snap.io_attribution.ok().map_or(0, |c| unshared_bytes(c, c.heap_bytes()))
            + snap.swap_areas.ok().map_or(0, |s| s.len() * 100);
        self.frames.push_back(HistoryFrame { snapshot: snap, tasks: ProcessTable::default(), bytes });
        self.bytes += bytes;
        self.trim();
    }

    /// Adds the busiest tasks to the tick with this number, if it is still stored.
    pub fn attach_tasks(&mut self, seq: u64, tasks: ProcessTable) {
        let Some(frame) = self.frames.iter_mut().rev().find(|f| f.snapshot.seq == seq) else { return };
        let more = tasks.heap_bytes();
        frame.tasks = tasks;
        frame.bytes += more;
        self.bytes += more;
        self.trim();
    }

    fn trim(&mut self) {
        while self.frames.len() > 1 && (self.frames.len() > MAX_FRAMES || self.bytes > MAX_BYTES) {
            if let Some(old) = self.frames.pop_front() {
                self.bytes -= old.bytes;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The ticks up to and including this number, oldest first.
    pub fn up_to(
        &self,
        seq: u64,
    ) -> impl DoubleEndedIterator<Item = &HistoryFrame> + ExactSizeIterator + Clone + use<'_> {
        self.frames.range(..self.frames.partition_point(|f| f.snapshot.seq <= seq))
    }

    /// All ticks, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &HistoryFrame> + Clone {
        self.frames.iter()
    }

    /// The tick with this number, or the nearest one that is still stored.
    pub fn nearest(&self, seq: u64) -> Option<&HistoryFrame> {
        let at = self.frames.partition_point(|f| f.snapshot.seq < seq);
        self.frames.get(at.min(self.frames.len().saturating_sub(1)))
    }

    /// The number of the tick `by` steps from tick `seq`, within the stored ones.
    pub fn step_from(&self, seq: u64, by: isize) -> Option<u64> {
        let at = self.frames.partition_point(|f| f.snapshot.seq < seq);
        let at = at.saturating_add_signed(by).min(self.frames.len().saturating_sub(1));
        self.frames.get(at).map(|f| f.snapshot.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::{ProcessUpdate, TaskChange};
    use super::super::reading::Reading;
    use super::*;

    fn snapshot(seq: u64, devices: usize) -> Arc<Snapshot> {
        let devices = Reading::Ok((0..devices).map(|_| Arc::default()).collect());
        Arc::new(Snapshot { seq, devices, ..Default::default() })
    }

    #[test]
    fn steps_stay_within_the_stored_ticks() {
        let mut h: History = History::default();
        for seq in 1..=5 {
            h.push(snapshot(seq, 1));
        }
        assert_eq!((h.step_from(5, -2), h.step_from(3, -9), h.step_from(3, 9)), (Some(3), Some(1), Some(5)));
        let mut tasks = ProcessTable::new();
        tasks.apply(&ProcessUpdate { changed: vec![TaskChange::default()], ..ProcessUpdate::default() });
        h.attach_tasks(4, tasks);
        assert_eq!((h.nearest(4).unwrap().tasks.len(), h.nearest(3).unwrap().tasks.len()), (1, 0));
        assert_eq!(h.nearest(99).unwrap().snapshot.seq, 5);
        let seqs = |seq| h.up_to(seq).map(|f| f.snapshot.seq).collect::<Vec<_>>();
        assert_eq!((seqs(0), seqs(3), seqs(9)), (vec![], vec![1, 2, 3], vec![1, 2, 3, 4, 5]));
    }

    #[test]
    fn memory_is_bounded_with_many_devices_and_with_many_ticks() {
        let mut h: History = History::default();
        for seq in 0..2 * MAX_FRAMES as u64 {
            h.push(snapshot(seq, 1));
        }
        assert_eq!(h.len(), MAX_FRAMES);
        for seq in 0..200 {
            h.push(snapshot(2000 + seq, 500));
        }
        assert!(h.bytes <= MAX_BYTES && h.len() > 1);
    }
}
