//! `/proc/PID/smaps` (proc_pid_smaps(5)): header lines of mappings. The lines below a header are read with
//! [`super::key_value`].

use crate::sanitize::sanitize;
use serde::{Deserialize, Serialize};

/// One mapping of a process (proc_pid_smaps(5)), sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMapping {
    /// Start address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Permissions as in `rwxp`.
    pub perms: String,
    /// File, `[heap]` or the like, or empty; sanitized.
    pub name: String,
    /// Size of the address range.
    pub size: u64,
    /// Resident.
    pub rss: u64,
    /// Proportional share: shared pages divided by the number of their users.
    pub pss: Option<u64>,
    /// Swapped out, including shared memory, unlike VmSwap.
    pub swap: Option<u64>,
}

/// Parses `7f00-7f10 r-xp 00000000 fe:00 123   /path`, the first line of a mapping; `None` for every other line. Nothing is
/// resident or swapped out yet.
pub(crate) fn parse_header(line: &[u8]) -> Option<MemoryMapping> {
    let dash = line.iter().position(|b| *b == b'-')?;
    let space = line.iter().position(|b| *b == b' ')?;
    let (start, end) = (parse_hex(line.get(..dash)?)?, parse_hex(line.get(dash + 1..space)?)?);
    let mut rest = line.get(space..)?;
    let mut permissions = rest;
    for field in 0..4 {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(rest.len());
        if field == 0 {
            permissions = &rest[..end];
        }
        rest = &rest[end..];
    }
    Some(MemoryMapping {
        start,
        end,
        perms: sanitize(permissions),
        name: sanitize(rest.trim_ascii()),
        size: end.saturating_sub(start),
        ..MemoryMapping::default()
    })
}

fn parse_hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_with_spaces_and_without_utf8_are_kept() {
        let header = parse_header(b"55d0-55d2 r-xp 00000000 fe:00 123      /bin/a b\xff (deleted)\n").unwrap();
        assert_eq!((header.start, header.end, &*header.perms), (0x55d0, 0x55d2, "r-xp"));
        assert_eq!(header.name, "/bin/a b\\xff (deleted)");
        assert_eq!(parse_header(b"8000-9000 rw-p 00000000 00:00 0 \n").unwrap().name, "");
        assert_eq!(parse_header(b"Rss:      8 kB\n"), None);
    }

    proptest! {
        #[test]
        fn lines_like_headers_do_not_panic(line in "[0-9a-f]{0,4}-?[0-9a-f]{0,17} ?[rwxp \\-:/a-z]{0,30}") {
            let _ = parse_header(line.as_bytes());
        }
    }
}
