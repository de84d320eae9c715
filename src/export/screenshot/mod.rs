//! Screenshots as images, text and tables. One file a format, and the list [`FORMATS`].
//!
//! Images need no fonts: [`shape`] draws frames, bars and graphs; viewers render the text of SVG and HTML; PNG has its
//! own bitmap font.

mod ansi;
pub mod colour;
mod font;
mod grid;
mod html;
mod png;
mod shape;
pub mod svg;

use super::table::{Table, escape_markdown};
use crate::sanitize::is_safe;
use colour::Palette;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A screen or one pane.
#[derive(Debug, Clone, PartialEq)]
pub struct Screenshot {
    /// Host, view and time, sanitized.
    pub(crate) title: String,
    pub(crate) cells: Buffer,
    /// The tables of the panes in it.
    pub(crate) tables: Vec<Table>,
    /// Whether it is one pane. As text, a pane is its whole table rather than the cells on screen.
    pub(crate) is_single_pane: bool,
    pub(crate) palette: &'static Palette,
}

/// A file format.
pub struct ScreenshotFormat {
    /// Name on the command line and in the config file.
    pub name: &'static str,
    /// File name extension.
    pub extension: &'static str,
    /// Encodes a screenshot.
    pub write: fn(&Screenshot) -> Vec<u8>,
}

/// All formats; the first is the default.
pub const FORMATS: &[ScreenshotFormat] = &[
    format("png", "png", |shot| png::to_png(&shot.cells, shot.palette)),
    format("svg", "svg", |shot| svg::to_svg(&shot.cells, shot.palette, &shot.title).into()),
    format("html", "html", |shot| html::to_html(&shot.cells, shot.palette, &shot.title).into()),
    format("markdown", "md", |shot| to_markdown(shot).into()),
    format("text", "txt", |shot| to_plain_text(shot).into()),
    format("ansi", "ans", |shot| ansi::to_ansi(&shot.cells).into()),
    format("json", "json", |shot| to_json(shot).into()),
];

const fn format(name: &'static str, extension: &'static str, write: fn(&Screenshot) -> Vec<u8>) -> ScreenshotFormat {
    ScreenshotFormat { name, extension, write }
}

/// The format with this name.
pub fn find_format(name: &str) -> Option<&'static ScreenshotFormat> {
    FORMATS.iter().find(|f| f.name == name)
}

pub(crate) fn format_of_file(name: &str) -> Option<&'static ScreenshotFormat> {
    let (_, ending) = name.rsplit_once('.')?;
    FORMATS.iter().find(|f| f.extension.eq_ignore_ascii_case(ending))
}

/// A part of the screen, moved to the origin.
pub(crate) fn crop(cells: &Buffer, area: Rect) -> Buffer {
    let area = area.intersection(cells.area);
    let content = area.positions().map(|position| cells[position].clone()).collect();
    Buffer { area: Rect { x: 0, y: 0, ..area }, content }
}

fn to_markdown(shot: &Screenshot) -> String {
    let mut out = format!("{}\n\n", escape_markdown(&shot.title));
    out.extend(shot.tables.iter().map(Table::to_markdown));
    out
}

/// One object with the tables of the panes; `snapshot --format json` has the unformatted values.
fn to_json(shot: &Screenshot) -> String {
    let panes: Vec<_> = shot.tables.iter().map(Table::to_json).collect();
    format!("{}\n", serde_json::json!({ "title": shot.title, "panes": panes }))
}

fn to_plain_text(shot: &Screenshot) -> String {
    match (shot.is_single_pane, &shot.tables[..]) {
        (true, [table]) => table.to_text(),
        _ => to_text(&shot.cells),
    }
}

/// The screen without colours.
pub(crate) fn to_text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let start = out.len();
        for positioned in grid::row_symbols(buffer, &colour::DARK, y) {
            out.extend(positioned.symbol.chars().filter(|c| is_safe(*c)));
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests;
