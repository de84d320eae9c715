//! The latency histograms of the kernel side: creates and reads them.
//!
//! Each histogram has one value per possible CPU, so their number is bounded by a share of the machine's memory.

use super::super::bpf_sys::BpfMap;
use super::super::layout::{read_u32, unpack_device};
use super::super::loader::open_map;
use super::super::unavailable::ProbeUnavailable;
use crate::model::latency::{BUCKETS, DeviceHistograms, REQUEST_KINDS, SparseHistogram};
use crate::model::request_pattern::{RequestPattern, SIZE_BUCKETS};
use aya::Ebpf;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// Kernel memory for histograms at most: this much, or this share of the machine's memory if that is more.
const MAX_BYTES: usize = 32 << 20;
const MAX_MEMORY_SHARE: usize = 1024;
/// `max_entries` of `histograms` in `assets/trace/requests.bpf.c`.
const MAX_HISTOGRAMS: usize = 4096;
/// 32-bit counters per CPU: two histograms, request sizes and order; `struct histogram` in
/// `assets/trace/requests.bpf.c`.
pub(crate) const VALUE_COUNTERS: usize = 2 * BUCKETS + SIZE_BUCKETS + 2;
/// Rounded up as the kernel does for per-CPU values.
pub(crate) const VALUE_LEN: usize = (VALUE_COUNTERS * 4).next_multiple_of(8);
/// How often histograms are tried again without success.
const MAX_FAILED_ROUNDS: u32 = 20;
/// Pause before that; the kernel's worker fetches four pages at a time.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);
/// `max_entries` of `unknown` in `assets/trace/requests.bpf.c`.
const MAX_REQUESTED: usize = 64;

/// A packed device number and an index into [`KINDS`].
pub(super) type HistogramKey = (u32, u32);

fn key_bytes((dev, kind): HistogramKey) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&dev.to_ne_bytes());
    out[4..].copy_from_slice(&kind.to_ne_bytes());
    out
}

pub(crate) fn parse_key(bytes: [u8; 8]) -> HistogramKey {
    (read_u32(&bytes, 0), read_u32(&bytes, 4))
}

pub(super) struct HistogramMaps {
    map: BpfMap<8>,
    /// Histograms that requests asked for.
    requested: BpfMap<8>,
    known: BTreeSet<HistogramKey>,
    buf: Vec<u8>,
    sums: Vec<u32>,
    /// How many fit into the memory limit.
    capacity: usize,
    /// A device has no histogram because the limit is reached.
    is_full: bool,
    /// The kernel had no memory for these; they are tried again with every reading.
    missing: BTreeSet<HistogramKey>,
}

impl HistogramMaps {
    pub(super) fn open(programs: &Ebpf, cpus: usize) -> Result<Self, ProbeUnavailable> {
        Ok(Self {
            map: open_map(programs, "histograms", cpus * VALUE_LEN)?,
            requested: open_map(programs, "unknown", 4)?,
            known: BTreeSet::new(),
            buf: vec![0; cpus * VALUE_LEN],
            sums: vec![0; VALUE_COUNTERS],
            capacity: capacity(cpus * VALUE_LEN, rustix::system::sysinfo().totalram as usize),
            is_full: false,
            missing: BTreeSet::new(),
        })
    }

    pub(super) fn add(&mut self, key: HistogramKey) -> io::Result<()> {
        if self.known.contains(&key) || key.1 as usize >= REQUEST_KINDS.len() {
            return Ok(());
        }
        if self.known.len() >= self.capacity {
            self.is_full = true;
            return Ok(());
        }
        self.buf.fill(0);
        match self.map.insert(&key_bytes(key), &mut self.buf).map_err(|err| (err.raw_os_error(), err)) {
            Ok(()) => {
                self.known.insert(key);
                self.missing.remove(&key);
            }
            // The kernel does not wait for memory, and often has some a moment later.
            Err((Some(libc::ENOMEM | libc::E2BIG), _)) => _ = self.missing.insert(key),
            Err((_, err)) => return Err(err),
        }
        Ok(())
    }

