//! Columns of the Devices table, under iostat's names.

use crate::model::column::{Align, CellValue, ColumnSpec};
use crate::model::disk::DiskRate;

/// A column of the Devices table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DeviceColumn {
    Name,
    Tps,
    ReadMb,
    WriteMb,
    Await,
    Queue,
    Util,
    InFlight,
    ReadTotal,
    WriteTotal,
    Reads,
    ReadMerges,
    ReadMergePct,
    ReadAwait,
    ReadSize,
    Writes,
    WriteMerges,
    WriteMergePct,
    WriteAwait,
    WriteSize,
    Discards,
    DiscardMb,
    DiscardAwait,
    DiscardSize,
    Flushes,
    FlushAwait,
    ReadP99,
    WriteP99,
    FlushP99,
}

/// What the cells of a row are made from.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRow<'a> {
    /// Rates.
    pub rate: &'a DiskRate,
    /// Tree prefix, name, label and mount points; sanitized.
    pub label: &'a str,
}

const fn right_aligned(
    id: DeviceColumn,
    name: &'static str,
    head: &'static str,
    width: u16,
    help: &'static str,
) -> ColumnSpec<DeviceColumn> {
    ColumnSpec { id, name, header: head, help, width, align: Align::Right }
}

const NAME: ColumnSpec<DeviceColumn> = ColumnSpec {
    id: DeviceColumn::Name,
    name: "device",
    header: "Device",
    help: "kernel name and mount points, below the parent device",
    width: 0,
    align: Align::Left,
};
const TPS: ColumnSpec<DeviceColumn> =
    right_aligned(DeviceColumn::Tps, "tps", "tps", 7, "reads, writes and discards completed per second");
const READ_MB: ColumnSpec<DeviceColumn> =
    right_aligned(DeviceColumn::ReadMb, "read_mb", "MB_read/s", 9, "read per second, 2^20 bytes");
const WRITE_MB: ColumnSpec<DeviceColumn> =
    right_aligned(DeviceColumn::WriteMb, "write_mb", "MB_wrtn/s", 9, "written per second, 2^20 bytes");
const AWAIT: ColumnSpec<DeviceColumn> =
    right_aligned(DeviceColumn::Await, "await", "await", 8, "mean milliseconds of a request, including queueing");
const QUEUE: ColumnSpec<DeviceColumn> =
    right_aligned(DeviceColumn::Queue, "aqu-sz", "aqu-sz", 6, "mean number of requests in flight");
const UTIL: ColumnSpec<DeviceColumn> = right_aligned(
    DeviceColumn::Util,
    "util",
    "%util",
    6,
    "share of time with a request in flight; not a limit for devices that serve requests in parallel",
);
const IN_FLIGHT: ColumnSpec<DeviceColumn> = right_aligned(
    DeviceColumn::InFlight,
    "in_flight",
    "infl",
    5,
    "requests in flight; STALLED if none completed in the interval",
);

/// `iostat -m`, plus the columns that tell a slow device from a busy one.
pub const DEFAULT: &[ColumnSpec<DeviceColumn>] = &[
    NAME,
    TPS,
    READ_MB,
    WRITE_MB,
    right_aligned(DeviceColumn::ReadTotal, "read_total", "MB_read", 9, "read since the device appeared, 2^20 bytes"),
    right_aligned(
        DeviceColumn::WriteTotal,
        "write_total",
        "MB_wrtn",
        9,
        "written since the device appeared, 2^20 bytes",
    ),
    AWAIT,
    QUEUE,
    UTIL,
    IN_FLIGHT,
];

/// For narrow panes.
pub const COMPACT: &[ColumnSpec<DeviceColumn>] = &[NAME, TPS, READ_MB, WRITE_MB, AWAIT, QUEUE, UTIL];

/// `iostat -x` with its names and in its order, then latencies from tracing.
pub const EXTENDED: &[ColumnSpec<DeviceColumn>] = &[
    NAME,
    right_aligned(DeviceColumn::Reads, "r/s", "r/s", 8, "reads completed per second"),
    right_aligned(DeviceColumn::ReadMb, "rmb/s", "rMB/s", 8, "read per second, 2^20 bytes"),
    right_aligned(DeviceColumn::ReadMerges, "rrqm/s", "rrqm/s", 7, "reads merged into a neighbour per second"),
    right_aligned(DeviceColumn::ReadMergePct, "%rrqm", "%rrqm", 6, "share of reads that were merged"),
    right_aligned(DeviceColumn::ReadAwait, "r_await", "r_await", 8, "mean milliseconds of a read, including queueing"),
    right_aligned(DeviceColumn::ReadSize, "rareq-sz", "rareq-sz", 8, "mean size of a read, KiB"),
    right_aligned(DeviceColumn::Writes, "w/s", "w/s", 8, "writes completed per second"),
    right_aligned(DeviceColumn::WriteMb, "wmb/s", "wMB/s", 8, "written per second, 2^20 bytes"),
    right_aligned(DeviceColumn::WriteMerges, "wrqm/s", "wrqm/s", 8, "writes merged into a neighbour per second"),
    right_aligned(DeviceColumn::WriteMergePct, "%wrqm", "%wrqm", 6, "share of writes that were merged"),
    right_aligned(
        DeviceColumn::WriteAwait,
        "w_await",
        "w_await",
        8,
        "mean milliseconds of a write, including queueing",
    ),
    right_aligned(DeviceColumn::WriteSize, "wareq-sz", "wareq-sz", 8, "mean size of a write, KiB"),
    right_aligned(DeviceColumn::Discards, "d/s", "d/s", 7, "discards completed per second"),
    right_aligned(DeviceColumn::DiscardMb, "dmb/s", "dMB/s", 7, "discarded per second, 2^20 bytes"),
    right_aligned(DeviceColumn::DiscardAwait, "d_await", "d_await", 7, "mean milliseconds of a discard"),
    right_aligned(DeviceColumn::DiscardSize, "dareq-sz", "dareq-sz", 8, "mean size of a discard, KiB"),
    right_aligned(DeviceColumn::Flushes, "f/s", "f/s", 7, "flushes completed per second"),
    right_aligned(DeviceColumn::FlushAwait, "f_await", "f_await", 7, "mean milliseconds of a flush"),
    right_aligned(
        DeviceColumn::ReadP99,
        "r_p99",
        "r_p99",
        8,
        "99th percentile of read latency in milliseconds, from tracing",
    ),
    right_aligned(
        DeviceColumn::WriteP99,
        "w_p99",
        "w_p99",
        8,
        "99th percentile of write latency in milliseconds, from tracing",
    ),
    right_aligned(
        DeviceColumn::FlushP99,
        "f_p99",
        "f_p99",
        8,
        "99th percentile of flush latency in milliseconds, from tracing",
    ),
    AWAIT,
    QUEUE,
    UTIL,
    IN_FLIGHT,
];

