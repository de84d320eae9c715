//! The Bench view: keys, news and answers, and what they cause.

use super::BenchForm;
use crate::bench::message::{BenchMessage, BenchProgress};
use crate::bench::plan::BenchPlan;
use crate::bench::report::{BenchReport, ReportTarget, RunEnd, SCHEMA};
use crate::bench::store::StoredReport;
use crate::bench::target_info::{TargetInfo, TargetInspection};
use crate::bench::workloads::WORKLOADS;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::disk::DevId;
use crate::subprocess::runner::ChildEvent;
use crate::tui::app::App;
use crate::tui::app::tests::fixture::{app, press};
use crate::tui::app::tests::{SIZE, click, state_summary, visible_effects};
use crate::tui::app::update;
use crate::tui::view::{Effect, Event, Overlay, RunEffect};
use crate::tui::views::runs::{OpenedResult, Run, RunEnding, RunForms, RunKind, RunRow, RunStatus, stored_text};
use crate::tuning::plan::TuneError;

use ratatui::layout::Rect;

const DIR: &str = "/srv/lab";

fn plan(app: &App, form: usize) -> BenchPlan {
    app.views.bench.form.plan(form, &app.shared.target.directory).1
}

/// Names of the lines of the first form.
fn line_names(app: &App) -> Vec<&'static str> {
    app.views.bench.form.lines(0, &app.shared).into_iter().map(|line| line.name).collect()
}

fn target_info(change: impl FnOnce(&mut TargetInfo)) -> TargetInspection {
    let mut seen = TargetInfo {
        report: ReportTarget { filesystem: "ext4".into(), ..ReportTarget::default() },
        size: 1 << 40,
        free: 1 << 39,
        device: Some(DevId { major: 7, minor: 0 }),
        ..TargetInfo::default()
    };
    change(&mut seen);
    TargetInspection { directory: DIR.into(), refusal: None, info: Some(seen) }
}

fn send_reply(app: &mut App, job: WorkerJob, reply: WorkerReply) -> Vec<Effect> {
    visible_effects(update(app, Event::JobReply(job, reply)))
}

fn send_target(app: &mut App, look: TargetInspection) {
    send_reply(app, WorkerJob::InspectTarget(DIR.into()), WorkerReply::TargetInspection(Box::new(look)));
}

fn stored_results(ids: &[&str]) -> Vec<StoredReport> {
    let one = |(i, id): (usize, &&str)| StoredReport { number: i + 1, id: (*id).into(), ..StoredReport::default() };
    ids.iter().enumerate().map(one).collect()
}

/// The view, opened, with a directory that was looked at and three results.
fn opened() -> App {
    let mut app = app(SIZE);
    app.shared.target.set_working_directory(DIR.into());
    press(&mut app, "b");
    send_target(&mut app, target_info(|_| {}));
    send_reply(
        &mut app,
        WorkerJob::BenchReports(StoreJob::List),
        WorkerReply::StoredReports(stored_results(&["30-randrw", "20-fsync", "10-randrw"])),
    );
    app
}

fn send_child_event(app: &mut App, run: u64, what: ChildEvent<BenchMessage>) -> Vec<Effect> {
    visible_effects(update(app, Event::Bench(run, Box::new(what))))
}

fn send_message(app: &mut App, message: BenchMessage) -> Vec<Effect> {
    let run = app.views.bench.run.as_ref().unwrap().number;
    send_child_event(app, run, ChildEvent::Message(message))
}

fn report(id: &str) -> BenchReport {
    BenchReport {
        schema: SCHEMA,
        id: id.into(),
        time: String::new(),
        host: "h".into(),
        kernel: "k".into(),
        version: "v".into(),
        plan: BenchPlan::default(),
        target: None,
        measurements: Vec::new(),
        warnings: Vec::new(),
        reference: None,
        conclusion: None,
        end: RunEnd::Complete,
    }
}

fn message(app: &App) -> &str {
    app.screen.message.as_ref().map_or("", |m| &m.text)
}

