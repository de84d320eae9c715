//! (state, key) -> (state, effects), as a table.
mod bytes_at_rest;
mod column_choice;
mod figures;
mod files;
mod findings;
#[path = "../../../../tests/fixture/mod.rs"]
pub mod fixture;
mod footer;
mod frozen;
mod groups;
mod hints;
mod mouse;
mod random_input;
mod replay;
mod screenshot;
mod selection;
mod syncs;
mod tune;

use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::Observation;
use crate::model::process::{IoPrio, TaskKey};
use crate::tui::app::{App, layout, update};
use crate::tui::keymap::BINDINGS;
use crate::tui::view::{Effect, Event, Overlay, PaneId};
use crossterm::event::{KeyEvent, KeyEventKind, KeyModifiers};
use fixture::{app, empty, press};
pub use mouse::click;
use ratatui::buffer::Buffer;
use std::collections::HashSet;
use std::time::Duration;

pub const SIZE: (u16, u16) = (120, 40);

/// What is on screen, in one line, for the tables below.
pub fn state_summary(app: &App) -> String {
    let u = &app.screen;
    let mut out = format!("{:?}/{:?}", u.view, app.focused_pane());
    if u.zoomed {
        out += " zoomed";
    }
    match &u.overlay {
        Some(Overlay::Help(help)) => out += &format!(" help@{}{}", help.scroll, help.search.text),
        Some(Overlay::Prompt(p)) => {
            out += &format!(" prompt {:?}", p.text);
            out += p.error.as_ref().map_or("", |_| " wrong");
        }
        Some(Overlay::Dialog(d)) => out += &format!(" dialog {:?}", d.title),
        None => {}
    }
    let views = &app.views;
    match u.detail {
        Some(PaneId::DeviceDetail) => {
            let id = views.devices.page.unwrap();
            out += &format!(" device {}:{}", id.major, id.minor)
        }
        Some(PaneId::ProcessDetail) => out += &format!(" task {}", views.processes.page.as_ref().unwrap().key.tid),
        Some(PaneId::KernelLogDetail) => out += &format!(" entry {}", views.kernel_log.page),
        Some(page) => out += &format!(" {page:?} {}", views.path.path),
        None => {}
    }
    if app.shared.frozen_seq.is_some() {
        out += " frozen";
    }
    out
}

/// Effects but the collector's wishes, which follow every move of the list and the view that is open.
pub fn visible_effects(effects: Vec<Effect>) -> Vec<Effect> {
    effects
        .into_iter()
        .filter(|e| {
            !matches!(
                e,
                Effect::WatchTasks(_)
                    | Effect::ListSlowSyncs(_)
                    | Effect::TraceFiles(_)
                    | Effect::TraceWaits(_)
                    | Effect::ReadGroups(_)
                    | Effect::RunJob(WorkerJob::WrittenFiles { .. })
            )
        })
        .collect()
}

