//! What is known of all tasks between two looks.

use super::entry::Entry;
use super::list::Newborn;
use super::probe::{Ask, Prober};
use super::reader::{ReadJob, Reader};
use super::stage::Pass;
use super::stuck::StuckRead;
use super::walk::Walker;
use super::{groups, path, swap, users};
use crate::collect::kernel_file::PersistentFile;
use crate::model::clock::Clock;
use crate::root::Root;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// All tasks, and the look under way.
pub struct Tasks {
    pub(super) root: Root,
    /// The numbers in this `/proc` are tasks of ours to system calls.
    pub(super) live: bool,
    pub(super) proc: Option<Arc<OwnedFd>>,
    pub(super) newborn: Newborn,
    pub(super) prober: Prober,
    pub(super) users: users::Users,
    pub(super) groups: groups::Groups,
    pub(super) swap: swap::SwapSign,
    pub(super) walker: Walker,
    /// Sorted by (pid, tid).
    pub(super) entries: Vec<Entry>,
    pub(super) stuck: Vec<StuckRead>,
    /// Reads that hung and have come back since the last look.
    pub(super) returned: Vec<ReadJob>,
    /// Threads that hang.
    pub(super) hanging: usize,
    pub(super) waits: HashSet<Arc<str>>,
    pub(super) asks: Vec<Ask>,
    pub(super) jobs: Vec<ReadJob>,
    pub(super) places: Vec<path::Place>,
    pub(super) probed: Vec<u32>,
    pub(super) ids: Vec<u32>,
    pub(super) dir_buf: Vec<u8>,
    pub(super) threads: bool,
    pub(super) delayacct: PersistentFile,
    pub(super) buf: Vec<u8>,
    /// Where the slow round over all tasks stands.
    pub(super) round: usize,
    pub(super) seq: u64,
    pub(super) prev: Option<Clock>,
    pub(super) page_size: u64,
    pub(super) pass: Option<Box<Pass>>,
}

impl Tasks {
    /// Nothing is read yet.
    pub fn new(root: &Root) -> Self {
        Self::with_prober(root, Prober::new(super::numbers_are_ours(root)))
    }

    pub(super) fn with_prober(root: &Root, prober: Prober) -> Self {
        Self {
            root: root.clone(),
            live: super::numbers_are_ours(root),
            proc: None,
            newborn: Newborn::new(root),
            prober,
            users: users::Users::new(root),
            groups: groups::Groups::default(),
            swap: swap::SwapSign::new(root),
            walker: Walker::default(),
            entries: Vec::new(),
            stuck: Vec::new(),
            returned: Vec::new(),
            hanging: 0,
            waits: HashSet::new(),
            asks: Vec::new(),
            jobs: Vec::new(),
            places: Vec::new(),
            probed: Vec::new(),
            ids: Vec::new(),
            dir_buf: Vec::new(),
            threads: false,
            delayacct: PersistentFile::whole(root.proc("sys/kernel/task_delayacct")),
            buf: Vec::new(),
            round: 0,
            seq: 0,
            prev: None,
            page_size: rustix::param::page_size() as u64,
            pass: None,
        }
    }

    /// Reads below the `/proc` that was opened.
    pub(super) fn reader(&self) -> Option<Reader> {
        let proc = self.proc.clone()?;
        Some(Reader::new(proc, self.live))
    }

    /// `/proc`, kept open.
    pub(super) fn proc(&mut self) -> std::io::Result<Arc<OwnedFd>> {
        if let Some(proc) = &self.proc {
            return Ok(proc.clone());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = Arc::new(openat(CWD, self.root.proc(""), flags, Mode::empty())?);
        self.proc = Some(proc.clone());
        Ok(proc)
    }
}