impl DeviceRow<'_> {
    /// The cell of a column.
    pub fn value(&self, id: DeviceColumn) -> CellValue<'_> {
        use CellValue::{Fixed, Int};
        let r = self.rate;
        match id {
            DeviceColumn::Name => CellValue::Text(self.label),
            DeviceColumn::Tps => Fixed(r.tps, rate_decimals(r.tps)),
            DeviceColumn::ReadMb => Fixed(r.read_mb_per_s, 2),
            DeviceColumn::WriteMb => Fixed(r.write_mb_per_s, 2),
            DeviceColumn::ReadTotal => Fixed(r.read_mb_total, 0),
            DeviceColumn::WriteTotal => Fixed(r.write_mb_total, 0),
            // A device that completes nothing has no await; 0 would be wrong.
            DeviceColumn::Await if r.stalled => CellValue::Missing,
            DeviceColumn::Await => Fixed(r.await_ms, 2),
            DeviceColumn::Queue => Fixed(r.queue_size, 2),
            DeviceColumn::Util => Fixed(r.util_pct, 1),
            DeviceColumn::InFlight => Int(r.in_flight),
            DeviceColumn::Reads => Fixed(r.reads_per_s, rate_decimals(r.reads_per_s)),
            DeviceColumn::ReadMerges => Fixed(r.read_merges_per_s, rate_decimals(r.read_merges_per_s)),
            DeviceColumn::ReadMergePct => Fixed(merge_pct(r.read_merges_per_s, r.reads_per_s), 1),
            DeviceColumn::ReadAwait if r.stalled => CellValue::Missing,
            DeviceColumn::ReadAwait => Fixed(r.read_await_ms, 2),
            DeviceColumn::ReadSize => Fixed(r.read_request_kb, 1),
            DeviceColumn::Writes => Fixed(r.writes_per_s, rate_decimals(r.writes_per_s)),
            DeviceColumn::WriteMerges => Fixed(r.write_merges_per_s, rate_decimals(r.write_merges_per_s)),
            DeviceColumn::WriteMergePct => Fixed(merge_pct(r.write_merges_per_s, r.writes_per_s), 1),
            DeviceColumn::WriteAwait if r.stalled => CellValue::Missing,
            DeviceColumn::WriteAwait => Fixed(r.write_await_ms, 2),
            DeviceColumn::WriteSize => Fixed(r.write_request_kb, 1),
            DeviceColumn::Discards => CellValue::fixed(r.discards_per_s, 1),
            DeviceColumn::DiscardMb => CellValue::fixed(r.discard_mb_per_s, 1),
            DeviceColumn::DiscardAwait => CellValue::fixed(r.discard_await_ms, 2),
            DeviceColumn::DiscardSize => CellValue::fixed(r.discard_request_kb, 1),
            DeviceColumn::Flushes => CellValue::fixed(r.flushes_per_s, 1),
            DeviceColumn::FlushAwait => CellValue::fixed(r.flush_await_ms, 2),
            DeviceColumn::ReadP99 => p99(r, 0),
            DeviceColumn::WriteP99 => p99(r, 1),
            DeviceColumn::FlushP99 => p99(r, 2),
        }
    }
}

/// 99th percentile in milliseconds, for a kind of [`REQUEST_KINDS`](crate::model::latency::REQUEST_KINDS).
fn p99(r: &DiskRate, kind: usize) -> CellValue<'_> {
    let spread = r.latency.as_ref().and_then(|l| l.kinds[kind].total);
    CellValue::fixed(spread.map(|s| s.p99 / 1e3), 3)
}

fn rate_decimals(n: f64) -> u8 {
    if n < 10_000.0 { 2 } else { 0 }
}

/// Merged requests as a percentage of all submitted ones.
fn merge_pct(merged: f64, issued: f64) -> f64 {
    if merged + issued > 0.0 { merged * 100.0 / (merged + issued) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_device_has_no_await() {
        let mut rate = DiskRate { await_ms: 3.0, ..Default::default() };
        let value = |rate: &DiskRate| {
            let mut s = String::new();
            DeviceRow { rate, label: "sda" }.value(DeviceColumn::Await).write(&mut s);
            s
        };
        assert_eq!(value(&rate), "3.00");
        rate.stalled = true;
        assert_eq!(value(&rate), "-");
    }

    #[test]
    fn column_names_are_unique_within_a_set() {
        for set in [DEFAULT, COMPACT, EXTENDED] {
            let names: std::collections::HashSet<_> = set.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), set.len());
        }
    }
}
