//! taskstats over generic netlink: run counts and delays of many tasks with one send
//! (Documentation/accounting/taskstats.rst).
//!
//! A request for a process returns the sum over all its threads of what `schedstat` reports for one thread. So it is
//! both the source of delays and the cheapest way to detect that any thread of a process ran: at 20,000 processes about
//! half the CPU time of opening as many `schedstat` files. Needs CAP_NET_ADMIN in the initial network and user
//! namespaces.

use crate::model::process::TaskDelays;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::os::fd::OwnedFd;

const NLMSG_ERROR: u16 = 2;
const GENL_ID_CTRL: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const CMD_ATTR_PID: u16 = 1;
const CMD_ATTR_TGID: u16 = 2;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
/// Size of nlmsghdr and genlmsghdr.
const HEADER_LEN: usize = 20;

/// Most tasks per send: their replies fit the default receive buffer.
pub(super) const MAX_IDS_PER_QUERY: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskStats {
    /// ns on a CPU, ns waiting for a CPU, number of timeslices: the fields of `schedstat`, summed over all live threads
    /// of the process (or for the one thread queried).
    pub runs: [u64; 3],
    /// Delays; all zero while `kernel.task_delayacct` is 0.
    pub delays: TaskDelays,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskstatsAnswer {
    Stats(TaskStats),
    Exited,
    /// No answer, or an invalid one; the errno, or 0.
    Failed(i32),
}

pub(super) struct TaskstatsSocket {
    socket: OwnedFd,
    family: u16,
    request: Vec<u8>,
    buf: Vec<u8>,
}

impl TaskstatsSocket {
    /// Opens the socket and looks up the family.
    ///
    /// # Errors
    ///
    /// ENOENT if the kernel, or this network namespace, does not have taskstats.
    pub(super) fn open() -> Result<Self, Errno> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        )?;
        let mut this = Self { socket, family: 0, request: Vec::new(), buf: vec![0; 4096] };
        append_message(&mut this.request, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0");
        this.send()?;
        let reply = this.receive()?.ok_or(Errno::NOENT)?;
        if let Some(code) = reply.error {
            return Err(Errno::from_raw_os_error(code));
        }
        let id = attributes(reply.body).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, data)| Some(u16::from_ne_bytes(data.get(..2)?.try_into().ok()?)));
        this.family = id.ok_or(Errno::NOENT)?;
        Ok(this)
    }

    /// Queries up to [`MAX_IDS_PER_QUERY`] processes, or threads. `answers` gets one entry per ID, in order.
    pub(super) fn query(
        &mut self,
        ids: &[u32],
        threads: bool,
        answers: &mut Vec<TaskstatsAnswer>,
    ) -> Result<(), Errno> {
        let attr = if threads { CMD_ATTR_PID } else { CMD_ATTR_TGID };
        self.request.clear();
        for (n, id) in ids.iter().enumerate() {
            append_message(&mut self.request, self.family, n as u32, TASKSTATS_CMD_GET, attr, &id.to_ne_bytes());
        }
        let start = answers.len();
        answers.resize(start + ids.len(), TaskstatsAnswer::Failed(0));
        self.send()?;
        // The kernel replies within the send: a reply that is not there now never comes.
        for _ in 0..ids.len() {
            let Some(reply) = self.receive()? else { break };
            if let Some(slot) = answers[start..].get_mut(reply.seq as usize) {
                *slot = reply.answer();
            }
        }
        Ok(())
    }

    fn send(&self) -> Result<(), Errno> {
        rustix::net::send(&self.socket, &self.request, SendFlags::empty()).map(|_| ())
    }

    fn receive(&mut self) -> Result<Option<NetlinkReply<'_>>, Errno> {
        let n = loop {
            match rustix::net::recv(&self.socket, &mut self.buf[..], RecvFlags::DONTWAIT) {
                Ok((n, _)) => break n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(err) => return Err(err),
            }
        };
        Ok(NetlinkReply::parse(&self.buf[..n.min(self.buf.len())]))
    }
}

