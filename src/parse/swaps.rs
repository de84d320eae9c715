//! `/proc/swaps` (proc_swaps(5)).

use super::bytes::{lines, parse_i64, parse_u64, unescape_octal, words};
use serde::{Deserialize, Serialize};

/// A line of `/proc/swaps`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapArea {
    /// Device or file, unescaped and raw: sanitize before display.
    pub name: String,
    /// `partition` or `file`.
    pub kind: String,
    pub size_bytes: u64,
    pub used_bytes: u64,
    /// Areas of higher priority fill first.
    pub priority: i64,
}

/// Parses the file; malformed lines are skipped.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = SwapArea> {
    lines(text).skip(1).filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<SwapArea> {
    let mut words = words(line);
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    Some(SwapArea {
        name: text(&unescape_octal(words.next()?)),
        kind: text(words.next()?),
        size_bytes: parse_u64(words.next()?)?.saturating_mul(1024),
        used_bytes: parse_u64(words.next()?)?.saturating_mul(1024),
        priority: parse_i64(words.next()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unescaped_and_priorities_signed() {
        let text = b"Filename Type Size Used Priority\n/swap\\040file file\t\t1024\t\t512\t\t-2\nshort line\n";
        let areas: Vec<_> = parse(text).collect();
        let (name, kind) = ("/swap file".into(), "file".into());
        assert_eq!(areas, [SwapArea { name, kind, size_bytes: 1 << 20, used_bytes: 512 << 10, priority: -2 }]);
    }
}
