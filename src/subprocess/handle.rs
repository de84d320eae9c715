//! A child that gets one order, works by itself and sends messages until its last one.

use super::frame::{self, FrameError};
use super::process::ChildProcess;
use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

/// The longest message: a child is not trusted with this process's memory.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;

/// What a child sends; its last message says so of itself.
pub trait ChildMessage: DeserializeOwned + Send + 'static {
    /// The hidden subcommand that sends these messages.
    const SUBCOMMAND: &'static str;
    /// The order the child gets first.
    type Order: Serialize + Send + 'static;
    /// Whether nothing follows this message.
    fn is_last(&self) -> bool;
    /// The last message in place of a child's that sent nonsense or ended without one.
    fn from_crash(why: String) -> Self;
    /// The last message in place of a child's that could not be started.
    fn from_spawn_error(why: String) -> Self;
}

/// To the child, after its order. The end of the pipe means the same as `Cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildCommand {
    /// End now, and report what there is.
    Cancel,
}

impl ChildCommand {
    /// Whether a line of the child's input (`None`: its end) asks it to end.
    pub fn is_cancel(line: Option<&str>) -> bool {
        line.is_none_or(|l| matches!(serde_json::from_slice(l.as_bytes()), Ok(ChildCommand::Cancel)))
    }
}

/// A running child. Dropping it closes the pipe, which cancels the child.
pub struct ChildHandle {
    stdin: Mutex<Option<ChildStdin>>,
    pid: u32,
    /// Refers to this very process, even after it has ended and its number is in use again.
    pidfd: Option<OwnedFd>,
}

impl ChildHandle {
    /// Starts the child of `M` with its order. A thread calls `sink` with every message; the last one satisfies
    /// [`ChildMessage::is_last`] whatever becomes of the child.
    ///
    /// # Errors
    /// If the child, or the thread, cannot be started.
    pub fn start<M: ChildMessage>(
        root: &Root,
        order: &M::Order,
        sink: impl FnMut(M) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut child = ChildProcess::start(Root::self_exe(), root, &[M::SUBCOMMAND])?;
        let pid = child.id();
        // Before any thread can have waited for it.
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut stdin = child.stdin.take();
        if let Some(pipe) = &mut stdin {
            frame::write(pipe, order)?;
        }
        std::thread::Builder::new().name("child".into()).spawn(move || forward_messages(child, sink))?;
        Ok(Self { stdin: Mutex::new(stdin), pid, pidfd })
    }

    /// The child's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks the child to end; its report up to now follows as its last message.
    pub fn cancel(&self) {
        let stdin = self.stdin.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let (Some(mut pipe), Ok(line)) = (stdin, frame::to_line(&ChildCommand::Cancel)) {
            // If this fails, the pipe that closes now says the same.
            let _ = pipe.write_all(&line);
        }
    }

    /// Ends the child at once. What it holds (an unlinked file, a lease) goes with it. Without a pidfd (Linux before
    /// 5.3) it is cancelled, which ends it within seconds.
    pub fn kill(&self) {
        match &self.pidfd {
            Some(fd) => drop(pidfd_send_signal(fd, Signal::KILL)),
            None => self.cancel(),
        }
    }

    /// Whether the child ends within `timeout`, at most a second; `true` where the kernel cannot say.
    pub fn wait_for_exit(&self, timeout: Duration) -> bool {
        let Some(fd) = &self.pidfd else { return true };
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos().min(999_999_999) as i64 };
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) == Ok(1)
    }
}

/// How a process ended, in words: `killed by SIGKILL, by hand or for lack of memory`.
fn describe_exit(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else { return status.to_string() };
    let said = match signal {
        libc::SIGKILL => "killed by SIGKILL, by hand or for lack of memory",
        libc::SIGTERM => "ended by SIGTERM",
        libc::SIGINT => "ended by SIGINT (Ctrl-C)",
        libc::SIGHUP => "ended by SIGHUP: its terminal was closed",
        libc::SIGQUIT => "ended by SIGQUIT",
        libc::SIGSEGV => "crashed with SIGSEGV: invalid memory access",
        libc::SIGBUS => "crashed with SIGBUS: a page of its program or file could not be read",
        libc::SIGABRT => "crashed with SIGABRT: an internal error",
        libc::SIGILL => "crashed with SIGILL: an instruction this processor lacks",
        libc::SIGSYS => "ended by SIGSYS: a seccomp filter forbids a system call",
        libc::SIGXCPU => "ended by SIGXCPU: its limit of CPU time is used up",
        libc::SIGXFSZ => "ended by SIGXFSZ: its limit of file size is reached",
        other => return format!("ended by signal {other}"),
    };
    said.into()
}

/// Reads messages until the last one, then reaps the child. A child stuck in the kernel keeps this thread only.
fn forward_messages<M: ChildMessage>(mut child: ChildProcess, mut sink: impl FnMut(M)) {
    let mut reader = child.stdout.take().map(BufReader::new);
    while let Some(stdout) = &mut reader {
        let message = match frame::read::<M>(stdout, MAX_MESSAGE_BYTES) {
            Ok(Some(message)) => message,
            Err(FrameError::Malformed(err)) => M::from_crash(format!("sent nonsense: {err}")),
            Ok(None) | Err(_) => break,
        };
        let is_last = message.is_last();
        sink(message);
        if is_last {
            let _ = child.wait();
            return;
        }
    }
    // Its pipe is closed, so it has ended or is ending.
    let how = child.wait().map_or_else(|e| e.to_string(), describe_exit);
    sink(M::from_crash(format!("ended without a report ({how})")));
}
