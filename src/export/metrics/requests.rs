//! Latency of the devices' requests, in all and in service.

use super::request_times::RequestTimes;
use super::text::{MetricFamily, MetricsText};
use super::top_series::{Count, TopSeries};
use crate::model::latency::{DeviceHistograms, LatencyRaw, REQUEST_KINDS, RequestHistograms};
use crate::model::system_state::SystemState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Devices with series of their own.
const MAX_DEVICES: usize = 32;

const REQUEST: MetricFamily = MetricFamily::histogram(
    "device_request_seconds",
    "Time of block device requests from allocation to completion, queued and in service.",
);
const SERVICE: MetricFamily = MetricFamily::histogram(
    "device_service_seconds",
    "Time of block device requests from issue to the driver to completion, in service only.",
);
const DROPPED: MetricFamily = MetricFamily::counter(
    "trace_dropped_requests",
    "",
    "Requests whose time could not be traced because too many were in flight.",
);

/// Times of a device by kind of request: in all, and in service.
#[derive(Default)]
struct DeviceTimes([[RequestTimes; 2]; REQUEST_KINDS.len()]);

impl DeviceTimes {
    fn between(before: Option<&DeviceHistograms>, now: &DeviceHistograms) -> Self {
        let none = RequestHistograms::default();
        Self(std::array::from_fn(|kind| {
            let (old, new) = (before.map_or(&none, |before| &before.kinds[kind]), &now.kinds[kind]);
            [new.total.since(&old.total), new.service.since(&old.service)]
                .map(|histogram| RequestTimes::from_histogram(&histogram))
        }))
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(|times| times.count() == 0)
    }
}

impl Count for DeviceTimes {
    fn add(&mut self, increment: &Self) {
        self.0.iter_mut().flatten().zip(increment.0.iter().flatten()).for_each(|(sum, times)| sum.add(times));
    }

    fn weight(&self) -> f64 {
        self.0.iter().map(|[total, _]| total.seconds).sum()
    }
}

/// The times counted so far.
pub(super) struct RequestMetrics {
    devices: TopSeries<1, DeviceTimes>,
    dropped: u64,
    /// The newest reading.
    before: Option<Arc<LatencyRaw>>,
    is_current: bool,
}

impl RequestMetrics {
    pub(super) fn new() -> Self {
        Self { devices: TopSeries::new(MAX_DEVICES), dropped: 0, before: None, is_current: false }
    }

    pub(super) fn update(&mut self, system: &SystemState) {
        let reading = system.last_sample.as_ref().and_then(|sample| sample.latency.ok());
        self.is_current = reading.is_some();
        let Some(now) = reading else { return };
        let before = self.before.as_deref();
        let mut increments: BTreeMap<_, DeviceTimes> = BTreeMap::new();
        for device in &now.devices {
            let find = |raw: &LatencyRaw| raw.devices.binary_search_by_key(&device.id, |old| old.id).ok();
            let old = before.and_then(|raw| Some(&raw.devices[find(raw)?]));
            let times = DeviceTimes::between(old, device);
            if !times.is_empty() {
                increments.entry([system.device_name(device.id)]).or_default().add(&times);
            }
        }
        self.dropped += now.dropped.saturating_sub(before.map_or(0, |raw| raw.dropped));
        self.devices.add(increments, system.now().boot_ns);
        self.before = Some(now.clone());
    }

    pub(super) fn write(&self, text: &mut MetricsText) {
        if !self.is_current {
            return;
        }
        for (at, family) in [REQUEST, SERVICE].iter().enumerate() {
            text.begin(family);
            for ([device], times) in self.devices.iter() {
                for (operation, times) in REQUEST_KINDS.iter().zip(&times.0) {
                    let times = &times[at];
                    if times.count() > 0 {
                        let labels = [("device", device), ("operation", *operation)];
                        text.histogram(family, &labels, &times.buckets(), times.seconds);
                    }
                }
            }
        }
        text.begin(&DROPPED);
        text.sample(&DROPPED, &[], self.dropped as f64);
    }
}
