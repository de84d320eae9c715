//! Screenshots: the screen when the key was pressed, then the format and the name of the file.

use super::draw::render_to_buffer;
use super::state::App;
use crate::export::screenshot::colour::{DARK, LIGHT, Palette};
use crate::export::screenshot::{FORMATS, Screenshot, ScreenshotFormat, crop, format_of_file};
use crate::export::table::Table;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::WorkerJob;
use crate::tui::effect::Effect;
use crate::tui::screen::{Overlay, Prompt, PromptPurpose};
use crate::tui::shared::Shared;
use crate::tui::view::PaneId;
use crate::tui::widgets::theme::ThemeName;
use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::path::PathBuf;

/// Longest host name in a file name, characters.
const MAX_HOST_NAME_LEN: usize = 48;

/// Choices for screenshots, and the one that is being named.
#[derive(Debug, Default)]
pub struct ScreenshotState {
    /// Index in [`FORMATS`] of the format chosen last.
    format_index: usize,
    /// Where files go; empty: where the program was started.
    pub directory: String,
    /// Taken, and not written yet.
    pub(super) pending: Option<Box<ScreenCapture>>,
}

/// The screen at one moment.
#[derive(Debug, PartialEq)]
pub struct ScreenCapture {
    /// All cells.
    cells: Buffer,
    /// The focused pane and its area.
    pane: (PaneId, Rect),
    /// The tables of all panes, that of the focused one first.
    tables: Vec<Table>,
    palette: &'static Palette,
    host: String,
    /// Time of the tick shown, and the same in local time for the file name.
    timestamp: String,
    file_timestamp: String,
    /// Only the focused pane is written.
    pane_only: bool,
    /// What lay over the view, and the view that opened it.
    overlay: Option<(Overlay, Option<PaneId>)>,
}

impl ScreenshotState {
    /// The format chosen last.
    pub fn format(&self) -> &'static ScreenshotFormat {
        &FORMATS[self.format_index.min(FORMATS.len() - 1)]
    }

    /// Chooses a format by its name.
    pub fn select_format(&mut self, name: &str) {
        self.format_index = FORMATS.iter().position(|f| f.name == name).unwrap_or(self.format_index);
    }

    /// A file name below the directory.
    fn path_for(&self, name: &str) -> String {
        match self.directory.trim_end_matches('/') {
            "" | "." => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }
}

/// The colours of pictures of this screen.
fn palette_for(shared: &Shared) -> &'static Palette {
    if shared.theme_name == ThemeName::Light && !shared.no_color { &LIGHT } else { &DARK }
}

impl ScreenCapture {
    /// The screen as it is now.
    pub fn new(app: &App) -> Self {
        let cells = render_to_buffer(app);
        let (layout, pane) = app.arrange();
        let others = layout.panes.iter().map(|p| p.0).filter(|id| *id != pane);
        let mut tables: Vec<Table> = Vec::new();
        for id in std::iter::once(pane).chain(others) {
            let table = app.table(id);
            // Graphs have the table of what they show.
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let wall_ns = app.shared.snapshot().time.wall_ns;
        let local = wall_ns.saturating_add(app.shared.utc_offset_secs.saturating_mul(1_000_000_000));
        let digits = crate::units::format_rfc3339(local);
        Self {
            pane: (pane, layout.pane_area(pane).unwrap_or(cells.area)),
            cells,
            tables,
            palette: palette_for(&app.shared),
            host: app.shared.system.host.name.clone(),
            timestamp: crate::units::format_rfc3339(wall_ns),
            file_timestamp: digits.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect(),
            pane_only: false,
            overlay: None,
        }
    }

    /// What is written, in a word.
    fn subject(&self) -> &'static str {
        if self.pane_only { self.pane.0.file_name_part() } else { "screen" }
    }

    /// A file name that sorts: host, pane, time of the tick shown.
    pub fn file_name(&self, format: &ScreenshotFormat) -> String {
        format!("{}-{}-{}.{}", sanitize_file_name(&self.host), self.subject(), self.file_timestamp, format.extension)
    }

    /// What is written.
    pub fn to_screenshot(&self) -> Screenshot {
        let (cells, tables) = match self.pane_only {
            true => (crop(&self.cells, self.pane.1), self.tables[..1].to_vec()),
            false => (self.cells.clone(), self.tables.clone()),
        };
        let title = format!("iotop-plus on {}, {}, {}", self.host, self.subject(), self.timestamp);
        Screenshot {
            title: crate::sanitize::sanitize(title),
            cells,
            tables,
            is_single_pane: self.pane_only,
            palette: self.palette,
        }
    }
}

