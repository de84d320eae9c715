//! io_uring: one ring per worker thread, registered file and buffers, batches both ways.
//!
//! Set up with the cheapest options the kernel supports, tried in this order:
//! SINGLE_ISSUER with DEFER_TASKRUN (6.1) runs completions only when this thread asks for them, so the
//! device's interrupts do not preempt it; COOP_TASKRUN (5.19) at least saves the inter-processor
//! interrupts; NO_SQARRAY (6.6) drops an indirection. The ring itself is not registered: the kernel would
//! keep it, its file and its buffers until the thread ends.

#![allow(unsafe_code)]

use super::{Completion, EngineUnavailable, IoEngine, IoOp, monotonic_ns};
use crate::bench::measure::recorder::OpKind;
use crate::bench::syscalls::MappedMemory;
use crate::model::reading::describe_io_error;
use crate::root::Root;
use io_uring::{Builder, IoUring, opcode, types};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `IORING_ENTER_GETEVENTS` (include/uapi/linux/io_uring.h).
const IORING_ENTER_GETEVENTS: u32 = 1;

/// The completion of the timer below; slots have small numbers.
const TIMER: u64 = u64::MAX;

/// Waits of this length for one completion, which end only to see whether the run was stopped, use a timer that stays in
/// the ring: a timeout of the system call would arm and cancel a timer of the kernel for each operation.
const LONG_WAIT_NS: u64 = 100_000_000;

/// Mode of a fallocate that frees a range.
const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UringOptions {
    /// A kernel thread that takes submissions; it needs a core of its own.
    pub sqpoll: bool,
    /// Poll for completions; only for devices with polling queues, and only O_DIRECT.
    pub iopoll: bool,
    /// Completions that the kernel holds back count as ready, as those of libaio do.
    pub collects_all: bool,
    /// Buffers on huge pages.
    pub huge_pages: bool,
    /// What those are called in the report.
    pub pages: &'static str,
}

pub(crate) struct UringEngine {
    // Declared before `memory`, so that it is dropped first: the kernel then releases the buffers.
    ring: IoUring,
    memory: MappedMemory,
    slot_bytes: usize,
    queued: u32,
    sqpoll: bool,
    /// Whether the ring can hold a timer, and whether it does.
    has_timer: bool,
    is_timer_armed: bool,
    collects_all: bool,
    /// Options of the ring: part of the report, because results depend on them.
    features: Vec<&'static str>,
}

impl UringEngine {
    /// A ring of `depth` slots of `slot_bytes` each on `files`. Must be called on the thread that uses it.
    pub(crate) fn new(
        files: &[BorrowedFd<'_>],
        depth: u32,
        slot_bytes: usize,
        ask: UringOptions,
    ) -> Result<Self, EngineUnavailable> {
        let (ring, features) = build_ring(depth, ask).map_err(EngineUnavailable::from_setup_error)?;
        let numbers: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&numbers).map_err(EngineUnavailable::from_setup_error)?;
        let len = depth as usize * slot_bytes;
        let memory = MappedMemory::anonymous(len, ask.huge_pages)
            .map_err(|err| EngineUnavailable(format!("no memory for the buffers: {}", describe_io_error(&err))))?;
        let whole = libc::iovec { iov_base: memory.as_ptr().cast(), iov_len: memory.size() };
        // One registration may span at most 1 GiB; plans are capped below that.
        // SAFETY: the memory outlives the ring: `ring` is dropped first, and unregisters.
        let registered = unsafe { ring.submitter().register_buffers(&[whole]) };
        registered.map_err(|err| match err.raw_os_error() {
            Some(libc::ENOMEM) => EngineUnavailable::memlock_exceeded(len),
            _ => EngineUnavailable::from_setup_error(err),
        })?;
        Ok(Self {
            ring,
            memory,
            slot_bytes,
            queued: 0,
            sqpoll: ask.sqpoll,
            // The kernel refuses timers in rings that poll.
            has_timer: !ask.sqpoll && !ask.iopoll,
            is_timer_armed: false,
            collects_all: ask.collects_all,
            features,
        })
    }

