//! What panes draw on: a screen's cells, eight bytes each.
//!
//! A monitor draws after a second of sleep, when little of its memory is still near the CPU, so a frame takes the time
//! of fetching what it touches: ratatui's buffer has 40 bytes a cell. Styles, of which a screen has a few dozen, and
//! symbols of more than four bytes are named by their places in lists.

use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Styles told apart.
const MOST_STYLES: usize = 1 << 12;
/// Symbols of more than four bytes told apart.
const MOST_LONG: usize = 1 << 10;

/// What a cell looks like, in one number: on one canvas equal if and only if they look the same. The symbol's bytes (or
/// the place of a longer one), the place of the style, and whether it takes two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Look(u64);

impl Look {
    /// A blank without style.
    pub const BLANK: Self = Self(b' ' as u64);
    const SYMBOL: u64 = 0xffff_ffff;
    const STYLE: u64 = (MOST_STYLES as u64 - 1) << 32;
    const LONG: u64 = 1 << 62;
    const WIDE: u64 = 1 << 63;

    /// It takes two columns.
    pub fn is_wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }

    /// Its symbol, to be dressed anew.
    pub fn symbol(self) -> Symbol {
        Symbol(self.0 & !Self::STYLE)
    }

    fn style(self) -> usize {
        (self.0 & Self::STYLE) as usize >> 32
    }
}

/// A symbol, not styled yet: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct Symbol(u64);

/// A style as a place among the canvas's: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct Dress(u64);

impl Symbol {
    /// A character of one column that joins with none beside it.
    pub fn plain(c: char) -> Self {
        let mut bytes = [0; 4];
        c.encode_utf8(&mut bytes);
        Self(u64::from(u32::from_le_bytes(bytes)))
    }

    /// In that style.
    pub fn dressed(self, dress: Dress) -> Look {
        Look(self.0 | dress.0)
    }
}

type Colors = (Color, Color, Modifier);

/// Cells to draw on.
pub struct Canvas {
    /// Where they are on the screen.
    pub area: Rect,
    cells: Vec<Look>,
    styles: Vec<Colors>,
    /// The place of the style met last: most texts have their neighbour's.
    last: usize,
    long: Vec<Box<str>>,
}

impl Canvas {
    /// Blank.
    pub fn new(area: Rect) -> Self {
        let cells = vec![Look::BLANK; usize::from(area.width) * usize::from(area.height)];
        let plain = (Color::Reset, Color::Reset, Modifier::empty());
        Self { area, cells, styles: vec![plain], last: 0, long: Vec::new() }
    }

    /// There are too many styles or long symbols to go on naming them: what comes beyond may look wrong.
    pub fn is_full(&self) -> bool {
        self.styles.len() >= MOST_STYLES / 2 || self.long.len() >= MOST_LONG
    }

    /// A row, counted from the first.
    pub fn row(&self, row: usize) -> &[Look] {
        let width = usize::from(self.area.width);
        &self.cells[row * width..(row + 1) * width]
    }

    /// Blanks a row, counted from the first.
    pub fn blank(&mut self, row: usize) {
        let width = usize::from(self.area.width);
        self.cells[row * width..(row + 1) * width].fill(Look::BLANK);
    }

