//! The clocks of the running machine.

use crate::model::clock::Clock;
use rustix::time::{ClockId, clock_gettime};

/// Now, on both clocks.
pub fn now() -> Clock {
    let boot = clock_gettime(ClockId::Boottime);
    let wall = clock_gettime(ClockId::Realtime);
    Clock {
        boot_ns: boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64,
        wall_ns: wall.tv_sec * 1_000_000_000 + wall.tv_nsec,
    }
}

/// CLOCK_BOOTTIME now, in ns.
pub fn boot_ns() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64
}
