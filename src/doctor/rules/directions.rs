//! Requests of a device by direction: reads, writes, flushes and discards, and which of them set its pace.

use super::prelude::*;
use crate::doctor::storage_class::ClassLimits;

/// With more requests of a direction in flight its await is queueing.
pub(super) const SHORT_QUEUE: f64 = 2.0;
/// Fewer requests prove nothing.
pub(super) const MIN_PER_S: f64 = 1.0;
/// A slow direction takes this many times as long as the other one.
const MIN_RATIO: f64 = 4.0;
/// Share of the time with a flush in flight from which on flushes set the pace.
const FLUSH_BOUND: f64 = 0.5;
/// Each flush has a few small writes of its own: the data, a journal block. With more, writes queue by themselves.
const WRITES_PER_FLUSH: f64 = 4.0;
/// Flushes wait behind writes of this mean size with this many times as many in flight.
const LARGE_WRITE_KB: f64 = 96.0;
const LARGE_WRITES_AHEAD: f64 = 2.0;
/// Share of the queue from which on discards set the pace.
const DISCARD_BOUND: f64 = 0.5;

/// Requests of one direction.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    pub(super) per_s: f64,
    pub(super) await_ms: f64,
}

impl Direction {
    pub(super) fn reads(device: &DiskRate) -> Self {
        Self { per_s: device.reads_per_s, await_ms: device.read_await_ms }
    }

    pub(super) fn writes(device: &DiskRate) -> Self {
        Self { per_s: device.writes_per_s, await_ms: device.write_await_ms }
    }

    /// `None` where the kernel does not count flushes.
    pub(super) fn flushes(device: &DiskRate) -> Option<Self> {
        Some(Self { per_s: device.flushes_per_s?, await_ms: device.flush_await_ms? })
    }

    /// `None` where the kernel does not count discards.
    pub(super) fn discards(device: &DiskRate) -> Option<Self> {
        Some(Self { per_s: device.discards_per_s?, await_ms: device.discard_await_ms? })
    }

    /// Mean over `secs` seconds, weighted by requests; `None` where there were none.
    pub(super) fn mean(
        ctx: &RuleContext<'_>,
        id: DevId,
        secs: f64,
        get: impl Fn(&DiskRate) -> Option<Self>,
    ) -> Option<Self> {
        let (mut requests, mut ms, mut covered) = (0.0, 0.0, 0.0);
        for tick in ctx.window(secs) {
            let Some(direction) = tick.device(id).and_then(&get) else { continue };
            covered += tick.interval_secs;
            requests += direction.per_s * tick.interval_secs;
            ms += direction.per_s * tick.interval_secs * direction.await_ms;
        }
        (requests > 0.0).then(|| Self { per_s: requests / covered, await_ms: ms / requests })
    }

    /// Mean number in flight (Little's law).
    pub(super) fn in_flight(&self) -> f64 {
        self.per_s * self.await_ms / 1e3
    }

    /// `12.0/s, 101 ms each`
    pub(super) fn text(&self) -> String {
        format!("{}, {} each", format::per_s(self.per_s), format::ms(self.await_ms))
    }

    /// Whether it is slow for the class by its service time, while the other direction is not.
    pub(super) fn is_slow_beside(&self, other: Self, limits: ClassLimits) -> bool {
        self.per_s >= MIN_PER_S
            && self.in_flight() <= SHORT_QUEUE
            && self.await_ms >= limits.slow_ms
            && other.per_s >= MIN_PER_S
            && self.await_ms >= MIN_RATIO * other.await_ms
    }
}

/// Whether flushes wait behind large writes, of which more are in flight.
fn has_large_writes_ahead(device: &DiskRate, flushes: Direction) -> bool {
    let is_large = device.write_request_kb >= LARGE_WRITE_KB;
    is_large && Direction::writes(device).in_flight() >= LARGE_WRITES_AHEAD * flushes.in_flight()
}

/// Whether slow flushes, rather than a queue of reads or writes, set the device's pace.
pub(super) fn is_flush_bound(device: &DiskRate, class: StorageClass) -> bool {
    Direction::flushes(device).is_some_and(|flushes| {
        flushes.await_ms >= class.limits().slow_ms
            && flushes.in_flight() >= FLUSH_BOUND
            && Direction::reads(device).in_flight() < SHORT_QUEUE
            && device.writes_per_s <= WRITES_PER_FLUSH * flushes.per_s
            && !has_large_writes_ahead(device, flushes)
    })
}

/// Whether slow discards are most of what the device has in flight.
pub(super) fn is_discard_bound(device: &DiskRate, class: StorageClass) -> bool {
    Direction::discards(device).is_some_and(|discards| {
        discards.await_ms >= class.limits().slow_ms
            && discards.in_flight() >= DISCARD_BOUND.max(DISCARD_BOUND * device.queue_size)
    })
}
