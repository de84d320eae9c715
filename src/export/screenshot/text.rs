//! The cells as plain text, one line a row.

use super::colour::DARK;
use super::grid;
use crate::sanitize::is_safe;
use ratatui::buffer::Buffer;

/// The screen without colours.
pub fn to_text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let start = out.len();
        for positioned in grid::row_symbols(buffer, &DARK, y) {
            out.extend(positioned.symbol.chars().filter(|c| is_safe(*c)));
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}
