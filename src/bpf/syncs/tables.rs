//! Reads the sync tables of the kernel side, adds names, and evicts old entries.
//!
//! Layouts are those of the structs in `assets/trace/syncs.bpf.c`.

use super::super::bpf_sys::BpfMap;
use super::super::layout::{PART_LEN, PARTS_OFFSET, c_string, parse_path_tail, read_u32, read_u64, unpack_device};
use super::super::loader::open_map;
use super::super::unavailable::ProbeUnavailable;
use super::wait_sampler::{IN_FLIGHT_LEN, MAX_IN_FLIGHT, SLOW_KEY_LEN, WaitSampler, slow_key};
use crate::model::latency::{BUCKETS, SparseHistogram};
use crate::model::raw_bytes::RawBytes;
use crate::model::syncs::{
    InFlightSync, MAX_SLOW_SYNCS, SlowSync, SyncCall, SyncCounts, SyncDrops, SyncFile, SyncsRaw,
};
use crate::root::Root;
use aya::Ebpf;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use strum::VariantArray as _;

pub(crate) const KEY_LEN: usize = 24;
/// `struct counts`.
pub(crate) const COUNTS_LEN: usize = SLOTS_OFFSET + 4 * BUCKETS;
const SLOTS_OFFSET: usize = PATH_OFFSET + PARTS_OFFSET + PATH_PARTS * PART_LEN;
const PATH_OFFSET: usize = 56;
const PATH_PARTS: usize = 6;
/// `struct slow`.
pub(crate) const SLOW_LEN: usize = 56;

/// `max_entries` of `files`.
const MAX_FILES: usize = 2048;
/// Above this number of files those that were idle longest are evicted.
const EVICT_ABOVE: usize = MAX_FILES * 3 / 4;
/// `max_entries` of `slow`.
const MAX_SLOW: usize = 512;
/// Most syncs in flight in one reading.
const MAX_IN_FLIGHT_REPORTED: usize = 64;

pub(crate) type SyncKey = [u8; KEY_LEN];

/// The maps of the kernel side, and what is kept between readings.
pub(super) struct SyncTables {
    files: BpfMap<KEY_LEN>,
    in_flight: BpfMap<8>,
    slow_map: BpfMap<SLOW_KEY_LEN>,
    counters: BpfMap<4>,
    files_by_key: HashMap<SyncKey, Arc<SyncFile>>,
    slow: VecDeque<Arc<SlowSync>>,
    next_id: u64,
}

/// Parses the key: process, call and file, without names.
fn parse_key(key: &[u8]) -> SyncFile {
    SyncFile {
        pid: read_u32(key, 12),
        call: SyncCall::VARIANTS.get(read_u32(key, 16) as usize).copied().unwrap_or_default(),
        device: unpack_device(read_u32(key, 8)),
        ino: read_u64(key, 0),
        ..SyncFile::default()
    }
}

/// Parses key and value, with the names stored by the kernel side.
pub(crate) fn parse_file(key: &SyncKey, value: &[u8]) -> SyncFile {
    let (path_tail, is_full_path) = parse_path_tail(&value[PATH_OFFSET..SLOTS_OFFSET]);
    SyncFile { comm: RawBytes::from(c_string(&value[40..56])), path_tail, is_full_path, ..parse_key(key) }
}

impl SyncTables {
    pub(super) fn open(programs: &Ebpf, cpus: usize) -> Result<Self, ProbeUnavailable> {
        Ok(Self {
            files: open_map(programs, "files", COUNTS_LEN)?,
            in_flight: open_map(programs, "flying", IN_FLIGHT_LEN)?,
            slow_map: open_map(programs, "slow", SLOW_LEN)?,
            counters: open_map(programs, "tallies", 8 * cpus)?,
            files_by_key: HashMap::new(),
            slow: VecDeque::new(),
            next_id: 1,
        })
    }

    /// Starts sampling what the syncs in flight wait on.
    pub(super) fn start_wait_sampler(&self, root: &Root) -> io::Result<WaitSampler> {
        WaitSampler::start(root, self.in_flight.try_clone()?)
    }

    /// Reads all tables; the rest of the reading is empty. `boot_offset`: CLOCK_BOOTTIME minus the kernel side's clock,
    /// ns.
    pub(super) fn read(&mut self, sampler: &WaitSampler, boot_offset: u64) -> io::Result<SyncsRaw> {
        let files = self.read_files(boot_offset)?;
        self.drain_slow(sampler, boot_offset)?;
        let in_flight = self.read_in_flight(sampler, boot_offset)?;
        let counter = |n: u32| self.counters.sum_cpus(&n.to_ne_bytes());
        let drops = SyncDrops { files: counter(0)?, slow: counter(1)?, in_flight: counter(2)? };
        let (slow, io_uring) = (self.slow.iter().cloned().collect(), Some(counter(3)?));
        Ok(SyncsRaw { files, slow, in_flight, drops, io_uring, ..SyncsRaw::default() })
    }

    fn read_files(&mut self, boot_offset: u64) -> io::Result<Vec<SyncCounts>> {
        let mut out = Vec::new();
        self.files.for_each(MAX_FILES, |key, value| {
            let file = self.files_by_key.entry(*key).or_insert_with(|| Arc::new(parse_file(key, value))).clone();
            out.push((*key, parse_counts(file, value, boot_offset)));
        })?;
        if out.len() > EVICT_ABOVE {
            // Files with calls in flight have not completed one, or are found again.
            out.sort_unstable_by_key(|(_, c)| (c.calls == 0, c.last_ended_ns));
            for (key, _) in out.drain(..MAX_FILES / 4) {
                self.files.remove(&key)?;
                self.files_by_key.remove(&key);
            }
        }
        let mut out: Vec<SyncCounts> = out.into_iter().map(|c| c.1).collect();
        out.sort_unstable_by_key(|c| c.file.key());
        Ok(out)
    }

