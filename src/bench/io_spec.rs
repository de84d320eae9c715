//! What one worker thread does: the input of [`super::worker_loop`].

/// The order of offsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessOrder {
    /// Uniform over the blocks of the region, with replacement (fio's `norandommap`): it needs no map,
    /// and in a file much larger than what the run touches the result is the same.
    Random,
    /// One after the other, starting again at the end of the region.
    #[default]
    Sequential,
}

/// What write buffers hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BufferFill {
    /// Random data, and a new value in every 512 bytes of each write, as fio's `scramble_buffers` does.
    Scramble,
    /// New random data for every write: for storage that compresses or deduplicates.
    #[default]
    Refill,
}

/// The work of one worker thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoSpec {
    /// The order of offsets.
    pub order: AccessOrder,
    /// Percentage of reads; the rest are writes.
    pub read_pct: u8,
    /// Bytes of one operation.
    pub block: u32,
    /// First byte of the region.
    pub start: u64,
    /// Bytes of the region.
    pub len: u64,
    /// Operations in flight.
    pub depth: u32,
    /// Writes between two fdatasync calls; 0: none.
    pub fsync_every: u64,
    /// What write buffers hold.
    pub fill: BufferFill,
    /// Shortest time between the starts of two operations, ns; 0: no rate limit.
    pub op_interval_ns: u64,
    /// Operations submitted at a time.
    pub submit_max: u32,
    /// Completions waited for at a time, at most `depth`.
    pub complete_min: u32,
    /// Ramp-up, ns: operations in it are not counted.
    pub ramp_ns: u64,
    /// Counted time in ns; 0: no limit.
    pub time_ns: u64,
    /// Counted bytes after which the worker ends; 0: no limit.
    pub byte_limit: u64,
    /// Bytes after which the file is dropped from the page cache; 0: never.
    pub pass_bytes: u64,
    /// The plan's seed and the worker's number.
    pub seed: (u64, u64),
}

impl IoSpec {
    /// One sequential write of the whole region, as fio lays out a file.
    pub(crate) fn for_layout(len: u64, block: u32, depth: u32, seed: u64) -> Self {
        let (byte_limit, seed) = (len, (seed, u64::MAX));
        Self { block, len, depth, submit_max: 16, complete_min: 1, byte_limit, seed, ..Self::default() }
    }
}
