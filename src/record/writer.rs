//! A recording under way: a thread that makes frames and hands them to the child that writes.
//!
//! Whoever draws only sends news and never waits. If the child does not take its frames, because its disk hangs,
//! a few megabytes are kept for it; then frames are dropped and counted, and the first one after that stands by
//! itself.

use super::Entry;
use super::encode::Encoder;
use super::frame::{Header, Kind};
use super::io::{self as child, Order, Said, Task, line};
use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes kept for a child that does not take them.
const BACKLOG: usize = 8 << 20;
/// How long one look waits for the child, and how long the end does.
const PATIENCE: Duration = Duration::from_millis(250);
/// What was handed over and is not answered for so long is not being written: the longest of syncs on a busy disk
/// is over sooner, mostly.
const UNANSWERED: Duration = Duration::from_secs(4);
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// A file that is to have a size ends where the next frame might go beyond it.
const MARGIN: u64 = 4;

/// What is to be recorded where.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file; with `rotate` its name gets a number.
    pub path: PathBuf,
    /// An existing file may be replaced.
    pub replace: bool,
    /// Bytes a file may have.
    pub max_size: Option<u64>,
    /// Files kept; a full one is followed by another. Without: a full file ends the recording.
    pub rotate: Option<u32>,
}

impl Plan {
    /// The `n`th file.
    fn file(&self, n: u32) -> PathBuf {
        match self.rotate {
            None => self.path.clone(),
            Some(_) => {
                let mut name = self.path.clone().into_os_string();
                name.push(format!(".{n:04}"));
                name.into()
            }
        }
    }
}

/// Whether it goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Course {
    /// Yes.
    #[default]
    Running,
    /// The file has its size.
    Full,
    /// It was ended, and everything is on disk.
    Done,
    /// It could not go on: why, and what next.
    Failed(String),
}

/// How far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The file written now.
    pub file: PathBuf,
    /// Frames handed over.
    pub frames: u64,
    /// Bytes handed over.
    pub bytes: u64,
    /// Bytes that the child says are in the file.
    pub written: u64,
    /// Frames dropped because the disk does not answer.
    pub dropped: u64,
    /// The child does not take its frames, or does not get on with those it took.
    pub stuck: bool,
    /// It was ended, and the child has everything: this process may go.
    pub handed_over: bool,
    /// Whether it goes on.
    pub course: Course,
}

enum Message {
    Tick(Vec<Entry>, i64),
    End,
}

/// A recording under way. Dropping it ends it, without waiting.
pub struct Recorder {
    to: Sender<Message>,
    status: Arc<Mutex<Status>>,
}