const STATE_AFTER_KEYS: &[(&str, &str)] = &[
    ("", "Overview/Processes"),
    ("2", "Devices/Devices"),
    ("3", "Processes/Processes"),
    ("4", "Memory/Memory"),
    ("5", "Kernel/KernelLog"),
    ("51", "Overview/Processes"),
    ("<tab><tab>", "Processes/Processes"),
    ("0<tab>", "Overview/Processes"),
    ("w", "Overview/Devices"),
    ("<s-tab>ww", "Overview/KernelLog"),
    ("wwww", "Overview/FindingsSummary"),
    ("wwwww", "Overview/Processes"),
    ("z", "Overview/Processes zoomed"),
    ("wz", "Overview/Devices zoomed"),
    ("wzw", "Overview/Devices zoomed"),
    ("zz", "Overview/Processes"),
    ("z<esc>", "Overview/Processes"),
    ("z2", "Devices/Devices"),
    ("?", "Overview/Processes help@0"),
    ("h", "Overview/Processes help@0"),
    ("<f1>", "Overview/Processes help@0"),
    ("?<down><down>", "Overview/Processes help@2"),
    ("?<down><home>", "Overview/Processes help@0"),
    ("?<esc>", "Overview/Processes"),
    ("??", "Overview/Processes"),
    ("?q", "Overview/Processes"),
    ("?/sort", "Overview/Processes help@0sort"),
    ("?/sort<esc>", "Overview/Processes help@0"),
    ("2<enter>", "Devices/DeviceDetail device 254:0"),
    ("2<down><enter>", "Devices/DeviceDetail device 7:0"),
    ("2<enter><esc>", "Devices/Devices"),
    ("2<enter><bs>", "Devices/Devices"),
    ("2<enter>3", "Processes/Processes"),
    ("5<home><enter>", "Kernel/KernelLogDetail entry 0"),
    ("4<enter>", "Memory/Memory"),
    (" ", "Overview/Processes frozen"),
    ("  ", "Overview/Processes"),
    (" <esc>", "Overview/Processes"),
    (" <end>", "Overview/Processes"),
    (",", "Overview/Processes frozen"),
    ("/", "Overview/Processes prompt \"\""),
    ("/abc<bs>", "Overview/Processes prompt \"ab\" wrong"),
    (":abc<left><left><del>x", "Overview/Processes prompt \"axc\""),
    (":abc<home>x<end>y", "Overview/Processes prompt \"xabcy\""),
    (":one two<c-w>", "Overview/Processes prompt \"one \""),
    (":one two<c-u>", "Overview/Processes prompt \"\""),
    (":写<left>a<right>b", "Overview/Processes prompt \"a写b\""),
    ("/a<esc>", "Overview/Processes"),
    ("/a<c-c>", "Overview/Processes"),
    ("/q", "Overview/Processes prompt \"q\""),
    ("d", "Overview/Processes prompt \"\""),
    ("d<enter>", "Overview/Processes"),
    ("d0<enter>", "Overview/Processes prompt \"0\" wrong"),
    ("dabc<enter>", "Overview/Processes prompt \"abc\" wrong"),
    ("d1e9<enter>", "Overview/Processes prompt \"1e9\" wrong"),
    ("dnan<enter>", "Overview/Processes prompt \"nan\" wrong"),
    ("d0<enter>x", "Overview/Processes prompt \"0x\""),
    (":bogus<enter>", "Overview/Processes prompt \"bogus\" wrong"),
    (":path<enter>", "Overview/Processes prompt \"path\" wrong"),
    (":theme pink<enter>", "Overview/Processes prompt \"theme pink\" wrong"),
    (":<enter>", "Overview/Processes"),
    ("5I(<enter>", "Kernel/KernelLog prompt \"(\" wrong"),
    ("3ibogus<enter>", "Processes/Processes prompt \"bogus\" wrong"),
    ("3irt/8<enter>", "Processes/Processes prompt \"rt/8\" wrong"),
    ("3iidle<enter>", "Processes/Processes dialog \"Set I/O priority\""),
    ("3iidle<enter>n", "Processes/Processes"),
    ("3iidle<enter><esc>", "Processes/Processes"),
    ("3iidle<enter>q", "Processes/Processes"),
    ("3iidle<enter>5", "Processes/Processes dialog \"Set I/O priority\""),
];

#[test]
fn keys_change_the_state_as_listed() {
    for (keys, want) in STATE_AFTER_KEYS {
        let mut app = app(SIZE);
        let effects = visible_effects(press(&mut app, keys));
        assert_eq!(state_summary(&app), *want, "after {keys:?}");
        assert_eq!(effects, [], "{keys:?} does nothing outside");
    }
}

