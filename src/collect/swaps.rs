//! `/proc/swaps`: swap devices and files.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::reading::Reading;
use crate::parse::swaps;
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    Source::from_file(
        "/proc/swaps",
        PersistentFile::new(root.proc("swaps")),
        |s| &mut s.swap_areas,
        |text| Reading::Ok(swaps::parse(text).collect()),
    )
}
