//! The moment at which the loop has something to do though nobody said anything.
//!
//! It is a timer of the kernel's, not of the runtime: a collector's thread puts it off at each tick without waking the
//! loop's.

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// A timer that rings once.
pub struct Timer {
    fd: OwnedFd,
    /// When it will ring.
    deadline: Option<Instant>,
}

impl Timer {
    /// Not set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)?, deadline: None })
    }

    /// The same timer, to wait for it.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, deadline: None })
    }

    /// Rings at that moment, and no longer at the one set before; at once if it is over.
    pub fn set_deadline(&mut self, at: Instant) {
        if self.deadline.replace(at) == Some(at) {
            return;
        }
        // Zero would mean never.
        let left = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It fails for times out of range only, and an interval has an upper limit.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never, it_value });
    }

    /// It has rung: setting it to the same moment once more makes it ring again.
    pub fn mark_expired(&mut self) {
        self.deadline = None;
    }

    /// Takes note that it has rung, so that it can be waited for again.
    pub fn acknowledge(&self) {
        let mut times = [0; 8];
        while rustix::io::read(&self.fd, &mut times) == Err(Errno::INTR) {}
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn expires(alarm: &Timer, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(alarm, PollFlags::IN)], wait) == Ok(1)
    }

    const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    #[test]
    fn timer_expires_once_at_the_deadline_set_last() {
        let mut alarm = Timer::new().unwrap();
        let ear = alarm.try_clone().unwrap();
        assert!(!expires(&ear, Some(&NO_WAIT)), "not set");
        let now = Instant::now();
        alarm.set_deadline(now);
        assert!(expires(&ear, None), "a moment that is over");
        ear.acknowledge();
        assert!(!expires(&ear, Some(&NO_WAIT)));
        alarm.set_deadline(now);
        assert!(!expires(&ear, Some(&NO_WAIT)), "it has been set to that already");
        alarm.mark_expired();
        alarm.set_deadline(now);
        assert!(expires(&ear, None));
        alarm.set_deadline(now + Duration::from_secs(3600));
        assert!(!expires(&ear, Some(&NO_WAIT)), "put off before anybody heard it");
    }
}
