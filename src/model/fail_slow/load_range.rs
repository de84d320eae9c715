//! Load that enough devices of a group have had, so that a device can be compared with its siblings there.

use super::load_point::{LoadPoint, quantile};
use std::collections::BTreeSet;

/// Requests per second are compared in steps of this factor.
const STEP: f64 = 2.0;
/// A step of load counts if this part of the devices has been there.
const MIN_SHARE: f64 = 0.3;
/// How far above the highest load, as a factor, points are judged as if they were at it.
const MARGIN: f64 = 1.25;
/// Part of the points that are outside the range of sizes and of requests in flight, at each end.
const TAIL: f64 = 0.02;

/// Lowest and highest load, in logarithms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoadRange {
    requests: (f64, f64),
    size: (f64, f64),
    /// Requests in flight that a busy device has at least, as [`LoadPoint::in_flight`].
    in_flight: f64,
}

fn step_of(point: &LoadPoint) -> i64 {
    (point.requests / STEP.ln()).floor() as i64
}

impl LoadRange {
    /// The load of these devices.
    pub(super) fn of<'a>(devices: impl Iterator<Item = &'a Vec<LoadPoint>> + Clone) -> Self {
        let count = devices.clone().filter(|points| !points.is_empty()).count();
        let mut steps: Vec<i64> =
            devices.clone().flat_map(|points| points.iter().map(step_of).collect::<BTreeSet<_>>()).collect();
        steps.sort_unstable();
        let wanted = ((count as f64 * MIN_SHARE).ceil() as usize).max(2);
        let shared = steps.chunk_by(|a, b| a == b).filter(|same| same.len() >= wanted).map(|same| same[0]);
        let (first, last) = shared.fold((i64::MAX, i64::MIN), |(low, high), step| (low.min(step), high.max(step)));
        let points = || devices.clone().flatten().filter(|point| (first..=last).contains(&step_of(point)));
        let ends = |value: fn(&LoadPoint) -> f64, tail: f64| {
            let mut values: Vec<_> = points().map(value).collect();
            (quantile(&mut values, tail), quantile(&mut values, 1.0 - tail))
        };
        Self {
            requests: ends(|point| point.requests, 0.0),
            size: ends(|point| point.size, TAIL),
            in_flight: ends(LoadPoint::in_flight, TAIL).0,
        }
    }

    /// Whether the load is within the range.
    pub(super) fn contains(&self, point: &LoadPoint) -> bool {
        (self.requests.0..=self.requests.1).contains(&point.requests)
    }

    /// The point of the range with which a point can be compared, if there is one.
    pub(super) fn comparable(&self, point: &LoadPoint) -> Option<LoadPoint> {
        let (low, high) = self.requests;
        let is_idle = point.requests < low && point.in_flight() < self.in_flight;
        if point.requests > high + MARGIN.ln() || is_idle {
            return None;
        }
        let (requests, size) = (point.requests.clamp(low, high), point.size.clamp(self.size.0, self.size.1));
        Some(LoadPoint { requests, size, ..*point })
    }
}
