//! What a device is in one tick: saturated, held up or slow. The rules ask whether it stays so.

use super::directions::{is_discard_bound, is_flush_bound};
use super::prelude::*;

/// Share of time with a request in flight.
pub(super) const BUSY_PCT: f64 = 90.0;
/// With a shorter queue, a long await is the device's own service time.
const MIN_QUEUE: f64 = 2.0;
/// Up to this queue size the await is the device's own service time.
pub(super) const SHORT_QUEUE: f64 = 2.0;
/// With fewer requests the mean await proves nothing.
pub(super) const MIN_TPS: f64 = 2.0;
/// For larger requests throughput counts rather than IOPS.
const SLOW_SMALL_KB: f64 = 64.0;
/// Share of time with a request in flight of a device that serves few requests with a longer queue.
const SLOW_BUSY_PCT: f64 = 95.0;

/// Whether the device is saturated in this tick: a deep queue, or a shorter one with an await that is slow for the
/// class. Flushes and discards that set its pace have rules of their own.
pub(super) fn is_saturated(device: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    let queued =
        device.queue_size >= limits.deep_queue || (device.queue_size >= MIN_QUEUE && device.await_ms >= limits.slow_ms);
    let is_judged = is_flush_bound(device, class) || is_discard_bound(device, class);
    device.util_pct >= BUSY_PCT && queued && !device.stalled && !is_judged
}

/// Whether requests take long in this tick with one or two of them in the queue, all the time: the device is slow, or one
/// task waits for another one.
pub(super) fn is_held_up(device: &DiskRate, class: StorageClass) -> bool {
    let is_judged = is_flush_bound(device, class) || is_discard_bound(device, class);
    device.util_pct >= BUSY_PCT && device.await_ms >= class.limits().slow_ms && !device.stalled && !is_judged
}

/// Whether requests of all directions are slow in this tick.
pub(super) fn is_slow(device: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    let mb_per_s = device.read_mb_per_s + device.write_mb_per_s;
    if is_flush_bound(device, class) || is_discard_bound(device, class) {
        return false;
    }
    match device.queue_size <= SHORT_QUEUE {
        true => device.tps >= MIN_TPS && device.await_ms >= limits.slow_ms,
        false => {
            device.util_pct >= SLOW_BUSY_PCT
                && device.tps > 0.0
                && device.tps < limits.min_tps
                && mb_per_s * 1024.0 / device.tps <= SLOW_SMALL_KB
        }
    }
}
