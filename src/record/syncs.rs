//! Syncs as differences to the tick before: which files there are, if that changed, then those in which something
//! was counted, the slow syncs that are new, and those under way.

use super::latency::{get_counts, put_counts};
use super::sample::{get_outcome, put_outcome};
use super::wire::{Bad, In, get_reasons, put_blob, put_maybe_blob, put_num, put_reasons, put_row};
use crate::model::disk::DevId;
use crate::model::latency::SLOTS;
use crate::model::raw::Raw;
use crate::model::section::Section;
use crate::model::syncs::{Call, Flying, Lost, SlowSync, SyncCounts, SyncFile, SyncsRaw};
use std::collections::HashMap;
use std::sync::Arc;

/// Files, slow syncs, reasons of one sample at most.
const MOST: usize = 65_536;
/// Figures of [`head`], and of [`figures`].
const HEAD: usize = 7;
const FIGURES: usize = 5;

/// Appends a reading as it differs from `prev`.
pub fn put(out: &mut Vec<u8>, prev: &Section<SyncsRaw>, cur: &Section<SyncsRaw>) {
    if !put_outcome(out, cur) {
        return;
    }
    let (none, Section::Ok(now)) = (SyncsRaw::default(), cur) else { return };
    let old = prev.ok().unwrap_or(&none);
    put_row(out, &head(old), &head(now));
    put_reasons(out, &now.without);
    put_files(out, &old.files, &now.files);
    let at = |file: &Arc<SyncFile>| now.files.binary_search_by_key(&file.key(), |c| c.file.key()).ok();
    let put_file = |out: &mut Vec<u8>, file: &Arc<SyncFile>| {
        // The same names, too: one process may have taken another's place.
        match at(file).filter(|at| now.files[*at].file == *file) {
            Some(at) => put_num(out, at as u64 + 1),
            None => {
                put_num(out, 0);
                put_named(out, file);
            }
        }
    };
    let gone = old.slow.iter().take_while(|s| now.slow.first() != Some(s)).count();
    let kept = old.slow.len() - gone;
    let kept = if now.slow.get(..kept) == Some(&old.slow[gone..]) { kept } else { 0 };
    put_num(out, kept as u64);
    put_num(out, (now.slow.len() - kept) as u64);
    for s in &now.slow[kept..] {
        put_file(out, &s.file);
        [s.id, u64::from(s.tid), s.began_ns, s.took_ns, u64::from(s.error)]
            .iter()
            .for_each(|n| put_num(out, *n));
        put_blob(out, s.comm.bytes());
        put_maybe_blob(out, s.on.as_ref().map(String::as_bytes));
    }
    put_num(out, now.flying.len() as u64);
    for f in &now.flying {
        put_file(out, &f.file);
        put_num(out, u64::from(f.tid));
        put_num(out, f.began_ns);
        put_maybe_blob(out, f.on.as_ref().map(String::as_bytes));
    }
}

/// What [`put`] wrote.
pub fn get(inp: &mut In, prev: &Section<SyncsRaw>) -> Result<Section<SyncsRaw>, Bad> {
    if let other @ (Section::Denied(_) | Section::Absent(_) | Section::Blocked(_)) = get_outcome(inp)? {
        return Ok(other.map(|()| SyncsRaw::default()));
    }
    let none = SyncsRaw::default();
    let old = prev.ok().unwrap_or(&none);
    let mut row = head(old);
    inp.row(&mut row)?;
    let [began_ns, at_ns, threshold_ns, files, slow, flying, uring] = row;
    let lost = Lost { files, slow, flying };
    let without = get_reasons(inp)?;
    let files = get_files(inp, &old.files)?;
    let slow = get_slow(inp, &old.slow, &files)?;
    let flying = (0..few(inp)?).map(|_| {
        let file = get_file(inp, &files)?;
        Ok(Flying { file, tid: inp.num32()?, began_ns: inp.num()?, on: get_on(inp)? })
    });
    let flying = flying.collect::<Result<_, Bad>>()?;
    let uring = uring.checked_sub(1);
    Ok(Section::Ok(SyncsRaw { began_ns, at_ns, threshold_ns, files, slow, flying, lost, uring, without }))
}

fn head(raw: &SyncsRaw) -> [u64; HEAD] {
    let Lost { files, slow, flying } = raw.lost;
    let uring = raw.uring.map_or(0, |n| n.saturating_add(1));
    [raw.began_ns, raw.at_ns, raw.threshold_ns, files, slow, flying, uring]
}

fn figures(c: &SyncCounts) -> [u64; FIGURES] {
    [c.calls, c.errors, c.total_ns, c.worst_ns, c.last_ns]
}

