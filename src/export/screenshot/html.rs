//! The cells as one HTML file. Text lies over an SVG of backgrounds and shapes that is stretched to the text's grid:
//! frames join and columns line up in any font, and a selection is copied as from a terminal. (Text inside the SVG
//! would lose its line breaks.)

use super::colour::{Palette, Rgb, to_hex};
use super::grid::{self, PositionedSymbol};
use super::shape::{CELL, symbol_shape};
use super::svg::svg_paths;
use crate::export::escape_html;
use ratatui::buffer::Buffer;
use std::fmt::Write;

/// Colour and boldness of a run of text.
type TextClass = (Rgb, bool);

pub(super) fn to_html(buffer: &Buffer, palette: &Palette, title: &str) -> String {
    let mut styles: Vec<TextClass> = Vec::new();
    let mut rows = String::new();
    for y in 0..buffer.area.height {
        if y > 0 {
            rows.push('\n');
        }
        push_row(&mut rows, &grid::row_symbols(buffer, palette, y).collect::<Vec<_>>(), palette, &mut styles);
    }
    let mut classes = String::new();
    for (i, (fg, bold)) in styles.iter().enumerate() {
        let weight = if *bold { ";font-weight:bold" } else { "" };
        let _ = writeln!(classes, ".c{i}{{color:{}{weight}}}", to_hex(*fg));
    }
    let (w, h) = (buffer.area.width, buffer.area.height);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n\
         body{{margin:0;background:{bg};color:{fg}}}\n\
         pre{{position:relative;isolation:isolate;display:inline-block;width:{w}ch;margin:1em;\
         font:15px/18px ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace}}\n\
         pre svg{{position:absolute;z-index:-1;left:0;top:0;width:100%;height:100%}}\n\
         i{{display:inline-block;height:18px;overflow:hidden;vertical-align:top;font-style:normal}}\n\
         .s{{color:transparent}}\n{classes}</style>\n</head>\n<body>\n<pre>\
         <svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n{}</svg>{rows}</pre>\n\
         </body>\n</html>\n",
        u32::from(w) * u32::from(CELL.0),
        u32::from(h) * u32::from(CELL.1),
        svg_paths(buffer, palette),
        title = escape_html(title),
        bg = to_hex(palette.bg),
        fg = to_hex(palette.fg),
    )
}

#[derive(Clone, Copy, PartialEq)]
enum SymbolLayout {
    /// Inline: an ASCII character is one cell wide.
    Inline,
    /// Drawn by the SVG; the invisible text can be copied.
    DrawnShape,
    /// In a box of its width, because it may come from another font.
    FixedWidth,
}

fn symbol_layout(positioned: &PositionedSymbol) -> SymbolLayout {
    match positioned.symbol {
        s if s.is_ascii() => SymbolLayout::Inline,
        s if symbol_shape(s).is_some() => SymbolLayout::DrawnShape,
        _ => SymbolLayout::FixedWidth,
    }
}

fn push_row(out: &mut String, symbols: &[PositionedSymbol], palette: &Palette, styles: &mut Vec<TextClass>) {
    let end = symbols.iter().rposition(|s| !s.is_blank()).map_or(0, |at| at + 1);
    let mut rest = &symbols[..end];
    while let Some(first) = rest.first() {
        let style = |s: &PositionedSymbol| (s.style.fg, s.style.is_bold);
        let like = |s: &PositionedSymbol| match symbol_layout(first) {
            SymbolLayout::Inline => {
                symbol_layout(s) == SymbolLayout::Inline && (style(s) == style(first) || s.is_blank())
            }
            SymbolLayout::DrawnShape => symbol_layout(s) == SymbolLayout::DrawnShape,
            SymbolLayout::FixedWidth => false,
        };
        let n = rest.iter().skip(1).take_while(|s| like(s)).count() + 1;
        let (run, after) = rest.split_at(n);
        rest = after;
        let text = escape_html(&run.iter().map(|s| s.symbol).collect::<String>());
        let width: u16 = run.iter().map(|s| s.width).sum();
        // Leading blanks of a run have no colour.
        let coloured = run.iter().find(|s| !s.is_blank()).map(style);
        let mut class = || match coloured {
            None => String::new(),
            Some(plain) if plain == (palette.fg, false) => String::new(),
            Some(style) => {
                let at = styles.iter().position(|s| *s == style).unwrap_or_else(|| {
                    styles.push(style);
                    styles.len() - 1
                });
                format!(" class=\"c{at}\"")
            }
        };
        let _ = match symbol_layout(first) {
            SymbolLayout::DrawnShape => write!(out, "<i class=\"s\" style=\"width:{width}ch\">{text}</i>"),
            SymbolLayout::FixedWidth => write!(out, "<i{} style=\"width:{width}ch\">{text}</i>", class()),
            SymbolLayout::Inline => match class() {
                none if none.is_empty() => write!(out, "{text}"),
                class => write!(out, "<span{class}>{text}</span>"),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::colour::DARK;
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier, Style};

    #[test]
    fn text_is_selectable_and_shapes_are_drawn_behind_it() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 14, 2));
        buffer.set_string(0, 0, "│a<b", Style::new());
        buffer.set_string(4, 0, " 写", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        let page = to_html(&buffer, &DARK, "t");
        let row =
            "</svg><i class=\"s\" style=\"width:1ch\">│</i>a&lt;b <i class=\"c0\" style=\"width:2ch\">写</i>\n</pre>";
        assert!(page.contains(row), "{page}");
        assert!(page.contains(".c0{color:#cc4b4b;font-weight:bold}"), "{page}");
        assert!(page.contains("viewBox=\"0 0 168 48\"") && page.contains("d=\"M5 0h2v24h-2z\""), "{page}");
        assert!(!page.contains("http"), "nothing is fetched");
    }

    #[test]
    fn leading_blanks_take_the_colour_of_the_next_word() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 9, 1));
        buffer.set_string(0, 0, "a", Style::new());
        buffer.set_string(3, 0, "b", Style::new().fg(Color::Red));
        let page = to_html(&buffer, &DARK, "t");
        assert!(page.contains("</svg>a  <span class=\"c0\">b</span></pre>"), "{page}");
    }
}
