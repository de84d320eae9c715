//! Typing in a line of input, and what Enter does with it.

use super::{actions, command, screenshot, tune};
use crate::model::kernel_log::LogPatterns;
use crate::model::process::{IoPrio, TaskKey};
use crate::tui::effect::Effect;
use crate::tui::panes::{PaneId, devices, kernel_log};
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::state::{App, Dialog, Overlay, PendingChange, Prompt, PromptPurpose};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longest input kept.
const MAX_INPUT_BYTES: usize = 1024;

/// A key while a line of input is open.
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
        KeyCode::Up | KeyCode::Down if matches!(p.purpose, PromptPurpose::ExperimentField(_)) => {
            if let PromptPurpose::ExperimentField(at) = p.purpose {
                super::experiment::edit::cycle_workload(app, at, &mut p, key.code);
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

/// Left without Enter.
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

/// What was typed, done; or what is wrong with it.
fn submit(app: &mut App, what: PromptPurpose, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    match what {
        PromptPurpose::Search => {
            app.screen.search = text.to_owned();
            search(app, 0, effects);
        }
        PromptPurpose::Filter => set_filter(app, text, effects),
        PromptPurpose::UserFilter => app.views.processes.filter.user = (!text.is_empty()).then(|| text.to_owned()),
        // Nothing typed, nothing changed.
        PromptPurpose::Interval
        | PromptPurpose::Ionice(_)
        | PromptPurpose::KnobValue
        | PromptPurpose::Lease
        | PromptPurpose::RecordingPath
        | PromptPurpose::ReplayTime
            if text.is_empty() => {}
        PromptPurpose::ScreenshotPath => screenshot::write_capture(app, text, effects)?,
        PromptPurpose::RecordingPath => super::replay::start_recording(app, text, effects)?,
        PromptPurpose::ReplayTime => super::replay::seek_to_typed_time(app, text, effects)?,
        PromptPurpose::Interval => actions::set_interval(app, parse_interval(text)?, effects),
        PromptPurpose::Command => command::run_command(app, text, effects)?,
        PromptPurpose::Include => set_log_patterns(app, Some(text.to_owned()), app.views.kernel_log.exclude.clone())?,
        PromptPurpose::Exclude => set_log_patterns(app, app.views.kernel_log.include.clone(), Some(text.to_owned()))?,
        PromptPurpose::KnobValue => tune::propose_typed(app, text)?,
        PromptPurpose::Lease => tune::set_lease_duration(app, text)?,
        PromptPurpose::BenchField(at) => super::bench::edit::set_from_prompt(app, at, text, effects)?,
        PromptPurpose::ExperimentField(at) => super::experiment::edit::set_from_prompt(app, at, text, effects)?,
        PromptPurpose::ExperimentReportPath => super::experiment::write_report(app, text, effects)?,
        PromptPurpose::Ionice(key) => {
            let prio = parse_io_priority(text)?;
            app.screen.overlay = Some(Overlay::Dialog(ionice_dialog(app, key, prio)));
        }
    }
    Ok(())
}

/// Seconds within the range.
pub fn parse_interval(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|s| INTERVAL_SECS_RANGE.contains(s))
        .ok_or_else(|| format!("\"{text}\": the interval is 0.1 to 3600 seconds"))
}

/// `rt/0`, `be/4`, `idle`.
pub fn parse_io_priority(text: &str) -> Result<IoPrio, String> {
    let wrong = || format!("\"{text}\": class and level are rt/0 to rt/7, be/0 to be/7, or idle");
    if text == "idle" {
        return Ok(IoPrio { class: 3, level: 0 });
    }
    let (class, level) = text.split_once('/').ok_or_else(wrong)?;
    let class = match class {
        "rt" => 1,
        "be" => 2,
        _ => return Err(wrong()),
    };
    match level.parse::<u8>() {
        Ok(level @ 0..=7) => Ok(IoPrio { class, level }),
        _ => Err(wrong()),
    }
}

fn ionice_dialog(app: &App, key: TaskKey, prio: IoPrio) -> Dialog {
    let row = app.shared.system.processes.get(&key);
    let name = row.as_ref().map_or(String::new(), |r| r.comm.to_string());
    let now = row.and_then(|r| r.ionice).unwrap_or_else(|| "not known".into());
    let needs = match prio.class {
        1 => {
            "Real-time class: it goes before everything else and can starve the machine. Needs CAP_SYS_ADMIN or CAP_SYS_NICE."
        }
        3 => "Idle class: it is served only when nobody else wants the disk.",
        _ => "Needs to be the task's owner, or CAP_SYS_NICE.",
    };
    Dialog {
        title: "Set I/O priority".into(),
        text: format!(
            "ioprio_set(2) on task {} {name}: {now} -> {prio}\n{needs} Only schedulers that know priorities \
             (bfq, mq-deadline) act on it. It lasts until the task ends.",
            key.tid
        ),
        scroll: 0,
        on_confirm: PendingChange::IoPrio(key, prio),
    }
}

/// Sets both patterns, if both compile.
pub fn set_log_patterns(app: &mut App, include: Option<String>, exclude: Option<String>) -> Result<(), String> {
    let patterns = LogPatterns::new(include.as_deref(), exclude.as_deref()).map_err(|err| err.to_string())?;
    app.views.kernel_log.patterns = patterns;
    app.views.kernel_log.include = include.filter(|p| !p.is_empty());
    app.views.kernel_log.exclude = exclude;
    kernel_log::refresh_visible_entries(app);
    Ok(())
}

/// The focused list's filter.
pub fn current_filter(app: &App) -> String {
    let pane = app.focused_pane();
    if let Some(filter) = app.views.of_pane(pane).map(|view| view.filter(pane).to_owned()) {
        return filter;
    }
    match pane {
        PaneId::Processes => app.views.processes.filter.text.clone().unwrap_or_default(),
        PaneId::KernelLog => app.views.kernel_log.filter.clone(),
        PaneId::TuneKnobs => app.views.tune.filter.clone(),
        _ => app.views.devices.filter.clone(),
    }
}

fn set_filter(app: &mut App, text: &str, effects: &mut Vec<Effect>) {
    let pane = app.focused_pane();
    if app.update_view(pane, effects, |view, cx, _| view.set_filter(pane, text, cx)).is_some() {
        return;
    }
    match app.focused_pane() {
        PaneId::Processes => app.views.processes.filter.text = (!text.is_empty()).then(|| text.to_owned()),
        PaneId::KernelLog => {
            app.views.kernel_log.filter = text.to_owned();
            kernel_log::refresh_visible_entries(app);
        }
        PaneId::TuneKnobs => tune::set_filter(app, text),
        _ => app.views.devices.filter = text.to_owned(),
    }
}

/// Moves the selection to the next row that contains the text searched for: `by` 1 forwards, -1 back, 0
/// from the selected row on.
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
    let rows: Vec<bool> = match pane {
        PaneId::Processes => app.tasks_containing(&needle),
        PaneId::KernelLog => {
            kernel_log::visible_entries(app).map(|e| e.message.to_lowercase().contains(&needle)).collect()
        }
        PaneId::TuneKnobs => tune::matching_lines(app, &needle),
        _ => devices::device_lines(app).iter().map(|l| l.label.to_lowercase().contains(&needle)).collect(),
    };
    let scroll = match pane {
        PaneId::Processes => &mut app.views.processes.scroll,
        PaneId::KernelLog => &mut app.views.kernel_log.scroll,
        PaneId::TuneKnobs => &mut app.views.tune.scroll,
        _ => &mut app.views.devices.scroll,
    };
    match next_match(&rows, scroll.selected, by) {
        Some(at) => {
            scroll.selected = at;
            if pane == PaneId::KernelLog {
                app.views.kernel_log.follows_newest = false;
            }
        }
        None => {
            let text = app.screen.search.clone();
            app.screen.error(format!("\"{text}\" not found"));
        }
    }
}

/// The first row that matches, from the selected one (`by` 0), the one after it (1) or the one before it (-1) on.
fn next_match(rows: &[bool], selected: usize, by: isize) -> Option<usize> {
    let (n, from) = (rows.len() as isize, selected as isize);
    let order = (0..n).map(|i| (from + by + if by < 0 { -i } else { i }).rem_euclid(n.max(1)) as usize);
    order.into_iter().find(|i| rows[*i])
}
