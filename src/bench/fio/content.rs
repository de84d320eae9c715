//! What write buffers hold (`fill_io_buffer` and `get_buf_state`, io_u.c): random data, of which parts compress or repeat.

use super::job::{BufferContent, DedupeMode, FioJob, WRITE};
use crate::bench::rng::Rng;

/// Fills blocks of which so many percent repeat, and so many compress.
#[derive(Debug)]
pub(super) struct ReducibleData {
    compress_percent: u64,
    chunk: usize,
    dedupe_percent: u64,
    mode: DedupeMode,
    pattern: Vec<u8>,
    unique: Rng,
    last_unique: Rng,
    choice: Rng,
    /// Seed and number of the blocks of the working set.
    set: (u64, u64),
}

impl ReducibleData {
    /// `None`: the job asks for nothing of the kind. `size`: bytes of a pass; `seed`: of the run, and the clone's number.
    pub(super) fn new(job: &FioJob, size: u64, seed: (u64, u64)) -> Option<Self> {
        if job.compress_percent == 0 && job.dedupe_percent == 0 {
            return None;
        }
        let block = job.block_range(WRITE).0;
        let pattern = match &job.content {
            BufferContent::Pattern(pattern) => pattern.clone(),
            _ => Vec::new(),
        };
        let stream = if job.dedupe_global { 0 } else { seed.1 };
        let unique = Rng::new(seed.0 ^ 0x5eed, seed.1);
        Some(Self {
            compress_percent: job.compress_percent.into(),
            chunk: block.min(job.compress_chunk).max(1) as usize,
            dedupe_percent: job.dedupe_percent.into(),
            mode: job.dedupe_mode,
            pattern,
            last_unique: unique.clone(),
            unique,
            choice: Rng::new(seed.0 ^ 0xdedb, seed.1),
            set: (
                seed.0.wrapping_add(stream.wrapping_mul(0x9e37_79b9)),
                (u128::from(size) * u128::from(job.dedupe_set_percent) / 100 / u128::from(block)).max(1) as u64,
            ),
        })
    }

    /// Fills one block: as a whole it is new, or it repeats another one.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) {
        let repeats = self.dedupe_percent > 0 && self.choice.below(100) < self.dedupe_percent;
        let mut state = match (repeats, self.mode) {
            (true, DedupeMode::Repeat) => self.last_unique.clone(),
            (true, DedupeMode::WorkingSet) => Rng::new(self.set.0, self.choice.below(self.set.1)),
            (false, _) => {
                self.last_unique = self.unique.clone();
                self.unique.clone()
            }
        };
        for chunk in buffer.chunks_mut(self.chunk) {
            let random = chunk.len() * (100 - self.compress_percent as usize) / 100;
            let (random, rest) = chunk.split_at_mut(random);
            state.fill_bytes(random);
            match self.pattern.is_empty() {
                true => rest.fill(0),
                false => rest.iter_mut().zip(self.pattern.iter().cycle()).for_each(|(byte, wanted)| *byte = *wanted),
            }
        }
        if !repeats {
            self.unique = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn blocks(change: impl FnOnce(&mut FioJob), number: u64) -> Vec<Vec<u8>> {
        let mut job = FioJob::default();
        change(&mut job);
        let mut data = ReducibleData::new(&job, 4 << 20, (1, number)).unwrap();
        (0..2000)
            .map(|_| {
                let mut block = vec![1; 4096];
                data.fill(&mut block);
                block
            })
            .collect()
    }

    fn distinct(blocks: &[Vec<u8>]) -> usize {
        blocks.iter().collect::<std::collections::HashSet<_>>().len()
    }

    #[test]
    fn so_many_bytes_of_each_chunk_compress() {
        let all = blocks(|job| (job.compress_percent, job.compress_chunk) = (75, 1024), 0);
        assert_eq!(distinct(&all), all.len());
        for chunk in all[7].chunks(1024) {
            assert!(chunk[256..].iter().all(|b| *b == 0) && chunk[..256].iter().filter(|b| **b == 0).count() < 20);
        }
        let filled = blocks(|job| (job.compress_percent, job.content) = (50, BufferContent::Pattern(vec![7, 8])), 0);
        assert_eq!(filled[0][256..260], [7, 8, 7, 8], "chunks of 512 bytes end with the pattern");
    }

    #[test]
    fn so_many_blocks_repeat_others() {
        let half = distinct(&blocks(|job| job.dedupe_percent = 50, 0));
        assert!(half.abs_diff(1000) < 100, "{half}");
        assert_eq!(distinct(&blocks(|job| job.dedupe_percent = 100, 0)), 1);
    }

    #[test]
    fn a_working_set_is_of_its_size_and_may_be_shared() {
        let job = |global: bool| {
            move |job: &mut FioJob| {
                (job.dedupe_percent, job.dedupe_mode, job.dedupe_set_percent) = (50, DedupeMode::WorkingSet, 1);
                job.dedupe_global = global;
            }
        };
        let repeated = |blocks: &[Vec<u8>]| {
            let mut counts: HashMap<Vec<u8>, u32> = HashMap::new();
            blocks.iter().for_each(|b| *counts.entry(b.clone()).or_default() += 1);
            counts.retain(|_, n| *n > 1);
            counts
        };
        // One percent of 1024 blocks.
        let first = repeated(&blocks(job(false), 0));
        assert_eq!(first.len(), 10);
        let shared = |other: HashMap<Vec<u8>, u32>| other.keys().filter(|b| first.contains_key(*b)).count();
        assert_eq!(shared(repeated(&blocks(job(false), 1))), 0);
        let (one, other) = (repeated(&blocks(job(true), 0)), repeated(&blocks(job(true), 1)));
        assert_eq!(one.keys().filter(|b| other.contains_key(*b)).count(), 10);
    }
}
