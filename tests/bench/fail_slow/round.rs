//! A round of samples, and what the judgement makes of it.

use iotop_plus::model::fail_slow::{DevicePoint, DeviceSeries, FailSlow, Judgement, judge};
use std::collections::BTreeMap;

/// Requests, sectors and ms of reads and of writes, since the device appeared.
#[derive(Clone, Copy, Default)]
struct Counters([[u64; 3]; 2]);

/// What was made slow, and what the devices did.
#[derive(Default)]
pub struct Round {
    pub delay_ms: u64,
    pub slow: Vec<String>,
    samples: Vec<(f64, BTreeMap<String, Counters>)>,
}

/// Reads what the benchmark writes: a line for each round and each sample, and lines of diskstats.
pub fn parse(text: &str) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), rounds.last_mut()) {
            (["ROUND", delay, slow @ ..], _) => rounds.push(Round {
                delay_ms: delay.parse().unwrap_or(0),
                slow: slow.iter().map(|name| (*name).into()).collect(),
                samples: Vec::new(),
            }),
            (["T", time], Some(round)) => round.samples.push((time.parse().unwrap_or(f64::NAN), BTreeMap::new())),
            ([_, _, name, rest @ ..], Some(round)) if rest.len() >= 8 => {
                let n: Vec<u64> = rest.iter().map(|word| word.parse().unwrap_or(0)).collect();
                if let Some((_, devices)) = round.samples.last_mut() {
                    devices.insert((*name).into(), Counters([[n[0], n[2], n[3]], [n[4], n[6], n[7]]]));
                }
            }
            _ => {}
        }
    }
    rounds
}

impl Round {
    /// The series of all devices for one operation.
    fn series(&self, operation: usize) -> Vec<DeviceSeries> {
        let names: Vec<&String> = self.samples.first().map(|(_, devices)| devices.keys().collect()).unwrap_or_default();
        let points = |name: &String| {
            let point = |pair: &[(f64, BTreeMap<String, Counters>)]| {
                let (old, new) = (pair[0].1.get(name)?.0[operation], pair[1].1.get(name)?.0[operation]);
                let secs = pair[1].0 - pair[0].0;
                let [requests, sectors, ms] = [0, 1, 2].map(|at| new[at].saturating_sub(old[at]) as f64);
                (requests > 0.0 && secs > 0.0).then_some(DevicePoint {
                    at_secs: pair[1].0,
                    latency_ms: ms / requests,
                    requests_per_s: requests / secs,
                    bytes_per_s: sectors * 512.0 / secs,
                })
            };
            self.samples.windows(2).filter_map(point).collect()
        };
        let one = |name: &String| DeviceSeries {
            host: "box".into(),
            device: name.clone(),
            group: ["read", "write"][operation].into(),
            points: points(name),
        };
        names.into_iter().map(one).collect()
    }

    /// The devices that are slow in reads or writes, with the larger slowdown.
    pub fn found(&self) -> BTreeMap<String, FailSlow> {
        let mut out: BTreeMap<String, FailSlow> = BTreeMap::new();
        for verdict in [0, 1].into_iter().flat_map(|operation| judge(&self.series(operation))) {
            let Judgement::FailSlow(slow) = verdict.judgement else { continue };
            let known = out.entry(verdict.device).or_insert(slow);
            if slow.slowdown > known.slowdown {
                *known = slow;
            }
        }
        out
    }

    /// What was slow and what was found, in a line.
    pub fn summary(&self) -> String {
        let found = self.found();
        let found: Vec<_> = found.iter().map(|(name, slow)| format!("{name} {:.1}x", slow.slowdown)).collect();
        format!("{} ms more: {}; found: {}", self.delay_ms, self.slow.join(" "), found.join(" "))
    }
}

/// What was found of one kind of delay.
#[derive(Default)]
pub struct Tally {
    rounds: usize,
    injected: usize,
    found: usize,
    healthy: usize,
    false_alarms: usize,
    slowdowns: Vec<f64>,
}

impl Tally {
    pub fn add(&mut self, round: &Round) {
        let devices = round.samples.first().map_or(0, |(_, devices)| devices.len());
        self.rounds += 1;
        self.injected += round.slow.len();
        self.healthy += devices - round.slow.len();
        for (device, slow) in round.found() {
            match round.slow.contains(&device) {
                true => {
                    self.found += 1;
                    self.slowdowns.push(slow.slowdown);
                }
                false => self.false_alarms += 1,
            }
        }
    }

    pub fn row(&mut self, name: &str) -> String {
        let Self { rounds, injected, found, healthy, false_alarms, slowdowns } = self;
        slowdowns.sort_by(f64::total_cmp);
        let middle = slowdowns.get(slowdowns.len() / 2).map_or("-".into(), |ratio| format!("{ratio:.1}"));
        format!("| {name} | {rounds} | {injected} | {found} | {middle} | {healthy} | {false_alarms} |")
    }
}
