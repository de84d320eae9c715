//! Spares reading whole maps on an idle machine (`cargo bench --bench tracing -- overhead` prints the cost of a reading).

use super::bpf_sys::BpfMap;
use super::loader::open_map;
use super::unavailable::ProbeUnavailable;
use aya::Ebpf;
use std::io;

/// The map of an object's zero-initialised variables.
const BSS_MAP: &str = ".bss";

/// What every object that counts has: a flag that is set when anything was counted (`assets/trace/dirty_flag.h`), and the
/// number of events dropped because a map was full (`assets/trace/drops.h`).
pub(super) struct ChangeMaps {
    dirty_flag: BpfMap<4>,
    drops: BpfMap<4>,
    /// The index of the own counter in `drops`.
    drops_index: u32,
}

impl ChangeMaps {
    pub(super) fn open(programs: &Ebpf, cpus: usize) -> Result<Self, ProbeUnavailable> {
        Self::open_at(programs, cpus, BSS_MAP, 0)
    }

    /// Opens those of the second of two probes that share an object; its flag is in a map.
    pub(super) fn open_second(programs: &Ebpf, cpus: usize, flag: &str) -> Result<Self, ProbeUnavailable> {
        Self::open_at(programs, cpus, flag, 1)
    }

    fn open_at(programs: &Ebpf, cpus: usize, flag: &str, drops_index: u32) -> Result<Self, ProbeUnavailable> {
        let (dirty_flag, drops) = (open_map(programs, flag, 4)?, open_map(programs, "drops", 8 * cpus)?);
        Ok(Self { dirty_flag, drops, drops_index })
    }

    /// Reads and clears the flag. Call it before reading the counters.
    pub(super) fn take_dirty_flag(&self) -> io::Result<bool> {
        let mut value = [0; 4];
        self.dirty_flag.get(&[0; 4], &mut value)?;
        let any = value != [0; 4];
        if any {
            self.dirty_flag.insert(&[0; 4], &mut [0; 4])?;
        }
        Ok(any)
    }

    pub(super) fn dropped(&self) -> io::Result<u64> {
        self.drops.sum_cpus(&self.drops_index.to_ne_bytes())
    }
}

/// The last reading, valid until the dirty flag is set.
#[derive(Default)]
pub(super) struct ReadingCache<T> {
    cached: Option<T>,
    /// Uses of the cached reading in a row.
    hits: u32,
}

impl<T: Clone> ReadingCache<T> {
    /// Returns the cached reading if nothing changed, at most `most` times in a row. `None`: read the maps and
    /// [`store`](Self::store) the result.
    pub(super) fn get(&mut self, is_dirty: bool, most: u32) -> Option<T> {
        if is_dirty || self.hits >= most {
            self.cached = None;
            return None;
        }
        self.hits += u32::from(self.cached.is_some());
        self.cached.clone()
    }

    /// Number of reads since the last store, including this one.
    pub(super) fn reads_since_store(&self) -> u32 {
        self.hits + 1
    }

    pub(super) fn store(&mut self, read: &T) {
        *self = Self { cached: Some(read.clone()), hits: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
