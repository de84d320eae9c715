//! Columns and figures: each is explained, and each list is sorted as its header says.

use super::fixture::{app, files, press, syncs};
use super::{SIZE, draw_screen, find_text};
use crate::export::memory::memory_facts;
use crate::model::column::Align;
use crate::model::columns::figures::MEMORY_FIGURES;
use crate::model::columns::{device, process};
use crate::model::control_groups::columns::CONTROL_GROUP_COLUMNS;
use crate::model::file_io::columns::FILE_COLUMNS;
use crate::model::syncs::columns::SYNC_COLUMNS;
use crate::tui::app::{App, update};
use crate::tui::view::{Action, Event, Overlay, PaneId, ViewId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// Every tab and page: its keys, and the panes in it.
const PLACES: [&str; 15] =
    ["1", "2", "3", "3Z", "4", "5", "6", "7", "8", "9", "0", "2<enter>", "3<enter>", "5<enter>", "3p"];

/// A screen whose list has rows, after its keys.
pub(super) fn open(keys: &str, size: (u16, u16)) -> App {
    let mut app = match keys.as_bytes() {
        [b'9', ..] => syncs::waiting(size),
        [b'0', ..] => files::traced(size),
        _ => app(size),
    };
    press(&mut app, keys);
    app
}

fn shown(app: &App) -> String {
    crate::export::screenshot::to_text(&draw_screen(app))
}

#[test]
fn e_explains_the_figures_of_every_pane_that_has_some() {
    let e = KeyEvent::new(KeyCode::Char('e'), KeyModifiers::NONE);
    let mut explained = Vec::new();
    for place in PLACES {
        let mut app = app((200, 50));
        press(&mut app, place);
        for _ in 0..app.arrange().0.panes.len() {
            let pane = app.focused_pane();
            let columns = app.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap();
            if app.shared.keymap.lookup_action(&app.key_contexts(), &e) == Some(Action::Explain) {
                assert!(!columns.is_empty(), "{pane:?}");
                let source = |column: &&crate::tui::view::ColumnInfo| column.source.read_from.len() < 5;
                assert!(columns.iter().find(source).is_none(), "{pane:?}");
                assert!(columns.iter().all(|column| column.help.len() > 2), "{pane:?}");
                press(&mut app, "e");
                assert!(shown(&app).contains("Read from "), "{}", shown(&app));
                press(&mut app, "<esc>");
                explained.push(pane);
            }
            press(&mut app, "w");
        }
    }
    for pane in [
        PaneId::Devices,
        PaneId::DeviceGraphs,
        PaneId::DeviceDetail,
        PaneId::Processes,
        PaneId::ProcessDetail,
        PaneId::Memory,
        PaneId::Writeback,
        PaneId::KernelLog,
        PaneId::Syncs,
        PaneId::SlowSyncs,
        PaneId::Files,
        PaneId::Directories,
        PaneId::ControlGroups,
    ] {
        assert!(explained.contains(&pane), "{pane:?} explains nothing");
    }
}

#[test]
fn every_figure_of_memory_is_explained() {
    let app = app(SIZE);
    let groups = memory_facts(app.shared.snapshot(), app.shared.system.now().boot_ns);
    let names: Vec<&str> = groups.iter().flat_map(|(_, facts)| facts).map(|fact| fact.0.as_str()).collect();
    for name in names.iter().filter(|name| !name.starts_with(['-', '/'])) {
        assert!(MEMORY_FIGURES.iter().any(|figure| figure.header == *name), "{name} is not explained");
    }
    assert!(MEMORY_FIGURES.iter().all(|figure| names.contains(&figure.header)));
}

/// A number without a unit is a guess.
#[test]
fn every_number_has_its_unit_in_its_explanation() {
    let mut numbers: Vec<(&str, &str)> = Vec::new();
    numbers.extend(device::COLUMNS.iter().filter(|c| c.align == Align::Right).map(|c| (c.header, c.help)));
    numbers.extend(process::COLUMNS.iter().filter(|c| c.align == Align::Right).map(|c| (c.header, c.help)));
    numbers.extend(SYNC_COLUMNS.iter().filter(|c| c.align == Align::Right).map(|c| (c.header, c.help)));
    numbers.extend(FILE_COLUMNS.iter().filter(|c| c.align == Align::Right).map(|c| (c.header, c.help)));
    numbers.extend(CONTROL_GROUP_COLUMNS.iter().filter(|c| c.align == Align::Right).map(|c| (c.header, c.help)));
    numbers.extend(MEMORY_FIGURES.iter().map(|c| (c.header, c.help)));
    let units = ["per second", "percent", "millisecond", "bytes", "KiB", "number", " id", "id ", "time since"];
    for (header, help) in numbers {
        assert!(units.iter().any(|unit| help.contains(unit)), "{header}: {help}");
    }
}

#[test]
fn the_right_button_explains_what_is_below_it() {
    for (keys, head) in [("3", "WRITE/s"), ("2", "%util"), ("9", "wait%"), ("0", "p99 ms")] {
        let mut app = open(keys, SIZE);
        let (column, row) = find_text(&app, head);
        let kind = MouseEventKind::Down(MouseButton::Right);
        let event = MouseEvent { kind, column: column + 1, row, modifiers: KeyModifiers::NONE };
        update(&mut app, Event::Mouse(event));
        let Some(Overlay::Prompt(prompt)) = &app.screen.overlay else { panic!("{keys}: nothing is explained") };
        let pane = app.focused_pane();
        let columns = app.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap();
        assert_eq!(prompt.choice.map(|at| columns[at].header), Some(head));
    }
}

#[test]
fn the_arrows_choose_the_column_that_is_explained_and_mark_its_heading() {
    for (keys, head, next) in [("2", "tps", "MB_read/s"), ("3", "READ/s", "WRITE/s"), ("1", "READ/s", "WRITE/s")] {
        for size in [SIZE, (80, 24)] {
            let mut app = open(keys, size);
            press(&mut app, "e");
            // To the left end, then to the column and one on.
            press(&mut app, &"<left>".repeat(40));
            let chosen = |app: &App| {
                let Some(Overlay::Prompt(prompt)) = &app.screen.overlay else { panic!("{keys}: nothing is explained") };
                let pane = app.focused_pane();
                let columns = app.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap();
                columns[prompt.choice.unwrap()].header
            };
            let mut steps = 0;
            while chosen(&app) != head {
                press(&mut app, "<right>");
                steps += 1;
                assert!(steps < 40, "{keys}: {head} is never chosen");
            }
            press(&mut app, "<right>");
            assert_eq!(chosen(&app), next, "{keys} {size:?}");
            let drawn = draw_screen(&app);
            let (x, y) = find_text(&app, next);
            let selected = app.shared.theme().selected;
            assert!(drawn[(x, y)].modifier.contains(selected.add_modifier), "{keys} {size:?}: {}", shown(&app));
            assert!(shown(&app).contains("Read from "), "{}", shown(&app));
            // Typed text finds a column by its name; the arrows then move in the list.
            press(&mut app, "swap<right><esc>");
            assert!(app.screen.overlay.is_none());
        }
    }
}

/// The lists that can be sorted, with their keys.
const LISTS: [(&str, PaneId); 6] = [
    ("2", PaneId::Devices),
    ("2x", PaneId::Devices),
    ("3", PaneId::Processes),
    ("3p", PaneId::Processes),
    ("9", PaneId::Syncs),
    ("0", PaneId::Files),
];

/// Columns of names and ids; of all others the largest value is of interest.
const SMALLEST_FIRST: [&str; 12] =
    ["PID", "TID", "PRIO", "USER", "CGROUP", "COMMAND", "DEVICE", "CALL", "PROCESS", "KIND", "PATH", "Device"];

/// The header's mark, or else the note in the title, and its direction.
fn sort_mark(app: &App, header: &str) -> Option<bool> {
    let text = shown(app);
    // The mark takes the place of a heading of one letter.
    let header = if header.len() == 1 { "" } else { header };
    let marks = [(true, format!("▾{header}")), (false, format!("▴{header}"))];
    let mark = marks.iter().find(|(_, mark)| text.contains(mark.as_str())).map(|(is_descending, _)| *is_descending);
    mark.or_else(|| text.contains(&format!("· by {header}")).then_some(true))
}

#[test]
fn every_list_says_what_it_is_sorted_by_and_begins_in_the_useful_direction() {
    for (keys, pane) in LISTS {
        for size in [(80, 24), (120, 40), (200, 50)] {
            let mut app = open(keys, size);
            let columns = app.with_view(pane, |view, cx| view.columns(pane, cx)).unwrap();
            for (at, column) in columns.iter().enumerate() {
                let sort = |app: &mut App| {
                    app.update_view(pane, &mut Vec::new(), |view, cx, _| view.sort_by(pane, Some(at), cx));
                    app.refresh_views(&mut Vec::new());
                };
                press(&mut app, "r");
                sort(&mut app);
                let mark = sort_mark(&app, column.header);
                assert!(mark.is_some(), "{keys} {size:?}: no mark of {}:\n{}", column.header, shown(&app));
                let is_smallest_first = SMALLEST_FIRST.contains(&column.header);
                let is_hidden = shown(&app).contains(&format!("· by {}", column.header));
                assert!(is_hidden || mark == Some(!is_smallest_first), "{keys}: {}", column.header);
            }
        }
    }
}

#[test]
fn the_order_of_a_list_is_its_own() {
    for (keys, pane) in LISTS {
        let mut sorted = app(SIZE);
        press(&mut sorted, keys);
        press(&mut sorted, "<right><right>r");
        for (other_keys, other) in LISTS.iter().filter(|(_, other)| *other != pane) {
            let mut fresh = app(SIZE);
            press(&mut fresh, other_keys);
            press(&mut sorted, other_keys);
            let mark = |app: &App| app.with_view(*other, |view, cx| view.columns(*other, cx));
            assert_eq!(mark(&sorted), mark(&fresh), "{keys} changes {other:?}");
            if other_keys.len() > 1 {
                press(&mut sorted, &other_keys[1..]);
            }
        }
    }
    let mut app = app(SIZE);
    press(&mut app, "3<right>");
    assert_eq!(app.screen.view, ViewId::Processes);
    press(&mut app, "1");
    assert!(shown(&app).contains("▴PID") || shown(&app).contains("· by PID"), "{}", shown(&app));
}

#[test]
fn graphs_of_a_quiet_overview_are_those_of_the_disk_that_has_done_most() {
    let mut app = app((160, 45));
    app.shared.findings = Default::default();
    let devices = std::sync::Arc::make_mut(&mut app.shared.system.snapshot).devices.ok_mut().unwrap();
    for rate in devices.iter_mut() {
        let (id, name) = (rate.id, rate.name.clone());
        let write_mb_total = if &*name == "vda" { 9.0 } else { 1.0 };
        *rate = std::sync::Arc::new(crate::model::disk::DiskRate { id, name, write_mb_total, ..Default::default() });
    }
    let shown = |app: &App| crate::export::screenshot::to_text(&draw_screen(app));
    // Idle devices are folded when a key was handled.
    press(&mut app, "w");
    assert!(shown(&app).contains("vda, recent past"), "{}", shown(&app));
}
