//! `/proc/swaps` (proc_swaps(5)).

use super::bytes::{lines, parse_i64, parse_u64, unescape_octal, words};

/// One swap area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapLine {
    /// Device or file, escapes decoded.
    pub name: Vec<u8>,
    /// `partition` or `file`.
    pub kind: Vec<u8>,
    /// Size, KiB.
    pub size_kib: u64,
    /// Used, KiB.
    pub used_kib: u64,
    /// Priority; negative unless it was set.
    pub priority: i64,
}

/// Parses the file; malformed lines are skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = SwapLine> {
    lines(text).skip(1).filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<SwapLine> {
    let mut words = words(line);
    Some(SwapLine {
        name: unescape_octal(words.next()?),
        kind: words.next()?.to_vec(),
        size_kib: parse_u64(words.next()?)?,
        used_kib: parse_u64(words.next()?)?,
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
        let name = b"/swap file".to_vec();
        assert_eq!(areas, [SwapLine { name, kind: b"file".to_vec(), size_kib: 1024, used_kib: 512, priority: -2 }]);
    }
}
