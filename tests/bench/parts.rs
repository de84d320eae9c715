//! Cost of each part of a refresh except scanning processes (see `process`): `cargo bench --bench parts`.
//!
//! Sources read the running machine, so figures depend on its devices. The kernel log is a captured one.

use divan::Bencher;
use iotop_plus::collect::kmsg::parse_record;
use iotop_plus::collect::processes::ScanOptions;
use iotop_plus::collect::topology::TopologyReader;
use iotop_plus::collect::{clock, host, sources};
use iotop_plus::model::device_id::DevId;
use iotop_plus::model::kernel_log::classify::classify;
use iotop_plus::model::kernel_log::{KernelLog, KernelLogLimits, KmsgRecord, LogClock};
use iotop_plus::model::observation::Observation;
use iotop_plus::model::sample::Sample;
use iotop_plus::model::snapshot::Snapshot;
use iotop_plus::model::system_state::SystemState;
use iotop_plus::root::Root;
use iotop_plus::tui::action::ViewId;
use iotop_plus::tui::app::App;
use iotop_plus::tui::app::draw::draw;
use iotop_plus::tui::app::update;
use iotop_plus::tui::diff_renderer::DiffRenderer;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::settings::Settings;
use iotop_plus::tui::widgets::CellBuffer;
use ratatui::layout::Rect;

#[path = "../fixture/process_collector.rs"]
mod process_collector;
use process_collector::ProcessCollector;

const SIZE: (u16, u16) = (200, 50);

fn main() {
    divan::main();
}

/// Reads and parses one source.
#[divan::bench(args = ["/proc/diskstats", "/proc/stat", "/proc/vmstat", "/proc/meminfo", "/proc/pressure"])]
fn read(bencher: Bencher, file: &str) {
    let mut all = sources(&Root::live());
    let Some(source) = all.iter_mut().find(|s| s.name.starts_with(file)) else {
        panic!("no source {file}; there are {:?}", sources(&Root::live()).iter().map(|s| s.name).collect::<Vec<_>>())
    };
    let mut sample = Sample::default();
    bencher.bench_local(|| source.read(&mut sample));
}

/// Reads all sources: one sample of counters.
#[divan::bench]
fn tick(bencher: Bencher) {
    let mut all = sources(&Root::live());
    bencher.bench_local(|| {
        let mut sample = Sample::default();
        for source in &mut all {
            source.read(&mut sample);
        }
        sample
    });
}

#[divan::bench]
fn derive(bencher: Bencher) {
    let (a, b) = two_samples();
    bencher.bench_local(|| Snapshot::derive(Some(&a), &b));
}

/// Draws a frame of a view into cells.
#[divan::bench(args = ViewId::ALL)]
fn frame(bencher: Bencher, view: ViewId) {
    let app = app_with_samples(view);
    let mut canvas = CellBuffer::new(Rect::new(0, 0, SIZE.0, SIZE.1));
    bencher.bench_local(|| {
        draw(&app, &mut canvas);
        canvas.swap(|_, _, _, _| ());
    });
}

/// Draws a frame and compares it with the last one, without changes: the cost of an idle refresh.
#[divan::bench]
fn frame_and_difference(bencher: Bencher) {
    let app = app_with_samples(ViewId::Overview);
    let mut screen = DiffRenderer::new(SIZE);
    bencher.bench_local(|| screen.draw_frame(|buf| draw(&app, buf), |_| Ok(())));
}

/// Classifies every line of a captured log.
#[divan::bench]
fn classify_log(bencher: Bencher) {
    let records = captured_log();
    bencher
        .counter(divan::counter::ItemsCount::new(records.len()))
        .bench_local(|| records.iter().filter(|r| classify(r).pid.is_some()).count());
}

/// Classifies, folds and counts every line of a captured log.
#[divan::bench]
fn fold_log(bencher: Bencher) {
    let records = captured_log();
    bencher.counter(divan::counter::ItemsCount::new(records.len())).bench_local(|| {
        let mut log = KernelLog::new(LogClock::default(), KernelLogLimits::default());
        for record in &records {
            log.push(record, LogClock::default());
        }
        log
    });
}

fn captured_log() -> Vec<KmsgRecord> {
    let text = std::fs::read("tests/fixtures/kmsg/field/dev/kmsg").expect("run from the repository");
    text.split(|b| *b == b'\n').filter_map(parse_record).collect()
}

fn sample(seq: u64) -> Sample {
    let mut sample = Sample { seq, time: clock::now(), ..Sample::default() };
    for mut source in sources(&Root::live()) {
        source.read(&mut sample);
    }
    sample
}

fn two_samples() -> (Sample, Sample) {
    let first = sample(1);
    let mut second = sample(2);
    second.time.boot_ns = first.time.boot_ns + 1_000_000_000;
    (first, second)
}

/// Returns the state of the program after two samples of this machine.
fn app_with_samples(view: ViewId) -> App {
    let root = Root::live();
    let settings = Settings { view, ..Settings::default() };
    let system = SystemState::new(host::read_host(&root), clock::now_log_clock());
    let mut app = App::new(system, SIZE, &settings);
    let (first, second) = two_samples();
    let disks: Vec<DevId> = second.disks.ok().map(|d| d.iter().map(|d| d.id).collect()).unwrap_or_default();
    let mut procs = ProcessCollector::new(&root);
    let options = ScanOptions { delays: true, ..ScanOptions::default() };
    update(&mut app, Event::Observed(Observation::Sample(Box::new(first))));
    update(&mut app, Event::Observed(Observation::Tasks(Box::new(procs.scan(&options)))));
    if let Some(topo) = TopologyReader::new(&root).refresh(&disks) {
        update(&mut app, Event::Observed(Observation::Topology(Box::new(topo))));
    }
    update(&mut app, Event::Observed(Observation::KernelLog(captured_log(), clock::now_log_clock())));
    update(&mut app, Event::Observed(Observation::Sample(Box::new(second))));
    update(&mut app, Event::Observed(Observation::Tasks(Box::new(procs.scan(&options)))));
    app
}
