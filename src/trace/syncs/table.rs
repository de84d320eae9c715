//! The kernel's tables of syncs: read, named, and kept from filling up.
//!
//! The layouts are those of the structs in `assets/trace/syncs.bpf.c`.

use super::super::kernel::Map;
use super::Maps;
use super::waits::Waits;
use crate::model::disk::DevId;
use crate::model::latency::{Counts, SLOTS};
use crate::model::raw::Raw;
use crate::model::syncs::{Call, Flying, Lost, SLOW_KEPT, SlowSync, SyncCounts, SyncFile};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

/// `struct key`
const KEY: usize = 24;
/// `struct counts`
const COUNTS: usize = SLOTS_AT + 4 * SLOTS;
const SLOTS_AT: usize = PARTS_AT + PARTS * PART;
const PARTS_AT: usize = 64;
const PARTS: usize = 6;
const PART: usize = 64;
/// `struct begun`
const BEGUN: usize = 8 + KEY;
/// `struct slow_key`
pub const SLOW_KEY: usize = 16;
/// `struct slow`
const SLOW: usize = 56;

/// Entries of `files`.
const MOST_FILES: usize = 2048;
/// More than so many are too near to that: those that rest longest are taken out.
const CROWDED: usize = MOST_FILES * 3 / 4;
/// Entries of `flying`, and of `slow`.
pub const MOST_FLYING: usize = 4096;
const MOST_SLOW: usize = 512;
/// Syncs under way that a reading holds.
const FLYING_KEPT: usize = 64;
/// Counters in `tallies`.
const TALLIES: usize = 4;

type Key = [u8; KEY];

/// What was read.
pub struct Read {
    /// All counts, by [`SyncFile::key`].
    pub files: Vec<SyncCounts>,
    /// The newest slow ones, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Under way, longest first.
    pub flying: Vec<Flying>,
    /// What had no room.
    pub lost: Lost,
    /// Syncs handed to io_uring.
    pub uring: u64,
}

/// What is known of the tables.
pub struct Table {
    cpus: usize,
    names: HashMap<Key, Arc<SyncFile>>,
    slow: VecDeque<Arc<SlowSync>>,
    next_id: u64,
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
}

/// Text up to its end.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Who, how and what, without names.
fn plain(key: &[u8]) -> SyncFile {
    let dev = word(key, 8);
    SyncFile {
        pid: word(key, 12),
        call: Call::ALL.get(word(key, 16) as usize).copied().unwrap_or_default(),
        dev: DevId { major: dev >> 20, minor: dev & 0xf_ffff },
        ino: long(key, 0),
        ..SyncFile::default()
    }
}

/// With the names that the kernel's side has put down.
fn named(key: &Key, value: &[u8]) -> SyncFile {
    let depth = usize::from(value[56]).min(PARTS);
    let parts = (0..depth).rev().map(|i| {
        let part = text(&value[PARTS_AT + i * PART..][..PART]);
        // It was cut off there.
        if part.len() == PART - 1 { [part, "…".as_bytes()].concat() } else { part.to_vec() }
    });
    SyncFile {
        comm: Raw::from(text(&value[40..56])),
        names: Raw::from(parts.collect::<Vec<_>>().join(&b'/')),
        whole: value[57] != 0,
        ..plain(key)
    }
}

impl Table {
    /// Nothing read yet, on a machine with so many possible CPUs.
    pub fn new(cpus: usize) -> Self {
        Self { cpus, names: HashMap::new(), slow: VecDeque::new(), next_id: 1 }
    }

    /// Reads everything. `ahead`: by how much CLOCK_BOOTTIME is ahead of the kernel's side's clock, ns.
    pub fn read(&mut self, maps: &Maps, waits: &Waits, ahead: u64) -> io::Result<Read> {
        let files = self.files(maps, ahead)?;
        self.take_slow(maps, waits, ahead)?;
        let flying = self.flying(maps, waits, ahead)?;
        let [lost_files, lost_slow, lost_flying, uring] = self.tallies(maps)?;
        Ok(Read {
            files,
            slow: self.slow.iter().cloned().collect(),
            flying,
            lost: Lost { files: lost_files, slow: lost_slow, flying: lost_flying },
            uring,
        })
    }

    fn files(&mut self, maps: &Maps, ahead: u64) -> io::Result<Vec<SyncCounts>> {
        let map = Map::<KEY> { fd: Maps::fd(&maps.files), value_len: COUNTS };
        let mut value = vec![0; COUNTS];
        let mut out = Vec::new();
        for key in map.keys(MOST_FILES) {
            if map.get(&key, &mut value)? {
                let file = self.names.entry(key).or_insert_with(|| Arc::new(named(&key, &value))).clone();
                out.push((key, counts(file, &value, ahead)));
            }
        }
        if out.len() > CROWDED {
            // Those under way have not ended once, or are found again.
            out.sort_unstable_by_key(|(_, c)| (c.calls == 0, c.last_ns));
            for (key, _) in out.drain(..MOST_FILES / 4) {
                map.remove(&key);
                self.names.remove(&key);
            }
        }
        let mut out: Vec<SyncCounts> = out.into_iter().map(|c| c.1).collect();
        out.sort_unstable_by_key(|c| c.file.key());
        Ok(out)
    }