/// The program's words on the whole screen.
fn screen_text(app: &App) -> String {
    let buf = crate::tui::app::draw::render_to_buffer(app);
    buf.content.iter().map(|c| c.symbol()).collect()
}

#[test]
fn opening_requests_the_target_and_the_results_once() {
    let mut app = app(SIZE);
    app.shared.target.set_working_directory(DIR.into());
    let asked = visible_effects(press(&mut app, "6"));
    assert_eq!(
        asked,
        [Effect::RunJob(WorkerJob::BenchReports(StoreJob::List)), Effect::RunJob(WorkerJob::InspectTarget(DIR.into()))]
    );
    assert_eq!(visible_effects(press(&mut app, "1b")), [], "both are under way");
    send_target(&mut app, target_info(|_| {}));
    send_reply(&mut app, WorkerJob::BenchReports(StoreJob::List), WorkerReply::Failed("no home".into()));
    assert!(screen_text(&app).contains("- no home"));
    assert_eq!(visible_effects(press(&mut app, "1b")).len(), 2);
    assert_eq!(
        app.views.devices.selected(&app.shared),
        Some(DevId { major: 7, minor: 0 }),
        "the device measured is marked"
    );
}

#[test]
fn keys_change_the_bench_state_as_listed() {
    for (keys, want) in [
        ("", "Bench/BenchResults"),
        ("w", "Bench/BenchPage"),
        ("ww", "Bench/Devices"),
        ("www", "Bench/Writeback"),
        ("<right>", "Bench/BenchPage"),
        ("<right><left>", "Bench/BenchResults"),
        ("<right><esc>", "Bench/BenchResults"),
        ("<f2>", "Bench/BenchPage"),
        ("<f2><f2>", "Bench/BenchPage prompt \"/srv/lab\""),
        ("<f2><enter>", "Bench/BenchPage prompt \"/srv/lab\""),
        ("<f2><enter><esc>", "Bench/BenchPage"),
        ("<f2><down><enter>", "Bench/BenchPage prompt \"1G\""),
        ("<f2><down><enter><c-u>64X<enter>", "Bench/BenchPage prompt \"64X\" wrong"),
        ("<f2><down><enter><c-u>1k<enter>", "Bench/BenchPage prompt \"1k\" wrong"),
        ("<f2><down><enter><c-u>64M<enter>", "Bench/BenchPage"),
        ("<f2><enter><c-u><enter>", "Bench/BenchPage prompt \"\" wrong"),
        ("<enter>", "Bench/BenchResults dialog \"Run randrw\""),
        ("S", "Bench/BenchResults dialog \"Run randrw\""),
        ("<right>S", "Bench/BenchPage dialog \"Run randrw\""),
        ("<down><down><enter>", "Bench/BenchResults dialog \"Run randwrite\""),
        ("<enter>n", "Bench/BenchResults"),
        ("z<enter>", "Bench/BenchResults zoomed dialog \"Run randrw\""),
        ("<f2><end><home>", "Bench/BenchPage"),
        ("<f2>z", "Bench/BenchPage zoomed"),
        ("<f2>z<esc>", "Bench/BenchPage"),
    ] {
        let mut app = opened();
        let effects = visible_effects(press(&mut app, keys));
        assert_eq!(state_summary(&app), want, "after {keys:?}");
        assert_eq!(effects, [], "{keys:?} does nothing outside");
    }
}

#[test]
fn every_workload_starts_with_the_confirmed_plan() {
    for (at, w) in WORKLOADS.into_iter().enumerate() {
        let mut app = opened();
        let keys = "<down>".repeat(at) + "<enter>";
        assert_eq!(visible_effects(press(&mut app, &keys)), []);
        let Some(Overlay::Dialog(asked)) = &app.screen.overlay else { panic!("{}: not asked", w.name) };
        assert_eq!(asked.title, format!("Run {}", w.name));
        let where_to = asked.text.contains("nameless files of its own in /srv/lab");
        assert_eq!(where_to, w.needs_directory, "{}: {}", w.name, asked.text);
        let directory = if w.needs_directory { DIR.into() } else { Default::default() };
        let plan = Box::new(BenchPlan { directory, ..w.defaults() });
        assert_eq!(visible_effects(press(&mut app, "y")), [Effect::Bench(RunEffect::Start { run: 1, plan })]);
        assert_eq!((&app.views.bench.selected, app.screen.focus), (&RunRow::CurrentRun, 0), "the list keeps the focus");
    }
}

