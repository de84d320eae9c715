//! A task as it is displayed or exported.

use super::container::unit;
use super::stored_row::{AccumulatedCounters, StoredRow, TaskRates};
use super::table::ProcessTable;
use super::task::{IoBytes, TaskKey, TaskRaw};
use super::tree_position::TreePosition;
use super::update::UninterruptibleThread;
use crate::model::containers::KnownContainer;
use crate::model::disk::DevId;
use crate::model::io_accounting::IoRates;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::wait_channel::is_frozen;
use crate::sanitize::sanitize_cow;
use std::borrow::Cow;

/// One task of a table, for display and sorting. Values are computed, and texts sanitized, when they are asked for.
/// Values that could not be read are `None`.
#[derive(Clone, Copy)]
pub struct ProcessRow<'a> {
    table: &'a ProcessTable,
    stored: &'a StoredRow,
    pub raw: &'a TaskRaw,
    /// Sums over the rows that are folded into this one, and its own.
    pub(super) sums: Option<&'a (TaskRates, AccumulatedCounters)>,
    /// Its place in the tree; `None` in a flat list.
    pub(super) tree: Option<TreePosition>,
}

/// A task that was looked for by its thread id.
pub(crate) enum FoundTask<'a> {
    Row(ProcessRow<'a>),
    /// A thread in D state that has hardly run since the scan before.
    UninterruptibleThread(&'a UninterruptibleThread),
    /// It has exited.
    Exited,
    /// It has run since the scan before, or is not in D state, or has exited.
    RanOrExited,
    /// Not all threads are read.
    Unknown,
}

impl ProcessTable {
    /// The row of `key`.
    pub fn get(&self, key: &TaskKey) -> Option<ProcessRow<'_>> {
        self.index.get(key).map(|at| self.row(*at))
    }

    /// The row at an index from [`ProcessTable::window`], before the next `apply`.
    pub fn row(&self, at: u32) -> ProcessRow<'_> {
        ProcessRow::new(self, at)
    }

    /// Every row, in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = ProcessRow<'_>> {
        (0..self.rows.len() as u32).map(|at| self.row(at))
    }

    /// The task with this id.
    pub fn find_by_pid(&self, pid: u32) -> Option<ProcessRow<'_>> {
        self.iter().find(|row| row.tid() == pid)
    }

    /// The key of the main thread of a task's process; where rows are processes, its own.
    pub(crate) fn find_main_thread(&self, key: &TaskKey) -> Option<TaskKey> {
        if key.tid == key.pid {
            return Some(*key);
        }
        self.iter().map(|row| row.key()).find(|other| other.tid == key.pid && other.starttime <= key.starttime)
    }

    /// The row of a task, or of its process if it is a thread that is no row.
    pub(crate) fn row_or_process(&self, key: &TaskKey) -> Option<ProcessRow<'_>> {
        self.get(key).or_else(|| self.get(&self.find_main_thread(key)?))
    }

    /// What the newest scan says of the task with this thread id.
    pub(crate) fn find_task(&self, tid: u32) -> FoundTask<'_> {
        if let Some(row) = self.find_by_pid(tid) {
            return FoundTask::Row(row);
        }
        match self.uninterruptible_threads.iter().find(|thread| thread.key.tid == tid) {
            Some(thread) => FoundTask::UninterruptibleThread(thread),
            None if self.rows_are_threads => FoundTask::Exited,
            None if self.all_threads_known => FoundTask::RanOrExited,
            None => FoundTask::Unknown,
        }
    }

    /// A row of the process with this id, if it has not exited.
    pub fn find_live(&self, pid: u32) -> Option<ProcessRow<'_>> {
        self.iter().find(|row| row.pid() == pid && !row.has_exited())
    }
}

impl<'a> ProcessRow<'a> {
    pub(super) fn new(table: &'a ProcessTable, index: u32) -> Self {
        let stored = &table.rows[index as usize];
        Self { table, stored, raw: &stored.raw, sums: None, tree: None }
    }

    /// Rates of the last interval.
    pub(crate) fn rates(&self) -> TaskRates {
        self.sums.map_or_else(|| self.table.rates_of(self.stored), |sums| sums.0)
    }

    fn accumulated_counters(&self) -> AccumulatedCounters {
        self.sums.map_or_else(|| self.stored.accumulated_counters(), |sums| sums.1)
    }

    fn stall_percentages(&self) -> [Option<f64>; 2] {
        // Stalls are counted for whole processes, so those of a thread are unknown.
        if self.table.rows_are_threads { [None; 2] } else { self.table.stall_percentages.of(&self.key()) }
    }

    /// Its place in the tree; `None` in a flat list.
    pub(crate) fn tree_position(&self) -> Option<&TreePosition> {
        self.tree.as_ref()
    }

    pub fn key(&self) -> TaskKey {
        self.raw.key
    }

    pub fn pid(&self) -> u32 {
        self.raw.key.pid
    }

    /// Thread id; equals the process id where rows are processes.
    pub fn tid(&self) -> u32 {
        self.raw.key.tid
    }

    pub fn state(&self) -> char {
        self.raw.state as char
    }

    pub fn is_in_d_state(&self) -> bool {
        self.raw.state == b'D' && !self.stored.exited
    }

    /// In state D, and not because it was frozen on purpose.
    pub(crate) fn may_hang(&self) -> bool {
        self.is_in_d_state() && !self.wait_channel().is_some_and(is_frozen)
    }

