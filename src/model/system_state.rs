//! The state of the system: now, and over the recent past.
//!
//! Everything that collectors, child processes and recordings deliver is applied with [`SystemState::apply`]; views and
//! exports only read. There is no clock and no kernel access here, so a replay works like the live program.

use super::disk::DevId;
use super::history::History;
use super::kernel_log::hung_tasks::{DStateTask, HungTask, HungTaskDetector};
use super::kernel_log::{KernelLog, KernelLogLimits, LogClock};
use super::observation::{Change, Observation};
use super::process::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessTable, ProcessUpdate};
use super::queue::QueueAttrs;
use super::reading::{BlockedRead, Reading};
use super::sample::Sample;
use super::slow_facts::SlowFacts;
use super::snapshot::Snapshot;
use super::timestamp::Timestamp;
use super::topology::{BlockDevice, DeviceKind, Topology};
use crate::sanitize::sanitize_cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Children of the program that run a load, by their task names.
const WORKLOAD_CHILDREN: [&[u8]; 2] = [b"iotop-bench", b"iotop-experimen"];
/// Busiest tasks stored with each tick of the history.
const TASKS_PER_TICK: usize = 24;

/// The machine and the program that reads it. Names are sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Process id of the program that reads the machine; `None` of a captured tree and in recordings of earlier versions.
    pub program_pid: Option<u32>,
}

/// The state of the system.
pub struct SystemState {
    /// Name and kernel of the machine.
    pub host: HostInfo,
    /// Rates of the newest sample.
    pub snapshot: Arc<Snapshot>,
    /// All tasks.
    pub processes: ProcessTable,
    /// Whether tasks can be listed.
    pub processes_status: Reading<()>,
    /// The kernel log.
    pub kernel_log: KernelLog,
    /// Whether the kernel log can be read.
    pub kernel_log_status: Reading<()>,
    /// Block devices and mounts.
    pub topology: Reading<Topology>,
    /// Queue settings by device name, as far as they were read.
    pub queues: BTreeMap<String, QueueAttrs>,
    /// The history.
    pub history: History,
    /// The newest sample.
    pub last_sample: Option<Sample>,
    /// Reads and child processes that do not return.
    pub blocked_reads: Vec<BlockedRead>,
    /// Tasks in D state for too long, longest first, whether or not the kernel reports them. Where rows are processes, of
    /// each process the thread that has been for longest.
    pub hung_tasks: Vec<HungTask>,
    /// `kernel.hung_task_warnings`: 0 means the kernel no longer reports hung tasks.
    pub hung_task_warnings: Option<i64>,
    /// Facts that are read rarely: settings, limits, free space.
    pub slow_facts: SlowFacts,
    hung_task_detector: HungTaskDetector,
}

impl SystemState {
    /// A state in which only the host is known.
    pub fn new(host: HostInfo, start: LogClock) -> Self {
        Self {
            host,
            snapshot: Arc::default(),
            processes: ProcessTable::new(),
            processes_status: Reading::default(),
            kernel_log: KernelLog::new(start, KernelLogLimits::default()),
            kernel_log_status: Reading::default(),
            topology: Reading::default(),
            queues: BTreeMap::new(),
            history: History::default(),
            last_sample: None,
            blocked_reads: Vec::new(),
            hung_tasks: Vec::new(),
            hung_task_warnings: None,
            slow_facts: SlowFacts::default(),
            hung_task_detector: HungTaskDetector::default(),
        }
    }

    /// Time of the newest sample.
    pub fn now(&self) -> Timestamp {
        self.snapshot.time
    }

    /// Applies what a collector read. Returns what changed.
    pub fn apply(&mut self, observation: Observation) -> Change {
        match observation {
            Observation::Sample(sample) => {
                self.apply_sample(*sample);
                return Change::Counters;
            }
            Observation::Tasks(update) => {
                self.apply_tasks(*update);
                return Change::Tasks;
            }
            Observation::Topology(topology) => {
                self.topology = *topology;
                return Change::Topology;
            }
            Observation::KernelLog(records, clock) => {
                self.kernel_log_status = Reading::Ok(());
                let before = self.kernel_log.revision;
                records.iter().for_each(|record| self.kernel_log.push(record, clock));
                return if self.kernel_log.revision == before { Change::None } else { Change::KernelLog };
            }
            Observation::Queues(queues) => self.queues.extend(queues),
            Observation::KernelLogState(status) => self.kernel_log_status = status,
            Observation::BlockedSources(reads) => self.blocked_reads = reads,
            Observation::HungTaskWarnings(left) => self.hung_task_warnings = left,
            Observation::Facts(facts) => {
                self.processes.set_container_names(&facts.containers);
                self.slow_facts.update(*facts);
            }
            Observation::Containers(containers) => self.processes.set_container_names(&containers),
            Observation::DiskSpace(space) => self.slow_facts.update_space(space),
            Observation::Unavailable(_) => return Change::None,
        }
        Change::Other
    }

    fn apply_sample(&mut self, sample: Sample) {
        let mut snap = Snapshot::derive(self.last_sample.as_ref(), &sample);
        snap.share_unchanged(&self.snapshot);
        let snap = Arc::new(snap);
        self.processes.set_stalls(snap.memory_stalls.ok().map(|s| &**s));
        self.snapshot = snap.clone();
        self.processes.set_io_attribution(snap.io_attribution.ok().cloned());
        self.last_sample = Some(sample);
        self.history.push(snap);
    }

