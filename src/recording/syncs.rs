//! Syncs as differences to the tick before: the list of files only when it changed, then the files with new counts,
//! the slow syncs that are new, and all syncs in flight.

use super::codec::{Coded, DecodeError, MAX_ROWS, Wire};
use super::table::{DeltaRow, code_changed_rows, is_same_list};
use crate::model::latency::BUCKETS;
use crate::model::syncs::{SlowSync, SyncCall, SyncCounts, SyncFile, SyncsRaw};
use std::collections::HashMap;
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) fn syncs(w: &mut Wire, base: &SyncsRaw, cur: &mut SyncsRaw) -> Coded {
    let head = w.cells(head_row(base), head_row(cur))?;
    [cur.tracing_started_ns, cur.read_ns, cur.threshold_ns, ..] = head;
    [.., cur.drops.files, cur.drops.slow, cur.drops.in_flight, _] = head;
    cur.io_uring = head[6].checked_sub(1);
    w.reasons(&mut cur.unavailable)?;
    file_counts(w, &base.files, &mut cur.files)?;
    slow_syncs(w, &base.slow, &mut cur.slow, &cur.files)?;
    let files = &cur.files;
    w.list(MAX_ROWS, &mut cur.in_flight, |w, sync| {
        file_reference(w, &mut sync.file, files)?;
        w.num(&mut sync.tid)?;
        w.num(&mut sync.started_ns)?;
        w.optional_shown_text(&mut sync.waiting_on)
    })
}

fn head_row(raw: &SyncsRaw) -> [u64; 7] {
    let io_uring = raw.io_uring.map_or(0, |n| n.saturating_add(1));
    let drops = &raw.drops;
    [raw.tracing_started_ns, raw.read_ns, raw.threshold_ns, drops.files, drops.slow, drops.in_flight, io_uring]
}

/// Counts by file. Files that were in the list before are referred to by their index there.
fn file_counts(w: &mut Wire, base: &[SyncCounts], cur: &mut Vec<SyncCounts>) -> Coded {
    let mut is_new = !is_same_list(base, cur, |a, b| a.file == b.file);
    w.flag(&mut is_new)?;
    let mut before = base.to_vec();
    if is_new {
        let index: HashMap<&SyncFile, usize> = base.iter().enumerate().map(|(at, c)| (&*c.file, at)).collect();
        before.clear();
        w.list(MAX_ROWS, cur, |w, counts| {
            let mut reference = index.get(&*counts.file).map_or(0, |at| *at as u64 + 1);
            w.num(&mut reference)?;
            let old =
                reference.checked_sub(1).map(|at| base.get(at as usize).ok_or(UNKNOWN_FILE)).transpose()?.cloned();
            match &old {
                Some(old) => counts.file = old.file.clone(),
                None => file_identity(w, Arc::make_mut(&mut counts.file))?,
            }
            before.push(SyncCounts { file: counts.file.clone(), ..old.unwrap_or_default() });
            Ok(())
        })?;
    }
    if w.is_read() {
        cur.clone_from(&before);
    }
    code_changed_rows(w, Some(MAX_ROWS), &before, cur)
}

const UNKNOWN_FILE: DecodeError = DecodeError("a sync refers to a file that is not listed");

impl SyncCounts {
    fn cells(&self) -> [u64; 5] {
        [self.calls, self.errors, self.total_ns, self.max_ns, self.last_ended_ns]
    }
}

impl DeltaRow for SyncCounts {
    fn differs(&self, base: &Self) -> bool {
        self.cells() != base.cells() || self.histogram != base.histogram
    }

    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded {
        [self.calls, self.errors, self.total_ns, self.max_ns, self.last_ended_ns] =
            w.cells(base.cells(), self.cells())?;
        w.histogram(&base.histogram, &mut self.histogram, BUCKETS)
    }
}

fn file_identity(w: &mut Wire, file: &mut SyncFile) -> Coded {
    let mut call = file.call as u64;
    w.num(&mut file.pid)?;
    w.num(&mut call)?;
    file.call = *SyncCall::VARIANTS.get(call as usize).ok_or(DecodeError("a sync is of an unknown call"))?;
    w.nums([&mut file.device.major, &mut file.device.minor])?;
    w.num(&mut file.ino)?;
    w.flag(&mut file.is_full_path)?;
    w.blob(&mut file.comm)?;
    w.blob(&mut file.path_tail)
}

/// A file by its index in `files`, which are sorted by key, or by its identity.
fn file_reference(w: &mut Wire, file: &mut Arc<SyncFile>, files: &[SyncCounts]) -> Coded {
    let mut reference = 0;
    if !w.is_read() {
        let at = files.binary_search_by_key(&file.key(), |c| c.file.key()).ok();
        // A process may have replaced another of the same number: the names must be the same, too.
        reference = at.filter(|at| files[*at].file == *file).map_or(0, |at| at as u64 + 1);
    }
    w.num(&mut reference)?;
    match reference.checked_sub(1) {
        None => file_identity(w, Arc::make_mut(file)),
        Some(at) => {
            *file = files.get(at as usize).ok_or(UNKNOWN_FILE)?.file.clone();
            Ok(())
        }
    }
}

