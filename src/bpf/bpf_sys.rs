//! System calls for BPF maps and iterators (bpf(2)).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Values are aligned to this many bytes where user space reads or writes them.
pub const VALUE_ALIGN: usize = 8;

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_GET_NEXT_KEY: libc::c_int = 4;
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

/// Runs one command. `key` and `value` must have the map's sizes; for per-CPU maps the value has all possible CPUs.
fn map_elem(command: libc::c_int, map: BorrowedFd, key: *const u8, value: *mut u8) -> io::Result<()> {
    let attr = MapElemAttr { map_fd: map.as_raw_fd() as u32, _pad: 0, key: key as u64, value: value as u64, flags: 0 };
    // SAFETY: `attr` has the layout of the kernel's union and outlives the call; callers pass buffers of the map's
    // sizes.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attr, size_of::<MapElemAttr>()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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

/// Bytes of values per batch.
const BATCH_BYTES: usize = 32 << 10;

/// A map with keys of `K` bytes.
pub struct BpfMap<'a, const K: usize> {
    /// File descriptor of the map.
    pub fd: BorrowedFd<'a>,
    /// Bytes of a value as read by user space: for per-CPU maps the values of all CPUs.
    pub value_len: usize,
}

impl<const K: usize> BpfMap<'_, K> {
    /// Reads a value into `value`; false if there is none.
    pub fn get(&self, key: &[u8; K], value: &mut [u8]) -> io::Result<bool> {
        assert_eq!(value.len(), self.value_len);
        match map_elem(BPF_MAP_LOOKUP_ELEM, self.fd, key.as_ptr(), value.as_mut_ptr()) {
            Err(err) if err.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Inserts or replaces a value.
    pub fn insert(&self, key: &[u8; K], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_len);
        map_elem(BPF_MAP_UPDATE_ELEM, self.fd, key.as_ptr(), value.as_mut_ptr())
    }

    /// Removes a value, if it exists.
    pub fn remove(&self, key: &[u8; K]) {
        let _ = map_elem(BPF_MAP_DELETE_ELEM, self.fd, key.as_ptr(), std::ptr::null_mut());
    }

    /// Visits the elements of a hash map, about `most` at the most. If the map changes meanwhile, elements may be
    /// missed. Reads in batches: `io_accounting` reads thousands of accounts per second, and a batch saves two system
    /// calls per element (`cargo bench --bench tracing -- overhead`).
    pub fn for_each(&self, most: usize, mut each: impl FnMut(&[u8; K], &[u8])) -> io::Result<()> {
        match self.for_each_batched(most, &mut each) {
            // The kernel has no batch command.
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => self.for_each_by_key(most, each),
            other => other,
        }
    }

    fn for_each_by_key(&self, most: usize, mut each: impl FnMut(&[u8; K], &[u8])) -> io::Result<()> {
        let mut value = vec![0; self.value_len];
        let mut next = self.first_key();
        for _ in 0..most {
            let Some(key) = next else { break };
            if self.get(&key, &mut value)? {
                each(&key, &value);
            }
            next = self.next_key(Some(&key));
        }
        Ok(())
    }

    /// Reads many elements per call. A kernel without the command fails at the first call.
    fn for_each_batched(&self, most: usize, each: &mut impl FnMut(&[u8; K], &[u8])) -> io::Result<()> {
        let mut capacity = (BATCH_BYTES / self.value_len).max(1);
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

    /// Returns some key; `None` if the map is empty.
    pub fn first_key(&self) -> Option<[u8; K]> {
        self.next_key(None)
    }

    /// Returns at most `most` keys. If the map changes meanwhile, keys may be missed.
    pub fn keys(&self, most: usize) -> Vec<[u8; K]> {
        let mut out: Vec<[u8; K]> = Vec::new();
        // If the last key was removed meanwhile, the kernel starts again from the first.
        while let Some(key) = self.next_key(out.last()).filter(|_| out.len() < most) {
            out.push(key);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Returns the key after `after`, in the kernel's order; `None` at the end. If `after` was removed, the first key.
    pub fn next_key(&self, after: Option<&[u8; K]>) -> Option<[u8; K]> {
        let mut key = [0; K];
        let after = after.map_or(std::ptr::null(), |a| a.as_ptr());
        map_elem(BPF_MAP_GET_NEXT_KEY, self.fd, after, key.as_mut_ptr()).ok().map(|()| key)
    }
}

/// Returns the sum of a per-CPU counter, the only value of its map.
pub fn sum_percpu_counter(fd: BorrowedFd, cpus: usize) -> io::Result<u64> {
    let map = BpfMap::<4> { fd, value_len: 8 * cpus };
    let mut value = vec![0; 8 * cpus];
    map.get(&[0; 4], &mut value)?;
    let cpu = |n: &[u8]| n.try_into().map_or(0, u64::from_ne_bytes);
    Ok(value.chunks_exact(8).map(cpu).fold(0, u64::wrapping_add))
}

/// Reads and clears the flag of `assets/trace/news.h`: true if anything was counted since the last call. Call it before
/// reading the counters.
pub fn take_dirty_flag(fd: BorrowedFd) -> io::Result<bool> {
    let map = BpfMap::<4> { fd, value_len: 4 };
    let mut value = [0; 4];
    map.get(&[0; 4], &mut value)?;
    let any = value != [0; 4];
    if any {
        map.insert(&[0; 4], &mut [0; 4])?;
    }
    Ok(any)
}

/// The last reading, valid until the dirty flag is set. Spares reading whole maps on an idle machine (`cargo bench
/// --bench tracing -- overhead` prints the cost of a reading).
#[derive(Default)]
pub struct ReadingCache<T> {
    cached: Option<T>,
    /// Uses of the cached reading in a row.
    hits: u32,
}

impl<T: Clone> ReadingCache<T> {
    /// Returns the cached reading if nothing changed, at most `most` times in a row. `None`: read the maps and
    /// [`store`](Self::store) the result.
    pub fn get(&mut self, is_dirty: bool, most: u32) -> Option<T> {
        if is_dirty || self.hits >= most {
            self.cached = None;
            return None;
        }
        self.hits += u32::from(self.cached.is_some());
        self.cached.clone()
    }

    /// Number of reads since the last store, including this one.
    pub fn reads_since_store(&self) -> u32 {
        self.hits + 1
    }

    /// Stores a reading.
    pub fn store(&mut self, read: &T) {
        *self = Self { cached: Some(read.clone()), hits: 0 };
    }
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
pub fn create_iter_link(program: BorrowedFd) -> io::Result<OwnedFd> {
    // Program, no target, attach type, no flags.
    create_fd(BPF_LINK_CREATE, &[program.as_raw_fd() as u32, 0, BPF_TRACE_ITER, 0])
}

/// Creates an iterator: reading its descriptor runs the program from the start. The link keeps the program loaded.
pub fn create_iter(link: BorrowedFd) -> io::Result<OwnedFd> {
    create_fd(BPF_ITER_CREATE, &[link.as_raw_fd() as u32, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_cached_reading_is_reused_until_the_dirty_flag_or_the_limit() {
        let mut unchanged = ReadingCache::default();
        assert_eq!(unchanged.get(false, 9), None, "nothing was read yet");
        unchanged.store(&'a');
        assert_eq!((unchanged.get(false, 2), unchanged.get(false, 2)), (Some('a'), Some('a')));
        assert_eq!((unchanged.get(false, 2), unchanged.reads_since_store()), (None, 3));
        unchanged.store(&'b');
        assert_eq!(unchanged.get(true, 2), None);
        assert_eq!(unchanged.get(false, 2), None, "what was to be read was never kept");
    }

    /// Creates a hash map with keys of 4 bytes; `None` without permission.
    fn create_hash_map(entries: u32, value_len: usize) -> Option<OwnedFd> {
        const CREATE: libc::c_int = 0;
        const HASH: u32 = 1;
        create_fd(CREATE, &[HASH, 4, value_len as u32, entries, 0]).ok()
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
            let Some(fd) = create_hash_map(entries.max(1), value_len) else {
                return println!("skipped all_elements_are_handed_over_once: may not make maps");
            };
            let map = BpfMap::<4> { fd: fd.as_fd(), value_len };
            let all = fill(&map, entries);
            let (mut at_once, mut in_turn) = (Vec::new(), Vec::new());
            map.for_each_batched(9999, &mut |key, value| at_once.push((*key, value.to_vec()))).unwrap();
            map.for_each_by_key(9999, |key, value| in_turn.push((*key, value.to_vec()))).unwrap();
            for mut found in [at_once, in_turn] {
                found.sort_by_key(|(key, _)| u32::from_ne_bytes(*key));
                assert!(found == all, "{} of {entries}", found.len());
            }
        }
    }

    #[test]
    fn the_number_of_visited_elements_is_bounded() {
        let Some(fd) = create_hash_map(9000, 12) else {
            return println!("skipped no_more_than_about_so_many_are_handed_over: may not make maps");
        };
        let map = BpfMap::<4> { fd: fd.as_fd(), value_len: 12 };
        fill(&map, 9000);
        let mut found = 0;
        map.for_each(100, |_, _| found += 1).unwrap();
        assert!((100..=100 + BATCH_BYTES / 12).contains(&found), "{found}");
    }
}
