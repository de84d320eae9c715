//! Which devices are slower than others of their model at the same load.
//!
//! The means of some time are read for all hosts at once; [`crate::model::fail_slow`] judges them.

use super::answer::AnswerSeries;
use super::assemble::{DeviceModels, host_id, shown};
use super::host::FleetHostId;
use super::plan::QueryScope;
use super::query_error::QueryError;
use super::range::{RangeAnswers, RangeRequest};
use crate::model::fail_slow::{DevicePoint, DeviceSeries, FailSlow, Judgement, judge};
use std::collections::HashMap;

/// Values of each device and operation.
const POINTS: f64 = 60.0;
/// Seconds between values, at least.
const MIN_STEP_SECS: f64 = 5.0;
/// Its name in messages.
pub const NAME: &str = "judgement of devices";

/// Devices that are slow, by host and name on screen, and how slow, in words.
pub type SlowDevices = HashMap<(FleetHostId, String), String>;

/// The request up to a time, seconds since 1970.
pub fn judge_request(scope: &QueryScope, end: f64) -> RangeRequest {
    let step = (f64::from(scope.window_secs) / 2.0).max(MIN_STEP_SECS);
    let by = "job,instance,device";
    let rate = |metric: &str, more: &str| format!("rate({}[{}s])", scope.selector(metric, more), scope.window_secs);
    let timed = |metric: &str| format!("sum by ({by},operation) ({})", rate(metric, "operation!=\"flush\""));
    let bytes = |metric: &str| format!("sum by ({by}) ({})", rate(metric, ""));
    let expressions = vec![
        (NAME, timed("iotop_plus_device_request_seconds_count")),
        (NAME, timed("iotop_plus_device_request_seconds_sum")),
        (NAME, bytes("iotop_plus_device_read_bytes_total")),
        (NAME, bytes("iotop_plus_device_written_bytes_total")),
    ];
    RangeRequest { id: 0, expressions, start: end - step * POINTS, end, step }
}

/// A device of a host and an operation.
type SeriesKey = (FleetHostId, String, String);

/// Values by time, in milliseconds since 1970.
type ValuesByTime = HashMap<i64, f64>;

fn by_key(series: &[AnswerSeries]) -> HashMap<SeriesKey, ValuesByTime> {
    let time = |secs: f64| (secs * 1e3).round() as i64;
    let one = |series: &AnswerSeries| {
        let key = (host_id(&series.labels), series.label("device").to_owned(), series.label("operation").to_owned());
        (key, series.points.iter().map(|(at, value)| (time(*at), *value)).collect())
    };
    series.iter().map(one).collect()
}

/// Judges the answers to a [`judge_request`].
///
/// # Errors
/// Requests and their time could not be read.
pub fn slow_devices(
    request: &RangeRequest,
    answers: RangeAnswers,
    models: &DeviceModels,
) -> Result<SlowDevices, QueryError> {
    let mut answers = answers.into_iter();
    let mut next = || answers.next().unwrap_or_else(|| Ok(Vec::new()));
    let (counts, times) = (next()?, next()?);
    // Where bytes are not exported, requests alone are the load.
    let [read, written] = [next(), next()].map(|answer| by_key(&answer.unwrap_or_default()));
    let (counts, times) = (by_key(&counts), by_key(&times));
    let mut keys: Vec<&SeriesKey> =
        counts.keys().filter(|key| models.contains_key(&(key.0.clone(), key.1.clone()))).collect();
    keys.sort();
    let bytes_of = |key: &SeriesKey| {
        let table = if key.2 == "read" { &read } else { &written };
        table.get(&(key.0.clone(), key.1.clone(), String::new()))
    };
    let has_bytes = keys.iter().all(|key| bytes_of(key).is_some());
    let series = |key: &&SeriesKey| {
        let (host, device, operation) = *key;
        let model = &models[&(host.clone(), device.clone())];
        let mut points: Vec<DevicePoint> = counts[*key]
            .iter()
            .filter_map(|(at, requests_per_s)| {
                let time = times.get(*key)?.get(at)?;
                let bytes = if has_bytes { *bytes_of(key)?.get(at)? } else { 0.0 };
                Some(DevicePoint {
                    at_secs: *at as f64 / 1e3,
                    latency_ms: time / requests_per_s * 1e3,
                    requests_per_s: *requests_per_s,
                    bytes_per_s: bytes,
                })
            })
            .collect();
        points.sort_by(|a, b| a.at_secs.total_cmp(&b.at_secs));
        DeviceSeries {
            host: host.instance.clone(),
            device: device.clone(),
            group: format!("{model} {operation}"),
            points,
        }
    };
    let judged = judge(&keys.iter().map(series).collect::<Vec<_>>());
    let mut slow: HashMap<(FleetHostId, String), (f64, String)> = HashMap::new();
    for (key, verdict) in keys.iter().zip(judged) {
        let Judgement::FailSlow(found) = verdict.judgement else { continue };
        let entry = slow.entry((key.0.clone(), shown(&key.1))).or_default();
        // Of reads and writes the slower one.
        if found.slowdown > entry.0 {
            *entry = (found.slowdown, verdict_text(&found, &key.2, request.end));
        }
    }
    Ok(slow.into_iter().map(|(key, (_, text))| (key, text)).collect())
}

