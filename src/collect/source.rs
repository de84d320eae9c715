//! A kernel source of counters: how to read it, and which field of the sample it fills.

use super::kernel_file::PersistentFile;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

type MarkBlocked = Box<dyn Fn(&mut Sample, BlockedRead) + Send + Sync>;
type ReadSource = Box<dyn FnMut(&mut Sample) + Send>;

/// One kernel source of counters.
pub struct Source {
    /// The file it reads: shown where the source is blocked or missing.
    pub name: &'static str,
    /// Outside the lock: a stuck source cannot be called.
    pub(super) mark_blocked: MarkBlocked,
    /// Locked while it is being read, so also by a stuck read.
    pub(super) read: Mutex<ReadSource>,
    /// Boot clock when the read began that is stuck.
    pub(super) stuck_since: AtomicU64,
}

impl Source {
    /// A source that `read` reads and that fills `field`. It may block: the sampler supervises it.
    pub fn new<T: Send + 'static>(
        name: &'static str,
        field: fn(&mut Sample) -> &mut Reading<T>,
        mut read: impl FnMut() -> Reading<T> + Send + 'static,
    ) -> Self {
        Self {
            name,
            mark_blocked: Box::new(move |sample, blocked| *field(sample) = Reading::Blocked(blocked)),
            read: Mutex::new(Box::new(move |sample| *field(sample) = read())),
            stuck_since: AtomicU64::new(0),
        }
    }

    /// A source of one file; `name` is its path on the running machine.
    pub(super) fn from_file<T: Send + 'static>(
        name: &'static str,
        mut file: PersistentFile,
        field: fn(&mut Sample) -> &mut Reading<T>,
        mut parse: impl FnMut(&[u8]) -> Reading<T> + Send + 'static,
    ) -> Self {
        let mut buf = Vec::new();
        Self::new(name, field, move || match file.read(&mut buf) {
            Ok(text) => parse(text),
            Err(err) => Reading::from_io_error(name, &err),
        })
    }

    /// Reads once. May block.
    pub fn read(&mut self, sample: &mut Sample) {
        self.read.get_mut().unwrap_or_else(PoisonError::into_inner)(sample);
    }
}