/// A host name without characters that are special in a shell or a file system.
fn sanitize_file_name(text: &str) -> String {
    let replace = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = text.chars().map(replace).take(MAX_HOST_NAME_LEN).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "host".into(),
        name => name.into(),
    }
}

impl App {
    /// Captures the screen and asks for a file name.
    pub(super) fn begin_capture(&mut self) {
        let mut capture = ScreenCapture::new(self);
        capture.overlay = self.screen.overlay.take().map(|overlay| (overlay, self.screen.overlay_owner));
        let text = self.screenshot.path_for(&capture.file_name(self.screenshot.format()));
        self.screenshot.pending = Some(Box::new(capture));
        self.open_prompt(PromptPurpose::ScreenshotPath, text);
    }

    /// Selects the next format (arrows), or the pane instead of the screen (Tab); keeps the typed name as far as possible.
    pub(super) fn change_capture_option(&mut self, prompt: &mut Prompt, key: KeyCode) {
        let screenshot = &mut self.screenshot;
        let Some(mut capture) = screenshot.pending.take() else { return };
        let typed = format_of_file(&prompt.text);
        let old_name = capture.file_name(typed.unwrap_or(screenshot.format()));
        let typed_index = typed.and_then(|typed| FORMATS.iter().position(|f| f.name == typed.name));
        let at = typed_index.unwrap_or(screenshot.format_index);
        match key {
            KeyCode::Tab => capture.pane_only = !capture.pane_only,
            KeyCode::Down => screenshot.format_index = (at + 1) % FORMATS.len(),
            _ => screenshot.format_index = (at + FORMATS.len() - 1) % FORMATS.len(),
        }
        let format = typed.filter(|_| key == KeyCode::Tab).unwrap_or(screenshot.format());
        if let Some(directory) = prompt.text.strip_suffix(&old_name) {
            prompt.text = format!("{directory}{}", capture.file_name(format));
        } else if key != KeyCode::Tab {
            let extension = typed.map_or(0, |typed| typed.extension.len() + 1);
            prompt.text.truncate(prompt.text.len() - extension);
            prompt.text = format!("{}.{}", prompt.text, format.extension);
        }
        (prompt.cursor, prompt.error) = (prompt.text.len(), None);
        screenshot.pending = Some(capture);
    }

    /// The label of the prompt.
    pub(super) fn capture_prompt_label(&self) -> String {
        let capture = self.screenshot.pending.as_deref();
        let other = if capture.is_some_and(|c| c.pane_only) { "screen" } else { "pane" };
        format!("{} to file (Tab {other}, ↑↓ form): ", capture.map_or("screen", ScreenCapture::subject))
    }

    /// Writes the file in a child process. The extension selects the format.
    pub(super) fn write_capture(&mut self, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
        let Some(format) = format_of_file(text) else {
            let extensions: Vec<String> = FORMATS.iter().map(|f| format!(".{}", f.extension)).collect();
            return Err(format!("the name's ending decides the form: {}", extensions.join(" ")));
        };
        let Some(capture) = self.screenshot.pending.take() else { return Ok(()) };
        self.screenshot.select_format(format.name);
        effects.push(Effect::RunJob(WorkerJob::WriteFile {
            path: PathBuf::from(text),
            contents: (format.write)(&capture.to_screenshot()).into(),
            existing: IfExists::AddNumber,
            make_dir: false,
        }));
        self.close_capture(*capture);
        Ok(())
    }

    /// Discards the capture.
    pub(super) fn cancel_capture(&mut self) {
        if let Some(capture) = self.screenshot.pending.take() {
            self.close_capture(*capture);
        }
    }

    /// Shows again what was open.
    fn close_capture(&mut self, capture: ScreenCapture) {
        if let Some((overlay, owner)) = capture.overlay {
            self.open_overlay(overlay, owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_sanitized_in_file_names() {
        assert_eq!(sanitize_file_name("node02.example"), "node02.example");
        assert_eq!(sanitize_file_name("../../etc/pass wd\u{1b}[2J"), "_.._etc_pass_wd__2J");
        assert_eq!(
            (sanitize_file_name("--x"), sanitize_file_name(""), sanitize_file_name("写")),
            ("x".into(), "host".into(), "_".into())
        );
        assert_eq!(sanitize_file_name(&"a".repeat(300)).len(), MAX_HOST_NAME_LEN);
    }

    #[test]
    fn configured_directory_precedes_the_file_name() {
        let mut ui = ScreenshotState::default();
        assert_eq!(ui.path_for("a.png"), "a.png");
        ui.directory = "/srv/shots/".into();
        assert_eq!(ui.path_for("a.png"), "/srv/shots/a.png");
        ui.select_format("svg");
        ui.select_format("pdf");
        assert_eq!(ui.format().name, "svg");
    }
}
