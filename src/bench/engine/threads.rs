//! pread and pwrite, for machines without io_uring: a depth of N is N threads with one operation at a time each.

use super::{Completion, IoEngine, IoOp, monotonic_ns, punch_hole};
use crate::bench::measure::recorder::OpKind;
use crate::bench::syscalls::MappedMemory;
use rustix::io::retry_on_intr;
use std::io;
use std::os::fd::BorrowedFd;

pub(crate) struct ThreadEngine<'f> {
    files: Vec<BorrowedFd<'f>>,
    memory: MappedMemory,
    slot_bytes: usize,
    queued: Option<(u32, IoOp)>,
    completion: Option<Completion>,
}

impl<'f> ThreadEngine<'f> {
    pub(crate) fn new(files: &[BorrowedFd<'f>], slot_bytes: usize, huge_pages: bool) -> io::Result<Self> {
        Ok(Self {
            files: files.to_vec(),
            memory: MappedMemory::anonymous(slot_bytes, huge_pages)?,
            slot_bytes,
            queued: None,
            completion: None,
        })
    }
}

impl IoEngine for ThreadEngine<'_> {
    const SYNCHRONOUS: bool = true;

    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.memory.slice(0, self.slot_bytes)
    }

    fn queue(&mut self, slot: u32, op: IoOp) {
        self.queued = Some((slot, op));
    }

    fn submit(&mut self) -> io::Result<()> {
        let Some((slot, op)) = self.queued.take() else { return Ok(()) };
        let file = self.files[usize::from(op.file)];
        let len = if op.kind == OpKind::Trim { 0 } else { op.len as usize };
        let buffer = self.memory.slice(0, len);
        let result = retry_on_intr(|| match op.kind {
            OpKind::Read => rustix::io::pread(file, &mut *buffer, op.offset),
            OpKind::Write => rustix::io::pwrite(file, &*buffer, op.offset),
            OpKind::Trim => punch_hole(file, op.offset, op.len).map(|()| 0),
            OpKind::Sync => rustix::fs::fdatasync(file).map(|()| 0),
            OpKind::Fsync => rustix::fs::fsync(file).map(|()| 0),
        });
        let result = result.map_or_else(|errno| -errno.raw_os_error(), |n| n as i32);
        self.completion = Some(Completion { slot, result });
        Ok(())
    }

    fn wait(&mut self, _want: u32, timeout_ns: u64) -> io::Result<()> {
        if self.completion.is_none() {
            std::thread::sleep(std::time::Duration::from_nanos(timeout_ns));
        }
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Completion>, _most: usize) {
        done.extend(self.completion.take());
    }
}
