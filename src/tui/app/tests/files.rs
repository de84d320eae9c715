//! The Files view by keys: opening it, or the page of a process or a device, has files traced, leaving it does not.

use super::SIZE;
use super::fixture::{app, press};
use crate::tui::app::App;
use crate::tui::view::Effect;

/// What the collector was told of files.
fn trace_requests(app: &mut App, keys: &str) -> Vec<bool> {
    let told = |e| match e {
        Effect::TraceFiles(is_wanted) => Some(is_wanted),
        _ => None,
    };
    press(app, keys).into_iter().filter_map(told).collect()
}

#[test]
fn files_are_traced_only_while_they_are_shown() {
    for (keys, want) in [
        ("12345678F", vec![]),
        ("0", vec![true]),
        ("00", vec![true]),
        ("01", vec![true, false]),
        ("0wz? \\x<enter>", vec![true]),
        ("3<enter>", vec![true]),
        ("3<enter><esc>", vec![true, false]),
        ("2<enter>", vec![true]),
    ] {
        assert_eq!(trace_requests(&mut app(SIZE), keys), want, "{keys}");
    }
}
