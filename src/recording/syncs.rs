//! Syncs as differences to the tick before: which files there are, if that changed, then those in which something
//! was counted, the slow syncs that are new, and those under way.

use super::codec::{
    ByteReader, DecodeError, get_reasons, put_blob, put_optional_blob, put_reasons, put_row_delta, put_varint,
};
use super::latency::{get_counts, put_counts};
use super::sample::{get_outcome, put_outcome};
use crate::model::disk::DevId;
use crate::model::latency::BUCKETS;
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::Reading;
use crate::model::syncs::{InFlightSync, SlowSync, SyncCall, SyncCounts, SyncDrops, SyncFile, SyncsRaw};
use std::collections::HashMap;
use std::sync::Arc;

/// Files, slow syncs, reasons of one sample at most.
const MAX_SYNCS: usize = 65_536;
/// Figures of [`head`], and of [`figures`].
const HEAD_COLUMNS: usize = 7;
const COUNTER_COLUMNS: usize = 5;

/// Appends a reading as it differs from `prev`.
pub fn encode(out: &mut Vec<u8>, prev: &Reading<SyncsRaw>, cur: &Reading<SyncsRaw>) {
    if !put_outcome(out, cur) {
        return;
    }
    let (none, Reading::Ok(now)) = (SyncsRaw::default(), cur) else { return };
    let old = prev.ok().unwrap_or(&none);
    put_row_delta(out, &head_row(old), &head_row(now));
    put_reasons(out, &now.unavailable);
    put_files(out, &old.files, &now.files);
    let at = |file: &Arc<SyncFile>| now.files.binary_search_by_key(&file.key(), |c| c.file.key()).ok();
    let put_file = |out: &mut Vec<u8>, file: &Arc<SyncFile>| {
        // The same names, too: one process may have taken another's place.
        match at(file).filter(|at| now.files[*at].file == *file) {
            Some(at) => put_varint(out, at as u64 + 1),
            None => {
                put_varint(out, 0);
                put_file_identity(out, file);
            }
        }
    };
    let gone = old.slow.iter().take_while(|s| now.slow.first() != Some(s)).count();
    let kept = old.slow.len() - gone;
    let kept = if now.slow.get(..kept) == Some(&old.slow[gone..]) { kept } else { 0 };
    put_varint(out, kept as u64);
    put_varint(out, (now.slow.len() - kept) as u64);
    for s in &now.slow[kept..] {
        put_file(out, &s.file);
        [s.id, u64::from(s.tid), s.started_ns, s.duration_ns, u64::from(s.error)]
            .iter()
            .for_each(|n| put_varint(out, *n));
        put_blob(out, s.comm.as_bytes());
        put_optional_blob(out, s.waiting_on.as_ref().map(String::as_bytes));
    }
    put_varint(out, now.in_flight.len() as u64);
    for f in &now.in_flight {
        put_file(out, &f.file);
        put_varint(out, u64::from(f.tid));
        put_varint(out, f.started_ns);
        put_optional_blob(out, f.waiting_on.as_ref().map(String::as_bytes));
    }
}

/// What [`put`] wrote.
pub fn decode(inp: &mut ByteReader, prev: &Reading<SyncsRaw>) -> Result<Reading<SyncsRaw>, DecodeError> {
    if let other @ (Reading::Denied(_) | Reading::Absent(_) | Reading::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| SyncsRaw::default()));
    }
    let none = SyncsRaw::default();
    let old = prev.ok().unwrap_or(&none);
    let mut row = head_row(old);
    inp.apply_row_delta(&mut row)?;
    let [began_ns, at_ns, threshold_ns, files, slow, flying, uring] = row;
    let lost = SyncDrops { files, slow, in_flight: flying };
    let without = get_reasons(inp)?;
    let files = get_files(inp, &old.files)?;
    let slow = get_slow(inp, &old.slow, &files)?;
    let flying = (0..bounded_count(inp)?).map(|_| {
        let file = get_file_ref(inp, &files)?;
        Ok(InFlightSync {
            file,
            tid: inp.varint_u32()?,
            started_ns: inp.varint()?,
            waiting_on: get_optional_text(inp)?,
        })
    });
    let flying = flying.collect::<Result<_, DecodeError>>()?;
    let uring = uring.checked_sub(1);
    Ok(Reading::Ok(SyncsRaw {
        tracing_started_ns: began_ns,
        read_ns: at_ns,
        threshold_ns,
        files,
        slow,
        in_flight: flying,
        drops: lost,
        io_uring: uring,
        unavailable: without,
    }))
}

fn head_row(raw: &SyncsRaw) -> [u64; HEAD_COLUMNS] {
    let SyncDrops { files, slow, in_flight: flying } = raw.drops;
    let uring = raw.io_uring.map_or(0, |n| n.saturating_add(1));
    [raw.tracing_started_ns, raw.read_ns, raw.threshold_ns, files, slow, flying, uring]
}

