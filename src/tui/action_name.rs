//! The names of actions in the config file.

use super::action::{Action, ReplayAction};

/// `toggle-tree`, `show-memory`, `tune-apply`.
pub fn action_name(action: Action) -> String {
    let (group, word) = match action {
        Action::ShowView(view) => ("show-", <&str>::from(view)),
        Action::MoveSelection(by) => ("", if by < 0 { "Up" } else { "Down" }),
        Action::MovePage(by) => ("", if by < 0 { "PageUp" } else { "PageDown" }),
        Action::Run(action) => ("run-", action.into()),
        Action::Tune(action) => ("tune-", action.into()),
        Action::Experiment(action) => ("experiment-", action.into()),
        Action::Fleet(action) => ("fleet-", action.into()),
        Action::Replay(action) => ("replay-", replay_word(action)),
        other => ("", other.into()),
    };
    let mut out = String::from(group);
    for c in word.chars() {
        if c.is_uppercase() && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn replay_word(action: ReplayAction) -> &'static str {
    match action {
        ReplayAction::StepTicks(by) if by < 0 => "StepBack",
        ReplayAction::StepTicks(_) => "StepForward",
        ReplayAction::SkipSecs(secs) => match secs {
            ..-60 => "TenMinutesBack",
            -60..0 => "MinuteBack",
            0..=60 => "MinuteForward",
            61.. => "TenMinutesForward",
        },
        ReplayAction::JumpToFinding { forward: true } => "NextFinding",
        ReplayAction::JumpToFinding { forward: false } => "PreviousFinding",
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::{ExperimentAction, RunAction, TuneAction, ViewId};
    use crate::tui::keymap::BINDINGS;
    use std::collections::HashMap;

    #[test]
    fn every_action_with_a_key_has_a_name_of_its_own() {
        let mut names: HashMap<String, Action> = HashMap::new();
        for b in BINDINGS.iter() {
            let name = action_name(b.action);
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert_eq!(*names.entry(name.clone()).or_insert(b.action), b.action, "{name}");
        }
        assert_eq!(action_name(Action::ShowView(ViewId::Memory)), "show-memory");
        assert_eq!(action_name(Action::Tune(TuneAction::KnobPage)), "tune-knob-page");
        assert_eq!(action_name(Action::Run(RunAction::Start)), "run-start");
        assert_eq!(action_name(Action::Experiment(ExperimentAction::Keep)), "experiment-keep");
    }
}
