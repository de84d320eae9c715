//! What rules ask of the world: conditions that held for a while, means over a while, who is busy, who is a
//! server. Worked out once a look, however many rules ask.

use super::known_servers::{self, ServerKind};
use crate::model::disk::{DevId, DiskRate};
use crate::model::io_accounting::OwnerIo;
use crate::model::kernel_log::{KernelLogClass, LogEntry, LogOrigin};
use crate::model::process::{TaskActivity, TaskKey, TaskRaw};
use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::model::topology::DeviceKind;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A condition counts as lasting when it was so for this share of the time looked at.
const SUSTAINED_SHARE: f64 = 0.8;
/// Ticks that may miss within a stretch before the stretch is over: one slow second is no recovery.
const MAX_MISSED_TICKS: usize = 2;
/// Fewer ticks than this say nothing, however long they are.
const MIN_TICKS: usize = 3;
/// Processes that are told of as charged with something.
const MAX_ATTRIBUTED_PROCESSES: usize = 32;
/// Swapped out and in by so much, a task is worth a second look.
const MIN_SWAPPED_BYTES: u64 = 64 << 20;

/// Whether a condition has lasted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sustained {
    /// Too little was seen yet.
    TooEarly,
    /// It did not.
    NotSustained,
    /// It did, since then (CLOCK_BOOTTIME, ns).
    Since(u64),
}

impl Sustained {
    /// Since when, if it lasted.
    pub fn since(self) -> Option<u64> {
        match self {
            Sustained::Since(ns) => Some(ns),
            _ => None,
        }
    }
}

/// A process and what it moved, bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct IoTask {
    /// Who; of threads the first that was seen.
    pub key: TaskKey,
    /// `fio (1234)`, cleaned.
    pub name: String,
    /// Read.
    pub read_bytes_per_s: f64,
    /// Dirtied.
    pub write_bytes_per_s: f64,
    /// A thread of the kernel: it does others' work.
    pub is_kernel_thread: bool,
}

/// A process that was held up by memory over a while.
#[derive(Debug, Clone, PartialEq)]
pub struct StalledTask {
    /// Who; it may have ended since.
    pub key: TaskKey,
    /// `dd (1234)`, cleaned.
    pub name: String,
    /// Milliseconds of each second.
    pub ms_per_s: f64,
    /// The longest time, milliseconds.
    pub max_ms: f64,
    /// For which device it was throttled last.
    pub device: Option<DevId>,
}

/// Tasks worth a look, from one pass over all of them.
#[derive(Debug, Default)]
pub struct TaskSurvey {
    /// Servers: position and kind.
    pub servers: Vec<(u32, ServerKind)>,
    /// Tasks with much in swap.
    pub swapped_tasks: Vec<u32>,
}

/// The world under examination.
pub struct RuleContext<'a> {
    /// What is known.
    pub system: &'a SystemState,
    task_survey: OnceCell<TaskSurvey>,
    busiest_tasks: OnceCell<Vec<TaskActivity>>,
}

impl<'a> RuleContext<'a> {
    /// A case of this world.
    pub fn new(world: &'a SystemState) -> Self {
        Self { system: world, task_survey: OnceCell::new(), busiest_tasks: OnceCell::new() }
    }

    /// CLOCK_BOOTTIME now, ns.
    pub fn now_ns(&self) -> u64 {
        self.system.now().boot_ns
    }

