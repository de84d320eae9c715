//! io_uring: one ring per worker thread, registered file and buffers, batches both ways.
//!
//! Set up for the cheapest path the kernel has and stepped down flag by flag where it has not:
//! SINGLE_ISSUER with DEFER_TASKRUN (6.1) runs completions only when this thread asks for them, so the
//! device's interrupts do not break into it; COOP_TASKRUN (5.19) at least saves the inter-processor
//! interrupts; NO_SQARRAY (6.6) drops an indirection. The ring itself is not registered: the kernel would
//! keep it, its file and its buffers until the thread ends.

#![allow(unsafe_code)]

use super::refusal::Refusal;
use super::{Done, Engine, Op, monotonic_ns};
use crate::bench::measure::recorder::Kind;
use crate::bench::sys::Memory;
use io_uring::{IoUring, opcode, types};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `IORING_ENTER_GETEVENTS` (include/uapi/linux/io_uring.h).
const GETEVENTS: u32 = 1;

/// What a ring was made with: goes into the report, because figures depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Completions run only when asked for.
    pub defer_taskrun: bool,
    /// Completions run at the next system call, without an interrupt.
    pub coop_taskrun: bool,
    /// No index array between us and the entries.
    pub no_sqarray: bool,
    /// Buffers are registered.
    pub registered_buffers: bool,
    /// A kernel thread takes submissions.
    pub sqpoll: bool,
    /// The device is polled instead of interrupting.
    pub iopoll: bool,
}

impl Features {
    /// In words, for the report.
    pub fn describe(&self) -> String {
        let all = [
            (self.defer_taskrun, "DEFER_TASKRUN"),
            (self.coop_taskrun, "COOP_TASKRUN"),
            (self.no_sqarray, "NO_SQARRAY"),
            (self.registered_buffers, "registered buffers"),
            (self.sqpoll, "SQPOLL"),
            (self.iopoll, "IOPOLL"),
        ];
        let on: Vec<_> = all.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        if on.is_empty() { "plain".into() } else { on.join(", ") }
    }
}

/// What is asked of a ring beyond the usual.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ask {
    /// A kernel thread that takes submissions; costs a core of its own.
    pub sqpoll: bool,
    /// Poll for completions; only for devices with polling queues, and only O_DIRECT.
    pub iopoll: bool,
}

/// See the module.
pub struct Uring {
    // Before `memory`: the kernel lets go of the buffers when the ring is gone.
    ring: IoUring,
    memory: Memory,
    slot_bytes: usize,
    queued: u32,
    features: Features,
}

impl Uring {
    /// A ring of `depth` slots of `slot_bytes` each on `file`. Must be called on the thread that uses it.
    pub fn new(file: BorrowedFd<'_>, depth: u32, slot_bytes: usize, ask: Ask) -> Result<Self, Refusal> {
        let (ring, mut features) = build(depth, ask).map_err(Refusal::setup)?;
        ring.submitter().register_files(&[file.as_raw_fd()]).map_err(Refusal::setup)?;
        let len = depth as usize * slot_bytes;
        let memory = Memory::new(len, len >= 2 << 20).map_err(Refusal::memory)?;
        let whole = libc::iovec { iov_base: memory.as_ptr().cast(), iov_len: memory.len() };
        // One registration may span at most 1 GiB; plans are capped below that.
        // SAFETY: the memory outlives the ring: `ring` is dropped first, and unregisters.
        match unsafe { ring.submitter().register_buffers(&[whole]) } {
            Ok(()) => features.registered_buffers = true,
            Err(err) if err.raw_os_error() == Some(libc::ENOMEM) => return Err(Refusal::memlock(len)),
            Err(err) => return Err(Refusal::setup(err)),
        }
        Ok(Self { ring, memory, slot_bytes, queued: 0, features })
    }

    /// What this kernel gave.
    pub fn features(&self) -> Features {
        self.features
    }
}

/// Steps down from the best set-up to a plain ring: EINVAL means the kernel does not know a flag.
fn build(depth: u32, ask: Ask) -> io::Result<(IoUring, Features)> {
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for (defer, coop, no_sqarray) in
        [(true, false, true), (true, false, false), (false, true, false), (false, false, false)]
    {
        // A kernel thread that submits contradicts "single issuer's own work".
        let (defer, coop) = (defer && !ask.sqpoll, coop && !ask.sqpoll);
        let mut builder = IoUring::builder();
        builder.dontfork();
        if defer {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if coop {
            builder.setup_coop_taskrun();
        }
        if no_sqarray {
            builder.setup_no_sqarray();
        }
        if ask.iopoll {
            builder.setup_iopoll();
        }
        if ask.sqpoll {
            builder.setup_sqpoll(1000);
        }
        match builder.build(depth.next_power_of_two()) {
            Ok(ring) => {
                let features = Features {
                    defer_taskrun: defer,
                    coop_taskrun: coop,
                    no_sqarray,
                    sqpoll: ask.sqpoll,
                    iopoll: ask.iopoll,
                    ..Features::default()
                };
                return Ok((ring, features));
            }
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => last = err,
            Err(err) => return Err(err),
        }
    }
    Err(last)
}

impl Engine for Uring {
    const SYNCHRONOUS: bool = false;

    #[inline(always)]
    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    #[inline(always)]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.memory.slice(slot as usize * self.slot_bytes, self.slot_bytes)
    }

    #[inline(always)]
    fn queue(&mut self, slot: u32, op: Op) {
        debug_assert!(op.len as usize <= self.slot_bytes);
        let at = slot as usize * self.slot_bytes;
        assert!(at + op.len as usize <= self.memory.len());
        // SAFETY: inside the memory (just checked).
        let buffer = unsafe { self.memory.as_ptr().add(at) };
        let entry = match op.kind {
            Kind::Read => {
                opcode::ReadFixed::new(types::Fixed(0), buffer, op.len, 0).offset(op.offset).build()
            }
            Kind::Write => {
                opcode::WriteFixed::new(types::Fixed(0), buffer, op.len, 0).offset(op.offset).build()
            }
            Kind::Sync => opcode::Fsync::new(types::Fixed(0)).flags(types::FsyncFlags::DATASYNC).build(),
        };
        // SAFETY: file and buffer are registered with this ring and live as long as it; a slot is queued
        // again only after its completion was reaped. There are as many entries as slots, so it has room.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(slot))) };
        debug_assert!(pushed.is_ok());
        self.queued += 1;
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        if self.features.sqpoll {
            self.queued = 0;
            return self.ring.submit().map(drop);
        }
        // GETEVENTS without waiting also runs the completions that have piled up: one call does both.
        while self.queued > 0 {
            // SAFETY: no argument is passed.
            let done =
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(self.queued, 0, GETEVENTS, None) };
            match done {
                Ok(n) => self.queued -= (n as u32).min(self.queued),
                Err(err) if err.raw_os_error() == Some(libc::EINTR) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(())
    }

    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let span =
            types::Timespec::new().sec(timeout_ns / 1_000_000_000).nsec((timeout_ns % 1_000_000_000) as u32);
        let args = types::SubmitArgs::new().timespec(&span);
        match self.ring.submitter().submit_with_args(want as usize, &args) {
            Ok(_) => Ok(()),
            Err(err) if matches!(err.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(err) => Err(err),
        }
    }

    #[inline]
    fn reap(&mut self, done: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            done.push(Done { slot: entry.user_data() as u32, result: entry.result() });
        }
    }
}
