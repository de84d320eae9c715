//! The keys in force: the table of keys, changed as the config file says.

use super::action::Action;
use super::action_name::action_name;
use super::keymap::KeyContext::{Dialog, Help, TuneLeave};
use super::keymap::{BINDINGS, KeyBinding, KeyContext, parse_key};
use crate::sanitize::sanitize;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One key, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a key or a list of keys, such as \"t\" or [\"t\", \"F5\"]")]
pub enum KeyNames {
    #[expect(missing_docs, reason = "the name says it")]
    One(String),
    #[expect(missing_docs, reason = "the name says it")]
    Several(Vec<String>),
}

impl KeyNames {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// The section `keys` of the config file: names of actions, and their keys.
pub type KeySettings = BTreeMap<String, KeyNames>;

/// What is wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyError {
    /// The action, as it is in the file.
    pub(crate) action: String,
    pub(crate) problem: String,
}

/// The keys in force.
#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<KeyBinding>,
    settings: KeySettings,
}

impl Default for Keymap {
    fn default() -> Self {
        Self { bindings: BINDINGS.clone(), settings: KeySettings::new() }
    }
}

/// Whether the keys of a context are fixed: those that answer a question, and those of the help.
fn is_fixed(context: KeyContext) -> bool {
    matches!(context, Dialog | TuneLeave | Help)
}

/// Whether a key always does the same: Ctrl-C ends the program whatever the file says.
fn is_fixed_key(binding: &KeyBinding) -> bool {
    is_fixed(binding.context) || binding.ctrl && binding.code == KeyCode::Char('c')
}

impl Keymap {
    /// The table of keys with these settings.
    ///
    /// # Errors
    /// No action has that name, no key has that name, or another action has the key.
    pub(crate) fn new(settings: &KeySettings) -> Result<Self, KeyError> {
        let mut bindings = BINDINGS.clone();
        let mut changed: Vec<Action> = Vec::new();
        for (name, keys) in settings {
            let fail = |problem: String| KeyError { action: name.clone(), problem };
            let is_named = |b: &KeyBinding| !is_fixed_key(b) && action_name(b.action) == *name;
            let action = BINDINGS.iter().find(|b| is_named(b)).map(|b| b.action);
            let action = action.ok_or_else(|| fail(unknown_action(name)))?;
            let keys: Result<Vec<_>, String> = keys.names().iter().map(|key| named_key(key)).collect();
            replace_keys(&mut bindings, action, &keys.map_err(fail)?);
            changed.push(action);
        }
        for action in changed {
            if let Some(problem) = conflict(&bindings, action) {
                return Err(KeyError { action: action_name(action), problem });
            }
        }
        Ok(Self { bindings, settings: settings.clone() })
    }

    /// Every key, in the order of the help.
    pub(crate) fn bindings(&self) -> &[KeyBinding] {
        &self.bindings
    }

    /// The section of the config file.
    pub(crate) fn settings(&self) -> &KeySettings {
        &self.settings
    }

    /// What a key means; `contexts` from the most specific to the most general.
    pub(crate) fn lookup_action(&self, contexts: &[KeyContext], event: &KeyEvent) -> Option<Action> {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        if event.modifiers.contains(KeyModifiers::ALT) {
            return None;
        }
        let is_key = |b: &&KeyBinding| b.code == event.code && b.ctrl == ctrl;
        contexts
            .iter()
            .find_map(|context| self.bindings.iter().filter(|b| b.context == *context).find(is_key).map(|b| b.action))
    }

    /// The first key of an action, as it is shown; a dash if it has none.
    pub(crate) fn key_of(&self, action: Action) -> &str {
        self.bindings.iter().find(|b| b.action == action).map_or("-", |b| &b.name)
    }

    /// The keys of the footer for these contexts, most specific first, one for each action.
    pub(crate) fn footer_bindings(&self, contexts: &[KeyContext]) -> Vec<&KeyBinding> {
        let mut out: Vec<&KeyBinding> = Vec::new();
        for context in contexts {
            for b in self.bindings.iter().filter(|b| b.context == *context && !b.footer.is_empty()) {
                if !out.iter().any(|o| o.action == b.action || o.name == b.name) {
                    out.push(b);
                }
            }
        }
        out
    }
}

/// Gives an action these keys in place of its own, in every context that it has keys in.
fn replace_keys(bindings: &mut Vec<KeyBinding>, action: Action, keys: &[(String, KeyCode, bool)]) {
    let mut done: Vec<KeyContext> = Vec::new();
    let old = std::mem::take(bindings);
    for b in old {
        if b.action != action || is_fixed_key(&b) {
            bindings.push(b);
        } else if !done.contains(&b.context) {
            done.push(b.context);
            bindings.extend(keys.iter().map(|(name, code, ctrl)| KeyBinding {
                name: name.clone().into(),
                code: *code,
                ctrl: *ctrl,
                ..b.clone()
            }));
        }
    }
}

/// Which other action has a key of this one. A letter means the same in every view, so the context does not matter; the
/// table itself gives some keys, such as the arrows, two meanings in different views.
fn conflict(bindings: &[KeyBinding], action: Action) -> Option<String> {
    let is_default = |b: &KeyBinding| BINDINGS.iter().any(|d| (d.action, d.code, d.ctrl) == (b.action, b.code, b.ctrl));
    let own = bindings.iter().filter(|b| b.action == action && !is_fixed(b.context));
    own.filter(|b| !is_default(b)).find_map(|b| {
        let is_same = |o: &&KeyBinding| (o.code, o.ctrl) == (b.code, b.ctrl) && o.action != action;
        let other = bindings.iter().filter(|o| !is_fixed(o.context)).find(is_same)?;
        let context: &str = other.context.into();
        Some(format!("\"{}\" is the key of {} ({context}: {})", b.name, action_name(other.action), other.help))
    })
}

