//! The Bench view in all its states: idle, editing, asked, running, blocked, ended, kept, compared, refused.

use super::fixture::{app, press, tree};
use super::{SIZES, assert_screen};
use iotop_plus::bench::measure::histogram::{Histogram, bucket_index};
use iotop_plus::bench::measure::latency::{DirectionStats, LatencyStats, SyncStats};
use iotop_plus::bench::message::{BenchMessage, BenchProgress};
use iotop_plus::bench::plan::BenchPlan;
use iotop_plus::bench::report::{
    BenchReport, Measurement, ReportTarget, RunEnd, SCHEMA, SeriesPoint, reference_classes, warnings,
};
use iotop_plus::bench::store::StoredReport;
use iotop_plus::bench::target_info::{TargetInfo, TargetInspection};
use iotop_plus::collect::path::inspect_path;
use iotop_plus::jobs::bench_jobs::StoreJob;
use iotop_plus::jobs::job::{WorkerJob, WorkerReply};
use iotop_plus::root::Root;
use iotop_plus::subprocess::runner::ChildEvent;
use iotop_plus::tui::app::App;
use iotop_plus::tui::app::update;
use iotop_plus::tui::event::Event;
use std::path::Path;

const DIR: &str = "/srv/lab/frz";

/// The sizes of the other views, and the smallest that works.
fn sizes() -> impl Iterator<Item = (u16, u16)> {
    [(40, 12)].into_iter().chain(SIZES).filter(|s| *s != (30, 8))
}

fn target_info() -> TargetInspection {
    let path = inspect_path(&Root::at(tree("t1")), Path::new(DIR)).unwrap();
    let place = TargetInfo {
        report: ReportTarget {
            filesystem: path.mount.fs_type.sanitized(),
            source: path.mount.source.sanitized(),
            mount: path.mount.mount_point.sanitized(),
            options: path.mount.options.sanitized(),
            ..ReportTarget::default()
        },
        device: path.chain.first().map(|d| d.id),
        chain: path.chain,
        size: 64 << 30,
        free: 40 << 30,
    };
    TargetInspection { directory: DIR.into(), refusal: None, info: Some(place) }
}

fn stored_results() -> Vec<StoredReport> {
    [("1795276156-randrw", 71_541.0, true), ("1795270000-fsync", 412.0, true), ("1795100000-randrw", 132.0, false)]
        .into_iter()
        .enumerate()
        .map(|(i, (id, iops, complete))| StoredReport {
            number: i + 1,
            id: id.into(),
            profile: id.split('-').nth(1).unwrap().into(),
            time: "2026-11-21T15:49:16.123Z".into(),
            directory: DIR.into(),
            brief: format!(" {iops:.0}{}", if complete { "" } else { " part" }),
            details: [format!("{iops:.0}"), String::new()],
            summary: format!(
                "2026-11-21T15:49:16.123Z {DIR}, {iops:.0} IOPS, {}/s{}",
                iotop_plus::units::format_bytes_long((iops * 4096.0) as u64),
                if complete { "" } else { ", not complete" }
            ),
            is_damaged: false,
        })
        .collect()
}

fn open_bench_with(size: (u16, u16), look: TargetInspection) -> App {
    let mut app = app(size);
    app.shared.target.set_working_directory(DIR.into());
    press(&mut app, "b");
    update(
        &mut app,
        Event::JobReply(WorkerJob::InspectTarget(DIR.into()), WorkerReply::TargetInspection(Box::new(look))),
    );
    update(
        &mut app,
        Event::JobReply(WorkerJob::BenchReports(StoreJob::List), WorkerReply::StoredReports(stored_results())),
    );
    app
}

pub fn open_bench(size: (u16, u16)) -> App {
    open_bench_with(size, target_info())
}

/// The picture at every size after `keys`.
fn assert_screens_at_every_size(name: &str, keys: &str) {
    for size in sizes() {
        let mut app = open_bench(size);
        press(&mut app, keys);
        assert_screen(name, &app);
    }
}

#[test]
fn idle_editing_and_confirming() {
    assert_screens_at_every_size("bench", "");
    assert_screens_at_every_size("bench_dialog", "<enter>");
    assert_screens_at_every_size("bench_editing", "<f2><down><enter><c-u>64X<enter>");
    assert_screens_at_every_size("bench_txlog", "<down><down><down><down><down><down><down><down><down><f2>");
}

#[test]
fn refused() {
    for size in sizes() {
        let mut crowded = target_info();
        crowded.info.as_mut().unwrap().free = 2 << 30;
        let mut app = open_bench_with(size, crowded);
        press(&mut app, "<enter>");
        assert_screen("bench_refused", &app);
    }
}

#[test]
fn network_file_system() {
    let mut far = target_info();
    let place = far.info.as_mut().unwrap();
    let place = &mut place.report;
    (place.is_network, place.filesystem, place.source) = (true, "nfs4".into(), "server:/export".into());
    let mut app = open_bench_with((80, 24), far);
    press(&mut app, "<enter>y");
    assert_screen("bench_network", &app);
}

fn send_event(app: &mut App, what: ChildEvent<BenchMessage>) {
    let run = app.views.bench.run.as_ref().unwrap().number;
    update(app, Event::Bench(run, Box::new(what)));
}

