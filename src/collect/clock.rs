//! The clocks of this machine.

use crate::model::kernel_log::LogClock;
use crate::model::timestamp::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// The current time of both clocks.
pub fn now() -> Timestamp {
    Timestamp { boot_ns: boot_ns(), wall_ns: clock_ns(ClockId::Realtime) }
}

/// The current CLOCK_BOOTTIME, ns.
pub fn boot_ns() -> u64 {
    clock_ns(ClockId::Boottime) as u64
}

/// The current time of the clocks that date the kernel log: CLOCK_MONOTONIC and the wall clock.
pub fn now_log_clock() -> LogClock {
    LogClock { mono_ns: clock_ns(ClockId::Monotonic) as u64, wall_ns: clock_ns(ClockId::Realtime) }
}

fn clock_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
