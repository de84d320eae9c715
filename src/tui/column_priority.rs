//! Which columns stay when room gets short: the one table of all lists.

use super::widgets::table::Priority;
use crate::model::columns::device::DeviceColumn as Dev;
use crate::model::columns::process::ProcessColumn as Col;

/// Rank of a column of devices that has nothing to say in any row: it goes before all others.
const EMPTY_RANK: u8 = 1;

/// Columns of tasks. `is_empty`: the column has been `-` in every row on screen for some time.
pub(crate) fn of_process_column(column: Col, is_empty: bool) -> Priority {
    match column {
        Col::Read | Col::Write | Col::AccRead | Col::AccWrite => Priority::Kept,
        _ if is_empty => Priority::Hidden,
        Col::Tid | Col::Pid => Priority::Rank(90),
        Col::Waits => Priority::Rank(85),
        Col::State => Priority::Rank(80),
        Col::Device => Priority::Rank(78),
        Col::Swap => Priority::Rank(75),
        Col::IoDelay => Priority::Rank(70),
        Col::User => Priority::Rank(65),
        Col::Iops | Col::IoLatency => Priority::Rank(60),
        Col::Writeback => Priority::Rank(55),
        Col::SwapinDelay | Col::MajorFaults => Priority::Rank(50),
        Col::Throttled | Col::Reclaim => Priority::Rank(40),
        Col::Rss => Priority::Rank(30),
        Col::Cgroup => Priority::Rank(25),
        Col::Ionice => Priority::Rank(22),
        _ => Priority::Rank(20),
    }
}

/// Columns of devices. `is_empty`: 0 or `-` in every row for some time, such as the reads of a device that only writes.
pub(crate) fn of_device_column(column: Dev, is_empty: bool) -> Priority {
    match column {
        // They tell a slow device from a busy one.
        Dev::Tps | Dev::Await | Dev::Util => Priority::Kept,
        _ if is_empty => Priority::Rank(EMPTY_RANK),
        Dev::Reads | Dev::Writes => Priority::Rank(90),
        Dev::ReadMb | Dev::WriteMb => Priority::Rank(85),
        Dev::ReadAwait | Dev::WriteAwait => Priority::Rank(80),
        Dev::Queue => Priority::Rank(75),
        Dev::InFlight => Priority::Rank(72),
        Dev::ReadP99 | Dev::WriteP99 => Priority::Rank(70),
        Dev::Flushes | Dev::FlushAwait => Priority::Rank(60),
        Dev::FlushP99 => Priority::Rank(55),
        Dev::ReadSize | Dev::WriteSize => Priority::Rank(50),
        Dev::Discards | Dev::DiscardAwait => Priority::Rank(40),
        Dev::DiscardMb | Dev::DiscardSize => Priority::Rank(30),
        Dev::ReadTotal | Dev::WriteTotal => Priority::Rank(25),
        _ => Priority::Rank(20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::columns::device::DeviceColumnSet;
    use crate::model::columns::process::ProcessColumnSet;
    use crate::tui::widgets::table::fit_columns;

    const WIDTHS: std::ops::Range<u16> = 40..260;

    #[test]
    fn a_column_never_goes_before_a_less_important_one() {
        for width in WIDTHS {
            let set = ProcessColumnSet::FullTraced.columns();
            let priority = |i: usize| of_process_column(set[i].id, set[i].id == Col::IoLatency);
            let fitted = fit_columns(set, width, 18, 0, priority);
            let is_shown = |id: Col| fitted.columns.iter().any(|(i, ..)| set[*i].id == id);
            assert!(is_shown(Col::Swap) || !is_shown(Col::Ionice), "PRIO stays before SWAP in {width} cells");
            assert!(is_shown(Col::Swap) || !is_shown(Col::IoLatency), "an empty column stays in {width} cells");
            assert!(is_shown(Col::Ionice) || !is_shown(Col::IoLatency), "an empty column stays in {width} cells");
            assert!(is_shown(Col::Pid) || !is_shown(Col::Waits), "WAITS stays before PID in {width} cells");
            assert!(is_shown(Col::Read) && is_shown(Col::Write) && is_shown(Col::Command));
        }
    }

    #[test]
    fn reads_of_a_device_that_only_writes_go_first() {
        let set = DeviceColumnSet::Extended.columns();
        let is_read = |id: Dev| {
            matches!(
                id,
                Dev::Reads | Dev::ReadMb | Dev::ReadMerges | Dev::ReadMergePct | Dev::ReadAwait | Dev::ReadSize
            )
        };
        let mut narrowest_with_reads = None;
        for width in WIDTHS {
            let fitted = fit_columns(set, width, 16, 0, |i| of_device_column(set[i].id, is_read(set[i].id)));
            let shown: Vec<Dev> = fitted.columns.iter().map(|(i, ..)| set[*i].id).collect();
            if shown.iter().any(|id| is_read(*id)) {
                narrowest_with_reads.get_or_insert(width);
                let is_left_out = |id: Dev| !is_read(id) && !shown.contains(&id);
                assert!(!set.iter().any(|c| is_left_out(c.id)), "{width}: {shown:?}");
            }
            assert!(shown.contains(&Dev::Util) && shown.contains(&Dev::Await) || width < 50, "{width}");
        }
        assert!(narrowest_with_reads.is_some());
    }
}
