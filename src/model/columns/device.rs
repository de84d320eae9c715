//! Columns of the Devices table, under iostat's names. Adding one is a variant and a row of [`COLUMNS`].

use crate::model::column::CellValue::{self, Fixed, Int, Text};
use crate::model::column::{ColumnSource, ColumnSpec, split_into_sets};
use crate::model::disk::DiskRate;
use std::sync::LazyLock;

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
use DeviceColumn as Col;

/// What the cells of a row are made from.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRow<'a> {
    /// Rates.
    pub rate: &'a DiskRate,
    /// Tree prefix, name, label and mount points; sanitized.
    pub label: &'a str,
}

/// A column of the Devices table.
pub type DeviceColumnSpec = ColumnSpec<DeviceColumn, for<'a> fn(&DeviceRow<'a>) -> CellValue<'a>>;

/// The sets of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceColumnSet {
    /// For narrow panes.
    Compact,
    /// `iostat -m`, plus the columns that tell a slow device from a busy one.
    Default,
    /// `iostat -x` with its names and in its order, then latencies from tracing.
    Extended,
    /// `Default`, with reads and writes apart where there is room.
    Wide,
}

const COMPACT: u16 = 1 << DeviceColumnSet::Compact as u16;
const DEFAULT: u16 = 1 << DeviceColumnSet::Default as u16;
const EXTENDED: u16 = 1 << DeviceColumnSet::Extended as u16;
const WIDE: u16 = 1 << DeviceColumnSet::Wide as u16;

impl DeviceColumnSet {
    /// Its columns in display order.
    pub fn columns(self) -> &'static [DeviceColumnSpec] {
        static SETS: LazyLock<[Vec<DeviceColumnSpec>; 4]> = LazyLock::new(|| split_into_sets(COLUMNS));
        &SETS[self as usize]
    }
}

/// A wait from this long on is slow for any disk, milliseconds.
const SLOW_MS: f64 = 100.0;

static DISKSTATS: ColumnSource = ColumnSource::new("/proc/diskstats", "");
static DISKSTATS_TIMES: ColumnSource = ColumnSource::new(
    "/proc/diskstats",
    "while requests are in flight and none completes, and where the kernel does not count it",
);
static LATENCY_TRACING: ColumnSource = ColumnSource::new(
    "tracing of block requests, from allocation (before they are queued) to completion",
    "without tracing (needs CAP_BPF and CAP_PERFMON), and while none completes",
);
static TOPOLOGY: ColumnSource = ColumnSource::new("/sys/dev/block and /proc/self/mountinfo", "");

