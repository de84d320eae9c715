//! What is selected stays selected when the lists are sorted anew.

use super::SIZE;
use super::fixture::{app, press};
use crate::doctor::finding::{Finding, FindingSubject, Severity};
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::model::process::{ProcessColumn, TaskKey};
use crate::tui::app::App;

fn selected(app: &App) -> (usize, TaskKey) {
    let row = app.views.processes.selected_task(&app.shared).unwrap();
    (app.views.processes.scroll.selected, row.key())
}

#[test]
fn a_task_that_was_gone_to_stays_selected_where_it_is_sorted_to() {
    let mut app = app(SIZE);
    app.views.processes.sort_column = ProcessColumn::Pid;
    press(&mut app, "3<down><down>");
    let (place, key) = selected(&app);
    press(&mut app, "r");
    assert_eq!(selected(&app).1, key);
    assert_ne!(selected(&app).0, place, "it is elsewhere now");
    press(&mut app, "r");
    assert_eq!(selected(&app), (place, key));
}

#[test]
fn the_first_row_shows_whatever_comes_first() {
    let mut app = app(SIZE);
    app.views.processes.sort_column = ProcessColumn::Pid;
    press(&mut app, "3<down><up>");
    let (place, key) = selected(&app);
    press(&mut app, "r");
    assert_eq!((place, selected(&app).0), (0, 0));
    assert_ne!(selected(&app).1, key);
    // A task that was searched for stays, wherever it is.
    let name = app.views.processes.selected_task(&app.shared).unwrap().tid().to_string();
    press(&mut app, &format!("/{name}<enter>"));
    let key = selected(&app).1;
    press(&mut app, "r");
    assert_eq!(selected(&app).1, key);
}

#[test]
fn the_device_in_trouble_is_selected_until_the_user_goes_to_another() {
    let mut app = app(SIZE);
    press(&mut app, "2");
    let lines = app.views.devices.device_lines(&app.shared);
    let (first, other): (DevId, DevId) = (lines[0].id, lines[2].id);
    assert_eq!(app.views.devices.selected(&app.shared), Some(first));
    let incident = |severity, id| {
        let subject = FindingSubject::Device(id, String::new());
        Incident { severity, findings: vec![Finding { subject, ..Finding::default() }] }
    };
    let show = |app: &mut App, severity, id| {
        app.shared.findings.incidents = vec![incident(severity, id)];
        app.refresh_views(&mut Vec::new());
        app.views.devices.selected(&app.shared)
    };
    assert_eq!(show(&mut app, Severity::Note, other), Some(first), "a note is no trouble");
    assert_eq!(show(&mut app, Severity::Warn, other), Some(other));
    press(&mut app, "<up>");
    let chosen = app.views.devices.selected(&app.shared);
    assert_eq!(chosen, Some(lines[1].id));
    assert_eq!(show(&mut app, Severity::Critical, other), chosen);
}
