//! The histograms in the kernel: which there are, making room for more, reading them.
//!
//! Each is one value a possible CPU, so their number is bounded by the memory they take, [`MOST_BYTES`].

use super::super::kernel::{ALIGN, Map};
use crate::model::disk::DevId;
use crate::model::latency::{Counts, DeviceCounts, KINDS, SLOTS};
use crate::model::shape::{SIZES, Shape};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes of the kernel's memory that histograms may take.
const MOST_BYTES: usize = 32 << 20;
/// Histograms at most, however few CPUs there are: `histograms` in `assets/trace/latency.bpf.c`.
const MOST: usize = 4096;
/// 32-bit counts for one CPU, two histograms, sizes and order: `struct histogram` in `assets/trace/latency.bpf.c`.
const COUNTS: usize = 2 * SLOTS + SIZES + 2;
const VALUE: usize = (COUNTS * 4).next_multiple_of(ALIGN);
/// Requests of devices without a histogram are noted in so many entries.
const UNKNOWN: usize = 64;

/// A device, packed as the kernel's side does, and the place of a kind in [`KINDS`].
pub type Key = (u32, u32);

/// A device number in one word.
pub fn pack(id: DevId) -> u32 {
    id.major << 20 | id.minor & 0xf_ffff
}

fn bytes((dev, kind): Key) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&dev.to_ne_bytes());
    out[4..].copy_from_slice(&kind.to_ne_bytes());
    out
}

fn key(bytes: [u8; 8]) -> Key {
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (word(0), word(4))
}

/// The histograms that there are.
pub struct Histograms {
    known: BTreeSet<Key>,
    cpus: usize,
    /// Values of all CPUs.
    buf: Vec<u8>,
    /// Sums over them.
    sums: Vec<u32>,
    /// Some device has none for want of room.
    full: bool,
}

impl Histograms {
    /// None yet, on a machine with so many possible CPUs.
    pub fn new(cpus: usize) -> Self {
        Self { known: BTreeSet::new(), cpus, buf: vec![0; cpus * VALUE], sums: vec![0; COUNTS], full: false }
    }

    /// How many there is room for.
    pub fn room(&self) -> usize {
        (MOST_BYTES / (self.cpus * VALUE)).clamp(KINDS.len(), MOST)
    }

    /// Makes one, empty.
    pub fn add(&mut self, map: BorrowedFd, key: Key) -> io::Result<()> {
        if self.known.contains(&key) || key.1 as usize >= KINDS.len() {
            return Ok(());
        }
        if self.known.len() >= self.room() {
            self.full = true;
            return Ok(());
        }
        self.buf.fill(0);
        self.map(map).put(&bytes(key), &mut self.buf)?;
        self.known.insert(key);
        Ok(())
    }

    /// Makes those that requests have asked for since the last call.
    pub fn add_unknown(&mut self, map: BorrowedFd, unknown: BorrowedFd) -> io::Result<()> {
        let unknown = Map::<8> { fd: unknown, value_len: 4 };
        for _ in 0..UNKNOWN {
            let Some(asked) = unknown.any_key() else { break };
            self.add(map, key(asked))?;
            unknown.remove(&asked);
        }
        Ok(())
    }

    /// Says what is missing for want of room.
    pub fn missing(&self) -> Option<String> {
        let room = self.room();
        self.full.then(|| format!("there is room for {room} histograms; later devices have none"))
    }

    fn map<'a>(&self, fd: BorrowedFd<'a>) -> Map<'a, 8> {
        Map { fd, value_len: self.cpus * VALUE }
    }

    /// All of them, by device.
    pub fn read(&mut self, fd: BorrowedFd) -> io::Result<Vec<DeviceCounts>> {
        let map = self.map(fd);
        let mut out: Vec<DeviceCounts> = Vec::new();
        for &(dev, kind) in &self.known {
            if !map.get(&bytes((dev, kind)), &mut self.buf)? {
                continue;
            }
            add_up(&self.buf, &mut self.sums);
            let id = DevId { major: dev >> 20, minor: dev & 0xf_ffff };
            if out.last().is_none_or(|d| d.id != id) {
                out.push(DeviceCounts { id, ..DeviceCounts::default() });
            }
            if let Some(kind) = out.last_mut().and_then(|d| d.kinds.get_mut(kind as usize)) {
                let (total, rest) = self.sums.split_at(SLOTS);
                let (service, rest) = rest.split_at(SLOTS);
                kind.total = Counts::of(total.iter().copied());
                kind.service = Counts::of(service.iter().copied());
                kind.shape = shape(rest);
            }
        }
        Ok(out)
    }
}

/// Sizes, then what begins elsewhere and what goes on.
fn shape(counts: &[u32]) -> Shape {
    let at = |i: usize| counts.get(i).copied().unwrap_or(0);
    Shape { sizes: std::array::from_fn(at), random: at(SIZES), sequential: at(SIZES + 1) }
}

/// Sums over the CPUs. They wrap as the counts do, so that differences of sums are sums of differences.
fn add_up(cpus: &[u8], sums: &mut [u32]) {
    sums.fill(0);
    for cpu in cpus.chunks_exact(VALUE) {
        for (sum, n) in sums.iter_mut().zip(cpu.chunks_exact(4)) {
            *sum = sum.wrapping_add(u32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back() {
        let id = DevId { major: 259, minor: 0xf_ffff };
        assert_eq!(key(bytes((pack(id), 2))), (259 << 20 | 0xf_ffff, 2));
    }

    #[test]
    fn the_cpus_are_added_up_and_counts_may_wrap() {
        let cpu = |first: u32, last: u32| {
            let mut one = vec![0; VALUE];
            one[..4].copy_from_slice(&first.to_ne_bytes());
            one[4 * COUNTS - 4..4 * COUNTS].copy_from_slice(&last.to_ne_bytes());
            one
        };
        let mut sums = vec![9; COUNTS];
        add_up(&[cpu(u32::MAX, 1), cpu(3, 2)].concat(), &mut sums);
        assert_eq!((sums[0], sums[1], sums[2 * SLOTS - 1]), (2, 0, 0));
        assert_eq!(shape(&sums[2 * SLOTS..]), Shape { sequential: 3, ..Shape::default() });
    }

    #[test]
    fn their_number_is_bounded_by_memory() {
        assert_eq!(Histograms::new(2).room(), MOST);
        assert!(Histograms::new(512).room() * 512 * VALUE <= MOST_BYTES);
        assert_eq!(Histograms::new(8192).room(), KINDS.len());
    }
}
