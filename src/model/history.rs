//! The recent past in bounded memory, for graphs and for stepping back.

use super::disk::DiskRate;
use super::io_accounting::IoAttribution;
use super::memory_stalls::MemoryStalls;
use super::network::{NetFsRate, NicRate};
use super::pressure::PressureRaw;
use super::process::ProcessTable;
use super::snapshot::Snapshot;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of ticks.
pub(crate) const MAX_FRAMES: usize = 900;
/// Maximum size in bytes, estimated.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// Bytes of a value, or 0 if the tick before has the same one.
fn own_bytes<T: ?Sized>(now: Option<&Arc<T>>, before: Option<&Arc<T>>, bytes: impl FnOnce(&T) -> usize) -> usize {
    match (now, before) {
        (Some(now), Some(before)) if Arc::ptr_eq(now, before) => 0,
        (now, _) => now.map_or(0, |now| bytes(now)),
    }
}

/// Bytes of the rates of a device and of its latency.
fn device_bytes(rate: &DiskRate) -> usize {
    size_of::<DiskRate>() + rate.latency.as_ref().map_or(0, |l| l.heap_bytes())
}

/// Bytes that the history needs for a tick after `before`, estimated. Devices are compared by position, as
/// [`Snapshot::share_unchanged`] does.
fn snapshot_bytes(snap: &Snapshot, before: Option<&Snapshot>) -> usize {
    let devices = snap.devices.ok().map(Vec::as_slice).unwrap_or_default();
    let old = before.and_then(|b| b.devices.ok()).map(Vec::as_slice).unwrap_or_default();
    let rates = devices.iter().enumerate().map(|(i, rate)| own_bytes(Some(rate), old.get(i), device_bytes));
    let stalls = before.and_then(|b| b.memory_stalls.ok());
    let attribution = before.and_then(|b| b.io_attribution.ok());
    size_of::<HistoryFrame>()
        + size_of::<Snapshot>()
        + size_of_val(devices)
        + rates.sum::<usize>()
        + snap.syncs.ok().map_or(0, |s| s.heap_bytes())
        + own_bytes(snap.files.ok(), before.and_then(|b| b.files.ok()), |f| f.heap_bytes())
        + own_bytes(snap.task_waits.ok(), before.and_then(|b| b.task_waits.ok()), |w| w.heap_bytes())
        + own_bytes(snap.memory_stalls.ok(), stalls, |s| size_of::<MemoryStalls>() + s.heap_bytes())
        + own_bytes(snap.pressure.ok(), before.and_then(|b| b.pressure.ok()), |_| size_of::<PressureRaw>())
        + own_bytes(snap.io_attribution.ok(), attribution, IoAttribution::heap_bytes)
        + snap.swap_areas.ok().map_or(0, |s| s.len() * 100)
        + snap.netfs.ok().map_or(0, |all| all.iter().map(|fs| size_of::<NetFsRate>() + fs.heap_bytes()).sum())
        + snap.nics.ok().map_or(0, |all| all.iter().map(|nic| size_of::<NicRate>() + nic.name.len()).sum())
        + own_bytes(Some(&snap.device_order), before.map(|b| &b.device_order), size_of_val::<[u32]>)
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
        let bytes = snapshot_bytes(&snap, self.frames.back().map(|f| &*f.snapshot));
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
    fn values_count_once_whoever_else_holds_them() {
        let attribution = Arc::new(IoAttribution { names: vec![(1, "dd".into()); 1000], ..Default::default() });
        let with = |seq, attribution: &Arc<IoAttribution>| {
            Arc::new(Snapshot { seq, io_attribution: Reading::Ok(attribution.clone()), ..Default::default() })
        };
        let mut h = History::default();
        h.push(snapshot(1, 0));
        let empty = h.bytes;
        h.push(with(2, &attribution));
        let one = h.bytes - empty;
        assert!(one > 1000 * size_of::<(u32, Arc<str>)>(), "the table of processes holds it, too: {one}");
        h.push(with(3, &attribution));
        assert_eq!(h.bytes - empty - one, empty, "the tick before has the same value");
        h.push(with(4, &Arc::new((*attribution).clone())));
        assert_eq!(h.bytes - empty - one - empty, one);
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

    #[test]
    fn many_network_mounts_and_interfaces_shorten_the_history() {
        let (mut mounts, mut nics) = (History::default(), History::default());
        for seq in 0..100 {
            let netfs = Reading::Ok(vec![NetFsRate::default(); 2_000]);
            mounts.push(Arc::new(Snapshot { seq, netfs, ..Default::default() }));
            let all = Reading::Ok(vec![NicRate::default(); 5_000]);
            nics.push(Arc::new(Snapshot { seq, nics: all, ..Default::default() }));
        }
        assert!(mounts.len() * 2_000 * size_of::<NetFsRate>() <= MAX_BYTES, "{}", mounts.len());
        assert!(nics.len() * 5_000 * size_of::<NicRate>() <= MAX_BYTES, "{}", nics.len());
    }
}