#[test]
fn parameters_are_edited_in_place() {
    let mut app = opened();
    let names = line_names(&app);
    let to = |name: &str| "<down>".repeat(names.iter().position(|n| *n == name).unwrap());
    press(&mut app, &format!("<f2><home>{}<enter><c-u>64M<enter>", to("size")));
    press(&mut app, &format!("<home>{}<enter>", to("direct")));
    press(&mut app, &format!("<home>{}<enter>", to("engine")));
    let first = plan(&app, 0);
    assert_eq!((first.size, first.direct, (names.len() > 15)), (64 << 20, false, true));
    assert_eq!(first.engine, crate::bench::plan::EngineChoice::Uring);
    // Polled completions need direct I/O: the plan stays as it was.
    press(&mut app, &format!("<home>{}<enter>", to("iopoll")));
    assert!(message(&app).contains("--iopoll works with direct I/O only"), "{}", message(&app));
    assert!(!plan(&app, 0).iopoll);
    press(&mut app, &format!("<home>{}<del>", to("size")));
    assert_eq!(plan(&app, 0).size, 1 << 30);
    // Each profile has its own; the directory is everybody's.
    let asked = visible_effects(press(&mut app, "<home><f2><c-u>db<enter>"));
    assert_eq!(asked, [Effect::RunJob(WorkerJob::InspectTarget("/srv/lab/db".into()))]);
    press(&mut app, "<left><down>");
    let other = plan(&app, 1);
    assert!(other.direct && other.directory.ends_with("lab/db"));
    assert_eq!(app.settings().bench.directory, "/srv/lab/db");
}

#[test]
fn the_plan_scrolls_below_the_last_parameter() {
    let mut app = opened();
    app.screen.size = (80, 24);
    press(&mut app, "<f2>");
    let last = line_names(&app).len() - 1;
    assert!(!screen_text(&app).contains("Busiest task"));
    press(&mut app, "<end>");
    assert_eq!(app.views.bench.form_line, last);
    assert!(app.views.bench.text_offset > 0 && screen_text(&app).contains("Busiest task"));
    press(&mut app, "<up>");
    assert_eq!(app.views.bench.form_line, last);
    press(&mut app, "<home>");
    assert_eq!((app.views.bench.form_line, app.views.bench.text_offset), (0, 0));
}

#[test]
fn refused_plans_open_no_confirmation() {
    let refusal = TuneError::Unsafe("/srv/lab is on proc, a pseudo file system".into());
    let cases = [
        (Some(TargetInspection { refusal: Some(refusal), info: None, directory: DIR.into() }), "pseudo file system"),
        (Some(target_info(|s| s.free = 1 << 30)), "would not leave the reserve"),
        (None, "has not answered"),
    ];
    for (found, why) in cases {
        let mut app = app(SIZE);
        app.shared.target.set_working_directory(DIR.into());
        press(&mut app, "b");
        if let Some(found) = found {
            send_target(&mut app, found);
        }
        assert!(screen_text(&app).contains("Cannot start"), "{why}");
        assert_eq!(visible_effects(press(&mut app, "<enter>")), []);
        assert!(app.screen.overlay.is_none() && message(&app).contains(why), "{}", message(&app));
        // What needs no directory runs all the same.
        press(&mut app, "<end><up><enter>");
        assert_eq!(state_summary(&app), "Bench/BenchResults dialog \"Run intrinsic\"");
    }
}

