//! `/proc/PID/limits` (proc_pid_limits(5)).

use super::bytes::{lines, parse_u64, words};

/// One resource limit; `None` is `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitLine<'a> {
    /// `Max open files`.
    pub name: &'a [u8],
    /// Soft limit.
    pub soft: Option<u64>,
    /// Hard limit.
    pub hard: Option<u64>,
    /// `files`, `bytes`; empty for priorities.
    pub unit: &'a [u8],
}

/// Parses the file; malformed lines are skipped.
pub fn parse(text: &[u8]) -> impl Iterator<Item = LimitLine<'_>> {
    lines(text).skip(1).filter_map(parse_line)
}

/// Parses `Max open files            1024                 4096                 files`. The name column has 25
/// characters, because names contain spaces.
fn parse_line(line: &[u8]) -> Option<LimitLine<'_>> {
    let (name, rest) = line.split_at_checked(25)?;
    let mut words = words(rest);
    let mut value = || match words.next()? {
        b"unlimited" => Some(None),
        digits => parse_u64(digits).map(Some),
    };
    let (soft, hard) = (value()?, value()?);
    Some(LimitLine { name: name.trim_ascii(), soft, hard, unit: words.next().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_names_may_contain_spaces() {
        let text = b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n\
            Max core file size        0                    unlimited            bytes     \n\
            Max nice priority         0                    0                    \n\
            cut off";
        let all: Vec<_> = parse(text).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].name, all[0].soft, all[0].hard), (&b"Max open files"[..], Some(1024), Some(524_288)));
        assert_eq!((all[1].hard, all[1].unit), (None, &b"bytes"[..]));
        assert_eq!(all[2].unit, b"");
    }
}
