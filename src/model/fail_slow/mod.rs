//! Fail-slow devices: those that do the work of their siblings, and take longer for it.
//!
//! Devices of a group (the same model or class, on whatever hosts, for one operation) are compared after Perseus (Lu and
//! others, "Perseus: A Fail-Slow Detection Framework for Cloud Storage Systems", FAST 2023):
//!
//! 1. **Regression.** The latency of the whole group is regressed on its load ([`regression`]). Perseus takes throughput;
//!    here it is requests per second and bytes per request, so that a device with large requests is not slow for them.
//! 2. **Bound.** What a device takes longer than the regression says, as a ratio and as the median of [`WINDOW`] points, is
//!    its excess. The siblings' bound is the median excess of all devices plus [`SPREADS`] times its spread, and at least
//!    [`MIN_SLOWDOWN`].
//! 3. **Outliers.** Devices that were above the bound for long are left out of the regression and the bound, both are
//!    computed again, until no more are found; at most a third of the group, since a majority cannot be odd.
//! 4. **Verdict.** A device is fail-slow if its excess has been above the bound up to its newest points, for at least
//!    [`SUSTAINED`] of them. A burst is none, and neither is what has passed.
//!
//! A change of load moves a device along the regression, not away from it. Load that too few siblings have is no ground
//! for a verdict: above the highest, points are not judged; below the lowest, a point is judged by the lowest load,
//! and only if the device is as busy (requests per second times latency, Little's law) as its siblings are there: so a
//! device is found whose slowness lowers its own load, and an idle one, which may have to wake up, is not taken for slow.

mod load_point;
mod load_range;
mod regression;
#[cfg(test)]
mod tests;

use load_point::{LoadPoint, MAD_TO_SIGMA, median};
use load_range::LoadRange;
use regression::LatencyModel;
use std::collections::BTreeMap;

/// Fewest devices in a group, judged one included.
pub const MIN_DEVICES: usize = 5;
/// Points whose median excess is compared with the bound, the newest last.
pub const WINDOW: usize = 9;
/// Consecutive windows above the bound that make a device fail-slow.
pub const SUSTAINED: usize = 12;
/// Least slowdown that is worth a verdict, as a ratio.
pub const MIN_SLOWDOWN: f64 = 1.5;
/// Spreads of the siblings' excess (median absolute deviations, scaled to standard deviations) up to the bound.
const SPREADS: f64 = 4.0;
/// Fewest requests per second of a point that is judged.
const MIN_REQUESTS_PER_S: f64 = 1.0;
/// How many times a regression is repeated without the devices that it found.
const MAX_ROUNDS: usize = 6;

/// What a device did in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DevicePoint {
    /// End of the interval, seconds since any moment that is the same for all points of a device.
    pub at_secs: f64,
    /// Mean latency of its requests, ms.
    pub latency_ms: f64,
    /// Requests completed per second.
    pub requests_per_s: f64,
    /// Bytes transferred per second.
    pub bytes_per_s: f64,
}

/// The history of a device and operation.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSeries {
    /// The host that it belongs to.
    pub host: String,
    /// Its name there.
    pub device: String,
    /// Devices with the same text are siblings: model or class, and operation.
    pub group: String,
    /// In order of time. Intervals without requests are left out.
    pub points: Vec<DevicePoint>,
}

/// Why a device has no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum NotJudged {
    /// Fewer than [`MIN_DEVICES`] devices in its group have enough points.
    #[strum(to_string = "too few devices of its kind")]
    TooFewSiblings,
    /// Too few points, most of them without requests or at a load that its siblings do not have.
    #[strum(to_string = "too few samples at a load that its siblings have, too")]
    TooFewPoints,
}

/// A device that is slower than its siblings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailSlow {
    /// Its latency over that of its siblings at the same load, the median since it is slow; 1 is as fast as they.
    pub slowdown: f64,
    /// The slowdown up to which its siblings' own spread reaches.
    pub bound: f64,
    /// When the first window above the bound began, in the clock of its points.
    pub since_secs: f64,
    /// Median latency since then, ms.
    pub latency_ms: f64,
    /// What its siblings take at the same load, ms.
    pub siblings_ms: f64,
}

/// What a device was judged to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    /// It is fail-slow.
    FailSlow(FailSlow),
    /// It is not. Its latency over that of its siblings at the same load, median of its newest [`WINDOW`] points.
    Healthy(f64),
    /// It could not be judged.
    NotJudged(NotJudged),
}

/// The verdict on a series.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceVerdict {
    /// Host of the series.
    pub host: String,
    /// Device of the series.
    pub device: String,
    /// Group of the series.
    pub group: String,
    /// Devices of the group that could be compared, this one included.
    pub compared: usize,
    /// What it was judged to be.
    pub judgement: Judgement,
}

/// Judges each series against those of its group; one verdict for each, in their order. The module says how.
///
/// Points with figures that are not finite or not positive are ignored. The cost grows with the number of points.
pub fn judge(series: &[DeviceSeries]) -> Vec<DeviceVerdict> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, one) in series.iter().enumerate() {
        groups.entry(&one.group).or_default().push(at);
    }
    let mut judgements: Vec<_> = vec![(0, Judgement::NotJudged(NotJudged::TooFewSiblings)); series.len()];
    for members in groups.into_values() {
        let loads: Vec<Vec<LoadPoint>> = members.iter().map(|at| load_points(&series[*at].points)).collect();
        let compared = loads.iter().filter(|points| points.len() >= WINDOW).count();
        let judged = judge_group(&loads, compared);
        members.into_iter().zip(judged).for_each(|(at, judgement)| judgements[at] = (compared, judgement));
    }
    let verdict = |(one, (compared, judgement)): (&DeviceSeries, _)| DeviceVerdict {
        host: one.host.clone(),
        device: one.device.clone(),
        group: one.group.clone(),
        compared,
        judgement,
    };
    series.iter().zip(judgements).map(verdict).collect()
}

