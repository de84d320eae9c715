//! Every view, detail and overlay as a person would see it, over the captured machine `busy-vm`.
//!
//! The pictures are kept in `tests/snapshots`; after a wanted change `INSTA_UPDATE=always cargo test`
//! writes them anew, and the diff shows what changed on the screen.

#[path = "screens/bench.rs"]
mod bench;
#[path = "screens/cuts.rs"]
mod cuts;
#[path = "screens/files.rs"]
mod files;
mod fixture;
#[path = "screens/pictures.rs"]
mod pictures;
#[path = "screens/quiet.rs"]
mod quiet;
#[path = "screens/replay.rs"]
mod replay;
#[path = "screens/situations.rs"]
mod situations;
#[path = "screens/snapshot.rs"]
mod snapshot;
#[path = "screens/syncs.rs"]
mod syncs;
#[path = "screens/tasks.rs"]
mod tasks;

use fixture::{app, empty, press, send_processes, tree};
use iotop_plus::collect::path::inspect_path;
use iotop_plus::jobs::job::{WorkerJob, WorkerReply};
use iotop_plus::model::observation::Observation;
use iotop_plus::model::reading::Reading;
use iotop_plus::root::Root;
use iotop_plus::tui::Target;
use iotop_plus::tui::app::App;
use iotop_plus::tui::app::draw;
use iotop_plus::tui::app::update;
use iotop_plus::tui::event::Event;
use iotop_plus::tui::themes::ThemeList;
use iotop_plus::tui::widgets::ColorDepth;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::path::Path;

const SIZES: [(u16, u16); 4] = [(30, 8), (80, 24), (120, 40), (200, 50)];

fn render(app: &App) -> Buffer {
    draw::render_to_buffer(app)
}

/// The cells' text, one line a row; the second cell of a wide character is not a blank.
fn text(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let symbol = buf[(x, y)].symbol();
            out.push_str(symbol);
            x += unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
        }
        out.truncate(out.trim_end().len().max(out.rfind('\n').map_or(0, |at| at + 1)));
        out.push('\n');
    }
    out
}

/// How each cell stands out: a letter for the colour, or for the modifiers where there is no colour.
fn cell_styles(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        for x in 0..buf.area.width {
            let cell = &buf[(x, y)];
            let colour = match (cell.fg, cell.bg) {
                (Color::Reset, Color::Reset) => None,
                (Color::Reset, bg) => Some(format!("{bg:?}")),
                (fg, _) => Some(format!("{fg:?}")),
            };
            let m = cell.modifier;
            out.push(match colour {
                // LightRed and Red differ in the case of the letter.
                Some(name) => match name.strip_prefix("Light") {
                    Some(light) => light.chars().next().unwrap_or('?'),
                    None => name.to_lowercase().chars().next().unwrap_or('?'),
                },
                None if m.contains(Modifier::REVERSED | Modifier::BOLD) => '!',
                None if m.contains(Modifier::REVERSED) => '#',
                None if m.contains(Modifier::UNDERLINED) => '_',
                None if m.contains(Modifier::BOLD) => '+',
                None if m.contains(Modifier::DIM) => '-',
                None => '.',
            });
        }
        out.push('\n');
    }
    out
}

fn assert_screen(name: &str, app: &App) {
    snapshot::assert_screen(name, app.screen.size, text(&render(app)));
}

fn assert_screens_at_every_size(name: &str, keys: &str) {
    for size in SIZES {
        let mut app = app(size);
        press(&mut app, keys);
        assert_screen(name, &app);
    }
}

#[test]
fn main_views() {
    for (key, name) in [("1", "overview"), ("2", "devices"), ("3", "processes"), ("4", "memory"), ("5", "kernel")] {
        assert_screens_at_every_size(name, key);
    }
}

#[test]
fn start_before_the_first_sample() {
    for size in [(80, 24), (120, 40)] {
        assert_screen("start", &empty(size));
    }
}

#[test]
fn a_screen_that_is_too_small_says_how_large_it_must_be() {
    let shown = text(&render(&app((30, 8))));
    assert!(shown.starts_with("iotop-plus needs 40x12"), "{shown}");
}

#[test]
fn device_detail() {
    assert_screens_at_every_size("device_detail", "2<enter>");
}

#[test]
fn device_detail_says_why_tracing_is_unavailable() {
    let mut app = app((120, 40));
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    sample.latency = Reading::Denied("tracing needs CAP_BPF and CAP_PERFMON; run with sudo".into());
    update(&mut app, Event::Observed(Observation::Sample(Box::new(sample))));
    press(&mut app, "2<enter>");
    assert_screen("device_detail_untraced", &app);
}

#[test]
fn kernel_detail() {
    assert_screens_at_every_size("kernel_detail", "5<end><enter>");
}

