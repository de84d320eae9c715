//! `/proc/meminfo` (Documentation/filesystems/proc.rst).

use super::kernel_file::PersistentFile;
use super::{SampleUpdate, Source};
use crate::model::memory::MemRaw;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::parse::{bytes::lines, key_value};
use crate::root::Root;

/// Reads `/proc/meminfo`.
pub struct MeminfoSource {
    file: PersistentFile,
    buf: Vec<u8>,
}

impl MeminfoSource {
    /// A source below `root`.
    pub fn new(root: &Root) -> Self {
        Self { file: PersistentFile::whole(root.proc("meminfo")), buf: Vec::new() }
    }
}

impl Source for MeminfoSource {
    fn name(&self) -> &'static str {
        "/proc/meminfo"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.mem = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let mem = match self.file.read(&mut self.buf) {
            Ok(text) => parse(text)
                .map(Reading::Ok)
                .unwrap_or_else(|| Reading::Absent("/proc/meminfo: no MemTotal line".into())),
            Err(err) => Reading::from_io_error("/proc/meminfo", &err),
        };
        Box::new(move |s| s.mem = mem)
    }
}

/// Parses the whole file, kB as bytes; `None` without MemTotal.
pub fn parse(text: &[u8]) -> Option<MemRaw> {
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
