//! Block device counters and their rates, as iostat defines them.
//!
//! Source: Documentation/admin-guide/iostats.rst; names and formulas: iostat(1) of sysstat.

pub(crate) use super::device_id::DevId;
use super::latency::DeviceLatency;
use super::timestamp::{counter_delta, wrapping_delta_u32};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes in a sector of diskstats, whatever the device's block size.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Counters of one kind of request since the device appeared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOpRaw {
    /// Requests completed.
    pub ios: u64,
    /// Requests merged into a neighbour before they were issued.
    pub merged: u64,
    /// 512-byte sectors.
    pub sectors: u64,
    /// Milliseconds spent in all requests; 32 bits wide in the kernel.
    pub ms: u64,
}

/// One line of `/proc/diskstats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRaw {
    pub id: DevId,
    pub name: Arc<str>,
    pub read: DiskOpRaw,
    /// Writes, including flushes that were not merged.
    pub write: DiskOpRaw,
    /// Discards (since 4.18).
    pub discard: Option<DiskOpRaw>,
    /// Flushes: completed and milliseconds (since 5.5; never for partitions).
    pub flush: Option<(u64, u64)>,
    pub in_flight: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
    /// Milliseconds weighted by the number in flight.
    pub queue_ms: u64,
}

/// Rates between two readings of a device. Per second unless the name says otherwise.
/// `None` where the kernel does not count it. A mean time without requests is 0, as in iostat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskRate {
    pub id: DevId,
    pub name: Arc<str>,
    /// Reads + writes + discards.
    pub tps: f64,
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub discards_per_s: Option<f64>,
    pub flushes_per_s: Option<f64>,
    /// 2^20 bytes.
    pub read_mb_per_s: f64,
    /// 2^20 bytes.
    pub write_mb_per_s: f64,
    /// 2^20 bytes.
    pub discard_mb_per_s: Option<f64>,
    pub read_merges_per_s: f64,
    pub write_merges_per_s: f64,
    /// Mean milliseconds of a request including queueing, over reads, writes and discards.
    pub await_ms: f64,
    /// r_await.
    pub read_await_ms: f64,
    /// w_await.
    pub write_await_ms: f64,
    /// d_await.
    pub discard_await_ms: Option<f64>,
    /// f_await.
    pub flush_await_ms: Option<f64>,
    /// aqu-sz: mean number of requests in flight.
    pub queue_size: f64,
    /// rareq-sz, KiB.
    pub read_request_kb: f64,
    /// wareq-sz, KiB.
    pub write_request_kb: f64,
    /// dareq-sz, KiB.
    pub discard_request_kb: Option<f64>,
    /// Share of time with a request in flight. Not a limit for devices that serve requests in parallel.
    pub util_pct: f64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// Requests were in flight at both ends and none completed between.
    pub stalled: bool,
    /// Read since the device appeared, 2^20 bytes.
    pub read_mb_total: f64,
    /// Written since the device appeared, 2^20 bytes.
    pub write_mb_total: f64,
    /// Latency of its requests; `None` without tracing, for partitions, and for devices that are not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Arc<DeviceLatency>>,
}

impl DiskRate {
    /// Rates over `secs` seconds. Without `prev`, or when a counter decreased because the device was re-created,
    /// the counters count from 0.
    pub fn derive(prev: Option<&DiskRaw>, cur: &DiskRaw, secs: f64) -> Self {
        let zero = DiskRaw { id: cur.id, ..Default::default() };
        let fresh = prev.is_none_or(|p| p.id != cur.id || has_restarted(p, cur));
        let prev = prev.filter(|_| !fresh).unwrap_or(&zero);
        let per_s = |n: u64| if secs > 0.0 { n as f64 / secs } else { 0.0 };
        let mb_per_s = |sectors: u64| per_s(sectors) * SECTOR_BYTES as f64 / MIB;
        let (r, w) = (cur.read.since(&prev.read), cur.write.since(&prev.write));
        let d = cur.discard.map(|c| c.since(&prev.discard.unwrap_or_default()));
        let f = cur.flush.map(|(ios, ms)| {
            let (ios0, ms0) = prev.flush.unwrap_or_default();
            (ios.saturating_sub(ios0), wrapping_delta_u32(ms0, ms))
        });
        let all = d.map_or(r.plus(w), |d| r.plus(w).plus(d));
        let flushes = f.map_or(0, |f| f.0);
        Self {
            id: cur.id,
            name: cur.name.clone(),
            tps: per_s(all.ios),
            reads_per_s: per_s(r.ios),
            writes_per_s: per_s(w.ios),
            discards_per_s: d.map(|d| per_s(d.ios)),
            flushes_per_s: f.map(|f| per_s(f.0)),
            read_mb_per_s: mb_per_s(r.sectors),
            write_mb_per_s: mb_per_s(w.sectors),
            discard_mb_per_s: d.map(|d| mb_per_s(d.sectors)),
            read_merges_per_s: per_s(r.merged),
            write_merges_per_s: per_s(w.merged),
            await_ms: all.mean_ms(),
            read_await_ms: r.mean_ms(),
            write_await_ms: w.mean_ms(),
            discard_await_ms: d.map(|d| d.mean_ms()),
            flush_await_ms: f.map(|(ios, ms)| mean(ms as f64, ios)),
            queue_size: per_s(wrapping_delta_u32(prev.queue_ms, cur.queue_ms)) / 1000.0,
            read_request_kb: r.mean_kb(),
            write_request_kb: w.mean_kb(),
            discard_request_kb: d.map(|d| d.mean_kb()),
            util_pct: per_s(wrapping_delta_u32(prev.busy_ms, cur.busy_ms)) / 10.0,
            in_flight: cur.in_flight,
            stalled: !fresh && cur.in_flight > 0 && prev.in_flight > 0 && (all.ios, flushes) == (0, 0),
            read_mb_total: cur.read.sectors as f64 * SECTOR_BYTES as f64 / MIB,
            write_mb_total: cur.write.sectors as f64 * SECTOR_BYTES as f64 / MIB,
            latency: None,
        }
    }

