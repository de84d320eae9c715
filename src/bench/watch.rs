//! What the measuring threads show of themselves, for those who look on: progress, watchdog, and the
//! partial report of a run whose threads never come back.

use super::measure::histogram::Histogram;
use super::measure::recorder::{Kind, Recorder};
use super::message::Progress;
use super::report::{Part, Point, Stalls, Target};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// Points kept of one part's course; two neighbours become one when it is full.
const MAX_POINTS: usize = 1200;

/// What is under way.
#[derive(Default)]
pub struct Phase {
    /// A part without its figures yet: label, engine, sizes.
    pub part: Part,
    /// Number of the measurement, `None` in preparation.
    pub number: Option<u32>,
    /// It ends after so many ns or bytes (0: not by this).
    pub goal: (u64, u64),
    /// The workers.
    pub recorders: Vec<Arc<Recorder>>,
}

/// Shared between the measuring thread and those who look on. Locks are taken between measurements and
/// four times a second, never in a hot loop.
#[derive(Default)]
pub struct Watch {
    /// Set to end the run.
    pub stop: AtomicBool,
    /// All is measured; what is left is giving the file back.
    pub measured: AtomicBool,
    /// Last sign of life that is no operation, CLOCK_MONOTONIC ns.
    pulse: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    phase: Phase,
    parts: Vec<Part>,
    target: Option<Target>,
    notes: Vec<String>,
    series: Vec<Point>,
    stride: u32,
    pending: Vec<Point>,
    last: Last,
}

#[derive(Default)]
struct Last {
    now: u64,
    began: u64,
    counts: [(u64, u64); 3],
    histograms: [Histogram; 3],
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A sign of life from work that is no operation.
    pub fn pulse(&self, now: u64) {
        self.pulse.store(now, Relaxed);
    }

    /// The last sign of life of any kind.
    pub fn last_alive(&self) -> u64 {
        let inner = self.lock();
        let workers = inner.phase.recorders.iter().map(|r| r.last_alive()).max();
        workers.unwrap_or(0).max(self.pulse.load(Relaxed))
    }

    /// A new phase begins.
    pub fn begin(&self, phase: Phase, now: u64) {
        let mut inner = self.lock();
        inner.phase = phase;
        inner.series.clear();
        inner.pending.clear();
        inner.stride = 1;
        inner.last = Last::default();
        drop(inner);
        self.pulse(now);
    }

    /// The phase is over; its course comes out.
    pub fn end(&self) -> Vec<Point> {
        let mut inner = self.lock();
        inner.phase.recorders.clear();
        std::mem::take(&mut inner.series)
    }

    /// Keeps a finished part.
    pub fn keep(&self, part: Part) {
        self.lock().parts.push(part);
    }

    /// Where the file is.
    pub fn aim(&self, target: Target) {
        self.lock().target = Some(target);
    }

    /// Something to tell the person; ends up among the report's warnings.
    pub fn note(&self, note: String) {
        self.lock().notes.push(note);
    }

    /// Notes from number `from` on.
    pub fn notes(&self, from: usize) -> Vec<String> {
        self.lock().notes.get(from..).unwrap_or_default().to_vec()
    }

    /// How many parts are finished.
    pub fn finished(&self) -> u32 {
        self.lock().parts.len() as u32
    }

    /// Finished parts and target. Of an unfinished part with something counted, what there is.
    pub fn harvest(&self, now: u64) -> (Vec<Part>, Option<Target>) {
        let mut inner = self.lock();
        let mut parts = std::mem::take(&mut inner.parts);
        let phase = std::mem::take(&mut inner.phase);
        if phase.number.is_some() && phase.recorders.iter().any(|r| r.began().is_some()) {
            let mut part = gather(phase.part, &phase.recorders);
            part.series = std::mem::take(&mut inner.series);
            // The gap it hangs in has no end yet.
            let last = phase.recorders.iter().map(|r| r.last()).max().unwrap_or(now);
            let gap = now.saturating_sub(last);
            if gap >= super::measure::recorder::STALL_NS {
                part.stalls.count += 1;
                part.stalls.total_ns += gap;
                part.stalls.longest_ns = part.stalls.longest_ns.max(gap);
            }
            if part.read.ios + part.write.ios + part.sync.ios > 0 {
                parts.push(part);
            }
        }
        (parts, inner.target.take())
    }

