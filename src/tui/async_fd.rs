//! Descriptors the loop waits for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Something that owns one descriptor, the same one for all its life.
pub trait StableFd: AsFd + AsRawFd {}

impl StableFd for super::terminal::TtyHandle {}
impl StableFd for super::runtime::Timer {}
impl StableFd for crate::collect::kmsg::KmsgReader {}

/// Registers it with the runtime.
#[allow(unsafe_code)]
pub fn register_fd<T: StableFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: the descriptor must stay open and the same until the AsyncFd is gone. All implementors of
    // OwnsFd hold it in an OwnedFd that they never replace or close before they are dropped themselves.
    unsafe { AsyncFd::register_with_interest(inner, interest) }.map_err(|err| err.into_parts().1)
}
