//! How long programs wait in syncs.

use super::request_times::RequestTimes;
use super::text::{MetricFamily, MetricsText};
use super::top_series::{Count, TopSeries};
use crate::model::syncs::{SyncCounts, SyncsRaw};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;

/// Programs with series of their own.
const MAX_PROGRAMS: usize = 20;

const SYNC: MetricFamily = MetricFamily::histogram("sync_seconds", "Duration of fsync and the like by program.");
const ERRORS: MetricFamily = MetricFamily::counter("sync_errors", "", "Syncs that failed, by program.");

#[derive(Default)]
struct SyncTimes {
    times: RequestTimes,
    errors: u64,
}

impl SyncTimes {
    fn between(before: Option<&SyncCounts>, now: &SyncCounts) -> Self {
        let none = SyncCounts::default();
        let before = before.unwrap_or(&none);
        let mut times = RequestTimes::from_histogram(&now.histogram.since(&before.histogram));
        // The kernel's sum is exact.
        times.seconds = now.total_ns.saturating_sub(before.total_ns) as f64 / 1e9;
        Self { times, errors: now.errors.saturating_sub(before.errors) }
    }
}

impl Count for SyncTimes {
    fn add(&mut self, increment: &Self) {
        self.times.add(&increment.times);
        self.errors += increment.errors;
    }

    fn weight(&self) -> f64 {
        self.times.seconds
    }
}

/// The syncs counted so far.
pub(super) struct SyncMetrics {
    programs: TopSeries<1, SyncTimes>,
    /// The newest reading.
    before: Option<SyncsRaw>,
    is_current: bool,
}

impl SyncMetrics {
    pub(super) fn new() -> Self {
        Self { programs: TopSeries::new(MAX_PROGRAMS), before: None, is_current: false }
    }

    pub(super) fn update(&mut self, system: &SystemState) {
        let reading = system.last_sample.as_ref().and_then(|sample| sample.syncs.ok());
        self.is_current = reading.is_some();
        let Some(now) = reading else { return };
        // Counts restart whenever syncs are requested again.
        let before = self.before.as_ref().filter(|before| before.tracing_started_ns == now.tracing_started_ns);
        let mut increments: BTreeMap<_, SyncTimes> = BTreeMap::new();
        for counts in &now.files {
            let key = counts.file.key();
            let find = |raw: &SyncsRaw| raw.files.binary_search_by_key(&key, |old| old.file.key()).ok();
            let old = before.and_then(|raw| Some(&raw.files[find(raw)?]));
            // A file that was evicted from the kernel's table and came back counts from 0.
            let old = old.filter(|old| old.calls <= counts.calls);
            if old.is_none_or(|old| old.calls < counts.calls) {
                let program = sanitize(counts.file.comm.as_bytes());
                increments.entry([program]).or_default().add(&SyncTimes::between(old, counts));
            }
        }
        self.programs.add(increments, system.now().boot_ns);
        self.before = Some(now.clone());
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        if !self.is_current {
            return;
        }
        text.begin(&SYNC);
        for ([program], sync) in self.programs.iter() {
            text.histogram(&SYNC, &[("program", program)], &sync.times.buckets(), sync.times.seconds);
        }
        text.begin(&ERRORS);
        for ([program], sync) in self.programs.iter() {
            text.sample(&ERRORS, &[("program", program)], sync.errors as f64);
        }
    }
}
