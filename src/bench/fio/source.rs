//! The operations of one clone of a job, in fio's order and with fio's limits (`do_io` and `keep_running`, backend.c).

mod choice;
mod passes;

use super::content::ReducibleData;
use super::flow::FlowShare;
use super::job::{BufferContent, FioJob, READ, TRIM, WRITE};
use super::latency_target::LatencyTarget;
use super::positions::{FilePositions, FileRange, RandomSequences};
use super::rate::{MinimumRate, Rates};
use super::verify::Verifier;
use crate::bench::engine::{IoOp, monotonic_ns};
use crate::bench::measure::recorder::OpKind;
use crate::bench::op_source::{BatchSizes, NextOp, OpSource, ReapTime, scramble};
use crate::bench::rng::Rng;

const KINDS: [OpKind; 3] = [OpKind::Read, OpKind::Write, OpKind::Trim];

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Reads, writes, trims.
    Working,
    /// The end of a pass: everything in flight, then `end_fsync` of the next file.
    Ending(u16),
    /// Before the verification: a sync of the next file.
    Settling(u16),
    Verifying,
    /// A new pass, or the end.
    Deciding,
    Done,
}

/// What was issued and completed.
#[derive(Debug, Default)]
struct Sums {
    pass_bytes: u64,
    pass_operations: u64,
    /// Operations and bytes issued, and complete, since the start.
    issued: [u64; 3],
    issued_bytes: [u64; 3],
    complete: [u64; 3],
    complete_bytes: u64,
}

/// The pauses of `thinktime`.
#[derive(Debug, Default)]
struct Pauses {
    /// So many operations had their pause.
    done: u64,
    present: Option<Pause>,
    /// When the last one ended.
    last_ns: u64,
    /// An operation was issued since it was last seen whether one is due.
    is_unchecked: bool,
}

/// A clone of a job on its files.
pub(crate) struct FioSource<'a> {
    job: &'a FioJob,
    files: Vec<FilePositions>,
    /// Drops a file's pages from the page cache.
    drop_cache: Box<dyn FnMut(u16) + 'a>,
    random: RandomSequences,
    data: Rng,
    reducible: Option<ReducibleData>,
    stage: Stage,
    is_over: bool,
    batches: BatchSizes,
    rates: Rates,
    minimum: MinimumRate,
    latency: Option<LatencyTarget>,
    verifier: Option<Verifier>,
    flow: Option<FlowShare>,
    /// The share allows the next operation.
    flow_allows: bool,
    /// Limit of bytes of one pass and of all passes; passes left.
    size: u64,
    limit: u64,
    passes_left: u64,
    sums: Sums,
    /// Direction of the mix, and how many of its operations are due before it may change.
    mix: (usize, u64),
    last_was_write: bool,
    run_left: u64,
    file: usize,
    file_run: u32,
    /// A direction chosen by its rate, and when it is due.
    chosen: Option<(usize, u64)>,
    pauses: Pauses,
    backlog_left: u64,
    backlog_due: bool,
}

#[derive(Debug, Clone, Copy)]
enum Pause {
    /// Everything in flight first.
    Draining,
    Until(u64),
}

impl<'a> FioSource<'a> {
    /// `size`: bytes of one pass, as `size=` is after the files are known; `seed`: of the run, and the clone's number.
    pub(crate) fn new(
        job: &'a FioJob,
        ranges: &[FileRange],
        size: u64,
        seed: (u64, u64),
        drop_cache: Box<dyn FnMut(u16) + 'a>,
        flow: Option<FlowShare>,
    ) -> Self {
        let now = monotonic_ns();
        let mut random = RandomSequences::new(seed.0, seed.1);
        let files = ranges.iter().map(|range| FilePositions::new(job, *range, &mut random)).collect();
        let io_size = job.io_size.of(size);
        let depth = job.depth() as usize;
        let at_most_depth = |n: u32| if n == 0 { depth } else { (n as usize).min(depth) };
        let complete_min = (job.batch_complete_min as usize).min(depth);
        let batches = BatchSizes {
            submit_max: at_most_depth(job.iodepth_batch),
            complete_min,
            complete_max: (job.batch_complete_max as usize).max(complete_min).max(1),
            low: at_most_depth(job.iodepth_low),
            reap: match (job.batch_complete_min, job.batch_complete_max) {
                (0, 0) => ReapTime::EachOperation,
                _ => ReapTime::QueueFull,
            },
        };
        Self {
            job,
            files,
            drop_cache,
            random,
            data: Rng::new(seed.0 ^ 0x5eed, seed.1),
            reducible: ReducibleData::new(job, size, seed),
            stage: Stage::Working,
            is_over: false,
            batches,
            rates: Rates::new(job, now),
            minimum: MinimumRate::default(),
            latency: LatencyTarget::new(job, now),
            verifier: Verifier::new(job),
            flow,
            flow_allows: false,
            size,
            limit: if io_size > 0 { io_size } else { size },
            passes_left: job.loops - 1,
            sums: Sums::default(),
            mix: (READ, 0),
            last_was_write: false,
            run_left: job.rw.run_length.max(1),
            file: 0,
            file_run: 0,
            chosen: None,
            pauses: Pauses { last_ns: now, ..Pauses::default() },
            backlog_left: 0,
            backlog_due: false,
        }
    }