/// A run whose rates and latencies go up and down.
fn send_progress(app: &mut App, from: u64, to: u64, silent_ms: u64) {
    for n in from..=to {
        let wave = 1.0 + 0.6 * (n as f64 / 5.0).sin();
        let (iops, lat) = (20_000.0 * wave, (600_000.0 / wave) as u64);
        let point = SeriesPoint {
            at_ms: n * 250,
            read_iops: iops,
            write_iops: iops * 0.9,
            read_bytes_per_s: iops * 4096.0,
            write_bytes_per_s: iops * 0.9 * 4096.0,
            p50_ns: Some(lat),
            p99_ns: Some(lat * 6),
            ..SeriesPoint::default()
        };
        let progress = BenchProgress {
            phase: "randrw".into(),
            measurement_index: Some(0),
            fraction_done: Some(n as f64 / 120.0),
            is_ramping: false,
            point,
            op_counts: [n * 5000, n * 4500, 0],
            lat: [[Some(lat), Some(lat * 6)], [Some(lat * 2), Some(lat * 9)], [None, None]],
            idle_ms: silent_ms,
        };
        send_event(app, ChildEvent::Message(BenchMessage::Progress(Box::new(progress))));
    }
}

pub fn start_run(size: (u16, u16)) -> App {
    let mut app = open_bench(size);
    press(&mut app, "<enter>y");
    send_event(&mut app, ChildEvent::Started { pid: 4711 });
    app
}

#[test]
fn running() {
    for size in sizes() {
        let mut app = start_run(size);
        send_progress(&mut app, 1, 50, 0);
        assert_screen("bench_running", &app);
    }
    let mut app = start_run((80, 24));
    send_event(
        &mut app,
        ChildEvent::Message(BenchMessage::Note("io_uring is refused here (EPERM): threads instead".into())),
    );
    send_progress(&mut app, 1, 50, 0);
    press(&mut app, "C1");
    assert_screen("bench_elsewhere", &app);
}

#[test]
fn blocked() {
    for size in [(80, 24), (120, 40)] {
        let mut app = start_run(size);
        send_progress(&mut app, 1, 20, 0);
        send_progress(&mut app, 21, 21, 12_300);
        assert_screen("bench_blocked", &app);
    }
}

fn latency(n: u64, ns: u64) -> LatencyStats {
    let from = bucket_index(ns / 4);
    let counts = (0..from + 200).map(|i| if i >= from { n / (2 + (i - from) as u64) } else { 0 });
    let histogram = Some(Histogram::from_counts(counts));
    let mean_ns = ns as f64;
    LatencyStats { count: n, min_ns: ns / 10, max_ns: ns * 40, mean_ns, stddev_ns: mean_ns / 2.0, histogram }
}

fn direction(ios: u64, ns: u64) -> DirectionStats {
    DirectionStats { ios, bytes: ios * 4096, lat: latency(ios, ns), ..DirectionStats::default() }
}

fn report(id: &str, ios: u64) -> BenchReport {
    let series = (1..=40u64)
        .map(|n| SeriesPoint {
            at_ms: n * 250,
            read_iops: ios as f64 / 10.0 + (n * n) as f64,
            ..SeriesPoint::default()
        })
        .collect();
    let part = Measurement {
        label: "randrw".into(),
        engine: "io_uring (registered buffers)".into(),
        block: 4096,
        depth: 64,
        jobs: 1,
        elapsed_ns: 10_000_000_000,
        read: direction(ios, 800_000),
        write: direction(ios * 9 / 10, 1_100_000),
        sync: SyncStats::default(),
        series,
        ..Measurement::default()
    };
    let target = ReportTarget {
        directory: DIR.into(),
        filesystem: "ext4".into(),
        source: "/dev/loop0".into(),
        device: Some("7:0".into()),
        ..ReportTarget::default()
    };
    let mut report = BenchReport {
        schema: SCHEMA,
        id: id.into(),
        time: "2026-11-21T15:49:16.123Z".into(),
        host: "host".into(),
        kernel: "6.18.0".into(),
        version: "0.1.0".into(),
        plan: BenchPlan { directory: DIR.into(), ..BenchPlan::default() },
        reference: reference_classes::place_measurement(&part, None),
        conclusion: None,
        target: Some(target),
        measurements: vec![part],
        warnings: Vec::new(),
        end: RunEnd::Complete,
    };
    report.warnings = warnings::warnings_for(&report);
    report
}

#[test]
fn ended() {
    for size in sizes() {
        let mut app = start_run(size);
        send_progress(&mut app, 1, 120, 0);
        let done = Box::new(report("1795277000-randrw", 152_000));
        send_event(&mut app, ChildEvent::Message(BenchMessage::Report(done.clone())));
        update(
            &mut app,
            Event::JobReply(
                WorkerJob::BenchReports(StoreJob::Save(done)),
                WorkerReply::Saved("1795277000-randrw".into()),
            ),
        );
        assert_screen("bench_ended", &app);
        press(&mut app, "<enter><pgdn><pgdn><pgdn><pgdn>");
        assert_screen("bench_ended_below", &app);
    }
}

/// Answers the request for two stored results.
pub fn send_pair(app: &mut App, ids: [&str; 2]) {
    let both = vec![report(ids[0], 15_000), report(ids[1], 152_000)];
    let ids = ids.map(str::to_owned).to_vec();
    update(app, Event::JobReply(WorkerJob::BenchReports(StoreJob::Load(ids)), WorkerReply::LoadedResults(both)));
}

#[test]
fn stored_and_compared_results() {
    assert_screens_at_every_size("bench_kept", "<end>m<up><up>");
    for size in sizes() {
        let mut app = open_bench(size);
        press(&mut app, "<end>m<up><up>c");
        send_pair(&mut app, ["1795100000-randrw", "1795276156-randrw"]);
        assert_screen("bench_compared", &app);
    }
}