#[test]
fn keys_produce_the_effects_listed() {
    let first = TaskKey { pid: 6393, tid: 6393, starttime: 0 };
    let started = |app: &App| app.shared.system.processes.find_by_pid(first.pid).unwrap().key().starttime;
    let key = TaskKey { starttime: started(&app(SIZE)), ..first };
    let facts = |key: TaskKey| Effect::RunJob(WorkerJob::TaskDetails { pid: key.pid, starttime: key.starttime });
    for (keys, want) in [
        ("q", vec![Effect::Quit]),
        ("<c-c>", vec![Effect::Quit]),
        (":q<enter>", vec![Effect::Quit]),
        ("2<enter>q", vec![Effect::Quit]),
        ("<c-z>", vec![Effect::Suspend]),
        ("<c-l>", vec![Effect::Redraw]),
        ("W", vec![Effect::SaveSettings(Box::new(app(SIZE).settings()))]),
        ("+", vec![Effect::SetInterval(Duration::from_millis(1500))]),
        ("-", vec![Effect::SetInterval(Duration::from_millis(500))]),
        ("--", vec![Effect::SetInterval(Duration::from_millis(500)), Effect::SetInterval(Duration::from_millis(100))]),
        ("d2.5<enter>", vec![Effect::SetInterval(Duration::from_millis(2500))]),
        (":interval 7<enter>", vec![Effect::SetInterval(Duration::from_secs(7))]),
        ("3p", vec![Effect::ScanThreads(true)]),
        ("3pp", vec![Effect::ScanThreads(true), Effect::ScanThreads(false)]),
        ("3<enter>", vec![facts(key)]),
        ("3<enter>v", vec![facts(key), Effect::RunJob(WorkerJob::Mappings { pid: key.pid, starttime: key.starttime })]),
        (":path /srv/a b<enter>", vec![Effect::RunJob(WorkerJob::ResolvePath("/srv/a b".into()))]),
        ("3iidle<enter>y", vec![Effect::SetIoPrio { key, prio: IoPrio { class: 3, level: 0 } }]),
        ("3ibe/7<enter><enter>", vec![Effect::SetIoPrio { key, prio: IoPrio { class: 2, level: 7 } }]),
        ("3irt/0<enter>n", vec![]),
    ] {
        let mut app = app(SIZE);
        assert_eq!(visible_effects(press(&mut app, keys)), want, "{keys:?}");
    }
}

#[test]
fn keys_change_sorting_filtering_and_settings() {
    type Selector = fn(&App) -> String;
    let sorted: Selector = |a| a.views.processes.sort_column.spec().value.name.into();
    let tasks: Selector = |a| a.views.processes.window.matching.to_string();
    let lines: Selector = |a| a.views.devices.device_lines(&a.shared).len().to_string();
    let selected: Selector =
        |a| a.views.processes.selected_task(&a.shared).map_or("-".into(), |r| r.comm().to_string());
    for (keys, look, want) in [
        ("3", sorted, "stalled"),
        ("3<right>", sorted, "pid"),
        ("3<f6>swap<enter>", sorted, "swap"),
        ("3<f6>swapin<enter>", sorted, "swapin"),
        ("3<right><f6><up><enter>", sorted, "io"),
        ("3<f6><enter>", sorted, "stalled"),
        ("3:threads<enter>", tasks, "25"),
        ("3:only tasks<enter>", tasks, "25"),
        ("3<left>", sorted, "command"),
        ("3<right><left>", sorted, "stalled"),
        ("3", tasks, "25"),
        ("3o", tasks, "6"),
        ("3oo", tasks, "25"),
        ("3ua-nobody<enter>", tasks, "0"),
        ("3uledger<enter>", tasks, "2"),
        ("3uledger<enter>u<c-u><enter>", tasks, "25"),
        ("3\\ledg<enter>", tasks, "2"),
        ("3\\ledg<enter><esc>", tasks, "25"),
        ("3/backup<enter>", selected, "backup-agent"),
        ("3/ledgerd<enter>n", selected, "ledgerd"),
        ("3<down>", selected, "ledgerd"),
        ("3<down><up>", selected, "backup-agent"),
        ("3jk", selected, "backup-agent"),
        ("3<end><home>", selected, "backup-agent"),
        ("3<pgdn><pgup>", selected, "backup-agent"),
        ("3a", |a| a.views.processes.show_totals.to_string(), "true"),
        ("3r", |a| a.views.processes.reverse.to_string(), "true"),
        ("2r", |a| (a.views.devices.columns.reverse, a.views.processes.reverse).0.to_string(), "true"),
        ("2", lines, "7"),
        ("2o", lines, "2"),
        ("2\\zram<enter>", lines, "1"),
        ("2x", |a| a.views.devices.extended.to_string(), "true"),
        ("2g", |a| a.views.devices.graph_index.to_string(), "1"),
        ("2<right>", |a| format!("{:?}", a.views.devices.columns.sorted), "Some(0)"),
        ("2<right><left>", |a| format!("{:?}", a.views.devices.columns.sorted), "None"),
        ("5f", |a| a.views.kernel_log.is_unfolded.to_string(), "true"),
        ("5Iloop0<enter>", |a| a.views.kernel_log.include.clone().unwrap_or_default(), "loop0"),
        ("5X<c-u>EXT4<enter>", |a| a.views.kernel_log.exclude.clone().unwrap_or_default(), "EXT4"),
        (":exclude x|y<enter>", |a| a.views.kernel_log.exclude.clone().unwrap_or_default(), "x|y"),
        ("T", |a| a.shared.themes.name().into(), "light"),
        ("TTTTTT", |a| a.shared.themes.name().into(), "dark"),
        (":theme mono<enter>", |a| a.shared.themes.name().into(), "mono"),
        ("D", |a| a.screen.message.as_ref().map_or(String::new(), |m| m.text.clone()), "sums count from now"),
        ("n", |a| a.screen.message.as_ref().map_or(String::new(), |m| m.is_error.to_string()), "true"),
    ] {
        let mut app = app(SIZE);
        press(&mut app, keys);
        assert_eq!(look(&app), want, "after {keys:?}");
    }
}