    /// The error that shows only at the end: bad blocks.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.verifier.as_ref().map_or(Ok(()), Verifier::verdict)
    }

    /// The depth that met `latency_target`.
    pub(crate) fn latency_depth(&self) -> Option<u32> {
        self.latency.as_ref().map(LatencyTarget::depth)
    }

    fn work(&mut self, now: u64, in_flight: u32) -> Option<NextOp> {
        if self.is_over || self.latency.as_ref().is_some_and(|target| target.is_done) {
            return None;
        }
        if let Some(wait) = self.pause_before_next(now, in_flight) {
            return Some(wait);
        }
        let is_endless = self.job.time_based;
        let has_reached_pass = self.sums.pass_bytes >= self.pass_limit() && (!is_endless || self.verifier.is_some());
        if (self.has_reached_limit() && !is_endless) || has_reached_pass {
            return None;
        }
        if let Some(wait) = self.verify_backlog(in_flight) {
            return Some(wait);
        }
        if let Some(kind) = self.due_sync() {
            self.last_was_write = false;
            let file = self.file.min(self.files.len() - 1) as u16;
            return Some(NextOp::Op(IoOp { file, ..IoOp::new(kind, 0, 0) }));
        }
        if let Some(flow) = self.flow.as_mut().filter(|_| !self.flow_allows) {
            let pause_ns = self.job.flow_sleep_us * 1000;
            match flow.takes() {
                true => self.flow_allows = true,
                false if pause_ns > 0 && in_flight > 0 => return Some(NextOp::Drain),
                false => return Some(NextOp::NotBefore(now + pause_ns.max(1000))),
            }
        }
        match self.next_direction(now, in_flight) {
            Ok(direction) => self.take_operation(direction),
            Err(wait) => Some(wait),
        }
    }

    /// Pauses of `thinktime`, and operations to complete for `latency_target`.
    fn pause_before_next(&mut self, now: u64, in_flight: u32) -> Option<NextOp> {
        if let Some(target) = self.latency.as_mut().filter(|target| target.drains) {
            if in_flight > 0 {
                return Some(NextOp::Drain);
            }
            target.drains = false;
        }
        if std::mem::take(&mut self.pauses.is_unchecked) && self.pauses.present.is_none() && self.needs_pause(now) {
            self.pauses.present = Some(Pause::Draining);
        }
        match self.pauses.present? {
            Pause::Draining if in_flight > 0 => Some(NextOp::Drain),
            Pause::Draining => {
                let spin = self.job.thinktime_spin_us.min(self.job.thinktime_us) * 1000;
                let spin_end = now + spin;
                while spin > 0 && monotonic_ns() < spin_end {
                    std::hint::spin_loop();
                }
                let until = now + self.job.thinktime_us * 1000;
                self.pauses.present = Some(Pause::Until(until));
                Some(NextOp::NotBefore(until))
            }
            Pause::Until(until) if now < until => Some(NextOp::NotBefore(until)),
            Pause::Until(until) => {
                self.pauses.present = None;
                self.pauses.last_ns = now;
                if self.job.rate_ignore_thinktime {
                    let pause_ns = self.job.thinktime_us * 1000 + now.saturating_sub(until);
                    let block = self.job.block_range(self.mix.0).0;
                    self.rates.forgive(self.mix.0, pause_ns, block);
                }
                None
            }
        }
    }

    fn needs_pause(&mut self, now: u64) -> bool {
        let job = self.job;
        if job.thinktime_us == 0 {
            return false;
        }
        let counted = if job.thinktime_counts_issued { self.sums.issued } else { self.sums.complete };
        let blocks: u64 = counted.iter().sum();
        let by_time = job.thinktime_iotime_us > 0;
        let is_time = by_time && now.saturating_sub(self.pauses.last_ns) >= job.thinktime_iotime_us * 1000;
        let by_blocks = !by_time || job.thinktime_blocks > 0;
        let is_due = is_time || (by_blocks && blocks >= self.pauses.done + job.thinktime_blocks.max(1));
        if is_due {
            self.pauses.done = blocks;
        }
        is_due
    }

    /// `verify_backlog`: after so many writes they are read again.
    fn verify_backlog(&mut self, in_flight: u32) -> Option<NextOp> {
        let (every, batch) = (self.job.verify_backlog, self.job.verify_backlog_batch);
        let verifier = self.verifier.as_mut().filter(|_| every > 0 && self.job.do_verify)?;
        if self.backlog_left == 0 {
            // Writes that are verified have to be complete, and none may change what is being read.
            if in_flight > 0 && (self.backlog_due || verifier.is_reading()) {
                return Some(NextOp::Drain);
            }
            if !std::mem::take(&mut self.backlog_due) {
                return None;
            }
            self.backlog_left = (if batch > 0 { batch } else { every }).min(verifier.pending() as u64);
        }
        self.backlog_left = self.backlog_left.checked_sub(1)?;
        let written = verifier.next()?;
        self.sums.pass_bytes += u64::from(written.len);
        Some(NextOp::Op(written.as_read()))
    }

    fn due_sync(&self) -> Option<OpKind> {
        let writes = self.sums.issued[WRITE];
        if !self.last_was_write || writes == 0 {
            return None;
        }
        let is_due = |every: u64| every > 0 && writes.is_multiple_of(every);
        match (is_due(self.job.fsync), is_due(self.job.fdatasync)) {
            (true, _) => Some(OpKind::Fsync),
            (_, true) => Some(OpKind::Sync),
            _ => None,
        }
    }

    /// The direction of the next operation; `Err`: it is not due.
    fn next_direction(&mut self, now: u64, in_flight: u32) -> Result<usize, NextOp> {
        let (direction, due) = match self.chosen.take() {
            Some(chosen) => chosen,
            None => {
                let wanted = self.mixed_direction();
                if !self.rates.is_limited() {
                    return Ok(wanted);
                }
                let shares = [self.job.rwmixread, 100 - self.job.rwmixread];
                let other = self.job.rw.is_mixed().then_some(wanted ^ 1).filter(|other| shares[*other] > 0);
                self.rates.direction(wanted, other, now)
            }
        };
        if now >= due {
            self.mix.0 = direction;
            return Ok(direction);
        }
        self.chosen = Some((direction, due));
        Err(if in_flight > 0 { NextOp::Drain } else { NextOp::NotBefore(due) })
    }

    fn mixed_direction(&mut self) -> usize {
        let rw = &self.job.rw;
        if !rw.is_mixed() {
            return if rw.reads {
                READ
            } else if rw.writes {
                WRITE
            } else {
                TRIM
            };
        }
        let (present, until) = self.mix;
        if self.sums.issued[present] >= until {
            let read = self.random.mix.below(100) < u64::from(self.job.rwmixread);
            let next = if read { READ } else { WRITE };
            if next != present {
                let share = if next == READ { self.job.rwmixread } else { 100 - self.job.rwmixread };
                self.mix.1 = self.sums.issued[present] * u64::from(share) / 100;
            }
            self.mix.0 = next;
        }
        self.mix.0
    }

    /// An operation on the next file that has one; `None` at the end of a pass.
    fn take_operation(&mut self, wanted: usize) -> Option<NextOp> {
        loop {
            let file = self.next_file()?;
            let rw = &self.job.rw;
            let direction = match rw.is_trim_write() {
                true if self.files[file].owes_write() => WRITE,
                true => TRIM,
                false => wanted,
            };
            self.run_left -= 1;
            let picks_new = self.run_left == 0;
            if picks_new {
                self.run_left = rw.run_length.max(1);
            }
            let positions = &mut self.files[file];
            let placement = positions.next(self.job, direction, picks_new, &mut self.random);
            if std::mem::take(&mut positions.has_wrapped) && self.job.invalidate && !self.job.direct {
                (self.drop_cache)(file as u16);
            }
            let Some(placement) = placement else {
                positions.is_done = true;
                self.file_run = 0;
                continue;
            };
            return Some(NextOp::Op(self.record_issue(direction, file, placement.offset, placement.len)));
        }
    }

    fn record_issue(&mut self, direction: usize, file: usize, offset: u64, len: u64) -> IoOp {
        self.sums.issued[direction] += 1;
        self.sums.issued_bytes[direction] += len;
        self.sums.pass_bytes += len;
        self.sums.pass_operations += 1;
        self.last_was_write = direction == WRITE;
        self.rates.record(direction, len, &mut self.random.rate);
        (self.pauses.is_unchecked, self.flow_allows) = (true, false);
        let every = self.job.verify_backlog;
        self.backlog_due |= every > 0 && direction == WRITE && self.sums.issued[WRITE].is_multiple_of(every);
        let priority = self.choose_priority(direction, len);
        IoOp { kind: KINDS[direction], file: file as u16, offset, len: len as u32, priority }
    }
}