fn load_points(points: &[DevicePoint]) -> Vec<LoadPoint> {
    let is_usable = |p: &&DevicePoint| {
        let figures = [p.latency_ms, p.requests_per_s, p.at_secs, p.bytes_per_s];
        figures.iter().all(|n| n.is_finite()) && p.latency_ms > 0.0 && p.requests_per_s >= MIN_REQUESTS_PER_S
    };
    let logarithms = |p: &DevicePoint| LoadPoint {
        at_secs: p.at_secs,
        latency: p.latency_ms.ln(),
        requests: p.requests_per_s.ln(),
        // Requests without data, such as flushes, are of one byte.
        size: (p.bytes_per_s / p.requests_per_s).max(1.0).ln(),
    };
    points.iter().filter(is_usable).map(logarithms).collect()
}

/// What a device took longer than the regression says, at a point that can be judged.
#[derive(Debug, Clone, Copy)]
struct PointExcess {
    at_secs: f64,
    latency: f64,
    excess: f64,
}

/// A device and its excess.
struct JudgedDevice {
    points: Vec<PointExcess>,
    /// The median of each window of points; the first one ends at point [`WINDOW`] - 1.
    windows: Vec<f64>,
}

impl JudgedDevice {
    fn new(points: &[LoadPoint], model: &LatencyModel, range: &LoadRange) -> Self {
        let excess_of = |point: &LoadPoint| {
            let comparable = range.comparable(point)?;
            let excess = point.latency - model.latency(&comparable);
            Some(PointExcess { at_secs: point.at_secs, latency: point.latency, excess })
        };
        let points: Vec<_> = points.iter().filter_map(excess_of).collect();
        let windows = points.windows(WINDOW).map(|window| median(window.iter().map(|p| p.excess))).collect();
        Self { points, windows }
    }

    /// The longest run of windows above the bound.
    fn longest_run(&self, bound: f64) -> usize {
        self.windows.split(|excess| *excess <= bound).map(<[f64]>::len).max().unwrap_or(0)
    }

    /// The run of windows above the bound that ends with the newest one.
    fn newest_run(&self, bound: f64) -> usize {
        self.windows.iter().rev().take_while(|excess| **excess > bound).count()
    }

    fn judgement(&self, center: f64, bound: f64) -> Judgement {
        let Some(newest) = self.windows.last().filter(|_| self.windows.len() >= SUSTAINED) else {
            return Judgement::NotJudged(NotJudged::TooFewPoints);
        };
        let run = self.newest_run(bound);
        if run < SUSTAINED {
            return Judgement::Healthy((newest - center).exp());
        }
        // The middle of the first window: half of its points are slow.
        let slow = &self.points[self.points.len() - run - WINDOW / 2..];
        let excess = median(slow.iter().map(|p| p.excess)) - center;
        let latency = median(slow.iter().map(|p| p.latency));
        Judgement::FailSlow(FailSlow {
            slowdown: excess.exp(),
            bound: (bound - center).exp(),
            since_secs: slow[0].at_secs,
            latency_ms: latency.exp(),
            siblings_ms: (latency - excess).exp(),
        })
    }
}

/// The median excess of the devices, and the bound above it.
fn siblings_bound(devices: &[&JudgedDevice]) -> (f64, f64) {
    let all = || devices.iter().flat_map(|device| device.windows.iter().copied());
    let center = median(all());
    let spread = MAD_TO_SIGMA * median(all().map(|excess| (excess - center).abs()));
    (center, center + (SPREADS * spread).max(MIN_SLOWDOWN.ln()))
}

/// Judges the devices of a group, of which `compared` have enough points.
fn judge_group(devices: &[Vec<LoadPoint>], compared: usize) -> Vec<Judgement> {
    let none = |why| vec![Judgement::NotJudged(why); devices.len()];
    if compared < MIN_DEVICES {
        return none(NotJudged::TooFewSiblings);
    }
    let mut is_outlier = vec![false; devices.len()];
    let mut round = 0;
    loop {
        let healthy =
            || devices.iter().zip(&is_outlier).filter(|(_, is_outlier)| !**is_outlier).map(|(points, _)| points);
        let range = LoadRange::of(healthy());
        let Some(model) = LatencyModel::fit(healthy().flatten().filter(|point| range.contains(point))) else {
            return none(NotJudged::TooFewPoints);
        };
        let judged: Vec<_> = devices.iter().map(|points| JudgedDevice::new(points, &model, &range)).collect();
        let siblings: Vec<_> = judged.iter().zip(&is_outlier).filter(|(_, out)| !**out).map(|(one, _)| one).collect();
        let (center, bound) = siblings_bound(&siblings);
        let found = find_outliers(&judged, bound, compared / 3);
        if found == is_outlier || round == MAX_ROUNDS {
            return judged.iter().map(|device| device.judgement(center, bound)).collect();
        }
        is_outlier = found;
        round += 1;
    }
}

/// Devices above the bound for long, of too many the slowest.
fn find_outliers(judged: &[JudgedDevice], bound: f64, limit: usize) -> Vec<bool> {
    let slow = judged.iter().enumerate().filter(|(_, device)| device.longest_run(bound) >= SUSTAINED);
    let mut slow: Vec<_> = slow.map(|(at, device)| (median(device.windows.iter().copied()), at)).collect();
    slow.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut out = vec![false; judged.len()];
    slow.into_iter().take(limit).for_each(|(_, at)| out[at] = true);
    out
}
