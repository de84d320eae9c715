//! The metrics of recordings have the same figures as their JSON.

use super::{Metrics, MetricsFormat, MetricsOptions, render_end};
use crate::doctor::RuleEngine;
use crate::export::json::{LogSince, snapshot_json};
use crate::export::snapshot::SnapshotScope;
use crate::model::memory_stalls::{MemoryStallsRaw, StallCounter, TaskStallCounters};
use crate::model::observation::Observation;
use crate::model::reading::Reading;
use crate::model::system_state::SystemState;
use crate::recording::reader::RecordingReader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The samples of a text by name and labels, as they are written.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs: Vec<_> = lines.map(|line| line.rsplit_once(' ').unwrap()).collect();
    let samples: BTreeMap<_, _> = pairs.iter().map(|(name, value)| (*name, value.parse().unwrap())).collect();
    assert_eq!(samples.len(), pairs.len(), "a series is there twice");
    samples
}

/// The sum of all series of a name whose labels contain all of these.
fn sum(samples: &BTreeMap<&str, f64>, name: &str, labels: &[String]) -> f64 {
    let is_wanted = |series: &str| {
        let (of, rest) = series.split_once('{').unwrap_or((series, ""));
        of == format!("iotop_plus_{name}") && labels.iter().all(|label| rest.contains(label))
    };
    samples.iter().filter(|(series, _)| is_wanted(series)).map(|(_, value)| value).sum()
}

/// A tick of a recording: its metrics and its JSON.
struct RecordedTick {
    metrics: String,
    json: Value,
}

/// A machine that is measured.
struct MeasuredMachine {
    system: SystemState,
    engine: RuleEngine,
    metrics: Metrics,
    ticks: Vec<RecordedTick>,
}

impl MeasuredMachine {
    fn tick(&mut self, observations: impl IntoIterator<Item = Observation>) {
        let Self { system, engine, metrics, ticks } = self;
        observations.into_iter().for_each(|observation| _ = system.apply(observation));
        engine.evaluate(system);
        metrics.update(system);
        let json = snapshot_json(system, engine, SnapshotScope::ALL, LogSince::Time(0), &[]).unwrap();
        let text = metrics.render(system, engine, MetricsOptions { all: true, ..MetricsOptions::default() });
        let json = serde_json::from_str(&json).unwrap();
        ticks.push(RecordedTick { metrics: text + &render_end(MetricsFormat::OpenMetrics, Some(0.5)), json });
    }

    /// The next tick, two seconds later, with stalls of a process counted so far.
    fn stall(&mut self, throttled_ms: u64, reclaim_ms: u64) {
        let mut sample = self.system.last_sample.clone().unwrap();
        sample.seq += 1;
        sample.time.boot_ns += 2_000_000_000;
        let counters =
            [throttled_ms, reclaim_ms].map(|ms| StallCounter { count: ms, total_ns: ms * 1_000_000, max_ns: 9 });
        let task = TaskStallCounters { pid: 7, comm: b"a\"b\n".to_vec(), counters, ..Default::default() };
        let raw = MemoryStallsRaw { tasks: vec![task], is_counted: [true; 2], ..Default::default() };
        sample.memory_stalls = Reading::Ok(raw);
        self.tick([Observation::Sample(Box::new(sample))]);
    }
}

/// The ticks of a recording below `tests/fixtures`.
fn replay(recording: &str) -> MeasuredMachine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(recording);
    let mut reader = RecordingReader::open(std::fs::File::open(path).unwrap()).unwrap();
    let system = SystemState::new(reader.header.host(), reader.header.log_clock());
    let mut machine =
        MeasuredMachine { system, engine: RuleEngine::default(), metrics: Metrics::default(), ticks: Vec::new() };
    while let Some(tick) = reader.next_tick().unwrap() {
        machine.tick(tick.full_state.into_iter().flatten().chain(tick.observations));
    }
    machine
}

