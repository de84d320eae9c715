//! Hints name the keys that the config file gives to the actions.

use super::fixture::tune::{change_on_lease, view};
use super::fixture::{app, press};
use super::{SIZE, draw_screen};
use crate::tui::action_name::action_name;
use crate::tui::app::App;
use crate::tui::key_config::{KeyNames, KeySettings, Keymap};
use crate::tui::keymap::BINDINGS;
use crate::tui::view::{Action, ExperimentAction, KeyContext, RunAction, TuneAction, ViewId};

/// Gives each action that can have another key a letter of its own.
fn reassign_keys(app: &mut App) {
    let is_fixed = |context| matches!(context, KeyContext::Dialog | KeyContext::TuneLeave | KeyContext::Help);
    let mut settings = KeySettings::new();
    for b in BINDINGS.iter().filter(|b| !is_fixed(b.context)) {
        let letter = char::from_u32('Ā' as u32 + settings.len() as u32).unwrap();
        settings.entry(action_name(b.action)).or_insert_with(|| KeyNames::One(letter.to_string()));
    }
    app.shared.keymap = Keymap::new(&settings).unwrap();
}

fn screen(app: &App) -> String {
    let buffer = draw_screen(app);
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width).map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

fn key(app: &App, action: Action) -> String {
    app.shared.key(action).to_owned()
}

fn press_action(app: &mut App, action: Action) {
    let key = key(app, action);
    assert!(key.as_str() >= "Ā", "{action:?} has its own key {key}");
    press(app, &key);
}

fn assert_shown(app: &App, hints: &[String]) {
    let shown = screen(app);
    for hint in hints {
        assert!(shown.contains(hint.as_str()), "no {hint:?} in\n{shown}");
    }
}

#[test]
fn hints_of_the_tune_view_name_the_keys_in_force() {
    let tune = Action::Tune;
    let (mut app, tree) = view(SIZE);
    reassign_keys(&mut app);
    let [apply, keep, undo, renew] =
        [TuneAction::Apply, TuneAction::Keep, TuneAction::Undo, TuneAction::Renew].map(|it| key(&app, tune(it)));
    let [presets, graph, persist] =
        [TuneAction::Presets, TuneAction::Graph, TuneAction::Persist].map(|it| key(&app, tune(it)));
    let try_it = key(&app, Action::Experiment(ExperimentAction::TryPending));
    let [open, back] = [Action::Open, Action::Back].map(|action| key(&app, action));
    assert_shown(&app, &[format!("{open} edit  {presets} presets  {apply} apply  {try_it} experiment")]);
    assert_shown(&app, &[format!("{graph} graph  {persist} persist")]);
    press_action(&mut app, tune(TuneAction::Presets));
    assert_shown(&app, &[format!("{open} apply  {try_it} experiment  {back} close")]);
    press_action(&mut app, Action::Back);
    change_on_lease(&mut app, &tree, &["vm.swappiness=10"], 30);
    assert_shown(&app, &[format!("on lease: {keep} keep  {undo} undo  {renew} restart")]);
    press_action(&mut app, tune(TuneAction::Changes));
    assert_shown(&app, &[format!("{undo} Undo  {keep} Keep  {renew} Restart lease")]);
}

#[test]
fn hints_of_lists_and_pages_name_the_keys_in_force() {
    let mut app = app(SIZE);
    reassign_keys(&mut app);
    press_action(&mut app, Action::ShowView(ViewId::Devices));
    press_action(&mut app, Action::Filter);
    press(&mut app, "none<enter>");
    assert_shown(&app, &[format!("no device matches ({})", key(&app, Action::Back))]);
    press_action(&mut app, Action::ShowView(ViewId::Findings));
    assert_shown(&app, &[format!("{} goes there", key(&app, Action::Open))]);
    press_action(&mut app, Action::ShowView(ViewId::Processes));
    press_action(&mut app, Action::ToggleFold);
    let [threads, tree] = [Action::ToggleThreads, Action::ToggleTree].map(|action| key(&app, action));
    assert_shown(&app, &[format!("{threads} shows them, {tree} shows the tree")]);
    press_action(&mut app, Action::Open);
    assert_shown(&app, &[format!("{} reads its mappings", key(&app, Action::LoadMappings))]);
    press_action(&mut app, Action::Back);
    press_action(&mut app, Action::ShowView(ViewId::Bench));
    press_action(&mut app, Action::Run(RunAction::Mark));
    assert_shown(&app, &[format!("{} marks a kept result", key(&app, Action::Run(RunAction::Mark)))]);
    app.screen.size = (38, 8);
    let quit = key(&app, Action::Quit);
    assert!(screen(&app).contains(&format!("cells; {quit}")), "{}", screen(&app));
}
