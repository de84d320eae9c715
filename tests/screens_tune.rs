//! The Tune view as a person would see it, over knobs that are files of a tree of its own.
//!
//! The pictures are kept in `tests/snapshots`; `INSTA_UPDATE=always cargo test` writes them anew.

mod fixture;
#[path = "screens/snapshot.rs"]
mod snapshot;

use fixture::press;
use fixture::tune::{Tree, change_on_lease, news, view};
use iotop_plus::tui::app::App;
use iotop_plus::tui::app::draw;
use iotop_plus::tui::event::TuneEvent;
use iotop_plus::tui::knob_snapshot::ChangeStatus;
use iotop_plus::tui::widgets::ColorDepth;
use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

const SIZES: [(u16, u16); 4] = [(30, 8), (80, 24), (120, 40), (200, 50)];

fn render(app: &App) -> Buffer {
    draw::render_to_buffer(app)
}

fn text(app: &App) -> String {
    let buf = render(app);
    let row = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect::<String>();
    (0..buf.area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

fn assert_screen(name: &str, app: &App) {
    snapshot::assert_screen(&format!("tune_{name}"), app.screen.size, text(app));
}

/// The view at every size, after keys.
fn assert_screens_at_every_size(name: &str, keys: &str) {
    for size in SIZES {
        let (mut app, _tree) = view(size);
        press(&mut app, keys);
        app.screen.message = None;
        assert_screen(name, &app);
    }
}

#[test]
fn idle() {
    assert_screens_at_every_size("idle", "");
}

#[test]
fn editing() {
    assert_screens_at_every_size("editing", "<enter><c-u>2500M");
    assert_screens_at_every_size("editing_wrong", "<enter><c-u>101<enter>");
    let (mut app, _tree) = view((80, 24));
    press(&mut app, "<pgdn><pgdn><pgdn><up><up><up><up><up><up><up><up><enter><down>");
    assert_screen("editing_word", &app);
}

#[test]
fn proposed() {
    assert_screens_at_every_size("pending", "<enter><c-u>30<enter><down><down><down><down><enter><c-u>20s<enter>");
    assert_screens_at_every_size("refused", "<enter><c-u>10<enter>A");
    assert_screens_at_every_size("asking", "<enter><c-u>30<enter>A");
}

#[test]
fn presets() {
    assert_screens_at_every_size("presets", "l<down>");
    assert_screens_at_every_size("preset_asking", "l<down><enter>");
    // A question longer than the screen can be scrolled.
    let (mut app, _tree) = view((40, 12));
    press(&mut app, "l<down><enter>");
    let first = text(&app);
    press(&mut app, "<down><down><down>");
    assert!(first.contains("more") && text(&app) != first);
    press(&mut app, "<pgdn><pgdn><pgdn><pgdn><pgdn><pgdn>");
    assert!(text(&app).contains("once."), "{}", text(&app));
}

#[test]
fn lease_with_and_without_enough_data() {
    for size in SIZES {
        let (mut app, tree) = view(size);
        change_on_lease(&mut app, &tree, &["vm.dirty_expire_centisecs=2000", "vm.swappiness=10"], 40);
        assert_screen("lease", &app);
        press(&mut app, "1");
        assert!(size.0 < 40 || text(&app).contains("change #1 reverts in 1:20"), "seen in every view");
        let (mut app, tree) = view(size);
        change_on_lease(&mut app, &tree, &["vm.dirty_expire_centisecs=2000"], 4);
        assert_screen("lease_young", &app);
    }
}

#[test]
fn change_history() {
    for size in SIZES {
        let (mut app, tree) = view(size);
        let first = tree.set(&["vm.swappiness=10"]);
        tree.undo(first);
        tree.set(&["scheduler@vda=none"]);
        let third = tree.set(&["vm.page-cluster=2"]);
        std::fs::write(tree.dir.path().join("proc/sys/vm/page-cluster"), "1\n").unwrap();
        tree.undo(third);
        tree.set(&["vm.vfs_cache_pressure=50"]);
        tree.set(&["vm.dirty_ratio=40", "vm.dirty_background_ratio=5"]);
        let over = |how: &str| ChangeStatus::Closed(how.into());
        let all = [
            (30, ChangeStatus::Leased(90)),
            (50, ChangeStatus::Orphaned),
            (60, over("CONFLICT")),
            (70, ChangeStatus::Kept),
            (80, over("reverted")),
        ];
        tree.tell(&mut app, &all);
        app.screen.overlay = None;
        press(&mut app, "H<down><down>");
        assert_screen("history", &app);
    }
}

#[test]
fn quitting_with_a_lease() {
    for size in SIZES {
        let (mut app, tree) = view(size);
        change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 40);
        press(&mut app, "q");
        assert_screen("leaving", &app);
    }
}

#[test]
fn unprivileged_user() {
    for size in SIZES {
        let (mut app, tree) = view(size);
        let mut look = tree.look(&app, &[], &[]);
        look.can_write = false;
        look.changes_error = Some("/run/iotop-plus: permission denied; only root may read what was changed".into());
        news(&mut app, TuneEvent::Refreshed(look));
        press(&mut app, "H");
        assert_screen("user", &app);
        press(&mut app, "<esc><enter><c-u>30<enter>A");
        assert_screen("user_asking", &app);
    }
}

#[test]
fn graphs_mark_knob_changes() {
    for size in SIZES {
        let (mut app, tree) = view(size);
        change_on_lease(&mut app, &tree, &["vm.dirty_expire_centisecs=2000"], 20);
        press(&mut app, "<down><down><down><down>g");
        assert_screen("graph", &app);
    }
    let (mut app, tree) = view((120, 40));
    change_on_lease(&mut app, &tree, &["read_ahead_kb@vda=256"], 20);
    press(&mut app, "Hg");
    assert_screen("graph_device", &app);
}

#[test]
fn changed_values_are_marked_without_colour() {
    let (mut app, tree) = view((120, 40));
    app.shared.themes.adapt_to(true, ColorDepth::Rgb);
    change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 20);
    let buf = render(&app);
    let row = (0..40).find(|y| buf[(1, *y)].symbol() == "*").expect("a star");
    let now = (20..60).find(|x| buf[(*x, row)].symbol() == "1").expect("its value");
    assert!(buf[(now, row)].modifier.contains(Modifier::BOLD | Modifier::UNDERLINED));
    press(&mut app, "g");
    assert!(text(&app).contains('┊'));
}

#[test]
fn hostile_names_are_sanitized() {
    let tree = Tree::at_defaults();
    let mounts = "21 1 254:0 / /a\\033[2J\u{202e}x rw,relatime - ext4 /dev/vda rw\n";
    std::fs::write(tree.dir.path().join("proc/self/mountinfo"), mounts).unwrap();
    let mut app = fixture::app((120, 40));
    press(&mut app, "7");
    tree.tell(&mut app, &[]);
    for keys in ["<pgdn><pgdn>", "<enter>", "<c-u>noatime<enter>", "a"] {
        press(&mut app, keys);
        let shown = text(&app);
        assert!(shown.contains("\\x1b[2J\\u{202e}x"), "{keys}: {shown}");
        assert!(shown.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)), "{keys}");
    }
}
