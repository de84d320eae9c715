//! One system call for each operation: pread and pwrite, for machines without io_uring (a depth of N is N threads with
//! one operation at a time each), and those of fio's engines `mmap`, `falloc`, `ftruncate`
//! and `null`.

use super::{Completion, IoEngine, IoOp, monotonic_ns, punch_hole};
use crate::bench::measure::recorder::OpKind;
use crate::bench::syscalls::MappedMemory;
use rustix::fs::FallocateFlags;
use rustix::io::retry_on_intr;
use std::io;
use std::os::fd::BorrowedFd;

/// What reads, writes and trims are.
pub(crate) enum FileCalls {
    /// pread, pwrite, a punched hole.
    ReadWrite,
    /// Copies from and to a mapping of each file; `syncs_each`: with msync(2) after each, as fio does with `direct=1`.
    Mapped { maps: Vec<MappedMemory>, syncs_each: bool },
    /// fallocate(2) in its three modes.
    Fallocate,
    /// ftruncate(2) to the offset of the write.
    Truncate,
    /// Nothing: what is left is the cost of the program itself.
    Nothing,
}

pub(crate) struct ThreadEngine<'f> {
    calls: FileCalls,
    files: Vec<BorrowedFd<'f>>,
    memory: MappedMemory,
    slot_bytes: usize,
    queued: Option<(u32, IoOp)>,
    completion: Option<Completion>,
}

impl<'f> ThreadEngine<'f> {
    pub(crate) fn new(files: &[BorrowedFd<'f>], slot_bytes: usize, huge_pages: bool) -> io::Result<Self> {
        Self::with_calls(files, slot_bytes, huge_pages, FileCalls::ReadWrite)
    }

    pub(crate) fn with_calls(
        files: &[BorrowedFd<'f>],
        slot_bytes: usize,
        huge_pages: bool,
        calls: FileCalls,
    ) -> io::Result<Self> {
        Ok(Self {
            calls,
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
        let calls = &mut self.calls;
        let result = retry_on_intr(|| match (&mut *calls, op.kind) {
            (FileCalls::Mapped { maps, syncs_each }, kind) => {
                copy_mapped(&mut maps[usize::from(op.file)], kind, op.offset as usize, buffer, *syncs_each)
            }
            (FileCalls::Nothing, _) => Ok(len),
            (_, OpKind::Sync) => rustix::fs::fdatasync(file).map(|()| 0),
            (_, OpKind::Fsync) => rustix::fs::fsync(file).map(|()| 0),
            (_, OpKind::Trim) => punch_hole(file, op.offset, op.len).map(|()| 0),
            (FileCalls::ReadWrite, OpKind::Read) => rustix::io::pread(file, &mut *buffer, op.offset),
            (FileCalls::ReadWrite, OpKind::Write) => rustix::io::pwrite(file, &*buffer, op.offset),
            (FileCalls::Fallocate, kind) => {
                let keeps = if kind == OpKind::Read { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                rustix::fs::fallocate(file, keeps, op.offset, op.len.into()).map(|()| len)
            }
            (FileCalls::Truncate, _) => rustix::fs::ftruncate(file, op.offset).map(|()| len),
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

    fn ready(&mut self) -> usize {
        usize::from(self.completion.is_some())
    }

    fn reap(&mut self, done: &mut Vec<Completion>, _most: usize) {
        done.extend(self.completion.take());
    }
}

/// An operation on a mapped file; syncs are msync(2) of all of it.
fn copy_mapped(
    map: &mut MappedMemory,
    kind: OpKind,
    at: usize,
    buffer: &mut [u8],
    syncs: bool,
) -> rustix::io::Result<usize> {
    let len = buffer.len();
    match kind {
        OpKind::Read => buffer.copy_from_slice(map.slice(at, len)),
        OpKind::Write => map.slice(at, len).copy_from_slice(buffer),
        OpKind::Sync | OpKind::Fsync => return map.sync(0, map.size()).map(|()| 0),
        OpKind::Trim => return Err(rustix::io::Errno::OPNOTSUPP),
    }
    if syncs { map.sync(at, len).map(|()| len) } else { Ok(len) }
}
