//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst): rows of 14, 18 or 20 columns.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
use crate::model::reading::Reading;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    Source::from_file(
        "/proc/diskstats",
        PersistentFile::new(root.proc("diskstats")),
        |s| &mut s.disks,
        |text| Reading::Ok(lines(text).filter_map(parse_line).collect()),
    )
}

/// Parses a row; `None` if it is malformed (a truncated last line, say). Loop and RAM devices without I/O are
/// included.
pub(super) fn parse_line(line: &[u8]) -> Option<DiskRaw> {
    let mut w = words(line);
    let id = DevId { major: next_number(&mut w)? as u32, minor: next_number(&mut w)? as u32 };
    let name = String::from_utf8_lossy(w.next()?).into();
    let read = parse_op(&mut w)?;
    let write = parse_op(&mut w)?;
    let (in_flight, busy_ms, queue_ms) = (next_number(&mut w)?, next_number(&mut w)?, next_number(&mut w)?);
    let discard = parse_op(&mut w);
    let flush = next_number(&mut w).zip(next_number(&mut w));
    // Partitions do not count flushes: their columns are always 0.
    Some(DiskRaw { id, name, read, write, discard, flush, in_flight, busy_ms, queue_ms })
}

fn next_number<'a>(w: &mut impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    parse_u64(w.next()?)
}

fn parse_op<'a>(w: &mut impl Iterator<Item = &'a [u8]>) -> Option<DiskOpRaw> {
    Some(DiskOpRaw { ios: next_number(w)?, merged: next_number(w)?, sectors: next_number(w)?, ms: next_number(w)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> Option<DiskRaw> {
        parse_line(line.as_bytes())
    }

    #[test]
    fn rows_of_14_18_and_20_columns_are_parsed() {
        let old = parse("   8 0 sda 1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.read.ios, old.write.ms, old.in_flight, old.queue_ms), (1, 8, 9, 11));
        assert_eq!((old.discard, old.flush), (None, None));
        let mid = parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!(mid.discard.unwrap().ms, 15);
        assert_eq!(mid.flush, None);
        let new = parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").unwrap();
        assert_eq!(new.flush, Some((16, 17)));
    }

    #[test]
    fn a_truncated_line_is_skipped() {
        assert_eq!(parse("8 0 sda 1 2 3"), None);
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "[ 0-9a-z:\\-]{0,120}") {
            let _ = parse(&line);
        }
    }
}
