//! Table and status line of a thin pool (Documentation/admin-guide/device-mapper/thin-provisioning.rst, drivers/md/dm-thin.c).

use super::bytes::{parse_u64, words};
use serde::{Deserialize, Serialize};

/// What a pool permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinPoolMode {
    #[default]
    ReadWrite,
    /// Data space has run out: writes to new places wait or fail.
    OutOfDataSpace,
    /// Its metadata cannot be changed, because it is damaged or full.
    ReadOnly,
    /// Its metadata cannot be used at all.
    Failed,
}

/// The used parts of a pool's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThinPoolTable {
    pub block_sectors: u64,
    /// The kernel reports when no more blocks than these are free.
    pub low_water_blocks: u64,
    /// It was made read-only on purpose.
    pub is_read_only: bool,
}

/// Used and all blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCount {
    pub used: u64,
    pub total: u64,
}

impl BlockCount {
    pub(crate) fn free(self) -> u64 {
        self.total.saturating_sub(self.used)
    }

    /// `142/4096`.
    fn parse(text: &[u8]) -> Option<Self> {
        let slash = text.iter().position(|b| *b == b'/')?;
        Some(Self { used: parse_u64(&text[..slash])?, total: parse_u64(&text[slash + 1..])? })
    }
}

/// The used parts of a pool's status line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThinPoolStatus {
    pub mode: ThinPoolMode,
    /// Without space writes wait, instead of failing at once.
    pub queues_writes: bool,
    /// `None` while the pool has failed: it says nothing else then.
    pub data: Option<BlockCount>,
    pub metadata: Option<BlockCount>,
    /// The kernel reports when no more metadata blocks than these are free; since Linux 4.19.
    pub metadata_low_water_blocks: Option<u64>,
}

/// Parses the part of a table behind `thin-pool`. `None` if it is no such table.
pub(crate) fn parse_thin_pool_table(line: &[u8]) -> Option<ThinPoolTable> {
    let mut words = words(line).skip(2);
    let (block_sectors, low_water_blocks) = (parse_u64(words.next()?)?, parse_u64(words.next()?)?);
    Some(ThinPoolTable { block_sectors, low_water_blocks, is_read_only: words.any(|word| word == b"read_only") })
}

/// Parses the part of a status line behind `thin-pool`. `None` if it is no such line.
pub(crate) fn parse_thin_pool_status(line: &[u8]) -> Option<ThinPoolStatus> {
    if let b"Fail" | b"Error" = line.trim_ascii() {
        return Some(ThinPoolStatus { mode: ThinPoolMode::Failed, ..ThinPoolStatus::default() });
    }
    // The number of the transaction is first; behind the blocks is a root of the metadata that is held.
    let mut words = words(line).skip(1);
    let metadata = BlockCount::parse(words.next()?)?;
    let data = BlockCount::parse(words.next()?)?;
    let mode = match words.nth(1)? {
        b"rw" => ThinPoolMode::ReadWrite,
        b"out_of_data_space" => ThinPoolMode::OutOfDataSpace,
        b"ro" => ThinPoolMode::ReadOnly,
        _ => return None,
    };
    // The handling of discards comes first, whether a check is needed behind it.
    let queues_writes = words.nth(1) == Some(b"queue_if_no_space");
    let metadata_low_water_blocks = words.nth(1).and_then(parse_u64);
    Some(ThinPoolStatus { mode, queues_writes, data: Some(data), metadata: Some(metadata), metadata_low_water_blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_parsed() {
        let status = |mode: &str, end: &str| {
            parse_thin_pool_status(format!("1 142/4096 2400/9600 - {mode} discard_passdown {end}").as_bytes())
        };
        let found = status("rw", "queue_if_no_space - 1024").unwrap();
        assert_eq!((found.mode, found.queues_writes), (ThinPoolMode::ReadWrite, true));
        assert_eq!(found.data, Some(BlockCount { used: 2400, total: 9600 }));
        assert_eq!(found.metadata.map(BlockCount::free), Some(3954));
        assert_eq!(found.metadata_low_water_blocks, Some(1024));
        let found = status("out_of_data_space", "error_if_no_space needs_check").unwrap();
        assert_eq!((found.mode, found.queues_writes), (ThinPoolMode::OutOfDataSpace, false));
        assert_eq!(found.metadata_low_water_blocks, None, "an older kernel");
        assert_eq!(status("ro", "error_if_no_space -").map(|s| s.mode), Some(ThinPoolMode::ReadOnly));
        assert_eq!(status("on", "error_if_no_space -"), None);
    }

    #[test]
    fn a_failed_pool_says_nothing_else_and_cut_lines_are_refused() {
        for line in [&b"Fail"[..], b"Error "] {
            let found = parse_thin_pool_status(line).unwrap();
            assert_eq!((found.mode, found.data), (ThinPoolMode::Failed, None));
        }
        for line in [&b""[..], b"1", b"1 2/3", b"1 2/3 4/5", b"1 2/3 4/5 -", b"1 23 45 - rw x y z 1", b"1 2/x 4/5 - rw"]
        {
            assert_eq!(parse_thin_pool_status(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_table_is_parsed() {
        let table = |text: &str| parse_thin_pool_table(text.as_bytes());
        let found = ThinPoolTable { block_sectors: 128, low_water_blocks: 96, is_read_only: false };
        assert_eq!(table("253:0 253:1 128 96 1 skip_block_zeroing"), Some(found));
        let read_only = ThinPoolTable { is_read_only: true, ..found };
        assert_eq!(table("253:0 253:1 128 96 2 read_only ignore_discard"), Some(read_only));
        assert_eq!((table("253:0 253:1 128"), table("")), (None, None));
    }
}
