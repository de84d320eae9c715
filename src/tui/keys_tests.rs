//! The table of keys: no doubles, the specific context wins, every view has its key.

use super::action::{Action, View};
use super::keys::Context::{Devices, Global, Kernel, List};
use super::keys::{BINDINGS, lookup, name};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::HashSet;

#[test]
fn no_key_means_two_things_in_one_context() {
    let mut seen = HashSet::new();
    for b in BINDINGS {
        assert!(seen.insert((b.context, b.code, b.ctrl)), "{} twice in {:?}", name(b), b.context);
        assert!(!b.help.is_empty());
    }
}

#[test]
fn the_specific_context_wins() {
    let f = KeyEvent::new(KeyCode::Char('f'), KeyModifiers::NONE);
    assert_eq!(lookup(&[Kernel, List, Global], &f), Some(Action::Fold));
    assert_eq!(lookup(&[Devices, List, Global], &f), None);
    let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(lookup(&[Global], &quit), Some(Action::Quit));
    let plain = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
    assert_eq!(lookup(&[Global], &plain), None);
    let shifted = KeyEvent::new(KeyCode::Char('D'), KeyModifiers::SHIFT);
    assert_eq!(lookup(&[Global], &shifted), Some(Action::ResetCounters));
}

#[test]
fn every_view_has_its_number() {
    for (i, view) in View::ALL.into_iter().enumerate() {
        let c = char::from_digit(i as u32 + 1, 10).unwrap();
        let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        assert_eq!(lookup(&[Global], &event), Some(Action::View(view)));
    }
}
