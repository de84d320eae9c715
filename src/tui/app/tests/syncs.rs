//! The Syncs view by keys: opening it, or the findings, has syncs traced, leaving it does not.

use super::fixture::syncs::{tell, waiting};
use super::fixture::{app, press};
use super::{SIZE, state_summary};
use crate::model::reading::Reading;
use crate::tui::app::App;
use crate::tui::settings::Settings;
use crate::tui::view::{Effect, ViewId};
use std::time::Duration;

/// What the collector was told of syncs.
fn trace_requests(app: &mut App, keys: &str) -> Vec<Option<Duration>> {
    let told = |e| match e {
        Effect::ListSlowSyncs(wanted) => Some(wanted),
        _ => None,
    };
    press(app, keys).into_iter().filter_map(told).collect()
}

const TEN_MS: Option<Duration> = Some(Duration::from_millis(10));

#[test]
fn syncs_are_traced_only_while_a_view_needs_them() {
    for (keys, want) in [
        ("1234567", vec![]),
        ("8", vec![TEN_MS]),
        ("8F1", vec![TEN_MS, None]),
        ("F", vec![TEN_MS]),
        ("FF", vec![TEN_MS]),
        ("Fwz? \\x<enter>", vec![TEN_MS]),
        ("F1", vec![TEN_MS, None]),
        ("F<tab>", vec![TEN_MS, None]),
        ("F3F", vec![TEN_MS, None, TEN_MS]),
        (":syncs 250<enter>F", vec![Some(Duration::from_millis(250))]),
        ("F:syncs 0<enter>", vec![TEN_MS, Some(Duration::ZERO)]),
        ("F:syncs soon<enter>", vec![TEN_MS]),
    ] {
        assert_eq!(trace_requests(&mut app(SIZE), keys), want, "{keys}");
    }
}

#[test]
fn a_configured_start_view_is_traced_from_the_first_event() {
    let mut app = app(SIZE);
    app.apply_settings(&Settings { view: ViewId::Syncs, ..Settings::default() });
    assert_eq!(trace_requests(&mut app, "w"), [TEN_MS]);
}

#[test]
fn a_detail_page_keeps_tracing_on() {
    let mut app = waiting(SIZE);
    let pid = app.shared.system.processes.iter().next().unwrap().pid();
    tell(&mut app, |s| {
        let mut raw = super::fixture::syncs::reading(s, 9);
        for c in &mut raw.files {
            let file = crate::model::syncs::SyncFile { pid, ..(*c.file).clone() };
            c.file = std::sync::Arc::new(file);
        }
        Reading::Ok(raw)
    });
    assert_eq!(trace_requests(&mut app, "F<enter>"), [TEN_MS]);
    assert!(state_summary(&app).starts_with("Syncs/ProcessDetail"), "{}", state_summary(&app));
    assert_eq!(trace_requests(&mut app, "<esc>"), []);
    assert_eq!(state_summary(&app), "Syncs/Syncs");
}

#[test]
fn keys_move_sort_and_filter_syncs() {
    let mut app = waiting(SIZE);
    press(&mut app, "F<down><right>r");
    let s = &app.views.syncs;
    assert_eq!((s.scroll.selected, s.columns.sorted, s.columns.reverse), (1, Some(0), true));
    press(&mut app, "w<down><down>");
    assert_eq!((app.views.syncs.slow_scroll.selected, state_summary(&app).as_str()), (2, "Syncs/SlowSyncs"));
    press(&mut app, "\\wal<enter>");
    assert_eq!(app.views.syncs.filter, "wal");
    press(&mut app, "<esc>");
    assert_eq!(app.views.syncs.filter, "");
    press(&mut app, "F/base<enter>");
    assert_eq!(app.screen.message, None);
    press(&mut app, "/nowhere<enter>");
    assert!(app.screen.message.as_ref().is_some_and(|m| m.is_error));
}

#[test]
fn a_process_that_has_ended_is_not_opened() {
    let mut app = waiting(SIZE);
    press(&mut app, "F<enter>");
    assert!(app.screen.message.as_ref().is_some_and(|m| m.text.contains("has exited")), "{:?}", app.screen.message);
}

#[test]
fn syncs_are_not_traced_in_a_replay() {
    use crate::tui::shared::ReplayUi;
    let mut app = app(SIZE);
    let host = app.shared.system.host.clone();
    app.shared.replay = Some(ReplayUi::new("x", host, Default::default(), Default::default()));
    assert_eq!(trace_requests(&mut app, "F1F"), []);
}
