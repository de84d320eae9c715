//! Keys nobody would press, at sizes nobody has.

use super::draw_screen;
use super::fixture::{self, app, send_processes};
use crate::tui::app::update;
use crate::tui::keymap::BINDINGS;
use crate::tui::view::Event;
use crossterm::event::{KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;

/// A key that somebody could press, most of them meaningful.
fn any_key() -> impl Strategy<Value = Event> {
    let bound = (0..BINDINGS.len()).prop_map(|i| {
        let b = &BINDINGS[i];
        let modifiers = if b.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
        Event::Key(KeyEvent::new(b.code, modifiers))
    });
    let typed =
        any::<char>().prop_map(|c| Event::Key(KeyEvent::new(crossterm::event::KeyCode::Char(c), KeyModifiers::NONE)));
    let edit = prop::sample::select(vec![
        "<left>", "<right>", "<bs>", "<del>", "<home>", "<end>", "<enter>", "<c-w>", "<c-u>",
    ])
    .prop_map(|k| match fixture::parse_keys(k).pop() {
        Some(crossterm::event::Event::Key(key)) => Event::Key(key),
        other => panic!("{other:?}"),
    });
    let mouse = (0..130u16, 0..50u16, 0..4u8).prop_map(|(column, row, what)| {
        let kind = match what {
            0 => MouseEventKind::Down(MouseButton::Left),
            1 => MouseEventKind::ScrollUp,
            2 => MouseEventKind::Down(MouseButton::Right),
            _ => MouseEventKind::ScrollDown,
        };
        Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    });
    let size = (0..200u16, 0..60u16).prop_map(|(w, h)| Event::Resize(w, h));
    prop_oneof![8 => bound, 2 => typed, 3 => edit, 2 => mouse, 1 => size]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_key_at_no_size_is_the_end(
        size in (0..220u16, 0..60u16),
        events in prop::collection::vec(any_key(), 0..60),
    ) {
        let mut app = app(size);
        draw_screen(&app);
        for event in events {
            let threads = app.views.processes.show_threads;
            update(&mut app, event);
            if threads != app.views.processes.show_threads {
                send_processes(&mut app, false);
                send_processes(&mut app, true);
            }
            draw_screen(&app);
        }
    }
}
