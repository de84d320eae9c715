//! What is printed of a captured host: the same counters, derived and written, must give the same text.
//!
//! `tests/fixtures/busy-host/{t0,t1}` is one machine at two moments: a saturated disk, one that hangs, an
//! NFS mount over a slow wire, a swapped process, one with a hostile name. The clocks are the test's:
//! t1 is two seconds after t0.

mod stage;

use iotop_plus::collect::kmsg::KmsgReader;
use iotop_plus::collect::processes::{ProcessCollector, ScanOptions};
use iotop_plus::collect::queue::read_queue_attrs;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::collect::{Source, host, sources};
use iotop_plus::diagnose::Engine;
use iotop_plus::export::json::{Gap, Since, object};
use iotop_plus::export::page::{self, Scope};
use iotop_plus::export::{batch, sheet::Sheet};
use iotop_plus::model::io_accounting::{IoAccount, IoAccountsRaw, AccountKey, AccountKind};
use iotop_plus::model::timestamp::Timestamp;
use iotop_plus::model::disk::DevId;
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::model::latency::{SparseHistogram, DeviceHistograms, LatencyRaw};
use iotop_plus::model::process::ProcessUpdate;
use iotop_plus::model::sample::Sample;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::request_pattern::RequestPattern;
use iotop_plus::model::snapshot::Snapshot;
use iotop_plus::model::memory_stalls::{StallCounter, MemoryStallsRaw, TaskStallCounters};
use iotop_plus::model::syncs::SyncActivity;
use iotop_plus::model::system_state::SystemState;
use iotop_plus::root::Root;
use iotop_plus::text::is_safe;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const START: Timestamp = Timestamp { boot_ns: 1_000_000_000_000, wall_ns: 1_700_000_000_000_000_000 };

fn at(step: u64) -> Timestamp {
    let ns = step * 2_000_000_000;
    Timestamp { boot_ns: START.boot_ns + ns, wall_ns: START.wall_ns + ns as i64 }
}

/// Over what is there, in place: descriptors that are kept go on reading the same files.
fn lay(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() { lay(&from, &to) } else { std::fs::copy(&from, &to).map(drop).unwrap() }
    }
}

fn sample(sources: &mut [Box<dyn Source>], seq: u64) -> Sample {
    let mut sample = Sample { seq: seq + 1, time: at(seq), ..Default::default() };
    for source in sources {
        source.read()(&mut sample);
    }
    sample.io_accounts = charge(seq + 1);
    sample
}

/// What tracing would have counted: a process that writes to the first disk, and has had some of it written back; one
/// that has ended.
fn charge(seconds: u64) -> Reading<Arc<IoAccountsRaw>> {
    let account = |pid, kind| IoAccount {
        key: AccountKey { pid, device: DevId { major: 8, minor: 0 }, cgroup_id: 7, kind },
        requests: 100 * seconds,
        bytes: 409_600 * seconds,
        total_ns: 20_000_000 * seconds,
        histogram: SparseHistogram::from_sparse([(14, 100 * seconds as u32)]),
    };
    Reading::Ok(Arc::new(IoAccountsRaw {
        accounts: vec![account(101, AccountKind::Write), account(101, AccountKind::Writeback), account(900, AccountKind::Writeback)],
        names: vec![(101, "writer".into()), (900, "go\u{1b}ne".into())],
        cgroups: vec![(7, "/system.slice/\u{202e}db".into())],
        ..IoAccountsRaw::default()
    }))
}

/// A look at the tasks, as if it had been at that moment.
fn look(collector: &mut ProcessCollector, step: u64, wants: &ScanOptions) -> Reading<ProcessUpdate> {
    collector.scan(wants).map(|mut update| {
        update.time = at(step);
        update.previous_time = (step > 0).then(|| at(step - 1));
        for change in &mut update.changed {
            change.scanned_ns = at(step).boot_ns;
            change.previous_scan_ns = if step > 0 { at(step - 1).boot_ns } else { 0 };
        }
        update
    })
}