    /// How far it is at `now`; also takes the next point of the course.
    pub fn progress(&self, now: u64) -> Progress {
        let alive = self.last_alive();
        let mut inner = self.lock();
        let began = inner.phase.recorders.iter().filter_map(|r| r.began()).min();
        let (point, lat) = inner.next_point(now, began);
        if began.is_some() && point.at_ms > 0 && inner.phase.number.is_some() {
            inner.push(point);
        }
        let sum = |kind| inner.phase.recorders.iter().map(|r| r.count(kind).0).sum();
        let bytes: u64 = [Kind::Read, Kind::Write]
            .iter()
            .flat_map(|k| inner.phase.recorders.iter().map(|r| r.count(*k).1))
            .sum();
        let (goal_ns, goal_bytes) = inner.phase.goal;
        let share = |n: u64, of: u64| (of > 0).then(|| (n as f64 / of as f64).min(1.0));
        Progress {
            phase: inner.phase.part.label.clone(),
            part: inner.phase.number,
            done: share(began.map_or(0, |b| now.saturating_sub(b)), goal_ns).or(share(bytes, goal_bytes)),
            ramping: began.is_none() && !inner.phase.recorders.is_empty(),
            point,
            counts: [sum(Kind::Read), sum(Kind::Write), sum(Kind::Sync)],
            lat,
            silent_ms: now.saturating_sub(alive) / 1_000_000,
        }
    }
}

impl Inner {
    /// Rates since the last point, and `lat` of each kind of operation.
    fn next_point(&mut self, now: u64, began: Option<u64>) -> (Point, [[Option<u64>; 2]; 3]) {
        let Some(began) = began else { return Default::default() };
        if self.last.began != began {
            self.last = Last { now: began, began, ..Last::default() };
        }
        let mut counts = [(0, 0); 3];
        let mut histograms: [Histogram; 3] = Default::default();
        for r in &self.phase.recorders {
            for (i, kind) in [Kind::Read, Kind::Write, Kind::Sync].into_iter().enumerate() {
                let (ios, bytes) = r.count(kind);
                counts[i] = (counts[i].0 + ios, counts[i].1 + bytes);
                histograms[i].add(&r.lat_histogram(kind));
            }
        }
        let secs = now.saturating_sub(self.last.now) as f64 / 1e9;
        let per_s = |new: u64, old: u64| if secs > 0.0 { new.saturating_sub(old) as f64 / secs } else { 0.0 };
        let mut recent = Histogram::default();
        let mut lat = [[None; 2]; 3];
        for (i, (new, old)) in histograms.iter().zip(&self.last.histograms).enumerate() {
            let since = new.since(old);
            lat[i] = [since.percentile(50.0), since.percentile(99.0)];
            recent.add(&since);
        }
        let old = self.last.counts;
        let point = Point {
            at_ms: now.saturating_sub(began) / 1_000_000,
            read_iops: per_s(counts[0].0, old[0].0),
            write_iops: per_s(counts[1].0, old[1].0),
            read_bytes_per_s: per_s(counts[0].1, old[0].1),
            write_bytes_per_s: per_s(counts[1].1, old[1].1),
            p50_ns: recent.percentile(50.0),
            p99_ns: recent.percentile(99.0),
        };
        self.last = Last { now, began, counts, histograms };
        (point, lat)
    }

    /// Adds to the course, which stays bounded however long the run is.
    fn push(&mut self, point: Point) {
        self.pending.push(point);
        if self.pending.len() < self.stride as usize {
            return;
        }
        let point = mean(&self.pending);
        self.pending.clear();
        self.series.push(point);
        if self.series.len() >= MAX_POINTS {
            self.series = self.series.chunks(2).map(mean).collect();
            self.stride *= 2;
        }
    }
}