fn few(inp: &mut In) -> Result<usize, Bad> {
    match inp.count()? {
        n if n > MOST => Err(Bad("more syncs than there can be")),
        n => Ok(n),
    }
}

fn put_named(out: &mut Vec<u8>, file: &SyncFile) {
    let numbers = [
        u64::from(file.pid),
        file.call as u64,
        u64::from(file.dev.major),
        u64::from(file.dev.minor),
        file.ino,
        u64::from(file.whole),
    ];
    numbers.iter().for_each(|n| put_num(out, *n));
    put_blob(out, file.comm.bytes());
    put_blob(out, file.names.bytes());
}

fn get_named(inp: &mut In) -> Result<Arc<SyncFile>, Bad> {
    let (pid, call) = (inp.num32()?, inp.num()?);
    let call = *Call::ALL.get(call as usize).ok_or(Bad("a call that is none"))?;
    let dev = DevId { major: inp.num32()?, minor: inp.num32()? };
    let (ino, whole) = (inp.num()?, inp.num()? != 0);
    let (comm, names) = (Raw::from(inp.blob()?), Raw::from(inp.blob()?));
    Ok(Arc::new(SyncFile { pid, call, dev, ino, comm, names, whole }))
}

/// One of the files of this reading, or another.
fn get_file(inp: &mut In, files: &[SyncCounts]) -> Result<Arc<SyncFile>, Bad> {
    match inp.num()? {
        0 => get_named(inp),
        n => {
            let known = files.get(n as usize - 1).map(|c| c.file.clone());
            known.ok_or(Bad("a file that is not there"))
        }
    }
}

fn get_on(inp: &mut In) -> Result<Option<String>, Bad> {
    Ok(inp.maybe_blob()?.map(crate::text::clean))
}

