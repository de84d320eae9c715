//! Columns of the Devices table, under iostat's names.

use crate::model::column::{Align, Column, Value};
use crate::model::disk::DiskRate;

/// A column of the Devices table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DeviceCol {
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

/// What a row shows beside its rates.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRow<'a> {
    /// Rates.
    pub rate: &'a DiskRate,
    /// Tree prefix, name, label, mounts: made by whoever knows the topology; cleaned.
    pub label: &'a str,
}

const fn col(
    id: DeviceCol,
    name: &'static str,
    head: &'static str,
    width: u16,
    help: &'static str,
) -> Column<DeviceCol> {
    Column { id, name, head, help, width, align: Align::Right }
}

const NAME: Column<DeviceCol> = Column {
    id: DeviceCol::Name,
    name: "device",
    head: "Device",
    help: "kernel name, below the device it is a part of, and where it is mounted",
    width: 0,
    align: Align::Left,
};
const TPS: Column<DeviceCol> =
    col(DeviceCol::Tps, "tps", "tps", 7, "reads, writes and discards completed per second");
const READ_MB: Column<DeviceCol> =
    col(DeviceCol::ReadMb, "read_mb", "MB_read/s", 9, "read per second, 2^20 bytes");
const WRITE_MB: Column<DeviceCol> =
    col(DeviceCol::WriteMb, "write_mb", "MB_wrtn/s", 9, "written per second, 2^20 bytes");
const AWAIT: Column<DeviceCol> =
    col(DeviceCol::Await, "await", "await", 8, "milliseconds a request took, queue included; all kinds");
const QUEUE: Column<DeviceCol> =
    col(DeviceCol::Queue, "aqu-sz", "aqu-sz", 6, "mean number of requests in flight");
const UTIL: Column<DeviceCol> = col(
    DeviceCol::Util,
    "util",
    "%util",
    6,
    "share of time with a request in flight; 100 is no limit for devices that serve in parallel",
);
const IN_FLIGHT: Column<DeviceCol> = col(
    DeviceCol::InFlight,
    "in_flight",
    "infl",
    5,
    "requests in flight now; STALLED: none completed meanwhile",
);

/// `iostat -m`, with what tells a slow device from a busy one.
pub const PLAIN: &[Column<DeviceCol>] = &[
    NAME,
    TPS,
    READ_MB,
    WRITE_MB,
    col(DeviceCol::ReadTotal, "read_total", "MB_read", 9, "read since the device appeared, 2^20 bytes"),
    col(DeviceCol::WriteTotal, "write_total", "MB_wrtn", 9, "written since the device appeared, 2^20 bytes"),
    AWAIT,
    QUEUE,
    UTIL,
    IN_FLIGHT,
];

/// What fits beside other panes.
pub const SHORT: &[Column<DeviceCol>] = &[NAME, TPS, READ_MB, WRITE_MB, AWAIT, QUEUE, UTIL];

/// `iostat -x`, under its names, in its order; then what tracing adds.
pub const EXTENDED: &[Column<DeviceCol>] = &[
    NAME,
    col(DeviceCol::Reads, "r/s", "r/s", 8, "reads completed per second"),
    col(DeviceCol::ReadMb, "rmb/s", "rMB/s", 8, "read per second, 2^20 bytes"),
    col(DeviceCol::ReadMerges, "rrqm/s", "rrqm/s", 7, "reads merged into a neighbour per second"),
    col(DeviceCol::ReadMergePct, "%rrqm", "%rrqm", 6, "share of reads that were merged"),
    col(DeviceCol::ReadAwait, "r_await", "r_await", 8, "milliseconds a read took, queue included"),
    col(DeviceCol::ReadSize, "rareq-sz", "rareq-sz", 8, "mean size of a read, KiB"),
    col(DeviceCol::Writes, "w/s", "w/s", 8, "writes completed per second"),
    col(DeviceCol::WriteMb, "wmb/s", "wMB/s", 8, "written per second, 2^20 bytes"),
    col(DeviceCol::WriteMerges, "wrqm/s", "wrqm/s", 8, "writes merged into a neighbour per second"),
    col(DeviceCol::WriteMergePct, "%wrqm", "%wrqm", 6, "share of writes that were merged"),
    col(DeviceCol::WriteAwait, "w_await", "w_await", 8, "milliseconds a write took, queue included"),
    col(DeviceCol::WriteSize, "wareq-sz", "wareq-sz", 8, "mean size of a write, KiB"),
    col(DeviceCol::Discards, "d/s", "d/s", 7, "discards completed per second"),
    col(DeviceCol::DiscardMb, "dmb/s", "dMB/s", 7, "discarded per second, 2^20 bytes"),
    col(DeviceCol::DiscardAwait, "d_await", "d_await", 7, "milliseconds a discard took"),
    col(DeviceCol::DiscardSize, "dareq-sz", "dareq-sz", 8, "mean size of a discard, KiB"),
    col(DeviceCol::Flushes, "f/s", "f/s", 7, "flushes completed per second"),
    col(DeviceCol::FlushAwait, "f_await", "f_await", 7, "milliseconds a flush took"),
    col(DeviceCol::ReadP99, "r_p99", "r_p99", 8, "milliseconds that 99 % of reads stayed within, by tracing"),
    col(
        DeviceCol::WriteP99,
        "w_p99",
        "w_p99",
        8,
        "milliseconds that 99 % of writes stayed within, by tracing",
    ),
    col(
        DeviceCol::FlushP99,
        "f_p99",
        "f_p99",
        8,
        "milliseconds that 99 % of flushes stayed within, by tracing",
    ),
    AWAIT,
    QUEUE,
    UTIL,
    IN_FLIGHT,
];

