//! Choosing columns by keys, and keys and columns of the config file.

use super::fixture::{app, press};
use super::{SIZE, draw_screen};
use crate::tui::app::App;
use crate::tui::settings::Settings;

fn shown(app: &App) -> String {
    crate::export::screenshot::to_text(&draw_screen(app))
}

/// The headings of the list on screen.
fn headings(app: &App) -> String {
    let text = shown(app);
    text.lines().find(|line| line.contains("COMMAND") || line.contains("Device ")).unwrap_or_default().to_owned()
}

#[test]
fn columns_are_shown_hidden_moved_and_saved() {
    let mut app = app(SIZE);
    press(&mut app, "3<f2>");
    assert!(shown(&app).contains("[x] READ/s"), "{}", shown(&app));
    // USER away, and PID to the right of the state.
    press(&mut app, "user<enter>");
    assert!(!headings(&app).contains("USER"), "{}", shown(&app));
    press(&mut app, "<c-u>pid<right><right><esc>");
    let line = headings(&app);
    assert!(line.find("PID") > line.find(" S "), "{line}");
    let saved = app.settings();
    assert!(!saved.processes.columns.contains(&"USER".into()) && saved.processes.columns.contains(&"COMMAND".into()));
    press(&mut app, "a");
    assert!(headings(&app).contains("WRITE ") && !headings(&app).contains("USER"), "{}", shown(&app));
    press(&mut app, "a<f2><del><esc>");
    assert!(headings(&app).contains("USER"), "{}", shown(&app));
    press(&mut app, "2<f2><down><enter><esc>");
    assert_eq!(app.settings().devices.columns.first().map(String::as_str), Some("Device"));
}

#[test]
fn the_config_file_names_columns_and_keys() {
    let text = "[keys]\ntoggle-tree = \"V\"\nhelp = \"F12\"\n[devices]\ncolumns = [\"%util\", \"Device\", \"f/s\"]\n";
    let settings = Settings::parse(text).unwrap();
    let mut app = app(SIZE);
    app.apply_settings(&settings);
    press(&mut app, "2");
    let line = headings(&app);
    assert!(line.find("Device") < line.find("%util") && line.find("%util") < line.find("f/s"), "{line}");
    press(&mut app, "3V");
    assert!(shown(&app).contains("Processes · tree") && shown(&app).contains("V tree"), "{}", shown(&app));
    assert!(shown(&app).contains("F12 help"), "{}", shown(&app));
    press(&mut app, "?");
    assert!(!shown(&app).contains("Help: keys"));
    press(&mut app, "<f12>");
    assert!(
        shown(&app).lines().any(|line| line.contains(" V ") && line.contains("tree: processes")),
        "{}",
        shown(&app)
    );
    press(&mut app, "<esc>:tree");
    assert!(shown(&app).lines().any(|line| line.contains(" V  ") && line.contains("tree: ")), "{}", shown(&app));
    let mut expected = settings.clone();
    expected.view = crate::tui::view::ViewId::Processes;
    expected.processes.tree = true;
    expected.devices.columns = ["Device", "%util", "f/s"].map(String::from).to_vec();
    assert_eq!(
        app.settings(),
        Settings { screenshot: app.settings().screenshot, bench: app.settings().bench, ..expected }
    );
}
