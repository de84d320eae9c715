//! Screenshots: what is taken, what it is called, what goes to the child.

use super::fixture::{app, press};
use super::{SIZE, state_summary, visible_effects};
use crate::export::screenshot::FORMATS;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::app::App;
use crate::tui::app::update;
use crate::tui::view::{Effect, Event, Overlay, ViewId};

/// What the keys have written: the name, and the content.
fn capture_file(app: &mut App, keys: &str) -> (String, Vec<u8>) {
    let effects = visible_effects(press(app, keys));
    let [Effect::RunJob(WorkerJob::WriteFile { path, contents, existing: IfExists::AddNumber, make_dir: false })] =
        &effects[..]
    else {
        panic!("{keys}: {effects:?}")
    };
    (path.to_string_lossy().into_owned(), contents.as_bytes().to_vec())
}

fn capture_text(app: &mut App, keys: &str) -> String {
    String::from_utf8(capture_file(app, keys).1).unwrap()
}

fn prompt_text(app: &App) -> &str {
    match &app.screen.overlay {
        Some(Overlay::Prompt(p)) => &p.text,
        other => panic!("{other:?}"),
    }
}

fn screen_text(app: &App) -> String {
    let buf = crate::tui::app::draw::render_to_buffer(app);
    crate::export::screenshot::to_text(&buf)
}

#[test]
fn two_keys_capture_the_screen_as_it_was() {
    let mut app = app(SIZE);
    press(&mut app, "2");
    let before = screen_text(&app);
    let (name, png) = capture_file(&mut app, "s<enter>");
    assert_eq!(name, format!("host-screen-{}.png", name_timestamp(&app)));
    assert!(png.starts_with(b"\x89PNG"));
    // What goes on while the name is asked for is not in the picture.
    press(&mut app, "s");
    app.screen.view = ViewId::Kernel;
    assert_eq!(capture_text(&mut app, "<c-u>x.txt<enter>"), before);
    assert!(app.screen.overlay.is_none() && app.screenshot.pending.is_none());
}

/// The time of the tick on screen as it is in names.
fn name_timestamp(app: &App) -> String {
    let digits = crate::units::format_rfc3339(app.shared.snapshot().time.wall_ns);
    digits.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect()
}

#[test]
fn arrows_choose_the_format_and_tab_the_pane() {
    let mut app = app(SIZE);
    press(&mut app, "2s");
    let end = |app: &App, suffix: &str| assert!(prompt_text(app).ends_with(suffix), "{}", prompt_text(app));
    end(&app, ".png");
    for form in FORMATS.iter().cycle().skip(1).take(FORMATS.len()) {
        press(&mut app, "<down>");
        end(&app, &format!(".{}", form.extension));
    }
    press(&mut app, "<up>");
    end(&app, ".json");
    assert!(prompt_text(&app).contains("-screen-") && screen_text(&app).contains("screen to file (Tab pane"));
    press(&mut app, "<tab>");
    assert!(prompt_text(&app).contains("-devices-") && screen_text(&app).contains("devices to file (Tab screen"));
    let json: serde_json::Value = serde_json::from_str(&capture_text(&mut app, "<enter>")).unwrap();
    assert_eq!(json["panes"].as_array().unwrap().len(), 1);
    assert!(json["panes"][0]["rows"].as_array().unwrap().len() > 3, "{json}");
    // The next one is of the same form.
    press(&mut app, "s");
    end(&app, ".json");
    assert_eq!(app.settings().screenshot.format, "json");
}

#[test]
fn the_typed_name_is_kept_and_its_extension_decides() {
    let mut app = app(SIZE);
    press(&mut app, "s<c-u>/srv/a.b.svg<down>");
    assert_eq!(prompt_text(&app), "/srv/a.b.html");
    press(&mut app, "<tab>");
    assert_eq!(prompt_text(&app), "/srv/a.b.html");
    press(&mut app, "<c-u>/srv/a<down>");
    assert!(prompt_text(&app).starts_with("/srv/a."), "{}", prompt_text(&app));
    press(&mut app, "<c-u>shot.gif<enter>");
    assert!(state_summary(&app).ends_with(" wrong") && screen_text(&app).contains(".svg .html .md .txt .ans .json"));
    let (name, contents) = capture_file(&mut app, "<c-u>Shot.SVG<enter>");
    assert!(name == "Shot.SVG" && contents.starts_with(b"<svg "), "{name}");
    // A directory before the name that the program makes stays before it.
    app.screenshot.directory = "/srv/shots".into();
    press(&mut app, "s<tab>");
    assert!(prompt_text(&app).starts_with("/srv/shots/host-processes-"), "{}", prompt_text(&app));
}

#[test]
fn a_pane_capture_contains_only_that_pane() {
    let mut app = app(SIZE);
    let whole = capture_text(&mut app, "s<c-u>a.ans<enter>");
    let part = capture_text(&mut app, "s<tab><c-u>b.ans<enter>");
    assert!(part.lines().count() < whole.lines().count() && part.contains("Processes"), "{part}");
    assert!(!part.contains("Kernel log"));
    let markdown = capture_text(&mut app, "s<c-u>c.md<enter>");
    for title in ["Devices", "Processes", "Kernel log", "Findings"] {
        assert!(markdown.contains(&format!("**{title}")), "{title}: {markdown}");
    }
    assert_eq!(capture_text(&mut app, "s<tab><c-u>d.md<enter>").matches("\n**").count(), 1);
}

#[test]
fn every_view_detail_help_and_dialog_can_be_captured() {
    for keys in
        ["1", "2", "3", "4", "5", "6", "8", "2<enter>", "3<enter>", "5<enter>", "?", "3iidle<enter>", "3z", "2 "]
    {
        let mut app = app(SIZE);
        press(&mut app, keys);
        let (before, was) = (screen_text(&app), state_summary(&app));
        let got = capture_text(&mut app, "s<c-u>x.txt<enter>");
        assert_eq!((got, state_summary(&app)), (before, was.clone()), "{keys}");
        press(&mut app, "s<esc>");
        assert_eq!(state_summary(&app), was, "{keys}");
    }
    // In a line of input it is a letter.
    let mut app = app(SIZE);
    press(&mut app, "/s");
    assert_eq!(prompt_text(&app), "s");
}

#[test]
fn the_light_theme_has_a_light_background() {
    let mut app = app(SIZE);
    assert!(capture_text(&mut app, "s<c-u>x.svg<enter>").contains("fill=\"#14171c\"/>"));
    app.shared.themes.select("light").unwrap();
    assert!(capture_text(&mut app, "s<c-u>x.svg<enter>").contains("fill=\"#ffffff\"/>"));
}

#[test]
fn the_written_path_or_the_failure_is_reported() {
    let mut app = app(SIZE);
    let effects = press(&mut app, "s<enter>");
    let Effect::RunJob(job) = &effects[0] else { panic!("{effects:?}") };
    let reply = WorkerReply::FileWritten { path: "/home/x/shot.png".into(), bytes: 48 << 10 };
    update(&mut app, Event::JobReply(job.clone(), reply));
    assert_eq!(app.screen.message.as_ref().unwrap().text, "written: /home/x/shot.png (48.0 KiB)");
    let why = "/home/x/shot.png not written: read-only file system; write elsewhere";
    update(&mut app, Event::JobReply(job.clone(), WorkerReply::Failed(why.into())));
    assert!(app.screen.message.as_ref().is_some_and(|m| m.is_error && m.text == why));
}