impl OpSource for FioSource<'_> {
    fn slots(&self) -> u32 {
        self.job.depth()
    }

    fn depth(&self) -> u32 {
        self.latency.as_ref().map_or(self.job.depth(), LatencyTarget::depth)
    }

    fn batches(&self) -> BatchSizes {
        self.batches
    }

    fn is_paced(&self) -> bool {
        self.rates.is_limited() || self.job.thinktime_us > 0
    }

    fn prepare(&mut self, buffer: &mut [u8]) {
        if let Some(reducible) = &mut self.reducible {
            return reducible.fill(buffer);
        }
        match &self.job.content {
            BufferContent::Zero => buffer.fill(0),
            BufferContent::Pattern(pattern) => {
                buffer.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, wanted)| *byte = *wanted);
            }
            _ => self.data.fill_bytes(buffer),
        }
    }

    fn begin_counting(&mut self, now: u64) {
        self.rates.restart(now);
        self.minimum.restart(now);
        self.sums.complete_bytes = 0;
        self.pauses.last_ns = now;
        self.latency = LatencyTarget::new(self.job, now);
    }

    fn time_is_over(&mut self) {
        self.is_over = true;
    }

    fn next(&mut self, now: u64, in_flight: u32) -> NextOp {
        if self.stage == Stage::Working
            && let Some(next) = self.work(now, in_flight)
        {
            return next;
        }
        self.finish_pass(in_flight)
    }

    fn fill(&mut self, op: &IoOp, buffer: &mut [u8]) {
        if op.kind != OpKind::Write {
            return;
        }
        if let Some(verifier) = &mut self.verifier {
            return verifier.fill(op.file, op.offset, buffer, &mut self.data);
        }
        if let Some(reducible) = &mut self.reducible {
            // As in fio, repeated blocks are chosen anew for each write; parts that compress only if buffers are.
            if self.job.dedupe_percent > 0 || self.job.content == BufferContent::Refill || self.job.rw.reads {
                reducible.fill(buffer);
            }
            return;
        }
        match &self.job.content {
            BufferContent::Scramble => scramble(&mut self.data, buffer),
            BufferContent::Refill => self.data.fill_bytes(buffer),
            // A read into the same slot may have changed it.
            BufferContent::Zero if self.job.rw.reads => buffer.fill(0),
            BufferContent::Pattern(_) if self.job.rw.reads => self.prepare(buffer),
            BufferContent::Zero | BufferContent::Pattern(_) | BufferContent::Fixed => {}
        }
    }

    fn complete(&mut self, op: &IoOp, buffer: &[u8], lat_ns: u64) -> Result<(), String> {
        let direction = match op.kind {
            OpKind::Read => READ,
            OpKind::Write => WRITE,
            OpKind::Trim => TRIM,
            OpKind::Sync | OpKind::Fsync => return Ok(()),
        };
        self.sums.complete[direction] += 1;
        self.sums.complete_bytes += u64::from(op.len);
        let most_us = self.job.max_latency_us[direction];
        if most_us > 0 && lat_ns > most_us * 1000 {
            let (name, us) = (&self.job.name, lat_ns / 1000);
            return Err(format!("{name}: max_latency of {most_us} us is exceeded: {us} us at offset {}", op.offset));
        }
        if let Some(verifier) = self.verifier.as_mut().filter(|_| direction == READ) {
            verifier.check(op.file, op.offset, buffer, !self.job.rw.writes)?;
        }
        if self.job.rate_min != [0; 3] || self.job.rate_iops_min != [0; 3] {
            self.minimum.record(direction, op.len.into());
            self.minimum.check(self.job, monotonic_ns())?;
        }
        if let Some(target) = &mut self.latency {
            target.record(lat_ns)?;
            target.check(monotonic_ns())?;
        }
        Ok(())
    }

    /// As in fio, syncs that end a pass or come before a verification are not counted.
    fn is_counted(&self, op: &IoOp) -> bool {
        op.kind != OpKind::Fsync || self.stage == Stage::Working
    }

    fn takes_figures_anew(&mut self) -> bool {
        self.latency.as_mut().is_some_and(|target| std::mem::take(&mut target.resets))
    }
}
