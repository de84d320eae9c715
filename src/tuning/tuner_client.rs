//! Starts tuners and talks to running ones.

use super::journal::Journal;
use super::protocol::{MAX_LINE, TunerReply, TunerRequest};
use super::tuner::socket_path;
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::subprocess::frame;
use crate::subprocess::process::ChildProcess;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long a tuner may take to make or restore a change: several device writes, each up to its timeout.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A tuner started by this process. Dropping it without [`LeaseHandle::detach`] restores the old values.
#[derive(Debug)]
pub struct LeaseHandle {
    pid: u32,
    stdin: ChildStdin,
    replies: Receiver<TunerReply>,
    renewed_at: Instant,
}

impl LeaseHandle {
    /// Starts a tuner and has it make a change.
    pub fn start(
        program: &Path,
        root: &Root,
        assignments: Vec<String>,
        lease_secs: Option<u64>,
    ) -> io::Result<(Self, TunerReply)> {
        let mut child = ChildProcess::start(program, root, &["tuner"])?;
        let pid = child.id();
        let no_pipes = || io::Error::other("the tuner has no pipes");
        let (stdin, stdout) = (child.stdin.take().ok_or_else(no_pipes)?, child.stdout.take().ok_or_else(no_pipes)?);
        let (tx, replies) = channel();
        std::thread::Builder::new().name("tuner".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let reply =
                    serde_json::from_slice(line.as_bytes()).unwrap_or_else(|err| TunerReply::Error(err.to_string()));
                let _ = tx.send(reply);
            }
            let _ = child.wait();
        })?;
        let mut handle = Self { pid, stdin, replies, renewed_at: Instant::now() };
        let reply = handle.request(&TunerRequest::Set { assignments, lease_secs })?;
        Ok((handle, reply))
    }

    /// The tuner's pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a request and waits for the reply.
    pub fn request(&mut self, request: &TunerRequest) -> io::Result<TunerReply> {
        frame::write(&mut self.stdin, request)?;
        self.replies.recv_timeout(REPLY_TIMEOUT).map_err(|_| {
            io::Error::other(format!("tuner {} does not answer; `iotop-plus tune status` shows what it did", self.pid))
        })
    }

    /// What the tuner sent without a request, such as the end of its lease; does not wait. `Disconnected`: it has exited.
    pub fn poll_reply(&self) -> Result<TunerReply, TryRecvError> {
        self.replies.try_recv()
    }

    /// Makes the lease last `secs` from now, unless that was done less than `interval` ago. The error says why the tuner
    /// does not hold the change any more.
    pub fn renew(&mut self, secs: u64, interval: Duration) -> Result<(), String> {
        let said = |reply: &TunerReply| format!("the tuner said {reply:?}");
        match self.poll_reply() {
            Ok(reply) => return Err(said(&reply)),
            Err(TryRecvError::Disconnected) => return Err("the tuner ended".into()),
            Err(TryRecvError::Empty) if self.renewed_at.elapsed() < interval => return Ok(()),
            Err(TryRecvError::Empty) => self.renewed_at = Instant::now(),
        }
        match self.request(&TunerRequest::Renew { secs }) {
            Ok(TunerReply::TimeLeft { .. }) => Ok(()),
            Ok(other) => Err(said(&other)),
            Err(err) => Err(describe_io_error(&err)),
        }
    }

    /// Lets the tuner continue by itself: the change lasts until its lease ends.
    pub fn detach(mut self) -> io::Result<TunerReply> {
        self.request(&TunerRequest::Detach)
    }
}

/// Sends a request to the tuner that holds a change; `None` if there is none.
pub fn call_tuner(
    journal: &Journal,
    id: u64,
    request: &TunerRequest,
    timeout: Duration,
) -> Option<io::Result<TunerReply>> {
    let stream = UnixStream::connect(socket_path(journal, id)).ok()?;
    Some(exchange(stream, request, timeout))
}

fn exchange(mut stream: UnixStream, request: &TunerRequest, timeout: Duration) -> io::Result<TunerReply> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    frame::write(&mut stream, request)?;
    let reply = frame::read(&mut BufReader::new(stream), MAX_LINE).map_err(io::Error::other)?;
    reply.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
