//! A screen over a captured machine, for tests: the real sources read `tests/fixtures/busy-vm`, the clocks
//! come from the tree, and everything enters through `update`, as on the live machine.

#![allow(dead_code)]

pub mod charge;
pub mod experiment;
pub mod syncs;
pub mod tune;

use crossterm::event::{Event as Term, KeyCode, KeyEvent, KeyModifiers};
use iotop_plus::collect::kmsg::KmsgReader;
use iotop_plus::collect::processes::{ProcessCollector, ScanOptions};
use iotop_plus::collect::queue::read_queue_attrs;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::collect::{host, sources};
use iotop_plus::model::timestamp::Timestamp;
use iotop_plus::model::kernel_log::LogClock;
use iotop_plus::model::latency::{SparseHistogram, DeviceHistograms, RequestHistograms, LatencyRaw, BUCKETS, bucket_index};
use iotop_plus::model::process::{IoPrio, ProcessUpdate};
use iotop_plus::model::sample::Sample;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::request_pattern::RequestPattern;
use iotop_plus::model::memory_stalls::{StallCounter, MemoryStallsRaw, TaskStallCounters};
use iotop_plus::model::system_state::SystemState;
use iotop_plus::root::Root;
use iotop_plus::tui::effect::Effect;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::settings::Settings;
use iotop_plus::tui::state::{App, Ui};
use iotop_plus::tui::update::update;
use iotop_plus::worker::job::{WorkerJob, WorkerReply};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Ticks before the two that were captured, made from them: graphs need a past.
const PAST: u64 = 40;
/// When two of the captured tasks began, in ticks of 1/100 s.
const LEDGER_STARTED: u64 = 441_847;
const BACKUP_STARTED: u64 = 441_830;
/// Time between the ticks.
const TICK_NS: u64 = 2_000_000_000;
/// How long the tasks were as they are before the first captured tick: long enough to be called stuck.
const QUIET_NS: u64 = 90_000_000_000;

/// The captured tree of a moment.
pub fn tree(moment: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/busy-vm").join(moment)
}

fn clock(moment: &str) -> Timestamp {
    let text = std::fs::read_to_string(tree(moment).join("clock")).unwrap();
    let (boot, wall) = text.trim().split_once(' ').unwrap();
    Timestamp { boot_ns: boot.parse().unwrap(), wall_ns: wall.parse().unwrap() }
}

fn sample(moment: &str) -> Sample {
    let mut sample = Sample { time: clock(moment), ..Default::default() };
    for mut source in sources(&Root::at(tree(moment))) {
        source.read()(&mut sample);
    }
    sample
}

/// A look at the tasks with the tree's clocks.
fn procs(moment: &str, threads: bool) -> ProcessUpdate {
    let wants = ScanOptions { threads, delays: true, ..Default::default() };
    // On a machine too busy for the collector's deadlines a read counts as stuck: then once more.
    let whole = |u: &ProcessUpdate| u.blocked.is_empty() && !u.users.is_empty() && !u.names.is_empty();
    let mut update = (0..50)
        .find_map(|_| {
            let mut collector = ProcessCollector::without_taskstats(&Root::at(tree(moment)));
            collector.scan(&wants).ok().filter(|u| whole(u)).cloned()
        })
        .expect("a whole look at the tasks");
    let at = clock(moment);
    (update.time, update.duration_ns) = (at, 1_000_000);
    for change in &mut update.changed {
        (change.scanned_ns, change.previous_scan_ns) = (at.boot_ns, 0);
        change.raw.ioprio = Some(IoPrio { class: 0, level: 4 });
    }
    update
}

/// The counters of `b` as they would have been, had they run at `w` times the pace from `a` to `b`.
fn between(a: &Value, b: &Value, w: f64) -> Value {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            b.iter().map(|(k, v)| (k.clone(), between(a.get(k).unwrap_or(v), v, w))).collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).map(|(a, b)| between(a, b, w)).collect()
        }
        (Value::Number(x), Value::Number(y)) => match (x.as_u64(), y.as_u64()) {
            (Some(x), Some(y)) => ((x as f64 + (y as f64 - x as f64) * w).max(0.0).round() as u64).into(),
            _ => b.clone(),
        },
        _ => b.clone(),
    }
}

