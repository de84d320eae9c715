//! What one worker thread does, spelt out: the input of the hot loop.

/// Order of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessOrder {
    /// Uniform over the blocks of the region, with replacement (fio's `norandommap`): no map to keep,
    /// and over a file much larger than the run touches the difference does not show.
    Random,
    /// One after the other, starting again at the end of the region.
    Sequential,
}

/// What write buffers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferFill {
    /// Random once, then a stamp in every 512 bytes of every write, so that no two writes are equal
    /// (what fio's `scramble_buffers` does).
    Scramble,
    /// Random anew for every write: for stores that compress or deduplicate.
    Refill,
}

/// One worker's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoSpec {
    /// Order of positions.
    pub order: AccessOrder,
    /// Reads among 100 operations; the rest are writes.
    pub read_pct: u8,
    /// Bytes of one operation.
    pub block: u32,
    /// First byte of the region.
    pub start: u64,
    /// Bytes of the region.
    pub len: u64,
    /// Operations in flight.
    pub depth: u32,
    /// fdatasync after so many writes; 0: never.
    pub fsync_every: u64,
    /// What write buffers hold.
    pub fill: BufferFill,
    /// At most one operation in so many ns; 0: no cap.
    pub op_interval_ns: u64,
    /// Operations to hand over at a time.
    pub submit_max: u32,
    /// Completions to wait for at a time, at most `depth`.
    pub complete_min: u32,
    /// Ends after so many counted bytes; 0: no limit.
    pub byte_limit: u64,
    /// Fixed seed and this worker's number.
    pub seed: (u64, u64),
}

impl IoSpec {
    /// Sequential writing of the whole region once: how files are laid out.
    pub fn for_layout(len: u64, block: u32, depth: u32, seed: u64) -> Self {
        Self {
            order: AccessOrder::Sequential,
            read_pct: 0,
            block,
            start: 0,
            len,
            depth,
            fsync_every: 0,
            fill: BufferFill::Refill,
            op_interval_ns: 0,
            submit_max: 16,
            complete_min: 1,
            byte_limit: len,
            seed: (seed, u64::MAX),
        }
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// Nothing is counted in the first so many ns.
    pub ramp_ns: u64,
    /// Counted time in ns; 0: no limit.
    pub time_ns: u64,
}