    /// CLOCK_BOOTTIME in ns when it was first seen in its present state.
    pub fn state_since_ns(&self) -> u64 {
        self.stored.state_since_ns
    }

    /// How long it has been seen in its present state, in ns.
    pub fn state_duration_ns(&self) -> u64 {
        self.table.time.boot_ns.saturating_sub(self.stored.state_since_ns)
    }

    /// Whether it exited in the last interval; the values are the last ones read.
    pub fn has_exited(&self) -> bool {
        self.stored.exited
    }

    /// Whether it has exited and its pages are still being written.
    pub fn has_exited_with_io(&self) -> bool {
        self.stored.exited && self.table.io_attribution.has_io(self.pid())
    }

    /// Whether a read of its counters does not return; the values are old.
    pub fn is_blocked(&self) -> bool {
        self.stored.blocked
    }

    /// The kernel function it waits in, if that was requested.
    pub fn wait_channel(&self) -> Option<&'a str> {
        self.table.wait_channel(self.stored).map(|wait| &**wait)
    }

    pub fn cgroup(&self) -> Option<&'a str> {
        self.stored.names.as_deref().map(|names| &*names.cgroup).filter(|path| !path.is_empty())
    }

    /// Its container: `podman:web`, `NAMESPACE/POD/CONTAINER`, or `podman:0123456789ab` where no name is known.
    pub fn container(&self) -> Option<&'a str> {
        self.known_container().map_or_else(|| self.container_hint(), |known| Some(&*known.label))
    }

    /// `podman:0123456789ab`.
    pub(crate) fn container_hint(&self) -> Option<&'a str> {
        self.stored.names.as_deref()?.container.as_deref()
    }

    pub(crate) fn known_container(&self) -> Option<&'a KnownContainer> {
        self.table.container_names.find(self.container_hint()?)
    }

    /// Its systemd unit: `postgresql.service`, `session-3.scope`, else a slice.
    pub(crate) fn unit(&self) -> Option<&'a str> {
        unit(self.cgroup()?)
    }

    /// Time throttled because too many pages were dirty, percent of the interval, summed over threads. From tracing.
    pub fn throttled_pct(&self) -> Option<f64> {
        self.stall_percentages()[THROTTLE]
    }

    /// Time in direct reclaim, percent of the interval, summed over threads. From tracing.
    pub fn reclaim_pct(&self) -> Option<f64> {
        self.stall_percentages()[RECLAIM]
    }

    /// I/O attributed to the process by tracing; `None` if not traced. It is by process, not by thread.
    pub fn attributed_io(&self) -> Option<IoRates> {
        if self.table.rows_are_threads { None } else { self.table.io_attribution.rates_of(self.pid()) }
    }

    /// The whole device that most of its attributed I/O goes to.
    pub(crate) fn main_device(&self) -> Option<DevId> {
        let attribution = self.table.io_attribution.current.as_ref().filter(|_| !self.table.rows_are_threads)?;
        attribution.main_device(self.pid())
    }

    /// Name of that device, sanitized.
    pub fn main_device_name(&self) -> Option<&'a str> {
        self.table.io_attribution.current.as_ref()?.device_name(self.main_device()?)
    }

    /// Bytes since the counters were reset (iotop -a); `None` if they cannot be read.
    pub fn accumulated(&self) -> Option<IoBytes> {
        self.raw.io.bytes().map(|_| self.accumulated_counters().io)
    }

    /// Bytes that the kernel added to its counters for children that ended since the counters were reset.
    pub fn children_io(&self) -> IoBytes {
        self.accumulated_counters().children_io
    }

    /// Time waiting for block I/O since the counters were reset, ns.
    pub fn accumulated_io_delay_ns(&self) -> Option<u64> {
        self.raw.delays.map(|_| self.accumulated_counters().blkio_ns)
    }

    /// Time waiting for swap since the counters were reset, ns.
    pub fn accumulated_swapin_delay_ns(&self) -> Option<u64> {
        self.raw.delays?.swapin_ns.map(|_| self.accumulated_counters().swapin_ns)
    }

    pub fn comm(&self) -> Cow<'a, str> {
        sanitize_cow(self.raw.comm())
    }

    /// `fio (1234)`, sanitized.
    pub fn label(&self) -> String {
        format!("{} ({})", self.comm(), self.pid())
    }

    /// The command line, sanitized; `None` until it was read. For kernel threads, and where it is empty, the command name in
    /// brackets.
    pub fn command(&self) -> Option<Cow<'a, str>> {
        let cmdline = self.raw_cmdline();
        if self.raw.kernel_thread || cmdline.is_some_and(<[u8]>::is_empty) {
            return Some(format!("[{}]", self.comm()).into());
        }
        cmdline.map(sanitize_cow)
    }

    /// The user's name as it is in `/etc/passwd`.
    pub(crate) fn user_name(&self) -> Option<&'a str> {
        self.table.user_name(self.stored).map(|name| &**name)
    }

    pub(crate) fn raw_cmdline(&self) -> Option<&'a [u8]> {
        self.stored.cmdline()
    }

    /// The user's name, sanitized, or the uid if it has none.
    pub fn user(&self) -> Option<Cow<'a, str>> {
        let name = self.user_name().map(|name| sanitize_cow(name.as_bytes()));
        name.or_else(|| Some(self.raw.uid?.to_string().into()))
    }

    /// I/O class and level in iotop's format.
    pub fn ionice(&self) -> Option<String> {
        self.raw.ioprio.map(|prio| prio.to_string())
    }
}
