//! `/proc/swaps`: swap devices and files.

use super::byte_parse::{lines, parse_i64, parse_u64, unescape_octal, words};
use super::kernel_file::PersistentFile;
use super::{SampleUpdate, Source};
use crate::model::memory::SwapArea;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::root::Root;
use std::time::{Duration, Instant};

/// A machine without swap is asked again only so often.
const EMPTY_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Reads `/proc/swaps`.
pub struct SwapsSource {
    file: PersistentFile,
    buf: Vec<u8>,
    /// When there was last seen to be none.
    seen_empty_at: Option<Instant>,
}

impl SwapsSource {
    /// Reads below `root`.
    pub fn new(root: &Root) -> Self {
        Self { file: PersistentFile::new(root.proc("swaps")), buf: Vec::new(), seen_empty_at: None }
    }
}

impl Source for SwapsSource {
    fn name(&self) -> &'static str {
        "/proc/swaps"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.swap_areas = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        if self.seen_empty_at.is_some_and(|at| at.elapsed() < EMPTY_RECHECK_INTERVAL) {
            return Box::new(|s| s.swap_areas = Reading::Ok(Vec::new()));
        }
        let areas: Reading<Vec<SwapArea>> = match self.file.read(&mut self.buf) {
            Ok(text) => Reading::Ok(lines(text).skip(1).filter_map(parse_line).collect()),
            Err(err) => Reading::from_io_error("/proc/swaps", &err),
        };
        self.seen_empty_at = areas.ok().is_some_and(Vec::is_empty).then(Instant::now);
        Box::new(move |s| s.swap_areas = areas)
    }
}

/// One area; `None` for a line that is none.
pub(super) fn parse_line(line: &[u8]) -> Option<SwapArea> {
    let mut w = words(line);
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    Some(SwapArea {
        name: text(&unescape_octal(w.next()?)),
        kind: text(w.next()?),
        size_bytes: parse_u64(w.next()?)?.saturating_mul(1024),
        used_bytes: parse_u64(w.next()?)?.saturating_mul(1024),
        priority: parse_i64(w.next()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unescaped_and_priorities_signed() {
        let a = parse_line(b"/swap\\040file file\t\t1024\t\t512\t\t-2").unwrap();
        assert_eq!((a.name.as_str(), a.kind.as_str()), ("/swap file", "file"));
        assert_eq!((a.size_bytes, a.used_bytes, a.priority), (1_048_576, 524_288, -2));
        assert_eq!(parse_line(b"short line"), None);
    }
}