fn verdict_text(found: &FailSlow, operation: &str, now: f64) -> String {
    let time = |ms: f64| crate::units::format_micros(ms * 1e3);
    let since = crate::units::format_duration((now - found.since_secs).max(0.0) as u64);
    format!(
        "{:.1}x its siblings: {}s take {}, theirs {}, for {since}",
        found.slowdown,
        crate::sanitize::sanitize(operation),
        time(found.latency_ms),
        time(found.siblings_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve disks of a model, of which one takes four times as long.
    #[test]
    fn the_slow_one_of_a_model_is_named() {
        let request = judge_request(&QueryScope::default(), 10_000.0);
        let (mut counts, mut times, mut models) = (Vec::new(), Vec::new(), DeviceModels::new());
        for n in 0..12 {
            let labels = |operation: &str| {
                let pairs =
                    [("job", "j"), ("instance", &format!("h{n}:1")), ("device", "sda"), ("operation", operation)];
                pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
            };
            let id = FleetHostId { job: "j".into(), instance: format!("h{n}:1") };
            models.insert((id, "sda".into()), "DISK".into());
            let points = |value: &dyn Fn(f64) -> f64| {
                (0..60).map(|i| (request.start + request.step * f64::from(i), value(f64::from(i)))).collect::<Vec<_>>()
            };
            let rate = |i: f64| 100.0 + 40.0 * (i + f64::from(n)).sin();
            let slow = if n == 7 { 4.0 } else { 1.0 };
            let mean = |i: f64| 0.004 * slow * (1.0 + 0.05 * (i * 1.7 + f64::from(n)).cos());
            counts.push(AnswerSeries { labels: labels("read"), points: points(&rate) });
            times.push(AnswerSeries { labels: labels("read"), points: points(&|i| rate(i) * mean(i)) });
        }
        let answers: RangeAnswers = vec![Ok(counts), Ok(times), Ok(Vec::new()), Ok(Vec::new())];
        let slow = slow_devices(&request, answers, &models).unwrap();
        assert_eq!(slow.len(), 1, "{slow:?}");
        let ((host, device), text) = slow.iter().next().unwrap();
        assert_eq!((host.instance.as_str(), device.as_str()), ("h7:1", "sda"));
        assert!(text.contains("x its siblings: reads take 1") && text.contains("theirs 4"), "{text}");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_no_verdict() {
        let request = judge_request(&QueryScope::default(), 10_000.0);
        let answers: RangeAnswers = vec![Ok(Vec::new()), Err(QueryError::Refused("x".into()))];
        assert!(slow_devices(&request, answers, &DeviceModels::new()).is_err());
        let empty: RangeAnswers = vec![Ok(Vec::new()), Ok(Vec::new())];
        assert!(slow_devices(&request, empty, &DeviceModels::new()).unwrap().is_empty());
    }
}
