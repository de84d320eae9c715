//! When a pass of a job ends, what follows it, and whether there is another one.

use super::super::job::Amount;
use super::super::verify::Verifier;
use super::{FioSource, Stage};
use crate::bench::engine::IoOp;
use crate::bench::measure::recorder::OpKind;
use crate::bench::op_source::NextOp;

impl FioSource<'_> {
    pub(super) fn has_reached_limit(&self) -> bool {
        let [reads, writes, trims] = self.sums.issued_bytes;
        let rw = &self.job.rw;
        let bytes = match (rw.is_mixed(), rw.writes, rw.reads) {
            (true, ..) => reads + writes,
            (_, true, _) => writes,
            (_, _, true) => reads,
            _ => trims,
        };
        bytes >= self.limit.saturating_mul(self.job.loops) || self.has_reached_operations()
    }

    fn has_reached_operations(&self) -> bool {
        let double = if self.job.rw.is_trim_write() { 2 } else { 1 };
        let most = self.job.number_ios.saturating_mul(self.job.loops).saturating_mul(double);
        most > 0 && self.sums.issued.iter().sum::<u64>() >= most
    }

    /// Bytes after which a pass ends.
    pub(super) fn pass_limit(&self) -> u64 {
        let (job, rw) = (self.job, &self.job.rw);
        let goes_on = rw.writes && (!rw.random || job.skips_random_map());
        let mut limit = if goes_on { self.size.max(self.limit) } else { self.size };
        if self.verifier.is_some() && rw.writes && job.verify_backlog > 0 {
            limit += self.size;
        }
        if rw.is_trim_write() {
            limit += self.limit;
        }
        limit
    }

    /// After a pass: syncs, the verification, another pass.
    pub(super) fn finish_pass(&mut self, in_flight: u32) -> NextOp {
        let files = self.files.len() as u16;
        let sync = |file: u16| NextOp::Op(IoOp { file, ..IoOp::new(OpKind::Fsync, 0, 0) });
        loop {
            if in_flight > 0 && self.stage != Stage::Verifying {
                return NextOp::Drain;
            }
            self.stage = match self.stage {
                Stage::Working => Stage::Ending(0),
                Stage::Ending(file) if self.job.end_fsync && self.job.rw.writes && file < files => {
                    self.stage = Stage::Ending(file + 1);
                    return sync(file);
                }
                Stage::Ending(_) if self.verifies_now() => Stage::Settling(0),
                Stage::Ending(_) => Stage::Deciding,
                Stage::Settling(file) if file < files => {
                    self.stage = Stage::Settling(file + 1);
                    return sync(file);
                }
                Stage::Settling(_) => {
                    (0..files).for_each(|file| (self.drop_cache)(file));
                    Stage::Verifying
                }
                Stage::Verifying => match self.verifier.as_mut().filter(|_| !self.is_over).and_then(Verifier::next) {
                    Some(written) => return NextOp::Op(written.as_read()),
                    None if in_flight > 0 => return NextOp::Drain,
                    None => Stage::Deciding,
                },
                Stage::Deciding => {
                    if self.begins_another_pass() {
                        self.begin_pass();
                        return NextOp::NotBefore(0);
                    }
                    Stage::Done
                }
                Stage::Done => return NextOp::End,
            };
        }
    }

    fn verifies_now(&self) -> bool {
        let pending = self.verifier.as_ref().is_some_and(|verifier| verifier.pending() > 0);
        pending && self.job.do_verify && !self.is_over
    }

    /// `keep_running`: more passes are asked for, or the files had fewer bytes than wanted.
    fn begins_another_pass(&mut self) -> bool {
        if self.is_over || self.sums.pass_operations == 0 || self.latency.as_ref().is_some_and(|target| target.is_done)
        {
            return false;
        }
        if self.job.time_based {
            return true;
        }
        if self.passes_left > 0 {
            self.passes_left -= 1;
            return true;
        }
        let all_done = self.files.iter().all(|file| file.is_done);
        let missing = self.limit.saturating_sub(self.sums.complete_bytes);
        let is_asked = self.job.io_size != Amount::default();
        !self.has_reached_operations() && missing >= self.job.max_block() && (!all_done || is_asked)
    }

    fn begin_pass(&mut self) {
        for (file, positions) in self.files.iter_mut().enumerate() {
            positions.reset();
            if self.job.invalidate {
                (self.drop_cache)(file as u16);
            }
        }
        (self.sums.pass_bytes, self.sums.pass_operations, self.mix.1) = (0, 0, 0);
        (self.stage, self.last_was_write, self.chosen) = (Stage::Working, false, None);
    }
}
