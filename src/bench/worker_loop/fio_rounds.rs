//! Rounds of work in the order of fio: `do_io` and `wait_for_completions` in backend.c, `td_io_queue` and
//! `td_io_getevents` in ioengines.c.
//!
//! Operations are counted with the depth at the time when `iodepth_batch` of them are queued. A wait hands over what
//! is queued, however little it is, and that is not counted. Completions are waited for when the queue is full, and
//! then taken until `iodepth_low` is reached. With `iodepth_batch_complete_min=0` they are polled for.

use super::{Pause, STOP_POLL_NS, WorkerLoop, not_taken};
use crate::bench::engine::IoEngine;
use crate::bench::op_source::{OpSource, ReapTime};
use crate::bench::target::refusal::RunError;

impl<E: IoEngine, S: OpSource> WorkerLoop<'_, E, S> {
    /// Counts and submits a batch if it is complete; waits if the queue is full or nothing can be queued.
    pub(super) fn fio_round(&mut self, mut now: u64, draining: bool) -> Result<u64, RunError> {
        let batches = self.source.batches();
        let is_batch = self.queue.uncounted >= batches.submit_max;
        if self.queue.uncounted > 0 && (is_batch || (self.pause != Pause::None && !draining)) {
            now = self.submit_batch(true)?;
        }
        let in_flight = self.in_flight();
        self.queue.is_emptying |= in_flight >= self.source.depth() as usize;
        let has_pause = draining || self.pause != Pause::None;
        if self.queue.wanted == 0 {
            if !(self.queue.is_emptying || has_pause || batches.reap == ReapTime::EachOperation) {
                return Ok(now);
            }
            self.queue.wanted = if has_pause { 1 } else { batches.complete_min.max(1) };
        }
        // What has completed is taken even if the device never completes the rest.
        let most = if draining { 1 } else { in_flight };
        self.queue.wanted = self.queue.wanted.min(most);
        if !self.unsubmitted.is_empty() {
            self.submit_batch(false)?;
        }
        let now = self.wait_for_wanted(now, draining)?;
        if self.engine.ready() < self.queue.wanted {
            return Ok(now);
        }
        self.completions.clear();
        self.engine.reap(&mut self.completions, batches.complete_max.max(self.queue.wanted));
        self.queue.wanted = 0;
        let now = self.finish_round(now, in_flight)?;
        self.queue.is_emptying &= self.in_flight() > batches.low;
        Ok(now)
    }

    /// Whether completions are waited for, so that nothing may be queued.
    pub(super) fn waits(&self) -> bool {
        self.queue.wanted > 0 || self.queue.is_emptying
    }

    fn submit_batch(&mut self, is_counted: bool) -> Result<u64, RunError> {
        let (fresh, in_flight) = (self.unsubmitted.len(), self.in_flight());
        let now = self.submit_all()?;
        if self.is_counting && fresh > 0 {
            self.recorder.record_submit(fresh);
        }
        if is_counted {
            let queued = std::mem::take(&mut self.queue.uncounted);
            if self.is_counting {
                self.recorder.record_depth(queued, in_flight);
            }
        }
        Ok(now)
    }

    fn wait_for_wanted(&mut self, now: u64, draining: bool) -> Result<u64, RunError> {
        if self.queue.wanted == 0 {
            return self.wait_for_completions(now, draining, 0);
        }
        let due = match self.pause {
            Pause::Until(due) if !draining => due.min(now + STOP_POLL_NS),
            _ => now + STOP_POLL_NS,
        };
        if self.source.batches().complete_min == 0 && !draining {
            while self.engine.ready() < self.queue.wanted && self.engine.now() < due {
                std::hint::spin_loop();
            }
        } else if self.engine.ready() < self.queue.wanted {
            self.engine.wait(self.queue.wanted as u32, due.saturating_sub(now)).map_err(not_taken)?;
        }
        Ok(self.engine.now())
    }
}
