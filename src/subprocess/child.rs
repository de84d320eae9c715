//! The child's end: what every child does first, and how it reads requests and writes replies.

use super::frame;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::CString;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::RawFd;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The first descriptor that is no standard stream.
const FIRST: libc::c_uint = 3;
/// The longest line a child reads from [`stdin_lines`].
const MAX_LINE_BYTES: usize = 1 << 20;
/// The most a child reads as one batch of requests.
const MAX_REQUESTS_BYTES: u64 = 256 << 20;

/// Separates the process from its parent's terminal, and names it after its subcommand: first call of every child.
pub fn enter(subcommand: &str) {
    // A session of its own: the terminal's signals and its hang-up reach the parent only.
    let _ = rustix::process::setsid();
    // All that tells one forked child from another in process lists: its command line is that of the program.
    if let Ok(name) = CString::new(format!("iotop-{subcommand}")) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// Closes every descriptor but standard input, output and error. What the program's own parent left open in it is
/// inherited: a process that outlives the program would keep a pipe, a lock or a file system busy. Call it before
/// anything is opened.
pub fn close_inherited_descriptors() {
    close_descriptors(FIRST, libc::c_uint::MAX);
}

/// The same, but `kept` stays open.
pub(super) fn close_descriptors_except(kept: RawFd) {
    let kept = kept as libc::c_uint;
    if kept > FIRST {
        close_descriptors(FIRST, kept - 1);
    }
    close_descriptors(kept + 1, libc::c_uint::MAX);
}

#[allow(unsafe_code)]
fn close_descriptors(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: takes integers only, and nothing of this process uses these descriptors any more.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    // Before Linux 5.9.
    if closed != 0 {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1 << 16);
        for fd in first..=last.min(limit.min(1 << 16) as libc::c_uint) {
            // SAFETY: as above; a number that is not open is an error without effect.
            unsafe { libc::close(fd as libc::c_int) };
        }
    }
}

/// Answers every request on standard input, one reply each, in order. A request that is not understood comes as an
/// error; an error of `handle` ends the child without a reply.
///
/// # Errors
/// Those of `handle`, and those of the pipes.
pub fn serve_requests<Q: DeserializeOwned, A: Serialize>(
    mut handle: impl FnMut(serde_json::Result<Q>) -> anyhow::Result<A>,
) -> anyhow::Result<()> {
    // All at once: the parent must not wait for room in this pipe while the child waits for room in the other.
    let mut requests = String::new();
    io::stdin().take(MAX_REQUESTS_BYTES).read_to_string(&mut requests)?;
    let mut out = io::stdout().lock();
    for line in requests.lines() {
        // Each reply is out before the next request begins, which may never end.
        frame::write(&mut out, &handle(serde_json::from_slice(line.as_bytes()))?)?;
    }
    Ok(())
}

/// Sends a message to the parent; `false` if nobody reads any more.
pub fn send(message: &impl Serialize) -> bool {
    let mut out = io::stdout().lock();
    let Ok(line) = frame::to_line(message) else { return false };
    out.write_all(&line).and_then(|()| out.flush()).is_ok()
}

/// The lines of standard input, read by a thread; the channel ends with the input.
pub fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (tx, rx) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line.len() > MAX_LINE_BYTES || tx.send(line).is_err() {
                break;
            }
        }
    });
    rx
}

/// Listens for signals that ask the child to end.
pub fn stop_signals(kinds: &[SignalKind]) -> Vec<Signal> {
    kinds.iter().filter_map(|kind| signal(*kind).ok()).collect()
}

/// Waits for one of them.
pub async fn next_signal(signals: &mut [Signal]) {
    std::future::poll_fn(|cx| match signals.iter_mut().any(|s| s.poll_recv(cx).is_ready()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await
}