fn world() -> SystemState {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/busy-host");
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    lay(&fixture.join("t0"), dir.path());
    let clock = |step| LogClock { mono_ns: at(step).boot_ns + 4_000_000_000, wall_ns: at(step).wall_ns };
    let mut world = SystemState::new(host::read_host(&root), clock(0));
    let mut sources = sources(&root);
    let mut collector = ProcessCollector::new(&root);
    let mut topology = TopologyReader::new(&root);
    for step in 0..2 {
        if step == 1 {
            lay(&fixture.join("t1"), dir.path());
        }
        world.apply_sample(sample(&mut sources, step));
        let wants =
            ScanOptions { delays: true, all_names: true, all_visible: true, wait_channels: true, ..Default::default() };
        world.apply_processes(look(&mut collector, step, &wants));
        let Reading::Ok(mut log) = KmsgReader::open(&root) else { panic!("kmsg") };
        let records = std::iter::from_fn(|| log.next_record().unwrap()).collect();
        world.apply_records(records, clock(step));
        world.kernel_log_status = Reading::Ok(());
    }
    world.topology = topology.refresh(&[]).unwrap();
    world.queues = read_queue_attrs(&root, &world.devices_to_query());
    world
}

/// The same when its next tick was traced: devices were asked for something, and somebody was held up.
fn traced() -> SystemState {
    let mut world = world();
    let task = TaskStallCounters {
        pid: 1,
        comm: "dd\u{1b}".into(),
        counters: [StallCounter { count: 4, total_ns: 500_000_000, max_ns: 200_000_000 }, StallCounter::default()],
        ..TaskStallCounters::default()
    };
    let mut sample = world.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    let stalls = MemoryStallsRaw { tasks: vec![task], is_counted: [true, false], ..MemoryStallsRaw::default() };
    sample.memory_stalls = Reading::Ok(stalls);
    sample.io_accounts = charge(sample.seq + 1);
    let ids = sample.disks.ok().unwrap().iter().map(|d| DeviceHistograms { id: d.id, ..DeviceHistograms::default() });
    let mut devices: Vec<_> = ids.collect();
    devices.sort_by_key(|d| d.id);
    for d in &mut devices {
        d.kinds[0].pattern = RequestPattern { random: 1, sequential: 3, ..RequestPattern::default() };
        d.kinds[0].pattern.sizes[3] = 4;
    }
    sample.latency = Reading::Ok(Arc::new(LatencyRaw { devices, ..LatencyRaw::default() }));
    world.apply_sample(sample);
    world
}

