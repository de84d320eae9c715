//! Small files of many ticks with many rows each.

use super::bombs::{accounts, disks, latency, mounts, sample, syncs, tasks_up_to, timestamp};
use super::*;
use crate::doctor::RuleEngine;
use crate::model::latency::BUCKETS;

/// A file of `n` ticks, of which the frames are those that a recorder writes.
fn file_of(n: u64, tick: impl Fn(u64) -> Vec<Observation>) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(60, 15);
    let mut bytes = RecordingHeader::default().to_bytes();
    (1..=n).for_each(|n| bytes.extend(encoder.encode_tick(&tick(n), timestamp(n).wall_ns)));
    bytes
}

fn idle_tasks(seq: u64) -> Observation {
    let update = ProcessUpdate { seq, time: timestamp(seq), total: 26_000, ..ProcessUpdate::default() };
    Observation::Tasks(Box::new(Reading::Ok(update)))
}

fn stalled_disks(seq: u64) -> Observation {
    sample(seq, |s| s.disks = stalled_rows(14_000))
}

fn stalled_rows(count: u32) -> Reading<Vec<DiskRaw>> {
    let stalled = |row: DiskRaw| DiskRaw { in_flight: 1, read: DiskOpRaw { ios: 1, ..DiskOpRaw::default() }, ..row };
    disks(count).map(|rows| rows.into_iter().map(stalled).collect())
}

/// All of them by name.
pub(super) fn long_files() -> Vec<(&'static str, Vec<u8>)> {
    let tasks = |names| {
        file_of(4_000, move |n| match n {
            1 => vec![sample(n, |_| ()), tasks_up_to(26_000, 1, names)],
            _ => vec![sample(n, |_| ()), idle_tasks(n)],
        })
    };
    vec![
        ("idle tasks", tasks(false)),
        ("idle tasks with names", tasks(true)),
        ("idle disks", file_of(400, |n| vec![sample(n, |s| s.disks = disks(14_000))])),
        ("stalled disks", file_of(400, |n| vec![stalled_disks(n)])),
        ("idle mounts", file_of(400, |n| vec![sample(n, |s| s.netfs = mounts(14_000))])),
        ("idle histograms", file_of(400, |n| vec![sample(n, |s| s.latency = latency(300, BUCKETS))])),
        ("idle accounts", file_of(400, |n| vec![sample(n, |s| s.io_accounts = accounts(13_000))])),
        ("idle syncs", file_of(400, |n| vec![sample(n, |s| s.syncs = syncs(9_500))])),
    ]
}

/// Plays a file with all rules; returns the state and them.
fn play(bytes: &[u8]) -> (SystemState, RuleEngine) {
    let mut reader = RecordingReader::open(bytes).unwrap();
    let mut state = SystemState::new(reader.header.host(), reader.header.log_clock());
    let mut rules = RuleEngine::default();
    while let Some(tick) = reader.next_tick().unwrap() {
        for observation in tick.full_state.into_iter().flatten().chain(tick.observations) {
            state.apply(observation);
        }
        rules.evaluate(&state);
    }
    (state, rules)
}

fn skipped(rules: &RuleEngine, rule: &str) -> String {
    rules.skipped_rules.iter().filter(|skipped| skipped.rule == rule).map(|skipped| skipped.reason.as_str()).collect()
}

#[test]
fn rules_find_a_bounded_number_of_stalled_devices() {
    let file = file_of(8, |n| vec![sample(n, |s| s.disks = stalled_rows(3_000))]);
    let (_, rules) = play(&file);
    let findings: usize = rules.incidents.iter().map(|incident| incident.findings.len()).sum();
    assert!((100..=300).contains(&findings), "{findings}");
    assert_eq!(skipped(&rules, "device-stalled"), "more than 100 findings, the others are left out");
}

#[test]
fn rules_judge_a_bounded_number_of_network_mounts() {
    let file = file_of(8, |n| vec![sample(n, |s| s.netfs = mounts(2_000))]);
    let (_, rules) = play(&file);
    assert_eq!(skipped(&rules, "network-link-full"), "more than 300 network mounts, the others are left out");
}
