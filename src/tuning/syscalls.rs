//! System calls that no dependency wraps.

use crate::model::process::IoPrio;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The I/O priority of one thread (ioprio_get(2)).
pub fn ioprio_get(tid: u32) -> io::Result<IoPrio> {
    ioprio(libc::SYS_ioprio_get, tid, 0).map(IoPrio::from_raw)
}

/// Sets the I/O priority of one thread (ioprio_set(2)). Only schedulers with priorities (bfq, mq-deadline) use it.
/// EPERM: threads of other users need CAP_SYS_NICE, the realtime class CAP_SYS_NICE or CAP_SYS_ADMIN.
pub fn ioprio_set(tid: u32, priority: IoPrio) -> io::Result<()> {
    ioprio(libc::SYS_ioprio_set, tid, priority.to_raw()).map(drop)
}

#[allow(unsafe_code)]
fn ioprio(call: libc::c_long, tid: u32, value: u32) -> io::Result<u32> {
    /// One thread, despite the name.
    const WHO_PROCESS: libc::c_int = 1;
    let tid = libc::c_int::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: both calls take integers only (the getter ignores the third); they access no memory of this process.
    let got = unsafe { libc::syscall(call, WHO_PROCESS, tid, value as libc::c_int) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as u32) }
}

/// `struct mount_attr` of linux/mount.h, its first and only version.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// mount_setattr(2), Linux 5.12: changes these attributes of the mount at `fd` (O_PATH) and leaves the rest.
#[allow(unsafe_code)]
pub(crate) fn mount_setattr(fd: BorrowedFd<'_>, set: u64, clear: u64) -> io::Result<()> {
    const EMPTY: &CStr = c"";
    let attr = MountAttr { set, clear, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is a static C string, `attr` outlives the call and its size is passed along; the kernel only
    // reads both.
    let got = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            EMPTY.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
