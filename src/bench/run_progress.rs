//! The state that measuring threads share: progress, the watchdog's heartbeat, the report of a run that is stuck.

use super::bounded_series::{BoundedSeries, Merge};
use super::disturbance::{DisturbanceCause, DisturbedSpan};
use super::engine::monotonic_ns;
use super::measure::histogram::Histogram;
use super::measure::latency::{DirectionStats, LatencyStats};
use super::measure::recorder::{OpKind, OpRecorder};
use super::message::BenchProgress;
use super::report::{HistogramPoint, Measurement, ReportTarget, SeriesPoint};
use crate::model::disk::DevId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

const MAX_SERIES_POINTS: usize = 1200;

/// Locks are taken between measurements and four times a second, never in a hot loop.
#[derive(Default)]
pub struct RunProgress {
    /// Set to end the run.
    pub stop_requested: AtomicBool,
    /// All measurements are done; the file is being freed.
    pub is_measured: AtomicBool,
    /// Last heartbeat outside of operations, CLOCK_MONOTONIC ns.
    heartbeat_ns: AtomicU64,
    /// Set to keep a histogram of every interval.
    pub keeps_histograms: AtomicBool,
    /// Bytes that the disk moved since it appeared; 0: unknown.
    disk_bytes: AtomicU64,
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    phase: Phase,
    measurements: Vec<Measurement>,
    /// When each of them counted, CLOCK_MONOTONIC ns.
    windows: Vec<(u64, u64)>,
    ended_window: (u64, u64),
    disturbed: Vec<DisturbedSpan>,
    /// Whether the last of them goes on.
    is_stalled: bool,
    target: Option<ReportTarget>,
    disk: Option<DevId>,
    notes: Vec<String>,
}

/// The current measurement or preparation.
#[derive(Default)]
struct Phase {
    /// Label, engine, sizes; no results.
    measurement: Measurement,
    is_measured: bool,
    /// Time limit in ns and byte limit; 0: none.
    goal: (u64, u64),
    recorders: Vec<Arc<OpRecorder>>,
    series: BoundedSeries<SeriesPoint, MAX_SERIES_POINTS>,
    histograms: BoundedSeries<HistogramPoint, MAX_SERIES_POINTS>,
    /// Time and counts of the previous snapshot; 0: none since counting began.
    last_ns: u64,
    last: Measurement,
    last_disk_bytes: u64,
}

