//! A captured screen, and the file it becomes.

use crate::export::screenshot::colour::Palette;
use crate::export::screenshot::{FORMATS, Screenshot, ScreenshotFormat, crop};
use crate::export::table::Table;
use crate::tui::view::{Overlay, PaneId};
use crate::tui::widgets::Rect;
use ratatui::buffer::Buffer;

/// Longest host name in a file name, characters.
const MAX_HOST_NAME_LEN: usize = 48;

/// Choices for screenshots, and the one that is being named.
#[derive(Debug, Default)]
pub struct ScreenshotState {
    /// Index in [`FORMATS`] of the format chosen last.
    pub(super) format_index: usize,
    /// Where files go; empty: where the program was started.
    pub directory: String,
    /// Taken, and not written yet.
    pub(super) pending: Option<Box<ScreenCapture>>,
}

#[derive(Debug, PartialEq)]
pub struct ScreenCapture {
    pub(super) cells: Buffer,
    /// Name and place of the focused pane.
    pub(super) pane: (&'static str, Rect),
    /// The tables of all panes, that of the focused one first.
    pub(super) tables: Vec<Table>,
    pub(super) palette: &'static Palette,
    pub(super) host: String,
    /// Time of the tick shown, and the same in local time for the file name.
    pub(super) timestamp: String,
    pub(super) file_timestamp: String,
    pub(super) pane_only: bool,
    /// What lay over the view, and the view that opened it.
    pub(super) overlay: Option<(Overlay, Option<PaneId>)>,
}

impl ScreenshotState {
    pub fn format(&self) -> &'static ScreenshotFormat {
        &FORMATS[self.format_index.min(FORMATS.len() - 1)]
    }

    pub fn select_format(&mut self, name: &str) {
        self.format_index = FORMATS.iter().position(|f| f.name == name).unwrap_or(self.format_index);
    }

    pub(super) fn path_for(&self, name: &str) -> String {
        match self.directory.trim_end_matches('/') {
            "" | "." => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }
}

impl ScreenCapture {
    pub(super) fn prompt_label(&self) -> String {
        let other = if self.pane_only { "screen" } else { "pane" };
        format!("{} to file (Tab {other}, ↑↓ form): ", self.subject())
    }

    /// What is written, in a word.
    pub(super) fn subject(&self) -> &'static str {
        if self.pane_only { self.pane.0 } else { "screen" }
    }

    /// A file name that sorts: host, pane, time of the tick shown.
    pub fn file_name(&self, format: &ScreenshotFormat) -> String {
        format!("{}-{}-{}.{}", sanitize_file_name(&self.host), self.subject(), self.file_timestamp, format.extension)
    }

    pub fn to_screenshot(&self) -> Screenshot {
        let (cells, tables) = match self.pane_only {
            true => (close_border(crop(&self.cells, self.pane.1)), self.tables[..1].to_vec()),
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

/// Replaces what a pane alone has not: lines to its neighbours, and the titles in its lowest line.
fn close_border(mut cells: Buffer) -> Buffer {
    let area = cells.area;
    if area.is_empty() {
        return cells;
    }
    let [right, bottom] = [area.right() - 1, area.bottom() - 1];
    let style = cells[(area.x, bottom)].style();
    let is_ascii = cells[(area.x, area.y)].symbol() == "+";
    let [horizontal, vertical] = if is_ascii { ["-", "|"] } else { ["─", "│"] };
    let corners = if is_ascii { ["+"; 4] } else { ["╭", "╮", "╰", "╯"] };
    for x in area.x..=right {
        cells[(x, bottom)].reset();
        cells[(x, bottom)].set_symbol(horizontal).set_style(style);
        if matches!(cells[(x, area.y)].symbol(), "┬" | "┴" | "┼") {
            cells[(x, area.y)].set_symbol(horizontal);
        }
    }
    for y in area.y..=bottom {
        cells[(area.x, y)].set_symbol(vertical);
        cells[(right, y)].set_symbol(vertical);
    }
    let places = [(area.x, area.y), (right, area.y), (area.x, bottom), (right, bottom)];
    for (at, corner) in places.into_iter().zip(corners) {
        cells[at].set_symbol(corner);
    }
    cells
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
