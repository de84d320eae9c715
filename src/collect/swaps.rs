//! `/proc/swaps`: swap devices and files.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::memory::SwapArea;
use crate::model::reading::Reading;
use crate::parse::swaps::{self, SwapLine};
use crate::root::Root;
use std::time::{Duration, Instant};

/// How often a machine without swap is checked.
const EMPTY_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

pub(super) fn source(root: &Root) -> Source {
    let mut file = PersistentFile::new(root.proc("swaps"));
    let mut buf = Vec::new();
    // When the list was last seen empty.
    let mut seen_empty_at: Option<Instant> = None;
    Source::new(
        "/proc/swaps",
        |s| &mut s.swap_areas,
        move || {
            if seen_empty_at.is_some_and(|at| at.elapsed() < EMPTY_RECHECK_INTERVAL) {
                return Reading::Ok(Vec::new());
            }
            let areas: Reading<Vec<SwapArea>> = match file.read(&mut buf) {
                Ok(text) => Reading::Ok(swaps::parse(text).map(swap_area).collect()),
                Err(err) => Reading::from_io_error("/proc/swaps", &err),
            };
            seen_empty_at = areas.ok().is_some_and(Vec::is_empty).then(Instant::now);
            areas
        },
    )
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