impl RunProgress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Reports progress of work that is not an operation.
    pub(crate) fn heartbeat(&self, now: u64) {
        self.heartbeat_ns.store(now, Relaxed);
    }

    fn last_heartbeat_ns(&self) -> u64 {
        let inner = self.lock();
        let workers = inner.phase.recorders.iter().map(|r| r.last_heartbeat_ns()).max();
        workers.unwrap_or(0).max(self.heartbeat_ns.load(Relaxed))
    }

    /// Time since anything completed, ms.
    pub(crate) fn idle_ms(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_heartbeat_ns()) / 1_000_000
    }

    /// Starts a phase: a measurement without its results, its limits of time (ns) and bytes, 0 for none, and its workers.
    pub(crate) fn begin_phase(
        &self,
        measurement: &Measurement,
        is_measured: bool,
        goal: (u64, u64),
        recorders: &[Arc<OpRecorder>],
    ) {
        let (measurement, recorders) = (measurement.clone(), recorders.to_vec());
        self.lock().phase = Phase { measurement, is_measured, goal, recorders, ..Phase::default() };
        self.heartbeat(monotonic_ns());
    }

    /// Ends a phase: returns its series.
    pub(crate) fn end_phase(&self) -> (Vec<SeriesPoint>, Vec<HistogramPoint>) {
        let mut inner = self.lock();
        inner.ended_window = (inner.phase.counting_since().unwrap_or(u64::MAX), monotonic_ns());
        inner.phase.recorders.clear();
        let phase = &mut inner.phase;
        (std::mem::take(&mut phase.series.points), std::mem::take(&mut phase.histograms.points))
    }

    pub(crate) fn add_measurement(&self, part: Measurement) {
        let mut inner = self.lock();
        let window = inner.ended_window;
        inner.measurements.push(part);
        inner.windows.push(window);
    }

    /// Tells what the disk moved since it appeared, before [`Self::snapshot`].
    pub(crate) fn set_disk_bytes(&self, bytes: u64) {
        self.disk_bytes.store(bytes, Relaxed);
    }

    /// This process did not run from `from_ns` to `to_ns`. That is no stall of the storage.
    pub(crate) fn add_pause(&self, from_ns: u64, to_ns: u64, cause: DisturbanceCause) {
        self.lock().disturbed.push(DisturbedSpan { cause, from_ns, to_ns });
        self.heartbeat(to_ns);
    }

    /// Begins or continues the stall in which nothing has completed for `idle_ms`; `cause` is asked if it is not yet known.
    pub(crate) fn continue_stall(&self, now: u64, idle_ms: u64, cause: impl FnOnce() -> DisturbanceCause) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.is_stalled, true) {
            let from_ns = now.saturating_sub(idle_ms * 1_000_000);
            inner.disturbed.push(DisturbedSpan { cause: DisturbanceCause::Unknown, from_ns, to_ns: now });
        }
        if let Some(span) = inner.disturbed.last_mut() {
            span.to_ns = now;
            if span.cause != DisturbanceCause::Frozen {
                span.cause = cause();
            }
        }
    }

    /// Operations complete again.
    pub(crate) fn end_stall(&self) {
        self.lock().is_stalled = false;
    }

    /// The target, and the disk whose counters include its I/O.
    pub(crate) fn set_target(&self, target: ReportTarget, disk: Option<DevId>) {
        let mut inner = self.lock();
        (inner.target, inner.disk) = (Some(target), disk);
    }

    pub(crate) fn disk(&self) -> Option<DevId> {
        self.lock().disk
    }

    /// Adds a notice, which becomes one of the report's warnings.
    pub(crate) fn add_note(&self, note: String) {
        self.lock().notes.push(note);
    }

    pub(crate) fn notes_from(&self, from: usize) -> Vec<String> {
        self.lock().notes.get(from..).unwrap_or_default().to_vec()
    }

    /// Takes the finished measurements, the counts of the unfinished one if there are any, and the target.
    pub(crate) fn take_results(&self, now: u64) -> (Vec<Measurement>, Option<ReportTarget>) {
        let mut inner = self.lock();
        let mut parts = std::mem::take(&mut inner.measurements);
        let mut windows = std::mem::take(&mut inner.windows);
        let phase = std::mem::take(&mut inner.phase);
        if let Some(since) = phase.counting_since().filter(|_| phase.is_measured) {
            let mut part = merge_recorders(phase.measurement, &phase.recorders);
            (part.series, part.histograms) = (phase.series.points, phase.histograms.points);
            // The present gap without completions has no end yet.
            let last = phase.recorders.iter().map(|r| r.last_completion_ns()).max().unwrap_or(now);
            let gap = now.saturating_sub(last);
            if gap >= super::measure::recorder::STALL_NS {
                part.stalls.count += 1;
                part.stalls.total_ns += gap;
                part.stalls.longest_ns = part.stalls.longest_ns.max(gap);
            }
            if part.ios() + part.sync.ios > 0 {
                parts.push(part);
                windows.push((since, now));
            }
        }
        for (part, window) in parts.iter_mut().zip(windows) {
            part.disturbances = inner.disturbed.iter().filter_map(|span| span.within(window)).collect();
        }
        (parts, inner.target.take())
    }

    /// Progress at `now`; also adds the next point of the time series.
    pub fn snapshot(&self, now: u64) -> BenchProgress {
        let idle_ms = self.idle_ms(now);
        let disk_bytes = self.disk_bytes.load(Relaxed);
        let mut inner = self.lock();
        let measurement_index = inner.phase.is_measured.then_some(inner.measurements.len() as u32);
        let phase = &mut inner.phase;
        let began = phase.counting_since();
        let totals = merge_recorders(Measurement::default(), &phase.recorders);
        let op_counts = [totals.read.ios, totals.write.ios, totals.sync.ios];
        let share = |n: u64, of: u64| (of > 0).then(|| (n as f64 / of as f64).min(1.0));
        let time_share = share(began.map_or(0, |b| now.saturating_sub(b)), phase.goal.0);
        let fraction_done = time_share.or(share(totals.bytes(), phase.goal.1));
        let keeps_histograms = phase.is_measured && self.keeps_histograms.load(Relaxed);
        if let Some(began) = began.filter(|_| keeps_histograms) {
            let of = |m: fn(&Measurement) -> &LatencyStats| m(&totals).samples_since(m(&phase.last));
            let (read, write) = (of(|m| &m.read.clat), of(|m| &m.write.clat));
            phase.histograms.push(HistogramPoint { at_ms: now.saturating_sub(began) / 1_000_000, read, write });
        }
        let (point, lat) = began.map(|began| phase.next_point(now, began, totals, disk_bytes)).unwrap_or_default();
        if point.at_ms > 0 && phase.is_measured {
            phase.series.push(point);
        }
        BenchProgress {
            phase: phase.measurement.label.clone(),
            measurement_index,
            fraction_done,
            is_ramping: began.is_none() && !phase.recorders.is_empty(),
            point,
            op_counts,
            lat,
            idle_ms,
        }
    }
}

