//! Writes standard output in a separate thread: a slow reader, or a file on a hung disk, must not keep a signal from
//! ending the program.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The result of a write.
pub type WriteResult = Result<(), Errno>;

/// Standard output.
pub struct StdoutWriter {
    queue: SyncSender<Vec<u8>>,
    results: UnboundedReceiver<WriteResult>,
    busy: bool,
}

impl StdoutWriter {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (texts, inbox) = sync_channel::<Vec<u8>>(1);
        let (outbox, done) = unbounded_channel();
        std::thread::Builder::new().name("output".into()).stack_size(64 * 1024).spawn(move || {
            for text in inbox {
                if outbox.send(write_all_blocking(&text)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { queue: texts, results: done, busy: false })
    }

    /// Whether a write is in progress.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether the reading end of the pipe is closed; also noticed between writes.
    pub fn reader_is_gone() -> bool {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Starts writing a text. Must not be called while a write is in progress.
    pub fn write_in_background(&mut self, text: Vec<u8>) {
        self.busy = self.queue.try_send(text).is_ok();
    }

    /// Waits for the write to finish; for ever if there is none.
    pub async fn wait_until_written(&mut self) -> WriteResult {
        if !self.busy {
            std::future::pending::<()>().await;
        }
        let written = self.results.recv().await;
        self.busy = false;
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
