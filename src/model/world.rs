//! Everything known about the machine, at one moment and over the recent past.
//!
//! Samples, process updates, kernel records and the block topology arrive each in its own rhythm and
//! are taken in here; panes and exports only read. No clock and no kernel: replay feeds the same door.

use super::clock::Clock;
use super::disk::DevId;
use super::facts::Known;
use super::history::History;
use super::kernlog::dstate::{InD, Stuck, Watcher};
use super::kernlog::{KernLog, Limits, LogClock, Record};
use super::process::{Column, Filter, PastTask, ProcTable, ProcUpdate, Query};
use super::queue::QueueAttrs;
use super::sample::Sample;
use super::section::{Blocked, Section};
use super::snapshot::Snapshot;
use super::topology::{BlockDev, DeviceKind, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Busiest tasks kept with each tick of the past.
const TASKS_KEPT: usize = 24;

/// The machine's names, cleaned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
}

/// What is known.
pub struct World {
    /// Whose machine.
    pub host: Host,
    /// The newest sample's rates.
    pub snap: Arc<Snapshot>,
    /// All tasks.
    pub procs: ProcTable,
    /// Whether tasks can be listed.
    pub procs_state: Section<()>,
    /// The kernel log.
    pub klog: KernLog,
    /// Whether the kernel log can be read.
    pub klog_state: Section<()>,
    /// Block devices and mounts.
    pub topo: Section<Topology>,
    /// Queue settings by device name, as far as they came.
    pub queues: BTreeMap<String, QueueAttrs>,
    /// The recent past.
    pub history: History<PastTask>,
    /// The newest sample.
    pub last: Option<Sample>,
    /// Sources and children that do not return, and since when.
    pub blocked: Vec<Blocked>,
    /// Tasks in state D for long, longest first, whether or not the kernel says so.
    pub stuck: Vec<Stuck>,
    /// `kernel.hung_task_warnings`: 0 means the kernel no longer reports hung tasks.
    pub hung_task_warnings: Option<i64>,
    /// What is read rarely: settings, limits, how full file systems are.
    pub facts: Known,
    watcher: Watcher,
}

impl World {
    /// A world about which nothing is known but whose it is.
    pub fn new(host: Host, start: LogClock) -> Self {
        Self {
            host,
            snap: Arc::default(),
            procs: ProcTable::new(),
            procs_state: Section::default(),
            klog: KernLog::new(start, Limits::default()),
            klog_state: Section::default(),
            topo: Section::default(),
            queues: BTreeMap::new(),
            history: History::default(),
            last: None,
            blocked: Vec::new(),
            stuck: Vec::new(),
            hung_task_warnings: None,
            facts: Known::default(),
            watcher: Watcher::default(),
        }
    }

    /// The newest sample's clocks.
    pub fn now(&self) -> Clock {
        self.snap.at
    }

    /// Takes in a tick of counters.
    pub fn apply_sample(&mut self, sample: Sample) {
        let mut snap = Snapshot::derive(self.last.as_ref(), &sample);
        snap.share(&self.snap);
        let snap = Arc::new(snap);
        self.procs.set_stalls(snap.stalls.ok().map(|s| &**s));
        self.snap = snap.clone();
        self.procs.charge(snap.charged.ok().cloned());
        self.last = Some(sample);
        self.history.push(snap);
    }

    /// Takes in a look at the tasks.
    pub fn apply_procs(&mut self, update: Section<ProcUpdate>) {
        match update {
            Section::Ok(update) => {
                self.procs.apply(&update);
                self.procs_state = Section::Ok(());
                let tasks = self.busiest();
                // Whatever tick is newest: a look at very many tasks may end after its own.
                let newest = self.snap.seq;
                self.history.attach(newest, tasks);
                self.watch_stuck(update.at.boot_ns);
            }
            other => self.procs_state = other.map(|_| ()),
        }
    }

    fn watch_stuck(&mut self, now_boot_ns: u64) {
        let tasks: Vec<_> = self.procs.in_uninterruptible_sleep().collect();
        let tasks = tasks.iter().map(|(t, runs)| InD {
            pid: t.pid,
            tid: t.tid,
            starttime: t.starttime,
            comm: &t.comm,
            wchan: t.wchan,
            since_boot_ns: None,
            runs: (*runs > 0).then_some(*runs),
        });
        self.watcher.look(now_boot_ns, tasks);
        self.stuck = self.watcher.stuck().into_iter().cloned().collect();
    }

    fn busiest(&self) -> Vec<PastTask> {
        let filter = Filter { only_active: true, ..Default::default() };
        let query = Query { by: Column::Io, filter, height: TASKS_KEPT, ..Default::default() };
        self.procs.window(&query).rows.into_iter().map(|at| self.procs.past(at)).collect()
    }

    /// Takes in lines of the kernel log.
    pub fn apply_records(&mut self, records: Vec<Record>, clock: LogClock) {
        for record in &records {
            self.klog.push(record, clock);
        }
    }

    /// Whole devices that ever did I/O: those whose queue settings are worth asking for.
    pub fn queue_names(&self) -> Vec<String> {
        let Some(topo) = self.topo.ok() else { return Vec::new() };
        let disks = self.last.as_ref().and_then(|s| s.disks.ok()).map(Vec::as_slice).unwrap_or_default();
        let known = |d: &BlockDev| disks.iter().any(|r| r.id == d.id);
        let whole = topo.devices.iter().filter(|d| d.kind != DeviceKind::Partition);
        whole.filter(|d| !d.is_vacant() && known(d)).map(|d| d.name.clone()).collect()
    }

    /// A device's queue settings; a partition has those of its disk.
    pub fn queue_of(&self, id: DevId) -> Option<&QueueAttrs> {
        let topo = self.topo.ok()?;
        let dev = topo.get(id)?;
        let disk = dev.parent.filter(|_| dev.kind == DeviceKind::Partition);
        [Some(id), disk].into_iter().flatten().find_map(|id| self.queues.get(&topo.get(id)?.name))
    }

    /// A device's kernel name, cleaned; its number where it has none.
    pub fn block_name(&self, id: DevId) -> String {
        let topo = || Some(self.topo.ok()?.get(id)?.name.clone());
        let name = self.snap.device(id).map(|d| d.name.to_string()).or_else(topo);
        name.map_or_else(|| id.to_string(), crate::text::sanitize)
    }

    /// Whether a device exists in what is known.
    pub fn device_named(&self, name: &str) -> bool {
        self.snap.devices.ok().is_some_and(|d| d.iter().any(|d| &*d.name == name))
            || self.topo.ok().is_some_and(|t| t.by_name(name).is_some())
    }
}
