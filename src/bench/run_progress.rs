//! The state that measuring threads share: progress, the watchdog's heartbeat, and the
//! partial report of a run whose threads are stuck.

use super::measure::histogram::Histogram;
use super::measure::recorder::{OpKind, OpRecorder};
use super::message::BenchProgress;
use super::report::{Measurement, ReportTarget, SeriesPoint, StallStats};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// Most points of a measurement's series; when it is full, pairs of neighbours are averaged.
const MAX_SERIES_POINTS: usize = 1200;

/// The current phase.
#[derive(Default)]
pub struct MeasurementPhase {
    /// The measurement without its results: label, engine, sizes.
    pub measurement: Measurement,
    /// Number of the measurement, `None` in preparation.
    pub measurement_index: Option<u32>,
    /// Time limit in ns and byte limit; 0: none.
    pub goal: (u64, u64),
    /// The workers.
    pub recorders: Vec<Arc<OpRecorder>>,
}

impl MeasurementPhase {
    /// Operations and bytes of one kind so far.
    fn ops_and_bytes(&self, kind: OpKind) -> (u64, u64) {
        let all = self.recorders.iter().map(|r| r.ops_and_bytes(kind));
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

const OP_KINDS: [OpKind; 3] = [OpKind::Read, OpKind::Write, OpKind::Sync];

/// Shared between the measuring threads and the one that sends progress. Locks are taken between measurements and
/// four times a second, never in a hot loop.
#[derive(Default)]
pub struct RunProgress {
    /// Set to end the run.
    pub stop_requested: AtomicBool,
    /// All measurements are done; the file is being freed.
    pub is_measured: AtomicBool,
    /// Last heartbeat outside of operations, CLOCK_MONOTONIC ns.
    heartbeat_ns: AtomicU64,
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    phase: MeasurementPhase,
    measurements: Vec<Measurement>,
    target: Option<ReportTarget>,
    notes: Vec<String>,
    series: Vec<SeriesPoint>,
    stride: u32,
    pending: Vec<SeriesPoint>,
    last: LastSample,
}

#[derive(Default)]
struct LastSample {
    now: u64,
    counting_since_ns: u64,
    counts: [(u64, u64); 3],
    histograms: [Histogram; 3],
}

impl RunProgress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Reports progress of work that is not an operation.
    pub fn heartbeat(&self, now: u64) {
        self.heartbeat_ns.store(now, Relaxed);
    }

    /// The last progress of any kind.
    pub fn last_heartbeat_ns(&self) -> u64 {
        let inner = self.lock();
        let workers = inner.phase.recorders.iter().map(|r| r.last_heartbeat_ns()).max();
        workers.unwrap_or(0).max(self.heartbeat_ns.load(Relaxed))
    }

    /// Starts a phase.
    pub fn begin_phase(&self, phase: MeasurementPhase, now: u64) {
        let mut inner = self.lock();
        let (measurements, target) = (std::mem::take(&mut inner.measurements), inner.target.take());
        let notes = std::mem::take(&mut inner.notes);
        *inner = ProgressState { phase, measurements, target, notes, stride: 1, ..ProgressState::default() };
        drop(inner);
        self.heartbeat(now);
    }

    /// Ends the phase and returns its time series.
    pub fn end_phase(&self) -> Vec<SeriesPoint> {
        let mut inner = self.lock();
        inner.phase.recorders.clear();
        std::mem::take(&mut inner.series)
    }

    /// Adds a finished measurement.
    pub fn add_measurement(&self, part: Measurement) {
        self.lock().measurements.push(part);
    }

    /// Sets where the file is.
    pub fn set_target(&self, target: ReportTarget) {
        self.lock().target = Some(target);
    }

    /// Adds a notice, which becomes one of the report's warnings.
    pub fn add_note(&self, note: String) {
        self.lock().notes.push(note);
    }

    /// Notices from number `from` on.
    pub fn notes_from(&self, from: usize) -> Vec<String> {
        self.lock().notes.get(from..).unwrap_or_default().to_vec()
    }

    /// Number of finished measurements.
    pub fn finished_count(&self) -> u32 {
        self.lock().measurements.len() as u32
    }

    /// Takes the finished measurements, the counts of the unfinished one if there are any, and the target.
    pub fn take_results(&self, now: u64) -> (Vec<Measurement>, Option<ReportTarget>) {
        let mut inner = self.lock();
        let mut parts = std::mem::take(&mut inner.measurements);
        let phase = std::mem::take(&mut inner.phase);
        if phase.measurement_index.is_some() && phase.recorders.iter().any(|r| r.counting_since().is_some()) {
            let mut part = merge_recorders(phase.measurement, &phase.recorders);
            part.series = std::mem::take(&mut inner.series);
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
            }
        }
        (parts, inner.target.take())
    }

    /// Progress at `now`; also adds the next point of the time series.
    pub fn snapshot(&self, now: u64) -> BenchProgress {
        let idle_ms = now.saturating_sub(self.last_heartbeat_ns()) / 1_000_000;
        let mut inner = self.lock();
        let began = inner.phase.recorders.iter().filter_map(|r| r.counting_since()).min();
        let (point, lat) = inner.next_point(now, began);
        if began.is_some() && point.at_ms > 0 && inner.phase.measurement_index.is_some() {
            inner.push_point(point);
        }
        let counts = OP_KINDS.map(|kind| inner.phase.ops_and_bytes(kind));
        let (goal_ns, goal_bytes) = inner.phase.goal;
        let share = |n: u64, of: u64| (of > 0).then(|| (n as f64 / of as f64).min(1.0));
        let time_share = share(began.map_or(0, |b| now.saturating_sub(b)), goal_ns);
        BenchProgress {
            phase: inner.phase.measurement.label.clone(),
            measurement_index: inner.phase.measurement_index,
            fraction_done: time_share.or(share(counts.iter().map(|c| c.1).sum(), goal_bytes)),
            is_ramping: began.is_none() && !inner.phase.recorders.is_empty(),
            point,
            op_counts: counts.map(|c| c.0),
            lat,
            idle_ms,
        }
    }
}