/// Counts what was compared by name, and fails where the figures differ.
#[derive(Default)]
struct Comparison(BTreeMap<&'static str, usize>);

impl Comparison {
    fn expect(&mut self, name: &'static str, exported: f64, json: f64) {
        // JSON has six decimals.
        let tolerance = 1e-5 * json.abs().max(1.0);
        assert!((exported - json).abs() <= tolerance, "{name}: {exported}, in JSON {json}");
        *self.0.entry(name).or_default() += usize::from(json > 0.0);
    }

    fn compare(&mut self, before: &RecordedTick, now: &RecordedTick) {
        let (old, new) = (samples(&before.metrics), samples(&now.metrics));
        let grown = |name: &str, labels: &[String]| sum(&new, name, labels) - sum(&old, name, labels);
        let (json, secs) = (&now.json, now.json["interval_s"].as_f64().unwrap());
        let label = |name: &str, value: &Value| format!("{name}=\"{}\"", value.as_str().unwrap());
        for (family, kind) in [("throttled_seconds_total", "throttle"), ("reclaim_seconds_total", "reclaim")] {
            if let Some(ms_per_s) = json["stalls"][kind]["ms_per_s"].as_f64() {
                self.expect(kind, grown(family, &[]), ms_per_s * secs / 1e3);
            }
        }
        for device in json["devices"].as_array().unwrap() {
            let name = label("device", &device["name"]);
            for (family, key) in
                [("device_request_seconds_count", "latency_us"), ("device_service_seconds_count", "service_us")]
            {
                for operation in ["read", "write", "flush"] {
                    if let Some(n) = device[key][operation]["samples"].as_f64() {
                        let labels = [name.clone(), format!("operation=\"{operation}\"")];
                        self.expect(key, grown(family, &labels), n);
                    }
                }
            }
            if device["kind"] != "partition" {
                let is_stalled = f64::from(u8::from(device["stalled"].as_bool().unwrap()));
                self.expect("stalled", sum(&new, "device_stalled", &[name]), is_stalled);
            }
        }
        for group in json["cgroups"].as_array().into_iter().flatten() {
            for device in group["devices"].as_array().unwrap() {
                let labels = [label("cgroup", &group["cgroup"]), label("device", &device["name"])];
                let rate = device["write_bytes_per_s"].as_f64().unwrap();
                self.expect("cgroup_written", grown("cgroup_written_bytes_total", &labels), rate * secs);
            }
        }
        let syncs = json["syncs"].as_array().into_iter().flatten();
        let calls: f64 = syncs.map(|sync| sync["calls_per_s"].as_f64().unwrap()).sum();
        self.expect("syncs", grown("sync_seconds_count", &[]), calls * secs);
        for key in ["dirty_bytes", "writeback_bytes", "dirty_threshold_bytes"] {
            self.expect(key, sum(&new, key, &[]), json["writeback"][key].as_f64().unwrap());
        }
        let incidents = json["findings"].as_array().unwrap().iter();
        let findings: usize = incidents.map(|incident| incident["findings"].as_array().unwrap().len()).sum();
        self.expect("findings", sum(&new, "findings", &[]), findings as f64);
    }
}

#[test]
fn the_metrics_of_recordings_equal_their_json() {
    let mut comparison = Comparison::default();
    for recording in ["situations/dirty-storm.iotop", "situations/slow-disk.iotop", "doctor/dm-delay-flush.iotop"] {
        let mut machine = replay(recording);
        machine.stall(100, 50);
        machine.stall(340, 50);
        machine.stall(400, 90);
        let ticks = machine.ticks;
        ticks[1..].windows(2).for_each(|pair| comparison.compare(&pair[0], &pair[1]));
        let throttled = "iotop_plus_throttled_seconds_total{program=\"a\\\"b\\\\n\",cgroup=\"\",container=\"\"} ";
        assert!(ticks.last().unwrap().metrics.contains(throttled));
    }
    for name in
        ["throttle", "reclaim", "latency_us", "service_us", "cgroup_written", "syncs", "dirty_bytes", "findings"]
    {
        assert!(comparison.0.get(name).is_some_and(|n| *n > 0), "{name} was not compared: {:?}", comparison.0);
    }
}

#[test]
fn a_family_is_written_once_and_before_its_samples() {
    for tick in replay("situations/dirty-storm.iotop").ticks {
        let mut families = Vec::new();
        for line in tick.metrics.lines() {
            match line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()) {
                Some(name) => families.push(name),
                None if line == "# EOF" || line.starts_with("# ") => {}
                None => assert!(line.starts_with(families.last().unwrap()), "{line}"),
            }
        }
        let mut distinct = families.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), families.len());
        assert!(tick.metrics.ends_with("iotop_plus_sample_age_seconds 0.5\n# EOF\n"));
    }
}
