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

use super::sheet::{Sheet, escape};
use colour::Palette;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A screen, or a pane of it, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// Machine, what is shown, and of when; cleaned.
    pub title: String,
    /// The cells.
    pub cells: Buffer,
    /// The tables of the panes in it.
    pub sheets: Vec<Sheet>,
    /// One pane alone: as text it is its table, which is not cut off where the screen ends.
    pub pane: bool,
    /// The ground the colours stand on.
    pub palette: &'static Palette,
}

/// A written form.
pub struct Form {
    /// Its name on the command line and in the config file.
    pub name: &'static str,
    /// Ending of a file's name.
    pub ending: &'static str,
    /// Writes it.
    pub write: fn(&Shot) -> Vec<u8>,
}

/// All forms; the first is what a ticket shows without more ado.
pub const FORMS: &[Form] = &[
    Form { name: "png", ending: "png", write: |shot| png::png(&shot.cells, shot.palette) },
    Form {
        name: "svg",
        ending: "svg",
        write: |shot| svg::svg(&shot.cells, shot.palette, &shot.title).into(),
    },
    Form {
        name: "html",
        ending: "html",
        write: |shot| html::html(&shot.cells, shot.palette, &shot.title).into(),
    },
    Form { name: "markdown", ending: "md", write: |shot| markdown(shot).into() },
    Form { name: "text", ending: "txt", write: |shot| plain(shot).into() },
    Form { name: "ansi", ending: "ans", write: |shot| ansi::ansi(&shot.cells).into() },
    Form { name: "json", ending: "json", write: |shot| json::json(shot).into() },
];

/// The form of that name.
pub fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|f| f.name == name)
}

/// The form whose ending a file's name has.
pub fn form_of_file(name: &str) -> Option<&'static Form> {
    let (_, ending) = name.rsplit_once('.')?;
    FORMS.iter().find(|f| f.ending.eq_ignore_ascii_case(ending))
}

/// The part of a screen that a pane takes; its own corner is at 0, 0.
pub fn cut(cells: &Buffer, area: Rect) -> Buffer {
    let area = area.intersection(cells.area);
    let mut out = Buffer::empty(Rect { x: 0, y: 0, ..area });
    for y in 0..area.height {
        for x in 0..area.width {
            out[(x, y)] = cells[(area.x + x, area.y + y)].clone();
        }
    }
    out
}

fn markdown(shot: &Shot) -> String {
    let mut out = format!("{}\n\n", escape(&shot.title));
    out.extend(shot.sheets.iter().map(Sheet::markdown));
    out
}

fn plain(shot: &Shot) -> String {
    match (shot.pane, &shot.sheets[..]) {
        (true, [sheet]) => sheet.text(),
        _ => text::text(&shot.cells),
    }
}

/// A text between tags or in an attribute.
pub fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| crate::text::is_safe(*c)) {
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
