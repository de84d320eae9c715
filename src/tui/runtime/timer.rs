//! Wakes the event loop at a point in time.
//!
//! It is a timerfd rather than a tokio timer, because a collector's thread postpones it at each tick, which must not
//! wake the event loop's thread.

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A one-shot timer (timerfd_create(2)).
pub(super) struct Timer {
    fd: OwnedFd,
    /// When it expires; `None`: not set, or expired.
    deadline: Option<Instant>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)?, deadline: None })
    }

    /// Another descriptor of the timer, which is readable once it has expired.
    pub(super) fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Sets the time of expiry, replacing an earlier one; a time in the past expires at once.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        if self.deadline.replace(deadline) == Some(deadline) {
            return;
        }
        // Zero would disarm the timer.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It fails only for times out of range, and the sampling interval has an upper limit.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: once, it_value });
    }

    /// Notes that the timer has expired, so that setting the same deadline again arms it again.
    pub(super) fn mark_expired(&mut self) {
        self.deadline = None;
    }
}

/// Reads the expiry count of a timer, so that its descriptor is no longer readable.
pub(super) fn acknowledge(fd: &OwnedFd) {
    let mut expirations = [0; 8];
    while rustix::io::read(fd, &mut expirations) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn expires(timer: &OwnedFd, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(timer, PollFlags::IN)], wait) == Ok(1)
    }

    const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    #[test]
    fn timer_expires_once_at_the_deadline_set_last() {
        let mut timer = Timer::new().unwrap();
        let waiter = timer.try_clone_fd().unwrap();
        assert!(!expires(&waiter, Some(&NO_WAIT)), "not set");
        let now = Instant::now();
        timer.set_deadline(now);
        assert!(expires(&waiter, None), "a deadline in the past");
        acknowledge(&waiter);
        assert!(!expires(&waiter, Some(&NO_WAIT)));
        timer.set_deadline(now);
        assert!(!expires(&waiter, Some(&NO_WAIT)), "set to the same deadline already");
        timer.mark_expired();
        timer.set_deadline(now);
        assert!(expires(&waiter, None));
        timer.set_deadline(now + Duration::from_secs(3600));
        assert!(!expires(&waiter, Some(&NO_WAIT)), "postponed before it was acknowledged");
    }
}