#[test]
fn a_network_mount_needs_a_second_confirmation() {
    let mut app = opened();
    send_target(&mut app, target_info(|s| s.report.is_network = true));
    assert_eq!(visible_effects(press(&mut app, "<enter>y")), []);
    assert_eq!(state_summary(&app), "Bench/BenchResults dialog \"Over the network?\"");
    let started = visible_effects(press(&mut app, "y"));
    let plan = BenchPlan { directory: DIR.into(), network: Some(DIR.into()), ..BenchPlan::default() };
    assert_eq!(started, [Effect::Bench(RunEffect::Start { run: 1, plan: Box::new(plan) })]);
    let mut app = opened();
    send_target(&mut app, target_info(|s| s.report.is_network = true));
    assert_eq!(visible_effects(press(&mut app, "<enter>yn")), []);
    assert!(app.views.bench.run.is_none());
}

/// A run under way.
fn app_with_run() -> App {
    let mut app = opened();
    press(&mut app, "<enter>y");
    send_child_event(&mut app, 1, ChildEvent::Started { pid: 4711 });
    send_message(
        &mut app,
        BenchMessage::Progress(Box::new(BenchProgress {
            measurement_index: Some(0),
            fraction_done: Some(0.42),
            ..BenchProgress::default()
        })),
    );
    app
}

#[test]
fn a_run_continues_behind_other_views() {
    let mut app = app_with_run();
    assert!(screen_text(&app).contains("bench randrw 42 %"));
    press(&mut app, "1");
    assert!(screen_text(&app).contains("bench randrw 42 %"));
    press(&mut app, "b");
    assert_eq!(app.views.bench.selected, RunRow::CurrentRun);
    press(&mut app, "<left><down>S");
    assert!(message(&app).contains("still running: C stops it"));
    press(&mut app, "1");
    send_message(&mut app, BenchMessage::Report(Box::new(report("1-randrw"))));
    assert!(message(&app).contains("b shows the result"), "{}", message(&app));
}

#[test]
fn cancel_ends_the_run_and_a_second_cancel_kills_it() {
    let mut app = app_with_run();
    assert_eq!(visible_effects(press(&mut app, "C")), [Effect::Bench(RunEffect::Cancel)]);
    assert_eq!(visible_effects(press(&mut app, "C")), [Effect::Bench(RunEffect::Kill)]);
    assert!(matches!(app.views.bench.run.as_ref().unwrap().ending, Some(RunEnding::Failed(_))));
    assert_eq!(send_message(&mut app, BenchMessage::Report(Box::new(report("1-randrw")))), [], "too late");
    assert_eq!(visible_effects(press(&mut app, "C")), []);
    assert_eq!(message(&app), "no benchmark is running");
    // The next run does not listen to the last one's child.
    press(&mut app, "<left><down>Sy");
    assert_eq!(app.views.bench.run.as_ref().unwrap().number, 2);
    send_child_event(&mut app, 1, ChildEvent::Message(BenchMessage::Failed("old".into())));
    assert!(app.views.bench.active_run().is_some());
    let quit = press(&mut app, "q");
    assert!(quit.contains(&Effect::Quit), "no run keeps anybody");
}

#[test]
fn a_result_is_shown_stored_and_listed() {
    let mut app = app_with_run();
    let r = Box::new(report("99-randrw"));
    assert_eq!(
        send_message(&mut app, BenchMessage::Report(r.clone())),
        [Effect::RunJob(WorkerJob::BenchReports(StoreJob::Save(r.clone())))]
    );
    assert!(screen_text(&app).contains("saving"));
    let list = send_reply(
        &mut app,
        WorkerJob::BenchReports(StoreJob::Save(r.clone())),
        WorkerReply::Saved("99-randrw".into()),
    );
    assert_eq!(list, [Effect::RunJob(WorkerJob::BenchReports(StoreJob::List))]);
    assert!(screen_text(&app).contains("saved as 99-randrw"));
    send_reply(
        &mut app,
        WorkerJob::BenchReports(StoreJob::List),
        WorkerReply::StoredReports(stored_results(&["99-randrw", "30-randrw"])),
    );
    assert!(app.views.bench.rows().contains(&RunRow::Stored("99-randrw".into())));
    let mut app = app_with_run();
    send_message(&mut app, BenchMessage::Report(r.clone()));
    send_reply(&mut app, WorkerJob::BenchReports(StoreJob::Save(r)), WorkerReply::Failed("no space left".into()));
    assert!(screen_text(&app).contains("not saved: no space left"), "on the page as long as it is there");
    for (last, has) in [
        (BenchMessage::Failed("io_uring went away".into()), "failed: io_uring went away"),
        (BenchMessage::Refused(TuneError::Unsafe("no room".into())), "refused: no room"),
    ] {
        let mut app = app_with_run();
        assert_eq!(send_message(&mut app, last), []);
        assert!(screen_text(&app).contains(has), "{has}");
    }
}