    /// The newest tick's rates; `None` while there are only means since boot.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        Some(&*self.system.snapshot).filter(|s| !s.is_since_boot && s.seq > 0)
    }

    /// Ticks with rates of their own, newest first.
    pub fn ticks(&self) -> impl Iterator<Item = &Snapshot> {
        self.system.history.iter().rev().map(|f| &*f.snapshot).filter(|s| !s.is_since_boot)
    }

    /// Whether `test` held over the last `secs` seconds, and since when. A tick where `test` answers `None`
    /// counts as a miss.
    pub fn sustained(&self, secs: f64, test: impl Fn(&Snapshot) -> Option<bool>) -> Sustained {
        let (mut looked, mut hit, mut ticks) = (0.0, 0.0, 0);
        let mut stretch = Streak::default();
        for snap in self.ticks() {
            let within = looked < secs || ticks < MIN_TICKS;
            let yes = test(snap) == Some(true);
            if within {
                looked += snap.interval_secs;
                ticks += 1;
                hit += if yes { snap.interval_secs } else { 0.0 };
            }
            if !stretch.push_older(snap, yes) && !within {
                break;
            }
        }
        match stretch.since {
            _ if ticks < MIN_TICKS || looked + 0.2 * secs < secs => Sustained::TooEarly,
            Some(since) if hit >= SUSTAINED_SHARE * looked => Sustained::Since(since),
            _ => Sustained::NotSustained,
        }
    }

    /// Mean of a figure over the last `secs` seconds, each tick by its length; `None` before that much was seen.
    pub fn mean(&self, secs: f64, get: impl Fn(&Snapshot) -> Option<f64>) -> Option<f64> {
        let (mut looked, mut sum, mut known) = (0.0, 0.0, 0.0);
        for snap in self.ticks() {
            if looked >= secs {
                break;
            }
            looked += snap.interval_secs;
            if let Some(n) = get(snap) {
                sum += n * snap.interval_secs;
                known += snap.interval_secs;
            }
        }
        (known > 0.0 && looked >= 0.8 * secs).then(|| sum / known)
    }

    /// Mean of a device's figure over the last `secs` seconds.
    pub fn device_mean(&self, id: DevId, secs: f64, get: impl Fn(&DiskRate) -> f64) -> Option<f64> {
        self.mean(secs, |s| s.device(id).map(&get))
    }

    /// Mean of a device's figure for each request, each tick by its requests: an await of a quiet second weighs
    /// little.
    pub fn mean_per_request(&self, id: DevId, secs: f64, get: impl Fn(&DiskRate) -> f64) -> Option<f64> {
        let (mut looked, mut sum, mut requests) = (0.0, 0.0, 0.0);
        for snap in self.ticks() {
            if looked >= secs {
                break;
            }
            looked += snap.interval_secs;
            if let Some(d) = snap.device(id) {
                let n = d.tps * snap.interval_secs;
                sum += get(d) * n;
                requests += n;
            }
        }
        (requests > 0.0).then(|| sum / requests)
    }

    /// Whole devices of the newest tick: partitions repeat their disk.
    pub fn devices(&self) -> impl Iterator<Item = &DiskRate> {
        let rates = self.snapshot().and_then(|s| s.devices.ok()).map(Vec::as_slice).unwrap_or_default();
        rates.iter().map(|r| &**r).filter(|r| self.device_kind(r.id) != Some(DeviceKind::Partition))
    }

    /// What kind of device it is, if that is known.
    pub fn device_kind(&self, id: DevId) -> Option<DeviceKind> {
        Some(self.system.topology.ok()?.get(id)?.kind)
    }

    /// A device's name, cleaned, with its mapper name.
    pub fn device_name(&self, id: DevId) -> String {
        let topo = self.system.topology.ok().and_then(|t| t.get(id));
        match topo {
            Some(dev) => dev.display_name().into_owned(),
            None => crate::sanitize::sanitize(self.system.snapshot.device(id).map_or("?", |d| &d.name)),
        }
    }

    /// The device and what it lies on, its partition's disk included.
    pub fn device_chain(&self, id: DevId) -> Vec<DevId> {
        match self.system.topology.ok() {
            Some(topo) if topo.get(id).is_some() => topo.chain(id).into_iter().map(|l| l.device.id).collect(),
            _ => vec![id],
        }
    }

    /// The block device that the kernel log calls by this name: `sda`, `dm-0`, a partition, a journal `sda1-8`.
    pub fn find_device(&self, name: &str) -> Option<DevId> {
        let topo = self.system.topology.ok();
        let find = |name: &str| {
            let known = topo.and_then(|t| t.by_name(name)).map(|d| d.id);
            let rates = self.system.snapshot.devices.ok().map(Vec::as_slice).unwrap_or_default();
            known.or_else(|| rates.iter().find(|r| &*r.name == name).map(|r| r.id))
        };
        find(name).or_else(|| find(name.rsplit_once('-')?.0))
    }

    /// One pass over all tasks.
    pub fn task_survey(&self) -> &TaskSurvey {
        self.task_survey.get_or_init(|| {
            let mut out = TaskSurvey::default();
            for (at, raw) in self.system.processes.live_tasks() {
                if raw.key.pid != raw.key.tid || raw.kernel_thread {
                    continue;
                }
                let java = || known_servers::java_server_kind(raw.comm(), self.system.processes.cmdline_at(at)?);
                out.servers.extend(known_servers::server_kind(raw.comm()).or_else(java).map(|kind| (at, kind)));
                if raw.swap_bytes.is_some_and(|n| n >= MIN_SWAPPED_BYTES) {
                    out.swapped_tasks.push(at);
                }
            }
            out
        })
    }

    /// The raw counters of the servers of a kind.
    pub fn servers(&self, wanted: impl Fn(ServerKind) -> bool) -> impl Iterator<Item = u32> {
        self.task_survey().servers.iter().filter(move |(_, kind)| wanted(*kind)).map(|(at, _)| *at)
    }

    /// Processes that moved bytes in the last interval, most first; threads added up.
    pub fn busiest_tasks(&self) -> &[TaskActivity] {
        self.busiest_tasks.get_or_init(|| {
            let mut all: Vec<TaskActivity> =
                self.system.processes.active_tasks().filter(|m| m.bytes_per_s() > 0.0).collect();
            if self.system.processes.rows_are_threads() {
                all.sort_unstable_by_key(|m| m.key.pid);
                all.dedup_by(|next, first| {
                    let same = next.key.pid == first.key.pid;
                    if same {
                        first.read = Some(first.read.unwrap_or(0.0) + next.read.unwrap_or(0.0));
                        first.write = Some(first.write.unwrap_or(0.0) + next.write.unwrap_or(0.0));
                    }
                    same
                });
            }
            all.sort_unstable_by(|a, b| b.bytes_per_s().total_cmp(&a.bytes_per_s()));
            all
        })
    }

    /// What processes moved over the last `secs` seconds, as far as they were among the busiest of a tick; most
    /// first. For naming somebody: it makes text.
    pub fn top_io_tasks(&self, secs: f64) -> Vec<IoTask> {
        let (mut looked, mut counted) = (0.0, 0.0);
        let mut out: Vec<IoTask> = Vec::new();
        for frame in self.system.history.iter().rev().filter(|f| !f.snapshot.is_since_boot) {
            if looked >= secs {
                break;
            }
            looked += frame.snapshot.interval_secs;
            // A tick whose tasks have not come yet says nothing of them.
            counted += if frame.tasks.is_empty() { 0.0 } else { frame.snapshot.interval_secs };
            for task in &frame.tasks {
                let row = task.row();
                let read = row.read_bytes_per_s.unwrap_or(0.0) * frame.snapshot.interval_secs;
                let write = row.write_bytes_per_s.unwrap_or(0.0) * frame.snapshot.interval_secs;
                match out.iter_mut().find(|m| m.key.pid == row.pid) {
                    Some(m) => {
                        (m.read_bytes_per_s, m.write_bytes_per_s) =
                            (m.read_bytes_per_s + read, m.write_bytes_per_s + write)
                    }
                    None => out.push(IoTask {
                        key: row.key(),
                        name: format!("{} ({})", row.comm, row.pid),
                        read_bytes_per_s: read,
                        write_bytes_per_s: write,
                        is_kernel_thread: row.kernel_thread,
                    }),
                }
            }
        }
        for m in &mut out {
            (m.read_bytes_per_s, m.write_bytes_per_s) =
                (m.read_bytes_per_s / f64::max(counted, 1e-9), m.write_bytes_per_s / f64::max(counted, 1e-9));
        }
        out.sort_by(|a, b| {
            (b.read_bytes_per_s + b.write_bytes_per_s).total_cmp(&(a.read_bytes_per_s + a.write_bytes_per_s))
        });
        out
    }

    /// Who was held up in that way over the last `secs` seconds, the most first; none where it is not counted.
    pub fn stalled_tasks(&self, secs: f64, kind: usize) -> Vec<StalledTask> {
        let (mut looked, mut counted) = (0.0, 0.0);
        let mut out: Vec<StalledTask> = Vec::new();
        for snap in self.ticks() {
            if looked >= secs {
                break;
            }
            looked += snap.interval_secs;
            let Some(stalls) = snap.memory_stalls.ok() else { continue };
            counted += snap.interval_secs;
            for task in stalls.processes.iter().filter(|t| t.rates[kind].count > 0) {
                let (stall, ms) = (task.rates[kind], task.rates[kind].ms_per_s * snap.interval_secs);
                match out.iter_mut().find(|v| v.key == task.key) {
                    Some(v) => {
                        v.ms_per_s += ms;
                        v.max_ms = v.max_ms.max(stall.max_ms);
                    }
                    None => out.push(StalledTask {
                        key: task.key,
                        name: task.label(),
                        ms_per_s: ms,
                        max_ms: stall.max_ms,
                        device: task.device(),
                    }),
                }
            }
        }
        out.iter_mut().for_each(|v| v.ms_per_s /= f64::max(counted, 1e-9));
        out.sort_by(|a, b| b.ms_per_s.total_cmp(&a.ms_per_s));
        out
    }

    /// What tracing charged processes with over the last `secs` seconds, mean per second, most first: process id,
    /// name, how much. Threads of the kernel, which do others' work, are left out. `None` where it was not traced.
    pub fn attributed_io(&self, secs: f64, get: impl Fn(&OwnerIo<u32>) -> f64) -> Option<Vec<(u32, String, f64)>> {
        let mut looked = 0.0;
        let mut sums: BTreeMap<u32, (f64, Option<Arc<str>>)> = BTreeMap::new();
        for snap in self.ticks() {
            if looked >= secs {
                break;
            }
            looked += snap.interval_secs;
            let charged = snap.io_attribution.ok()?;
            for task in &charged.processes {
                let sum = sums.entry(task.owner).or_insert_with(|| (0.0, charged.process_name(task.owner).cloned()));
                sum.0 += get(task) * snap.interval_secs;
            }
        }
        let kernel = |pid: u32| self.system.processes.find_by_pid(pid).is_some_and(|row| row.kernel_thread);
        let mut out: Vec<(u32, f64, Option<Arc<str>>)> =
            sums.into_iter().map(|(pid, (sum, name))| (pid, sum / f64::max(looked, 1e-9), name)).collect();
        out.sort_by(|a, b| b.1.total_cmp(&a.1));
        // Whether it is the kernel's is looked up among all tasks: not for everybody.
        out.truncate(MAX_ATTRIBUTED_PROCESSES);
        out.retain(|(pid, sum, _)| *sum > 0.0 && !kernel(*pid));
        let named = |(pid, sum, name): (u32, f64, Option<Arc<str>>)| {
            let name = name.map(|n| crate::sanitize::sanitize(&*n)).unwrap_or_else(|| "?".into());
            (pid, format!("{name} ({pid})"), sum)
        };
        (looked > 0.0).then(|| out.into_iter().map(named).collect())
    }

    /// `fio (1234)`, cleaned.
    pub fn task_name(&self, at: u32) -> String {
        let row = self.system.processes.row(at);
        format!("{} ({})", row.comm, row.pid)
    }

    /// A task's name alone, cleaned.
    pub fn comm(raw: &TaskRaw) -> String {
        crate::sanitize::sanitize(raw.comm())
    }

    /// A task by its key.
    pub fn raw_task(&self, key: &TaskKey) -> Option<&TaskRaw> {
        self.system.processes.live_tasks().map(|(_, raw)| raw).find(|raw| raw.key == *key)
    }

    /// What the kernel itself said of a class within the last `secs` seconds, newest first.
    pub fn kernel_messages(&self, class: KernelLogClass, secs: u64) -> impl Iterator<Item = &LogEntry> {
        let from = self.system.now().wall_ns.saturating_sub((secs * 1_000_000_000) as i64);
        let recent = self.system.kernel_log.entries().rev().take_while(move |e| e.wall_ns >= from);
        recent.filter(move |e| e.class == class && e.origin == LogOrigin::Kernel)
    }

    /// CLOCK_BOOTTIME of a wall time, ns.
    pub fn wall_to_boot_ns(&self, wall_ns: i64) -> u64 {
        let now = self.system.now();
        now.boot_ns.saturating_sub(u64::try_from(now.wall_ns.saturating_sub(wall_ns)).unwrap_or(0))
    }

    /// Why the kernel log cannot be judged, if it cannot.
    pub fn kernel_log_unavailable(&self) -> Option<String> {
        self.system.kernel_log_status.unavailable_reason(self.now_ns())
    }
}

/// The newest stretch of hits, with few misses in it.
#[derive(Default)]
struct Streak {
    since: Option<u64>,
    missed_ticks: usize,
    is_over: bool,
}

impl Streak {
    /// Takes the next older tick; false when the stretch is over.
    fn push_older(&mut self, snap: &Snapshot, hit: bool) -> bool {
        if self.is_over {
            return false;
        }
        if hit {
            self.missed_ticks = 0;
            self.since = Some(snap.time.boot_ns.saturating_sub((snap.interval_secs * 1e9) as u64));
        } else {
            self.missed_ticks += 1;
            self.is_over = self.missed_ticks > MAX_MISSED_TICKS;
        }
        !self.is_over
    }
}