    /// The file of a key, as far as it is known.
    fn file(&self, key: &[u8]) -> Arc<SyncFile> {
        let known = <&Key>::try_from(key).ok().and_then(|k| self.names.get(k));
        known.cloned().unwrap_or_else(|| Arc::new(plain(key)))
    }

    /// Takes out the slow ones since the last reading.
    fn take_slow(&mut self, maps: &Maps, waits: &Waits, ahead: u64) -> io::Result<()> {
        let map = Map::<SLOW_KEY> { fd: Maps::fd(&maps.slow), value_len: SLOW };
        let mut value = vec![0; SLOW];
        let mut new = Vec::new();
        for key in map.keys(MOST_SLOW) {
            if map.get(&key, &mut value)? {
                map.remove(&key);
                let ret = long(&value, 48) as i64;
                new.push(SlowSync {
                    id: 0,
                    file: self.file(&value[8..8 + KEY]),
                    tid: word(&key, 8),
                    comm: Raw::from(text(&value[32..48])),
                    began_ns: long(&key, 0) + ahead,
                    took_ns: long(&value, 0),
                    error: u32::try_from(ret.min(0).unsigned_abs()).unwrap_or(0),
                    on: waits.of(&key),
                });
            }
        }
        new.sort_by_key(|s| s.began_ns + s.took_ns);
        for slow in new {
            self.slow.push_back(Arc::new(SlowSync { id: self.next_id, ..slow }));
            self.next_id += 1;
        }
        let many = self.slow.len().saturating_sub(SLOW_KEPT);
        self.slow.drain(..many);
        Ok(())
    }

    fn flying(&self, maps: &Maps, waits: &Waits, ahead: u64) -> io::Result<Vec<Flying>> {
        let map = Map::<8> { fd: Maps::fd(&maps.flying), value_len: BEGUN };
        let mut value = vec![0; BEGUN];
        let mut out = Vec::new();
        let mut all = Vec::new();
        for id in map.keys(MOST_FLYING) {
            if map.get(&id, &mut value)? {
                let key = flying_key(&id, &value);
                all.push(key);
                out.push(Flying {
                    file: self.file(&value[8..]),
                    tid: word(&id, 0),
                    began_ns: long(&value, 0) + ahead,
                    on: waits.of(&key),
                });
            }
        }
        waits.forget_but(&all);
        out.sort_by_key(|f| (f.began_ns, f.tid));
        out.truncate(FLYING_KEPT);
        Ok(out)
    }

    fn tallies(&self, maps: &Maps) -> io::Result<[u64; TALLIES]> {
        let map = Map::<4> { fd: Maps::fd(&maps.tallies), value_len: 8 * self.cpus };
        let mut value = vec![0; 8 * self.cpus];
        let mut out = [0; TALLIES];
        for (at, sum) in (0u32..).zip(&mut out) {
            map.get(&at.to_ne_bytes(), &mut value)?;
            *sum = value.chunks_exact(8).fold(0, |sum, n| sum + long(n, 0));
        }
        Ok(out)
    }
}

/// The key that a sync under way will have among the slow ones: begin and thread.
pub fn flying_key(id: &[u8; 8], begun: &[u8]) -> [u8; SLOW_KEY] {
    let mut key = [0; SLOW_KEY];
    key[..8].copy_from_slice(&begun[..8]);
    key[8..].copy_from_slice(id);
    key
}

/// Bytes of a value of `flying`.
pub const BEGUN_LEN: usize = BEGUN;

fn counts(file: Arc<SyncFile>, value: &[u8], ahead: u64) -> SyncCounts {
    let slots = value[SLOTS_AT..].chunks_exact(4).map(|n| word(n, 0));
    let last = long(value, 32);
    SyncCounts {
        file,
        calls: long(value, 0),
        errors: long(value, 8),
        total_ns: long(value, 16),
        worst_ns: long(value, 24),
        last_ns: if last > 0 { last + ahead } else { 0 },
        counts: Counts::of(slots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_counts_are_taken_from_the_kernels_layout() {
        let mut key = [0; KEY];
        key[..8].copy_from_slice(&77u64.to_ne_bytes());
        key[8..12].copy_from_slice(&(259u32 << 20 | 3).to_ne_bytes());
        key[12..16].copy_from_slice(&4242u32.to_ne_bytes());
        key[16..20].copy_from_slice(&1u32.to_ne_bytes());
        let mut value = vec![0; COUNTS];
        value[..8].copy_from_slice(&5u64.to_ne_bytes());
        value[32..40].copy_from_slice(&9u64.to_ne_bytes());
        value[40..48].copy_from_slice(b"postgres");
        (value[56], value[57]) = (2, 1);
        value[PARTS_AT..PARTS_AT + 3].copy_from_slice(b"wal");
        value[PARTS_AT + PART..PARTS_AT + PART + 63].fill(b'x');
        value[SLOTS_AT + 8..SLOTS_AT + 12].copy_from_slice(&5u32.to_ne_bytes());
        let file = named(&key, &value);
        assert_eq!((file.pid, file.call, file.ino, file.whole), (4242, Call::Fdatasync, 77, true));
        assert_eq!(file.dev, DevId { major: 259, minor: 3 });
        assert_eq!(
            (file.comm.clean(), file.names.clean()),
            ("postgres".into(), format!("{}…/wal", "x".repeat(63)))
        );
        let counts = counts(Arc::new(file), &value, 100);
        assert_eq!((counts.calls, counts.last_ns, counts.counts.at(2)), (5, 109, 5));
    }
}