/// The newest slow syncs: how many of the list before are still in it, then those that are new.
fn slow_syncs(w: &mut Wire, base: &[Arc<SlowSync>], cur: &mut Vec<Arc<SlowSync>>, files: &[SyncCounts]) -> Coded {
    let dropped = base.iter().take_while(|s| cur.first() != Some(s)).count();
    let mut kept = (base.len() - dropped) as u64;
    if cur.get(..kept as usize) != Some(&base[dropped..]) {
        kept = 0;
    }
    w.num(&mut kept)?;
    let mut added = cur.get(kept as usize..).unwrap_or_default().to_vec();
    w.list(MAX_ROWS, &mut added, |w, sync| {
        let sync = Arc::make_mut(sync);
        file_reference(w, &mut sync.file, files)?;
        w.num(&mut sync.id)?;
        w.num(&mut sync.tid)?;
        w.nums([&mut sync.started_ns, &mut sync.duration_ns])?;
        w.num(&mut sync.error)?;
        w.blob(&mut sync.comm)?;
        w.optional_shown_text(&mut sync.waiting_on)
    })?;
    if w.is_read() {
        let from = base.len().checked_sub(kept as usize).ok_or(DecodeError("a slow sync is not in the list before"))?;
        *cur = base[from..].iter().cloned().chain(added).collect();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_damage_is_harmless, round_trip};
    use super::*;
    use crate::model::disk::DevId;
    use crate::model::latency::SparseHistogram;
    use crate::model::raw_bytes::RawBytes;
    use crate::model::reading::Reading;
    use crate::model::syncs::{InFlightSync, SyncDrops};
    use proptest::prelude::*;

    fn any_file() -> impl Strategy<Value = Arc<SyncFile>> {
        (0..4u32, 0..6usize, 0..3u64, "[a-z]{0,3}", any::<bool>()).prop_map(|(pid, call, ino, name, is_full_path)| {
            let dev = DevId { major: 8, minor: pid };
            let names = RawBytes::from(name.as_bytes());
            Arc::new(SyncFile {
                pid,
                call: SyncCall::VARIANTS[call],
                device: dev,
                ino,
                comm: names.clone(),
                path_tail: names,
                is_full_path,
            })
        })
    }

    fn any_counts() -> impl Strategy<Value = SyncCounts> {
        let counts = proptest::collection::btree_map(0..BUCKETS as u16, 1..=u32::MAX, 0..4)
            .prop_map(SparseHistogram::from_sparse);
        (any_file(), any::<[u64; 5]>(), counts).prop_map(|(file, n, counts)| SyncCounts {
            file,
            calls: n[0],
            errors: n[1],
            total_ns: n[2],
            max_ns: n[3],
            last_ended_ns: n[4],
            histogram: counts,
        })
    }

    fn any_slow_sync() -> impl Strategy<Value = (Arc<SyncFile>, u32, u64, Option<String>)> {
        (any_file(), any::<u32>(), any::<u64>(), proptest::option::of("[a-z_]{1,9}"))
    }

    prop_compose! {
        fn any_reading()(
            mut files in proptest::collection::vec(any_counts(), 0..6),
            slow in proptest::collection::vec(any_slow_sync(), 0..5),
            in_flight in proptest::collection::vec(any_slow_sync(), 0..3),
            first in 0..4u64,
            n in any::<[u64; 6]>(),
            io_uring in proptest::option::of(0..u64::MAX),
            unavailable in proptest::collection::vec("[a-z]{0,9}", 0..2),
        ) -> Reading<SyncsRaw> {
            files.sort_by_key(|c| c.file.key());
            files.dedup_by_key(|c| c.file.key());
            Reading::Ok(SyncsRaw {
                tracing_started_ns: n[0],
                read_ns: n[1],
                threshold_ns: n[2],
                files,
                slow: slow.into_iter().zip(first..).map(|((file, tid, duration_ns, waiting_on), id)| {
                    let comm = file.comm.clone();
                    Arc::new(SlowSync { id, file, tid, comm, started_ns: n[3], duration_ns, error: 5, waiting_on })
                }).collect(),
                in_flight: in_flight.into_iter().map(|(file, tid, started_ns, waiting_on)| InFlightSync { file, tid, started_ns, waiting_on }).collect(),
                drops: SyncDrops { files: n[4], slow: n[5], in_flight: 1 },
                io_uring,
                unavailable,
            })
        }
    }

    #[test]
    fn a_tick_without_syncs_takes_at_most_sixteen_bytes() {
        let one = |at_ns| {
            let file = Arc::new(SyncFile { path_tail: b"var/lib/x".as_slice().into(), ..Default::default() });
            let counts = SyncCounts { file: file.clone(), calls: 7, ..Default::default() };
            let slow = vec![Arc::new(SlowSync { id: 1, file, ..Default::default() })];
            Reading::Ok(SyncsRaw { read_ns: at_ns, files: vec![counts], slow, ..Default::default() })
        };
        let (bytes, _) = round_trip(&one(5), &one(1_000_000_005), syncs);
        assert!(bytes <= 16, "{bytes}");
    }

    #[test]
    fn retained_slow_syncs_are_not_rewritten() {
        let with = |ids: std::ops::Range<u64>| {
            let slow = ids.map(|id| Arc::new(SlowSync { id, ..Default::default() })).collect();
            Reading::Ok(SyncsRaw { slow, ..Default::default() })
        };
        let (bytes, read) = round_trip(&with(0..100), &with(50..101), syncs);
        assert!(bytes < 40, "{bytes}");
        assert_eq!(read, with(50..101));
    }

    proptest! {
        #[test]
        fn syncs_round_trip(a in any_reading(), b in any_reading()) {
            prop_assert_eq!(round_trip(&a, &b, syncs).1, b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b, syncs).1, b);
        }

        #[test]
        fn damage_is_rejected_or_read(
            readings in (any_reading(), any_reading()), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            assert_damage_is_harmless(&readings, at, to, syncs);
        }
    }
}
