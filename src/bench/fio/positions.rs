//! Offsets and lengths of a job's operations: what fio's `get_next_offset` and `get_next_buflen` (io_u.c) give.

use super::block_map::BlockMap;
use super::distribution::{BlockPicker, Permutation};
use super::job::{FioJob, RandomGenerator};
use crate::bench::rng::Rng;

/// fio's mark for a position that has not been used.
const UNUSED: u64 = u64::MAX;

/// The part of a file that a job works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileRange {
    /// Number of the file in the run.
    pub file: usize,
    /// First byte.
    pub start: u64,
    /// Bytes from there on.
    pub len: u64,
    /// Bytes of the whole file.
    pub file_size: u64,
}

/// The range of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placement {
    pub offset: u64,
    pub len: u64,
}

/// Random sequences, each of its own, as in fio: the sizes of blocks do not change the offsets.
#[derive(Debug)]
pub(super) struct RandomSequences {
    pub offset: Rng,
    pub mix: Rng,
    pub size: Rng,
    pub sequential: Rng,
    pub file: Rng,
    pub rate: Rng,
    pub priority: Rng,
}

impl RandomSequences {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let of = |n: u64| Rng::new(seed, stream.wrapping_mul(8).wrapping_add(n));
        Self { offset: of(0), mix: of(1), size: of(2), sequential: of(3), file: of(4), rate: of(5), priority: of(6) }
    }
}

/// Positions of one job in one of its files.
#[derive(Debug)]
pub(super) struct FilePositions {
    pub range: FileRange,
    /// Start of the present zone; without zones that of the range.
    zone_start: u64,
    zone_bytes: u64,
    last_end: [u64; 3],
    last_start: [u64; 3],
    map: Option<BlockMap>,
    order: Option<Permutation>,
    pickers: Vec<BlockPicker>,
    /// Nothing more in this pass.
    pub is_done: bool,
    /// It is one of the `openfiles`.
    pub is_open: bool,
    /// A pass ended and a new one began: the page cache is to be dropped.
    pub has_wrapped: bool,
}

impl FilePositions {
    pub(super) fn new(job: &FioJob, range: FileRange, random: &mut RandomSequences) -> Self {
        let span = range.len.min(range.file_size);
        let map = job.has_random_map().then(|| BlockMap::new(span.div_ceil(job.min_block())));
        let order = (job.rw.random && job.generator == RandomGenerator::Lfsr).then(|| {
            let direction = job.directions().next().unwrap_or(0);
            Permutation::new(span / job.alignment(direction), random.offset.next_u64())
        });
        let mut picker = |direction: usize| {
            let block = job.alignment(direction);
            BlockPicker::new(&job.distribution, direction, (span / block).max(1), block, &mut random.offset)
        };
        let pickers = if job.rw.random { (0..3).map(&mut picker).collect() } else { Vec::new() };
        let mut this = Self {
            range,
            zone_start: range.start,
            zone_bytes: 0,
            last_end: [range.start; 3],
            last_start: [UNUSED; 3],
            map,
            order,
            pickers,
            is_done: false,
            is_open: false,
            has_wrapped: false,
        };
        this.reset();
        this
    }

    /// Begins a pass over the file.
    pub(super) fn reset(&mut self) {
        self.last_end = [self.zone_start; 3];
        self.last_start = [UNUSED; 3];
        if let Some(map) = &mut self.map {
            map.clear();
        }
        if let Some(order) = &mut self.order {
            order.restart();
        }
        (self.is_done, self.is_open) = (false, false);
    }

    /// Whether the last trim was not yet followed by its write.
    pub(super) fn owes_write(&self) -> bool {
        self.last_start[super::job::WRITE] != self.last_start[super::job::TRIM]
    }

    /// The range of the next operation; `None`: none in this pass. `picks_new`: random patterns take a new random offset.
    pub(super) fn next(
        &mut self,
        job: &FioJob,
        direction: usize,
        picks_new: bool,
        random: &mut RandomSequences,
    ) -> Option<Placement> {
        use super::job::{TRIM, WRITE};
        self.advance_zone(job, direction);
        if job.rw.is_trim_write() && direction == WRITE {
            // What was trimmed is written.
            let (start, end) = (self.last_start[TRIM], self.last_end[TRIM]);
            return Some(self.take(direction, start, end - start));
        }
        let (at, is_random, is_mapped) = self.next_offset(job, direction, picks_new, random)?;
        if at >= self.range.len || self.zone_start + at >= self.range.file_size {
            return None;
        }
        let offset = self.zone_start + at;
        let mut len = self.next_length(job, direction, offset, is_random, &mut random.size)?;
        if offset + len > self.range.file_size {
            return None;
        }
        if let (Some(map), true) = (&mut self.map, is_mapped) {
            let unit = job.block_range(direction).0;
            let blocks = map.set(at / unit, len.div_ceil(unit));
            len = len.min(blocks * unit);
        }
        Some(self.take(direction, offset, len))
    }

    fn take(&mut self, direction: usize, offset: u64, len: u64) -> Placement {
        self.last_start[direction] = offset;
        self.last_end[direction] = offset + len;
        self.zone_bytes += len;
        Placement { offset, len }
    }

