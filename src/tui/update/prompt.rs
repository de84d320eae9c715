//! Editing a prompt, and what Enter does.

use super::{actions, command, screenshot};
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::tune::update as tune;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longest input, bytes.
const MAX_INPUT_BYTES: usize = 1024;

/// Handles a key while a prompt is open.
pub fn on_key(app: &mut App, key: KeyEvent, effects: &mut Vec<Effect>) {
    let Some(Overlay::Prompt(mut p)) = app.screen.overlay.take() else { return };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => return on_cancel(app, &p),
        KeyCode::Char('c' | 'g') if ctrl => return on_cancel(app, &p),
        KeyCode::Enter => {
            let (what, text) = (p.purpose, p.text.clone());
            if let Err(why) = submit(app, what, text.trim(), effects) {
                p.error = Some(crate::sanitize::sanitize(why));
                app.screen.overlay = Some(Overlay::Prompt(p));
            }
            return;
        }
        KeyCode::Up | KeyCode::Down if p.purpose == PromptPurpose::KnobValue => {
            tune::cycle_choice(app, &mut p, key.code)
        }
        KeyCode::Up | KeyCode::Down if matches!(p.purpose, PromptPurpose::FormLine(..)) => {
            if let PromptPurpose::FormLine(page, _) = p.purpose {
                app.update_view(page, effects, |view, _, _| view.on_prompt_key(&mut p, key.code));
            }
        }
        code if p.purpose == PromptPurpose::ScreenshotPath && screenshot::is_option_key(code) => {
            screenshot::change_option(app, &mut p, code)
        }
        _ => edit_text(&mut p, key, ctrl),
    }
    if p.purpose == PromptPurpose::KnobValue {
        tune::update_preview(app, &p.text);
    }
    app.screen.overlay = Some(Overlay::Prompt(p));
}

/// The prompt was closed without Enter.
fn on_cancel(app: &mut App, p: &Prompt) {
    if p.purpose == PromptPurpose::ScreenshotPath {
        screenshot::cancel_capture(app);
    }
}

fn edit_text(p: &mut Prompt, key: KeyEvent, ctrl: bool) {
    let before = |p: &Prompt| p.text[..p.cursor].chars().next_back().map_or(0, char::len_utf8);
    let after = |p: &Prompt| p.text[p.cursor..].chars().next().map_or(0, char::len_utf8);
    p.error = None;
    match key.code {
        KeyCode::Char('u') if ctrl => {
            p.text.drain(..p.cursor);
            p.cursor = 0;
        }
        KeyCode::Char('a') if ctrl => p.cursor = 0,
        KeyCode::Char('e') if ctrl => p.cursor = p.text.len(),
        KeyCode::Char('w') if ctrl => {
            let head = p.text[..p.cursor].trim_end();
            let keep = head.rfind(' ').map_or(0, |at| at + 1);
            p.text.drain(keep..p.cursor);
            p.cursor = keep;
        }
        KeyCode::Char(c) if !ctrl && crate::sanitize::is_safe(c) && p.text.len() < MAX_INPUT_BYTES => {
            p.text.insert(p.cursor, c);
            p.cursor += c.len_utf8();
        }
        KeyCode::Backspace => {
            let n = before(p);
            p.text.drain(p.cursor - n..p.cursor);
            p.cursor -= n;
        }
        KeyCode::Delete => {
            let n = after(p);
            p.text.drain(p.cursor..p.cursor + n);
        }
        KeyCode::Left => p.cursor -= before(p),
        KeyCode::Right => p.cursor += after(p),
        KeyCode::Home => p.cursor = 0,
        KeyCode::End => p.cursor = p.text.len(),
        _ => {}
    }
}

