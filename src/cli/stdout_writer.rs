//! Writes standard output in a separate thread: a slow reader, or a file on a hung disk, must not keep a signal from
//! ending the program.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use tokio::task::{JoinHandle, spawn_blocking};

type WriteResult = Result<(), Errno>;

/// Standard output, and the write in progress.
#[derive(Default)]
pub(super) struct StdoutWriter(Option<JoinHandle<WriteResult>>);

impl StdoutWriter {
    pub(super) fn is_busy(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the reading end of the pipe is closed; also noticed between writes.
    pub(super) fn reader_is_gone() -> bool {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Starts writing a text. Must not be called while a write is in progress.
    pub(super) fn write_in_background(&mut self, text: Vec<u8>) {
        self.0 = Some(spawn_blocking(move || write_all_blocking(&text)));
    }

    /// Waits for the write to finish; for ever if there is none. Cancel-safe.
    pub(super) async fn wait_until_written(&mut self) -> WriteResult {
        let written = match &mut self.0 {
            Some(write) => write.await,
            None => std::future::pending().await,
        };
        self.0 = None;
        written.unwrap_or(Err(Errno::IO))
    }
}

/// Writes all bytes, even to a non-blocking pipe.
fn write_all_blocking(mut bytes: &[u8]) -> WriteResult {
    let out = io::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(&out, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(&out, PollFlags::OUT)];
                match poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(err) => return Err(err),
                }
            }
            Err(err) => return Err(err),
        }
    }
    Ok(())
}