#[test]
fn every_bound_action_is_handled_in_every_state() {
    // A key is bound in several contexts; the start decides which of them counts.
    let keys: HashSet<_> = BINDINGS.iter().map(|binding| (binding.code, binding.ctrl)).collect();
    let starts = ["2", "3", "4", "5", "7E", "7Ee", "2<enter>", "3<enter>", "5<enter>", "?", "/", "3iidle<enter>", " "];
    let sizes = [("", SIZE), ("", (30, 8))].into_iter().chain(starts.map(|start| (start, (80, 24))));
    for (start, size) in sizes {
        for (code, ctrl) in &keys {
            let mut app = app(size);
            press(&mut app, start);
            let modifiers = if *ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            update(&mut app, Event::Key(KeyEvent::new(*code, modifiers)));
            draw_screen(&app);
        }
    }
}

#[test]
fn key_release_is_ignored() {
    let mut app = app(SIZE);
    let mut key = KeyEvent::new(crossterm::event::KeyCode::Char('q'), KeyModifiers::NONE);
    key.kind = KeyEventKind::Release;
    assert_eq!(update(&mut app, Event::Key(key)), []);
}

#[test]
fn help_scrolls_by_pages_and_stops_at_its_end() {
    let mut app = app((80, 24));
    press(&mut app, "?<pgdn>");
    assert_eq!(state_summary(&app), "Overview/Processes help@20");
    for _ in 0..20 {
        press(&mut app, "<pgdn>");
    }
    let end = state_summary(&app);
    press(&mut app, "<up>");
    assert_ne!(state_summary(&app), end, "one key up is seen at once");
}

#[test]
fn a_page_is_the_height_of_the_focused_pane() {
    let mut app = app((80, 24));
    press(&mut app, "3<pgdn>");
    assert_eq!(app.views.processes.scroll.selected, 19);
    press(&mut app, "5<home><pgdn>");
    assert_eq!(app.views.kernel_log.scroll.selected, 19.min(app.views.kernel_log.visible_entries.len() - 1));
}