fn unknown_action(name: &str) -> String {
    let mut names: Vec<String> = BINDINGS.iter().filter(|b| !is_fixed_key(b)).map(|b| action_name(b.action)).collect();
    names.sort();
    names.dedup();
    format!("no action \"{}\"; there are {}", sanitize(name), names.join(", "))
}

/// The name, as it is shown, and the code of a key of the config file.
fn named_key(name: &str) -> Result<(String, KeyCode, bool), String> {
    let shown = match name {
        "Up" => "↑",
        "Down" => "↓",
        "Left" => "←",
        "Right" => "→",
        "Shift-Tab" => "S-Tab",
        _ => name,
    };
    let shown = match shown.strip_prefix("Ctrl-") {
        Some(letter) if letter.len() == 1 => format!("^{}", letter.to_uppercase()),
        _ => shown.to_owned(),
    };
    let (code, ctrl) = parse_key(&shown);
    let is_character = matches!(code, KeyCode::Char(_));
    let is_whole = match code {
        KeyCode::Char(' ') => shown == "Space",
        KeyCode::Char(c) if ctrl => c.is_ascii_alphabetic() && shown.len() == 2,
        KeyCode::Char(c) => shown.chars().count() == 1 && crate::sanitize::is_safe(c),
        KeyCode::F(n) => (1..=12).contains(&n),
        _ => true,
    };
    if !is_whole || ctrl && !is_character || shown == "^C" {
        return Err(format!(
            "\"{}\" is no key that can be chosen; write a character, F1 to F12, Ctrl-A to Ctrl-Z but not Ctrl-C, Space, \
             Enter, Esc, Tab, Shift-Tab, Backspace, Delete, Home, End, PgUp, PgDn, Up, Down, Left or Right",
            sanitize(name)
        ));
    }
    Ok((shown, code, ctrl))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keymap(text: &str) -> Result<Keymap, KeyError> {
        Keymap::new(&toml::from_str::<KeySettings>(text).unwrap())
    }

    fn press(keymap: &Keymap, contexts: &[KeyContext], c: char) -> Option<Action> {
        keymap.lookup_action(contexts, &KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    #[test]
    fn configured_keys_replace_those_of_the_table_everywhere() {
        use KeyContext::{Columns, Devices, Global, List, Processes};
        let keys = keymap("toggle-tree = \"V\"\ntoggle-active-only = [\"Q\", \"F12\"]\nquit = \"Ctrl-Q\"").unwrap();
        let contexts = [Processes, Columns, List, Global];
        assert_eq!(press(&keys, &contexts, 'V'), Some(Action::ToggleTree));
        assert_eq!(press(&keys, &contexts, 't'), None);
        for context in [Processes, Devices] {
            assert_eq!(press(&keys, &[context], 'Q'), Some(Action::ToggleActiveOnly));
        }
        assert_eq!((keys.key_of(Action::ToggleTree), keys.key_of(Action::Explain)), ("V", "e"));
        assert!(keys.footer_bindings(&contexts).iter().any(|b| b.name == "Q" && b.footer == "active"));
        assert_eq!(press(&keys, &contexts, 'q'), None);
        for c in ['c', 'q'] {
            let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
            assert_eq!(keys.lookup_action(&contexts, &event), Some(Action::Quit), "Ctrl-{c}");
        }
        let none = keymap("toggle-tree = []").unwrap();
        assert_eq!(press(&none, &contexts, 't'), None);
    }

    #[test]
    fn keys_that_another_action_has_are_refused() {
        let problem = |text: &str| keymap(text).unwrap_err();
        let taken = problem("toggle-tree = \"g\"");
        assert_eq!(taken.action, "toggle-tree");
        assert!(taken.problem.starts_with("\"g\" is the key of next-graph (Devices"), "{}", taken.problem);
        assert!(problem("toggle-tree = \"V\"\nexplain = \"V\"").problem.contains("toggle-tree"));
        assert!(problem("tree = \"V\"").problem.contains("toggle-tree"), "the names there are");
        for wrong in ["", "F13", "tt", "Ctrl-", "Ctrl-C", "Ctrl-1", "^C", "Meta-x", " ", "\\u001b"] {
            let problem = problem(&format!("toggle-tree = \"{wrong}\"")).problem;
            assert!(problem.contains("is no key"), "{wrong:?}: {problem}");
            assert!(problem.chars().all(crate::sanitize::is_safe));
        }
    }

    #[test]
    fn two_actions_may_swap_their_keys_and_the_table_itself_is_no_conflict() {
        let swapped = keymap("toggle-tree = [\"e\", \"F5\"]\nexplain = \"t\"").unwrap_err();
        assert!(swapped.problem.contains("tune-knob-page"), "the same key in Tune: {}", swapped.problem);
        keymap("toggle-tree = [\"a\"]\ntoggle-totals = \"t\"").unwrap();
        let mut all = KeySettings::new();
        for b in BINDINGS.iter().filter(|b| !is_fixed_key(b)) {
            let entry = all.entry(action_name(b.action)).or_insert_with(|| KeyNames::Several(Vec::new()));
            let KeyNames::Several(names) = entry else { continue };
            if !names.contains(&b.name.to_string()) {
                names.push(b.name.to_string());
            }
        }
        // `→` is bound to actions of the same key in different views only by the table.
        let names = |name: &str| all[name].names().len();
        assert_eq!(names("toggle-tree"), 2);
        for (name, keys) in &all {
            let one = KeySettings::from([(name.clone(), keys.clone())]);
            if let Err(err) = Keymap::new(&one) {
                panic!("{name} = {keys:?}: {}", err.problem);
            }
        }
    }
}