fn append_message(out: &mut Vec<u8>, kind: u16, seq: u32, cmd: u8, attr: u16, data: &[u8]) {
    let padded = data.len().next_multiple_of(4);
    let len = (HEADER_LEN + 4 + padded) as u32;
    out.extend(len.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    out.extend(seq.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    out.extend([cmd, 1, 0, 0]);
    out.extend((4 + data.len() as u16).to_ne_bytes());
    out.extend(attr.to_ne_bytes());
    out.extend(data);
    out.extend(std::iter::repeat_n(0, padded - data.len()));
}

pub(super) struct NetlinkReply<'a> {
    seq: u32,
    /// errno of an error message.
    error: Option<i32>,
    body: &'a [u8],
}

impl<'a> NetlinkReply<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Option<Self> {
        let kind = u16::from_ne_bytes(raw.get(4..6)?.try_into().ok()?);
        let seq = u32::from_ne_bytes(raw.get(8..12)?.try_into().ok()?);
        if kind == NLMSG_ERROR {
            let code = i32::from_ne_bytes(raw.get(16..20)?.try_into().ok()?);
            return Some(Self { seq, error: Some(code.wrapping_neg()), body: &[] });
        }
        Some(Self { seq, error: None, body: raw.get(HEADER_LEN..)? })
    }

    pub(super) fn answer(&self) -> TaskstatsAnswer {
        match self.error {
            Some(code) if code == Errno::SRCH.raw_os_error() => TaskstatsAnswer::Exited,
            Some(code) => TaskstatsAnswer::Failed(code),
            None => find_stats(self.body).map_or(TaskstatsAnswer::Failed(0), TaskstatsAnswer::Stats),
        }
    }
}

fn find_stats(body: &[u8]) -> Option<TaskStats> {
    let (_, nest) = attributes(body).find(|(kind, _)| matches!(*kind, TYPE_AGGR_PID | TYPE_AGGR_TGID))?;
    attributes(nest).find(|(kind, _)| *kind == TYPE_STATS).and_then(|(_, raw)| parse_stats(raw))
}

/// Parses `struct taskstats` (include/uapi/linux/taskstats.h). It only grew at its end, except for version 15 (Linux
/// 6.14, 6.15), which put a maximum and a minimum after each delay; version 16 moved them to the end. Version 15 with
/// another length is rejected.
fn parse_stats(raw: &[u8]) -> Option<TaskStats> {
    const V15_LEN: usize = V14_LEN + 16 * 8;
    const V14_LEN: usize = 432;
    let version = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
    let pair = match (version, raw.len()) {
        (15, V15_LEN) => 32,
        (15, _) => return None,
        _ => 16,
    };
    let word = |at: usize| Some(u64::from_ne_bytes(raw.get(at..at + 8)?.try_into().ok()?));
    let total = |nth: usize| word(16 + nth * pair + 8);
    Some(TaskStats {
        runs: [word(16 + 3 * pair + 8)?, total(0)?, word(16)?],
        delays: TaskDelays { blkio_ns: total(1)?, swapin_ns: Some(total(2)?) },
    })
}

/// Iterates over netlink attributes: length, type, data, padded to 4 bytes.
fn attributes(raw: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let len = u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & 0x3fff;
        let data = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, data))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fake_stats(version: u16, len: usize, words: &[(usize, u64)]) -> Vec<u8> {
        let mut raw = vec![0; len];
        raw[..2].copy_from_slice(&version.to_ne_bytes());
        for (at, n) in words {
            raw[*at..at + 8].copy_from_slice(&n.to_ne_bytes());
        }
        raw
    }

    #[test]
    fn both_struct_layouts_are_parsed() {
        let old = fake_stats(13, 416, &[(16, 1), (24, 2), (40, 3), (56, 4), (72, 5)]);
        let want = TaskStats { runs: [5, 2, 1], delays: TaskDelays { blkio_ns: 3, swapin_ns: Some(4) } };
        assert_eq!(parse_stats(&old), Some(want));
        let v15 = fake_stats(15, 432 + 128, &[(16, 1), (24, 2), (56, 3), (88, 4), (120, 5)]);
        assert_eq!(parse_stats(&v15), Some(want));
        assert_eq!(parse_stats(&fake_stats(15, 500, &[])), None);
        assert_eq!(parse_stats(&fake_stats(8, 40, &[])), None);
    }

    #[test]
    fn a_request_is_encoded_as_the_kernel_expects() {
        let mut out = Vec::new();
        append_message(&mut out, 31, 7, TASKSTATS_CMD_GET, CMD_ATTR_TGID, &5u32.to_ne_bytes());
        assert_eq!(out.len(), 28);
        assert_eq!(out[..4], 28u32.to_ne_bytes());
        assert_eq!(attributes(&out[HEADER_LEN..]).next(), Some((CMD_ATTR_TGID, &5u32.to_ne_bytes()[..])));
    }

    proptest! {
        #[test]
        fn no_reply_panics(raw in proptest::collection::vec(any::<u8>(), 0..700)) {
            if let Some(reply) = NetlinkReply::parse(&raw) {
                let _ = reply.answer();
            }
            let _ = parse_stats(&raw);
        }
    }
}