#[test]
fn history_can_be_stepped_through_and_left() {
    let mut app = app(SIZE);
    let newest = app.shared.snapshot().seq;
    press(&mut app, ",,");
    assert_eq!(app.shared.snapshot().seq, newest - 2);
    press(&mut app, ".");
    assert_eq!(app.shared.snapshot().seq, newest - 1);
    press(&mut app, "....");
    assert_eq!(app.shared.snapshot().seq, newest, "not beyond the newest");
    for _ in 0..200 {
        press(&mut app, ",");
    }
    assert_eq!(app.shared.snapshot().seq, 1, "not before the oldest");
    // Sampling goes on behind a held picture.
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    update(&mut app, Event::Observed(Observation::Sample(Box::new(sample))));
    assert_eq!((app.shared.snapshot().seq, app.shared.system.snapshot.seq), (1, newest + 1));
    press(&mut app, "<end>");
    assert_eq!((app.shared.snapshot().seq, app.shared.frozen_seq), (newest + 1, None));
    let mut fresh = empty(SIZE);
    press(&mut fresh, " ,.");
    assert_eq!(fresh.shared.frozen_seq, None, "nothing to hold yet");
}

#[test]
fn yank_copies_the_pane_sanitized() {
    for (keys, has) in [
        ("3y", "写日志"),
        ("2y", "vda"),
        ("4y", "dirty"),
        ("5y", "hung task"),
        ("2<enter>y", "scheduler"),
        ("5<enter>y", "class"),
    ] {
        let mut app = app(SIZE);
        let effects = visible_effects(press(&mut app, keys));
        let [.., Effect::CopyToClipboard(text)] = &effects[..] else { panic!("{keys:?}: {effects:?}") };
        assert!(text.contains(has), "{keys:?}: {text}");
        assert!(text.chars().all(|c| c == '\n' || crate::sanitize::is_safe(c)), "{keys:?}");
    }
}

#[test]
fn a_window_too_small_recovers_when_enlarged() {
    let mut app = app(SIZE);
    press(&mut app, "3<down>");
    let before = draw_screen(&app);
    assert_eq!(visible_effects(update(&mut app, Event::Resize(20, 5))), [Effect::Redraw]);
    assert!(layout::is_too_small(app.screen.size));
    let said: String = draw_screen(&app).content.iter().map(|c| c.symbol()).collect();
    assert!(said.starts_with("iotop-plus needs"), "{said}");
    click(&mut app, 3, 3);
    assert_eq!(visible_effects(press(&mut app, "")), []);
    update(&mut app, Event::Resize(SIZE.0, SIZE.1));
    assert_eq!(draw_screen(&app), before);
    update(&mut app, Event::Resize(1, 1));
    draw_screen(&app);
    assert_eq!(visible_effects(press(&mut app, "q")), [Effect::Quit]);
}

#[test]
fn replies_reach_only_the_page_that_asked() {
    let mut app = app(SIZE);
    press(&mut app, ":path /a<enter>:path /b<enter>");
    let failed = || WorkerReply::Failed("gone".into());
    update(&mut app, Event::JobReply(WorkerJob::ResolvePath("/a".into()), failed()));
    assert_eq!((app.views.path.path.as_str(), &app.views.path.reply), ("/b", &None));
    update(&mut app, Event::JobReply(WorkerJob::ResolvePath("/b".into()), failed()));
    assert!(app.views.path.reply.is_some());
}

#[test]
fn the_result_of_a_priority_change_is_reported() {
    let mut app = app(SIZE);
    let key = app.views.processes.selected_task(&app.shared).map(|r| r.key());
    press(&mut app, "3");
    let key = key.or(app.views.processes.selected_task(&app.shared).map(|r| r.key())).unwrap();
    update(&mut app, Event::IoPrioSet(key, Ok(IoPrio { class: 3, level: 0 })));
    assert!(app.screen.message.as_ref().unwrap().text.contains("idle (read back)"));
    update(&mut app, Event::IoPrioSet(key, Err("no \x1b[2J".into())));
    let message = app.screen.message.as_ref().unwrap();
    assert!(message.is_error && message.text == "no \\x1b[2J", "{}", message.text);
}

#[test]
fn settings_round_trip() {
    let mut app = app(SIZE);
    press(&mut app, "3oap<right>rd2<enter>t<f2><down><enter><right><esc>2<f2><down><enter><esc>xoT5Iloop<enter>");
    let text = app.settings().to_toml();
    let read = crate::tui::settings::Settings::parse(&text).unwrap();
    let mut fresh = empty(SIZE);
    fresh.apply_settings(&read);
    assert_eq!(fresh.settings(), app.settings());
    assert_eq!(app.shared.themes.name(), "light");
}

