//! `latency_target`: searches the depth at which so many operations stay below a latency, as fio does (io_u.c).

use super::job::FioJob;

/// Times are in ns.
#[derive(Debug)]
pub(super) struct LatencyTarget {
    target: u64,
    window: u64,
    percent: f64,
    keeps_running: bool,
    most: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable: u32,
    /// A depth was too high, so depths below it are tried.
    has_failed: bool,
    failed: u64,
    operations: u64,
    window_start: u64,
    is_last_window: bool,
    /// The search is over.
    pub is_done: bool,
    /// Operations in flight have to complete before the search goes on.
    pub drains: bool,
    /// The figures up to now are of other depths.
    pub resets: bool,
}

impl LatencyTarget {
    pub(super) fn new(job: &FioJob, now: u64) -> Option<Self> {
        (job.latency_target_us > 0).then(|| Self {
            target: job.latency_target_us * 1000,
            window: job.latency_window_us * 1000,
            percent: job.latency_percent_millionths as f64 / 1e6,
            keeps_running: job.latency_run,
            most: job.depth(),
            depth: 1,
            low: 1,
            high: job.depth(),
            stable: 0,
            has_failed: false,
            failed: 0,
            operations: 0,
            window_start: now,
            is_last_window: false,
            is_done: false,
            drains: false,
            resets: false,
        })
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) fn record(&mut self, lat: u64) -> Result<(), String> {
        self.operations += 1;
        if lat <= self.target {
            return Ok(());
        }
        if self.percent < 100.0 {
            self.failed += 1;
            return Ok(());
        }
        if self.depth == 1 {
            return Err(format!(
                "latency_target of {} us is exceeded at depth 1: {} us",
                self.target / 1000,
                lat / 1000
            ));
        }
        self.lower();
        Ok(())
    }

    /// Judges the window if it is over.
    pub(super) fn check(&mut self, now: u64) -> Result<(), String> {
        if now.saturating_sub(self.window_start) < self.window || self.operations == 0 {
            return Ok(());
        }
        let met = (self.operations - self.failed) as f64 / self.operations as f64 * 100.0;
        if met >= self.percent {
            self.raise();
        } else if self.depth == 1 {
            let (us, wanted) = (self.target / 1000, self.percent);
            return Err(format!(
                "latency_target: {met:.2} % of the operations at depth 1 took at most {us} us, not {wanted} %"
            ));
        } else {
            self.lower();
        }
        (self.window_start, self.failed, self.operations) = (now, 0, 0);
        Ok(())
    }

    fn lower(&mut self) {
        (self.high, self.has_failed) = (self.depth, true);
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = ((self.depth + self.low) / 2).max(1);
        self.stable = 0;
        self.drains = true;
        (self.failed, self.operations) = (0, 0);
    }

    fn raise(&mut self) {
        let before = self.depth;
        self.low = before;
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = if self.has_failed { (before + self.high) / 2 } else { before * 2 };
        self.depth = next.min(self.most);
        if !self.keeps_running && self.depth == before {
            if self.is_last_window {
                self.is_done = true;
            } else {
                (self.is_last_window, self.drains, self.resets) = (true, true, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth found if an operation takes `depth` ms.
    fn search(target_ms: u64, percent: f64) -> u32 {
        let job = FioJob {
            engine: super::super::job::FioEngine::IoUring,
            iodepth: 64,
            latency_target_us: target_ms * 1000,
            latency_window_us: 100_000,
            latency_percent_millionths: (percent * 1e6) as u64,
            ..FioJob::default()
        };
        let mut target = LatencyTarget::new(&job, 0).unwrap();
        let mut now = 0;
        for _ in 0..1_000_000 {
            let lat = u64::from(target.depth()) * 1_000_000 - 1;
            now += 1_000_000;
            target.record(lat).and_then(|()| target.check(now)).unwrap();
            if target.is_done {
                break;
            }
        }
        assert!(target.is_done && target.resets);
        target.depth()
    }

    #[test]
    fn the_highest_depth_below_the_target_is_found() {
        for depth in [1, 2, 5, 17, 40, 63] {
            assert_eq!(search(depth, 99.0), depth as u32);
        }
        assert_eq!(search(200, 99.0), 64);
    }
}