/// Acts on the text typed, or returns what is wrong with it.
fn submit(app: &mut App, what: PromptPurpose, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    match what {
        PromptPurpose::Search => {
            app.screen.search = text.to_owned();
            search(app, 0, effects);
        }
        PromptPurpose::Filter => set_filter(app, text, effects),
        // An empty text changes nothing.
        PromptPurpose::Interval
        | PromptPurpose::KnobValue
        | PromptPurpose::Lease
        | PromptPurpose::RecordingPath
        | PromptPurpose::ReplayTime
            if text.is_empty() => {}
        PromptPurpose::ScreenshotPath => screenshot::write_capture(app, text, effects)?,
        PromptPurpose::RecordingPath => crate::tui::views::replay::update::start_recording(app, text, effects)?,
        PromptPurpose::ReplayTime => crate::tui::views::replay::update::seek_to_typed_time(app, text, effects)?,
        PromptPurpose::Interval => actions::set_interval(app, parse_interval(text)?, effects),
        PromptPurpose::Command => command::run_command(app, text, effects)?,
        PromptPurpose::Include | PromptPurpose::Exclude => input(app, PaneId::KernelLog, what, text, effects)?,
        PromptPurpose::UserFilter | PromptPurpose::Ionice(_) => input(app, PaneId::Processes, what, text, effects)?,
        PromptPurpose::KnobValue => tune::propose_typed(app, text)?,
        PromptPurpose::Lease => tune::set_lease_duration(app, text)?,
        PromptPurpose::FormLine(page, _) => input(app, page, what, text, effects)?,
        PromptPurpose::ExperimentReportPath => input(app, PaneId::ExperimentPage, what, text, effects)?,
    }
    Ok(())
}

/// Passes the line to the view that asked for it.
fn input(
    app: &mut App,
    pane: PaneId,
    purpose: PromptPurpose,
    text: &str,
    effects: &mut Vec<Effect>,
) -> Result<(), String> {
    app.update_view(pane, effects, |view, cx, out| view.on_input(purpose, text, cx, out)).unwrap_or(Ok(()))
}

/// Parses seconds within the range.
pub fn parse_interval(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|s| INTERVAL_SECS_RANGE.contains(s))
        .ok_or_else(|| format!("\"{text}\": the interval is 0.1 to 3600 seconds"))
}

/// The filter of the focused pane.
pub fn current_filter(app: &App) -> String {
    let pane = app.focused_pane();
    match app.views.of_pane(pane) {
        Some(view) => view.filter(pane).to_owned(),
        None => app.views.tune.filter.clone(),
    }
}

fn set_filter(app: &mut App, text: &str, effects: &mut Vec<Effect>) {
    let pane = app.focused_pane();
    if app.update_view(pane, effects, |view, cx, _| view.set_filter(pane, text, cx)).is_none() {
        tune::set_filter(app, text);
    }
}

/// Selects the next row that contains the search text: `by` 1 after the selected one, -1 before it, 0 from it on.
pub fn search(app: &mut App, by: isize, effects: &mut Vec<Effect>) {
    let needle = app.screen.search.to_lowercase();
    if needle.is_empty() {
        return app.screen.error("nothing to search for: / asks");
    }
    let pane = app.focused_pane();
    let found = app.with_view(pane, |view, cx| {
        let rows = view.search(pane, &needle, cx);
        next_match(&rows, view.selected_row(pane), by)
    });
    match found {
        Some(Some(row)) => {
            app.update_view(pane, effects, |view, cx, _| view.select_row(pane, row, cx));
            return;
        }
        Some(None) => {
            let text = app.screen.search.clone();
            return app.screen.error(format!("\"{text}\" not found"));
        }
        None => {}
    }
    let rows = tune::matching_lines(app, &needle);
    match next_match(&rows, app.views.tune.scroll.selected, by) {
        Some(row) => app.views.tune.scroll.selected = row,
        None => app.screen.error(format!("\"{needle}\" not found")),
    }
}

/// The first row that matches, from the selected one (`by` 0), the one after it (1) or the one before it (-1) on.
fn next_match(rows: &[bool], selected: usize, by: isize) -> Option<usize> {
    let (n, from) = (rows.len() as isize, selected as isize);
    let order = (0..n).map(|i| (from + by + if by < 0 { -i } else { i }).rem_euclid(n.max(1)) as usize);
    order.into_iter().find(|i| rows[*i])
}
