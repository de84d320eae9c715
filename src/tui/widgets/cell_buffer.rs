//! The cells of a screen, four bytes each, that panes draw into.
//!
//! A frame is drawn after a second of sleep with cold caches, so its cost is the memory it touches; a cell of ratatui's
//! buffer has 40 bytes. Styles, of which a screen has a few dozen, and symbols of several characters are stored in tables
//! and cells refer to them by index. `tests/bench` measures the frame.

use super::symbols::SymbolSet;
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

const MAX_STYLES: usize = 1 << 9;
const MAX_LONG_SYMBOLS: usize = 1 << 10;

/// A cell in one number: within a buffer, two cells are equal if and only if they cell the same. Holds the character (or
/// the index of a longer symbol), the index of the style, and whether it takes two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PackedCell(u32);

impl PackedCell {
    /// A blank cell without style.
    pub const BLANK: Self = Self(' ' as u32);
    /// 21 bits hold any character.
    const SYMBOL_MASK: u32 = (1 << Self::STYLE_SHIFT) - 1;
    const STYLE_SHIFT: u32 = 21;
    const STYLE_MASK: u32 = (MAX_STYLES as u32 - 1) << Self::STYLE_SHIFT;
    const LONG_FLAG: u32 = 1 << 30;
    const WIDE_FLAG: u32 = 1 << 31;

    pub fn is_wide(self) -> bool {
        self.0 & Self::WIDE_FLAG != 0
    }

    pub fn symbol(self) -> PackedSymbol {
        PackedSymbol(self.0 & !Self::STYLE_MASK)
    }

    /// Its character; `None` for a symbol of several.
    pub(crate) fn as_char(self) -> Option<char> {
        if self.0 & Self::LONG_FLAG == 0 { char::from_u32(self.0 & Self::SYMBOL_MASK) } else { None }
    }

    pub(crate) fn has_style_of(self, other: Self) -> bool {
        self.0 & Self::STYLE_MASK == other.0 & Self::STYLE_MASK
    }

    fn style_index(self) -> usize {
        (self.0 & Self::STYLE_MASK) as usize >> Self::STYLE_SHIFT
    }
}

/// The symbol of a [`PackedCell`].
#[derive(Clone, Copy)]
pub struct PackedSymbol(u32);

/// The style of a [`PackedCell`]: an index into the table of its buffer.
#[derive(Clone, Copy)]
pub struct StyleId(u32);

impl PackedSymbol {
    /// A character of one column that does not combine with its neighbours.
    pub fn single_width(c: char) -> Self {
        Self(u32::from(c))
    }

    pub fn with_style(self, style: StyleId) -> PackedCell {
        PackedCell(self.0 | style.0)
    }
}

type StyleValue = (Color, Color, Modifier);

/// A frame to draw into, and the one before.
pub struct CellBuffer {
    /// Position and size on the screen.
    pub area: Rect,
    /// What may be drawn; texts are changed to it.
    pub symbols: SymbolSet,
    cells: Vec<PackedCell>,
    previous: Vec<PackedCell>,
    styles: StyleTable,
}

/// The styles and long symbols that cells refer to.
pub struct StyleTable {
    styles: Vec<StyleValue>,
    /// Index of the style used last: neighbouring texts mostly share one.
    last_index: usize,
    long_symbols: Vec<Box<str>>,
}

impl CellBuffer {
    /// A blank frame.
    pub fn new(area: Rect) -> Self {
        let cells = vec![PackedCell::BLANK; usize::from(area.width) * usize::from(area.height)];
        let plain = (Color::Reset, Color::Reset, Modifier::empty());
        let styles = StyleTable { styles: vec![plain], last_index: 0, long_symbols: Vec::new() };
        Self { area, symbols: SymbolSet::default(), previous: cells.clone(), cells, styles }
    }

    /// Whether the tables are nearly full; the caller must then start a new buffer.
    pub fn is_full(&self) -> bool {
        self.styles.styles.len() >= MAX_STYLES / 2 || self.styles.long_symbols.len() >= MAX_LONG_SYMBOLS
    }

