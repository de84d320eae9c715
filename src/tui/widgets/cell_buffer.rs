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
const MAX_STYLES: usize = 1 << 9;
/// Symbols of more than one character told apart.
const MAX_LONG_SYMBOLS: usize = 1 << 10;

/// What a cell looks like, in one number: on one canvas equal if and only if they look the same. The symbol's character
/// (or the place of a symbol of several), the place of the style, and whether it takes two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PackedCell(u32);

impl PackedCell {
    /// A blank without style.
    pub const BLANK: Self = Self(' ' as u32);
    /// Any character fits.
    const SYMBOL_MASK: u32 = (1 << Self::STYLE_SHIFT) - 1;
    const STYLE_SHIFT: u32 = 21;
    const STYLE_MASK: u32 = (MAX_STYLES as u32 - 1) << Self::STYLE_SHIFT;
    const LONG_FLAG: u32 = 1 << 30;
    const WIDE_FLAG: u32 = 1 << 31;

    /// It takes two columns.
    pub fn is_wide(self) -> bool {
        self.0 & Self::WIDE_FLAG != 0
    }

    /// Its symbol, to be dressed anew.
    pub fn symbol(self) -> PackedSymbol {
        PackedSymbol(self.0 & !Self::STYLE_MASK)
    }

    fn style_index(self) -> usize {
        (self.0 & Self::STYLE_MASK) as usize >> Self::STYLE_SHIFT
    }
}

/// A symbol, not styled yet: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct PackedSymbol(u32);

/// A style as a place among the canvas's: the part of a [`Look`] that says which.
#[derive(Clone, Copy)]
pub struct StyleId(u32);

impl PackedSymbol {
    /// A character of one column that joins with none beside it.
    pub fn single_width(c: char) -> Self {
        Self(u32::from(c))
    }

    /// In that style.
    pub fn with_style(self, dress: StyleId) -> PackedCell {
        PackedCell(self.0 | dress.0)
    }
}

type StyleValue = (Color, Color, Modifier);

/// A number that is another one for what is not equal, as far as a number of 64 bits can tell.
pub fn content_hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A part of the picture, and a number that is another one whenever it looks different.
type CachedRegion = (Rect, u64);

/// Cells to draw on, frame by frame.
pub struct CellBuffer {
    /// Where they are on the screen.
    pub area: Rect,
    cells: Vec<PackedCell>,
    /// The frame before, blank if there was none, and the parts of it that may be taken over.
    previous: Vec<PackedCell>,
    reusable_regions: Vec<CachedRegion>,
    /// Parts of this frame that the next one may take over.
    drawn_regions: Vec<CachedRegion>,
    styles: StyleTable,
}

/// What the numbers in [`Look`]s stand for.
pub struct StyleTable {
    styles: Vec<StyleValue>,
    /// The place of the style met last: most texts have their neighbour's.
    last_index: usize,
    long_symbols: Vec<Box<str>>,
}

impl CellBuffer {
    /// Blank.
    pub fn new(area: Rect) -> Self {
        let cells = vec![PackedCell::BLANK; usize::from(area.width) * usize::from(area.height)];
        let plain = (Color::Reset, Color::Reset, Modifier::empty());
        let names = StyleTable { styles: vec![plain], last_index: 0, long_symbols: Vec::new() };
        Self {
            area,
            previous: cells.clone(),
            cells,
            reusable_regions: Vec::new(),
            drawn_regions: Vec::new(),
            styles: names,
        }
    }

    /// There are too many styles or long symbols to go on naming them: what comes beyond may look wrong.
    pub fn is_full(&self) -> bool {
        self.styles.styles.len() >= MAX_STYLES / 2 || self.styles.long_symbols.len() >= MAX_LONG_SYMBOLS
    }

    /// Draws a part of the picture: `stamp` is another number whenever it looks different, so that what stood there in
    /// the frame before may be taken over instead. Nothing else may be drawn there, or [`forget`](Self::forget) must
    /// be called.
    pub fn draw_cached(&mut self, area: Rect, stamp: u64, draw: impl FnOnce(&mut Self)) {
        self.drawn_regions.push((area, stamp));
        if !self.reusable_regions.contains(&(area, stamp)) {
            return draw(self);
        }
        for y in area.top()..area.bottom() {
            let places = self.cell_range(area.x, y, area.width);
            self.cells[places.clone()].copy_from_slice(&self.previous[places]);
        }
    }

    /// Something was drawn over this frame's parts: the next one draws them anew.
    pub fn forget_regions(&mut self) {
        self.drawn_regions.clear();
    }

    /// Ends the frame: hands the rows that differ from the frame before to `differs` (which row, before, now), and
    /// blanks the paper row by row on the way: it is at hand right now.
    pub fn swap(&mut self, mut differs: impl FnMut(&StyleTable, usize, &[PackedCell], &[PackedCell])) {
        let width = usize::from(self.area.width).max(1);
        let rows = self.previous.chunks_mut(width).zip(self.cells.chunks_mut(width));
        for (row, (before, now)) in rows.enumerate() {
            if before != now {
                differs(&self.styles, row, before, now);
                before.copy_from_slice(now);
            }
            now.fill(PackedCell::BLANK);
        }
        self.reusable_regions.clear();
        self.reusable_regions.append(&mut self.drawn_regions);
    }

