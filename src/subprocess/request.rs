//! A child that answers a batch of requests, one reply each, and ends.

use super::frame::{self, FrameError};
use super::process::ChildProcess;
use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, ExitStatus};
use std::time::Duration;

/// A reply larger than this is cut off: a child is not trusted with this process's memory.
const MAX_REPLY_BYTES: u64 = 32 << 20;

/// A running child, from its requests to its last reply.
#[derive(Debug)]
pub struct RequestChild {
    child: ChildProcess,
    stdin: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl RequestChild {
    /// Starts a hidden subcommand, see [`ChildProcess::start`].
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Path, root: &Root, subcommand: &[&str]) -> io::Result<Self> {
        let mut child = ChildProcess::start(program, root, subcommand)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        Ok(Self { child, stdin, replies: BufReader::new(stdout) })
    }

    /// The child's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends all requests and closes the pipe. This does not wait for the work: the child reads everything before it
    /// begins. A child that has died already is not an error here; how it ended says more.
    ///
    /// # Errors
    /// If the pipe fails otherwise.
    pub fn send<'r, Q: Serialize + 'r>(&mut self, requests: impl IntoIterator<Item = &'r Q>) -> io::Result<()> {
        let mut lines = Vec::new();
        for request in requests {
            lines.extend(frame::to_line(request)?);
        }
        match self.stdin.take().map(|mut pipe| pipe.write_all(&lines)) {
            Some(Err(err)) if err.kind() != ErrorKind::BrokenPipe => Err(err),
            _ => Ok(()),
        }
    }

    /// Whether a reply, or the end of the child, comes within `timeout`.
    pub fn wait_for_reply(&self, timeout: Duration) -> bool {
        let mut polled = [PollFd::new(self.replies.get_ref(), PollFlags::IN)];
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        !self.replies.buffer().is_empty() || retry_on_intr(|| poll(&mut polled, Some(&timeout))) != Ok(0)
    }

    /// The next reply; `None` when the child has ended or closed its pipe. Waits as long as that takes.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn read_reply<A: DeserializeOwned>(&mut self) -> Result<Option<A>, FrameError> {
        frame::read(&mut self.replies, MAX_REPLY_BYTES)
    }

    /// Ends a child that has sent all its replies or closed its pipe, so the wait is short.
    ///
    /// # Errors
    /// If the child was reaped elsewhere.
    pub fn finish(mut self) -> io::Result<ExitStatus> {
        self.child.kill();
        self.child.wait()
    }

    /// Gives up a child that does not answer, see [`ChildProcess::abandon`].
    pub fn abandon(self, on_exit: impl FnOnce() + Send + 'static) {
        self.child.abandon(on_exit);
    }
}