    /// Creates histograms. The kernel takes only memory that is at hand and fetches more meanwhile, so those that it had
    /// none for are tried again while that helps. May take 0.2 s.
    pub(super) fn add_all(&mut self, keys: &[HistogramKey]) -> io::Result<()> {
        let mut failed_rounds = 0;
        while failed_rounds < MAX_FAILED_ROUNDS {
            let before = self.known.len();
            keys.iter().try_for_each(|key| self.add(*key))?;
            if self.missing.is_empty() {
                break;
            }
            failed_rounds = if self.known.len() > before { 0 } else { failed_rounds + 1 };
            std::thread::sleep(MEMORY_PAUSE);
        }
        Ok(())
    }

    /// Whether the kernel had no memory for some.
    pub(super) fn lacks_memory(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Creates the histograms that requests asked for since the last call, and those that the kernel had no memory for.
    pub(super) fn add_requested(&mut self) -> io::Result<()> {
        let missing: Vec<HistogramKey> = self.missing.iter().take(MAX_REQUESTED).copied().collect();
        missing.into_iter().try_for_each(|key| self.add(key))?;
        let mut keys = Vec::new();
        self.requested.for_each(MAX_REQUESTED, |key, _| keys.push(*key))?;
        for key in keys {
            // Those of the other kinds as well, so that their first requests are counted.
            let (dev, kind) = parse_key(key);
            self.add((dev, kind))?;
            (0..REQUEST_KINDS.len() as u32).try_for_each(|other| self.add((dev, other)))?;
            self.requested.remove(&key)?;
        }
        Ok(())
    }

    /// Deletes the histograms of devices that are not `present` (packed numbers), for others to take their place.
    pub(super) fn retain_devices(&mut self, present: &BTreeSet<u32>) -> io::Result<()> {
        let (known, gone) = std::mem::take(&mut self.known).into_iter().partition(|key| present.contains(&key.0));
        self.known = known;
        self.missing.retain(|key| present.contains(&key.0));
        BTreeSet::into_iter(gone).try_for_each(|key| self.map.remove(&key_bytes(key)))?;
        // A device without a histogram asks for it with its next request.
        self.is_full = false;
        Ok(())
    }

    /// Describes what is missing because of the limit, or because memory is short.
    pub(super) fn capacity_note(&self) -> Option<String> {
        match (self.is_full, self.lacks_memory()) {
            (true, _) => Some(format!("limit of {} histograms reached; further devices have none", self.capacity)),
            (false, true) => Some("the kernel had no memory for some histograms; they are tried again".into()),
            (false, false) => None,
        }
    }

    pub(super) fn read(&mut self) -> io::Result<Vec<DeviceHistograms>> {
        let mut out: Vec<DeviceHistograms> = Vec::new();
        for &(dev, kind) in &self.known {
            if !self.map.get(&key_bytes((dev, kind)), &mut self.buf)? {
                continue;
            }
            sum_cpus(&self.buf, &mut self.sums);
            let id = unpack_device(dev);
            if out.last().is_none_or(|d| d.id != id) {
                out.push(DeviceHistograms { id, ..DeviceHistograms::default() });
            }
            if let Some(kind) = out.last_mut().and_then(|d| d.kinds.get_mut(kind as usize)) {
                let (total, rest) = self.sums.split_at(BUCKETS);
                let (service, rest) = rest.split_at(BUCKETS);
                kind.total = SparseHistogram::from_dense(total.iter().copied());
                kind.service = SparseHistogram::from_dense(service.iter().copied());
                kind.pattern = parse_request_pattern(rest);
            }
        }
        Ok(out)
    }
}

/// How many histograms of `len` bytes a machine with so much memory may have.
fn capacity(len: usize, memory_bytes: usize) -> usize {
    (MAX_BYTES.max(memory_bytes / MAX_MEMORY_SHARE) / len).clamp(REQUEST_KINDS.len(), MAX_HISTOGRAMS)
}

/// Parses the counters of sizes, then of random and sequential requests.
pub(crate) fn parse_request_pattern(counts: &[u32]) -> RequestPattern {
    let at = |i: usize| counts.get(i).copied().unwrap_or(0);
    RequestPattern { sizes: std::array::from_fn(at), random: at(SIZE_BUCKETS), sequential: at(SIZE_BUCKETS + 1) }
}

/// Sums the CPUs. Sums wrap like the counters, so that differences stay right.
pub(crate) fn sum_cpus(cpus: &[u8], sums: &mut [u32]) {
    sums.fill(0);
    for cpu in cpus.chunks_exact(VALUE_LEN) {
        for (sum, n) in sums.iter_mut().zip(cpu.chunks_exact(4)) {
            *sum = sum.wrapping_add(u32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf_sys::tests::create_hash_map;
    use super::super::super::layout::pack_device;
    use super::*;
    use crate::model::disk::DevId;

    #[test]
    fn keys_round_trip() {
        let id = DevId { major: 259, minor: 0xf_ffff };
        assert_eq!(parse_key(key_bytes((pack_device(id), 2))), (259 << 20 | 0xf_ffff, 2));
    }

    #[test]
    fn the_histograms_of_devices_that_left_are_deleted_from_the_kernel() {
        let (Some(map), Some(requested)) = (create_hash_map(8, VALUE_LEN), create_hash_map(8, 4)) else {
            return println!(
                "skipped the_histograms_of_devices_that_left_are_deleted_from_the_kernel: may not make maps"
            );
        };
        let in_kernel = map.try_clone().unwrap();
        let (known, buf, sums) = (BTreeSet::new(), vec![0; VALUE_LEN], vec![0; VALUE_COUNTERS]);
        let (capacity, is_full, missing) = (2, false, BTreeSet::new());
        let mut histograms = HistogramMaps { map, requested, known, buf, sums, capacity, is_full, missing };
        [7, 8, 9].into_iter().try_for_each(|dev| histograms.add((dev, 0))).unwrap();
        assert!(histograms.capacity_note().is_some());
        histograms.retain_devices(&BTreeSet::from([8, 9])).unwrap();
        histograms.add((9, 0)).unwrap();
        assert_eq!(histograms.capacity_note(), None, "there is room for another device");
        let mut left = Vec::new();
        in_kernel.for_each(9, |key, _| left.push(parse_key(*key))).unwrap();
        left.sort_unstable();
        assert_eq!(left, [(8, 0), (9, 0)]);
    }

    #[test]
    fn a_histogram_for_which_the_kernel_has_no_room_is_tried_again() {
        let (Some(map), Some(requested)) = (create_hash_map(1, VALUE_LEN), create_hash_map(8, 4)) else {
            return println!("skipped a_histogram_for_which_the_kernel_has_no_room_is_tried_again: may not make maps");
        };
        let (known, buf, sums) = (BTreeSet::new(), vec![0; VALUE_LEN], vec![0; VALUE_COUNTERS]);
        let (capacity, is_full, missing) = (9, false, BTreeSet::new());
        let mut histograms = HistogramMaps { map, requested, known, buf, sums, capacity, is_full, missing };
        histograms.add_all(&[(7, 0), (8, 0)]).unwrap();
        assert_eq!(histograms.known, BTreeSet::from([(7, 0)]));
        assert!(histograms.capacity_note().is_some_and(|note| note.contains("tried again")));
        histograms.add_requested().unwrap();
        assert!(histograms.lacks_memory());
        histograms.retain_devices(&BTreeSet::from([8])).unwrap();
        histograms.add_requested().unwrap();
        assert_eq!((histograms.capacity_note(), histograms.known.len()), (None, 1));
    }

    #[test]
    fn cpus_are_summed_and_counters_may_wrap() {
        let cpu = |first: u32, last: u32| {
            let mut one = vec![0; VALUE_LEN];
            one[..4].copy_from_slice(&first.to_ne_bytes());
            one[4 * VALUE_COUNTERS - 4..4 * VALUE_COUNTERS].copy_from_slice(&last.to_ne_bytes());
            one
        };
        let mut sums = vec![9; VALUE_COUNTERS];
        sum_cpus(&[cpu(u32::MAX, 1), cpu(3, 2)].concat(), &mut sums);
        assert_eq!((sums[0], sums[1], sums[2 * BUCKETS - 1]), (2, 0, 0));
        assert_eq!(
            parse_request_pattern(&sums[2 * BUCKETS..]),
            RequestPattern { sequential: 3, ..RequestPattern::default() }
        );
    }

    #[test]
    fn the_number_of_histograms_is_bounded_by_memory() {
        assert_eq!(capacity(2 * VALUE_LEN, 0), MAX_HISTOGRAMS);
        assert!(capacity(512 * VALUE_LEN, 1 << 30) * 512 * VALUE_LEN <= MAX_BYTES);
        assert_eq!(capacity(8192 * VALUE_LEN, 0), REQUEST_KINDS.len());
        // 256 CPUs come with memory.
        assert!(capacity(256 * VALUE_LEN, 512 << 30) >= 100 * REQUEST_KINDS.len());
    }
}
