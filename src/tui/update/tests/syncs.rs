//! The Syncs view by keys: opening it, or the findings, has syncs traced, leaving it does not.

use super::stage::syncs::{tell, waiting};
use super::stage::{app, press};
use super::{SIZE, state};
use crate::model::reading::Reading;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::settings::Settings;
use crate::tui::state::App;
use std::time::Duration;

/// What the collector was told of syncs.
fn asked(app: &mut App, keys: &str) -> Vec<Option<Duration>> {
    let told = |e| match e {
        Effect::ListSlowSyncs(wanted) => Some(wanted),
        _ => None,
    };
    press(app, keys).into_iter().filter_map(told).collect()
}

const TEN: Option<Duration> = Some(Duration::from_millis(10));

#[test]
fn syncs_are_wanted_while_their_view_is_open_and_no_longer() {
    for (keys, want) in [
        ("1234567", vec![]),
        ("8", vec![TEN]),
        ("8F1", vec![TEN, None]),
        ("F", vec![TEN]),
        ("FF", vec![TEN]),
        ("Fwz? \\x<enter>", vec![TEN]),
        ("F1", vec![TEN, None]),
        ("F<tab>", vec![TEN, None]),
        ("F3F", vec![TEN, None, TEN]),
        (":syncs 250<enter>F", vec![Some(Duration::from_millis(250))]),
        ("F:syncs 0<enter>", vec![TEN, Some(Duration::ZERO)]),
        ("F:syncs soon<enter>", vec![TEN]),
    ] {
        assert_eq!(asked(&mut app(SIZE), keys), want, "{keys}");
    }
}

#[test]
fn a_view_to_start_with_is_wanted_from_the_first_event_on() {
    let mut app = app(SIZE);
    app.ui.apply_settings(&Settings { view: ViewId::Syncs, ..Settings::default() });
    assert_eq!(asked(&mut app, "w"), [TEN]);
}

#[test]
fn a_page_over_the_view_leaves_it_open() {
    let mut app = waiting(SIZE);
    let pid = app.system.processes.live_tasks().next().unwrap().1.key.pid;
    tell(&mut app, |s| {
        let mut raw = super::stage::syncs::reading(s, 9);
        for c in &mut raw.files {
            let file = crate::model::syncs::SyncFile { pid, ..(*c.file).clone() };
            c.file = std::sync::Arc::new(file);
        }
        Reading::Ok(raw)
    });
    assert_eq!(asked(&mut app, "F<enter>"), [TEN]);
    assert!(state(&app).starts_with("Syncs/ProcessDetail"), "{}", state(&app));
    assert_eq!(asked(&mut app, "<esc>"), []);
    assert_eq!(state(&app), "Syncs/Syncs");
}

#[test]
fn keys_move_sort_and_filter() {
    let mut app = waiting(SIZE);
    press(&mut app, "F<down><right>r");
    let s = &app.ui.syncs;
    assert_eq!((s.scroll.selected, s.sort_column, s.reverse), (1, Some(0), true));
    press(&mut app, "w<down><down>");
    assert_eq!((app.ui.syncs.slow_scroll.selected, state(&app).as_str()), (2, "Syncs/SlowSyncs"));
    press(&mut app, "\\wal<enter>");
    assert_eq!(app.ui.syncs.filter, "wal");
    press(&mut app, "<esc>");
    assert_eq!(app.ui.syncs.filter, "");
    press(&mut app, "F/base<enter>");
    assert_eq!(app.ui.message, None);
    press(&mut app, "/nowhere<enter>");
    assert!(app.ui.message.as_ref().is_some_and(|m| m.is_error));
}

#[test]
fn a_process_that_has_ended_is_not_opened() {
    let mut app = waiting(SIZE);
    press(&mut app, "F<enter>");
    assert!(app.ui.message.as_ref().is_some_and(|m| m.text.contains("has ended")), "{:?}", app.ui.message);
}

#[test]
fn nothing_is_traced_for_a_recording() {
    use crate::tui::replay::ReplayUi;
    let mut app = app(SIZE);
    let host = app.system.host.clone();
    app.ui.replay = Some(ReplayUi::new("x", host, Default::default(), Default::default()));
    assert_eq!(asked(&mut app, "F1F"), []);
}
