//! Taking a screenshot: capture, format, file name.

use crate::export::screenshot::{FORMATS, format_of_file};
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::WorkerJob;
use crate::tui::effect::Effect;
use crate::tui::screenshot::ScreenCapture;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crossterm::event::KeyCode;
use std::path::PathBuf;

/// Captures the screen and asks for a file name.
pub fn begin_capture(app: &mut App) {
    let mut taken = ScreenCapture::new(app);
    taken.overlay = app.screen.overlay.take();
    let text = app.screen.screenshot.path_for(&taken.file_name(app.screen.screenshot.format()));
    app.screen.screenshot.pending = Some(Box::new(taken));
    let cursor = text.len();
    app.screen.overlay =
        Some(Overlay::Prompt(Prompt { purpose: PromptPurpose::ScreenshotPath, text, cursor, error: None }));
}

/// Whether a key selects an option instead of editing the name.
pub fn is_option_key(code: KeyCode) -> bool {
    matches!(code, KeyCode::Up | KeyCode::Down | KeyCode::Tab)
}

/// Selects the next format, or the pane instead of the screen; keeps the typed name as far as possible.
pub fn change_option(app: &mut App, prompt: &mut Prompt, code: KeyCode) {
    let ui = &mut app.screen.screenshot;
    let Some(mut taken) = ui.pending.take() else { return };
    let typed = format_of_file(&prompt.text);
    let old = taken.file_name(typed.unwrap_or(ui.format()));
    let at = typed.and_then(|typed| FORMATS.iter().position(|f| f.name == typed.name)).unwrap_or(ui.format_index);
    match code {
        KeyCode::Tab => taken.pane_only = !taken.pane_only,
        KeyCode::Down => ui.format_index = (at + 1) % FORMATS.len(),
        _ => ui.format_index = (at + FORMATS.len() - 1) % FORMATS.len(),
    }
    let form = if code == KeyCode::Tab { typed.unwrap_or(ui.format()) } else { ui.format() };
    if let Some(directory) = prompt.text.strip_suffix(&old) {
        prompt.text = format!("{directory}{}", taken.file_name(form));
    } else if code != KeyCode::Tab {
        let ending = typed.map_or(0, |typed| typed.extension.len() + 1);
        prompt.text.truncate(prompt.text.len() - ending);
        prompt.text = format!("{}.{}", prompt.text, form.extension);
    }
    (prompt.cursor, prompt.error) = (prompt.text.len(), None);
    ui.pending = Some(taken);
}

/// The label of the prompt.
pub fn prompt_label(app: &App) -> String {
    let taken = app.screen.screenshot.pending.as_deref();
    let other = if taken.is_some_and(|t| t.pane_only) { "screen" } else { "pane" };
    format!("{} to file (Tab {other}, ↑↓ form): ", taken.map_or("screen", ScreenCapture::subject))
}

/// Writes the file in a child process. The extension selects the format.
pub fn write_capture(app: &mut App, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let Some(form) = format_of_file(text) else {
        let endings: Vec<String> = FORMATS.iter().map(|f| format!(".{}", f.extension)).collect();
        return Err(format!("the name's ending decides the form: {}", endings.join(" ")));
    };
    let Some(taken) = app.screen.screenshot.pending.take() else { return Ok(()) };
    app.screen.screenshot.select_format(form.name);
    let contents = (form.write)(&taken.to_screenshot()).into();
    let path = PathBuf::from(text);
    effects.push(Effect::RunJob(WorkerJob::WriteFile {
        path,
        contents,
        existing: IfExists::AddNumber,
        make_dir: false,
    }));
    app.screen.overlay = taken.overlay;
    Ok(())
}

/// Discards the capture and restores what was open.
pub fn cancel_capture(app: &mut App) {
    app.screen.overlay = app.screen.screenshot.pending.take().and_then(|taken| taken.overlay);
}