fn put_files(out: &mut Vec<u8>, old: &[SyncCounts], now: &[SyncCounts]) {
    let same = old.len() == now.len() && old.iter().zip(now).all(|(a, b)| a.file == b.file);
    let before: HashMap<&SyncFile, usize> = match same {
        true => HashMap::new(),
        false => old.iter().enumerate().map(|(at, c)| (&*c.file, at)).collect(),
    };
    put_num(out, u64::from(!same));
    if !same {
        put_num(out, now.len() as u64);
        for c in now {
            match before.get(&*c.file) {
                Some(at) => put_num(out, *at as u64 + 1),
                None => {
                    put_num(out, 0);
                    put_named(out, &c.file);
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
        pairs.filter(|(_, a, b)| figures(a) != figures(b) || a.counts != b.counts).collect();
    put_num(out, changed.len() as u64);
    let mut last = 0;
    for (at, a, b) in changed {
        put_num(out, (at - last) as u64);
        put_row(out, &figures(a), &figures(b));
        put_counts(out, &a.counts, &b.counts);
        last = at;
    }
}

fn get_files(inp: &mut In, old: &[SyncCounts]) -> Result<Vec<SyncCounts>, Bad> {
    let mut files: Vec<SyncCounts> = match inp.num()? {
        0 => old.to_vec(),
        _ => (0..few(inp)?)
            .map(|_| match inp.num()? {
                0 => Ok(SyncCounts { file: get_named(inp)?, ..SyncCounts::default() }),
                n => old.get(n as usize - 1).cloned().ok_or(Bad("a file that is not there")),
            })
            .collect::<Result<_, Bad>>()?,
    };
    let mut at = 0usize;
    for _ in 0..few(inp)? {
        at = at.saturating_add(inp.num()? as usize);
        let c = files.get_mut(at).ok_or(Bad("a file that is not there"))?;
        let mut row = figures(c);
        inp.row(&mut row)?;
        [c.calls, c.errors, c.total_ns, c.worst_ns, c.last_ns] = row;
        c.counts = get_counts(inp, &c.counts, SLOTS)?;
    }
    Ok(files)
}

fn get_slow(inp: &mut In, old: &[Arc<SlowSync>], files: &[SyncCounts]) -> Result<Vec<Arc<SlowSync>>, Bad> {
    let kept = inp.num()? as usize;
    let from = old.len().checked_sub(kept).ok_or(Bad("a slow sync that is not there"))?;
    let mut out = old[from..].to_vec();
    for _ in 0..few(inp)? {
        let file = get_file(inp, files)?;
        let (id, tid, began_ns, took_ns) = (inp.num()?, inp.num32()?, inp.num()?, inp.num()?);
        let (error, comm) = (inp.num32()?, Raw::from(inp.blob()?));
        let on = get_on(inp)?;
        out.push(Arc::new(SlowSync { id, file, tid, comm, began_ns, took_ns, error, on }));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::latency::Counts;
    use proptest::prelude::*;

    fn back(prev: &Section<SyncsRaw>, cur: &Section<SyncsRaw>) -> Section<SyncsRaw> {
        let mut out = Vec::new();
        put(&mut out, prev, cur);
        let mut inp = In(&out);
        let got = get(&mut inp, prev).unwrap();
        assert!(inp.is_empty());
        got
    }

    fn file() -> impl Strategy<Value = Arc<SyncFile>> {
        (0..4u32, 0..6usize, 0..3u64, "[a-z]{0,3}", any::<bool>()).prop_map(
            |(pid, call, ino, name, whole)| {
                let dev = DevId { major: 8, minor: pid };
                let names = Raw::from(name.as_bytes());
                Arc::new(SyncFile { pid, call: Call::ALL[call], dev, ino, comm: names.clone(), names, whole })
            },
        )
    }

    fn counted() -> impl Strategy<Value = SyncCounts> {
        let counts =
            proptest::collection::btree_map(0..SLOTS as u16, 1..=u32::MAX, 0..4).prop_map(Counts::sparse);
        (file(), any::<[u64; FIGURES]>(), counts).prop_map(|(file, n, counts)| SyncCounts {
            file,
            calls: n[0],
            errors: n[1],
            total_ns: n[2],
            worst_ns: n[3],
            last_ns: n[4],
            counts,
        })
    }

    fn slow() -> impl Strategy<Value = (Arc<SyncFile>, u32, u64, Option<String>)> {
        (file(), any::<u32>(), any::<u64>(), proptest::option::of("[a-z_]{1,9}"))
    }

    prop_compose! {
        fn reading()(
            mut files in proptest::collection::vec(counted(), 0..6),
            slow in proptest::collection::vec(slow(), 0..5),
            flying in proptest::collection::vec(slow(), 0..3),
            first in 0..4u64,
            n in any::<[u64; 6]>(),
            uring in proptest::option::of(0..u64::MAX),
            without in proptest::collection::vec("[a-z]{0,9}", 0..2),
        ) -> Section<SyncsRaw> {
            files.sort_by_key(|c| c.file.key());
            files.dedup_by_key(|c| c.file.key());
            Section::Ok(SyncsRaw {
                began_ns: n[0],
                at_ns: n[1],
                threshold_ns: n[2],
                files,
                slow: slow.into_iter().zip(first..).map(|((file, tid, took_ns, on), id)| {
                    let comm = file.comm.clone();
                    Arc::new(SlowSync { id, file, tid, comm, began_ns: n[3], took_ns, error: 5, on })
                }).collect(),
                flying: flying.into_iter().map(|(file, tid, began_ns, on)| Flying { file, tid, began_ns, on }).collect(),
                lost: Lost { files: n[4], slow: n[5], flying: 1 },
                uring,
                without,
            })
        }
    }

    #[test]
    fn a_tick_without_syncs_costs_next_to_nothing() {
        let one = |at_ns| {
            let file = Arc::new(SyncFile { names: b"var/lib/x".as_slice().into(), ..Default::default() });
            let counts = SyncCounts { file: file.clone(), calls: 7, ..Default::default() };
            let slow = vec![Arc::new(SlowSync { id: 1, file, ..Default::default() })];
            Section::Ok(SyncsRaw { at_ns, files: vec![counts], slow, ..Default::default() })
        };
        let mut out = Vec::new();
        put(&mut out, &one(5), &one(1_000_000_005));
        assert!(out.len() <= 16, "{out:?}");
    }

    #[test]
    fn what_is_left_of_the_slow_ones_is_not_written_again() {
        let with = |ids: std::ops::Range<u64>| {
            let slow = ids.map(|id| Arc::new(SlowSync { id, ..Default::default() })).collect();
            Section::Ok(SyncsRaw { slow, ..Default::default() })
        };
        let mut out = Vec::new();
        put(&mut out, &with(0..100), &with(50..101));
        assert!(out.len() < 40, "{}", out.len());
        assert_eq!(back(&with(0..100), &with(50..101)), with(50..101));
    }

    proptest! {
        #[test]
        fn readings_come_back_as_differences(a in reading(), b in reading()) {
            prop_assert_eq!(back(&a, &b), b.clone());
            prop_assert_eq!(back(&Section::default(), &b), b);
        }

        #[test]
        fn damage_is_refused_or_read(
            a in reading(), b in reading(), at in any::<proptest::sample::Index>(), to in any::<u8>(),
        ) {
            let mut out = Vec::new();
            put(&mut out, &a, &b);
            let at = at.index(out.len());
            out[at] = to;
            let _ = get(&mut In(&out), &a);
            let _ = get(&mut In(&out[..at]), &a);
        }
    }
}
