//! The clocks of this machine.

use crate::model::kernel_log::LogClock;
use crate::model::timestamp::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// The current time of both clocks.
pub fn now() -> Timestamp {
    let boot = clock_gettime(ClockId::Boottime);
    let wall = clock_gettime(ClockId::Realtime);
    Timestamp {
        boot_ns: boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64,
        wall_ns: wall.tv_sec * 1_000_000_000 + wall.tv_nsec,
    }
}

/// The current CLOCK_BOOTTIME, ns.
pub fn boot_ns() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64
}

/// The current time of the clocks that date the kernel log: CLOCK_MONOTONIC and the wall clock.
pub fn now_log_clock() -> LogClock {
    let mono = clock_gettime(ClockId::Monotonic);
    LogClock { mono_ns: mono.tv_sec as u64 * 1_000_000_000 + mono.tv_nsec as u64, wall_ns: now().wall_ns }
}