    /// Waits for one completion, or for the timer, which is armed anew if it has fired.
    fn wait_for_one(&mut self, timeout_ns: u64) -> io::Result<()> {
        let span = types::Timespec::new().sec(timeout_ns / 1_000_000_000).nsec((timeout_ns % 1_000_000_000) as u32);
        let mut fresh = 0;
        if !self.is_timer_armed {
            let entry = opcode::Timeout::new(&raw const span).build().user_data(TIMER);
            // SAFETY: the kernel copies the time when it takes the entry, which is before the call below returns. All
            // operations were submitted before, so there is room.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            (self.is_timer_armed, fresh) = (pushed.is_ok(), u32::from(pushed.is_ok()));
        }
        // SAFETY: no argument is passed.
        let done = unsafe { self.ring.submitter().enter::<libc::sigset_t>(fresh, 1, IORING_ENTER_GETEVENTS, None) };
        match done {
            Ok(_) => Ok(()),
            Err(err) if err.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(err) => Err(err),
        }
    }

    /// The options that this kernel granted, for the report.
    pub(crate) fn describe(&self) -> String {
        self.features.join(", ")
    }
}

/// Tries the best options first, down to a plain ring: EINVAL means that the kernel does not know a flag. Returns the
/// names of those it has, too.
fn build_ring(depth: u32, ask: UringOptions) -> io::Result<(IoUring, Vec<&'static str>)> {
    // A kernel thread that submits contradicts "single issuer's own work".
    let own = !ask.sqpoll;
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for (defer, coop, no_sqarray) in
        [(own, false, true), (own, false, false), (false, own, false), (false, false, false)]
    {
        let mut builder = IoUring::builder();
        builder.dontfork();
        let mut features = Vec::new();
        let mut set = |on: bool, name: &'static str, setup: fn(&mut Builder) -> &mut Builder| {
            if on {
                setup(&mut builder);
                features.push(name);
            }
        };
        set(defer, "DEFER_TASKRUN", |b| b.setup_single_issuer().setup_defer_taskrun());
        set(coop, "COOP_TASKRUN", |b| b.setup_coop_taskrun());
        set(no_sqarray, "NO_SQARRAY", |b| b.setup_no_sqarray());
        // Always: without them the engine is refused.
        set(true, "registered buffers", |b| b);
        set(ask.sqpoll, "SQPOLL", |b| b.setup_sqpoll(1000));
        set(ask.iopoll, "IOPOLL", |b| b.setup_iopoll());
        set(true, ask.pages, |b| b);
        if ask.collects_all && (defer || coop) {
            builder.setup_taskrun_flag();
        }
        match builder.build(depth.next_power_of_two()) {
            Ok(ring) => return Ok((ring, features)),
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => last = err,
            Err(err) => return Err(err),
        }
    }
    Err(last)
}

impl IoEngine for UringEngine {
    const SYNCHRONOUS: bool = false;

    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.memory.slice(slot as usize * self.slot_bytes, self.slot_bytes)
    }

    fn queue(&mut self, slot: u32, op: IoOp) {
        let len = if op.kind == OpKind::Trim { 0 } else { op.len as usize };
        debug_assert!(len <= self.slot_bytes);
        let at = slot as usize * self.slot_bytes;
        assert!(at + len <= self.memory.size());
        let file = types::Fixed(op.file.into());
        // SAFETY: inside the memory (just checked).
        let buffer = unsafe { self.memory.as_ptr().add(at) };
        let priority = op.priority.kernel_value();
        let entry = match op.kind {
            OpKind::Read => opcode::ReadFixed::new(file, buffer, op.len, 0).offset(op.offset).ioprio(priority).build(),
            OpKind::Write => {
                opcode::WriteFixed::new(file, buffer, op.len, 0).offset(op.offset).ioprio(priority).build()
            }
            OpKind::Trim => opcode::Fallocate::new(file, op.len.into()).offset(op.offset).mode(PUNCH_HOLE).build(),
            OpKind::Sync => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            OpKind::Fsync => opcode::Fsync::new(file).build(),
        };
        // SAFETY: file and buffer are registered with this ring and live as long as it; a slot is queued
        // again only after its completion was reaped. There are as many entries as slots, so it has room.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(slot))) };
        debug_assert!(pushed.is_ok());
        self.queued += 1;
    }

    fn submit(&mut self) -> io::Result<()> {
        if self.sqpoll {
            self.queued = 0;
            return self.ring.submit().map(drop);
        }
        // GETEVENTS without waiting also runs pending completions: one call does both.
        while self.queued > 0 {
            // SAFETY: no argument is passed.
            let done =
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(self.queued, 0, IORING_ENTER_GETEVENTS, None) };
            match done {
                Ok(n) => self.queued -= (n as u32).min(self.queued),
                Err(err) if err.raw_os_error() == Some(libc::EINTR) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(())
    }

    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        if want == 1 && timeout_ns >= LONG_WAIT_NS && self.has_timer && self.queued == 0 {
            return self.wait_for_one(timeout_ns);
        }
        let span = types::Timespec::new().sec(timeout_ns / 1_000_000_000).nsec((timeout_ns % 1_000_000_000) as u32);
        let args = types::SubmitArgs::new().timespec(&span);
        match self.ring.submitter().submit_with_args(want as usize, &args) {
            Ok(_) => Ok(()),
            Err(err) if matches!(err.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(err) => Err(err),
        }
    }

    fn ready(&mut self) -> usize {
        if self.collects_all && self.ring.submission().taskrun() {
            // SAFETY: no argument is passed. A failure shows in the next call that submits or waits.
            let _ = unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, IORING_ENTER_GETEVENTS, None) };
        }
        self.ring.completion().len()
    }

    fn reap(&mut self, done: &mut Vec<Completion>, most: usize) {
        for entry in self.ring.completion().take(most) {
            match entry.user_data() {
                TIMER => self.is_timer_armed = false,
                slot => done.push(Completion { slot: slot as u32, result: entry.result() }),
            }
        }
    }
}