impl Phase {
    fn counting_since(&self) -> Option<u64> {
        self.recorders.iter().filter_map(|r| r.counting_since()).min()
    }

    /// Rates since the last point, and `lat` of each kind of operation.
    fn next_point(
        &mut self,
        now: u64,
        began: u64,
        totals: Measurement,
        disk_bytes: u64,
    ) -> (SeriesPoint, [[Option<u64>; 2]; 3]) {
        let secs = now.saturating_sub(self.last_ns.max(began)) as f64 / 1e9;
        let per_s = |of: fn(&Measurement) -> u64| match of(&totals).saturating_sub(of(&self.last)) {
            more if secs > 0.0 => more as f64 / secs,
            _ => 0.0,
        };
        let lat: [fn(&Measurement) -> &LatencyStats; 3] = [|m| &m.read.lat, |m| &m.write.lat, |m| &m.sync.lat];
        let recent = lat.map(|of| of(&totals).samples_since(of(&self.last)));
        let all = recent.iter().fold(Histogram::default(), |all, one| all.merge(one));
        let means = |of: fn(&Measurement) -> &DirectionStats| {
            let (now, before) = (of(&totals), of(&self.last));
            let parts: [fn(&DirectionStats) -> &LatencyStats; 3] = [|d| &d.slat, |d| &d.clat, |d| &d.lat];
            parts.map(|part| part(now).mean_since(part(before)))
        };
        let point = SeriesPoint {
            at_ms: now.saturating_sub(began) / 1_000_000,
            read_iops: per_s(|m| m.read.ios),
            write_iops: per_s(|m| m.write.ios),
            read_bytes_per_s: per_s(|m| m.read.bytes),
            write_bytes_per_s: per_s(|m| m.write.bytes),
            p50_ns: all.percentile(50.0),
            p99_ns: all.percentile(99.0),
            read_mean_ns: means(|m| &m.read),
            write_mean_ns: means(|m| &m.write),
            disk_bytes_per_s: (self.last_disk_bytes > 0 && secs > 0.0)
                .then(|| disk_bytes.saturating_sub(self.last_disk_bytes) as f64 / secs),
        };
        (self.last_ns, self.last, self.last_disk_bytes) = (now, totals, disk_bytes);
        (point, recent.map(|one| [one.percentile(50.0), one.percentile(99.0)]))
    }
}

impl Merge for HistogramPoint {
    fn merge(points: &[Self]) -> Self {
        let all = |of: fn(&HistogramPoint) -> &Histogram| {
            points.iter().fold(Histogram::default(), |sum, point| sum.merge(of(point)))
        };
        Self { at_ms: points.last().map_or(0, |p| p.at_ms), read: all(|p| &p.read), write: all(|p| &p.write) }
    }
}

/// Mean latencies of several points, each by its operations.
fn weighted_means(
    points: &[SeriesPoint],
    iops: fn(&SeriesPoint) -> f64,
    of: fn(&SeriesPoint) -> &[Option<f64>; 3],
) -> [Option<f64>; 3] {
    std::array::from_fn(|n| {
        let known = || points.iter().filter_map(|p| Some((iops(p), of(p)[n]?)));
        let weight: f64 = known().map(|(iops, _)| iops).sum();
        (weight > 0.0).then(|| known().map(|(iops, mean)| iops * mean).sum::<f64>() / weight)
    })
}

