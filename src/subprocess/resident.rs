//! Keeps the program's own pages in memory, so that it runs on when the disk it was started from hangs.
//!
//! Code is read from the program's file page by page as it is first executed, and again after the kernel dropped it.
//! Two things prevent that (mlock(2)):
//!
//! - A process of its own maps and locks every page of the program and its libraries. The pages are the same ones that
//!   the program and its children use, which therefore find them in memory; but they count as resident in that process
//!   only, and reading them at the start delays nothing.
//! - The program locks what it has touched itself, which its swapped out data would otherwise need a disk for.
//!
//! The first needs CAP_IPC_LOCK or an RLIMIT_MEMLOCK of some 16 MiB; without, the pages are only read once. The second
//! needs CAP_IPC_LOCK.

#![allow(unsafe_code)] // madvise(2)

use super::helper::{Helper, detach_from_terminal};
use crate::allocator;
use procfs::process::{MMPermissions, MMapPath, Process};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MlockAllFlags, madvise, mlockall};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// The process that holds the pages.
static HOLDER: OnceLock<Helper> = OnceLock::new();

const LOCKED: u8 = 1;
const NOT_LOCKED: u8 = 0;

/// Copies the program's writable data into this process and those that are forked from it. Such a page is copied from
/// the file when it is first written, and no other process keeps it for this one. Call it before any thread is started.
pub fn copy_writable_data() {
    populate_file_mappings(Advice::LinuxPopulateWrite, |permissions| permissions.contains(MMPermissions::WRITE));
}

/// Starts the process that holds the program's pages, and locks what this process touches. Call it before any thread is
/// started.
///
/// # Errors
/// If the system has no process or descriptor left.
pub fn keep_resident() -> io::Result<()> {
    drop(HOLDER.set(Helper::start(hold_pages)?));
    allocator::lock_touched();
    Ok(())
}

/// Whether the program's pages are locked in memory; `None` while they are being read, and if nobody holds them.
pub fn is_locked() -> Option<bool> {
    let mut reply = [0];
    // The reply stays in the socket.
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    let (n, _) = retry_on_intr(|| recv(&HOLDER.get().ok_or(Errno::BADF)?.socket, &mut reply, flags)).ok()?;
    (n == 1).then_some(reply[0] == LOCKED)
}

/// The process that holds the pages, to end it.
pub fn helper() -> Option<&'static Helper> {
    HOLDER.get()
}

/// The main function of the process that holds the pages.
fn hold_pages(socket: &OwnedFd) {
    if detach_from_terminal(socket, "pages").is_err() {
        return;
    }
    let reply = match mlockall(MlockAllFlags::CURRENT) {
        Ok(()) => LOCKED,
        Err(_) => {
            populate_file_mappings(Advice::LinuxPopulateRead, |_| true);
            NOT_LOCKED
        }
    };
    let _ = send(socket, &[reply], SendFlags::NOSIGNAL);
    // Nobody sends anything: this returns when the program has ended.
    let _ = retry_on_intr(|| recv(socket, &mut [0], RecvFlags::empty()));
}

/// Maps the pages of the program and its libraries into this process, by `advice` (Linux 5.14; earlier kernels read
/// them when they are used).
fn populate_file_mappings(advice: Advice, is_wanted: impl Fn(MMPermissions) -> bool) {
    let Ok(mappings) = Process::myself().and_then(|own| own.maps()) else { return };
    let of_files = mappings.iter().filter(|m| matches!(m.pathname, MMapPath::Path(_)) && is_wanted(m.perms));
    for (start, end) in of_files.map(|mapping| mapping.address) {
        // SAFETY: the range is a mapping of this process, which has one thread and has unmapped nothing since. The
        // contents stay as they are.
        let _ = unsafe { madvise(start as *mut libc::c_void, (end - start) as usize, advice) };
    }
}
