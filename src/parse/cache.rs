//! Status of caches in front of slow devices.

use super::bytes::{parse_u64, words};

const SECTOR_BYTES: u64 = 512;

/// The status line of a dm-cache target (Documentation/admin-guide/device-mapper/cache.rst, drivers/md/dm-cache-target.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DmCacheStatus {
    /// `rw`, `ro`, `Fail` or `Error`.
    pub mode: &'static str,
    pub needs_check: bool,
    /// Of what is only in the cache, and of the cache; `None` while the target has failed, which says nothing else.
    pub dirty_bytes: Option<u64>,
    pub size_bytes: Option<u64>,
}

/// Parses the part of the line behind `cache`. `None` if it is no such line.
pub(crate) fn parse_dm_cache_status(line: &[u8]) -> Option<DmCacheStatus> {
    let failed = |mode| DmCacheStatus { mode, needs_check: false, dirty_bytes: None, size_bytes: None };
    match line.trim_ascii() {
        b"Fail" => return Some(failed("Fail")),
        b"Error" => return Some(failed("Error")),
        _ => {}
    }
    let mut words = words(line);
    // Size of a metadata block, used/total metadata blocks.
    words.by_ref().nth(1)?;
    let block_sectors = parse_u64(words.next()?)?;
    let used = words.next()?;
    let slash = used.iter().position(|b| *b == b'/')?;
    let blocks = parse_u64(&used[slash + 1..])?;
    // Hits and misses of reads and writes, demotions and promotions.
    let dirty_blocks = parse_u64(words.by_ref().nth(6)?)?;
    // Lists with their lengths in front: features, arguments of the core, then the policy's name and its arguments.
    let skip_list = |words: &mut dyn Iterator<Item = &[u8]>| {
        let length = usize::try_from(parse_u64(words.next()?)?).ok()?;
        length.checked_sub(1).map_or(Some(()), |last| words.nth(last).map(drop))
    };
    let mut rest: Box<dyn Iterator<Item = &[u8]>> = Box::new(words);
    skip_list(&mut rest)?;
    skip_list(&mut rest)?;
    rest.next()?;
    skip_list(&mut rest)?;
    let mode = if rest.next()? == b"ro" { "ro" } else { "rw" };
    let needs_check = rest.next() == Some(b"needs_check");
    let bytes = |blocks: u64| Some(blocks.saturating_mul(block_sectors).saturating_mul(SECTOR_BYTES));
    Some(DmCacheStatus { mode, needs_check, dirty_bytes: bytes(dirty_blocks), size_bytes: bytes(blocks) })
}

/// Bytes of a size as bcache writes it (bch_hprint in drivers/md/bcache/util.c): `1.5G`, `0.0k`, `512`.
pub(crate) fn parse_bcache_size(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let (number, unit) = match text.split_last()? {
        (last, number) if !last.is_ascii_digit() => {
            (number, 10 * (b"kMGTPEZY".iter().position(|unit| unit == last)? as u32 + 1))
        }
        _ => (text, 0),
    };
    let mut parts = number.split(|b| *b == b'.');
    let (whole, tenths) = (parse_u64(parts.next()?)?, parts.next().map_or(Some(0), parse_u64)?);
    let size = 1_u64.checked_shl(unit)?;
    Some(whole.saturating_mul(size).saturating_add((size / 10).saturating_mul(tenths.min(9))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_of_dm_cache_is_parsed() {
        // 64 KiB blocks, 1000 of 1600 used, 250 dirty.
        let line = "8 72/1024 128 1000/1600 9 8 7 6 5 4 250 2 metadata2 writeback 2 migration_threshold 2048 smq 0";
        let status = |end: &str| parse_dm_cache_status(format!("{line} {end}").as_bytes());
        let found = status("rw -").unwrap();
        assert_eq!((found.mode, found.needs_check), ("rw", false));
        assert_eq!((found.dirty_bytes, found.size_bytes), (Some(250 << 16), Some(1600 << 16)));
        let found = status("ro needs_check").unwrap();
        assert_eq!((found.mode, found.needs_check), ("ro", true));
        let policy = line.replace("smq 0", "mq 4 sequential_threshold 512 random_threshold 4");
        assert_eq!(parse_dm_cache_status(format!("{policy} rw -").as_bytes()).map(|s| s.mode), Some("rw"));
        let none = line.replace("2 metadata2 writeback", "0");
        assert_eq!(parse_dm_cache_status(format!("{none} ro -").as_bytes()).map(|s| s.mode), Some("ro"));
    }

    #[test]
    fn a_failed_cache_says_nothing_else_and_cut_lines_are_refused() {
        assert_eq!(parse_dm_cache_status(b"Fail").map(|s| s.mode), Some("Fail"));
        assert_eq!(parse_dm_cache_status(b"Error").map(|s| s.mode), Some("Error"));
        for line in [
            "",
            "8 72/1024 128",
            "8 72/1024 128 1000 9 8 7 6 5 4 250 0 0 smq 0 rw -",
            "8 7/9 128 1/2 9 8 7 6 5 4 2 99 x",
        ] {
            assert_eq!(parse_dm_cache_status(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn sizes_of_bcache_are_parsed() {
        let cases =
            [("0", Some(0)), ("512", Some(512)), ("0.0k", Some(0)), ("1.5G\n", Some((1 << 30) + 5 * ((1 << 30) / 10)))];
        for (text, bytes) in cases.into_iter().chain([("", None), ("k", None), ("1.5Q", None), ("x.1M", None)]) {
            assert_eq!(parse_bcache_size(text.as_bytes()), bytes, "{text}");
        }
    }
}