#[test]
fn stored_results_are_shown_and_compared() {
    let results = |ids: &[&str]| WorkerJob::BenchReports(StoreJob::Load(ids.iter().map(|i| (*i).into()).collect()));
    let mut app = opened();
    let read = visible_effects(press(&mut app, "<end><enter>"));
    assert_eq!(read, [Effect::RunJob(results(&["10-randrw"]))]);
    assert!(screen_text(&app).contains("reading 10-randrw"));
    send_reply(&mut app, results(&["10-randrw"]), WorkerReply::LoadedResults(vec![report("10-randrw")]));
    assert!(matches!(app.views.bench.opened, Some(OpenedResult::Result(_))));
    press(&mut app, "<esc>");
    assert_eq!((state_summary(&app), app.views.bench.opened.is_none()), ("Bench/BenchResults".into(), true));
    // An answer nobody waits for any more.
    send_reply(&mut app, results(&["10-randrw"]), WorkerReply::LoadedResults(vec![report("10-randrw")]));
    assert!(app.views.bench.opened.is_none());
    // Without a mark the newest of the same profile.
    let both = visible_effects(press(&mut app, "c"));
    assert_eq!(both, [Effect::RunJob(results(&["30-randrw", "10-randrw"]))]);
    press(&mut app, "<esc>");
    let both = visible_effects(press(&mut app, "m<up><up>c"));
    assert_eq!(both, [Effect::RunJob(results(&["10-randrw", "30-randrw"]))]);
    let pair = vec![report("10-randrw"), report("30-randrw")];
    send_reply(&mut app, results(&["10-randrw", "30-randrw"]), WorkerReply::LoadedResults(pair));
    assert!(screen_text(&app).contains("A: 10-randrw") && screen_text(&app).contains("B: 30-randrw"));
    press(&mut app, "<esc><down>c");
    let mut other = report("20-fsync");
    other.plan.profile = "fsync".into();
    let job = results(&["10-randrw", "20-fsync"]);
    send_reply(&mut app, job.clone(), WorkerReply::LoadedResults(vec![report("10-randrw"), other]));
    assert!(screen_text(&app).contains("measure different things"));
    press(&mut app, "<esc>c");
    send_reply(&mut app, job, WorkerReply::Failed("result 20-fsync is damaged".into()));
    assert!(screen_text(&app).contains("20-fsync is damaged"));
    assert_eq!(visible_effects(press(&mut app, "<esc><home>m")), []);
    assert!(message(&app).contains("m marks a kept result"));
}

#[test]
fn clicks_select_bench_rows_and_parameters() {
    let mut app = opened();
    click(&mut app, 5, 5);
    assert_eq!(app.views.bench.selected, RunRow::Form(2));
    click(&mut app, 5, 2);
    assert_eq!(app.views.bench.selected, RunRow::Form(2), "a heading is no row");
    click(&mut app, 40, 4);
    assert_eq!((state_summary(&app), app.views.bench.form_line), ("Bench/BenchPage".into(), 2));
}