    /// Whether it had requests or has some in flight.
    pub fn is_active(&self) -> bool {
        self.tps > 0.0 || self.in_flight > 0 || self.flushes_per_s.is_some_and(|f| f > 0.0) || self.util_pct > 0.0
    }
}

const MIB: f64 = 1_048_576.0;

fn mean(sum: f64, n: u64) -> f64 {
    if n == 0 { 0.0 } else { sum / n as f64 }
}

/// Whether the device was removed and re-created, which restarts its counters.
fn has_restarted(prev: &DiskRaw, cur: &DiskRaw) -> bool {
    let back = |p: &DiskOpRaw, c: &DiskOpRaw| {
        counter_delta(p.ios, c.ios).is_none() || counter_delta(p.sectors, c.sectors).is_none()
    };
    back(&prev.read, &cur.read)
        || back(&prev.write, &cur.write)
        || matches!((prev.discard, cur.discard), (Some(p), Some(c)) if back(&p, &c))
        || prev.name != cur.name
}

impl DiskOpRaw {
    fn since(&self, prev: &Self) -> Self {
        Self {
            ios: self.ios.saturating_sub(prev.ios),
            merged: self.merged.saturating_sub(prev.merged),
            sectors: self.sectors.saturating_sub(prev.sectors),
            ms: wrapping_delta_u32(prev.ms, self.ms),
        }
    }

    fn plus(self, o: Self) -> Self {
        Self {
            ios: self.ios.saturating_add(o.ios),
            merged: self.merged.saturating_add(o.merged),
            sectors: self.sectors.saturating_add(o.sectors),
            ms: self.ms.saturating_add(o.ms),
        }
    }

    fn mean_ms(&self) -> f64 {
        mean(self.ms as f64, self.ios)
    }

    fn mean_kb(&self) -> f64 {
        mean(self.sectors as f64 / 2.0, self.ios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(reads: u64, writes: u64, in_flight: u64) -> DiskRaw {
        DiskRaw {
            name: "sda".into(),
            read: DiskOpRaw { ios: reads, merged: 0, sectors: reads * 8, ms: reads * 2 },
            write: DiskOpRaw { ios: writes, merged: 0, sectors: writes * 16, ms: writes * 4 },
            in_flight,
            busy_ms: 1000,
            queue_ms: 5000,
            ..Default::default()
        }
    }

    #[test]
    fn rates_follow_iostat() {
        let (a, mut b) = (disk(100, 100, 0), disk(300, 200, 3));
        b.busy_ms = 1800;
        b.queue_ms = 9000;
        let r = DiskRate::derive(Some(&a), &b, 2.0);
        assert_eq!((r.tps, r.reads_per_s, r.writes_per_s), (150.0, 100.0, 50.0));
        assert_eq!(r.read_mb_per_s, 100.0 * 4096.0 / 1_048_576.0);
        assert_eq!((r.read_await_ms, r.write_await_ms), (2.0, 4.0));
        assert_eq!(r.await_ms, (400.0 + 400.0) / 300.0);
        assert_eq!((r.queue_size, r.util_pct), (2.0, 40.0));
        assert_eq!((r.read_request_kb, r.write_request_kb), (4.0, 8.0));
        assert_eq!((r.discards_per_s, r.flush_await_ms), (None, None));
        assert!(!r.stalled);
    }

    #[test]
    fn a_hung_device_is_stalled_and_a_new_device_is_not() {
        let a = disk(100, 100, 2);
        assert!(DiskRate::derive(Some(&a), &a, 1.0).stalled);
        assert!(!DiskRate::derive(None, &a, 1.0).stalled);
    }

    #[test]
    fn a_recreated_device_starts_at_zero() {
        let r = DiskRate::derive(Some(&disk(1_000_000, 5, 0)), &disk(10, 5, 0), 1.0);
        assert_eq!((r.reads_per_s, r.writes_per_s), (10.0, 5.0));
    }

    #[test]
    fn millisecond_counters_wrap_at_32_bits() {
        let (mut a, mut b) = (disk(1, 0, 0), disk(2, 0, 0));
        a.read.ms = u32::MAX as u64 - 1;
        b.read.ms = 4;
        assert_eq!(DiskRate::derive(Some(&a), &b, 1.0).read_await_ms, 6.0);
    }
}