impl DeviceRow<'_> {
    /// The cell of a column.
    pub fn value(&self, id: DeviceCol) -> Value<'_> {
        use Value::{Fixed, Int};
        let r = self.rate;
        match id {
            DeviceCol::Name => Value::Text(self.label),
            DeviceCol::Tps => Fixed(r.tps, rate_decimals(r.tps)),
            DeviceCol::ReadMb => Fixed(r.read_mb_per_s, 2),
            DeviceCol::WriteMb => Fixed(r.write_mb_per_s, 2),
            DeviceCol::ReadTotal => Fixed(r.read_mb_total, 0),
            DeviceCol::WriteTotal => Fixed(r.write_mb_total, 0),
            // A device that completes nothing has no await: 0 here would be a lie.
            DeviceCol::Await if r.stalled => Value::Missing,
            DeviceCol::Await => Fixed(r.await_ms, 2),
            DeviceCol::Queue => Fixed(r.queue_size, 2),
            DeviceCol::Util => Fixed(r.util_pct, 1),
            DeviceCol::InFlight => Int(r.in_flight),
            DeviceCol::Reads => Fixed(r.reads_per_s, rate_decimals(r.reads_per_s)),
            DeviceCol::ReadMerges => Fixed(r.read_merges_per_s, rate_decimals(r.read_merges_per_s)),
            DeviceCol::ReadMergePct => Fixed(share(r.read_merges_per_s, r.reads_per_s), 1),
            DeviceCol::ReadAwait if r.stalled => Value::Missing,
            DeviceCol::ReadAwait => Fixed(r.read_await_ms, 2),
            DeviceCol::ReadSize => Fixed(r.read_request_kb, 1),
            DeviceCol::Writes => Fixed(r.writes_per_s, rate_decimals(r.writes_per_s)),
            DeviceCol::WriteMerges => Fixed(r.write_merges_per_s, rate_decimals(r.write_merges_per_s)),
            DeviceCol::WriteMergePct => Fixed(share(r.write_merges_per_s, r.writes_per_s), 1),
            DeviceCol::WriteAwait if r.stalled => Value::Missing,
            DeviceCol::WriteAwait => Fixed(r.write_await_ms, 2),
            DeviceCol::WriteSize => Fixed(r.write_request_kb, 1),
            DeviceCol::Discards => Value::fixed(r.discards_per_s, 1),
            DeviceCol::DiscardMb => Value::fixed(r.discard_mb_per_s, 1),
            DeviceCol::DiscardAwait => Value::fixed(r.discard_await_ms, 2),
            DeviceCol::DiscardSize => Value::fixed(r.discard_request_kb, 1),
            DeviceCol::Flushes => Value::fixed(r.flushes_per_s, 1),
            DeviceCol::FlushAwait => Value::fixed(r.flush_await_ms, 2),
            DeviceCol::ReadP99 => p99(r, 0),
            DeviceCol::WriteP99 => p99(r, 1),
            DeviceCol::FlushP99 => p99(r, 2),
        }
    }
}

/// In milliseconds, like the means beside it; microseconds count.
fn p99(r: &DiskRate, kind: usize) -> Value<'_> {
    let spread = r.latency.as_ref().and_then(|l| l.kinds[kind].total);
    Value::fixed(spread.map(|s| s.p99 / 1e3), 3)
}

fn rate_decimals(n: f64) -> u8 {
    if n < 10_000.0 { 2 } else { 0 }
}

/// Merged ones among all that were asked for, in per cent.
fn share(merged: f64, issued: f64) -> f64 {
    if merged + issued > 0.0 { merged * 100.0 / (merged + issued) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_device_shows_no_await() {
        let mut rate = DiskRate { await_ms: 3.0, ..Default::default() };
        let value = |rate: &DiskRate| {
            let mut s = String::new();
            DeviceRow { rate, label: "sda" }.value(DeviceCol::Await).write(&mut s);
            s
        };
        assert_eq!(value(&rate), "3.00");
        rate.stalled = true;
        assert_eq!(value(&rate), "-");
    }

    #[test]
    fn names_are_unique_within_a_set() {
        for set in [PLAIN, SHORT, EXTENDED] {
            let names: std::collections::HashSet<_> = set.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), set.len());
        }
    }
}
