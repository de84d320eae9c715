//! `/proc/vmstat`: dirty, writeback, thresholds, swap traffic.

use super::kernel_file::PersistentFile;
use super::source::Source;
use crate::model::memory::VmRaw;
use crate::model::reading::Reading;
use crate::parse::{bytes::lines, key_value};
use crate::root::Root;

pub(super) fn source(root: &Root) -> Source {
    let page_size = rustix::param::page_size() as u64;
    Source::from_file(
        "/proc/vmstat",
        PersistentFile::new(root.proc("vmstat")),
        |s| &mut s.vm,
        move |text| Reading::Ok(parse(text, page_size)),
    )
}

/// Parses the lines that are used; missing ones are `None`.
pub(super) fn parse(text: &[u8], page_size: u64) -> VmRaw {
    let mut raw = VmRaw { page_size, ..Default::default() };
    for (name, value) in lines(text).filter_map(key_value) {
        if let Some(slot) = field_mut(&mut raw, name) {
            // There is one allocstall_* line per memory zone: they are added up.
            *slot = Some(slot.unwrap_or(0).saturating_add(value));
        }
    }
    raw
}

fn field_mut<'a>(raw: &'a mut VmRaw, name: &[u8]) -> Option<&'a mut Option<u64>> {
    Some(match name {
        b"nr_dirty" => &mut raw.nr_dirty,
        b"nr_writeback" => &mut raw.nr_writeback,
        b"nr_writeback_temp" => &mut raw.nr_writeback_temp,
        b"nr_dirtied" => &mut raw.nr_dirtied,
        b"nr_written" => &mut raw.nr_written,
        b"nr_dirty_threshold" => &mut raw.nr_dirty_threshold,
        b"nr_dirty_background_threshold" => &mut raw.nr_dirty_background_threshold,
        b"pgpgin" => &mut raw.pgpgin,
        b"pgpgout" => &mut raw.pgpgout,
        b"pswpin" => &mut raw.pswpin,
        b"pswpout" => &mut raw.pswpout,
        b"pgmajfault" => &mut raw.pgmajfault,
        b"pgscan_kswapd" => &mut raw.pgscan_kswapd,
        b"pgscan_direct" => &mut raw.pgscan_direct,
        b"oom_kill" => &mut raw.oom_kill,
        name if name.starts_with(b"allocstall_") => &mut raw.allocstall,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_summed_or_left_none() {
        let raw =
            parse(b"nr_dirty 12\nnr_dirty_threshold 900\nallocstall_dma 1\nallocstall_normal 2\npswpin x\n", 4096);
        assert_eq!((raw.nr_dirty, raw.nr_dirty_threshold), (Some(12), Some(900)));
        assert_eq!(raw.allocstall, Some(3));
        assert_eq!((raw.pswpin, raw.nr_writeback), (None, None));
    }
}
