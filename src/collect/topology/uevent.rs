//! The kernel's announcements of device changes (NETLINK_KOBJECT_UEVENT, lib/kobject_uevent.c).
//!
//! A loop device gets its file, a mapping its table and a drive its disc without any change in the list of devices.
//! The announcements can be received without privilege.

use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with, sockopt};
use std::os::fd::OwnedFd;

/// The kernel's own messages; udev sends its copies to group 2.
const KERNEL_GROUP: u32 = 1;
/// Small: an overflow is as good as an announcement.
const SOCKET_BUFFER_BYTES: usize = 16 * 1024;
/// Messages read per tick at most.
const MAX_MESSAGES_PER_CALL: usize = 1024;

pub(super) struct UeventListener {
    fd: OwnedFd,
    buf: Vec<u8>,
}

impl UeventListener {
    /// A listener, or `None` if the kernel refuses.
    pub(super) fn new() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT)).ok()?;
        let _ = sockopt::set_socket_recv_buffer_size(&fd, SOCKET_BUFFER_BYTES);
        bind(&fd, &SocketAddrNetlink::new(0, KERNEL_GROUP)).ok()?;
        Some(Self { fd, buf: vec![0; 4096] })
    }

    /// Whether a block device was announced since the last call, or announcements were lost.
    pub(super) fn has_block_event(&mut self) -> bool {
        let mut heard = false;
        for _ in 0..MAX_MESSAGES_PER_CALL {
            match recv(&self.fd, &mut self.buf[..], RecvFlags::DONTWAIT) {
                Ok((n, _)) => heard |= is_block_event(&self.buf[..n]),
                Err(Errno::NOBUFS) => heard = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        heard
    }
}

fn is_block_event(message: &[u8]) -> bool {
    message.split(|b| *b == 0).any(|field| field == b"SUBSYSTEM=block")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_block_events_count() {
        assert!(is_block_event(b"change@/devices/virtual/block/loop0\0ACTION=change\0SUBSYSTEM=block\0MAJOR=7\0"));
        assert!(!is_block_event(b"add@/x\0SUBSYSTEM=net\0INTERFACE=SUBSYSTEM=blockx\0"));
        assert!(!is_block_event(b""));
    }
}
