//! What rules ask of the world: conditions that held for a while, means over a while, who is busy, who is a
//! server. Worked out once a look, however many rules ask.

use super::known::{self, Server};
use crate::model::io_accounting::OwnerIo;
use crate::model::disk::{DevId, DiskRate};
use crate::model::kernel_log::{KernelLogClass, LogEntry, LogOrigin};
use crate::model::process::{TaskActivity, TaskKey, TaskRaw};
use crate::model::snapshot::Snapshot;
use crate::model::topology::DeviceKind;
use crate::model::system_state::SystemState;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A condition counts as lasting when it was so for this share of the time looked at.
const MOSTLY: f64 = 0.8;
/// Ticks that may miss within a stretch before the stretch is over: one slow second is no recovery.
const MISSES: usize = 2;
/// Fewer ticks than this say nothing, however long they are.
const LEAST_TICKS: usize = 3;
/// Processes that are told of as charged with something.
const MOST_CHARGED: usize = 32;
/// Swapped out and in by so much, a task is worth a second look.
const SWAPPED_BYTES: u64 = 64 << 20;

/// Whether a condition has lasted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Held {
    /// Too little was seen yet.
    NotYet,
    /// It did not.
    No,
    /// It did, since then (CLOCK_BOOTTIME, ns).
    Since(u64),
}

impl Held {
    /// Since when, if it lasted.
    pub fn since(self) -> Option<u64> {
        match self {
            Held::Since(ns) => Some(ns),
            _ => None,
        }
    }
}

/// A process and what it moved, bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Mover {
    /// Who; of threads the first that was seen.
    pub key: TaskKey,
    /// `fio (1234)`, cleaned.
    pub name: String,
    /// Read.
    pub read: f64,
    /// Dirtied.
    pub write: f64,
    /// A thread of the kernel: it does others' work.
    pub kernel: bool,
}

/// A process that was held up by memory over a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Victim {
    /// Who; it may have ended since.
    pub key: TaskKey,
    /// `dd (1234)`, cleaned.
    pub name: String,
    /// Milliseconds of each second.
    pub ms_per_s: f64,
    /// The longest time, milliseconds.
    pub longest_ms: f64,
    /// For which device it was throttled last.
    pub device: Option<DevId>,
}

/// Tasks worth a look, from one pass over all of them.
#[derive(Debug, Default)]
pub struct Survey {
    /// Servers: position and kind.
    pub servers: Vec<(u32, Server)>,
    /// Tasks with much in swap.
    pub swapped: Vec<u32>,
}

/// The world under examination.
pub struct Case<'a> {
    /// What is known.
    pub world: &'a SystemState,
    survey: OnceCell<Survey>,
    busiest: OnceCell<Vec<TaskActivity>>,
}

impl<'a> Case<'a> {
    /// A case of this world.
    pub fn new(world: &'a SystemState) -> Self {
        Self { world, survey: OnceCell::new(), busiest: OnceCell::new() }
    }

    /// CLOCK_BOOTTIME now, ns.
    pub fn now_ns(&self) -> u64 {
        self.world.now().boot_ns
    }

    /// The newest tick's rates; `None` while there are only means since boot.
    pub fn snap(&self) -> Option<&Snapshot> {
        Some(&*self.world.snapshot).filter(|s| !s.is_since_boot && s.seq > 0)
    }

    /// Ticks with rates of their own, newest first.
    pub fn ticks(&self) -> impl Iterator<Item = &Snapshot> {
        self.world.history.iter().rev().map(|f| &*f.snapshot).filter(|s| !s.is_since_boot)
    }