/// Every column, in display order.
pub static COLUMNS: &[DeviceColumnSpec] = &[
    ColumnSpec::left(
        Col::Name,
        "Device",
        0,
        |d| Text(d.label),
        "kernel name and mount points, below the parent device",
    ),
    x(Col::Reads, "r/s", 8, |d| rate(d.rate.reads_per_s), "reads completed per second"),
    x(Col::ReadMb, "rMB/s", 8, |d| Fixed(d.rate.read_mb_per_s, 2), "read per second, 2^20 bytes"),
    x(Col::ReadMerges, "rrqm/s", 7, |d| rate(d.rate.read_merges_per_s), "reads merged into a neighbour per second"),
    x(
        Col::ReadMergePct,
        "%rrqm",
        6,
        |d| merged(d.rate.read_merges_per_s, d.rate.reads_per_s),
        "percent of reads merged",
    ),
    x(Col::ReadAwait, "r_await", 8, |d| wait(d, d.rate.read_await_ms), "mean milliseconds of a read, with queueing")
        .thresholds(SLOW_MS, f64::INFINITY),
    x(Col::ReadSize, "rareq-sz", 8, |d| Fixed(d.rate.read_request_kb, 1), "mean size of a read, KiB"),
    x(Col::Writes, "w/s", 8, |d| rate(d.rate.writes_per_s), "writes completed per second"),
    x(Col::WriteMb, "wMB/s", 8, |d| Fixed(d.rate.write_mb_per_s, 2), "written per second, 2^20 bytes"),
    x(Col::WriteMerges, "wrqm/s", 8, |d| rate(d.rate.write_merges_per_s), "writes merged into a neighbour per second"),
    x(
        Col::WriteMergePct,
        "%wrqm",
        6,
        |d| merged(d.rate.write_merges_per_s, d.rate.writes_per_s),
        "percent of writes merged",
    ),
    x(Col::WriteAwait, "w_await", 8, |d| wait(d, d.rate.write_await_ms), "mean milliseconds of a write, with queueing")
        .thresholds(SLOW_MS, f64::INFINITY),
    x(Col::WriteSize, "wareq-sz", 8, |d| Fixed(d.rate.write_request_kb, 1), "mean size of a write, KiB"),
    x(Col::Discards, "d/s", 7, |d| known(d.rate.discards_per_s, 1), "discards completed per second"),
    x(Col::DiscardMb, "dMB/s", 7, |d| known(d.rate.discard_mb_per_s, 1), "discarded per second, 2^20 bytes"),
    x(Col::DiscardAwait, "d_await", 7, |d| known(d.rate.discard_await_ms, 2), "mean milliseconds of a discard"),
    x(Col::DiscardSize, "dareq-sz", 8, |d| known(d.rate.discard_request_kb, 1), "mean size of a discard, KiB"),
    x(Col::Flushes, "f/s", 7, |d| known(d.rate.flushes_per_s, 1), "flushes completed per second"),
    x(Col::FlushAwait, "f_await", 7, |d| known(d.rate.flush_await_ms, 2), "mean milliseconds of a flush"),
    x(Col::ReadP99, "r_p99", 8, |d| p99(d, 0), "99th percentile of read latency in milliseconds, from tracing"),
    x(Col::WriteP99, "w_p99", 8, |d| p99(d, 1), "99th percentile of write latency in milliseconds, from tracing"),
    x(Col::FlushP99, "f_p99", 8, |d| p99(d, 2), "99th percentile of flush latency in milliseconds, from tracing"),
    m(Col::Tps, "tps", 7, |d| rate(d.rate.tps), "reads, writes and discards completed per second"),
    m(Col::ReadMb, "MB_read/s", 9, |d| Fixed(d.rate.read_mb_per_s, 2), "read per second, 2^20 bytes"),
    m(Col::WriteMb, "MB_wrtn/s", 9, |d| Fixed(d.rate.write_mb_per_s, 2), "written per second, 2^20 bytes"),
    m(Col::ReadTotal, "MB_read", 9, |d| Fixed(d.rate.read_mb_total, 0), "read since the device appeared, 2^20 bytes")
        .only_in(DEFAULT | WIDE),
    m(
        Col::WriteTotal,
        "MB_wrtn",
        9,
        |d| Fixed(d.rate.write_mb_total, 0),
        "written since the device appeared, 2^20 bytes",
    )
    .only_in(DEFAULT | WIDE),
    right(Col::Await, "await", 8, |d| wait(d, d.rate.await_ms), "mean milliseconds of a request, with queueing")
        .thresholds(SLOW_MS, f64::INFINITY),
    d(Col::ReadAwait, "r_await", 8, |d| wait(d, d.rate.read_await_ms), "mean milliseconds of a read, with queueing")
        .thresholds(SLOW_MS, f64::INFINITY),
    d(Col::WriteAwait, "w_await", 8, |d| wait(d, d.rate.write_await_ms), "mean milliseconds of a write, with queueing")
        .thresholds(SLOW_MS, f64::INFINITY),
    d(Col::ReadP99, "r_p99", 8, |d| p99(d, 0), "99th percentile of read latency in milliseconds, from tracing"),
    d(Col::WriteP99, "w_p99", 8, |d| p99(d, 1), "99th percentile of write latency in milliseconds, from tracing"),
    right(Col::Queue, "aqu-sz", 6, |d| Fixed(d.rate.queue_size, 2), "mean number of requests in flight"),
    right(
        Col::Util,
        "%util",
        6,
        |d| Fixed(d.rate.util_pct, 1),
        "percent of time with a request in flight; no limit where a device serves several at once",
    )
    .thresholds(70.0, 95.0),
    right(
        Col::InFlight,
        "infl",
        5,
        |d| Int(d.rate.in_flight),
        "number of requests in flight; STALLED if none completed",
    )
    .only_in(DEFAULT | EXTENDED | WIDE),
];

