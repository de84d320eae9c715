//! The Syncs view.

use super::fixture::syncs::{tell, waiting};
use super::{SIZES, app, assert_screen, press, render, text};
use iotop_plus::model::reading::Reading;

#[test]
fn syncs_view() {
    for size in SIZES {
        let mut app = waiting(size);
        press(&mut app, "F");
        assert_screen("syncs", &app);
    }
    let mut app = waiting((120, 40));
    press(&mut app, "Fw<down>");
    assert_screen("syncs_slow_selected", &app);
    press(&mut app, "<esc><s-tab>\\wal<enter><right>r");
    assert_screen("syncs_filtered_sorted", &app);
}

#[test]
fn missing_privilege_is_explained() {
    let why = "tracing of syncs needs CAP_DAC_READ_SEARCH besides CAP_BPF and CAP_PERFMON, to read /sys/kernel/tracing; \
               run with sudo";
    let mut app = app((80, 24));
    tell(&mut app, |_| Reading::Denied(why.into()));
    press(&mut app, "F");
    assert_screen("syncs_denied", &app);
}

#[test]
fn hostile_names_are_sanitized() {
    let mut app = waiting((200, 50));
    press(&mut app, "F");
    let shown = text(&render(&app));
    assert!(shown.contains(r"cp\x1b[31m") && shown.contains(r"big\x1b]0;x\x07.img"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)));
}

#[test]
fn stepping_back_shows_the_earlier_tick() {
    let mut app = waiting((120, 40));
    press(&mut app, "F ");
    let now = text(&render(&app));
    press(&mut app, ",");
    let before = text(&render(&app));
    assert!(now.contains(" 72 ") && !now.contains(" 63 "), "{now}");
    assert!(before.contains(" 63 ") && !before.contains(" 72 "), "{before}");
}