/// Why io_uring cannot be used, from errno and sysctl, with what to do about it.
impl EngineUnavailable {
    pub(super) fn from_setup_error(err: io::Error) -> Self {
        let disabled = std::fs::read_to_string(Root::live().proc("sys/kernel/io_uring_disabled"))
            .ok()
            .and_then(|s| s.trim().parse().ok());
        Self::explain(&err, disabled)
    }

    pub(super) fn memlock_exceeded(bytes: usize) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        let limit = limit.map_or("unlimited".into(), |n| format!("{} KiB", n / 1024));
        Self(format!(
            "registering {} KiB of buffers needs more locked memory than allowed (RLIMIT_MEMLOCK is {limit}); \
             raise it with `ulimit -l`, or use a smaller depth or block size",
            bytes / 1024
        ))
    }

    fn explain(err: &io::Error, disabled: Option<u32>) -> Self {
        Self(match (err.raw_os_error(), disabled) {
            (Some(libc::EPERM), Some(2)) => {
                "io_uring is switched off on this machine (kernel.io_uring_disabled = 2)".into()
            }
            (Some(libc::EPERM), Some(1)) => "io_uring is restricted to CAP_SYS_ADMIN and the group in \
                 kernel.io_uring_group (kernel.io_uring_disabled = 1)"
                .into(),
            (Some(libc::EPERM | libc::EACCES), _) => {
                "io_uring is refused although the sysctl allows it: a seccomp filter, as containers have, \
                 or a security module"
                    .into()
            }
            (Some(libc::ENOSYS), _) => {
                "the kernel has no io_uring (before 5.1, or configured out), or a seccomp filter hides it".into()
            }
            (Some(libc::ENOMEM), _) => {
                "no memory for the ring: RLIMIT_MEMLOCK (kernels before 5.12 count rings against it) or the \
                 cgroup's memory limit"
                    .into()
            }
            (Some(libc::EMFILE | libc::ENFILE), _) => "too many open files for one ring more".into(),
            _ => format!("io_uring set-up failed: {}", describe_io_error(err)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_explained_with_its_cause() {
        let why = |errno, sysctl| EngineUnavailable::explain(&io::Error::from_raw_os_error(errno), sysctl).0;
        assert!(why(libc::EPERM, Some(2)).contains("io_uring_disabled = 2"));
        assert!(why(libc::EPERM, Some(1)).contains("io_uring_group"));
        assert!(why(libc::EPERM, Some(0)).contains("seccomp"));
        assert!(why(libc::ENOSYS, None).contains("no io_uring"));
        assert!(why(libc::ENOMEM, Some(0)).contains("MEMLOCK"));
        assert!(why(libc::EIO, None).contains("failed"));
        assert!(EngineUnavailable::memlock_exceeded(1 << 20).0.contains("1024 KiB"));
    }
}
