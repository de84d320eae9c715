//! The other side of a tuner: starting one, and speaking to one that runs already.

use super::journal::Journal;
use super::lease::socket;
use super::protocol::{MAX_LINE, Reply, Request};
use crate::root::Root;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// How long a tuner may take to make or unmake a change: several device writes up to their deadlines.
pub const ANSWER: Duration = Duration::from_secs(60);

/// A tuner this process started. Dropped without [`Held::detach`], the change is taken back.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    stdin: ChildStdin,
    replies: Receiver<Reply>,
}

/// What a tuner said by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing so far.
    Nothing,
    /// This.
    Reply(Reply),
    /// It is gone and will not say anything any more.
    Ended,
}

impl Held {
    /// Starts a tuner and has it make a change.
    pub fn start(
        program: &Path,
        root: &Root,
        words: Vec<String>,
        lease_secs: Option<u64>,
    ) -> io::Result<(Self, Reply)> {
        let mut child = Command::new(program)
            .args(["tuner", "--root"])
            .arg(root.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child.id();
        let missing = || io::Error::other("the tuner has no pipes");
        let (stdin, stdout) =
            (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let (tx, replies) = channel();
        std::thread::Builder::new().name("tuner".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line).unwrap_or_else(|err| Reply::Bad(err.to_string()));
                if tx.send(reply).is_err() {
                    break;
                }
            }
            let _ = child.wait();
        })?;
        let mut held = Self { pid, stdin, replies };
        let reply = held.ask(&Request::Set { words, lease_secs })?;
        Ok((held, reply))
    }

    /// The tuner's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stdin.write_all(&line)?;
        self.replies.recv_timeout(ANSWER).map_err(|_| {
            io::Error::other(format!(
                "tuner {} does not answer; `iotop-plus tune status` shows what it did",
                self.pid
            ))
        })
    }

    /// What the tuner said by itself, without waiting: that the lease is over.
    pub fn said(&self) -> Said {
        match self.replies.try_recv() {
            Ok(reply) => Said::Reply(reply),
            Err(TryRecvError::Empty) => Said::Nothing,
            Err(TryRecvError::Disconnected) => Said::Ended,
        }
    }

    /// Lets it go on alone: the change lives until its lease ends.
    pub fn detach(mut self) -> io::Result<Reply> {
        self.ask(&Request::Detach)
    }
}

/// Speaks to the tuner that holds a change; `None`: none does.
pub fn call(journal: &Journal, id: u64, request: &Request) -> Option<io::Result<Reply>> {
    call_within(journal, id, request, ANSWER)
}

/// [`call`] with another deadline for the answer.
pub fn call_within(
    journal: &Journal,
    id: u64,
    request: &Request,
    within: Duration,
) -> Option<io::Result<Reply>> {
    let stream = UnixStream::connect(socket(journal, id)).ok()?;
    Some(exchange(stream, request, within))
}

fn exchange(mut stream: UnixStream, request: &Request, within: Duration) -> io::Result<Reply> {
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut text = String::new();
    BufReader::new(stream.take(MAX_LINE as u64)).read_line(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
