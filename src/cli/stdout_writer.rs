//! Standard output written by a thread of its own: a reader that is slow, or a file on a disk that hangs,
//! must not keep a signal from ending the program.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What became of a text.
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

    /// Whether a text is being written.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether the reading end of the pipe was closed: noticed between texts too.
    pub fn reader_is_gone() -> bool {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Hands over a text; not to be called while one is being written.
    pub fn write_in_background(&mut self, text: Vec<u8>) {
        self.busy = self.queue.try_send(text).is_ok();
    }

    /// Waits until the text is written; for ever if there is none.
    pub async fn wait_until_written(&mut self) -> WriteResult {
        if !self.busy {
            std::future::pending::<()>().await;
        }
        let written = self.results.recv().await;
        self.busy = false;
        written.unwrap_or(Err(Errno::IO))
    }
}

/// The whole text, or why not; also to a pipe somebody made non-blocking.
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
