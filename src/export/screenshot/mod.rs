//! What is on the screen, kept: as a picture, as text, as tables. One file for each form, and the list [`FORMS`].
//!
//! Pictures need nothing of the machine they are made on: frames, bars and graphs are drawn by [`shape`], the text
//! of SVG and HTML is set by whoever shows it, that of PNG by a bitmap font of our own.

pub mod ansi;
pub mod colour;
pub mod font;
pub mod grid;
pub mod html;
pub mod json;
pub mod png;
pub mod shape;
pub mod svg;
pub mod text;

use super::table::{Table, escape_markdown};
use colour::Palette;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A screen, or a pane of it, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Screenshot {
    /// Machine, what is shown, and of when; cleaned.
    pub title: String,
    /// The cells.
    pub cells: Buffer,
    /// The tables of the panes in it.
    pub tables: Vec<Table>,
    /// One pane alone: as text it is its table, which is not cut off where the screen ends.
    pub is_single_pane: bool,
    /// The ground the colours stand on.
    pub palette: &'static Palette,
}

/// A written form.
pub struct ScreenshotFormat {
    /// Its name on the command line and in the config file.
    pub name: &'static str,
    /// Ending of a file's name.
    pub extension: &'static str,
    /// Writes it.
    pub write: fn(&Screenshot) -> Vec<u8>,
}

/// All forms; the first is what a ticket shows without more ado.
pub const FORMATS: &[ScreenshotFormat] = &[
    ScreenshotFormat { name: "png", extension: "png", write: |shot| png::to_png(&shot.cells, shot.palette) },
    ScreenshotFormat {
        name: "svg",
        extension: "svg",
        write: |shot| svg::to_svg(&shot.cells, shot.palette, &shot.title).into(),
    },
    ScreenshotFormat {
        name: "html",
        extension: "html",
        write: |shot| html::to_html(&shot.cells, shot.palette, &shot.title).into(),
    },
    ScreenshotFormat { name: "markdown", extension: "md", write: |shot| to_markdown(shot).into() },
    ScreenshotFormat { name: "text", extension: "txt", write: |shot| to_plain_text(shot).into() },
    ScreenshotFormat { name: "ansi", extension: "ans", write: |shot| ansi::to_ansi(&shot.cells).into() },
    ScreenshotFormat { name: "json", extension: "json", write: |shot| json::to_json(shot).into() },
];

/// The form of that name.
pub fn find_format(name: &str) -> Option<&'static ScreenshotFormat> {
    FORMATS.iter().find(|f| f.name == name)
}

/// The form whose ending a file's name has.
pub fn format_of_file(name: &str) -> Option<&'static ScreenshotFormat> {
    let (_, ending) = name.rsplit_once('.')?;
    FORMATS.iter().find(|f| f.extension.eq_ignore_ascii_case(ending))
}

/// The part of a screen that a pane takes; its own corner is at 0, 0.
pub fn crop(cells: &Buffer, area: Rect) -> Buffer {
    let area = area.intersection(cells.area);
    let mut out = Buffer::empty(Rect { x: 0, y: 0, ..area });
    for y in 0..area.height {
        for x in 0..area.width {
            out[(x, y)] = cells[(area.x + x, area.y + y)].clone();
        }
    }
    out
}

fn to_markdown(shot: &Screenshot) -> String {
    let mut out = format!("{}\n\n", escape_markdown(&shot.title));
    out.extend(shot.tables.iter().map(Table::to_markdown));
    out
}

fn to_plain_text(shot: &Screenshot) -> String {
    match (shot.is_single_pane, &shot.tables[..]) {
        (true, [sheet]) => sheet.to_text(),
        _ => text::to_text(&shot.cells),
    }
}

/// A text between tags or in an attribute.
pub fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| crate::sanitize::is_safe(*c)) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