    /// Places of the cells from `x`,`y` on, at most `width` of them; none outside.
    fn cell_range(&self, x: u16, y: u16, width: u16) -> std::ops::Range<usize> {
        let area = self.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return 0..0;
        }
        let from = usize::from(y - area.y) * usize::from(area.width) + usize::from(x - area.x);
        from..from + usize::from(width.min(area.right() - x))
    }

    /// The cells from `x`,`y` on, at most `width` of them; none outside.
    pub fn cells_mut(&mut self, x: u16, y: u16, width: u16) -> &mut [PackedCell] {
        let places = self.cell_range(x, y, width);
        &mut self.cells[places]
    }

    /// Draws over what is there from `x`,`y` on, at most `width` cells: the symbol that `symbol` makes of each, until it
    /// makes none, and of the style only what `style` names. Returns the cells drawn.
    pub fn draw_over(
        &mut self,
        (x, y): (u16, u16),
        width: u16,
        style: Style,
        mut symbol: impl FnMut(PackedCell) -> Option<PackedSymbol>,
    ) -> u16 {
        let on_blank = self.patched_style_id(PackedCell::BLANK, style);
        let mut drawn = 0;
        for place in self.cell_range(x, y, width) {
            let before = self.cells[place];
            let Some(symbol) = symbol(before) else { break };
            let bare = before.0 & PackedCell::STYLE_MASK == 0;
            let dress = if bare { on_blank } else { self.patched_style_id(before, style) };
            self.cells[place] = symbol.with_style(dress);
            drawn += 1;
        }
        drawn
    }

    /// The style's place, where nothing is below it that would show through.
    pub fn style_id(&mut self, style: Style) -> StyleId {
        let colors = (style.fg.unwrap_or(Color::Reset), style.bg.unwrap_or(Color::Reset), style.add_modifier);
        self.styles.style_id(colors)
    }

    /// What a style makes of a cell: only what it names changes.
    fn patched_style_id(&mut self, look: PackedCell, style: Style) -> StyleId {
        let (fg, bg, modifier) = self.styles.styles[look.style_index()];
        let modifier = modifier.union(style.add_modifier).difference(style.sub_modifier);
        self.styles.style_id((style.fg.unwrap_or(fg), style.bg.unwrap_or(bg), modifier))
    }

    /// Any symbol.
    pub fn pack_symbol(&mut self, symbol: &str) -> PackedSymbol {
        self.styles.pack_symbol(symbol)
    }

    /// All of it as a buffer of ratatui's, for exporters.
    pub fn to_buffer(&self) -> Buffer {
        Buffer { area: self.area, content: self.cells.iter().map(|look| self.styles.unpack(*look)).collect() }
    }
}

impl StyleTable {
    fn style_id(&mut self, colors: StyleValue) -> StyleId {
        if self.styles[self.last_index] != colors {
            self.last_index = self.styles.iter().position(|known| *known == colors).unwrap_or_else(|| {
                self.styles.push(colors);
                self.styles.len() - 1
            });
        }
        // Beyond the last place nothing can be told apart; `is_full` has the screen begin anew long before.
        StyleId((self.last_index.min(MAX_STYLES - 1) as u32) << PackedCell::STYLE_SHIFT)
    }

    /// Any symbol.
    fn pack_symbol(&mut self, symbol: &str) -> PackedSymbol {
        let wide = if symbol.cell_width() > 1 { PackedCell::WIDE_FLAG } else { 0 };
        let mut chars = symbol.chars();
        if let (Some(only), None) = (chars.next(), chars.next()) {
            return PackedSymbol(u32::from(only) | wide);
        }
        let at = self.long_symbols.iter().position(|known| &**known == symbol).unwrap_or_else(|| {
            self.long_symbols.push(symbol.into());
            self.long_symbols.len() - 1
        });
        PackedSymbol(at as u32 | PackedCell::LONG_FLAG | wide)
    }

    /// The look as a cell of ratatui's.
    pub fn unpack(&self, look: PackedCell) -> Cell {
        let mut cell = Cell::EMPTY;
        let symbol = look.0 & PackedCell::SYMBOL_MASK;
        if look.0 & PackedCell::LONG_FLAG != 0 {
            cell.set_symbol(&self.long_symbols[symbol as usize]);
        } else {
            cell.set_char(char::from_u32(symbol).unwrap_or(' '));
        }
        (cell.fg, cell.bg, cell.modifier) = self.styles[look.style_index()];
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_cells_are_equal_if_and_only_if_they_look_the_same() {
        let mut canvas = CellBuffer::new(Rect::new(0, 0, 1, 1));
        let long = "👩\u{200d}🚒";
        let symbols = [" ", "a", "é", "│", "写", "🚒", "a\u{301}", long, "👩\u{200d}🔬"];
        let mut of = |symbol: &str, fg: Color| {
            let dress = canvas.style_id(Style::new().fg(fg));
            let look = canvas.pack_symbol(symbol).with_style(dress);
            assert_eq!(canvas.styles.unpack(look).symbol(), symbol);
            assert_eq!(canvas.styles.unpack(look).fg, fg);
            look
        };
        let all: Vec<PackedCell> =
            [Color::Reset, Color::Red].iter().flat_map(|fg| symbols.map(|s| of(s, *fg))).collect();
        for (n, look) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|l| l == look), Some(n), "{n} looks like an earlier one");
        }
        assert!(of(" ", Color::Reset) == PackedCell::BLANK);
        assert!(of(long, Color::Reset) == all[7] && all[7].is_wide() && !all[6].is_wide());
        assert!(all[16].symbol().with_style(StyleId(0)) == all[7]);
    }

    #[test]
    fn too_many_styles_fill_the_table_without_panic() {
        let mut canvas = CellBuffer::new(Rect::new(0, 0, 1, 1));
        for n in 0..MAX_STYLES as u32 + 2 {
            let [_, r, g, b] = n.to_be_bytes();
            let dress = canvas.style_id(Style::new().fg(Color::Rgb(r, g, b)));
            assert_eq!(canvas.styles.unpack(PackedSymbol::single_width('x').with_style(dress)).symbol(), "x");
        }
        assert!(canvas.is_full());
    }
}