    /// Ends the frame: passes each row that differs from the previous frame to `differs` (row, before, now), and clears the
    /// buffer row by row while it is in the cache.
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
    }

    /// Indexes of at most `width` cells from `x`, `y` on; empty outside.
    fn cell_range(&self, x: u16, y: u16, width: u16) -> std::ops::Range<usize> {
        let area = self.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return 0..0;
        }
        let from = usize::from(y - area.y) * usize::from(area.width) + usize::from(x - area.x);
        from..from + usize::from(width.min(area.right() - x))
    }

    /// At most `width` cells from `x`, `y` on; empty outside.
    pub fn cells_mut(&mut self, x: u16, y: u16, width: u16) -> &mut [PackedCell] {
        let cells = self.cell_range(x, y, width);
        &mut self.cells[cells]
    }

    /// Draws over at most `width` cells from `x`, `y` on: `symbol` maps each cell to its new symbol until it returns `None`;
    /// `style` changes only the attributes it sets. Returns the number of cells drawn.
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
            let style = if bare { on_blank } else { self.patched_style_id(before, style) };
            self.cells[place] = symbol.with_style(style);
            drawn += 1;
        }
        drawn
    }

    /// The index of a style on a blank cell.
    pub fn style_id(&mut self, style: Style) -> StyleId {
        let colors = (style.fg.unwrap_or(Color::Reset), style.bg.unwrap_or(Color::Reset), style.add_modifier);
        self.styles.style_id(colors)
    }

    /// The index of a cell's style after applying `style` to it.
    fn patched_style_id(&mut self, cell: PackedCell, style: Style) -> StyleId {
        let (fg, bg, modifier) = self.styles.styles[cell.style_index()];
        let modifier = modifier.union(style.add_modifier).difference(style.sub_modifier);
        self.styles.style_id((style.fg.unwrap_or(fg), style.bg.unwrap_or(bg), modifier))
    }

    pub(crate) fn pack_symbol(&mut self, symbol: &str) -> PackedSymbol {
        let wide = if symbol.cell_width() > 1 { PackedCell::WIDE_FLAG } else { 0 };
        let mut chars = symbol.chars();
        if let (Some(only), None) = (chars.next(), chars.next()) {
            return PackedSymbol(u32::from(only) | wide);
        }
        let known_symbols = &mut self.styles.long_symbols;
        let at = known_symbols.iter().position(|known| &**known == symbol).unwrap_or_else(|| {
            known_symbols.push(symbol.into());
            known_symbols.len() - 1
        });
        PackedSymbol(at as u32 | PackedCell::LONG_FLAG | wide)
    }

    /// Converts the frame to a ratatui buffer.
    pub fn to_buffer(&self) -> Buffer {
        Buffer { area: self.area, content: self.cells.iter().map(|cell| self.styles.unpack(*cell)).collect() }
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
        // The last index stands for all further styles; `is_full` starts a new buffer long before.
        StyleId((self.last_index.min(MAX_STYLES - 1) as u32) << PackedCell::STYLE_SHIFT)
    }

    pub fn unpack(&self, packed: PackedCell) -> Cell {
        let mut cell = Cell::EMPTY;
        let symbol = packed.0 & PackedCell::SYMBOL_MASK;
        if packed.0 & PackedCell::LONG_FLAG != 0 {
            cell.set_symbol(&self.long_symbols[symbol as usize]);
        } else {
            cell.set_char(char::from_u32(symbol).unwrap_or(' '));
        }
        (cell.fg, cell.bg, cell.modifier) = self.styles[packed.style_index()];
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
            let style = canvas.style_id(Style::new().fg(fg));
            let cell = canvas.pack_symbol(symbol).with_style(style);
            assert_eq!(canvas.styles.unpack(cell).symbol(), symbol);
            assert_eq!(canvas.styles.unpack(cell).fg, fg);
            cell
        };
        let all: Vec<PackedCell> =
            [Color::Reset, Color::Red].iter().flat_map(|fg| symbols.map(|s| of(s, *fg))).collect();
        for (n, cell) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|l| l == cell), Some(n), "{n} looks like an earlier one");
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
            let style = canvas.style_id(Style::new().fg(Color::Rgb(r, g, b)));
            assert_eq!(canvas.styles.unpack(PackedSymbol::single_width('x').with_style(style)).symbol(), "x");
        }
        assert!(canvas.is_full());
    }
}
