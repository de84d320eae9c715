//! Exports of a captured host: the same counters must give the same text.
//!
//! `tests/fixtures/busy-host/{t0,t1}.tree` is one machine at two moments: a saturated disk, a stalled one, an NFS mount
//! over a slow link, a swapped process, one with a hostile name. The clocks are the test's: t1 is two seconds after t0.

mod fixture;

use fixture::tree::unpack_captured;
use iotop_plus::collect::kmsg::KmsgReader;
use iotop_plus::collect::processes::ScanOptions;
use iotop_plus::collect::queue::read_queue_attrs;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::collect::{Source, host, sources};
use iotop_plus::doctor::RuleEngine;
use iotop_plus::export::json::{LogSince, UnavailableSource, snapshot_json};
use iotop_plus::export::snapshot::{self, SnapshotScope};
use iotop_plus::export::{batch, table::Table};
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::file_io::FileActivity;
use iotop_plus::model::io_accounting::{AccountKey, AccountKind, IoAccount, IoAccountsRaw};
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::model::latency::{DeviceHistograms, LatencyRaw, SparseHistogram};
use iotop_plus::model::memory_stalls::{MemoryStallsRaw, StallCounter, TaskStallCounters};
use iotop_plus::model::observation::Observation;
use iotop_plus::model::process::ProcessUpdate;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::request_pattern::RequestPattern;
use iotop_plus::model::sample::Sample;
use iotop_plus::model::snapshot::Snapshot;
use iotop_plus::model::syncs::SyncActivity;
use iotop_plus::model::system_state::SystemState;
use iotop_plus::model::task_waits::{TaskWaits, TaskWaitsRaw, WaitAccount, WaitKey, WaitReason};
use iotop_plus::model::timestamp::Timestamp;
use iotop_plus::root::Root;
use iotop_plus::sanitize::is_safe;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fixture::process_collector::ProcessCollector;

