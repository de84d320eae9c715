//! One description of a column, used by the screen, the help, the exports and sorting.

use crate::units;
use std::cmp::Ordering;
use std::fmt::Write;

/// A typed cell, for formatting and sorting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue<'a> {
    /// Could not be read or does not apply: printed as `-`, sorted below everything else.
    Missing,
    /// Sanitized text.
    Text(&'a str),
    /// A number with this many decimals.
    Fixed(f64, u8),
    Int(u64),
    /// Bytes, in short form.
    Bytes(f64),
    /// A count that may be large, in short form.
    Count(f64),
    Letter(char),
    /// More milliseconds than these, with a unit: `>6.4 s`.
    MillisAbove(f64),
}

impl CellValue<'_> {
    /// Appends the printed form.
    pub fn write(&self, out: &mut String) {
        match *self {
            CellValue::Missing => out.push('-'),
            CellValue::Text(s) => out.push_str(s),
            CellValue::Fixed(n, decimals) => _ = write!(out, "{n:.*}", usize::from(decimals)),
            CellValue::Int(n) => _ = write!(out, "{n}"),
            CellValue::Bytes(n) => units::write_bytes(out, n),
            CellValue::Count(n) => units::write_count(out, n),
            CellValue::Letter(c) => out.push(c),
            CellValue::MillisAbove(ms) => _ = write!(out, ">{}", units::format_micros(ms * 1e3)),
        }
    }

    pub fn fixed(n: Option<f64>, decimals: u8) -> Self {
        n.map_or(CellValue::Missing, |n| CellValue::Fixed(n, decimals))
    }

    pub fn bytes(n: Option<f64>) -> Self {
        n.map_or(CellValue::Missing, CellValue::Bytes)
    }

    pub fn text<'a>(s: Option<&'a str>) -> CellValue<'a> {
        s.map_or(CellValue::Missing, CellValue::Text)
    }

    /// Ascending order; missing values first.
    pub fn compare(&self, other: &CellValue<'_>) -> Ordering {
        match (self, other) {
            (CellValue::Text(a), CellValue::Text(b)) => a.cmp(b),
            (a, b) => a.sort_number().total_cmp(&b.sort_number()),
        }
    }

    /// Whether it is a number that is exactly 0.
    pub fn is_zero(&self) -> bool {
        !matches!(self, CellValue::Letter(_)) && self.sort_number() == 0.0
    }

    /// Whether it is a number above 0.
    pub fn is_positive(&self) -> bool {
        self.sort_number() > 0.0
    }

    fn sort_number(&self) -> f64 {
        match *self {
            CellValue::Missing | CellValue::Text(_) => f64::NEG_INFINITY,
            CellValue::Fixed(n, _) | CellValue::Bytes(n) | CellValue::Count(n) | CellValue::MillisAbove(n) => n,
            CellValue::Int(n) => n as f64,
            CellValue::Letter(c) => c as u32 as f64,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
    /// As `Left`, but what is too long loses its beginning.
    Path,
}

/// How a cell stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emphasis {
    Normal,
    /// Above 0, in a column with thresholds, and below them.
    Good,
    Warning,
    Critical,
}

/// What a column is read from, and why a cell of it may be `-`.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnSource {
    /// The file, system call or tracing, as the end of "read from".
    pub read_from: &'static str,
    /// When a cell is `-`, as the end of "a cell is -"; empty: never.
    pub missing: &'static str,
}

impl ColumnSource {
    pub const fn new(read_from: &'static str, missing: &'static str) -> Self {
        Self { read_from, missing }
    }
}

/// A figure of a page that is no table; its value is where it is read from.
pub(crate) type FigureSpec = ColumnSpec<(), &'static ColumnSource>;

/// A column of a table: the only description of it. `C` enumerates the columns of that table, `V` gets the value of a
/// row.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSpec<C, V> {
    pub id: C,
    /// Header on screen, the name that iostat or iotop uses.
    pub header: &'static str,
    /// One line of help: meaning and unit.
    pub help: &'static str,
    /// Width in cells; 0 takes the remaining width.
    pub width: u16,
    pub align: Align,
    /// Whether the smallest value or A comes first, unless reversed.
    pub ascending: bool,
    /// Values from this one on are worth a look.
    pub warn_from: f64,
    /// Values from this one on need attention.
    pub crit_from: f64,
    /// The sets of columns that it is in, as bits.
    pub sets: u16,
    pub value: V,
}

impl<C: Copy, V: Copy> ColumnSpec<C, V> {
    /// A column of numbers.
    pub const fn right(id: C, header: &'static str, width: u16, value: V, help: &'static str) -> Self {
        let (warn_from, crit_from) = (f64::INFINITY, f64::INFINITY);
        let (align, ascending, sets) = (Align::Right, false, u16::MAX);
        Self { id, header, help, width, align, ascending, warn_from, crit_from, sets, value }
    }

    /// A column of text.
    pub const fn left(id: C, header: &'static str, width: u16, value: V, help: &'static str) -> Self {
        Self { align: Align::Left, ascending: true, ..Self::right(id, header, width, value, help) }
    }

    /// A column of paths, which lose their beginning where they are cut.
    pub const fn path(id: C, header: &'static str, width: u16, value: V, help: &'static str) -> Self {
        Self { align: Align::Path, ascending: true, ..Self::right(id, header, width, value, help) }
    }

    /// The same in these sets only.
    pub const fn only_in(self, sets: u16) -> Self {
        Self { sets, ..self }
    }

    /// The same with the smallest value first, as for ids.
    pub const fn smallest_first(self) -> Self {
        Self { ascending: true, ..self }
    }

    pub const fn thresholds(self, warn_from: f64, crit_from: f64) -> Self {
        Self { warn_from, crit_from, ..self }
    }

    /// How a cell with this value stands out.
    pub fn emphasis(&self, value: &CellValue<'_>) -> Emphasis {
        match value.sort_number() {
            n if n >= self.crit_from => Emphasis::Critical,
            n if n >= self.warn_from => Emphasis::Warning,
            n if n > 0.0 && self.warn_from.is_finite() => Emphasis::Good,
            _ => Emphasis::Normal,
        }
    }
}

/// The columns of each of `N` sets, numbered by their bits, in the order of the table.
pub(crate) fn split_into_sets<C: Copy, V: Copy, const N: usize>(
    all: &[ColumnSpec<C, V>],
) -> [Vec<ColumnSpec<C, V>>; N] {
    std::array::from_fn(|set| all.iter().filter(|c| c.sets & 1 << set != 0).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_sorts_below_zero_and_prints_a_dash() {
        assert_eq!(CellValue::Missing.compare(&CellValue::Fixed(0.0, 1)), Ordering::Less);
        assert_eq!(CellValue::Text("a").compare(&CellValue::Text("b")), Ordering::Less);
        let mut s = String::new();
        CellValue::Missing.write(&mut s);
        CellValue::Fixed(1.25, 1).write(&mut s);
        assert_eq!(s, "-1.2");
        s.clear();
        CellValue::MillisAbove(6442.0).write(&mut s);
        assert_eq!(s, ">6.4 s");
    }
}
