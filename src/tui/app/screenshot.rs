//! Taking screenshots: the screen when the key was pressed, then the format and the name of the file.

use super::capture::ScreenCapture;
use super::draw::render_to_buffer;
use super::state::App;
use crate::export::screenshot::colour::{DARK, LIGHT};
use crate::export::screenshot::{FORMATS, format_of_file};
use crate::export::table::Table;
use crate::jobs::atomic_write::IfExists;
use crate::jobs::job::WorkerJob;
use crate::tui::view::{Effect, Prompt, PromptPurpose};
use crossterm::event::KeyCode;
use std::path::PathBuf;

impl App {
    /// The screen as it is now.
    pub fn capture(&self) -> ScreenCapture {
        let cells = render_to_buffer(self);
        let (layout, pane) = self.arrange();
        let others = layout.panes.iter().map(|p| p.0).filter(|id| *id != pane);
        let mut tables: Vec<Table> = Vec::new();
        for id in std::iter::once(pane).chain(others) {
            let table = self.table(id);
            // Graphs have the table of what they show.
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let name = self.views.pane_spec(pane).map_or("", |spec| spec.1);
        let wall_ns = self.shared.snapshot().time.wall_ns;
        let local = wall_ns.saturating_add(self.shared.utc_offset_secs.saturating_mul(1_000_000_000));
        let digits = crate::units::format_rfc3339(local);
        ScreenCapture {
            pane: (name, layout.pane_area(pane).unwrap_or(cells.area)),
            cells,
            tables,
            palette: if self.shared.themes.is_light() { &LIGHT } else { &DARK },
            host: self.shared.system.host.name.clone(),
            timestamp: crate::units::format_rfc3339(wall_ns),
            file_timestamp: digits.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect(),
            pane_only: false,
            overlay: None,
        }
    }

    pub(super) fn begin_capture(&mut self) {
        let mut capture = self.capture();
        capture.overlay = self.screen.overlay.take().map(|overlay| (overlay, self.screen.overlay_owner));
        let text = self.screenshot.path_for(&capture.file_name(self.screenshot.format()));
        let label = capture.prompt_label();
        self.screenshot.pending = Some(Box::new(capture));
        self.open_prompt(PromptPurpose::ScreenshotPath, &label, text);
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
        (prompt.cursor, prompt.error, prompt.label) = (prompt.text.len(), None, capture.prompt_label());
        screenshot.pending = Some(capture);
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
