//! `/proc/swaps`: swap devices and files.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::memory::SwapArea;
use crate::model::reading::Reading;
use crate::parse::swaps::{self, SwapLine};
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    Source::from_file(
        "/proc/swaps",
        PersistentFile::new(root.proc("swaps")),
        |s| &mut s.swap_areas,
        |text| Reading::Ok(swaps::parse(text).map(swap_area).collect()),
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
