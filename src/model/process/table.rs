//! The table of tasks: applies updates, accumulates counters since a reset, and derives rates over each row's own
//! interval. A row that did not change costs nothing in an update.

use super::child_io::InheritedIo;
use super::io_attribution::ProcessIoAttribution;
use super::stall_percentages::StallPercentages;
use super::stored_row::{AccumulatedCounters, NO_SLOT, StoredRow, TaskRates};
use super::task::{IoBytes, TaskIoRaw, TaskKey, TaskRaw};
use super::update::{BlockedTask, ProcessUpdate, TaskChange, UninterruptibleThread};
use crate::model::containers::{ContainerName, ContainerNames, UnnamedContainers};
use crate::model::io_accounting::IoAttribution;
use crate::model::memory_stalls::MemoryStalls;
use crate::model::reading::Reading;
use crate::model::timestamp::{Timestamp, counter_delta};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Tolerance when a start time, which is in ticks, is compared with the clock.
const BIRTH_SLACK_NS: u64 = 20_000_000;

/// Sums over all rows; hidden tasks are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessTotals {
    pub read_bytes_per_s: f64,
    /// Bytes dirtied for storage per second.
    pub write_bytes_per_s: f64,
}

/// All tasks of the last update.
#[derive(Debug, Default)]
pub struct ProcessTable {
    pub(super) rows: Vec<StoredRow>,
    pub(super) index: HashMap<TaskKey, u32>,
    pub(super) rates: Vec<TaskRates>,
    pub(super) wait_channels: HashMap<TaskKey, Arc<str>>,
    pub(super) users: HashMap<u32, Arc<str>>,
    exited_count: usize,
    has_blocked: bool,
    /// When the accumulated counters were reset.
    pub(crate) counters_since: Timestamp,
    /// I/O of all rows since then, including exited ones.
    pub(crate) accumulated_io: IoBytes,
    /// Time of the last scan.
    pub(crate) time: Timestamp,
    /// Number of tasks whose I/O counters the kernel does not let us read.
    pub(crate) hidden_count: usize,
    /// See [`ProcessUpdate::rows_are_threads`].
    pub(crate) rows_are_threads: bool,
    /// Whether delays can be read, or why not.
    pub(crate) delay_accounting: Reading<()>,
    /// Tasks with a read that does not return.
    pub(crate) blocked_tasks: Vec<BlockedTask>,
    /// See [`ProcessUpdate::uninterruptible_threads`].
    pub(crate) uninterruptible_threads: Vec<UninterruptibleThread>,
    /// See [`ProcessUpdate::all_threads_known`].
    pub(super) all_threads_known: bool,
    pub(super) stall_percentages: Arc<StallPercentages>,
    pub(super) io_attribution: ProcessIoAttribution,
    pub(super) container_names: Arc<ContainerNames>,
    unnamed_containers: UnnamedContainers,
    /// Notes about the last scan for the user.
    pub(crate) notes: Vec<String>,
}

