//! When the next operation of each direction is due: `rate`, `rate_iops`, `rate_process`, `rate_min`.

use super::job::FioJob;
use crate::bench::rng::Rng;

const SECOND_NS: u128 = 1_000_000_000;
/// fio checks the lowest rates only after this time.
const SETTLE_NS: u64 = 2_000_000_000;

/// Times are in ns; due times are since the start of counting.
#[derive(Debug, Default)]
pub(super) struct Rates {
    bytes_per_s: [u64; 3],
    /// Operations per second where blocks have several sizes, or times between them are random.
    per_operation: [u64; 3],
    poisson: bool,
    issued: [u64; 3],
    due: [u64; 3],
    epoch: u64,
}

impl Rates {
    pub(super) fn new(job: &FioJob, epoch: u64) -> Self {
        let mut rates = Self { poisson: job.poisson, epoch, ..Self::default() };
        for d in 0..3 {
            let block = job.block_range(d).0;
            let iops = if job.rate[d] > 0 { job.rate[d] / block } else { job.rate_iops[d] };
            rates.bytes_per_s[d] = if job.rate[d] > 0 { job.rate[d] } else { job.rate_iops[d] * block };
            if job.poisson || (job.rate[d] == 0 && !job.bssplit[d].is_empty()) {
                rates.per_operation[d] = iops;
            }
        }
        rates
    }

    pub(super) fn is_limited(&self) -> bool {
        self.bytes_per_s.iter().any(|n| *n > 0)
    }

    /// Begins anew at `now`, as after a ramp-up or between two passes.
    pub(super) fn restart(&mut self, now: u64) {
        (self.issued, self.due, self.epoch) = ([0; 3], [0; 3], now);
    }

    /// The direction of the next operation if `wanted` is the one of the mix, and when it is due.
    pub(super) fn direction(&self, wanted: usize, other: Option<usize>, now: u64) -> (usize, u64) {
        let since = now.saturating_sub(self.epoch);
        let at = |d: usize| self.epoch + self.due[d];
        if self.due[wanted] <= since {
            return (wanted, now);
        }
        match other {
            Some(other) if self.due[other] <= since => (other, now),
            Some(other) if self.due[other] < self.due[wanted] => (other, at(other)),
            _ => (wanted, at(wanted)),
        }
    }

    /// An operation of `bytes` was issued: when the next one of its direction is due.
    pub(super) fn record(&mut self, direction: usize, bytes: u64, rng: &mut Rng) {
        let rate = self.bytes_per_s[direction];
        if rate == 0 {
            return;
        }
        self.issued[direction] += bytes;
        self.due[direction] = match self.per_operation[direction] {
            0 => (u128::from(self.issued[direction]) * SECOND_NS / u128::from(rate)) as u64,
            iops if self.poisson => {
                let unit = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                self.due[direction] + (1e9 / iops as f64 * -unit.ln()) as u64
            }
            iops => self.due[direction] + (SECOND_NS / u128::from(iops)) as u64,
        };
    }

    /// `rate_ignore_thinktime`: a pause of `pause_ns` after operations of `block` bytes is made up for.
    pub(super) fn forgive(&mut self, direction: usize, pause_ns: u64, block: u64) {
        let rate = self.bytes_per_s[direction];
        if rate == 0 {
            return;
        }
        let missed = (u128::from(rate) * u128::from(pause_ns) / SECOND_NS) as u64;
        self.issued[direction] += missed.saturating_sub(block);
        self.due[direction] += pause_ns;
    }
}

/// `rate_min` and `rate_iops_min`: the run fails when a cycle had less.
#[derive(Debug, Default)]
pub(super) struct MinimumRate {
    /// Bytes and operations complete.
    done: [(u64, u64); 3],
    last: [(u64, (u64, u64)); 3],
    start: u64,
}

impl MinimumRate {
    pub(super) fn restart(&mut self, now: u64) {
        *self = Self { start: now, ..Self::default() };
    }

    pub(super) fn record(&mut self, direction: usize, bytes: u64) {
        let (sum, operations) = self.done[direction];
        self.done[direction] = (sum + bytes, operations + 1);
    }

    /// The error if a direction was too slow in the last cycle.
    pub(super) fn check(&mut self, job: &FioJob, now: u64) -> Result<(), String> {
        for direction in 0..3 {
            let (bytes, operations) = (job.rate_min[direction], job.rate_iops_min[direction]);
            let done = self.done[direction];
            if (bytes == 0 && operations == 0) || done.0 == 0 || now < self.start + SETTLE_NS {
                continue;
            }
            let (since, last) = self.last[direction];
            if since > 0 {
                let spent = now - since;
                if spent < job.rate_cycle_us * 1000 {
                    continue;
                }
                let per_s = |n: u64| (u128::from(n) * SECOND_NS / u128::from(spent.max(1))) as u64;
                let (got_bytes, got) = (per_s(done.0 - last.0), per_s(done.1 - last.1));
                if got_bytes < bytes {
                    return Err(format!("{}: rate_min={bytes} was not met: {got_bytes} bytes/s", job.name));
                }
                if bytes == 0 && got < operations {
                    return Err(format!("{}: rate_iops_min={operations} was not met: {got} IOPS", job.name));
                }
            }
            self.last[direction] = (now, done);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_own_rate() {
        let job = FioJob { rate_iops: [100, 400, 400], ..FioJob::default() };
        let (mut rates, mut rng) = (Rates::new(&job, 0), Rng::new(1, 1));
        let mut counts = [0u64; 2];
        let mut now = 0;
        while now < 10_000_000_000 {
            let (direction, due) = rates.direction(0, Some(1), now);
            now = now.max(due);
            rates.record(direction, 4096, &mut rng);
            counts[direction] += 1;
        }
        assert!(counts[0].abs_diff(1000) <= 2 && counts[1].abs_diff(4000) <= 2, "{counts:?}");
    }

    #[test]
    fn random_intervals_have_the_wanted_mean() {
        let job = FioJob { rate_iops: [50; 3], poisson: true, ..FioJob::default() };
        let (mut rates, mut rng) = (Rates::new(&job, 0), Rng::new(1, 1));
        (0..10_000).for_each(|_| rates.record(0, 4096, &mut rng));
        assert!((rates.due[0] as f64 / 1e9 / 200.0 - 1.0).abs() < 0.05, "{}", rates.due[0]);
    }

    #[test]
    fn a_rate_below_the_minimum_is_an_error() {
        let job = FioJob { rate_iops_min: [100; 3], ..FioJob::default() };
        let mut minimum = MinimumRate::default();
        minimum.restart(1);
        let mut second = |n: u64, operations: u64| {
            (0..operations).for_each(|_| minimum.record(0, 4096));
            minimum.check(&job, n * 1_000_000_000 + 1)
        };
        for n in 1..6 {
            assert_eq!(second(n, if n < 2 { 1 } else { 120 }), Ok(()), "{n}");
        }
        assert!(second(6, 80).unwrap_err().contains("80 IOPS"));
    }
}