#[test]
fn every_bench_page_can_be_copied() {
    let copied = |app: &mut App| match &visible_effects(press(app, "y"))[..] {
        [Effect::CopyToClipboard(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let mut app = opened();
    assert!(copied(&mut app).contains("| 30-randrw |"));
    press(&mut app, "<f2>");
    let plan = copied(&mut app);
    assert!(plan.contains("| size | 1G |") && plan.contains("nameless files"), "{plan}");
    let mut app = app_with_run();
    press(&mut app, "<enter>");
    assert!(copied(&mut app).contains("42 %"));
    send_message(&mut app, BenchMessage::Report(Box::new(report("9-randrw"))));
    assert!(copied(&mut app).contains("complete"));
}

fn progress(part: Option<u32>, done: f64, idle_ms: u64) -> BenchMessage {
    BenchMessage::Progress(Box::new(BenchProgress {
        measurement_index: part,
        fraction_done: Some(done),
        idle_ms,
        ..BenchProgress::default()
    }))
}

#[test]
fn status_text_tells_progress_and_blocking() {
    let mut run = Run::new(1, BenchPlan::default(), 0);
    let mut status_after = |message| {
        BenchForm::receive(&mut run, message);
        BenchForm::status_text(&run)
    };
    assert_eq!(status_after(BenchMessage::Note("x".into())), "bench randrw starting");
    assert_eq!(status_after(progress(None, 0.5, 0)), "bench randrw preparing 50 %");
    assert_eq!(status_after(progress(Some(0), 0.42, 1500)), "bench randrw 42 %");
    assert_eq!(status_after(progress(Some(0), 0.42, 7100)), "bench randrw BLOCKED 7 s");
    run.is_stopping = true;
    assert_eq!(BenchForm::status_text(&run), "bench randrw stopping");
}

#[test]
fn blocked_text_distinguishes_device_and_child() {
    let mut run = Run::<BenchForm>::new(1, BenchPlan::default(), 5_000_000_000);
    run.pid = Some(77);
    BenchForm::receive(&mut run, progress(Some(0), 0.1, 200));
    assert_eq!(BenchForm::blocked_text(&run, 6_000_000_000), None);
    run.last_message_ns = 8_000_000_000;
    BenchForm::receive(&mut run, progress(Some(0), 0.1, 3000));
    let blocked = |now| BenchForm::blocked_text(&run, now).unwrap();
    assert!(blocked(8_000_000_000).contains("no request completed for 3 s (process 77)"));
    assert!(blocked(18_000_000_000).contains("for 10 s"));
}

#[test]
fn panes_fill_every_size_without_overlap() {
    for (w, h) in [(40, 10), (60, 40), (69, 22), (70, 22), (80, 22), (109, 38), (120, 38), (200, 48), (300, 90)] {
        for focus in 0..4 {
            let body = Rect::new(0, 1, w, h);
            let panes = BenchForm::arrange_panes(body, focus);
            let sum: u32 = panes.iter().map(|(_, r)| r.area()).sum();
            assert_eq!(sum, body.area(), "{w}x{h}: {panes:?}");
            assert!(panes.iter().all(|(_, r)| r.area() == 0 || r.intersection(body) == *r));
            assert!(panes[..2].iter().all(|(_, r)| r.height >= 3 && r.width >= 26), "{w}x{h}: {panes:?}");
            // Panes that are left out come last, so that indices stay valid.
            let folded = panes.iter().position(|(_, r)| r.area() == 0).unwrap_or(4);
            assert!(panes[folded..].iter().all(|(_, r)| r.area() == 0));
        }
    }
}

#[test]
fn stored_result_is_summarised_in_one_line() {
    let stored = StoredReport {
        id: "1795276156-randrw".into(),
        profile: "randrw".into(),
        brief: " 123k part".into(),
        ..StoredReport::default()
    };
    assert_eq!(stored_text(&stored, true, 3600), "*11-21 16:49 randrw 123k part");
    let damaged = StoredReport { is_damaged: true, ..stored };
    assert_eq!(stored_text(&damaged, false, 0), " 1795276156-randrw unreadable");
}