/// What was captured, and the past made from it, oldest first.
fn samples() -> Vec<Sample> {
    let (first, last) = (sample("t0"), sample("t1"));
    let [a, b] = [&first, &last].map(|s| serde_json::to_value(s).unwrap());
    let mut out = Vec::new();
    let mut pace = 0.0;
    for i in 1..=PAST {
        // Busier and quieter, never backwards.
        pace -= 1.0 + 0.4 * (i as f64 / 3.0).sin();
        let mut sample: Sample = serde_json::from_value(between(&a, &b, pace)).unwrap();
        let back = TICK_NS * i;
        sample.time = Timestamp { boot_ns: first.time.boot_ns - back, wall_ns: first.time.wall_ns - back as i64 };
        out.push(sample);
    }
    out.reverse();
    out.extend([first, last]);
    for (i, sample) in out.iter_mut().enumerate() {
        sample.seq = i as u64 + 1;
        sample.latency = latency(sample, i as u64);
        sample.memory_stalls = stalls(sample, i as u64, i as u64 > PAST);
        sample.io_accounts = charge::charge(sample, i as u64);
    }
    out
}

/// What tracing would have counted on the disk by then: reads that are quick but for some, writes that wander, and
/// a spell in which they wait for long. The captured tree has no such thing.
fn latency(sample: &Sample, ticks: u64) -> Reading<Arc<LatencyRaw>> {
    let Some(disk) = sample.disks.ok().and_then(|d| d.iter().find(|d| &*d.name == "vda")) else {
        return Reading::default();
    };
    let mut dense = [[0u32; BUCKETS]; 6];
    for t in 1..=ticks {
        let waits = if (25..29).contains(&t) { 40_000 } else { 0 };
        for i in 0..300 + t % 40 {
            let us = 60 + i * i % 47 + if i % 90 == 0 { 900 + 20 * t } else { 0 };
            dense[0][usize::from(bucket_index((us + 12) * 1000))] += 1;
            dense[1][usize::from(bucket_index(us * 1000))] += 1;
        }
        for i in 0..40 {
            let us = 400 + i * (20 + t % 9) + if i % 7 == 0 { waits } else { 0 };
            dense[2][usize::from(bucket_index((us + us / 2) * 1000))] += 1;
            dense[3][usize::from(bucket_index(us * 1000))] += 1;
        }
        dense[5][usize::from(bucket_index(3_000_000 + t * 10_000))] += 2;
        dense[4] = dense[5];
    }
    let counts = |at: usize| SparseHistogram::from_dense(dense[at]);
    let shape = |at: usize| {
        // Reads mostly of 4 KiB at random, writes of all sizes and mostly in a row.
        let each: [u32; 12] = match at {
            0 => [0, 0, 0, 280, 12, 6, 4, 0, 2, 0, 0, 0],
            2 => [0, 0, 0, 3, 2, 2, 3, 4, 6, 8, 7, 5],
            _ => [0; 12],
        };
        let all = each.iter().sum::<u32>() * ticks as u32;
        let sequential = if at == 0 { all / 8 } else { all / 10 * 9 };
        RequestPattern { sizes: each.map(|n| n * ticks as u32), random: all - sequential, sequential }
    };
    let kinds =
        [0, 2, 4].map(|at| RequestHistograms { total: counts(at), service: counts(at + 1), pattern: shape(at) });
    let devices = vec![DeviceHistograms { id: disk.id, kinds }];
    Reading::Ok(Arc::new(LatencyRaw { devices, ..LatencyRaw::default() }))
}

/// Who was held up by then: a writer in the same spell and in the last tick, in which somebody else had to make room,
/// too, and one that is no more.
fn stalls(sample: &Sample, ticks: u64, last: bool) -> Reading<MemoryStallsRaw> {
    let Some(disk) = sample.disks.ok().and_then(|d| d.iter().find(|d| &*d.name == "vda")) else {
        return Reading::default();
    };
    let spell = (1..=ticks).filter(|t| (25..29).contains(t)).count() as u64;
    let count = |count, ms_each, longest_ms: u64| StallCounter {
        count,
        total_ns: count * ms_each * 1_000_000,
        max_ns: longest_ms * 1_000_000,
    };
    let task = |pid, starttime, comm: &str, kinds| TaskStallCounters {
        pid,
        starttime,
        comm: comm.into(),
        bdi: format!("{}:{}", disk.id.major, disk.id.minor).into(),
        counters: kinds,
    };
    let last = u64::from(last);
    let tasks = vec![
        task(6393, BACKUP_STARTED, "backup-agent", [count(0, 0, 0), count(3 * last, 7, 12)]),
        task(6405, LEDGER_STARTED, "ledgerd", [count(4 * spell + 5 * last, 130, 200), count(spell, 3, 3)]),
        task(7777, 3_000, "tar", [count(last, 48, 48), count(2 * last, 1, 1)]),
    ];
    Reading::Ok(MemoryStallsRaw { tasks, is_counted: [true; 2], ..MemoryStallsRaw::default() })
}

