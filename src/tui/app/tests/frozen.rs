//! Tasks of a tick that is held on screen.

use super::fixture::{app, press, send_processes};
use super::{SIZE, draw_screen};
use crate::model::observation::Observation;
use crate::tui::app::{App, update};
use crate::tui::view::Event;

#[test]
fn tasks_may_exit_while_the_view_is_frozen() {
    let mut app = app(SIZE);
    press(&mut app, "3 ");
    let held = app.views.processes.selected_task(&app.shared).unwrap().comm().to_string();
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    update(&mut app, Event::Observed(Observation::Sample(Box::new(sample))));
    // The new table is much smaller.
    press(&mut app, "p");
    send_processes(&mut app, false);
    press(&mut app, "<down><up>");
    assert_eq!(
        app.views.processes.selected_task(&app.shared).unwrap().comm(),
        held,
        "what is selected is what is shown"
    );
    draw_screen(&app);
    press(&mut app, "<esc><down>");
    assert!(app.views.processes.window.matching < 10 && app.views.processes.selected_task(&app.shared).is_some());
}

fn lines(app: &App) -> Vec<String> {
    let buf = draw_screen(app);
    let line = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol().to_owned()).collect();
    (0..buf.area.height).map(line).collect()
}

#[test]
fn a_held_tick_has_the_order_the_filter_and_the_tree_of_a_live_one() {
    let mut app = app(SIZE);
    press(&mut app, "3o");
    let names = |app: &App| {
        let tasks = app.shared.tasks();
        app.views.processes.window.rows.iter().map(|row| tasks.row(*row).label()).collect::<Vec<_>>()
    };
    let live = names(&app);
    press(&mut app, " ");
    assert_eq!(names(&app), live, "the busiest tasks are all that are active");
    press(&mut app, "t");
    let shown = lines(&app);
    assert!(shown[1].contains("Processes · tree") && shown[1].contains("busiest tasks, held at"), "{}", shown[1]);
    assert_eq!(app.views.processes.window.positions.len(), live.len());
    press(&mut app, "\\ledger<enter>");
    assert!(names(&app).iter().any(|name| name.starts_with("ledgerd")) && names(&app).len() < live.len());
}

#[test]
fn the_overview_of_a_held_tick_has_its_sections() {
    let mut app = app(SIZE);
    press(&mut app, "1");
    let sections = |app: &App| {
        let headings = ["│Stalled PID ", "│Busy    PID "];
        headings.map(|heading| lines(app).iter().position(|line| line.starts_with(heading)))
    };
    let live = sections(&app);
    assert!(live.iter().all(Option::is_some));
    press(&mut app, " ");
    assert_eq!(sections(&app), live);
}