    /// Returns the file of a key, with names if they are known.
    fn find_file(&self, key: &[u8]) -> Arc<SyncFile> {
        let known = <&SyncKey>::try_from(key).ok().and_then(|k| self.files_by_key.get(k));
        known.cloned().unwrap_or_else(|| Arc::new(parse_key(key)))
    }

    /// Takes out the slow syncs since the last reading.
    fn drain_slow(&mut self, sampler: &WaitSampler, boot_offset: u64) -> io::Result<()> {
        let (mut keys, mut new) = (Vec::new(), Vec::new());
        self.slow_map.for_each(MAX_SLOW, |key, value| {
            keys.push(*key);
            let slow = parse_slow(key, value, self.find_file(&value[8..8 + KEY_LEN]), boot_offset);
            new.push(SlowSync { waiting_on: sampler.most_frequent(key), ..slow });
        })?;
        keys.iter().try_for_each(|key| self.slow_map.remove(key))?;
        new.sort_by_key(|s| s.started_ns.saturating_add(s.duration_ns));
        for slow in new {
            self.slow.push_back(Arc::new(SlowSync { id: self.next_id, ..slow }));
            self.next_id += 1;
        }
        let many = self.slow.len().saturating_sub(MAX_SLOW_SYNCS);
        self.slow.drain(..many);
        Ok(())
    }

    fn read_in_flight(&self, sampler: &WaitSampler, boot_offset: u64) -> io::Result<Vec<InFlightSync>> {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        self.in_flight.for_each(MAX_IN_FLIGHT, |id, value| {
            let key = slow_key(id, value);
            all.push(key);
            out.push(InFlightSync {
                file: self.find_file(&value[8..]),
                tid: read_u32(id, 0),
                started_ns: read_u64(value, 0).saturating_add(boot_offset),
                waiting_on: sampler.most_frequent(&key),
            });
        })?;
        sampler.retain(&all);
        out.sort_by_key(|f| (f.started_ns, f.tid));
        out.truncate(MAX_IN_FLIGHT_REPORTED);
        Ok(out)
    }
}

pub(crate) fn parse_counts(file: Arc<SyncFile>, value: &[u8], boot_offset: u64) -> SyncCounts {
    let slots = value[SLOTS_OFFSET..].chunks_exact(4).map(|n| read_u32(n, 0));
    let last = read_u64(value, 32);
    SyncCounts {
        file,
        calls: read_u64(value, 0),
        errors: read_u64(value, 8),
        total_ns: read_u64(value, 16),
        max_ns: read_u64(value, 24),
        last_ended_ns: if last > 0 { last.saturating_add(boot_offset) } else { 0 },
        histogram: SparseHistogram::from_dense(slots),
    }
}

/// Parses a slow sync, without its number and what it waited on.
pub(crate) fn parse_slow(key: &[u8; SLOW_KEY_LEN], value: &[u8], file: Arc<SyncFile>, boot_offset: u64) -> SlowSync {
    SlowSync {
        id: 0,
        file,
        tid: read_u32(key, 8),
        comm: RawBytes::from(c_string(&value[32..48])),
        started_ns: read_u64(key, 0).saturating_add(boot_offset),
        duration_ns: read_u64(value, 0),
        error: u32::try_from((read_u64(value, 48) as i64).min(0).unsigned_abs()).unwrap_or(0),
        waiting_on: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk::DevId;

    #[test]
    fn names_and_counts_are_parsed_from_map_values() {
        let mut key = [0; KEY_LEN];
        key[..8].copy_from_slice(&77u64.to_ne_bytes());
        key[8..12].copy_from_slice(&(259u32 << 20 | 3).to_ne_bytes());
        key[12..16].copy_from_slice(&4242u32.to_ne_bytes());
        key[16..20].copy_from_slice(&1u32.to_ne_bytes());
        let mut value = vec![0; COUNTS_LEN];
        value[..8].copy_from_slice(&5u64.to_ne_bytes());
        value[32..40].copy_from_slice(&9u64.to_ne_bytes());
        value[40..48].copy_from_slice(b"postgres");
        (value[56], value[57]) = (2, 1);
        value[64..67].copy_from_slice(b"wal");
        value[64 + PART_LEN..64 + PART_LEN + 63].fill(b'x');
        value[SLOTS_OFFSET + 8..SLOTS_OFFSET + 12].copy_from_slice(&5u32.to_ne_bytes());
        let file = parse_file(&key, &value);
        assert_eq!((file.pid, file.call, file.ino, file.is_full_path), (4242, SyncCall::Fdatasync, 77, true));
        assert_eq!(file.device, DevId { major: 259, minor: 3 });
        assert_eq!(
            (file.comm.sanitized(), file.path_tail.sanitized()),
            ("postgres".into(), format!("{}…/wal", "x".repeat(63)))
        );
        let counts = parse_counts(Arc::new(file), &value, 100);
        assert_eq!((counts.calls, counts.last_ended_ns, counts.histogram.count_at(2)), (5, 109, 5));
    }
}
