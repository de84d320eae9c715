//! The Files view by keys: opening it, or the page of a process or a device, has files traced, leaving it does not.

use super::SIZE;
use super::fixture::{app, press};
use crate::model::observation::Observation;
use crate::tui::app::{App, update};
use crate::tui::view::{Effect, Event};

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

#[test]
fn tab_starts_no_tracing_before_a_tick_has_gone_by() {
    let mut app = app(SIZE);
    assert_eq!(trace_requests(&mut app, "9<tab>"), Vec::<bool>::new());
    let mut sample = app.shared.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += 1_000_000_000;
    update(&mut app, Event::Observed(Observation::Sample(Box::new(sample))));
    assert_eq!(trace_requests(&mut app, "w"), [true]);
    assert_eq!(trace_requests(&mut app, "<tab>"), [false]);
}