fn lock(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Begins; whether the file can be had is told by [`Recorder::status`].
    pub fn start(root: &Root, plan: Plan, header: Header) -> std::io::Result<Self> {
        let (to, from) = channel();
        let status = Arc::new(Mutex::new(Status { file: plan.file(1), ..Status::default() }));
        let shared = status.clone();
        let root = root.clone();
        std::thread::Builder::new().name("record".into()).stack_size(512 * 1024).spawn(move || {
            if let Err(err) = run(&root, plan, &header, &from, &shared) {
                fail(&shared, format!("recording: {}", crate::model::section::describe(&err)));
            }
        })?;
        Ok(Self { to, status })
    }

    /// Hands over what a tick brought; `wall_ns` is its time.
    pub fn tick(&self, news: Vec<Entry>, wall_ns: i64) {
        let _ = self.to.send(Message::Tick(news, wall_ns));
    }

    /// Ends it: [`Status::course`] says when all is written.
    pub fn end(&self) {
        let _ = self.to.send(Message::End);
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        lock(&self.status).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

fn fail(status: &Mutex<Status>, why: String) {
    let mut status = lock(status);
    if status.course != Course::Done {
        status.course = Course::Failed(crate::text::clean(why));
    }
}

fn run(
    root: &Root,
    plan: Plan,
    header: &Header,
    from: &Receiver<Message>,
    status: &Arc<Mutex<Status>>,
) -> std::io::Result<()> {
    let mut child = child::start(root, &Task::Write)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (stdin, stdout) = pipes.ok_or(std::io::ErrorKind::BrokenPipe)?;
    rustix::io::ioctl_fionbio(&stdin, true)?;
    let told = status.clone();
    std::thread::Builder::new().name("record-said".into()).stack_size(128 * 1024).spawn(move || {
        listen(stdout, &told);
        // So that no zombie stays. A child stuck in the kernel keeps this thread, and nothing else.
        let _ = child.wait();
    })?;
    let mut pen = Pen { stdin, queue: VecDeque::new(), queued: 0, at: 0, stuck: false };
    let mut line = Line { plan, encoder: Encoder::default(), file: 0, bytes: 0, largest: [0; 2] };
    line.next_file(header, &mut pen, status);
    pen.push(PATIENCE)?;
    let mut answers = Answers { written: 0, since: Instant::now() };
    loop {
        match from.recv_timeout(Duration::from_secs(1)) {
            Ok(Message::Tick(news, wall_ns)) => {
                if lock(status).course == Course::Running {
                    line.tick(&news, wall_ns, header, &mut pen, status);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
        }
        pen.push(PATIENCE)?;
        let mut status = lock(status);
        status.stuck = pen.stuck || answers.are_missing(status.bytes, status.written, Instant::now());
    }
    pen.stuck = false;
    let done = pen.push(LAST_PATIENCE);
    lock(status).handed_over = true;
    done
}

/// What the child says, until it ends.
fn listen(stdout: ChildStdout, status: &Mutex<Status>) {
    for text in BufReader::new(stdout).lines().map_while(Result::ok) {
        match serde_json::from_str(&text) {
            Ok(Said::Written(n)) => lock(status).written = n,
            Ok(Said::Failed(why)) => fail(status, why),
            Ok(Said::Done) => {
                let mut status = lock(status);
                if matches!(status.course, Course::Running | Course::Full) {
                    status.course = Course::Done;
                }
                return;
            }
            Err(err) => fail(status, format!("the writing process sent nonsense: {err}")),
        }
    }
    fail_quietly(status);
}

/// The child ended without a last word.
fn fail_quietly(status: &Mutex<Status>) {
    let failed = matches!(lock(status).course, Course::Failed(_));
    if !failed {
        fail(status, "the writing process broke off; what it had written is in the file".into());
    }
}

/// The files one after the other, and their frames.
struct Line {
    plan: Plan,
    encoder: Encoder,
    file: u32,
    /// In this file.
    bytes: u64,
    /// The largest tick of differences, and the largest that stood by itself.
    largest: [u64; 2],
}

impl Line {
    fn next_file(&mut self, header: &Header, pen: &mut Pen, status: &Mutex<Status>) {
        self.file += 1;
        let path = self.plan.file(self.file);
        pen.add(line(&Order::Open { path: path.clone(), replace: self.plan.replace }));
        if let Some(old) = self.plan.rotate.and_then(|keep| self.file.checked_sub(keep)).filter(|n| *n > 0) {
            pen.add(line(&Order::Remove(self.plan.file(old))));
        }
        let bytes = header.write();
        self.bytes = bytes.len() as u64;
        pen.add(line(&Order::Data(bytes.len() as u32)));
        pen.add(bytes);
        self.encoder.start_anew();
        let mut status = lock(status);
        status.file = path;
        status.bytes += self.bytes;
    }

    fn tick(&mut self, news: &[Entry], wall_ns: i64, header: &Header, pen: &mut Pen, status: &Mutex<Status>) {
        let large = usize::from(self.encoder.next_kind() != Kind::Delta);
        let expected = self.largest[large].max(512);
        let full = self.plan.max_size.is_some_and(|most| self.bytes + expected + expected / MARGIN > most);
        if full && self.bytes > expected {
            if self.plan.rotate.is_none() {
                lock(status).course = Course::Full;
                return;
            }
            self.next_file(header, pen, status);
        }
        if pen.queued > BACKLOG {
            self.encoder.skip(news);
            lock(status).dropped += 1;
            return;
        }
        let kind = self.encoder.next_kind();
        let frame = self.encoder.frame(news, wall_ns);
        let len = frame.len() as u64;
        let largest = &mut self.largest[usize::from(kind != Kind::Delta)];
        *largest = len.max(*largest);
        self.bytes += len;
        pen.add(line(&Order::Data(frame.len() as u32)));
        pen.add(frame);
        if kind != Kind::Delta {
            pen.add(line(&Order::Sync));
        }
        let mut status = lock(status);
        status.frames += 1;
        status.bytes += len;
    }
}

/// Whether the child gets on. The pipe to it holds a minute of samples before it is full, so a full pipe tells of
/// a disk that hangs too late.
struct Answers {
    /// Bytes it had written when it last got on.
    written: u64,
    /// When that was, or when there was nothing left to write.
    since: Instant,
}

impl Answers {
    fn are_missing(&mut self, handed_over: u64, written: u64, now: Instant) -> bool {
        if written > self.written || written >= handed_over {
            (self.written, self.since) = (written, now);
        }
        now.duration_since(self.since) >= UNANSWERED
    }
}

/// The pipe to the child, which may take nothing for a while.
struct Pen {
    stdin: ChildStdin,
    queue: VecDeque<Vec<u8>>,
    queued: usize,
    /// Bytes of the first piece that are through.
    at: usize,
    stuck: bool,
}

impl Pen {
    fn add(&mut self, bytes: Vec<u8>) {
        self.queued += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Writes until all is through or the child has taken nothing for `patience`; a child that is known not to
    /// take anything is not waited for.
    fn push(&mut self, patience: Duration) -> std::io::Result<()> {
        while let Some(piece) = self.queue.front() {
            match rustix::io::write(&self.stdin, &piece[self.at..]) {
                Ok(n) => {
                    self.stuck = false;
                    self.at += n;
                    if self.at == piece.len() {
                        self.queued -= piece.len();
                        self.at = 0;
                        self.queue.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.stuck => return Ok(()),
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.stdin, PollFlags::OUT)];
                    let wait = Timespec {
                        tv_sec: patience.as_secs() as i64,
                        tv_nsec: patience.subsec_nanos().into(),
                    };
                    if poll(&mut fds, Some(&wait)) == Ok(0) {
                        self.stuck = true;
                        return Ok(());
                    }
                }
                // It has said why, or will have.
                Err(Errno::PIPE) => {
                    self.queue.clear();
                    (self.queued, self.at) = (0, 0);
                    return Ok(());
                }
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }
}

/// A name for a recording nobody named: host and time, so that names sort.
pub fn name(host: &str, wall_ns: i64) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let time = crate::units::rfc3339(wall_ns);
    let host: String = host.chars().map(safe).take(64).collect();
    format!("{host}-{}.iotop", time.get(..19).unwrap_or(&time).replace(':', ""))
}

/// Whether a path names a file at all.
pub fn names_a_file(path: &Path) -> bool {
    path.file_name().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_answers_late_is_not_stuck_and_one_that_does_not_is() {
        let start = Instant::now();
        let mut answers = Answers { written: 0, since: start };
        let mut missing = |secs, handed_over, written| {
            answers.are_missing(handed_over, written, start + Duration::from_secs(secs))
        };
        assert!(!missing(3, 100, 0));
        assert!(missing(4, 100, 0), "nothing was written yet");
        assert!(!missing(5, 300, 100), "it gets on, though behind");
        assert!(!missing(8, 400, 100));
        assert!(missing(9, 500, 100));
        assert!(!missing(10, 500, 500));
        assert!(!missing(3600, 500, 500), "there was nothing to write");
        assert!(!missing(3601, 600, 500));
    }
}