impl Merge for SeriesPoint {
    /// Mean rates, highest latencies.
    fn merge(points: &[Self]) -> Self {
        let n = points.len().max(1) as f64;
        let avg = |f: fn(&SeriesPoint) -> f64| points.iter().map(f).sum::<f64>() / n;
        SeriesPoint {
            at_ms: points.last().map_or(0, |p| p.at_ms),
            read_iops: avg(|p| p.read_iops),
            write_iops: avg(|p| p.write_iops),
            read_bytes_per_s: avg(|p| p.read_bytes_per_s),
            write_bytes_per_s: avg(|p| p.write_bytes_per_s),
            p50_ns: points.iter().filter_map(|p| p.p50_ns).max(),
            p99_ns: points.iter().filter_map(|p| p.p99_ns).max(),
            read_mean_ns: weighted_means(points, |p| p.read_iops, |p| &p.read_mean_ns),
            write_mean_ns: weighted_means(points, |p| p.write_iops, |p| &p.write_mean_ns),
            disk_bytes_per_s: points.iter().map(|p| p.disk_bytes_per_s).sum::<Option<f64>>().map(|sum| sum / n),
        }
    }
}

/// Adds what the workers counted to a measurement.
pub(crate) fn merge_recorders(mut part: Measurement, recorders: &[Arc<OpRecorder>]) -> Measurement {
    let began = recorders.iter().filter_map(|r| r.counting_since()).min().unwrap_or(0);
    let last = recorders.iter().map(|r| r.last_completion_ns()).max().unwrap_or(0);
    part.elapsed_ns = last.saturating_sub(began);
    for r in recorders {
        part.read = part.read.merge(&r.direction_stats(OpKind::Read));
        part.write = part.write.merge(&r.direction_stats(OpKind::Write));
        part.trim = part.trim.merge(&r.direction_stats(OpKind::Trim));
        part.sync = part.sync.merge(&r.sync_stats());
        part.depths = part.depths.merge(&r.depth_counts());
        part.stalls = part.stalls.max(&r.stall_stats());
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn begin(watch: &RunProgress, recorder: &Arc<OpRecorder>) {
        let measurement = Measurement { label: "x".into(), ..Measurement::default() };
        watch.begin_phase(&measurement, true, (10 * SECOND, 0), std::slice::from_ref(recorder));
        watch.heartbeat(SECOND);
    }

    #[test]
    fn progress_shows_rates_since_the_previous_snapshot() {
        let (watch, recorder) = (RunProgress::default(), Arc::<OpRecorder>::default());
        begin(&watch, &recorder);
        assert!(watch.snapshot(SECOND).is_ramping);
        recorder.start_counting(SECOND);
        for _ in 0..100 {
            recorder.record_op(OpKind::Read, 4096, 0, 0, 1000);
        }
        recorder.record_completion_time(2 * SECOND);
        let p = watch.snapshot(2 * SECOND);
        assert_eq!((p.point.read_iops, p.point.write_iops, p.fraction_done), (100.0, 0.0, Some(0.1)));
        assert!(p.point.p50_ns.is_some());
        assert_eq!((p.lat[0], p.lat[1], p.lat[2]), ([p.point.p50_ns, p.point.p99_ns], [None; 2], [None; 2]));
        let p = watch.snapshot(4 * SECOND);
        assert_eq!((p.point.read_iops, p.point.p50_ns, p.idle_ms), (0.0, None, 2000));
    }

    #[test]
    fn a_stuck_worker_still_contributes_its_counts() {
        let (watch, recorder) = (RunProgress::default(), Arc::<OpRecorder>::default());
        begin(&watch, &recorder);
        recorder.start_counting(SECOND);
        recorder.record_op(OpKind::Write, 4096, 0, 10, 1000);
        recorder.record_completion_time(3 * SECOND);
        let (parts, _) = watch.take_results(3 * SECOND);
        assert_eq!((parts.len(), parts[0].write.ios, parts[0].elapsed_ns), (1, 1, 2 * SECOND));
        assert!(watch.take_results(3 * SECOND).0.is_empty());
    }
}
