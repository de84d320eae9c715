//! The course of a run for the live charts: bounded, however long the run is.

use crate::bench::message::Progress;

/// Moments kept; two neighbours become one when it is full.
const MOST: usize = 1200;

/// Rates and latencies of a short while.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Reads, writes, syncs per second.
    pub per_s: [f64; 3],
    /// Bytes read and written per second.
    pub bytes_per_s: [f64; 2],
    /// Median and 99th percentile of each, ns.
    pub lat: [[Option<u64>; 2]; 3],
}

/// The moments of the measurements so far, or of the preparation while there are none.
#[derive(Debug, Default)]
pub struct Course {
    moments: Vec<Moment>,
    stride: usize,
    pending: Vec<Moment>,
    measuring: bool,
    part: Option<u32>,
    counts: [u64; 3],
    at_ms: u64,
    /// Which of reads, writes, syncs there were.
    pub seen: [bool; 3],
}

impl Course {
    /// Takes in a progress.
    pub fn push(&mut self, p: &Progress) {
        if p.part.is_some() && !self.measuring {
            // The preparation is no measurement.
            *self = Self { measuring: true, ..Self::default() };
        }
        if p.part != self.part || p.point.at_ms < self.at_ms {
            (self.part, self.counts, self.at_ms) = (p.part, [0; 3], 0);
        }
        let ms = p.point.at_ms.saturating_sub(self.at_ms);
        if ms == 0 || p.ramping {
            return;
        }
        let syncs = p.counts[2].saturating_sub(self.counts[2]) as f64 * 1000.0 / ms as f64;
        for (seen, n) in self.seen.iter_mut().zip(p.counts) {
            *seen |= n > 0;
        }
        (self.counts, self.at_ms) = (p.counts, p.point.at_ms);
        self.keep(Moment {
            per_s: [p.point.read_iops, p.point.write_iops, syncs],
            bytes_per_s: [p.point.read_bytes_per_s, p.point.write_bytes_per_s],
            lat: p.lat,
        });
    }

    fn keep(&mut self, moment: Moment) {
        self.pending.push(moment);
        if self.pending.len() < self.stride.max(1) {
            return;
        }
        self.moments.push(together(&self.pending));
        self.pending.clear();
        if self.moments.len() >= MOST {
            self.moments = self.moments.chunks(2).map(together).collect();
            self.stride = self.stride.max(1) * 2;
        }
    }

    /// The newest moment.
    pub fn last(&self) -> Option<&Moment> {
        self.pending.last().or(self.moments.last())
    }

    /// The whole course in at most `width` moments, oldest first.
    pub fn within(&self, width: usize) -> Vec<Moment> {
        let each = self.moments.len().div_ceil(width.max(1)).max(1);
        self.moments.chunks(each).map(together).collect()
    }
}

/// Several moments as one: rates averaged, the worst latencies kept.
fn together(all: &[Moment]) -> Moment {
    let n = all.len().max(1) as f64;
    let mut out = Moment::default();
    for m in all {
        (0..3).for_each(|i| out.per_s[i] += m.per_s[i] / n);
        (0..2).for_each(|i| out.bytes_per_s[i] += m.bytes_per_s[i] / n);
        for (worst, lat) in out.lat.iter_mut().flatten().zip(m.lat.iter().flatten()) {
            *worst = (*worst).max(*lat);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Point;

    fn progress(part: Option<u32>, at_ms: u64, syncs: u64) -> Progress {
        let point = Point { at_ms, read_iops: 100.0, ..Point::default() };
        Progress { part, point, counts: [at_ms, 0, syncs], lat: [[Some(at_ms); 2]; 3], ..Progress::default() }
    }

    #[test]
    fn the_preparation_goes_and_parts_follow_each_other() {
        let mut course = Course::default();
        course.push(&progress(None, 250, 0));
        course.push(&progress(None, 500, 0));
        assert_eq!(course.within(10).len(), 2);
        course.push(&progress(Some(0), 0, 0));
        assert_eq!((course.within(10).len(), course.seen), (0, [false; 3]));
        course.push(&progress(Some(0), 250, 50));
        course.push(&progress(Some(0), 750, 100));
        course.push(&progress(Some(1), 500, 10));
        let syncs: Vec<_> = course.within(10).iter().map(|m| m.per_s[2]).collect();
        assert_eq!((syncs, course.seen), (vec![200.0, 100.0, 20.0], [true, false, true]));
    }

    #[test]
    fn what_is_not_counted_is_not_drawn() {
        let mut course = Course::default();
        course.push(&Progress { ramping: true, ..progress(Some(0), 250, 0) });
        assert_eq!(course.last(), None);
    }

    #[test]
    fn it_stays_bounded_and_keeps_the_worst() {
        let mut course = Course::default();
        for n in 1..100_000 {
            course.push(&progress(Some(0), n * 250, 0));
        }
        assert!(course.moments.len() < MOST);
        let all = course.within(40);
        assert!((20..=40).contains(&all.len()), "{}", all.len());
        assert!(all.iter().all(|m| (m.per_s[0] - 100.0).abs() < 1e-6));
        assert!(all.windows(2).all(|w| w[0].lat[0][1] < w[1].lat[0][1]));
    }
}
