//! System calls for BPF maps and iterators (bpf(2)).
#![allow(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_LOOKUP_BATCH: libc::c_int = 24;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_ITER_CREATE: libc::c_int = 33;
/// Attach type of an iterator program.
const BPF_TRACE_ITER: u32 = 28;

/// `union bpf_attr` for commands on one map element.
#[repr(C)]
struct MapElemAttr {
    map_fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` for deleting a map element. The kernel refuses a value or flags, which are beyond the end of this one.
#[repr(C)]
struct MapKeyAttr {
    map_fd: u32,
    _pad: u32,
    key: u64,
}

/// `union bpf_attr` for commands on many elements of a hash map (since Linux 5.6).
#[repr(C)]
struct MapBatchAttr {
    /// Where the previous call stopped; null starts at the beginning.
    in_batch: u64,
    /// Where this call stops.
    out_batch: u64,
    keys: u64,
    values: u64,
    /// In: capacity. Out: number of elements.
    count: u32,
    map_fd: u32,
    flags: [u64; 2],
}

/// Makes the descriptor `own` refer to the map of `shared`, in place of its own one. What has the number of `own` uses the other
/// map from now on.
pub(super) fn replace_map(own: BorrowedFd<'_>, shared: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open while they are borrowed; the owner of `own` closes what it refers to then.
    let done = unsafe { libc::dup3(shared.as_raw_fd(), own.as_raw_fd(), libc::O_CLOEXEC) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const BATCH_BYTES: usize = 32 << 10;

/// A map with keys of `K` bytes.
pub(super) struct BpfMap<const K: usize> {
    pub fd: OwnedFd,
    /// Bytes of a value as read by user space: for per-CPU maps the values of all CPUs.
    pub value_len: usize,
}

impl<const K: usize> BpfMap<K> {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, value_len: self.value_len })
    }

    /// Runs a command on one element. For per-CPU maps `value` has the values of all possible CPUs.
    fn element(&self, command: libc::c_int, key: &[u8; K], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_len);
        let (key, value) = (key.as_ptr() as u64, value.as_mut_ptr() as u64);
        let attr = MapElemAttr { map_fd: self.fd.as_raw_fd() as u32, _pad: 0, key, value, flags: 0 };
        // SAFETY: `attr` has the layout of the kernel's union and outlives the call; key and value have the map's sizes.
        let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attr, size_of::<MapElemAttr>()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reads a value into `value`; false if there is none.
    pub(super) fn get(&self, key: &[u8; K], value: &mut [u8]) -> io::Result<bool> {
        match self.element(BPF_MAP_LOOKUP_ELEM, key, value) {
            Err(err) if err.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            other => other.map(|()| true),
        }
    }

    pub(super) fn insert(&self, key: &[u8; K], value: &mut [u8]) -> io::Result<()> {
        self.element(BPF_MAP_UPDATE_ELEM, key, value)
    }

    /// Deletes an element, if there is one.
    pub(super) fn remove(&self, key: &[u8; K]) -> io::Result<()> {
        let attr = MapKeyAttr { map_fd: self.fd.as_raw_fd() as u32, _pad: 0, key: key.as_ptr() as u64 };
        // SAFETY: `attr` has the layout of the kernel's union and outlives the call; the key has the map's size.
        let done =
            unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_DELETE_ELEM, &raw const attr, size_of::<MapKeyAttr>()) };
        match (done < 0).then(io::Error::last_os_error) {
            Some(err) if err.raw_os_error() != Some(libc::ENOENT) => Err(err),
            _ => Ok(()),
        }
    }

    /// Returns the sum of a per-CPU counter.
    pub(super) fn sum_cpus(&self, key: &[u8; K]) -> io::Result<u64> {
        let mut value = vec![0; self.value_len];
        self.get(key, &mut value)?;
        Ok(value.as_chunks().0.iter().map(|n| u64::from_ne_bytes(*n)).fold(0, u64::wrapping_add))
    }

    /// Visits the elements of a hash map, about `most` at the most. If the map changes meanwhile, elements may be
    /// missed. Reads in batches: `io_accounting` reads thousands of accounts per second, and a batch saves two system
    /// calls per element (`cargo bench --bench tracing -- overhead`).
    pub(super) fn for_each(&self, most: usize, mut each: impl FnMut(&[u8; K], &[u8])) -> io::Result<()> {
        let mut capacity = (BATCH_BYTES / self.value_len).clamp(1, most);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let (mut from, mut to) = (0u32, 0u32);
        let mut done = 0;
        while done < most {
            keys.resize(capacity * K, 0);
            values.resize(capacity * self.value_len, 0);
            let mut batch = MapBatchAttr {
                in_batch: if done == 0 { 0 } else { &raw const from as u64 },
                out_batch: &raw mut to as u64,
                keys: keys.as_mut_ptr() as u64,
                values: values.as_mut_ptr() as u64,
                count: capacity as u32,
                map_fd: self.fd.as_raw_fd() as u32,
                flags: [0; 2],
            };
            // SAFETY: `batch` has the layout of the kernel's union; the buffers it points to outlive the call and have
            // room for `count` keys and values of the map's sizes.
            let called = unsafe {
                libc::syscall(libc::SYS_bpf, BPF_MAP_LOOKUP_BATCH, &raw mut batch, size_of::<MapBatchAttr>())
            };
            let err = (called < 0).then(io::Error::last_os_error);
            let end = match err.as_ref().and_then(io::Error::raw_os_error) {
                None => false,
                Some(libc::ENOENT) => true,
                // All elements of one hash bucket are returned together.
                Some(libc::ENOSPC) if capacity < most => {
                    capacity *= 2;
                    continue;
                }
                Some(code) => return Err(io::Error::from_raw_os_error(code)),
            };
            let count = (batch.count as usize).min(capacity);
            for (key, value) in keys.as_chunks().0.iter().zip(values.chunks_exact(self.value_len)).take(count) {
                each(key, value);
            }
            done += count;
            if end || count == 0 {
                break;
            }
            from = to;
        }
        Ok(())
    }
}

pub(super) fn clock_ns(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Runs a command that returns a file descriptor.
fn create_fd(command: libc::c_int, attr: &[u32]) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is what the kernel expects for this command and outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), size_of_val(attr)) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel just created this close-on-exec descriptor for us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Creates the link that keeps an iterator program attached.
pub(super) fn create_iter_link(program: BorrowedFd) -> io::Result<OwnedFd> {
    // Program, no target, attach type, no flags.
    create_fd(BPF_LINK_CREATE, &[program.as_raw_fd() as u32, 0, BPF_TRACE_ITER, 0])
}

/// Creates an iterator: reading its descriptor runs the program from the start. The link keeps the program loaded.
pub(super) fn create_iter(link: BorrowedFd) -> io::Result<OwnedFd> {
    create_fd(BPF_ITER_CREATE, &[link.as_raw_fd() as u32, 0])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Creates a hash map; `None` without permission.
    pub(in crate::bpf) fn create_hash_map<const K: usize>(entries: u32, value_len: usize) -> Option<BpfMap<K>> {
        const CREATE: libc::c_int = 0;
        const HASH: u32 = 1;
        let fd = create_fd(CREATE, &[HASH, K as u32, value_len as u32, entries, 0]).ok()?;
        Some(BpfMap { fd, value_len })
    }

    fn fill(map: &BpfMap<4>, entries: u32) -> Vec<([u8; 4], Vec<u8>)> {
        let value = |n: u32| [n.to_ne_bytes().to_vec(), vec![7; map.value_len - 4]].concat();
        let all: Vec<_> = (0..entries).map(|n| (n.to_ne_bytes(), value(n))).collect();
        all.iter().for_each(|(key, value)| map.insert(key, &mut value.clone()).unwrap());
        all
    }

    #[test]
    fn every_element_is_visited_once() {
        // Values of unaligned length, and values of which one fills a batch.
        for (entries, value_len) in [(0, 12), (1, 12), (5000, 12), (64, BATCH_BYTES)] {
            let Some(map) = create_hash_map(entries.max(1), value_len) else {
                return println!("skipped every_element_is_visited_once: may not make maps");
            };
            let all = fill(&map, entries);
            let mut found = Vec::new();
            map.for_each(9999, |key, value| found.push((*key, value.to_vec()))).unwrap();
            found.sort_by_key(|(key, _)| u32::from_ne_bytes(*key));
            assert!(found == all, "{} of {entries}", found.len());
        }
    }

    #[test]
    fn a_removed_element_is_gone_and_may_be_removed_again() {
        let Some(map) = create_hash_map(2, 12) else {
            return println!("skipped a_removed_element_is_gone_and_may_be_removed_again: may not make maps");
        };
        let all = fill(&map, 2);
        let mut value = vec![0; 12];
        for _ in 0..2 {
            map.remove(&all[0].0).unwrap();
            assert!(!map.get(&all[0].0, &mut value).unwrap() && map.get(&all[1].0, &mut value).unwrap());
        }
        // The map was full.
        map.insert(&[9; 4], &mut value).unwrap();
    }

    #[test]
    fn the_number_of_visited_elements_is_bounded() {
        let Some(map) = create_hash_map(9000, 12) else {
            return println!("skipped the_number_of_visited_elements_is_bounded: may not make maps");
        };
        fill(&map, 9000);
        let mut found = 0;
        map.for_each(100, |_, _| found += 1).unwrap();
        assert!((100..=200).contains(&found), "{found}");
    }
}
