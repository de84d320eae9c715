//! Processes and threads: finds out which ran since the last look, reads those, and tells only the
//! differences.
//!
//! A look at 20,000 quiet processes must cost a fraction of a second of CPU per minute, and a task
//! stuck in the kernel must not stop it. Hence: run counts filter first ([`probe`]), only tasks that
//! ran are read ([`reader`]) on a thread that may hang ([`guard`]), names are fetched once.

pub mod detail;
mod entry;
mod groups;
pub mod guard;
pub mod ionice;
mod list;
pub mod mappings;
mod parse;
mod pass;
mod path;
mod probe;
mod reader;
mod stuck;
mod swap;
mod taskstats;
mod users;

#[cfg(test)]
mod tests;

use crate::collect::clock;
use crate::collect::read::Kept;
use crate::model::clock::Clock;
use crate::model::process::{ProcUpdate, TaskKey};
use crate::model::section::Section;
use crate::root::Root;
use entry::Entry;
use guard::{DEADLINE, Guard};
use list::Newborn;
use probe::Prober;
use reader::{ReadJob, Reader};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use stuck::StuckRead;

/// What the one who looks at the table wants of the next look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    /// Rows are threads. Switching starts the table anew.
    pub threads: bool,
    /// Waiting times are shown.
    pub delays: bool,
    /// Visible rows: swap, I/O class and wait channel of these are kept fresh though they do not run.
    pub focus: Vec<TaskKey>,
    /// Wait channels of visible rows whatever their state; of tasks in state D they are told anyway.
    pub waits: bool,
    /// Every row counts as visible: for who prints all.
    pub everyone: bool,
    /// Fetch the names of all new tasks in one look, however long that takes: for who prints once.
    pub all_names: bool,
    /// Tell every row, as to a new listener (a recording's key frame). Reads nothing more.
    pub full: bool,
}

/// Looks at all tasks, again and again. Owned by one thread, which may be slow but never hangs.
pub struct ProcCollector {
    root: Root,
    proc: Option<Arc<OwnedFd>>,
    newborn: Newborn,
    prober: Prober,
    reader: Option<Guard<Reader>>,
    users: users::Users,
    groups: groups::Groups,
    swap: swap::SwapSign,
    /// Sorted by (pid, tid).
    entries: Vec<Entry>,
    stuck: Vec<StuckRead>,
    waits: HashSet<Arc<str>>,
    jobs: Vec<ReadJob>,
    places: Vec<path::Place>,
    probed: Vec<u32>,
    ids: Vec<u32>,
    dir_buf: Vec<u8>,
    threads: bool,
    delayacct: Kept,
    buf: Vec<u8>,
    /// Where the slow round over all tasks stands.
    round: usize,
    seq: u64,
    prev: Option<Clock>,
    page_size: u64,
}

impl ProcCollector {
    /// Nothing is read yet; threads are started with the first look.
    pub fn new(root: &Root) -> Self {
        Self::with_prober(root, Prober::new(numbers_are_ours(root)))
    }

    /// Filters by `schedstat`, as without CAP_NET_ADMIN.
    pub fn without_taskstats(root: &Root) -> Self {
        Self::with_prober(root, Prober::without_taskstats())
    }

    fn with_prober(root: &Root, prober: Prober) -> Self {
        Self {
            root: root.clone(),
            proc: None,
            newborn: Newborn::new(root),
            prober,
            reader: None,
            users: users::Users::new(root),
            groups: groups::Groups::default(),
            swap: swap::SwapSign::new(root),
            entries: Vec::new(),
            stuck: Vec::new(),
            waits: HashSet::new(),
            jobs: Vec::new(),
            places: Vec::new(),
            probed: Vec::new(),
            delayacct: Kept::whole(root.proc("sys/kernel/task_delayacct")),
            buf: Vec::new(),
            ids: Vec::new(),
            dir_buf: Vec::new(),
            threads: false,
            round: 0,
            seq: 0,
            prev: None,
            page_size: rustix::param::page_size() as u64,
        }
    }

    /// One look. Returns within about the time its reads take, plus 100 ms for each task that hangs
    /// for the first time.
    pub fn scan(&mut self, wants: &Wants) -> Section<ProcUpdate> {
        let proc = match self.open() {
            Ok(proc) => proc,
            Err(err) => return Section::from_io("/proc", &err),
        };
        let at = clock::now();
        let reset = self.seq == 0 || wants.threads != self.threads;
        if reset {
            self.entries.clear();
            self.users.retell();
            self.prev = None;
            self.threads = wants.threads;
        }
        if wants.full {
            self.users.retell();
        }
        self.seq += 1;
        let mut update = ProcUpdate {
            seq: self.seq,
            at,
            prev: self.prev,
            threads: self.threads,
            reset: reset || wants.full,
            ..ProcUpdate::default()
        };
        match self.pass(&proc, wants, reset, &mut update) {
            Ok(()) => {
                self.prev = Some(at);
                update.took_ns = clock::boot_ns().saturating_sub(at.boot_ns);
                Section::Ok(update)
            }
            Err(err) => Section::from_io("/proc", &err.into()),
        }
    }

    fn open(&mut self) -> std::io::Result<Arc<OwnedFd>> {
        if let Some(proc) = &self.proc {
            return Ok(proc.clone());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = Arc::new(openat(CWD, self.root.proc(""), flags, Mode::empty())?);
        let (for_reader, live) = (proc.clone(), numbers_are_ours(&self.root));
        self.reader = Some(Guard::new(DEADLINE, move || Reader::new(for_reader.clone(), live)));
        self.proc = Some(proc.clone());
        Ok(proc)
    }
}

/// Whether the numbers in this `/proc` mean the same tasks to system calls: not on a captured tree, and
/// not where another pid namespace's `/proc` is mounted, as in containers that are given the host's.
fn numbers_are_ours(root: &Root) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    root.is_live() && std::fs::read_link(root.proc("self")).is_ok_and(|link| link.as_os_str() == own.as_str())
}