impl ProgressState {
    /// Rates since the last point, and `lat` of each kind of operation.
    fn next_point(&mut self, now: u64, began: Option<u64>) -> (SeriesPoint, [[Option<u64>; 2]; 3]) {
        let Some(began) = began else { return Default::default() };
        if self.last.counting_since_ns != began {
            self.last = LastSample { now: began, counting_since_ns: began, ..LastSample::default() };
        }
        let counts = OP_KINDS.map(|kind| self.phase.ops_and_bytes(kind));
        let histograms = OP_KINDS.map(|kind| {
            let mut all = Histogram::default();
            self.phase.recorders.iter().for_each(|r| all.merge_from(&r.lat_histogram(kind)));
            all
        });
        let secs = now.saturating_sub(self.last.now) as f64 / 1e9;
        let per_s = |new: u64, old: u64| if secs > 0.0 { new.saturating_sub(old) as f64 / secs } else { 0.0 };
        let mut recent = Histogram::default();
        let mut lat = [[None; 2]; 3];
        for (i, (new, old)) in histograms.iter().zip(&self.last.histograms).enumerate() {
            let since = new.since(old);
            lat[i] = [since.percentile(50.0), since.percentile(99.0)];
            recent.merge_from(&since);
        }
        let old = self.last.counts;
        let point = SeriesPoint {
            at_ms: now.saturating_sub(began) / 1_000_000,
            read_iops: per_s(counts[0].0, old[0].0),
            write_iops: per_s(counts[1].0, old[1].0),
            read_bytes_per_s: per_s(counts[0].1, old[0].1),
            write_bytes_per_s: per_s(counts[1].1, old[1].1),
            p50_ns: recent.percentile(50.0),
            p99_ns: recent.percentile(99.0),
        };
        self.last = LastSample { now, counting_since_ns: began, counts, histograms };
        (point, lat)
    }

    /// Adds to the time series, which stays bounded however long the run is.
    fn push_point(&mut self, point: SeriesPoint) {
        self.pending.push(point);
        if self.pending.len() < self.stride as usize {
            return;
        }
        let point = average_points(&self.pending);
        self.pending.clear();
        self.series.push(point);
        if self.series.len() >= MAX_SERIES_POINTS {
            self.series = self.series.chunks(2).map(average_points).collect();
            self.stride *= 2;
        }
    }
}

/// Several points as one: mean rates, highest latencies.
fn average_points(points: &[SeriesPoint]) -> SeriesPoint {
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
    }
}

/// Adds what the workers counted to a measurement.
pub fn merge_recorders(mut part: Measurement, recorders: &[Arc<OpRecorder>]) -> Measurement {
    let began = recorders.iter().filter_map(|r| r.counting_since()).min().unwrap_or(0);
    let last = recorders.iter().map(|r| r.last_completion_ns()).max().unwrap_or(0);
    part.elapsed_ns = last.saturating_sub(began);
    let mut stalls = StallStats::default();
    for r in recorders {
        part.read = part.read.merge(&r.direction_stats(OpKind::Read));
        part.write = part.write.merge(&r.direction_stats(OpKind::Write));
        part.sync = part.sync.merge(&r.sync_stats());
        part.depths = part.depths.merge(&r.depth_counts());
        let (count, total, longest) = r.stall_totals();
        // Workers stall together with the device: take the maximum, not the sum.
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

    fn phase(recorder: &Arc<OpRecorder>) -> MeasurementPhase {
        MeasurementPhase {
            measurement: Measurement { label: "x".into(), ..Measurement::default() },
            measurement_index: Some(0),
            goal: (10 * SECOND, 0),
            recorders: vec![recorder.clone()],
        }
    }

    #[test]
    fn progress_shows_rates_since_the_previous_snapshot() {
        let (watch, recorder) = (RunProgress::default(), Arc::<OpRecorder>::default());
        watch.begin_phase(phase(&recorder), SECOND);
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
        watch.begin_phase(phase(&recorder), SECOND);
        recorder.start_counting(SECOND);
        recorder.record_op(OpKind::Write, 4096, 0, 10, 1000);
        recorder.record_completion_time(3 * SECOND);
        let (parts, _) = watch.take_results(3 * SECOND);
        assert_eq!((parts.len(), parts[0].write.ios, parts[0].elapsed_ns), (1, 1, 2 * SECOND));
        assert!(watch.take_results(3 * SECOND).0.is_empty());
    }

    #[test]
    fn the_series_stays_bounded() {
        let mut inner = ProgressState { stride: 1, ..ProgressState::default() };
        for n in 0..100_000 {
            inner.push_point(SeriesPoint { at_ms: n, read_iops: 5.0, ..SeriesPoint::default() });
        }
        assert!(inner.series.len() < MAX_SERIES_POINTS && inner.series.len() > MAX_SERIES_POINTS / 4);
        assert!(inner.series.iter().all(|p| p.read_iops == 5.0));
        assert!(inner.series.windows(2).all(|w| w[0].at_ms < w[1].at_ms));
    }
}
