//! `/proc/meminfo` (Documentation/filesystems/proc.rst).

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::memory::MemRaw;
use crate::model::reading::Reading;
use crate::parse::{bytes::lines, key_value};
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    Source::from_file(
        "/proc/meminfo",
        PersistentFile::whole(root.proc("meminfo")),
        |s| &mut s.mem,
        |text| parse(text).map_or_else(|| Reading::Absent("/proc/meminfo: no MemTotal line".into()), Reading::Ok),
    )
}

/// Parses the whole file, kB as bytes; `None` without MemTotal.
pub(super) fn parse(text: &[u8]) -> Option<MemRaw> {
    let mut raw = MemRaw::default();
    for (name, kb) in lines(text).filter_map(key_value) {
        let bytes = kb.saturating_mul(1024);
        match name {
            b"MemTotal" => raw.total = bytes,
            b"MemFree" => raw.free = bytes,
            b"MemAvailable" => raw.available = Some(bytes),
            b"Buffers" => raw.buffers = bytes,
            b"Cached" => raw.cached = bytes,
            b"SwapCached" => raw.swap_cached = bytes,
            b"SwapTotal" => raw.swap_total = bytes,
            b"SwapFree" => raw.swap_free = bytes,
            b"Dirty" => raw.dirty = bytes,
            b"Writeback" => raw.writeback = bytes,
            b"AnonPages" => raw.anon = Some(bytes),
            b"Shmem" => raw.shmem = Some(bytes),
            _ => {}
        }
    }
    (raw.total > 0).then_some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_become_bytes() {
        let raw = parse(b"MemTotal:  100 kB\nMemFree: 40 kB\nDirty:   3 kB\nHugePages_Total: 7\n").unwrap();
        assert_eq!((raw.total, raw.free, raw.dirty, raw.available), (102_400, 40_960, 3072, None));
        assert_eq!(parse(b"nonsense\n"), None);
    }
}
