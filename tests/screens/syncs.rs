//! The Syncs view.

use super::stage::syncs::{tell, waiting};
use super::{SIZES, app, keep, picture, press, text};
use iotop_plus::model::reading::Reading;

#[test]
fn who_waits() {
    for size in SIZES {
        let mut app = waiting(size);
        press(&mut app, "F");
        keep(&format!("syncs_{}x{}", size.0, size.1), &app);
    }
    let mut app = waiting((120, 40));
    press(&mut app, "Fw<down>");
    keep("syncs_slow_selected_120x40", &app);
    press(&mut app, "<esc><s-tab>\\wal<enter><right>r");
    keep("syncs_filtered_sorted_120x40", &app);
}

#[test]
fn without_leave_the_reason_stands_there() {
    let why = "tracing of syncs needs CAP_DAC_READ_SEARCH besides CAP_BPF and CAP_PERFMON, to read /sys/kernel/tracing; \
               run with sudo";
    let mut app = app((80, 24));
    tell(&mut app, |_| Reading::Denied(why.into()));
    press(&mut app, "F");
    keep("syncs_denied_80x24", &app);
}

#[test]
fn nothing_hostile_gets_through() {
    let mut app = waiting((200, 50));
    press(&mut app, "F");
    let shown = text(&picture(&app));
    assert!(shown.contains(r"cp\x1b[31m") && shown.contains(r"big\x1b]0;x\x07.img"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || iotop_plus::text::is_safe(c)));
}

#[test]
fn a_tick_back_shows_what_was_then() {
    let mut app = waiting((120, 40));
    press(&mut app, "F ");
    let now = text(&picture(&app));
    press(&mut app, ",");
    let before = text(&picture(&app));
    assert!(now.contains(" 72 ") && !now.contains(" 63 "), "{now}");
    assert!(before.contains(" 63 ") && !before.contains(" 72 "), "{before}");
}
