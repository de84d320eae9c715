//! State of all tasks, kept between scans.

use super::activity_filter::{ActivityFilter, TaskstatsQuery};
use super::file_reader::{ReadJob, TaskFileReader};
use super::stuck_read::StuckRead;
use super::task_list::ForkDetector;
use super::task_state::{DelaySource, TaskState};
use super::thread_groups::ThreadGroups;
use super::thread_states::ThreadStates;
use super::{cgroups, path, swap_activity, user_names, visibility};
use crate::bpf::ProbeHandle;
use crate::bpf::task_iter::{TaskIter, TaskIterProbe};
use crate::collect::kernel_file::PersistentFile;
use crate::model::process::{ProcessUpdate, TaskKey};
use crate::model::timestamp::Timestamp;
use crate::root::Root;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What the caller wants from the next scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Rows are threads instead of processes. A change restarts the table.
    pub threads: bool,
    /// Delay accounting is shown.
    pub delays: bool,
    /// Visible rows: their swap, I/O priority and wait channel are refreshed even while they sleep.
    pub visible: Vec<TaskKey>,
    /// Read the wait channels of visible rows in any state; those of tasks in state D are always read.
    pub wait_channels: bool,
    /// Treat every row as visible, for output that prints all rows.
    pub all_visible: bool,
    /// Read the names of all new tasks in one scan, however long that takes, for output that prints once.
    pub all_names: bool,
    /// Report every row, for example for a keyframe of a recording. Reads nothing more.
    pub full_update: bool,
}

/// All tasks, and the running scan.
pub struct TaskScanner {
    pub(super) root: Root,
    /// Task IDs of this `/proc` are valid for system calls.
    pub(super) is_live: bool,
    /// What keeps tasks from being listed.
    pub(super) visibility_notes: Vec<String>,
    pub(super) proc_fd: Option<Arc<OwnedFd>>,
    pub(super) fork_detector: ForkDetector,
    pub(super) activity_filter: ActivityFilter,
    pub(super) user_names: user_names::UserNames,
    pub(super) cgroups: cgroups::CgroupCache,
    pub(super) swap_activity: swap_activity::SwapActivity,
    pub(super) iter_scanner: IterScanner,
    pub(super) thread_states: ThreadStates,
    /// Sorted by (pid, tid).
    pub(super) tasks: Vec<TaskState>,
    pub(super) stuck_reads: Vec<StuckRead>,
    /// Reads that hung and have returned since the last scan.
    pub(super) returned_jobs: Vec<ReadJob>,
    pub(super) hung_threads: usize,
    pub(super) queries: Vec<TaskstatsQuery>,
    pub(super) jobs: Vec<ReadJob>,
    /// Tasks to check for activity, by index and path.
    pub(super) probe_targets: Vec<(u32, path::TaskPath)>,
    pub(super) ids: Vec<u32>,
    pub(super) dir_buf: Vec<u8>,
    pub(super) is_per_thread: bool,
    pub(super) delayacct_file: PersistentFile,
    pub(super) buf: Vec<u8>,
    /// Position of the slow round over all tasks.
    pub(super) round_position: usize,
    pub(super) seq: u64,
    pub(super) previous_clock: Option<Timestamp>,
    pub(super) page_size: u64,
    pub(super) scan: Option<Box<TaskScan>>,
}

pub(crate) struct TaskScan {
    pub(super) options: ScanOptions,
    pub(super) delay_source: DelaySource,
    pub(super) may_have_new_tasks: bool,
    /// The BPF iterator, if it is used.
    pub(super) task_iter: Option<TaskIter>,
    pub(super) phase: ScanPhase,
    /// Next taskstats query or read job of this phase.
    pub(super) job_index: usize,
    /// Next task to check for activity.
    pub(super) target_index: usize,
    pub(super) update: ProcessUpdate,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ScanPhase {
    Iterate,
    Probe,
    Read,
    ProbeThreads,
    ReadThreads,
    ReadNames,
}

/// Work that may not return.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant)] // one question for 64 tasks, copied once
pub(crate) enum ScanJob {
    Taskstats(TaskstatsQuery),
    Files(ReadJob),
}

/// State of scanning by iterator, kept between scans.
#[derive(Default)]
pub(crate) struct IterScanner {
    /// The iterator, once it is loaded.
    pub probe: Option<ProbeHandle<TaskIterProbe>>,
    pub(super) buf: Vec<u8>,
    pub(super) thread_groups: ThreadGroups,
    /// The last scan used the iterator.
    pub(super) was_active: bool,
}

impl TaskScanner {
    /// Creates a scanner; nothing is read yet.
    pub fn new(root: &Root) -> Self {
        Self::with_filter(root, ActivityFilter::new(path::is_own_pid_namespace(root)))
    }

    pub(super) fn with_filter(root: &Root, filter: ActivityFilter) -> Self {
        Self {
            root: root.clone(),
            is_live: path::is_own_pid_namespace(root),
            visibility_notes: visibility::notes(root),
            proc_fd: None,
            fork_detector: ForkDetector::new(root),
            activity_filter: filter,
            user_names: user_names::UserNames::new(root),
            cgroups: cgroups::CgroupCache::default(),
            swap_activity: swap_activity::SwapActivity::new(root),
            iter_scanner: IterScanner::default(),
            thread_states: ThreadStates::default(),
            tasks: Vec::new(),
            stuck_reads: Vec::new(),
            returned_jobs: Vec::new(),
            hung_threads: 0,
            queries: Vec::new(),
            jobs: Vec::new(),
            probe_targets: Vec::new(),
            ids: Vec::new(),
            dir_buf: Vec::new(),
            is_per_thread: false,
            delayacct_file: PersistentFile::whole(root.proc("sys/kernel/task_delayacct")),
            buf: Vec::new(),
            round_position: 0,
            seq: 0,
            previous_clock: None,
            page_size: rustix::param::page_size() as u64,
            scan: None,
        }
    }

    pub(super) fn new_reader(&self) -> Option<TaskFileReader> {
        let proc = self.proc_fd.clone()?;
        Some(TaskFileReader::new(proc, self.is_live))
    }

    pub(super) fn open_proc(&mut self) -> std::io::Result<Arc<OwnedFd>> {
        if let Some(proc) = &self.proc_fd {
            return Ok(proc.clone());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = Arc::new(openat(CWD, self.root.proc(""), flags, Mode::empty())?);
        self.proc_fd = Some(proc.clone());
        Ok(proc)
    }
}
