//! The table of keys: no doubles, the specific context wins, every view has its key.

use super::action::{Action, ExperimentAction, FleetAction, ReplayAction, RunAction, TuneAction, ViewId};
use super::key_config::Keymap;
use super::keymap::KeyContext::{Devices, Dialog, Global, Help, Kernel, List, TuneLeave};
use super::keymap::{BINDINGS, KeyBinding, KeyContext};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::{HashMap, HashSet};

fn lookup_action(contexts: &[KeyContext], event: &KeyEvent) -> Option<Action> {
    Keymap::default().lookup_action(contexts, event)
}

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

/// Actions that do the same to different things share a key.
fn meaning(action: Action) -> Action {
    match action {
        Action::Experiment(ExperimentAction::Apply) => Action::Tune(TuneAction::Apply),
        Action::Experiment(ExperimentAction::Keep) => Action::Tune(TuneAction::Keep),
        Action::Tune(TuneAction::Graph) => Action::NextGraph,
        Action::Tune(TuneAction::KnobPage) => Action::Explain,
        Action::Fleet(FleetAction::CopyCommand) => Action::CopyPane,
        Action::ChooseColumns => Action::Run(RunAction::Edit),
        Action::Replay(ReplayAction::Last) => Action::MoveToLast,
        Action::Tune(TuneAction::Discard) => Action::Run(RunAction::Cancel),
        other => other,
    }
}

/// The letters and function keys that act in views; the answers to a question are apart.
fn keys_of_views() -> impl Iterator<Item = &'static KeyBinding> {
    let is_answer = |b: &KeyBinding| matches!(b.context, Dialog | TuneLeave | Help);
    let is_key = |b: &KeyBinding| match b.code {
        KeyCode::Char(c) => c.is_ascii_alphabetic() && !b.ctrl,
        code => matches!(code, KeyCode::F(_)),
    };
    BINDINGS.iter().filter(move |b| is_key(b) && !is_answer(b))
}

#[test]
fn a_key_means_the_same_in_every_view() {
    let mut meanings: HashMap<KeyCode, &KeyBinding> = HashMap::new();
    for b in keys_of_views() {
        let first = meanings.entry(b.code).or_insert(b);
        assert_eq!(meaning(first.action), meaning(b.action), "{} in {:?} and {:?}", b.name, first.context, b.context);
    }
}

#[test]
fn keys_that_change_the_machine_are_capitals_or_ask() {
    let changes = |action| {
        matches!(
            action,
            Action::Experiment(ExperimentAction::Apply | ExperimentAction::Keep)
                | Action::Run(RunAction::Start | RunAction::Cancel)
                | Action::Tune(
                    TuneAction::Apply | TuneAction::Keep | TuneAction::Undo | TuneAction::Renew | TuneAction::Persist
                )
        )
    };
    for b in keys_of_views() {
        assert!(!changes(b.action) || b.name.chars().all(char::is_uppercase), "{} in {:?}", b.name, b.context);
        assert!(b.name != "R" || b.action == Action::ToggleRecording, "R records and nothing else");
    }
    assert_eq!(keys_of_views().filter(|b| changes(b.action)).count(), 13);
}
