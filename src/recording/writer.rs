//! Records to a file: a thread encodes frames and sends them to the child that writes them.
//!
//! The caller only sends observations and never waits. If the child does not take its frames because its disk hangs, a
//! few megabytes are queued; then frames are dropped and counted, and the next one written is a key frame.

use super::encoder::FrameEncoder;
use super::file_worker::{FileWorkerTask, WriteCommand, WriteReply, spawn_worker};
use super::frame::{FrameKind, RecordingHeader};
use crate::model::observation::Observation;
use crate::root::Root;
use crate::subprocess::frame;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes queued for a child that does not take them.
const MAX_BACKLOG_BYTES: usize = 8 << 20;
/// Bytes without a reply for so long are not being written: nearly every sync on a busy disk is faster.
const REPLY_TIMEOUT: Duration = Duration::from_secs(4);
/// How long to wait for the child to take everything at the end.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// A file ends before its maximum size if the next frame could exceed it by this fraction.
const SIZE_MARGIN_DIVISOR: u64 = 4;

/// What to record where.
#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// The file; with `rotate` a number is appended to its name.
    pub path: PathBuf,
    /// Whether an existing file may be replaced.
    pub replace: bool,
    /// Bytes of a file at most.
    pub max_size: Option<u64>,
    /// Files kept, of which a full one is followed by the next. Without it a full file ends the recording.
    pub rotate: Option<u32>,
}

impl RecorderOptions {
    fn file_path(&self, n: u32) -> PathBuf {
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

/// Whether the recording goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecorderState {
    /// Frames are being written.
    #[default]
    Running,
    /// The file has its maximum size.
    Full,
    /// It was ended, and everything is on disk.
    Done,
    /// It failed: why, and what to do next.
    Failed(String),
}

/// The progress of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecorderStatus {
    /// The file; with `rotate` a number is appended to its name.
    pub path: PathBuf,
    /// Frames sent to the child.
    pub frames_sent: u64,
    /// Bytes sent to the child.
    pub bytes_sent: u64,
    /// Bytes that the child has written.
    pub bytes_written: u64,
    /// Frames dropped because the disk does not respond.
    pub frames_dropped: u64,
    /// The child takes no frames, or does not get on with those it has.
    pub is_stuck: bool,
    /// It was ended, and the child has everything: this process may exit.
    pub is_handed_over: bool,
    /// Whether the recording goes on.
    pub state: RecorderState,
}

/// The observations of a tick, and its wall clock.
type Tick = (Vec<Observation>, i64);

/// A recording in progress. Dropping it ends it without waiting.
pub struct RecordingWriter {
    /// Without it the recording ends.
    sender: Option<Sender<Tick>>,
    status: Arc<Mutex<RecorderStatus>>,
}

fn lock_unpoisoned(status: &Mutex<RecorderStatus>) -> MutexGuard<'_, RecorderStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordingWriter {
    /// Starts recording; [`Self::status`] reports whether the file could be opened.
    pub fn start(root: &Root, plan: RecorderOptions, header: RecordingHeader) -> std::io::Result<Self> {
        let (to, from) = channel();
        let status = Arc::new(Mutex::new(RecorderStatus { path: plan.file_path(1), ..RecorderStatus::default() }));
        let shared = status.clone();
        let root = root.clone();
        std::thread::Builder::new().name("record".into()).stack_size(512 * 1024).spawn(move || {
            if let Err(err) = run_recorder(&root, plan, header, &from, shared.clone()) {
                set_failed(&shared, format!("recording: {}", crate::model::reading::describe_io_error(&err)));
            }
        })?;
        Ok(Self { sender: Some(to), status })
    }

    /// Sends the observations of a tick at `wall_ns`.
    pub fn record_tick(&self, observations: Vec<Observation>, wall_ns: i64) {
        let _ = self.sender.as_ref().map(|sender| sender.send((observations, wall_ns)));
    }

    /// Ends the recording: [`RecorderStatus::state`] reports when everything is written.
    pub fn finish(&mut self) {
        self.sender = None;
    }

    /// The progress.
    pub fn status(&self) -> RecorderStatus {
        lock_unpoisoned(&self.status).clone()
    }
}