    fn apply_tasks(&mut self, update: Reading<ProcessUpdate>) {
        match update {
            Reading::Ok(update) => {
                self.processes.apply(&update);
                self.processes_status = Reading::Ok(());
                let tasks = self.busiest_tasks();
                // The newest tick: a scan of very many tasks may end after its own.
                let newest = self.snapshot.seq;
                self.history.attach_tasks(newest, tasks);
                self.detect_hung_tasks(update.time.boot_ns);
            }
            other => self.processes_status = other.map(|_| ()),
        }
    }

    fn detect_hung_tasks(&mut self, now_boot_ns: u64) {
        let sleeping = || self.processes.iter().filter(|task| task.is_in_d_state());
        let threads = &self.processes.uninterruptible_threads;
        let has_programs = !threads.is_empty() || sleeping().any(|task| !task.raw.kernel_thread);
        let own = if has_programs { self.own_processes() } else { Vec::new() };
        let tasks = sleeping().map(|task| DStateTask {
            key: task.key(),
            comm: task.comm(),
            wchan: task.wait_channel(),
            timeslices: Some(task.raw.timeslices).filter(|runs| *runs > 0),
        });
        let threads = threads.iter().map(|thread| DStateTask {
            key: thread.key,
            comm: sanitize_cow(thread.comm()),
            wchan: thread.wait_channel.as_deref(),
            timeslices: Some(thread.timeslices),
        });
        let tasks = tasks.chain(threads).filter(|task| !own.contains(&task.key.pid));
        self.hung_tasks = self.hung_task_detector.scan(now_boot_ns, tasks);
        if !self.processes.rows_are_threads {
            let mut processes = HashSet::new();
            self.hung_tasks.retain(|task| processes.insert(task.key.pid));
        }
    }

    /// The program that reads the machine and its helpers, by process id: what they wait for is listed as
    /// [`BlockedRead`], and delays nobody else. Benchmarks and experiments are not among them, since their I/O is wanted.
    /// Empty where the program is not known. It takes a pass over all tasks.
    pub(crate) fn own_processes(&self) -> Vec<u32> {
        let Some(program) = self.host.program_pid else { return Vec::new() };
        let is_workload = |comm: &[u8]| WORKLOAD_CHILDREN.contains(&comm);
        let mut own = vec![program];
        loop {
            let count = own.len();
            for row in self.processes.iter().filter(|row| !row.raw.kernel_thread && !is_workload(row.raw.comm())) {
                if own.contains(&row.raw.ppid) && !own.contains(&row.pid()) {
                    own.push(row.pid());
                }
            }
            if own.len() == count {
                return own;
            }
        }
    }

    fn busiest_tasks(&self) -> ProcessTable {
        let filter = ProcessFilter { only_active: true, ..Default::default() };
        let query = ProcessQuery { sort_by: ProcessColumn::Io, filter, height: TASKS_PER_TICK, ..Default::default() };
        self.processes.copy_rows(&self.processes.window(&query).rows)
    }

    /// Whole devices with I/O since boot, whose queue settings are worth reading.
    pub fn devices_to_query(&self) -> Vec<String> {
        let Some(topo) = self.topology.ok() else { return Vec::new() };
        let disks = self.last_sample.as_ref().and_then(|s| s.disks.ok()).map(Vec::as_slice).unwrap_or_default();
        let known = |d: &BlockDevice| disks.iter().any(|r| r.id == d.id);
        let whole = topo.devices.iter().filter(|d| d.kind != DeviceKind::Partition);
        whole.filter(|d| !d.is_vacant() && known(d)).map(|d| d.name.clone()).collect()
    }

    /// Queue settings of a device; for a partition those of its disk.
    pub fn queue_attrs(&self, id: DevId) -> Option<&QueueAttrs> {
        let topo = self.topology.ok()?;
        let dev = topo.get(id)?;
        let disk = dev.parent.filter(|_| dev.kind == DeviceKind::Partition);
        [Some(id), disk].into_iter().flatten().find_map(|id| self.queues.get(&topo.get(id)?.name))
    }

    /// Kernel name of a device, sanitized; its number if the name is unknown.
    pub fn device_name(&self, id: DevId) -> String {
        let topo = || Some(self.topology.ok()?.get(id)?.name.clone());
        let now = self.snapshot.device(id).map(|d| d.name.to_string()).or_else(topo);
        now.or_else(|| self.last_known_name(id)).map_or_else(|| id.to_string(), crate::sanitize::sanitize)
    }

    /// The name that a device had when it was last seen, raw; `None` if the history has none.
    fn last_known_name(&self, id: DevId) -> Option<String> {
        let traced = |tick: &Snapshot| Some(tick.io_attribution.ok()?.device_name(id)?.to_owned());
        let seen = |tick: &Snapshot| tick.device(id).map(|device| device.name.to_string()).or_else(|| traced(tick));
        self.history.iter().rev().find_map(|frame| seen(&frame.snapshot))
    }

    /// Its name, or `that has left (7:101066)` if the topology no longer has it and no name is known.
    pub(crate) fn described_device(&self, id: DevId) -> String {
        let name = self.device_name(id);
        let is_gone = name == id.to_string() && self.topology.ok().is_some_and(|topology| topology.get(id).is_none());
        if is_gone { format!("that has left ({id})") } else { name }
    }
}