    /// Whether `test` held over the last `secs` seconds, and since when. A tick where `test` answers `None`
    /// counts as a miss.
    pub fn held(&self, secs: f64, test: impl Fn(&Snapshot) -> Option<bool>) -> Held {
        let (mut looked, mut hit, mut ticks) = (0.0, 0.0, 0);
        let mut stretch = Stretch::default();
        for snap in self.ticks() {
            let within = looked < secs || ticks < LEAST_TICKS;
            let yes = test(snap) == Some(true);
            if within {
                looked += snap.interval_secs;
                ticks += 1;
                hit += if yes { snap.interval_secs } else { 0.0 };
            }
            if !stretch.take(snap, yes) && !within {
                break;
            }
        }
        match stretch.since {
            _ if ticks < LEAST_TICKS || looked + 0.2 * secs < secs => Held::NotYet,
            Some(since) if hit >= MOSTLY * looked => Held::Since(since),
            _ => Held::No,
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
    pub fn per_request(&self, id: DevId, secs: f64, get: impl Fn(&DiskRate) -> f64) -> Option<f64> {
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
        let rates = self.snap().and_then(|s| s.devices.ok()).map(Vec::as_slice).unwrap_or_default();
        rates.iter().map(|r| &**r).filter(|r| self.kind(r.id) != Some(DeviceKind::Partition))
    }

    /// What kind of device it is, if that is known.
    pub fn kind(&self, id: DevId) -> Option<DeviceKind> {
        Some(self.world.topology.ok()?.get(id)?.kind)
    }

    /// A device's name, cleaned, with its mapper name.
    pub fn device_name(&self, id: DevId) -> String {
        let topo = self.world.topology.ok().and_then(|t| t.get(id));
        match topo {
            Some(dev) => dev.display_name().into_owned(),
            None => crate::text::sanitize(self.world.snapshot.device(id).map_or("?", |d| &d.name)),
        }
    }

    /// The device and what it lies on, its partition's disk included.
    pub fn chain(&self, id: DevId) -> Vec<DevId> {
        match self.world.topology.ok() {
            Some(topo) if topo.get(id).is_some() => topo.chain(id).into_iter().map(|l| l.device.id).collect(),
            _ => vec![id],
        }
    }

    /// The block device that the kernel log calls by this name: `sda`, `dm-0`, a partition, a journal `sda1-8`.
    pub fn device_called(&self, name: &str) -> Option<DevId> {
        let topo = self.world.topology.ok();
        let find = |name: &str| {
            let known = topo.and_then(|t| t.by_name(name)).map(|d| d.id);
            let rates = self.world.snapshot.devices.ok().map(Vec::as_slice).unwrap_or_default();
            known.or_else(|| rates.iter().find(|r| &*r.name == name).map(|r| r.id))
        };
        find(name).or_else(|| find(name.rsplit_once('-')?.0))
    }

    /// One pass over all tasks.
    pub fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| {
            let mut out = Survey::default();
            for (at, raw) in self.world.processes.live_tasks() {
                if raw.key.pid != raw.key.tid || raw.kernel_thread {
                    continue;
                }
                let java = || known::java_server(raw.comm(), self.world.processes.cmdline_at(at)?);
                out.servers.extend(known::server(raw.comm()).or_else(java).map(|kind| (at, kind)));
                if raw.swap_bytes.is_some_and(|n| n >= SWAPPED_BYTES) {
                    out.swapped.push(at);
                }
            }
            out
        })
    }

    /// The raw counters of the servers of a kind.
    pub fn servers(&self, wanted: impl Fn(Server) -> bool) -> impl Iterator<Item = u32> {
        self.survey().servers.iter().filter(move |(_, kind)| wanted(*kind)).map(|(at, _)| *at)
    }