/// Where a text stands on the screen.
pub fn find_text(app: &App, text: &str) -> (u16, u16) {
    let buf = draw_screen(app);
    for y in 0..buf.area.height {
        let line: String = (0..buf.area.width).map(|x| buf[(x, y)].symbol().chars().next().unwrap()).collect();
        if let Some(at) = line.find(text) {
            return (line[..at].chars().count() as u16, y);
        }
    }
    panic!("{text:?} is not on the screen");
}

pub fn draw_screen(app: &App) -> Buffer {
    crate::tui::app::draw::render_to_buffer(app)
}

#[test]
fn the_selected_kernel_log_entry_stays_selected_while_a_newer_one_arrives() {
    let mut app = app(SIZE);
    press(&mut app, "5<down><down><enter>");
    let entry_at = |app: &App, row: usize| app.views.kernel_log.visible_entries(&app.shared).nth(row).map(|e| e.seq);
    let before = entry_at(&app, 2);
    let newest = app.shared.system.kernel_log.entries().filter_map(|e| e.seq).max().unwrap();
    let record = crate::model::kernel_log::KmsgRecord {
        seq: newest + 100_000,
        boot_us: app.shared.system.kernel_log.entries().map(|e| e.boot_us).max().unwrap() + 900_000_000,
        level: 3,
        message: b"a new line".to_vec(),
        ..Default::default()
    };
    let clock = app.shared.log_clock;
    update(&mut app, Event::Observed(Observation::KernelLog(vec![record], clock)));
    let log = &app.views.kernel_log;
    assert_eq!((log.scroll.selected, log.page), (3, 3), "an entry came above it");
    assert_eq!(entry_at(&app, 3), before);
    press(&mut app, "<esc><home>");
    assert_eq!(app.views.kernel_log.scroll.selected, 0);
}

#[test]
fn hidden_tasks_are_not_called_idle() {
    // Folded, and with no task left to show.
    for (keys, idle, or_hidden) in [
        ("", "idle (o shows all)", "idle or hidden (o shows all)"),
        ("3o\\no such task<enter>", "no task does any I/O", "no task is seen to do I/O"),
    ] {
        let mut app = app(SIZE);
        press(&mut app, keys);
        let shown = |app: &App| crate::export::screenshot::to_text(&draw_screen(app));
        assert!(shown(&app).contains(idle) && !shown(&app).contains(or_hidden), "{}", shown(&app));
        app.shared.system.processes.hidden_count = 3;
        assert!(shown(&app).contains(or_hidden), "{}", shown(&app));
    }
}

#[test]
fn hidden_tasks_are_not_said_to_write_nothing() {
    let mut app = app((160, 45));
    press(&mut app, "4");
    let shown = |app: &App| crate::export::screenshot::to_text(&draw_screen(app));
    assert!(shown(&app).contains("Writing") && !shown(&app).contains("- 3 hidden"), "{}", shown(&app));
    app.shared.system.processes.hidden_count = 3;
    assert!(shown(&app).contains("- 3 hidden"), "{}", shown(&app));
}

#[test]
fn a_detail_page_scrolls_to_its_end_and_back() {
    for (size, keys) in [((80, 14), "2<enter>"), ((200, 14), "2<enter>"), ((80, 14), "3<enter>")] {
        let mut app = app(size);
        press(&mut app, keys);
        let top = draw_screen(&app);
        press(&mut app, "<pgdn><pgdn><pgdn><pgdn><pgdn><pgdn><down><down>");
        let end = draw_screen(&app);
        assert_ne!(top, end, "{keys} scrolls");
        press(&mut app, "<up>");
        assert_ne!(draw_screen(&app), end, "{keys}: one key up is seen at once");
        press(&mut app, "<home>");
        assert_eq!(draw_screen(&app), top);
    }
}