fn set_failed(status: &Mutex<RecorderStatus>, why: String) {
    let mut status = lock_unpoisoned(status);
    if status.state != RecorderState::Done {
        status.state = RecorderState::Failed(crate::sanitize::sanitize(why));
    }
}

fn run_recorder(
    root: &Root,
    options: RecorderOptions,
    header: RecordingHeader,
    ticks: &Receiver<Tick>,
    status: Arc<Mutex<RecorderStatus>>,
) -> std::io::Result<()> {
    let mut child = spawn_worker(root, &FileWorkerTask::Write)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (stdin, stdout) = pipes.ok_or(std::io::ErrorKind::BrokenPipe)?;
    let replies_status = status.clone();
    std::thread::Builder::new().name("record-said".into()).stack_size(128 * 1024).spawn(move || {
        read_replies(stdout, &replies_status);
        // Reaps the child. One that is stuck in the kernel keeps only this thread.
        let _ = child.wait();
    })?;
    let (encoder, pipe) = (FrameEncoder::default(), WorkerPipe::start(stdin)?);
    let mut files =
        FileSequence { options, header, status, encoder, pipe, file_number: 0, file_bytes: 0, largest_frames: [0; 2] };
    files.start_next_file();
    let mut replies = ReplyMonitor { last_written: 0, last_progress: Instant::now() };
    loop {
        match ticks.recv_timeout(Duration::from_secs(1)) {
            Ok((observations, wall_ns)) if files.status().state == RecorderState::Running => {
                files.write_tick(&observations, wall_ns);
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let mut status = files.status();
        status.is_stuck = replies.is_overdue(status.bytes_sent, status.bytes_written, Instant::now());
    }
    files.pipe.finish();
    lock_unpoisoned(&files.status).is_handed_over = true;
    Ok(())
}

/// Reads the child's replies until it exits.
fn read_replies(stdout: ChildStdout, status: &Mutex<RecorderStatus>) {
    for text in BufReader::new(stdout).lines().map_while(Result::ok) {
        match serde_json::from_slice(text.as_bytes()) {
            Ok(WriteReply::Written(n)) => lock_unpoisoned(status).bytes_written = n,
            Ok(WriteReply::Failed(why)) => set_failed(status, why),
            Ok(WriteReply::Done) => {
                let mut status = lock_unpoisoned(status);
                if matches!(status.state, RecorderState::Running | RecorderState::Full) {
                    status.state = RecorderState::Done;
                }
                return;
            }
            Err(err) => set_failed(status, format!("the writing process sent an unknown reply: {err}")),
        }
    }
    let is_reported = matches!(lock_unpoisoned(status).state, RecorderState::Failed(_));
    if !is_reported {
        set_failed(status, "the writing process ended unexpectedly; what it had written is in the file".into());
    }
}

/// The files of the recording, one after the other.
struct FileSequence {
    options: RecorderOptions,
    header: RecordingHeader,
    status: Arc<Mutex<RecorderStatus>>,
    encoder: FrameEncoder,
    pipe: WorkerPipe,
    file_number: u32,
    file_bytes: u64,
    /// The largest frame of differences, and the largest with a base.
    largest_frames: [u64; 2],
}

impl FileSequence {
    fn status(&self) -> MutexGuard<'_, RecorderStatus> {
        lock_unpoisoned(&self.status)
    }

    fn send(&self, command: &WriteCommand) {
        // Commands hold nothing without a JSON form.
        self.pipe.send(frame::to_line(command).unwrap_or_default());
    }

    fn send_data(&self, data: Vec<u8>) {
        self.send(&WriteCommand::Data(data.len() as u32));
        self.pipe.send(data);
    }

    fn start_next_file(&mut self) {
        self.file_number += 1;
        let path = self.options.file_path(self.file_number);
        self.send(&WriteCommand::Open { path: path.clone(), replace: self.options.replace });
        if let Some(old) = self.options.rotate.and_then(|keep| self.file_number.checked_sub(keep)).filter(|n| *n > 0) {
            self.send(&WriteCommand::Remove(self.options.file_path(old)));
        }
        let bytes = self.header.to_bytes();
        self.file_bytes = bytes.len() as u64;
        self.send_data(bytes);
        self.encoder.force_key_frame();
        let mut status = self.status();
        status.path = path;
        status.bytes_sent += self.file_bytes;
    }

    fn write_tick(&mut self, observations: &[Observation], wall_ns: i64) {
        let expected = self.largest_frames[usize::from(self.encoder.next_kind() != FrameKind::Delta)].max(512);
        let end = self.file_bytes + expected + expected / SIZE_MARGIN_DIVISOR;
        if self.options.max_size.is_some_and(|most| end > most) && self.file_bytes > expected {
            if self.options.rotate.is_none() {
                self.status().state = RecorderState::Full;
                return;
            }
            self.start_next_file();
        }
        if self.pipe.queued_bytes.load(Ordering::Relaxed) > MAX_BACKLOG_BYTES {
            self.encoder.skip_tick(observations);
            self.status().frames_dropped += 1;
            return;
        }
        let kind = self.encoder.next_kind();
        let frame = self.encoder.encode_tick(observations, wall_ns);
        let len = frame.len() as u64;
        let largest = &mut self.largest_frames[usize::from(kind != FrameKind::Delta)];
        *largest = len.max(*largest);
        self.file_bytes += len;
        self.send_data(frame);
        if kind != FrameKind::Delta {
            self.send(&WriteCommand::Sync);
        }
        let mut status = self.status();
        status.frames_sent += 1;
        status.bytes_sent += len;
    }
}

/// Whether the child gets on. The pipe to it holds about a minute of samples, so a full pipe would reveal a hung disk
/// too late.
struct ReplyMonitor {
    /// Bytes it had written when it last made progress.
    last_written: u64,
    /// When that was, or when there was last nothing to write.
    last_progress: Instant,
}

impl ReplyMonitor {
    fn is_overdue(&mut self, handed_over: u64, written: u64, now: Instant) -> bool {
        if written > self.last_written || written >= handed_over {
            (self.last_written, self.last_progress) = (written, now);
        }
        now.duration_since(self.last_progress) >= REPLY_TIMEOUT
    }
}

/// The pipe to the child, written by a thread of its own, because the child may take nothing for a while.
struct WorkerPipe {
    sender: Sender<Vec<u8>>,
    queued_bytes: Arc<AtomicUsize>,
    /// Disconnected when everything is written, or the child has ended; it has reported why, or will.
    ended: Receiver<()>,
}

impl WorkerPipe {
    fn start(mut stdin: ChildStdin) -> std::io::Result<Self> {
        let (sender, pieces) = channel::<Vec<u8>>();
        let (end, ended) = channel();
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let left = queued_bytes.clone();
        std::thread::Builder::new().name("record-pipe".into()).stack_size(128 * 1024).spawn(move || {
            let _end: Sender<()> = end;
            for piece in pieces {
                if stdin.write_all(&piece).is_err() {
                    break;
                }
                left.fetch_sub(piece.len(), Ordering::Relaxed);
            }
        })?;
        Ok(Self { sender, queued_bytes, ended })
    }

    fn send(&self, bytes: Vec<u8>) {
        self.queued_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let _ = self.sender.send(bytes);
    }

    /// Waits until everything is written, but not long.
    fn finish(self) {
        drop(self.sender);
        let _ = self.ended.recv_timeout(FINAL_WRITE_TIMEOUT);
    }
}

/// The default file name: host and time, so that names sort.
pub fn default_file_name(host: &str, wall_ns: i64) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let time = crate::units::format_rfc3339(wall_ns);
    let host: String = host.chars().map(safe).take(64).collect();
    format!("{host}-{}.iotop", time.get(..19).unwrap_or(&time).replace(':', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_overdue_only_after_the_reply_timeout_without_progress() {
        let start = Instant::now();
        let mut answers = ReplyMonitor { last_written: 0, last_progress: start };
        let mut missing =
            |secs, handed_over, written| answers.is_overdue(handed_over, written, start + Duration::from_secs(secs));
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