    /// `zonemode=strided`: so many bytes in a zone, then on to the next.
    fn advance_zone(&mut self, job: &FioJob, direction: usize) {
        if job.zone_size == 0 {
            return;
        }
        let range = if job.zone_range == 0 { job.zone_size } else { job.zone_range };
        if self.zone_bytes >= job.zone_size {
            self.zone_bytes = 0;
            self.zone_start += range + job.zone_skip;
            if self.zone_start >= self.range.file_size {
                self.zone_start = self.range.start;
            }
            self.last_end[direction] = self.zone_start;
        }
        if self.last_end[direction] >= self.zone_start + range {
            self.last_end[direction] = self.zone_start;
        }
        if self.zone_bytes.is_multiple_of(range) {
            self.reset();
        }
    }

    /// Offset from the start of the zone, whether it is random, and whether it belongs into the map.
    fn next_offset(
        &mut self,
        job: &FioJob,
        direction: usize,
        picks_new: bool,
        random: &mut RandomSequences,
    ) -> Option<(u64, bool, bool)> {
        let mapped = job.rw.random;
        if !picks_new {
            if job.rw.repeats_offset {
                let last = self.last_start[direction];
                return Some((if last == UNUSED { 0 } else { last - self.zone_start }, false, false));
            }
            let next = self.next_sequential(job, direction);
            return next.or_else(|| self.next_random(job, direction, random)).map(|at| (at, false, false));
        }
        if !job.rw.random {
            return self.next_sequential(job, direction).map(|at| (at, false, false));
        }
        let share = job.percentage_random[direction];
        if share == 100 || random.sequential.below(100) < u64::from(share) {
            return self.next_random(job, direction, random).map(|at| (at, true, mapped));
        }
        let next = self.next_sequential(job, direction);
        next.or_else(|| self.next_random(job, direction, random)).map(|at| (at, false, false))
    }

    fn next_sequential(&mut self, job: &FioJob, direction: usize) -> Option<u64> {
        let end = self.range.start + self.range.len;
        let repeats = job.time_based || (job.rw.writes && job.io_size.of(self.range.len) > self.range.len);
        if repeats && self.last_end[direction] >= end {
            self.last_end[direction] = self.zone_start;
            self.has_wrapped = true;
        }
        let (whole, part) = (self.range.file_size, self.range.len);
        if self.last_end[direction] >= whole {
            return None;
        }
        let stride = job.rw.stride;
        if stride < 0 && self.zone_start > 0 && self.last_end[direction] == self.zone_start {
            self.last_end[direction] = whole.min(part);
        }
        let mut at = self.last_end[direction].wrapping_sub(self.zone_start);
        if at > 0 && stride != 0 {
            at = at.wrapping_add_signed(stride);
            if at >= whole {
                at = if stride > 0 { self.zone_start } else { whole.min(part).wrapping_add_signed(stride) };
            }
        }
        Some(at)
    }

    fn next_random(&mut self, job: &FioJob, direction: usize, random: &mut RandomSequences) -> Option<u64> {
        let block = job.alignment(direction);
        if let Some(b) = self.random_block(job, direction, random) {
            return Some(b * block);
        }
        if !job.time_based {
            return None;
        }
        let (zone_bytes, done) = (self.zone_bytes, self.is_done);
        self.reset();
        (self.zone_bytes, self.is_done, self.has_wrapped) = (zone_bytes, done, true);
        self.random_block(job, direction, random).map(|b| b * block)
    }

    fn random_block(&mut self, job: &FioJob, direction: usize, random: &mut RandomSequences) -> Option<u64> {
        let mut span = self.range.len.min(self.range.file_size);
        if job.zone_size > 0 && job.zone_range > 0 {
            span = job.zone_range;
        }
        let (align, least) = (job.alignment(direction), job.block_range(direction).0);
        let blocks = span.saturating_sub(least.saturating_sub(align)) / align;
        if blocks == 0 {
            return None;
        }
        if let Some(order) = &mut self.order {
            return order.next();
        }
        let block = self.pickers.get(direction)?.pick(&mut random.offset, blocks);
        match &self.map {
            Some(map) => map.next_free(block),
            None => Some(block),
        }
    }

    /// Bytes of an operation at `offset`; `None`: not even the smallest block fits.
    fn next_length(&self, job: &FioJob, direction: usize, offset: u64, is_random: bool, rng: &mut Rng) -> Option<u64> {
        use super::job::{READ, WRITE};
        let direction = if job.bs_is_seq_rand { if is_random { WRITE } else { READ } } else { direction };
        let (least, most) = job.block_range(direction);
        if least == most {
            return Some(least);
        }
        let fits = |len: u64| offset + len <= self.range.start + self.range.len;
        if !fits(least) {
            return None;
        }
        loop {
            let split = &job.bssplit[direction];
            let mut len = 0;
            if split.is_empty() {
                len = least + rng.below(most);
            } else {
                // The first size whose share of the draw is reached and that fits; otherwise the last.
                let draw = rng.below(100);
                let mut sum = 0;
                for (size, share) in split.iter().filter(|(_, share)| *share > 0) {
                    (len, sum) = (*size, sum + u64::from(*share));
                    if draw < sum && fits(len) {
                        break;
                    }
                }
            }
            if !job.bs_unaligned {
                len -= len % least;
            }
            len = len.min(most);
            if fits(len) {
                return Some(len);
            }
        }
    }
}