    /// Places of the cells from `x`,`y` on, at most `width` of them; none outside.
    fn places(&self, x: u16, y: u16, width: u16) -> std::ops::Range<usize> {
        let area = self.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return 0..0;
        }
        let from = usize::from(y - area.y) * usize::from(area.width) + usize::from(x - area.x);
        from..from + usize::from(width.min(area.right() - x))
    }

    /// The cells from `x`,`y` on, at most `width` of them; none outside.
    pub fn cells(&mut self, x: u16, y: u16, width: u16) -> &mut [Look] {
        let places = self.places(x, y, width);
        &mut self.cells[places]
    }

    /// Draws over what is there from `x`,`y` on, at most `width` cells: the symbol that `symbol` makes of each, until it
    /// makes none, and of the style only what `style` names. Returns the cells drawn.
    pub fn draw_over(
        &mut self,
        (x, y): (u16, u16),
        width: u16,
        style: Style,
        mut symbol: impl FnMut(Look) -> Option<Symbol>,
    ) -> u16 {
        let on_blank = self.patched(Look::BLANK, style);
        let mut drawn = 0;
        for place in self.places(x, y, width) {
            let before = self.cells[place];
            let Some(symbol) = symbol(before) else { break };
            let bare = before.0 & Look::STYLE == 0;
            let dress = if bare { on_blank } else { self.patched(before, style) };
            self.cells[place] = symbol.dressed(dress);
            drawn += 1;
        }
        drawn
    }

    /// The style's place, where nothing is below it that would show through.
    pub fn dress(&mut self, style: Style) -> Dress {
        let colors = (style.fg.unwrap_or(Color::Reset), style.bg.unwrap_or(Color::Reset), style.add_modifier);
        self.place(colors)
    }

    fn place(&mut self, colors: Colors) -> Dress {
        if self.styles[self.last] != colors {
            self.last = self.styles.iter().position(|known| *known == colors).unwrap_or_else(|| {
                self.styles.push(colors);
                self.styles.len() - 1
            });
        }
        // Beyond the last place nothing can be told apart; `is_full` has the screen begin anew long before.
        Dress((self.last.min(MOST_STYLES - 1) as u64) << 32)
    }

    /// What a style makes of a cell: only what it names changes.
    fn patched(&mut self, look: Look, style: Style) -> Dress {
        let (fg, bg, modifier) = self.styles[look.style()];
        let modifier = modifier.union(style.add_modifier).difference(style.sub_modifier);
        self.place((style.fg.unwrap_or(fg), style.bg.unwrap_or(bg), modifier))
    }

    /// Any symbol.
    pub fn symbol(&mut self, symbol: &str) -> Symbol {
        let bytes = symbol.as_bytes();
        let wide = if symbol.cell_width() > 1 { Look::WIDE } else { 0 };
        if bytes.len() <= 4 {
            return Symbol(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)) | wide);
        }
        let at = self.long.iter().position(|known| &**known == symbol).unwrap_or_else(|| {
            self.long.push(symbol.into());
            self.long.len() - 1
        });
        Symbol(at as u64 | Look::LONG | wide)
    }

    /// The look as a cell of ratatui's.
    pub fn cell(&self, look: Look) -> Cell {
        let mut cell = Cell::EMPTY;
        let symbol = look.0 & Look::SYMBOL;
        if look.0 & Look::LONG != 0 {
            cell.set_symbol(&self.long[symbol as usize]);
        } else {
            let bytes = (symbol as u32).to_le_bytes();
            let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            cell.set_symbol(std::str::from_utf8(&bytes[..len]).unwrap_or(" "));
        }
        (cell.fg, cell.bg, cell.modifier) = self.styles[look.style()];
        cell
    }

    /// All of it as a buffer of ratatui's, for exporters.
    pub fn picture(&self) -> Buffer {
        Buffer { area: self.area, content: self.cells.iter().map(|look| self.cell(*look)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_the_same_is_named_the_same() {
        let mut canvas = Canvas::new(Rect::new(0, 0, 1, 1));
        let long = "👩\u{200d}🚒";
        let symbols = [" ", "a", "é", "│", "写", "🚒", "a\u{301}", long, "👩\u{200d}🔬"];
        let mut of = |symbol: &str, fg: Color| {
            let dress = canvas.dress(Style::new().fg(fg));
            let look = canvas.symbol(symbol).dressed(dress);
            assert_eq!(canvas.cell(look).symbol(), symbol);
            assert_eq!(canvas.cell(look).fg, fg);
            look
        };
        let all: Vec<Look> =
            [Color::Reset, Color::Red].iter().flat_map(|fg| symbols.map(|s| of(s, *fg))).collect();
        for (n, look) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|l| l == look), Some(n), "{n} looks like an earlier one");
        }
        assert!(of(" ", Color::Reset) == Look::BLANK);
        assert!(of(long, Color::Reset) == all[7] && all[7].is_wide() && !all[6].is_wide());
        assert!(all[16].symbol().dressed(Dress(0)) == all[7]);
    }

    #[test]
    fn too_many_styles_do_no_harm() {
        let mut canvas = Canvas::new(Rect::new(0, 0, 1, 1));
        for n in 0..MOST_STYLES as u32 + 2 {
            let [_, r, g, b] = n.to_be_bytes();
            let dress = canvas.dress(Style::new().fg(Color::Rgb(r, g, b)));
            assert_eq!(canvas.cell(Symbol::plain('x').dressed(dress)).symbol(), "x");
        }
        assert!(canvas.is_full());
    }
}