type Value = for<'a> fn(&DeviceRow<'a>) -> CellValue<'a>;

const fn right(id: Col, header: &'static str, width: u16, value: Value, help: &'static str) -> DeviceColumnSpec {
    ColumnSpec::right(id, header, width, value, help)
}

/// A column of `iostat -x`.
const fn x(id: Col, header: &'static str, width: u16, value: Value, help: &'static str) -> DeviceColumnSpec {
    right(id, header, width, value, help).only_in(EXTENDED)
}

/// A column beside those of `iostat -m`, where there is room.
const fn d(id: Col, header: &'static str, width: u16, value: Value, help: &'static str) -> DeviceColumnSpec {
    right(id, header, width, value, help).only_in(WIDE)
}

/// A column of `iostat -m`.
const fn m(id: Col, header: &'static str, width: u16, value: Value, help: &'static str) -> DeviceColumnSpec {
    right(id, header, width, value, help).only_in(COMPACT | DEFAULT | WIDE)
}

impl DeviceColumn {
    /// The column of a heading.
    pub fn by_header(header: &str) -> Option<&'static DeviceColumnSpec> {
        COLUMNS.iter().find(|c| c.header == header)
    }

    /// What it is read from.
    pub fn source(self) -> &'static ColumnSource {
        match self {
            Col::Name => &TOPOLOGY,
            Col::ReadP99 | Col::WriteP99 | Col::FlushP99 => &LATENCY_TRACING,
            Col::Await | Col::ReadAwait | Col::WriteAwait | Col::DiscardAwait | Col::FlushAwait => &DISKSTATS_TIMES,
            Col::Discards | Col::DiscardMb | Col::DiscardSize | Col::Flushes => &DISKSTATS_TIMES,
            _ => &DISKSTATS,
        }
    }

    /// The value in a row.
    pub fn value<'a>(self, row: &DeviceRow<'a>) -> CellValue<'a> {
        (self.spec().value)(row)
    }

    /// Its description; that of the first set that has it.
    pub fn spec(self) -> &'static DeviceColumnSpec {
        COLUMNS.iter().find(|c| c.id == self).unwrap_or(&COLUMNS[0])
    }
}

fn known<'a>(n: Option<f64>, decimals: u8) -> CellValue<'a> {
    CellValue::fixed(n, decimals)
}

fn rate<'a>(n: f64) -> CellValue<'a> {
    Fixed(n, if n < 10_000.0 { 2 } else { 0 })
}

/// A device that completes nothing has no await; 0 would be wrong.
fn wait<'a>(row: &DeviceRow<'_>, ms: f64) -> CellValue<'a> {
    if row.rate.stalled { CellValue::Missing } else { Fixed(ms, 2) }
}

/// 99th percentile in milliseconds, for a kind of [`REQUEST_KINDS`](crate::model::latency::REQUEST_KINDS).
fn p99<'a>(row: &DeviceRow<'_>, kind: usize) -> CellValue<'a> {
    let summary = row.rate.latency.as_ref().and_then(|l| l.kinds[kind].total);
    CellValue::fixed(summary.map(|s| s.p99 / 1e3), 3)
}

/// Merged requests as a percentage of all submitted ones.
fn merged<'a>(merged: f64, issued: f64) -> CellValue<'a> {
    Fixed(if merged + issued > 0.0 { merged * 100.0 / (merged + issued) } else { 0.0 }, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_device_has_no_await() {
        let mut rate = DiskRate { await_ms: 3.0, ..Default::default() };
        let value = |rate: &DiskRate| {
            let mut s = String::new();
            DeviceColumn::Await.value(&DeviceRow { rate, label: "sda" }).write(&mut s);
            s
        };
        assert_eq!(value(&rate), "3.00");
        rate.stalled = true;
        assert_eq!(value(&rate), "-");
    }

    #[test]
    fn columns_are_unique_within_a_set() {
        for set in [DeviceColumnSet::Default, DeviceColumnSet::Compact, DeviceColumnSet::Extended] {
            let headers: std::collections::HashSet<_> = set.columns().iter().map(|c| c.header).collect();
            assert_eq!(headers.len(), set.columns().len());
        }
    }
}
