//! File descriptors the event loop waits for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A type that owns one file descriptor and keeps it for its whole life.
pub(in crate::tui) trait StableFd: AsFd + AsRawFd {}

impl StableFd for std::os::fd::OwnedFd {}
impl StableFd for crate::collect::kmsg::KmsgReader {}

/// Registers a file descriptor with tokio's reactor.
#[allow(unsafe_code)]
pub(in crate::tui) fn register_fd<T: StableFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: the descriptor must stay open and the same until the AsyncFd is dropped. All implementors of
    // StableFd are or hold an OwnedFd that is never replaced or closed before they are dropped themselves.
    unsafe { AsyncFd::register_with_interest(inner, interest) }.map_err(|err| err.into_parts().1)
}