fn counters_row(c: &SyncCounts) -> [u64; COUNTER_COLUMNS] {
    [c.calls, c.errors, c.total_ns, c.max_ns, c.last_ended_ns]
}

fn bounded_count(inp: &mut ByteReader) -> Result<usize, DecodeError> {
    match inp.count()? {
        n if n > MAX_SYNCS => Err(DecodeError("more syncs than there can be")),
        n => Ok(n),
    }
}

fn put_file_identity(out: &mut Vec<u8>, file: &SyncFile) {
    let numbers = [
        u64::from(file.pid),
        file.call as u64,
        u64::from(file.device.major),
        u64::from(file.device.minor),
        file.ino,
        u64::from(file.is_full_path),
    ];
    numbers.iter().for_each(|n| put_varint(out, *n));
    put_blob(out, file.comm.as_bytes());
    put_blob(out, file.path_tail.as_bytes());
}

fn get_file_identity(inp: &mut ByteReader) -> Result<Arc<SyncFile>, DecodeError> {
    let (pid, call) = (inp.varint_u32()?, inp.varint()?);
    let call = *SyncCall::ALL.get(call as usize).ok_or(DecodeError("a call that is none"))?;
    let dev = DevId { major: inp.varint_u32()?, minor: inp.varint_u32()? };
    let (ino, whole) = (inp.varint()?, inp.varint()? != 0);
    let (comm, names) = (RawBytes::from(inp.blob()?), RawBytes::from(inp.blob()?));
    Ok(Arc::new(SyncFile { pid, call, device: dev, ino, comm, path_tail: names, is_full_path: whole }))
}

/// One of the files of this reading, or another.
fn get_file_ref(inp: &mut ByteReader, files: &[SyncCounts]) -> Result<Arc<SyncFile>, DecodeError> {
    match inp.varint()? {
        0 => get_file_identity(inp),
        n => {
            let known = files.get(n as usize - 1).map(|c| c.file.clone());
            known.ok_or(DecodeError("a file that is not there"))
        }
    }
}

fn get_optional_text(inp: &mut ByteReader) -> Result<Option<String>, DecodeError> {
    Ok(inp.optional_blob()?.map(crate::sanitize::sanitize))
}

fn put_files(out: &mut Vec<u8>, old: &[SyncCounts], now: &[SyncCounts]) {
    let same = old.len() == now.len() && old.iter().zip(now).all(|(a, b)| a.file == b.file);
    let before: HashMap<&SyncFile, usize> = match same {
        true => HashMap::new(),
        false => old.iter().enumerate().map(|(at, c)| (&*c.file, at)).collect(),
    };
    put_varint(out, u64::from(!same));
    if !same {
        put_varint(out, now.len() as u64);
        for c in now {
            match before.get(&*c.file) {
                Some(at) => put_varint(out, *at as u64 + 1),
                None => {
                    put_varint(out, 0);
                    put_file_identity(out, &c.file);
                }
            }
        }
    }
    let empty = SyncCounts::default();
    let pairs = now.iter().enumerate().map(|(at, c)| {
        let from = if same { Some(at) } else { before.get(&*c.file).copied() };
        (at, from.map_or(&empty, |at| &old[at]), c)
    });
    let changed: Vec<_> =
        pairs.filter(|(_, a, b)| counters_row(a) != counters_row(b) || a.histogram != b.histogram).collect();
    put_varint(out, changed.len() as u64);
    let mut last = 0;
    for (at, a, b) in changed {
        put_varint(out, (at - last) as u64);
        put_row_delta(out, &counters_row(a), &counters_row(b));
        put_counts(out, &a.histogram, &b.histogram);
        last = at;
    }
}

fn get_files(inp: &mut ByteReader, old: &[SyncCounts]) -> Result<Vec<SyncCounts>, DecodeError> {
    let mut files: Vec<SyncCounts> = match inp.varint()? {
        0 => old.to_vec(),
        _ => (0..bounded_count(inp)?)
            .map(|_| match inp.varint()? {
                0 => Ok(SyncCounts { file: get_file_identity(inp)?, ..SyncCounts::default() }),
                n => old.get(n as usize - 1).cloned().ok_or(DecodeError("a file that is not there")),
            })
            .collect::<Result<_, DecodeError>>()?,
    };
    let mut at = 0usize;
    for _ in 0..bounded_count(inp)? {
        at = at.saturating_add(inp.varint()? as usize);
        let c = files.get_mut(at).ok_or(DecodeError("a file that is not there"))?;
        let mut row = counters_row(c);
        inp.apply_row_delta(&mut row)?;
        [c.calls, c.errors, c.total_ns, c.max_ns, c.last_ended_ns] = row;
        c.histogram = get_counts(inp, &c.histogram, BUCKETS)?;
    }
    Ok(files)
}