    /// Processes that moved bytes in the last interval, most first; threads added up.
    pub fn busiest(&self) -> &[TaskActivity] {
        self.busiest.get_or_init(|| {
            let mut all: Vec<TaskActivity> = self.world.processes.active_tasks().filter(|m| m.bytes_per_s() > 0.0).collect();
            if self.world.processes.rows_are_threads() {
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
    pub fn movers(&self, secs: f64) -> Vec<Mover> {
        let (mut looked, mut counted) = (0.0, 0.0);
        let mut out: Vec<Mover> = Vec::new();
        for frame in self.world.history.iter().rev().filter(|f| !f.snapshot.is_since_boot) {
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
                    Some(m) => (m.read, m.write) = (m.read + read, m.write + write),
                    None => out.push(Mover {
                        key: row.key(),
                        name: format!("{} ({})", row.comm, row.pid),
                        read,
                        write,
                        kernel: row.kernel_thread,
                    }),
                }
            }
        }
        for m in &mut out {
            (m.read, m.write) = (m.read / f64::max(counted, 1e-9), m.write / f64::max(counted, 1e-9));
        }
        out.sort_by(|a, b| (b.read + b.write).total_cmp(&(a.read + a.write)));
        out
    }

    /// Who was held up in that way over the last `secs` seconds, the most first; none where it is not counted.
    pub fn held_up(&self, secs: f64, kind: usize) -> Vec<Victim> {
        let (mut looked, mut counted) = (0.0, 0.0);
        let mut out: Vec<Victim> = Vec::new();
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
                        v.longest_ms = v.longest_ms.max(stall.max_ms);
                    }
                    None => out.push(Victim {
                        key: task.key,
                        name: task.label(),
                        ms_per_s: ms,
                        longest_ms: stall.max_ms,
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
    pub fn charged(&self, secs: f64, get: impl Fn(&OwnerIo<u32>) -> f64) -> Option<Vec<(u32, String, f64)>> {
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
        let kernel = |pid: u32| self.world.processes.find_by_pid(pid).is_some_and(|row| row.kernel_thread);
        let mut out: Vec<(u32, f64, Option<Arc<str>>)> =
            sums.into_iter().map(|(pid, (sum, name))| (pid, sum / f64::max(looked, 1e-9), name)).collect();
        out.sort_by(|a, b| b.1.total_cmp(&a.1));
        // Whether it is the kernel's is looked up among all tasks: not for everybody.
        out.truncate(MOST_CHARGED);
        out.retain(|(pid, sum, _)| *sum > 0.0 && !kernel(*pid));
        let named = |(pid, sum, name): (u32, f64, Option<Arc<str>>)| {
            let name = name.map(|n| crate::text::sanitize(&*n)).unwrap_or_else(|| "?".into());
            (pid, format!("{name} ({pid})"), sum)
        };
        (looked > 0.0).then(|| out.into_iter().map(named).collect())
    }

    /// `fio (1234)`, cleaned.
    pub fn task_name(&self, at: u32) -> String {
        let row = self.world.processes.row(at);
        format!("{} ({})", row.comm, row.pid)
    }

    /// A task's name alone, cleaned.
    pub fn comm(raw: &TaskRaw) -> String {
        crate::text::sanitize(raw.comm())
    }

    /// A task by its key.
    pub fn raw(&self, key: &TaskKey) -> Option<&TaskRaw> {
        self.world.processes.live_tasks().map(|(_, raw)| raw).find(|raw| raw.key == *key)
    }

    /// What the kernel itself said of a class within the last `secs` seconds, newest first.
    pub fn kernel_said(&self, class: KernelLogClass, secs: u64) -> impl Iterator<Item = &LogEntry> {
        let from = self.world.now().wall_ns.saturating_sub((secs * 1_000_000_000) as i64);
        let recent = self.world.kernel_log.entries().rev().take_while(move |e| e.wall_ns >= from);
        recent.filter(move |e| e.class == class && e.origin == LogOrigin::Kernel)
    }

    /// CLOCK_BOOTTIME of a wall time, ns.
    pub fn boot_of(&self, wall_ns: i64) -> u64 {
        let now = self.world.now();
        now.boot_ns.saturating_sub(u64::try_from(now.wall_ns.saturating_sub(wall_ns)).unwrap_or(0))
    }

    /// Why the kernel log cannot be judged, if it cannot.
    pub fn klog_missing(&self) -> Option<String> {
        self.world.kernel_log_status.unavailable_reason(self.now_ns())
    }
}

/// The newest stretch of hits, with few misses in it.
#[derive(Default)]
struct Stretch {
    since: Option<u64>,
    misses: usize,
    over: bool,
}

impl Stretch {
    /// Takes the next older tick; false when the stretch is over.
    fn take(&mut self, snap: &Snapshot, hit: bool) -> bool {
        if self.over {
            return false;
        }
        if hit {
            self.misses = 0;
            self.since = Some(snap.time.boot_ns.saturating_sub((snap.interval_secs * 1e9) as u64));
        } else {
            self.misses += 1;
            self.over = self.misses > MISSES;
        }
        !self.over
    }
}
