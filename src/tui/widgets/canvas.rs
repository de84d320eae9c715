//! What panes draw on: a screen's cells, four bytes each.
//!
//! A monitor draws after a second of sleep, when little of its memory is still near the CPU, so a frame takes the time
//! of fetching what it touches: ratatui's buffer has 40 bytes a cell. Styles, of which a screen has a few dozen, and
//! symbols of more than one character are named by their places in lists.

use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Styles told apart.
const MOST_STYLES: usize = 1 << 9;
/// Symbols of more than one character told apart.
const MOST_LONG: usize = 1 << 10;

/// What a cell looks like, in one number: on one canvas equal if and only if they look the same. The symbol's character
/// (or the place of a symbol of several), the place of the style, and whether it takes two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Look(u32);

impl Look {
    /// A blank without style.
    pub const BLANK: Self = Self(' ' as u32);
    /// Any character fits.
    const SYMBOL: u32 = (1 << Self::STYLE_SHIFT) - 1;
    const STYLE_SHIFT: u32 = 21;
    const STYLE: u32 = (MOST_STYLES as u32 - 1) << Self::STYLE_SHIFT;
    const LONG: u32 = 1 << 30;
    const WIDE: u32 = 1 << 31;

    /// It takes two columns.
    pub fn is_wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }

    /// Its symbol, to be dressed anew.
    pub fn symbol(self) -> Symbol {
        Symbol(self.0 & !Self::STYLE)
    }

    fn style(self) -> usize {
        (self.0 & Self::STYLE) as usize >> Self::STYLE_SHIFT
    }
}

/// A symbol, not styled yet: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct Symbol(u32);

/// A style as a place among the canvas's: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct Dress(u32);

impl Symbol {
    /// A character of one column that joins with none beside it.
    pub fn plain(c: char) -> Self {
        Self(u32::from(c))
    }

    /// In that style.
    pub fn dressed(self, dress: Dress) -> Look {
        Look(self.0 | dress.0)
    }
}

type Colors = (Color, Color, Modifier);

/// A number that is another one for what is not equal, as far as a number of 64 bits can tell.
pub fn stamp(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A part of the picture, and a number that is another one whenever it looks different.
type Part = (Rect, u64);

/// Cells to draw on, frame by frame.
pub struct Canvas {
    /// Where they are on the screen.
    pub area: Rect,
    cells: Vec<Look>,
    /// The frame before, blank if there was none, and the parts of it that may be taken over.
    before: Vec<Look>,
    kept: Vec<Part>,
    /// Parts of this frame that the next one may take over.
    parts: Vec<Part>,
    names: Names,
}

/// What the numbers in [`Look`]s stand for.
pub struct Names {
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
        let names = Names { styles: vec![plain], last: 0, long: Vec::new() };
        Self { area, before: cells.clone(), cells, kept: Vec::new(), parts: Vec::new(), names }
    }

    /// There are too many styles or long symbols to go on naming them: what comes beyond may look wrong.
    pub fn is_full(&self) -> bool {
        self.names.styles.len() >= MOST_STYLES / 2 || self.names.long.len() >= MOST_LONG
    }

    /// Draws a part of the picture: `stamp` is another number whenever it looks different, so that what stood there in
    /// the frame before may be taken over instead. Nothing else may be drawn there, or [`forget`](Self::forget) must
    /// be called.
    pub fn part(&mut self, area: Rect, stamp: u64, draw: impl FnOnce(&mut Self)) {
        self.parts.push((area, stamp));
        if !self.kept.contains(&(area, stamp)) {
            return draw(self);
        }
        for y in area.top()..area.bottom() {
            let places = self.places(area.x, y, area.width);
            self.cells[places.clone()].copy_from_slice(&self.before[places]);
        }
    }

    /// Something was drawn over this frame's parts: the next one draws them anew.
    pub fn forget(&mut self) {
        self.parts.clear();
    }

    /// Ends the frame: hands the rows that differ from the frame before to `differs` (which row, before, now), and
    /// blanks the paper row by row on the way: it is at hand right now.
    pub fn turn(&mut self, mut differs: impl FnMut(&Names, usize, &[Look], &[Look])) {
        let width = usize::from(self.area.width).max(1);
        let rows = self.before.chunks_mut(width).zip(self.cells.chunks_mut(width));
        for (row, (before, now)) in rows.enumerate() {
            if before != now {
                differs(&self.names, row, before, now);
                before.copy_from_slice(now);
            }
            now.fill(Look::BLANK);
        }
        self.kept.clear();
        self.kept.append(&mut self.parts);
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
        self.names.place(colors)
    }

    /// What a style makes of a cell: only what it names changes.
    fn patched(&mut self, look: Look, style: Style) -> Dress {
        let (fg, bg, modifier) = self.names.styles[look.style()];
        let modifier = modifier.union(style.add_modifier).difference(style.sub_modifier);
        self.names.place((style.fg.unwrap_or(fg), style.bg.unwrap_or(bg), modifier))
    }

    /// Any symbol.
    pub fn symbol(&mut self, symbol: &str) -> Symbol {
        self.names.symbol(symbol)
    }

    /// All of it as a buffer of ratatui's, for exporters.
    pub fn picture(&self) -> Buffer {
        Buffer { area: self.area, content: self.cells.iter().map(|look| self.names.cell(*look)).collect() }
    }
}

impl Names {
    fn place(&mut self, colors: Colors) -> Dress {
        if self.styles[self.last] != colors {
            self.last = self.styles.iter().position(|known| *known == colors).unwrap_or_else(|| {
                self.styles.push(colors);
                self.styles.len() - 1
            });
        }
        // Beyond the last place nothing can be told apart; `is_full` has the screen begin anew long before.
        Dress((self.last.min(MOST_STYLES - 1) as u32) << Look::STYLE_SHIFT)
    }

    /// Any symbol.
    fn symbol(&mut self, symbol: &str) -> Symbol {
        let wide = if symbol.cell_width() > 1 { Look::WIDE } else { 0 };
        let mut chars = symbol.chars();
        if let (Some(only), None) = (chars.next(), chars.next()) {
            return Symbol(u32::from(only) | wide);
        }
        let at = self.long.iter().position(|known| &**known == symbol).unwrap_or_else(|| {
            self.long.push(symbol.into());
            self.long.len() - 1
        });
        Symbol(at as u32 | Look::LONG | wide)
    }

    /// The look as a cell of ratatui's.
    pub fn cell(&self, look: Look) -> Cell {
        let mut cell = Cell::EMPTY;
        let symbol = look.0 & Look::SYMBOL;
        if look.0 & Look::LONG != 0 {
            cell.set_symbol(&self.long[symbol as usize]);
        } else {
            cell.set_char(char::from_u32(symbol).unwrap_or(' '));
        }
        (cell.fg, cell.bg, cell.modifier) = self.styles[look.style()];
        cell
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
            assert_eq!(canvas.names.cell(look).symbol(), symbol);
            assert_eq!(canvas.names.cell(look).fg, fg);
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
            assert_eq!(canvas.names.cell(Symbol::plain('x').dressed(dress)).symbol(), "x");
        }
        assert!(canvas.is_full());
    }
}
