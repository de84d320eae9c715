//! `/proc/PID/smaps` (proc_pid_smaps(5)): header lines of mappings. The lines below a header are read with
//! [`super::key_value`].

/// The first line of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingHeader<'a> {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// `r-xp`.
    pub permissions: &'a [u8],
    /// Path, `[stack]` or nothing. May contain spaces; the kernel escapes newlines.
    pub name: &'a [u8],
}

/// Parses `7f00-7f10 r-xp 00000000 fe:00 123   /path`; `None` for every other line.
pub fn parse_header(line: &[u8]) -> Option<MappingHeader<'_>> {
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
    Some(MappingHeader { start, end, permissions, name: rest.trim_ascii() })
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
        assert_eq!((header.start, header.end, header.permissions), (0x55d0, 0x55d2, &b"r-xp"[..]));
        assert_eq!(header.name, b"/bin/a b\xff (deleted)");
        assert_eq!(parse_header(b"8000-9000 rw-p 00000000 00:00 0 \n").unwrap().name, b"");
        assert_eq!(parse_header(b"Rss:      8 kB\n"), None);
    }

    proptest! {
        #[test]
        fn lines_like_headers_do_not_panic(line in "[0-9a-f]{0,4}-?[0-9a-f]{0,17} ?[rwxp \\-:/a-z]{0,30}") {
            let _ = parse_header(line.as_bytes());
        }
    }
}
