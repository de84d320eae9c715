//! Processes that help this one for as long as it runs: each is a fork made before its first thread, and ends when the
//! socket to it is closed.

#![allow(unsafe_code)] // fork(2)

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long helpers have to end by themselves, and again after SIGKILL.
const END_TIMEOUT: Duration = Duration::from_millis(50);

/// A helper process.
#[derive(Debug)]
pub struct Helper {
    pid: Pid,
    /// This process's end of the socket; it passes on packets.
    pub(super) socket: OwnedFd,
}

impl Helper {
    /// Forks a helper that runs `main` with its end of the socket. Call it before any thread is started.
    ///
    /// # Errors
    /// If the system has no process or descriptor left.
    pub(super) fn start(main: impl FnOnce(&OwnedFd)) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // SAFETY: this process has one thread, so nothing is locked that the child would wait for.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(socket);
                main(&theirs);
                std::process::exit(0)
            }
            pid => Ok(Self { pid: Pid::from_raw(pid).ok_or(Errno::CHILD)?, socket }),
        }
    }

    /// A helper that is no process.
    #[cfg(test)]
    pub(super) fn of_test(socket: OwnedFd) -> Self {
        Self { pid: rustix::process::getpid(), socket }
    }

    /// Whether it has ended; if so, it is reaped.
    fn has_ended(&self) -> bool {
        !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
    }
}

/// Ends helpers and reaps them: some containers have nobody else who would. One that has not ended after
/// [`END_TIMEOUT`] gets SIGKILL.
pub fn end(helpers: &[&Helper]) {
    for helper in helpers {
        let _ = shutdown(&helper.socket, Shutdown::Both);
    }
    let mut left = helpers.to_vec();
    wait_for_end(&mut left);
    for helper in &left {
        // It has not been reaped, so the number is still its own.
        let _ = kill_process(helper.pid, Signal::KILL);
    }
    // One that is stuck in the kernel is left to whoever inherits it.
    wait_for_end(&mut left);
}

/// Waits for at most [`END_TIMEOUT`], and removes those that have ended.
fn wait_for_end(helpers: &mut Vec<&Helper>) {
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        helpers.retain(|helper| !helper.has_ended());
        if helpers.is_empty() || Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives a helper its name, a session of its own, `/dev/null` as standard streams, and no descriptor but `socket`.
pub(super) fn detach_from_terminal(socket: &OwnedFd, name: &str) -> io::Result<()> {
    super::child::enter(name);
    let null = rustix::fs::openat(CWD, crate::root::Root::null(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    super::child::close_descriptors_except(socket.as_raw_fd());
    Ok(())
}
