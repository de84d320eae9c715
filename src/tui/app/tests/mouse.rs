//! Clicks and the wheel do what keys do.

use super::fixture::{app, press};
use super::{SIZE, draw_screen, find_text, state_summary, visible_effects};
use crate::tui::app::App;
use crate::tui::app::update;
use crate::tui::view::{Effect, Event, PaneId, ViewId};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

pub fn click(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    let kind = MouseEventKind::Down(MouseButton::Left);
    send_mouse(app, kind, x, y)
}

fn send_mouse(app: &mut App, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    update(app, Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
}

#[test]
fn tabs_and_footer_keys_take_clicks() {
    let mut app = app(SIZE);
    let area = app.arrange().0.tabs;
    for view in ViewId::ALL {
        // They move with the length of their titles.
        let tab = app.tabs(area).into_iter().find(|tab| tab.view == view).unwrap();
        click(&mut app, tab.x, area.y);
        assert_eq!(app.screen.view, view);
    }
    app.screen.view = ViewId::Overview;
    let (x, y) = find_text(&app, "q quit");
    assert_eq!(visible_effects(click(&mut app, x, y)), [Effect::Quit]);
    let (x, y) = find_text(&app, "? help");
    click(&mut app, x, y);
    assert_eq!(state_summary(&app), "Overview/Processes help@0");
    click(&mut app, 5, 5);
    assert_eq!(state_summary(&app), "Overview/Processes", "a click beside it closes the help");
}

#[test]
fn rows_of_both_sections_take_clicks() {
    let mut app = app(SIZE);
    let selected = |app: &App| app.views.processes.selected_task(&app.shared).unwrap().comm().into_owned();
    for name in ["ledgerd --", "fio --", "backup-agent ..."] {
        let (x, y) = find_text(&app, name);
        click(&mut app, x, y);
        assert!(name.starts_with(&selected(&app)), "{name} was clicked, {} is selected", selected(&app));
    }
    let (x, y) = find_text(&app, "Stalled PID");
    click(&mut app, x + 9, y);
    assert_eq!(selected(&app), "backup-agent", "the headings of stalled tasks do not sort");
    let (x, y) = find_text(&app, "Busy    PID");
    click(&mut app, x + 9, y);
    assert_eq!(app.views.processes.sort_column.spec().value.name, "pid");
}

#[test]
fn headers_and_rows_take_clicks() {
    let mut app = app(SIZE);
    press(&mut app, "3");
    let (x, y) = find_text(&app, "WRITE/s");
    click(&mut app, x + 2, y);
    assert_eq!(app.views.processes.sort_column.spec().value.name, "write");
    click(&mut app, x + 2, y);
    assert!(app.views.processes.reverse, "again: the other way round");
    let (x, y) = find_text(&app, "frozen fs");
    click(&mut app, x, y);
    assert_eq!(app.views.processes.selected_task(&app.shared).unwrap().comm(), "backup-agent");
    press(&mut app, "2");
    let (x, y) = find_text(&app, "%util");
    click(&mut app, x, y);
    assert!(app.views.devices.columns.sorted.is_some());
    let (x, y) = find_text(&app, "zram0");
    click(&mut app, x, y);
    assert_eq!(state_summary(&app), "Devices/Devices");
    press(&mut app, "<enter>");
    assert!(app.screen.detail == Some(PaneId::DeviceDetail));
    press(&mut app, "5");
    let (x, y) = find_text(&app, "hung task INFO");
    click(&mut app, x, y);
    assert!(draw_screen(&app).content.iter().any(|c| c.modifier.contains(ratatui::style::Modifier::REVERSED)));
    press(&mut app, "<enter>");
    assert!(draw_screen(&app).content.iter().map(|c| c.symbol()).collect::<String>().contains("percpu_rwsem_wait"));
}

#[test]
fn clicks_select_unfolded_kernel_log_entries() {
    let mut app = app((120, 24));
    press(&mut app, "5f");
    let (x, y) = find_text(&app, "from a program second line");
    click(&mut app, x, y);
    press(&mut app, "<enter>");
    find_text(&app, "second line\\tTAB");
    press(&mut app, "<esc><up><up><up>");
    let (x, y) = find_text(&app, "Call Trace");
    click(&mut app, x, y);
    press(&mut app, "<enter>");
    find_text(&app, "hung task");
}

#[test]
fn a_click_focuses_a_pane_and_the_wheel_scrolls_it() {
    let mut app = app(SIZE);
    for id in [PaneId::KernelLog, PaneId::Devices, PaneId::Writeback, PaneId::Processes] {
        let area = app.arrange().0.pane_area(id).unwrap();
        click(&mut app, area.x + 1, area.y + 1);
        assert_eq!(app.focused_pane(), id);
    }
    let area = app.arrange().0.pane_area(PaneId::Processes).unwrap();
    send_mouse(&mut app, MouseEventKind::ScrollDown, area.x + 1, area.y + 3);
    assert_eq!(app.views.processes.scroll.selected, 3);
    send_mouse(&mut app, MouseEventKind::ScrollUp, area.x + 1, area.y + 3);
    assert_eq!(app.views.processes.scroll.selected, 0);
    press(&mut app, "3iidle<enter>");
    let before = state_summary(&app);
    send_mouse(&mut app, MouseEventKind::ScrollDown, 5, 5);
    assert_eq!(state_summary(&app), before, "a question is not scrolled away");
}