fn get_slow(
    inp: &mut ByteReader,
    old: &[Arc<SlowSync>],
    files: &[SyncCounts],
) -> Result<Vec<Arc<SlowSync>>, DecodeError> {
    let kept = inp.varint()? as usize;
    let from = old.len().checked_sub(kept).ok_or(DecodeError("a slow sync that is not there"))?;
    let mut out = old[from..].to_vec();
    for _ in 0..bounded_count(inp)? {
        let file = get_file_ref(inp, files)?;
        let (id, tid, began_ns, took_ns) = (inp.varint()?, inp.varint_u32()?, inp.varint()?, inp.varint()?);
        let (error, comm) = (inp.varint_u32()?, RawBytes::from(inp.blob()?));
        let on = get_optional_text(inp)?;
        out.push(Arc::new(SlowSync {
            id,
            file,
            tid,
            comm,
            started_ns: began_ns,
            duration_ns: took_ns,
            error,
            waiting_on: on,
        }));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::latency::SparseHistogram;
    use proptest::prelude::*;

    fn round_trip(prev: &Reading<SyncsRaw>, cur: &Reading<SyncsRaw>) -> Reading<SyncsRaw> {
        let mut out = Vec::new();
        encode(&mut out, prev, cur);
        let mut inp = ByteReader(&out);
        let got = decode(&mut inp, prev).unwrap();
        assert!(inp.is_empty());
        got
    }

    fn any_file() -> impl Strategy<Value = Arc<SyncFile>> {
        (0..4u32, 0..6usize, 0..3u64, "[a-z]{0,3}", any::<bool>()).prop_map(|(pid, call, ino, name, whole)| {
            let dev = DevId { major: 8, minor: pid };
            let names = RawBytes::from(name.as_bytes());
            Arc::new(SyncFile {
                pid,
                call: SyncCall::ALL[call],
                device: dev,
                ino,
                comm: names.clone(),
                path_tail: names,
                is_full_path: whole,
            })
        })
    }

    fn any_counts() -> impl Strategy<Value = SyncCounts> {
        let counts = proptest::collection::btree_map(0..BUCKETS as u16, 1..=u32::MAX, 0..4)
            .prop_map(SparseHistogram::from_sparse);
        (any_file(), any::<[u64; COUNTER_COLUMNS]>(), counts).prop_map(|(file, n, counts)| SyncCounts {
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
        fn reading()(
            mut files in proptest::collection::vec(any_counts(), 0..6),
            slow in proptest::collection::vec(any_slow_sync(), 0..5),
            flying in proptest::collection::vec(any_slow_sync(), 0..3),
            first in 0..4u64,
            n in any::<[u64; 6]>(),
            uring in proptest::option::of(0..u64::MAX),
            without in proptest::collection::vec("[a-z]{0,9}", 0..2),
        ) -> Reading<SyncsRaw> {
            files.sort_by_key(|c| c.file.key());
            files.dedup_by_key(|c| c.file.key());
            Reading::Ok(SyncsRaw {
                tracing_started_ns: n[0],
                read_ns: n[1],
                threshold_ns: n[2],
                files,
                slow: slow.into_iter().zip(first..).map(|((file, tid, took_ns, on), id)| {
                    let comm = file.comm.clone();
                    Arc::new(SlowSync { id, file, tid, comm, started_ns: n[3], duration_ns: took_ns, error: 5, waiting_on: on })
                }).collect(),
                in_flight: flying.into_iter().map(|(file, tid, began_ns, on)| InFlightSync { file, tid, started_ns: began_ns, waiting_on: on }).collect(),
                drops: SyncDrops { files: n[4], slow: n[5], in_flight: 1 },
                io_uring: uring,
                unavailable: without,
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
        let mut out = Vec::new();
        encode(&mut out, &one(5), &one(1_000_000_005));
        assert!(out.len() <= 16, "{out:?}");
    }

    #[test]
    fn retained_slow_syncs_are_not_rewritten() {
        let with = |ids: std::ops::Range<u64>| {
            let slow = ids.map(|id| Arc::new(SlowSync { id, ..Default::default() })).collect();
            Reading::Ok(SyncsRaw { slow, ..Default::default() })
        };
        let mut out = Vec::new();
        encode(&mut out, &with(0..100), &with(50..101));
        assert!(out.len() < 40, "{}", out.len());
        assert_eq!(round_trip(&with(0..100), &with(50..101)), with(50..101));
    }

    proptest! {
        #[test]
        fn readings_come_back_as_differences(a in reading(), b in reading()) {
            prop_assert_eq!(round_trip(&a, &b), b.clone());
            prop_assert_eq!(round_trip(&Reading::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in reading(), b in reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            encode(&mut out, &a, &b);
            let at = at.index(out.len());
            out[at] = to;
            let _ = decode(&mut ByteReader(&out), &a);
            let _ = decode(&mut ByteReader(&out[..at]), &a);
        }
    }
}
