//! One description of a column, for the screen, the help, the exports and the sort order alike.

use crate::units;
use std::cmp::Ordering;
use std::fmt::Write;

/// One cell, typed: formatting and sorting both come from here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Could not be read or does not apply: shown as `-`, sorted below everything.
    Missing,
    /// Already cleaned text.
    Text(&'a str),
    /// A number with that many decimals.
    Fixed(f64, u8),
    /// A whole number.
    Int(u64),
    /// Bytes, short form.
    Bytes(f64),
    /// A count that may be large, short form.
    Count(f64),
    /// A state letter.
    Letter(char),
}

impl Value<'_> {
    /// Appends the shown form.
    pub fn write(&self, out: &mut String) {
        match *self {
            Value::Missing => out.push('-'),
            Value::Text(s) => out.push_str(s),
            Value::Fixed(n, decimals) => {
                let _ = write!(out, "{n:.*}", usize::from(decimals));
            }
            Value::Int(n) => {
                let _ = write!(out, "{n}");
            }
            Value::Bytes(n) => units::write_bytes(out, n),
            Value::Count(n) => units::write_count(out, n),
            Value::Letter(c) => out.push(c),
        }
    }

    /// A number that is there, or missing.
    pub fn fixed(n: Option<f64>, decimals: u8) -> Self {
        n.map_or(Value::Missing, |n| Value::Fixed(n, decimals))
    }

    /// Bytes that are there, or missing.
    pub fn bytes(n: Option<f64>) -> Self {
        n.map_or(Value::Missing, Value::Bytes)
    }

    /// A text that is there, or missing.
    pub fn text<'a>(s: Option<&'a str>) -> Value<'a> {
        s.map_or(Value::Missing, Value::Text)
    }

    /// Ascending order; missing first.
    pub fn order(&self, other: &Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => a.number().total_cmp(&b.number()),
        }
    }

    fn number(&self) -> f64 {
        match *self {
            Value::Missing | Value::Text(_) => f64::NEG_INFINITY,
            Value::Fixed(n, _) | Value::Bytes(n) | Value::Count(n) => n,
            Value::Int(n) => n as f64,
            Value::Letter(c) => c as u32 as f64,
        }
    }
}

/// Which side of its column a cell keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table; `C` is the table's own list of columns.
#[derive(Debug, Clone, Copy)]
pub struct Column<C: 'static> {
    /// Which.
    pub id: C,
    /// Name in the config file and on the command line.
    pub name: &'static str,
    /// Head on screen: the field's own word.
    pub head: &'static str,
    /// One line of help: meaning and unit.
    pub help: &'static str,
    /// Cells on screen; 0 takes what is left.
    pub width: u16,
    /// Side.
    pub align: Align,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_sorts_below_zero_and_shows_a_dash() {
        assert_eq!(Value::Missing.order(&Value::Fixed(0.0, 1)), Ordering::Less);
        assert_eq!(Value::Text("a").order(&Value::Text("b")), Ordering::Less);
        let mut s = String::new();
        Value::Missing.write(&mut s);
        Value::Fixed(1.25, 1).write(&mut s);
        assert_eq!(s, "-1.2");
    }
}