const START: Timestamp = Timestamp { boot_ns: 1_000_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

fn clock_at(step: u64) -> Timestamp {
    let ns = step * 2_000_000_000;
    Timestamp { boot_ns: START.boot_ns + ns, wall_ns: START.wall_ns + ns as i64 }
}

fn read_sample(sources: &mut [Source], seq: u64) -> Sample {
    let mut sample = Sample { seq: seq + 1, time: clock_at(seq), ..Default::default() };
    for source in sources {
        source.read(&mut sample);
    }
    sample.io_accounts = io_accounts(seq + 1);
    sample
}

/// Traced I/O: a process that writes to the first disk, directly and by writeback, and an exited one.
fn io_accounts(seconds: u64) -> Reading<Arc<IoAccountsRaw>> {
    let account = |pid, kind| IoAccount {
        key: AccountKey { pid, device: DevId { major: 8, minor: 0 }, cgroup_id: 7, kind },
        requests: 100 * seconds,
        bytes: 409_600 * seconds,
        total_ns: 20_000_000 * seconds,
        histogram: SparseHistogram::from_sparse([(14, 100 * seconds as u32)]),
    };
    Reading::Ok(Arc::new(IoAccountsRaw {
        accounts: vec![
            account(101, AccountKind::Write),
            account(101, AccountKind::Writeback),
            account(900, AccountKind::Writeback),
        ],
        names: vec![(101, "writer".into()), (900, "go\u{1b}ne".into())],
        cgroups: vec![(7, "/system.slice/\u{202e}db".into())],
        ..IoAccountsRaw::default()
    }))
}

/// A task scan with the time of a step.
fn scan(collector: &mut ProcessCollector, step: u64, options: &ScanOptions) -> Reading<ProcessUpdate> {
    collector.scan(options).map(|mut update| {
        update.time = clock_at(step);
        update.previous_time = (step > 0).then(|| clock_at(step - 1));
        for change in &mut update.changed {
            change.scanned_ns = clock_at(step).boot_ns;
            change.previous_scan_ns = if step > 0 { clock_at(step - 1).boot_ns } else { 0 };
        }
        update
    })
}

fn captured_system() -> SystemState {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    unpack_captured("busy-host/t0", dir.path());
    let clock = |step| LogClock { mono_ns: clock_at(step).boot_ns + 4_000_000_000, wall_ns: clock_at(step).wall_ns };
    let mut system = SystemState::new(host::read_host(&root), clock(0));
    let mut sources = sources(&root);
    let mut collector = ProcessCollector::new(&root);
    let mut topology = TopologyReader::new(&root);
    for step in 0..2 {
        if step == 1 {
            unpack_captured("busy-host/t1", dir.path());
        }
        system.apply(Observation::Sample(Box::new(read_sample(&mut sources, step))));
        let options =
            ScanOptions { delays: true, all_names: true, all_visible: true, wait_channels: true, ..Default::default() };
        system.apply(Observation::Tasks(Box::new(scan(&mut collector, step, &options))));
        let Reading::Ok(mut log) = KmsgReader::open(&root) else { panic!("kmsg") };
        let records = std::iter::from_fn(|| log.next_record().unwrap()).collect();
        system.apply(Observation::KernelLog(records, clock(step)));
    }
    system.topology = topology.refresh(&[]).unwrap();
    system.queues = read_queue_attrs(&root, &system.devices_to_query());
    system
}

/// The same when its next tick was traced: devices were asked for something, and somebody was held up.
fn traced_system() -> SystemState {
    let mut system = captured_system();
    let task = TaskStallCounters {
        pid: 1,
        comm: "dd\u{1b}".into(),
        counters: [StallCounter { count: 4, total_ns: 500_000_000, max_ns: 200_000_000 }, StallCounter::default()],
        ..TaskStallCounters::default()
    };
    let mut sample = system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    let stalls = MemoryStallsRaw { tasks: vec![task], is_counted: [true, false], ..MemoryStallsRaw::default() };
    sample.memory_stalls = Reading::Ok(stalls);
    sample.io_accounts = io_accounts(sample.seq + 1);
    let ids = sample.disks.ok().unwrap().iter().map(|d| DeviceHistograms { id: d.id, ..DeviceHistograms::default() });
    let mut devices: Vec<_> = ids.collect();
    devices.sort_by_key(|d| d.id);
    for d in &mut devices {
        d.kinds[0].pattern = RequestPattern { random: 1, sequential: 3, ..RequestPattern::default() };
        d.kinds[0].pattern.sizes[3] = 4;
    }
    sample.latency = Reading::Ok(Arc::new(LatencyRaw { devices, ..LatencyRaw::default() }));
    system.apply(Observation::Sample(Box::new(sample)));
    system
}

#[test]
fn request_sizes_and_sequential_share_are_in_the_json() {
    let system = traced_system();
    let object = snapshot_json(&system, &evaluate(&system), SnapshotScope::ALL, LogSince::Time(0), &[]).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let device = &object["devices"][0];
    assert_eq!(device["request_sizes"]["read"], serde_json::json!([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(device["sequential_pct"], serde_json::json!({"read": 75.0, "write": null}));
}

#[test]
fn stalled_tasks_are_in_the_json_and_uncounted_stalls_are_null() {
    let system = traced_system();
    let object = snapshot_json(&system, &evaluate(&system), SnapshotScope::ALL, LogSince::Time(0), &[]).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let stalls = &object["stalls"];
    assert_eq!(stalls["throttle"]["ms_per_s"], 500.0);
    let task = &stalls["tasks"][0];
    assert_eq!((&task["comm"], &task["throttle"]["longest_ms"]), (&"dd\\x1b".into(), &200.0.into()));
    assert!(stalls["reclaim"]["count"].is_null() && task["reclaim"]["count"].is_null());
    assert!(task["throttled_on"].is_null());
    let held = &object["processes"][0]["stalled_ms_per_s"];
    assert!(held["throttle"].is_number() && held["reclaim"].is_null(), "{held}");
}

/// The state with traced syncs.
fn with_traced_syncs(mut system: SystemState) -> SystemState {
    let mut reading = fixture::syncs::reading(system.last_sample.as_ref().unwrap(), 8);
    reading.tracing_started_ns = reading.read_ns - 2_000_000_000;
    let syncs = Reading::Ok(Arc::new(SyncActivity::derive(None, &reading, 2.0)));
    system.snapshot = Arc::new(Snapshot { syncs, ..(*system.snapshot).clone() });
    system
}

/// The state with traced files.
fn with_traced_files(mut system: SystemState) -> SystemState {
    let mut reading = fixture::files::reading(system.last_sample.as_ref().unwrap(), 8);
    reading.tracing_started_ns = reading.read_ns - 2_000_000_000;
    let files = Reading::Ok(Arc::new(FileActivity::derive(None, &reading, 2.0)));
    system.snapshot = Arc::new(Snapshot { files, ..(*system.snapshot).clone() });
    system
}

/// The state with traced waits: for a lock that another process holds, and for a device behind another one's requests.
fn with_traced_waits(mut system: SystemState) -> SystemState {
    let wait = |reason, holder, device| WaitAccount {
        key: WaitKey { pid: 1, reason, holder, device, ..WaitKey::default() },
        waits: StallCounter { count: 4, total_ns: 500_000_000, max_ns: 200_000_000 },
    };
    let disk = DevId { major: 8, minor: 0 };
    let waits = TaskWaitsRaw {
        read_ns: 2_000_000_000,
        accounts: vec![wait(WaitReason::Lock, 101, DevId::default()), wait(WaitReason::Read, 0, disk)],
        processes: vec![(1, "dd".into()), (101, "writer".into())],
        ..TaskWaitsRaw::default()
    };
    let task_waits = Reading::Ok(Arc::new(TaskWaits::derive(None, &waits)));
    system.snapshot = Arc::new(Snapshot { task_waits, ..(*system.snapshot).clone() });
    system
}

/// The syncs pane only.
const SYNCS: SnapshotScope = SnapshotScope {
    devices: false,
    processes: false,
    memory: false,
    kernel_log: false,
    findings: false,
    syncs: true,
    files: false,
    waits: false,
};

/// The findings of a state.
fn evaluate(system: &SystemState) -> RuleEngine {
    let mut engine = RuleEngine::default();
    engine.evaluate(system);
    engine
}

fn snapshot_value(system: &SystemState, scope: SnapshotScope, since: LogSince) -> Value {
    let text = snapshot_json(system, &evaluate(system), scope, since, &[]).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value.sort_all_objects();
    value
}

#[test]
fn the_json_of_a_captured_host() {
    let text = serde_json::to_string_pretty(&snapshot_value(&captured_system(), SnapshotScope::ALL, LogSince::Time(0)))
        .unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn the_page_of_a_captured_host() {
    insta::assert_snapshot!(snapshot::text(&captured_system(), &evaluate(&captured_system()), SnapshotScope::ALL));
}

#[test]
fn the_syncs_of_a_captured_host() {
    let system = with_traced_syncs(captured_system());
    let json = serde_json::to_string_pretty(&snapshot_value(&system, SYNCS, LogSince::Time(0))).unwrap();
    let page = snapshot::text(&system, &evaluate(&system), SYNCS);
    insta::assert_snapshot!(format!("{page}\n{json}"));
}

#[test]
fn the_files_of_a_captured_host() {
    let system = with_traced_files(captured_system());
    let scope = SnapshotScope { syncs: false, files: true, ..SYNCS };
    let json = serde_json::to_string_pretty(&snapshot_value(&system, scope, LogSince::Time(0))).unwrap();
    let page = snapshot::text(&system, &evaluate(&system), scope);
    insta::assert_snapshot!(format!("{page}\n{json}"));
}

#[test]
fn syncs_are_included_when_traced_or_selected() {
    let there = |system: &SystemState, scope| {
        let v = snapshot_value(system, scope, LogSince::Time(0));
        let gaps = v["unavailable"].as_array().unwrap().clone();
        (v.get("syncs").cloned(), gaps.iter().any(|g| g["source"] == "syncs"))
    };
    assert_eq!(there(&captured_system(), SnapshotScope::ALL), (None, false));
    assert_eq!(there(&captured_system(), SYNCS), (Some(Value::Null), true));
    assert!(there(&with_traced_syncs(captured_system()), SnapshotScope::ALL).0.unwrap().is_array());
}

#[test]
fn the_batch_report_of_a_captured_host() {
    let system = captured_system();
    insta::assert_snapshot!(batch::batch_report(
        &system,
        batch::BatchOptions { only_active: true, ..Default::default() }
    ));
    let options = batch::BatchOptions { only_active: true, is_accumulated: true, ..Default::default() };
    let sums = batch::batch_report(&system, options);
    assert!(sums.starts_with("Total DISK READ:         480.00 K |"), "{sums}");
}

/// The captured host, where one process is in a container whose name is not known.
fn system_with_a_container() -> SystemState {
    let dir = tempfile::tempdir().unwrap();
    unpack_captured("busy-host/t0", dir.path());
    let group = format!("0::/machine.slice/libpod-{}.scope\n", "0123456789abcdef".repeat(4));
    std::fs::write(dir.path().join("proc/101/cgroup"), group).unwrap();
    let mut system = captured_system();
    let options = ScanOptions { all_names: true, all_visible: true, ..Default::default() };
    system.apply(Observation::Tasks(Box::new(scan(&mut ProcessCollector::new(&Root::at(dir.path())), 2, &options))));
    system
}

#[test]
fn a_container_without_a_name_has_its_number_in_the_json() {
    let object = snapshot_json(
        &system_with_a_container(),
        &evaluate(&captured_system()),
        SnapshotScope::ALL,
        LogSince::Time(0),
        &[],
    )
    .unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let container = |pid: u64| {
        let task = object["processes"].as_array().unwrap().iter().find(|task| task["pid"] == pid).unwrap();
        task["container"].clone()
    };
    let want =
        serde_json::json!({ "runtime": "podman", "id": "0123456789ab", "name": null, "pod": null, "namespace": null });
    assert_eq!((container(101), container(102)), (want, Value::Null));
}

/// Adds the keys of an object; nested keys are joined by a dot, keys of arrays end in `[]`.
fn collect_keys(value: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                let path = if value.is_array() { path + "[]" } else { path };
                out.insert(path.clone());
                collect_keys(value, &path, out);
            }
        }
        Value::Array(list) => list.iter().for_each(|item| collect_keys(item, prefix, out)),
        _ => {}
    }
}

/// `a{b,c[]{d}}` as the documentation writes it.
fn documented_keys(text: &str) -> BTreeSet<String> {
    let (mut out, mut path, mut word) = (BTreeSet::new(), Vec::<String>::new(), String::new());
    for c in text.chars().chain([',']) {
        match c {
            '{' => {
                path.push(std::mem::take(&mut word));
                out.insert(path.join("."));
            }
            ',' | '}' => {
                if !word.is_empty() {
                    let mut all = path.clone();
                    all.push(std::mem::take(&mut word));
                    out.insert(all.join("."));
                }
                if c == '}' {
                    path.pop();
                }
            }
            c if c.is_whitespace() => {}
            c => word.push(c),
        }
    }
    out
}

#[test]
fn json_keys_match_the_documentation() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/json.md")).unwrap();
    let (_, after) = page.split_once("```names\n").expect("docs/reference/json.md: the list of keys");
    let names = documented_keys(after.split_once("```").unwrap().0);
    let gap = [UnavailableSource::new("queue_settings", "test")];
    let keys_of = |system: &SystemState| {
        let findings = evaluate(&captured_system());
        let object = snapshot_json(system, &findings, SnapshotScope::ALL, LogSince::Time(0), &gap).unwrap();
        let mut keys = BTreeSet::new();
        collect_keys(&serde_json::from_str(&object).unwrap(), "", &mut keys);
        keys
    };
    let mut found = keys_of(&with_traced_waits(with_traced_files(with_traced_syncs(traced_system()))));
    // Only here is there a container; nothing is traced.
    found.extend(keys_of(&system_with_a_container()).into_iter().filter(|key| key.contains(".container")));
    assert_eq!(found, names, "docs/reference/json.md and the program disagree");
}

#[test]
fn unread_sources_are_null_and_listed_as_unavailable() {
    let mut blank = SystemState::new(Default::default(), LogClock::default());
    blank.apply(Observation::Sample(Box::new(Sample { time: clock_at(0), ..Default::default() })));
    let v = snapshot_value(&blank, SnapshotScope::ALL, LogSince::Time(0));
    for key in ["devices", "network_filesystems", "processes", "kernel_log"] {
        assert!(v[key].is_null() && v.get(key).is_some(), "{key}");
    }
    for (object, key) in [("cpu", "idle_pct"), ("writeback", "dirty_bytes"), ("swap", "devices")] {
        assert!(v[object].get(key).is_some_and(Value::is_null), "{object}.{key}");
    }
    assert!(v["pressure"]["io"].get("full_avg10").is_some_and(Value::is_null));
    let named: BTreeSet<_> =
        v["unavailable"].as_array().unwrap().iter().map(|g| g["source"].as_str().unwrap()).collect();
    for source in ["cpu", "devices", "topology", "writeback", "swap", "pressure", "processes", "kernel_log"] {
        assert!(named.contains(source), "{source} in {named:?}");
    }
}

#[test]
fn unselected_panes_are_omitted() {
    let scope = SnapshotScope {
        devices: true,
        processes: false,
        memory: false,
        kernel_log: false,
        findings: false,
        syncs: false,
        files: false,
        waits: false,
    };
    let v = snapshot_value(&captured_system(), scope, LogSince::Time(0));
    let keys: Vec<_> = v.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["schema", "time", "host", "kernel", "interval_s", "cpu", "devices", "network_filesystems", "unavailable"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
}

#[test]
fn kernel_log_lists_only_new_entries() {
    let system = captured_system();
    let seqs = |since| -> Vec<u64> {
        let v = snapshot_value(&system, SnapshotScope::ALL, since);
        v["kernel_log"].as_array().unwrap().iter().filter_map(|e| e["seq"].as_u64()).collect()
    };
    assert_eq!(seqs(LogSince::Record(346)), [348, 349]);
    assert_eq!(seqs(LogSince::Record(349)), [] as [u64; 0]);
    assert_eq!(seqs(LogSince::Time(system.now().wall_ns)), [] as [u64; 0]);
}

#[test]
fn no_format_contains_control_characters() {
    let system = with_traced_syncs(captured_system());
    let text = snapshot::text(&system, &evaluate(&system), SnapshotScope::ALL);
    let json = snapshot_json(&system, &evaluate(&system), SnapshotScope::ALL, LogSince::Time(0), &[]).unwrap();
    let batch = batch::batch_report(&system, batch::BatchOptions::default());
    for (name, text) in [
        ("text", &text),
        ("markdown", &snapshot::markdown(&system, &evaluate(&system), SnapshotScope::ALL)),
        ("json", &json),
        ("batch", &batch),
    ] {
        assert!(text.chars().all(|c| c == '\n' || is_safe(c)), "{name}: {text:?}");
        assert!(text.contains("x1b"), "{name}: control characters are shown escaped");
    }
    let deep: Value = serde_json::from_str(&json).unwrap();
    let mut strings = Vec::new();
    collect_strings(&deep, &mut strings);
    assert!(strings.iter().all(|s| s.chars().all(is_safe)), "no JSON escape hides one");
}

fn collect_strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(s) => out.push(s.clone()),
        Value::Array(list) => list.iter().for_each(|v| collect_strings(v, out)),
        Value::Object(map) => map.values().for_each(|v| collect_strings(v, out)),
        _ => {}
    }
}

#[test]
fn an_empty_table_is_one_empty_line() {
    assert_eq!(Table::default().fit_width(10).to_text(), "\n");
}