/// The facts are read by the child's own code, from the tree.
fn open_task(app: &mut App, name: &str) {
    press(app, &format!("3/{name}<enter><enter>"));
    let key = app.views.processes.page.as_ref().unwrap_or_else(|| panic!("no detail of {name}")).key;
    let job = WorkerJob::TaskDetails { pid: key.pid, starttime: key.starttime };
    let reply = job.run(&Root::at(tree("t1")));
    update(app, Event::JobReply(job, reply));
}

#[test]
fn process_detail() {
    for size in SIZES {
        let mut app = app(size);
        open_task(&mut app, "ledgerd");
        assert_screen("process_detail", &app);
    }
}

#[test]
fn path_detail() {
    for size in SIZES {
        let mut app = app(size);
        let mut effects = Vec::new();
        app.navigate(Target::Path("/srv/lab/frz".into()), &mut effects);
        if size == (80, 24) {
            assert_screen("path_detail_waiting", &app);
        }
        let report = inspect_path(&Root::at(tree("t1")), Path::new("/srv/lab/frz")).unwrap();
        let job = WorkerJob::ResolvePath("/srv/lab/frz".into());
        update(&mut app, Event::JobReply(job, WorkerReply::ResolvedPath(Box::new(report))));
        assert_screen("path_detail", &app);
    }
}

#[test]
fn prompts_filters_sorting_and_zoom() {
    for (name, size, keys) in [
        ("help", (80, 24), "?"),
        ("help", (120, 40), "?"),
        ("help_scrolled", (80, 24), "?<pgdn><pgdn>"),
        ("prompt", (80, 24), "3\\ledg"),
        ("prompt_wrong", (80, 24), "d9999<enter>"),
        ("filtered", (80, 24), "3\\ledg<enter>"),
        ("filtered_away", (80, 24), "3\\nowhere<enter>"),
        ("sorted_by_pid", (120, 40), "3<right>"),
        ("accumulated", (120, 40), "3a"),
        ("tree", (80, 24), "3t"),
        ("tree", (120, 40), "3t"),
        ("tree_filtered", (80, 24), "3t\\ledg<enter>"),
        ("tree_folded", (80, 24), "3tf<down>"),
        ("extended", (200, 50), "2x"),
        ("extended", (80, 24), "2x"),
        ("devices_sorted", (120, 40), "2<right><right>"),
        ("graph_heat", (120, 40), "2gggg"),
        ("graph_heat", (80, 24), "2ggggg"),
        ("frozen", (120, 40), " ,,"),
        ("zoomed", (120, 40), "wwz"),
        ("kernel_unfolded", (120, 40), "5f"),
        ("kernel_included", (120, 40), "5Ierror<enter>"),
        ("message", (80, 24), "y"),
        ("palette", (120, 40), "3:tas<down>"),
        ("palette", (80, 24), ":"),
        ("sort_menu", (120, 40), "3<right><f6>"),
        ("sort_menu", (80, 24), "2<f6>"),
        ("explain", (120, 40), "3ep99"),
        ("explain", (80, 24), "2e<down>"),
    ] {
        let mut app = app(size);
        press(&mut app, keys);
        assert_screen(name, &app);
    }
}

#[test]
fn confirmation_dialog() {
    for size in [(80, 24), (40, 12)] {
        let mut app = app(size);
        press(&mut app, "3/ledgerd<enter>i<c-u>rt/0<enter>");
        assert_screen("dialog", &app);
    }
}

#[test]
fn threads() {
    for size in [(80, 24), (120, 40)] {
        let mut app = app(size);
        press(&mut app, "3p");
        send_processes(&mut app, false);
        send_processes(&mut app, true);
        assert_screen("threads", &app);
    }
}

#[test]
fn themes_differ_in_style_but_not_in_text() {
    let mut words = None;
    let names: Vec<String> = ThemeList::default().names().map(str::to_owned).collect();
    for theme in names {
        let mut app = app((80, 24));
        app.shared.themes.select(&theme).unwrap();
        press(&mut app, "w");
        let buf = render(&app);
        assert_eq!(words.get_or_insert_with(|| text(&buf)), &text(&buf));
        if matches!(theme.as_str(), "dark" | "mono") {
            snapshot::assert_snapshot(&format!("theme_{theme}"), cell_styles(&buf));
        }
        app.shared.themes.adapt_to(true, ColorDepth::Rgb);
        let plain = render(&app);
        let coloured = plain.content.iter().any(|c| (c.fg, c.bg) != (Color::Reset, Color::Reset));
        assert!(!coloured, "{}: colour in spite of NO_COLOR", theme);
    }
}

#[test]
fn findings() {
    assert_screens_at_every_size("findings", "8");
    let mut app = app((120, 40));
    press(&mut app, "8<right><down>");
    assert_screen("findings_page", &app);
}

#[test]
fn findings_before_the_first_evaluation() {
    let mut app = empty((80, 24));
    press(&mut app, "8");
    assert_screen("findings_start", &app);
}
