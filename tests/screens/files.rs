//! The Files view.

use super::fixture::files::{tell, traced};
use super::{SIZES, app, assert_screen, press, render, text};
use iotop_plus::model::reading::Reading;

#[test]
fn files_view() {
    for size in SIZES {
        let mut app = traced(size);
        press(&mut app, "0");
        assert_screen("files", &app);
    }
    let mut app = traced((120, 40));
    press(&mut app, "0w<down>\\srv<enter><right>r");
    assert_screen("files_filtered_sorted", &app);
}

#[test]
fn a_missing_privilege_for_files_is_explained() {
    let mut app = app((80, 24));
    tell(&mut app, |_| Reading::Denied("tracing needs CAP_BPF and CAP_PERFMON; run with sudo".into()));
    press(&mut app, "0");
    assert_screen("files_denied", &app);
}

#[test]
fn hostile_file_names_are_sanitized() {
    let mut app = traced((200, 50));
    press(&mut app, "0");
    let shown = text(&render(&app));
    assert!(shown.contains(r"big\x1b]0;x\x07.img"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)));
}

#[test]
fn the_page_of_a_device_lists_its_files() {
    let mut app = traced((120, 50));
    press(&mut app, "2/vda<enter><enter>");
    let shown = text(&render(&app));
    assert!(shown.contains("Files at the devices") && shown.contains("/var/lib/pg/wal/000000010000"), "{shown}");
}
