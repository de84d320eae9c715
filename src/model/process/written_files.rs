//! The files that a process has open for writing, read on demand.

use crate::model::disk::DevId;
use crate::model::raw_bytes::RawBytes;
use serde::{Deserialize, Serialize};

/// A regular file or block device that is open for writing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Number of the descriptor.
    pub fd: u32,
    /// Its path as the process sees it.
    pub path: RawBytes,
    /// Number of the mount, as in the mount table.
    pub mount_id: u64,
    /// Offset of the next write by this descriptor, in bytes; pwrite(2) leaves it where it is.
    pub position: u64,
    /// In bytes.
    pub size: u64,
    /// Of the file system; of a block device itself.
    pub device: DevId,
}

/// One reading of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFiles {
    /// CLOCK_BOOTTIME, ns.
    pub read_ns: u64,
    /// By descriptor.
    pub files: Vec<WrittenFile>,
    /// Descriptors that were not looked at, because there are too many.
    pub skipped: usize,
}

impl WrittenFiles {
    /// Bytes per second that a file has grown by, and that its offset has moved by, since `before`; `None` without an
    /// earlier reading of the same file.
    pub fn growth(&self, before: Option<&Self>, file: &WrittenFile) -> Option<(f64, f64)> {
        let before = before?;
        let is_same = |old: &&WrittenFile| (old.fd, &old.path, old.device) == (file.fd, &file.path, file.device);
        let old = before.files.iter().find(is_same)?;
        let secs = self.read_ns.checked_sub(before.read_ns).filter(|ns| *ns > 0)? as f64 / 1e9;
        let per_s = |now: u64, then: u64| (now as f64 - then as f64) / secs;
        Some((per_s(file.size, old.size), per_s(file.position, old.position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_same_file() {
        let file =
            |path: &str, size, position| WrittenFile { fd: 3, path: path.into(), size, position, ..Default::default() };
        let at = |read_ns, file| WrittenFiles { read_ns, files: vec![file], skipped: 0 };
        let before = at(1_000_000_000, file("/log", 1000, 400));
        let now = at(3_000_000_000, file("/log", 5000, 300));
        assert_eq!(now.growth(Some(&before), &now.files[0]), Some((2000.0, -50.0)));
        assert_eq!(now.growth(None, &now.files[0]), None);
        let rotated = at(3_000_000_000, file("/log.new", 5, 5));
        assert_eq!(rotated.growth(Some(&before), &rotated.files[0]), None, "another file, not one that shrank");
    }
}