impl ProcessTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one scan. Updates must come in order; an update with `reset` replaces everything.
    pub fn apply(&mut self, update: &ProcessUpdate) {
        if update.reset {
            self.clear();
            self.counters_since = update.time;
        }
        self.end_interval();
        self.time = update.time;
        self.rows_are_threads = update.rows_are_threads;
        self.hidden_count = update.hidden_count;
        self.delay_accounting = update.delays.clone();
        self.notes.clone_from(&update.notes);
        self.rows.reserve(update.total.saturating_sub(self.rows.len()));
        // Threads do not inherit I/O.
        let gone = if update.rows_are_threads { &[][..] } else { &update.exited };
        let inherited = InheritedIo::from_exited(gone, |key| Some(&self.rows[*self.index.get(key)? as usize].raw));
        for change in &update.changed {
            self.apply_change(change, update, &inherited);
        }
        for key in &update.exited {
            self.mark_exited(key);
        }
        for (key, names) in &update.names {
            if let Some(hint) = &names.container
                && !self.container_names.has_innermost(hint)
            {
                self.unnamed_containers.note(hint);
            }
            if let Some(row) = self.row_mut(key) {
                row.names = Some(names.clone());
            }
        }
        for (uid, name) in &update.users {
            self.users.insert(*uid, name.clone());
        }
        for (key, wait) in &update.wait_channels {
            self.wait_channels.insert(*key, wait.clone());
        }
        self.uninterruptible_threads.clone_from(&update.uninterruptible_threads);
        self.all_threads_known = update.all_threads_known;
        self.mark_blocked(&update.blocked);
        self.restore_exited();
    }

    /// Ends the last interval: removes its rates, and the rows that exited in it.
    fn end_interval(&mut self) {
        for rates in self.rates.drain(..) {
            if let Some(row) = self.rows.get_mut(rates.row as usize) {
                row.rates_slot = NO_SLOT;
            }
        }
        if self.exited_count > 0 {
            let mut at = 0;
            while at < self.rows.len() {
                if self.rows[at].exited { self.remove_row(at) } else { at += 1 }
            }
            self.exited_count = 0;
        }
    }

    fn remove_row(&mut self, at: usize) {
        let row = self.rows.swap_remove(at);
        self.index.remove(&row.raw.key);
        self.wait_channels.remove(&row.raw.key);
        self.io_attribution.keep_exited(row);
        if let Some(moved) = self.rows.get(at) {
            self.index.insert(moved.raw.key, at as u32);
        }
    }

    fn apply_change(&mut self, change: &TaskChange, update: &ProcessUpdate, inherited: &InheritedIo) {
        let key = change.raw.key;
        if !self.wait_channels.is_empty() {
            self.wait_channels.remove(&key);
        }
        let Some(&at) = self.index.get(&key) else { return self.insert_task(change, update) };
        let row = &mut self.rows[at as usize];
        let mut before = std::mem::replace(&mut row.raw, change.raw);
        // The same state, but it ran in between: it left the state and came back.
        if before.state != row.raw.state || before.timeslices != row.raw.timeslices {
            row.state_since_ns = change.scanned_ns;
        }
        if row.exited {
            row.exited = false;
            self.exited_count -= 1;
        }
        let now = &self.rows[at as usize].raw;
        // No counter changed, only memory, state or a name: its rates are 0, like those of a row that is not in the
        // update.
        if before.io == now.io && before.majflt == now.majflt && before.delays == now.delays {
            return;
        }
        if let (Some(old), Some(new)) = (before.io.bytes(), now.io.bytes()) {
            let children_io = inherited.inherited_by(key.pid, old, new);
            let mut own = old;
            own.add(children_io);
            before.io = TaskIoRaw::Read(own);
            self.accumulate(at, AccumulatedCounters { children_io, ..AccumulatedCounters::default() });
        }
        let rates = self.derive_rates(at, &before, change.scanned_ns.saturating_sub(change.previous_scan_ns));
        self.set_rates(at, rates);
    }

    fn insert_task(&mut self, change: &TaskChange, update: &ProcessUpdate) {
        let key = change.raw.key;
        let at = self.rows.len() as u32;
        self.rows.push(StoredRow::new(change.raw, change.scanned_ns));
        self.index.insert(key, at);
        // Started since the previous scan: its counters count from 0, and the rate is over the whole interval, so that
        // rates and totals add up. A task that was there before has no rate until its second scan.
        let rates = match update.previous_time {
            Some(prev) if key.start_ns().saturating_add(BIRTH_SLACK_NS) >= prev.boot_ns => {
                let born = zeroed_counters(&change.raw);
                self.derive_rates(at, &born, change.scanned_ns.saturating_sub(prev.boot_ns))
            }
            _ => TaskRates::default(),
        };
        self.set_rates(at, rates);
    }

    fn set_rates(&mut self, at: u32, rates: TaskRates) {
        self.rows[at as usize].rates_slot = self.rates.len() as u32;
        self.rates.push(TaskRates { row: at, ..rates });
    }

    /// Rates between two readings; also adds the differences to the accumulated counters. A counter that decreased was
    /// restarted: no rate this time.
    fn derive_rates(&mut self, at: u32, before: &TaskRaw, interval_ns: u64) -> TaskRates {
        let row = &self.rows[at as usize];
        let secs = interval_ns as f64 / 1e9;
        if secs <= 0.0 {
            return TaskRates::default();
        }
        let mut grown = AccumulatedCounters::default();
        let mut rates = TaskRates::default();
        if let (Some(a), Some(b)) = (before.io.bytes(), row.raw.io.bytes()) {
            let per_s = |a, b, sum: &mut u64| {
                counter_delta(a, b).map(|d| {
                    *sum = d;
                    d as f64 / secs
                })
            };
            rates.read_bytes_per_s = per_s(a.read, b.read, &mut grown.io.read);
            rates.write_bytes_per_s = per_s(a.write, b.write, &mut grown.io.write);
            rates.cancelled_bytes_per_s = per_s(a.cancelled, b.cancelled, &mut grown.io.cancelled);
        }
        if let Some(d) = counter_delta(before.majflt, row.raw.majflt) {
            grown.major_faults = d;
            rates.major_faults_per_s = Some(d as f64 / secs);
        }
        if let (Some(a), Some(b)) = (before.delays, row.raw.delays) {
            // A thread cannot wait longer than the interval, but a wait is counted in full when it ends, so it may have
            // begun earlier. A process may wait in all its threads at once.
            let threads = if self.rows_are_threads { 1 } else { row.raw.num_threads.max(1) };
            let pct = |d: u64| (d as f64 / interval_ns as f64).min(f64::from(threads)) * 100.0;
            if let Some(d) = counter_delta(a.blkio_ns, b.blkio_ns) {
                grown.blkio_ns = d;
                rates.io_delay_pct = Some(pct(d));
            }
            if let Some(d) = a.swapin_ns.zip(b.swapin_ns).and_then(|(a, b)| counter_delta(a, b)) {
                grown.swapin_ns = d;
                rates.swapin_delay_pct = Some(pct(d));
            }
        }
        self.accumulate(at, grown);
        rates
    }

    fn accumulate(&mut self, at: u32, grown: AccumulatedCounters) {
        if grown.is_zero() {
            return;
        }
        self.accumulated_io.add(grown.io);
        self.rows[at as usize].accumulated.get_or_insert_default().add(&grown);
    }

    fn mark_exited(&mut self, key: &TaskKey) {
        if let Some(row) = self.row_mut(key)
            && !row.exited
        {
            row.exited = true;
            self.exited_count += 1;
        }
    }

    fn mark_blocked(&mut self, blocked: &[BlockedTask]) {
        if self.has_blocked {
            self.rows.iter_mut().for_each(|row| row.blocked = false);
        }
        self.has_blocked = !blocked.is_empty();
        for task in blocked.iter().filter(|task| !task.counters_readable) {
            if let Some(row) = self.row_mut(&task.key) {
                row.blocked = true;
            }
        }
        self.blocked_tasks = blocked.to_vec();
    }

    fn row_mut(&mut self, key: &TaskKey) -> Option<&mut StoredRow> {
        self.index.get(key).map(|at| &mut self.rows[*at as usize])
    }

    fn clear(&mut self) {
        let users = std::mem::take(&mut self.users);
        let (stalled, charges) =
            (std::mem::take(&mut self.stall_percentages), std::mem::take(&mut self.io_attribution));
        *self = Self {
            users,
            stall_percentages: stalled,
            io_attribution: charges,
            container_names: std::mem::take(&mut self.container_names),
            unnamed_containers: std::mem::take(&mut self.unnamed_containers),
            ..Self::default()
        };
    }

    /// Resets the accumulated counters (key `D`) at time `now`.
    pub fn reset_counters(&mut self, now: Timestamp) {
        self.rows.iter_mut().for_each(|row| row.accumulated = None);
        self.accumulated_io = IoBytes::default();
        self.counters_since = now;
    }

    /// Number of rows, including exited ones.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Names of the known users, by uid.
    pub(super) fn users(&self) -> Vec<(u32, Arc<str>)> {
        let mut all: Vec<_> = self.users.iter().map(|(uid, name)| (*uid, name.clone())).collect();
        all.sort_by_key(|user| user.0);
        all
    }

    pub(super) fn user_name(&self, row: &StoredRow) -> Option<&Arc<str>> {
        row.raw.uid.and_then(|uid| self.users.get(&uid))
    }

    pub(super) fn wait_channel(&self, row: &StoredRow) -> Option<&Arc<str>> {
        self.wait_channels.get(&row.raw.key)
    }

    /// Rates of a row: 0 if it did not change, unknown if it cannot be read.
    pub(super) fn rates_of(&self, row: &StoredRow) -> TaskRates {
        if row.exited || row.blocked {
            return TaskRates::default();
        }
        if let Some(rates) = self.rates.get(row.rates_slot as usize) {
            return *rates;
        }
        let io = row.raw.io.bytes().map(|_| 0.0);
        TaskRates {
            row: NO_SLOT,
            read_bytes_per_s: io,
            write_bytes_per_s: io,
            cancelled_bytes_per_s: io,
            io_delay_pct: row.raw.delays.map(|_| 0.0),
            swapin_delay_pct: row.raw.delays.and_then(|d| d.swapin_ns).map(|_| 0.0),
            major_faults_per_s: Some(0.0),
        }
    }

    /// Sets the stalls of the newest tick; processes that are not listed had none.
    pub fn set_stalls(&mut self, stalls: Option<&MemoryStalls>) {
        self.stall_percentages = Arc::new(StallPercentages::new(stalls));
    }

    /// Sets the attributed I/O of the interval; `None` if nothing is traced.
    pub fn set_io_attribution(&mut self, attribution: Option<Arc<IoAttribution>>) {
        self.io_attribution.current = attribution;
    }

    /// Sets what containers are called.
    pub(crate) fn set_container_names(&mut self, containers: &[ContainerName]) {
        self.unnamed_containers.clear_new();
        let names = ContainerNames::new(containers);
        if *self.container_names != names {
            self.container_names = Arc::new(names);
        }
    }

    /// What containers are called.
    pub(crate) fn container_names(&self) -> &ContainerNames {
        &self.container_names
    }

    /// Whether a container without a name was seen since names last arrived.
    pub(crate) fn has_new_container(&self) -> bool {
        self.unnamed_containers.has_new()
    }

    /// Names were asked for.
    pub(crate) fn container_names_requested(&mut self) {
        self.unnamed_containers.clear_new();
    }

    /// Restores the rows of exited processes that have I/O in this interval.
    fn restore_exited(&mut self) {
        if self.rows_are_threads {
            return;
        }
        let mut missing: BTreeSet<u32> = self.io_attribution.pids().collect();
        if !missing.is_empty() {
            self.rows.iter().for_each(|row| _ = missing.remove(&row.raw.key.pid));
        }
        for pid in missing {
            let row = self.io_attribution.take_exited(pid, self.time.boot_ns);
            self.index.insert(row.raw.key, self.rows.len() as u32);
            self.rows.push(row);
            self.exited_count += 1;
        }
    }

    /// Sums of all rates.
    pub fn totals(&self) -> ProcessTotals {
        self.rates.iter().fold(ProcessTotals::default(), |sum, r| ProcessTotals {
            read_bytes_per_s: sum.read_bytes_per_s + r.read_bytes_per_s.unwrap_or(0.0),
            write_bytes_per_s: sum.write_bytes_per_s + r.write_bytes_per_s.unwrap_or(0.0),
        })
    }
}

/// The counters of a newly started task.
fn zeroed_counters(raw: &TaskRaw) -> TaskRaw {
    let io = match raw.io {
        TaskIoRaw::Read(_) => TaskIoRaw::Read(IoBytes::default()),
        other => other,
    };
    let mut delays = raw.delays;
    if let Some(d) = &mut delays {
        d.blkio_ns = 0;
        d.swapin_ns = d.swapin_ns.map(|_| 0);
    }
    TaskRaw { io, delays, majflt: 0, cpu_ticks: 0, ..*raw }
}
