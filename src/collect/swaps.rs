//! `/proc/swaps`: swap devices and files.

use super::kernel_file::PersistentFile;
use super::{SampleUpdate, Source};
use crate::model::memory::SwapArea;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::parse::swaps::{self, SwapLine};
use crate::root::Root;
use std::time::{Duration, Instant};

/// How often a machine without swap is checked.
const EMPTY_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Reads `/proc/swaps`.
pub struct SwapsSource {
    file: PersistentFile,
    buf: Vec<u8>,
    /// When the list was last seen empty.
    seen_empty_at: Option<Instant>,
}

impl SwapsSource {
    /// A source below `root`.
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
            Ok(text) => Reading::Ok(swaps::parse(text).map(swap_area).collect()),
            Err(err) => Reading::from_io_error("/proc/swaps", &err),
        };
        self.seen_empty_at = areas.ok().is_some_and(Vec::is_empty).then(Instant::now);
        Box::new(move |s| s.swap_areas = areas)
    }
}

pub(super) fn swap_area(line: SwapLine) -> SwapArea {
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    SwapArea {
        name: text(&line.name),
        kind: text(&line.kind),
        size_bytes: line.size_kib.saturating_mul(1024),
        used_bytes: line.used_kib.saturating_mul(1024),
        priority: line.priority,
    }
}