/// Several points as one: rates averaged, the worst latencies kept.
fn mean(points: &[Point]) -> Point {
    let n = points.len().max(1) as f64;
    let avg = |f: fn(&Point) -> f64| points.iter().map(f).sum::<f64>() / n;
    Point {
        at_ms: points.last().map_or(0, |p| p.at_ms),
        read_iops: avg(|p| p.read_iops),
        write_iops: avg(|p| p.write_iops),
        read_bytes_per_s: avg(|p| p.read_bytes_per_s),
        write_bytes_per_s: avg(|p| p.write_bytes_per_s),
        p50_ns: points.iter().filter_map(|p| p.p50_ns).max(),
        p99_ns: points.iter().filter_map(|p| p.p99_ns).max(),
    }
}

/// A part with what its workers counted.
pub fn gather(mut part: Part, recorders: &[Arc<Recorder>]) -> Part {
    let began = recorders.iter().filter_map(|r| r.began()).min().unwrap_or(0);
    let last = recorders.iter().map(|r| r.last()).max().unwrap_or(0);
    part.elapsed_ns = last.saturating_sub(began);
    let mut stalls = Stalls::default();
    for r in recorders {
        part.read = part.read.merged(&r.direction(Kind::Read));
        part.write = part.write.merged(&r.direction(Kind::Write));
        part.sync = part.sync.merged(&r.sync());
        part.depths = part.depths.merged(&r.depths());
        let (count, total, longest) = r.stalls();
        // Workers stall together when the device does: the worst one's count, not the sum.
        stalls.count = stalls.count.max(count);
        stalls.total_ns = stalls.total_ns.max(total);
        stalls.longest_ns = stalls.longest_ns.max(longest);
    }
    part.stalls = stalls;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn phase(recorder: &Arc<Recorder>) -> Phase {
        Phase {
            part: Part { label: "x".into(), ..Part::default() },
            number: Some(0),
            goal: (10 * SECOND, 0),
            recorders: vec![recorder.clone()],
        }
    }

    #[test]
    fn progress_shows_rates_since_the_last_look() {
        let (watch, recorder) = (Watch::default(), Arc::new(Recorder::new()));
        watch.begin(phase(&recorder), SECOND);
        assert!(watch.progress(SECOND).ramping);
        recorder.begin(SECOND);
        for _ in 0..100 {
            recorder.add(Kind::Read, 4096, 0, 0, 1000);
        }
        recorder.seen(2 * SECOND);
        let p = watch.progress(2 * SECOND);
        assert_eq!((p.point.read_iops, p.point.write_iops, p.done), (100.0, 0.0, Some(0.1)));
        assert!(p.point.p50_ns.is_some());
        assert_eq!((p.lat[0], p.lat[1], p.lat[2]), ([p.point.p50_ns, p.point.p99_ns], [None; 2], [None; 2]));
        let p = watch.progress(4 * SECOND);
        assert_eq!((p.point.read_iops, p.point.p50_ns, p.silent_ms), (0.0, None, 2000));
    }

    #[test]
    fn a_worker_that_never_returns_leaves_its_figures() {
        let (watch, recorder) = (Watch::default(), Arc::new(Recorder::new()));
        watch.begin(phase(&recorder), SECOND);
        recorder.begin(SECOND);
        recorder.add(Kind::Write, 4096, 0, 10, 1000);
        recorder.seen(3 * SECOND);
        let (parts, _) = watch.harvest(3 * SECOND);
        assert_eq!((parts.len(), parts[0].write.ios, parts[0].elapsed_ns), (1, 1, 2 * SECOND));
        assert!(watch.harvest(3 * SECOND).0.is_empty());
    }

    #[test]
    fn the_course_stays_bounded() {
        let mut inner = Inner { stride: 1, ..Inner::default() };
        for n in 0..100_000 {
            inner.push(Point { at_ms: n, read_iops: 5.0, ..Point::default() });
        }
        assert!(inner.series.len() < MAX_POINTS && inner.series.len() > MAX_POINTS / 4);
        assert!(inner.series.iter().all(|p| p.read_iops == 5.0));
        assert!(inner.series.windows(2).all(|w| w[0].at_ms < w[1].at_ms));
    }
}
