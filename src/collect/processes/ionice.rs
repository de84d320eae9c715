//! I/O priority of a task.

use crate::collect::kernel_file::read_once;
use crate::model::process::{IoPrio, TaskKey};
use crate::parse::task;
use crate::root::Root;
pub use crate::tuning::syscalls::{ioprio_get as get, ioprio_set as set};
use std::io;

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

/// Sets the I/O priority of one thread if it still is the task `key`, and returns the priority in force. Thread ids are
/// reused, and the task may have ended while the user answered a question.
///
/// # Errors
///
/// Those of [`set`]; ESRCH if the task has ended, also if it ended meanwhile.
pub fn set_verified(root: &Root, key: TaskKey, prio: IoPrio) -> io::Result<IoPrio> {
    check_same_task(root, key)?;
    set(key.tid, prio)?;
    let in_force = get(key.tid)?;
    check_same_task(root, key)?;
    Ok(in_force)
}

fn check_same_task(root: &Root, key: TaskKey) -> io::Result<()> {
    let mut buf = Vec::new();
    let has_ended = || io::Error::from_raw_os_error(libc::ESRCH);
    let stat = match read_once(&root.proc(&format!("{}/task/{}/stat", key.pid, key.tid)), &mut buf) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Err(has_ended()),
        read => read?,
    };
    let is_same = task::stat(stat).is_some_and(|stat| stat.starttime == key.starttime);
    is_same.then_some(()).ok_or_else(has_ended)
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
    fn a_task_that_took_over_the_number_keeps_its_priority() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (root, pid) = (Root::live(), child.id());
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
        let key = TaskKey { pid, tid: pid, starttime: task::stat(&stat).unwrap().starttime };
        let (old, new) = (get(pid).unwrap(), IoPrio { class: 2, level: 6 });
        let other = TaskKey { starttime: key.starttime - 1, ..key };
        assert_eq!(set_verified(&root, other, new).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(get(pid).unwrap(), old);
        assert_eq!(set_verified(&root, key, new).unwrap(), new);
        child.kill().unwrap();
        child.wait().unwrap();
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
