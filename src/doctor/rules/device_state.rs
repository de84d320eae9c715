//! Whether a device is saturated, held up or slow in one tick. The rules judge whether that lasts.

use super::directions::{SHORT_QUEUE, is_discard_bound, is_flush_bound};
use super::prelude::*;

/// A saturated device is busy for this share of the time.
pub(super) const BUSY_PCT: f64 = 90.0;
/// With fewer requests the mean await proves nothing.
pub(super) const MIN_TPS: f64 = 2.0;
/// For larger requests throughput counts rather than IOPS.
const SLOW_SMALL_KB: f64 = 64.0;
/// A device that is slow with a long queue is busy for this share of the time.
const SLOW_BUSY_PCT: f64 = 95.0;

/// Whether flushes or discards set the pace of the device: those have rules of their own.
fn has_other_rule(device: &DiskRate, class: StorageClass) -> bool {
    is_flush_bound(device, class) || is_discard_bound(device, class)
}

/// Whether the device is saturated in this tick: a deep queue, or a shorter one with an await that is slow for the class.
pub(super) fn is_saturated(device: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    let queued = device.queue_size >= limits.deep_queue
        || (device.queue_size >= SHORT_QUEUE && device.await_ms >= limits.slow_ms);
    device.util_pct >= BUSY_PCT && queued && !device.stalled && !has_other_rule(device, class)
}

/// Whether requests take long in this tick with one or two of them in the queue, all the time: the device is slow, or one
/// task waits for another one.
pub(super) fn is_held_up(device: &DiskRate, class: StorageClass) -> bool {
    let is_slow = device.await_ms >= class.limits().slow_ms;
    device.util_pct >= BUSY_PCT && is_slow && !device.stalled && !has_other_rule(device, class)
}

/// Whether requests of all directions are slow in this tick.
pub(super) fn is_slow(device: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    let mb_per_s = device.read_mb_per_s + device.write_mb_per_s;
    if has_other_rule(device, class) {
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
