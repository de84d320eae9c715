//! The other side of a tuner: starting one, and speaking to one that runs already.

use super::journal::Journal;
use super::protocol::{MAX_LINE, TunerReply, TunerRequest};
use super::tuner::socket_path;
use crate::root::Root;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// How long a tuner may take to make or unmake a change: several device writes up to their deadlines.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A tuner this process started. Dropped without [`Held::detach`], the change is taken back.
#[derive(Debug)]
pub struct LeaseHandle {
    pid: u32,
    stdin: ChildStdin,
    replies: Receiver<TunerReply>,
}

/// What a tuner said by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TunerEvent {
    /// Nothing so far.
    Nothing,
    /// This.
    Reply(TunerReply),
    /// It is gone and will not say anything any more.
    Ended,
}

impl LeaseHandle {
    /// Starts a tuner and has it make a change.
    pub fn start(
        program: &Path,
        root: &Root,
        words: Vec<String>,
        lease_secs: Option<u64>,
    ) -> io::Result<(Self, TunerReply)> {
        let mut child = Command::new(program)
            .args(["tuner", "--root"])
            .arg(root.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child.id();
        let missing = || io::Error::other("the tuner has no pipes");
        let (stdin, stdout) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let (tx, replies) = channel();
        std::thread::Builder::new().name("tuner".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line).unwrap_or_else(|err| TunerReply::Error(err.to_string()));
                if tx.send(reply).is_err() {
                    break;
                }
            }
            let _ = child.wait();
        })?;
        let mut held = Self { pid, stdin, replies };
        let reply = held.request(&TunerRequest::Set { assignments: words, lease_secs })?;
        Ok((held, reply))
    }

    /// The tuner's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks and waits for the answer.
    pub fn request(&mut self, request: &TunerRequest) -> io::Result<TunerReply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stdin.write_all(&line)?;
        self.replies.recv_timeout(REPLY_TIMEOUT).map_err(|_| {
            io::Error::other(format!("tuner {} does not answer; `iotop-plus tune status` shows what it did", self.pid))
        })
    }

    /// What the tuner said by itself, without waiting: that the lease is over.
    pub fn poll_event(&self) -> TunerEvent {
        match self.replies.try_recv() {
            Ok(reply) => TunerEvent::Reply(reply),
            Err(TryRecvError::Empty) => TunerEvent::Nothing,
            Err(TryRecvError::Disconnected) => TunerEvent::Ended,
        }
    }

    /// Lets it go on alone: the change lives until its lease ends.
    pub fn detach(mut self) -> io::Result<TunerReply> {
        self.request(&TunerRequest::Detach)
    }
}

/// Speaks to the tuner that holds a change; `None`: none does.
pub fn call_tuner(journal: &Journal, id: u64, request: &TunerRequest) -> Option<io::Result<TunerReply>> {
    call_tuner_within(journal, id, request, REPLY_TIMEOUT)
}

/// [`call`] with another deadline for the answer.
pub fn call_tuner_within(
    journal: &Journal,
    id: u64,
    request: &TunerRequest,
    within: Duration,
) -> Option<io::Result<TunerReply>> {
    let stream = UnixStream::connect(socket_path(journal, id)).ok()?;
    Some(exchange(stream, request, within))
}

fn exchange(mut stream: UnixStream, request: &TunerRequest, within: Duration) -> io::Result<TunerReply> {
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut text = String::new();
    BufReader::new(stream.take(MAX_LINE as u64)).read_line(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
