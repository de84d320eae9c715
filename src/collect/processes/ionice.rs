//! I/O priority of a task (ioprio_get(2), ioprio_set(2)); neither libc nor rustix wraps these calls.

use crate::model::process::IoPrio;
use std::io;

/// IOPRIO_WHO_PROCESS: one thread, despite the name.
const WHO_PROCESS: libc::c_int = 1;

/// Returns the I/O priority of a task that has not set one, from its nice value and scheduling policy
/// (task_nice_ioclass and task_nice_ioprio in include/linux/ioprio.h).
pub(super) fn default_priority(nice: i64, policy: u64) -> IoPrio {
    let class = match policy {
        // SCHED_FIFO, SCHED_RR and SCHED_DEADLINE are realtime.
        1 | 2 | 6 => 1,
        // SCHED_IDLE.
        5 => 3,
        _ => 2,
    };
    IoPrio { class, level: ((nice + 20) / 5).clamp(0, 7) as u8 }
}

/// Returns the I/O priority of one thread.
pub fn get(tid: u32) -> io::Result<IoPrio> {
    let raw = ioprio(libc::SYS_ioprio_get, tid, 0)?;
    Ok(IoPrio::from_raw(raw))
}

/// Sets the I/O priority of one thread.
///
/// # Errors
///
/// EPERM: threads of other users need CAP_SYS_NICE, the realtime class CAP_SYS_NICE or CAP_SYS_ADMIN. Only schedulers
/// with priorities (bfq, mq-deadline) use the value.
pub fn set(tid: u32, prio: IoPrio) -> io::Result<()> {
    ioprio(libc::SYS_ioprio_set, tid, prio.to_raw()).map(|_| ())
}

#[allow(unsafe_code)]
fn ioprio(call: libc::c_long, tid: u32, value: u32) -> io::Result<u32> {
    let who = libc::c_int::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: both calls take integers only; the kernel reads and writes no memory of this process. ioprio_get ignores
    // `value`.
    let result = unsafe { libc::syscall(call, WHO_PROCESS, who, value as libc::c_int) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_that_was_set_is_read_back() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let prio = IoPrio { class: 2, level: 6 };
        set(tid, prio).unwrap();
        assert_eq!(get(tid).unwrap(), prio);
        assert_eq!(prio.to_string(), "be/6");
        assert_eq!(IoPrio { class: 3, level: 0 }.to_string(), "idle");
    }

    #[test]
    fn the_default_priority_follows_nice_and_policy() {
        let of = |nice, policy| default_priority(nice, policy).to_string();
        assert_eq!([of(0, 0), of(-20, 1), of(19, 0), of(0, 5)], ["be/4", "rt/0", "be/7", "idle"]);
    }

    #[test]
    fn a_missing_task_is_an_error() {
        assert_eq!(get(u32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(get(0x3fff_ffff).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
