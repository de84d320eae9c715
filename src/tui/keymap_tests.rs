//! The table of keys: no doubles, the specific context wins, every view has its key.

use super::action::{Action, ViewId};
use super::keymap::KeyContext::{Devices, Global, Kernel, List};
use super::keymap::{BINDINGS, lookup_action};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::HashSet;

#[test]
fn keys_are_unique_within_a_context() {
    let mut seen = HashSet::new();
    for b in BINDINGS.iter() {
        assert!(seen.insert((b.context, b.code, b.ctrl)), "{} twice in {:?}", b.name, b.context);
        assert!(!b.help.is_empty());
    }
}

#[test]
fn specific_contexts_take_precedence() {
    let f = KeyEvent::new(KeyCode::Char('f'), KeyModifiers::NONE);
    assert_eq!(lookup_action(&[Kernel, List, Global], &f), Some(Action::ToggleFold));
    assert_eq!(lookup_action(&[Devices, List, Global], &f), None);
    let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(lookup_action(&[Global], &quit), Some(Action::Quit));
    let plain = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
    assert_eq!(lookup_action(&[Global], &plain), None);
    let shifted = KeyEvent::new(KeyCode::Char('D'), KeyModifiers::SHIFT);
    assert_eq!(lookup_action(&[Global], &shifted), Some(Action::ResetCounters));
}

#[test]
fn number_keys_select_views_in_order() {
    for (i, view) in ViewId::ALL.into_iter().enumerate() {
        let c = char::from_digit((i as u32 + 1) % 10, 10).unwrap();
        let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        assert_eq!(lookup_action(&[Global], &event), Some(Action::ShowView(view)));
    }
}
