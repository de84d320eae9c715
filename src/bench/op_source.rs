//! Where a worker's operations come from: a trait, and the source of the profiles of this program.

use super::engine::IoOp;
use super::io_spec::{AccessOrder, BufferFill, IoSpec};
use super::measure::recorder::OpKind;
use super::rng::Rng;

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextOp {
    /// This operation, now.
    Op(IoOp),
    /// Nothing before this time, ns.
    NotBefore(u64),
    /// Nothing before all operations in flight are complete.
    Drain,
    /// Nothing more.
    End,
}

/// How many operations are handed over and returned at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchSizes {
    /// Operations submitted at a time.
    pub submit_max: usize,
    /// Completions waited for at a time, and taken at a time.
    pub complete_min: usize,
    pub complete_max: usize,
    /// Once the queue is full, completions are taken until so few are in flight.
    pub low: usize,
    pub reap: ReapTime,
}

/// When completions are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReapTime {
    /// Whenever there are some.
    Available,
    /// When the queue is full or nothing can be queued, as in fio.
    QueueFull,
    /// After each operation: fio with `iodepth_batch_complete_min=0` and no maximum.
    EachOperation,
}

/// A source of operations for one worker thread.
pub(crate) trait OpSource {
    /// Slots the engine has.
    fn slots(&self) -> u32;
    /// Operations in flight at most, at present.
    fn depth(&self) -> u32 {
        self.slots()
    }
    fn batches(&self) -> BatchSizes;
    /// Whether times between operations are part of the work: a rate limit.
    fn is_paced(&self) -> bool;
    /// Fills a slot's buffer once, before the run.
    fn prepare(&mut self, buffer: &mut [u8]);
    /// Counting begins.
    fn begin_counting(&mut self, now: u64);
    /// The run's time is over: [`Self::next`] goes on with what ends the work, if anything.
    fn time_is_over(&mut self);
    /// The next operation at `now`, with `in_flight` operations not complete.
    fn next(&mut self, now: u64, in_flight: u32) -> NextOp;
    /// Fills the buffer of an operation from [`Self::next`].
    fn fill(&mut self, op: &IoOp, buffer: &mut [u8]);
    /// An operation was completed after `lat_ns`. The error ends the run.
    fn complete(&mut self, op: &IoOp, buffer: &[u8], lat_ns: u64) -> Result<(), String>;
    /// Whether an operation is in the figures.
    fn is_counted(&self, _op: &IoOp) -> bool {
        true
    }
    /// Whether the figures up to now are to be forgotten.
    fn takes_figures_anew(&mut self) -> bool {
        false
    }
}

/// Operations as an [`IoSpec`] describes them.
pub(crate) struct SpecSource<'a> {
    spec: &'a IoSpec,
    rng: Rng,
    /// Of the next sequential operation, from the start of the region.
    next_offset: u64,
    writes_since_sync: u64,
    next_due_ns: u64,
    /// Drops the file from the page cache, and how many bytes there are until then.
    drop_cache: &'a mut dyn FnMut(),
    pass_left: u64,
    queued_bytes: u64,
    is_counting: bool,
    is_over: bool,
}

impl<'a> SpecSource<'a> {
    pub(crate) fn new(spec: &'a IoSpec, now: u64, drop_cache: &'a mut dyn FnMut()) -> Self {
        Self {
            spec,
            rng: Rng::new(spec.seed.0, spec.seed.1),
            next_offset: 0,
            writes_since_sync: 0,
            next_due_ns: now,
            drop_cache,
            pass_left: spec.pass_bytes,
            queued_bytes: 0,
            is_counting: false,
            is_over: false,
        }
    }

    /// An operation of a block begins.
    fn count_pass(&mut self) {
        if self.pass_left == 0 {
            (self.drop_cache)();
            self.pass_left = self.spec.pass_bytes;
        }
        self.pass_left = self.pass_left.saturating_sub(self.spec.block.into());
    }

    fn next_range(&mut self) -> (u64, u32) {
        let &IoSpec { order, block, start, len, .. } = self.spec;
        let bytes = u64::from(block);
        match order {
            AccessOrder::Random => (start + self.rng.below(len / bytes) * bytes, block),
            AccessOrder::Sequential => {
                let at = if self.next_offset >= len { 0 } else { self.next_offset };
                let bytes = bytes.min(len - at);
                self.next_offset = at + bytes;
                (start + at, bytes as u32)
            }
        }
    }
}

impl OpSource for SpecSource<'_> {
    fn slots(&self) -> u32 {
        self.spec.depth.max(1)
    }

    #[inline]
    fn batches(&self) -> BatchSizes {
        let (submit_max, complete_min) = (self.spec.submit_max as usize, self.spec.complete_min as usize);
        BatchSizes { submit_max, complete_min, complete_max: usize::MAX, low: usize::MAX, reap: ReapTime::Available }
    }

    #[inline]
    fn is_paced(&self) -> bool {
        self.spec.op_interval_ns > 0
    }

    fn prepare(&mut self, buffer: &mut [u8]) {
        if self.spec.read_pct < 100 {
            self.rng.fill_bytes(buffer);
        }
    }

    fn begin_counting(&mut self, _now: u64) {
        self.is_counting = true;
        self.queued_bytes = 0;
    }

    fn time_is_over(&mut self) {
        self.is_over = true;
    }

    #[inline]
    fn next(&mut self, now: u64, _in_flight: u32) -> NextOp {
        let spec = self.spec;
        if self.is_over || (spec.byte_limit > 0 && self.is_counting && self.queued_bytes >= spec.byte_limit) {
            return NextOp::End;
        }
        if spec.op_interval_ns > 0 {
            if now < self.next_due_ns {
                return NextOp::NotBefore(self.next_due_ns);
            }
            self.next_due_ns += spec.op_interval_ns;
        }
        if spec.fsync_every > 0 && self.writes_since_sync >= spec.fsync_every {
            self.writes_since_sync = 0;
            return NextOp::Op(IoOp::new(OpKind::Sync, 0, 0));
        }
        let read = match spec.read_pct {
            0 => false,
            100.. => true,
            pct => self.rng.below(100) < u64::from(pct),
        };
        if spec.pass_bytes > 0 {
            self.count_pass();
        }
        let (offset, len) = self.next_range();
        self.queued_bytes += u64::from(len);
        self.writes_since_sync += u64::from(!read);
        NextOp::Op(IoOp::new(if read { OpKind::Read } else { OpKind::Write }, offset, len))
    }

    #[inline]
    fn fill(&mut self, op: &IoOp, buffer: &mut [u8]) {
        if op.kind != OpKind::Write {
            return;
        }
        match self.spec.fill {
            BufferFill::Refill => self.rng.fill_bytes(buffer),
            BufferFill::Scramble => scramble(&mut self.rng, buffer),
        }
    }

    #[inline]
    fn complete(&mut self, _op: &IoOp, _buffer: &[u8], _lat_ns: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Puts a new value in every 512 bytes, as fio's `scramble_buffers` does.
pub(crate) fn scramble(rng: &mut Rng, buffer: &mut [u8]) {
    let stamp = rng.next_u64().to_le_bytes();
    for sector in buffer.chunks_exact_mut(512) {
        sector[..8].copy_from_slice(&stamp);
    }
}