/// Everything that arrives, in order.
pub struct Story {
    samples: Vec<Sample>,
    procs: [[ProcessUpdate; 2]; 2],
}

/// Read once for all tests of a binary.
pub fn story() -> &'static Story {
    static STORY: OnceLock<Story> = OnceLock::new();
    STORY.get_or_init(|| Story {
        samples: samples(),
        procs: [false, true].map(|threads| ["t0", "t1"].map(|t| procs(t, threads))),
    })
}

/// The screen before anything has come.
pub fn empty(size: (u16, u16)) -> App {
    let start = clock("t0");
    let log = LogClock { mono_ns: start.boot_ns, wall_ns: start.wall_ns };
    let world = SystemState::new(host::read_host(&Root::at(tree("t0"))), log);
    App::new(world, Ui::new(size, &Settings::default(), false))
}

/// The screen when everything has come.
pub fn app(size: (u16, u16)) -> App {
    let mut app = empty(size);
    play(&mut app);
    app
}

/// Plays the story.
pub fn play(app: &mut App) {
    let root = Root::at(tree("t1"));
    let story = story();
    let before_last = story.samples.len() - 1;
    for (i, sample) in story.samples.iter().enumerate() {
        update(app, Event::Sample(Box::new(sample.clone())));
        if i == before_last - 1 {
            tell_tasks(app, false);
            let topo = TopologyReader::new(&root).refresh(&[]).unwrap();
            update(app, Event::Topology(Box::new(topo)));
        }
    }
    let names = vec!["vda".to_owned(), "loop0".into(), "zram0".into()];
    let queues = WorkerReply::QueueSettings(read_queue_attrs(&root, &names));
    update(app, Event::JobReply(WorkerJob::QueueSettings { names }, queues));
    let Reading::Ok(mut log) = KmsgReader::open(&root) else { panic!("no kernel log") };
    let records = std::iter::from_fn(|| log.next_record().unwrap()).collect();
    let at = clock("t1");
    update(app, Event::KernelLogRecords(records, LogClock { mono_ns: at.boot_ns, wall_ns: at.wall_ns }));
    tell_tasks(app, true);
}

/// The look at the tasks of the first captured tick (as it was long before, too), or that of the last.
pub fn tell_tasks(app: &mut App, last: bool) {
    let [first, second] = &story().procs[usize::from(app.ui.processes.show_threads)];
    let tell = |app: &mut App, u: ProcessUpdate| {
        update(app, Event::Processes(Box::new(Reading::Ok(u))));
    };
    if last {
        let mut u = second.clone();
        (u.seq, u.reset, u.previous_time) = (3, false, Some(first.time));
        u.changed.iter_mut().for_each(|c| c.previous_scan_ns = first.time.boot_ns);
        let there: HashSet<_> = u.changed.iter().map(|c| c.raw.key).collect();
        u.exited = first.changed.iter().map(|c| c.raw.key).filter(|k| !there.contains(k)).collect();
        tell(app, u);
    } else {
        let mut u = first.clone();
        u.time.boot_ns -= QUIET_NS;
        u.time.wall_ns -= QUIET_NS as i64;
        u.changed.iter_mut().for_each(|c| c.scanned_ns -= QUIET_NS);
        let quiet = ProcessUpdate {
            seq: 2,
            previous_time: Some(u.time),
            reset: false,
            changed: Vec::new(),
            names: Vec::new(),
            ..first.clone()
        };
        tell(app, u);
        tell(app, quiet);
    }
}

/// Presses keys: a letter each, or a name in angle brackets (`<esc>`, `<c-c>`). What it caused.
pub fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in keys_of(keys) {
        if let Term::Key(key) = event {
            effects.extend(update(app, Event::Key(key)));
        }
    }
    effects
}

/// The keys of such a text.
pub fn keys_of(text: &str) -> Vec<Term> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|r| r.split_once('>'));
        let event = match named {
            Some((name, after)) => {
                rest = after;
                named_key(name)
            }
            None => {
                rest = &rest[c.len_utf8()..];
                KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
            }
        };
        out.push(Term::Key(event));
    }
    out
}

fn named_key(name: &str) -> KeyEvent {
    let code = match name {
        "esc" => KeyCode::Esc,
        "enter" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "s-tab" => KeyCode::BackTab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "bs" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        "f1" => KeyCode::F(1),
        _ => {
            let c = name.strip_prefix("c-").and_then(|c| c.chars().next()).expect(name);
            return KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        }
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}
