//! Prints samples until the requested number is reached, the reader goes away or a signal arrives.
//!
//! A separate thread writes: a slow reader, or a file on a hung disk, must not keep a signal from ending the program.

use super::sampler::Sampler;
use crate::subprocess::child::{next_signal, stop_signals};
use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::task::{JoinHandle, spawn_blocking};

/// How long an exiting program waits for the current write.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

const READER_CHECK_INTERVAL: Duration = Duration::from_millis(500);

type WriteResult = Result<(), Errno>;

pub(super) struct Printer {
    /// The write in progress.
    write: Option<JoinHandle<WriteResult>>,
    signals: Vec<Signal>,
    /// The number of texts still to print; `None`: no limit.
    remaining: Option<u64>,
}

impl Printer {
    /// Prints at most `count` texts.
    pub(super) fn new(count: Option<u64>) -> Self {
        Self { write: None, signals: ending_signals(), remaining: count }
    }

    /// Starts writing a text. Must not be called while a write is in progress.
    pub(super) fn print(&mut self, text: impl Into<Vec<u8>>) {
        let text = text.into();
        self.write = Some(spawn_blocking(move || write_all_blocking(&text)));
        self.remaining = self.remaining.map(|n| n.saturating_sub(1));
    }

    /// Waits for a sample that can be printed; `false`: the program exits. While the reader is slow, samples are
    /// skipped; each covers its own interval only.
    pub(super) async fn wait_for_sample(&mut self, sampler: &mut Sampler) -> anyhow::Result<bool> {
        let mut glance = tokio::time::interval(READER_CHECK_INTERVAL);
        loop {
            let enough = self.remaining == Some(0);
            if enough && self.write.is_none() {
                return Ok(false);
            }
            tokio::select! {
                biased;
                () = next_signal(&mut self.signals) => return self.finish().await,
                written = wait_until_written(&mut self.write) => match written {
                    Ok(()) => {}
                    Err(Errno::PIPE) => return Ok(false),
                    Err(err) => return Err(write_error(err)),
                },
                _ = glance.tick() => if reader_is_gone() {
                    return Ok(false);
                },
                sample_result = sampler.next_sample(), if !enough => {
                    sample_result?;
                    if self.write.is_none() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Finishes the current write, within a time limit.
    async fn finish(&mut self) -> anyhow::Result<bool> {
        if self.write.is_some()
            && let Ok(Err(err)) = tokio::time::timeout(FINAL_WRITE_TIMEOUT, wait_until_written(&mut self.write)).await
            && err != Errno::PIPE
        {
            return Err(write_error(err));
        }
        Ok(false)
    }
}

/// Waits for a write to finish; for ever if there is none. Cancel-safe.
async fn wait_until_written(write: &mut Option<JoinHandle<WriteResult>>) -> WriteResult {
    let written = match write {
        Some(write) => write.await,
        None => std::future::pending().await,
    };
    *write = None;
    written.unwrap_or(Err(Errno::IO))
}

/// Whether the reading end of the pipe is closed; also noticed between writes.
fn reader_is_gone() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

/// Writes all bytes, even to a non-blocking pipe.
fn write_all_blocking(mut bytes: &[u8]) -> WriteResult {
    let out = io::stdout();
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::write(&out, bytes)) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(&out, PollFlags::OUT)];
                retry_on_intr(|| poll(&mut fds, None))?;
            }
            Err(err) => return Err(err),
        }
    }
    Ok(())
}

fn write_error(err: Errno) -> anyhow::Error {
    let why = crate::model::reading::describe_io_error(&io::Error::from(err));
    let is_full = matches!(err, Errno::NOSPC | Errno::DQUOT);
    anyhow!("standard output: {why}{}", if is_full { "; free some space or write elsewhere" } else { "" })
}

/// Runs a future on a single-threaded runtime.
pub(super) fn block_on<T>(body: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(body);
    // Do not wait for a thread that hangs in a read.
    runtime.shutdown_background();
    result
}

/// The signals that end a subcommand.
pub(super) fn ending_signals() -> Vec<Signal> {
    stop_signals(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()])
}