#[test]
fn what_devices_were_asked_for_is_told() {
    let world = traced();
    let object = object(&world, &findings(&world), Scope::ALL, Since::Time(0), &[]).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let device = &object["devices"][0];
    assert_eq!(device["request_sizes"]["read"], serde_json::json!([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(device["sequential_pct"], serde_json::json!({"read": 75.0, "write": null}));
}

#[test]
fn who_was_held_up_is_told_and_what_is_not_counted_is_null() {
    let world = traced();
    let object = object(&world, &findings(&world), Scope::ALL, Since::Time(0), &[]).unwrap();
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

/// The same with syncs traced.
fn with_syncs(mut world: SystemState) -> SystemState {
    let reading = stage::syncs::reading(world.last_sample.as_ref().unwrap(), 8);
    let syncs = Reading::Ok(Arc::new(SyncActivity::derive(None, &reading, 2.0)));
    world.snapshot = Arc::new(Snapshot { syncs, ..(*world.snapshot).clone() });
    world
}

/// Syncs and nothing else.
const SYNCS: Scope =
    Scope { devices: false, processes: false, memory: false, kernel: false, findings: false, syncs: true };

/// What is found in it.
fn findings(world: &SystemState) -> Engine {
    let mut engine = Engine::default();
    engine.look(world);
    engine
}

fn json(world: &SystemState, scope: Scope, since: Since) -> Value {
    serde_json::from_str(&object(world, &findings(world), scope, since, &[]).unwrap()).unwrap()
}

#[test]
fn the_json_of_a_captured_host() {
    let text = serde_json::to_string_pretty(&json(&world(), Scope::ALL, Since::Time(0))).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn the_page_of_a_captured_host() {
    insta::assert_snapshot!(page::text(&world(), &findings(&world()), Scope::ALL));
}

#[test]
fn the_syncs_of_a_captured_host() {
    let world = with_syncs(world());
    let json = serde_json::to_string_pretty(&json(&world, SYNCS, Since::Time(0))).unwrap();
    let page = page::text(&world, &findings(&world), SYNCS);
    insta::assert_snapshot!(format!("{page}\n{json}"));
}

#[test]
fn syncs_are_there_if_they_were_traced_or_asked_for_by_name() {
    let there = |world: &SystemState, scope| {
        let v = json(world, scope, Since::Time(0));
        let gaps = v["unavailable"].as_array().unwrap().clone();
        (v.get("syncs").cloned(), gaps.iter().any(|g| g["source"] == "syncs"))
    };
    assert_eq!(there(&world(), Scope::ALL), (None, false));
    assert_eq!(there(&world(), SYNCS), (Some(Value::Null), true));
    assert!(there(&with_syncs(world()), Scope::ALL).0.unwrap().is_array());
}

#[test]
fn the_batch_report_of_a_captured_host() {
    let world = world();
    insta::assert_snapshot!(batch::report(&world, batch::Options { only: true, accumulated: false }));
    let sums = batch::report(&world, batch::Options { only: true, accumulated: true });
    assert!(sums.starts_with("Total DISK READ:         480.00 K |"), "{sums}");
}

/// The keys of an object, and below it with a dot; of arrays their first object's, with `[]`.
fn keys(value: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                let path = if value.is_array() { path + "[]" } else { path };
                out.insert(path.clone());
                keys(value, &path, out);
            }
        }
        Value::Array(list) => list.iter().for_each(|item| keys(item, prefix, out)),
        _ => {}
    }
}

/// `a{b,c[]{d}}` as the README writes it.
fn documented(text: &str) -> BTreeSet<String> {
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
fn every_documented_key_is_there_and_no_other() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, after) = readme.split_once("```names\n").expect("README.md: the list of names");
    let names = documented(after.split_once("```").unwrap().0);
    let mut found = BTreeSet::new();
    let gap = [Gap::new("queue_settings", "test")];
    let object =
        object(&with_syncs(traced()), &findings(&world()), Scope::ALL, Since::Time(0), &gap).unwrap();
    keys(&serde_json::from_str(&object).unwrap(), "", &mut found);
    assert_eq!(found, names, "README.md and the program disagree");
}

#[test]
fn unread_sources_are_null_and_named_and_keep_their_keys() {
    let mut blank = SystemState::new(Default::default(), LogClock::default());
    blank.apply_sample(Sample { time: at(0), ..Default::default() });
    let v = json(&blank, Scope::ALL, Since::Time(0));
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
fn chosen_panes_leave_the_others_out() {
    let scope = Scope {
        devices: true,
        processes: false,
        memory: false,
        kernel: false,
        findings: false,
        syncs: false,
    };
    let v = json(&world(), scope, Since::Time(0));
    let keys: Vec<_> = v.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "schema",
        "time",
        "host",
        "kernel",
        "interval_s",
        "cpu",
        "devices",
        "network_filesystems",
        "unavailable",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
}

#[test]
fn the_kernel_log_tells_only_what_is_new() {
    let world = world();
    let seqs = |since| -> Vec<u64> {
        let v = json(&world, Scope::ALL, since);
        v["kernel_log"].as_array().unwrap().iter().filter_map(|e| e["seq"].as_u64()).collect()
    };
    assert_eq!(seqs(Since::Record(346)), [348, 349]);
    assert_eq!(seqs(Since::Record(349)), [] as [u64; 0]);
    assert_eq!(seqs(Since::Time(world.now().wall_ns)), [] as [u64; 0]);
}

#[test]
fn hostile_names_leave_no_control_character_in_any_format() {
    let world = with_syncs(world());
    let text = page::text(&world, &findings(&world), Scope::ALL);
    let json = object(&world, &findings(&world), Scope::ALL, Since::Time(0), &[]).unwrap();
    let batch = batch::report(&world, batch::Options::default());
    for (name, text) in [
        ("text", &text),
        ("markdown", &page::markdown(&world, &findings(&world), Scope::ALL)),
        ("json", &json),
        ("batch", &batch),
    ] {
        assert!(text.chars().all(|c| c == '\n' || is_safe(c)), "{name}: {text:?}");
        assert!(text.contains("x1b"), "{name}: the attack is shown, not hidden");
    }
    let deep: Value = serde_json::from_str(&json).unwrap();
    let mut strings = Vec::new();
    collect(&deep, &mut strings);
    assert!(strings.iter().all(|s| s.chars().all(is_safe)), "no escape hides one either");
}

fn collect(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(s) => out.push(s.clone()),
        Value::Array(list) => list.iter().for_each(|v| collect(v, out)),
        Value::Object(map) => map.values().for_each(|v| collect(v, out)),
        _ => {}
    }
}

#[test]
fn an_empty_sheet_is_no_panic() {
    assert_eq!(Sheet::default().within(10).text(), "\n");
}
