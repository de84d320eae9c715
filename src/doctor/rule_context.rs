//! What rules ask of the system state: conditions sustained over time, means over time, the busiest tasks, known
//! servers. Expensive answers are computed once per tick, however many rules need them.

use super::finding::{Finding, FindingSubject, NavTarget, RuleSkipped, Severity};
use super::known_servers::{ServerKind, is_sentinel, java_server_kind, server_kind};
use super::rows_by_pid::RowsByPid;
use super::storage_class::{StorageClass, storage_class};
use crate::model::disk::{DevId, DiskRate};
use crate::model::history::HistoryFrame;
use crate::model::kernel_log::{KernelLogClass, LogEntry, LogOrigin};
use crate::model::nvme_path::paths_with_heads;
use crate::model::process::{ProcessRow, TaskKey};
use crate::model::reading::Reading;
use crate::model::request_pattern::RequestPattern;
use crate::model::slow_facts::SystemFacts;
use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::model::topology::DeviceKind;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Outcome of a rule besides its findings.
pub(super) type RuleResult = Result<(), RuleSkipped>;

pub(crate) struct Rule {
    /// Name in JSON and in tests. Its meaning never changes.
    pub(crate) name: &'static str,
    /// Adds what it finds to the list.
    pub(super) find: fn(&RuleContext<'_>, &mut Vec<Finding>) -> RuleResult,
}

impl Rule {
    /// Adds what it finds to the list, under its name, at most [`MAX_FINDINGS`].
    pub(super) fn evaluate(&self, ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
        let first = out.len();
        let result = (self.find)(ctx, out);
        out[first..].iter_mut().for_each(|finding| finding.rule = self.name);
        if out.len() - first <= MAX_FINDINGS {
            return result;
        }
        out.truncate(first + MAX_FINDINGS);
        Err(RuleSkipped::Unavailable(format!("more than {MAX_FINDINGS} findings, the others are left out")))
    }
}

/// Figures in findings are means over this long.
const FIGURE_SECS: f64 = 10.0;
/// Findings of one rule at most: nobody reads more, and each is compared with all others.
pub(super) const MAX_FINDINGS: usize = 100;
/// Devices that a rule looks at more closely because of its condition, at most.
const MAX_SUSTAINED_DEVICES: usize = 10 * MAX_FINDINGS;
/// A condition is sustained when it held for this share of the window.
const SUSTAINED_SHARE: f64 = 0.8;
/// Consecutive ticks a condition may miss before its streak ends: one good second is no recovery.
const MAX_MISSED_TICKS: usize = 2;
/// Fewer ticks than this prove nothing, however long they are.
const MIN_TICKS: usize = 3;
/// Tasks with at least this much in swap are listed in the survey.
const MIN_SWAPPED_BYTES: u64 = 64 << 20;

/// Tasks that rules look at closely, from one pass over all tasks.
#[derive(Default)]
pub(super) struct TaskSurvey<'a> {
    pub(super) servers: Vec<(ProcessRow<'a>, ServerKind)>,
    pub(super) swapped_tasks: Vec<ProcessRow<'a>>,
}

impl TaskSurvey<'_> {
    pub(super) fn is_server(&self, key: TaskKey) -> bool {
        self.servers.iter().any(|(row, _)| row.key() == key)
    }
}

/// The system state with answers derived from it for rules.
pub(super) struct RuleContext<'a> {
    pub(super) system: &'a SystemState,
    task_survey: OnceCell<TaskSurvey<'a>>,
    own_processes: OnceCell<Vec<u32>>,
    rows_by_pid: RowsByPid,
}

impl<'a> RuleContext<'a> {
    pub(super) fn new(system: &'a SystemState) -> Self {
        Self { system, task_survey: OnceCell::new(), own_processes: OnceCell::new(), rows_by_pid: RowsByPid::default() }
    }

    /// The row of the process with this number, or of the thread where rows are threads.
    pub(super) fn find_by_pid(&self, pid: u32) -> Option<ProcessRow<'a>> {
        self.rows_by_pid.find(&self.system.processes, pid)
    }

    /// Whether a process is this program or a helper of it. Findings do not name those.
    pub(super) fn is_own_process(&self, pid: u32) -> bool {
        self.own_processes.get_or_init(|| self.system.own_processes()).contains(&pid)
    }

    /// CLOCK_BOOTTIME now, ns.
    pub(super) fn now_ns(&self) -> u64 {
        self.system.now().boot_ns
    }

    /// Seconds since a CLOCK_BOOTTIME.
    pub(super) fn secs_since(&self, boot_ns: u64) -> f64 {
        self.now_ns().saturating_sub(boot_ns) as f64 / 1e9
    }

    /// Seconds over which the figures of a finding are means: ten, so that its sentence keeps from tick to tick, but not
    /// longer than the trouble lasts, nor shorter than `least`.
    pub(super) fn figure_secs(&self, since_ns: u64, least: f64) -> f64 {
        self.secs_since(since_ns).clamp(least, FIGURE_SECS.max(least))
    }

    /// The value of a reading; [`RuleSkipped::Unavailable`] if there is none.
    pub(super) fn require<'r, T>(&self, reading: &'r Reading<T>) -> Result<&'r T, RuleSkipped> {
        let reason = || reading.unavailable_reason(self.now_ns()).unwrap_or_default();
        reading.ok().ok_or_else(|| RuleSkipped::Unavailable(reason()))
    }

    /// The newest slow facts; `missing` says what the rule wants of them.
    pub(super) fn require_facts(&self, missing: &'static str) -> Result<&'a SystemFacts, RuleSkipped> {
        self.system.slow_facts.latest.as_ref().ok_or(RuleSkipped::NeedsMoreData(missing))
    }

    /// The newest tick; `None` while there are only means since boot.
    pub(super) fn snapshot(&self) -> Option<&'a Snapshot> {
        Some(&*self.system.snapshot).filter(|s| !s.is_since_boot && s.seq > 0)
    }

    /// Ticks with rates of their own interval, newest first.
    pub(super) fn ticks(&self) -> impl Iterator<Item = &'a Snapshot> + use<'a> {
        self.system.history.iter().rev().map(|frame| &*frame.snapshot).filter(|s| !s.is_since_boot)
    }

    /// The ticks of the last `secs` seconds with their busiest tasks, newest first.
    pub(super) fn frames(&self, secs: f64) -> impl Iterator<Item = &'a HistoryFrame> + use<'a> {
        let frames = self.system.history.iter().rev().filter(|frame| !frame.snapshot.is_since_boot);
        within(secs, frames, |frame| frame.snapshot.interval_secs)
    }

    /// The ticks of the last `secs` seconds, newest first.
    pub(super) fn window(&self, secs: f64) -> impl Iterator<Item = &'a Snapshot> + use<'a> {
        within(secs, self.ticks(), |tick| tick.interval_secs)
    }

    /// Since when (CLOCK_BOOTTIME, ns) `test` has held, if it held for most of the last `secs` seconds. A tick
    /// for which `test` returns `None` counts as a miss. If the history is too short, `missing` says of what.
    pub(super) fn sustained(
        &self,
        secs: f64,
        test: impl Fn(&Snapshot) -> Option<bool>,
        missing: &'static str,
    ) -> Result<Option<u64>, RuleSkipped> {
        let (mut covered, mut hit_secs, mut ticks) = (0.0, 0.0, 0);
        let (mut since, mut missed_ticks) = (None, 0);
        for tick in self.ticks() {
            let in_window = covered < secs || ticks < MIN_TICKS;
            let hit = test(tick) == Some(true);
            if in_window {
                covered += tick.interval_secs;
                ticks += 1;
                hit_secs += if hit { tick.interval_secs } else { 0.0 };
            }
            // The streak of hits goes back beyond the window.
            missed_ticks = if hit && missed_ticks <= MAX_MISSED_TICKS { 0 } else { missed_ticks + 1 };
            if hit && missed_ticks == 0 {
                since = Some(tick.time.boot_ns.saturating_sub((tick.interval_secs * 1e9) as u64));
            }
            if missed_ticks > MAX_MISSED_TICKS && !in_window {
                break;
            }
        }
        if ticks < MIN_TICKS || covered + 0.2 * secs < secs {
            return Err(RuleSkipped::NeedsMoreData(missing));
        }
        Ok(since.filter(|_| hit_secs >= SUSTAINED_SHARE * covered))
    }

    /// Whether `test` held for most of the last `secs` seconds.
    pub(super) fn is_sustained(&self, secs: f64, test: impl Fn(&Snapshot) -> Option<bool>) -> bool {
        self.sustained(secs, test, "").is_ok_and(|since| since.is_some())
    }

    /// Those of the `devices` for which `test` has held for most of the last `secs` seconds, each with since when.
    /// Skipped if devices cannot be read, or no device has enough history.
    pub(super) fn sustained_devices(
        &self,
        devices: impl Iterator<Item = &'a DiskRate>,
        secs: f64,
        test: impl Fn(&Snapshot, &DiskRate) -> Option<bool>,
    ) -> Result<Vec<(&'a DiskRate, u64)>, RuleSkipped> {
        self.require(&self.system.snapshot.devices)?;
        let (mut out, mut any_evaluated) = (Vec::new(), false);
        for device in devices {
            if let Ok(since) = self.sustained(secs, |tick| test(tick, tick.device(device.id)?), "") {
                any_evaluated = true;
                out.extend(since.map(|since| (device, since)));
            }
            if out.len() >= MAX_SUSTAINED_DEVICES {
                break;
            }
        }
        let has_none = self.snapshot().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty));
        match any_evaluated || has_none {
            true => Ok(out),
            false => Err(RuleSkipped::NeedsMoreData("a few seconds of device counters")),
        }
    }

    /// Mean of a value over the last `secs` seconds, weighted by tick length; `None` before that much history exists.
    pub(super) fn mean(&self, secs: f64, get: impl Fn(&Snapshot) -> Option<f64>) -> Option<f64> {
        let (mut covered, mut sum, mut known) = (0.0, 0.0, 0.0);
        for tick in self.window(secs) {
            covered += tick.interval_secs;
            if let Some(value) = get(tick) {
                sum += value * tick.interval_secs;
                known += tick.interval_secs;
            }
        }
        (known > 0.0 && covered >= 0.8 * secs).then(|| sum / known)
    }

    /// Mean of a device's value over the last `secs` seconds.
    pub(super) fn device_mean(&self, id: DevId, secs: f64, get: impl Fn(&DiskRate) -> f64) -> Option<f64> {
        self.mean(secs, |tick| tick.device(id).map(&get))
    }

    /// Mean await of a device's requests: a tick counts by its number of requests, so that an idle second weighs little.
    pub(super) fn mean_await_ms(&self, id: DevId, secs: f64) -> Option<f64> {
        let ticks = self.window(secs).filter_map(|tick| Some((tick.device(id)?, tick.interval_secs)));
        let counts = ticks.map(|(device, secs)| (device.await_ms, device.tps * secs));
        let (sum, requests) = counts.fold((0.0, 0.0), |(sum, all), (ms, count)| (sum + ms * count, all + count));
        (requests > 0.0).then(|| sum / requests)
    }

    /// Sizes and places of a device's reads and writes over the last `secs` seconds; empty where they are not traced.
    pub(super) fn request_pattern(&self, id: DevId, secs: f64) -> RequestPattern {
        let mut pattern = RequestPattern::default();
        let latencies = self.window(secs).filter_map(|tick| tick.device(id)?.latency.as_ref());
        latencies.flat_map(|latency| &latency.kinds[..2]).for_each(|kind| pattern.add(&kind.pattern));
        pattern
    }

    /// Devices of the newest tick without partitions and paths of NVMe disks, whose I/O is their disk's.
    pub(super) fn devices(&self) -> impl Iterator<Item = &'a DiskRate> {
        let rates = self.snapshot().and_then(|s| s.devices.ok()).map(Vec::as_slice).unwrap_or_default();
        let counted = self.system.last_sample.as_ref().and_then(|sample| sample.disks.ok()).map(Vec::as_slice);
        let disks =
            counted.unwrap_or_default().iter().map(|d| (d.id, &*d.name, d.read.ios.saturating_add(d.write.ios)));
        let paths: Vec<DevId> = paths_with_heads(disks).map(|(path, _)| path).collect();
        let is_part = move |id| self.device_kind(id) == Some(DeviceKind::Partition) || paths.contains(&id);
        rates.iter().map(|rate| &**rate).filter(move |rate| !is_part(rate.id))
    }

    pub(super) fn device_kind(&self, id: DevId) -> Option<DeviceKind> {
        Some(self.system.topology.ok()?.get(id)?.kind)
    }

    /// Name of a device with its mapper name, sanitized.
    pub(super) fn device_name(&self, id: DevId) -> String {
        match self.system.topology.ok().and_then(|topology| topology.get(id)) {
            Some(device) => device.display_name().into_owned(),
            None => self.system.device_name(id),
        }
    }

    /// The device and those below it, down to the disk.
    pub(super) fn device_chain(&self, id: DevId) -> Vec<DevId> {
        match self.system.topology.ok() {
            Some(topology) if topology.get(id).is_some() => {
                topology.chain(id).into_iter().map(|link| link.device.id).collect()
            }
            _ => vec![id],
        }
    }

    /// These devices and those below them, each once.
    pub(super) fn device_chains(&self, ids: &[DevId]) -> Vec<DevId> {
        let mut seen = BTreeSet::new();
        ids.iter().flat_map(|id| self.device_chain(*id)).filter(|id| seen.insert(*id)).collect()
    }

    /// A finding about a device, which concerns the devices below it as well.
    pub(super) fn device_finding(&self, severity: Severity, id: DevId, title: String) -> Finding {
        Finding::new(severity, FindingSubject::Device(id, self.device_name(id)), title)
            .see_also(NavTarget::Device(id))
            .on_devices(self.device_chain(id))
    }

    /// The class of a device, from the disks below it.
    pub(super) fn storage_class(&self, id: DevId) -> StorageClass {
        storage_class(self.system, id)
    }

    /// Known servers and tasks with much in swap.
    pub(super) fn task_survey(&self) -> &TaskSurvey<'a> {
        self.task_survey.get_or_init(|| {
            let mut out = TaskSurvey::default();
            for row in self.system.processes.iter().filter(|row| !row.has_exited()) {
                if row.tid() != row.pid() || row.raw.kernel_thread || self.is_own_process(row.pid()) {
                    continue;
                }
                let java = || java_server_kind(row.raw.comm(), row.raw_cmdline()?);
                let kind = server_kind(row.raw.comm()).or_else(java);
                let kind = kind.filter(|_| !row.raw_cmdline().is_some_and(is_sentinel));
                out.servers.extend(kind.map(|kind| (row, kind)));
                if row.raw.swap_bytes.is_some_and(|n| n >= MIN_SWAPPED_BYTES) {
                    out.swapped_tasks.push(row);
                }
            }
            out
        })
    }

    pub(super) fn servers(&self, kind: ServerKind) -> impl Iterator<Item = ProcessRow<'a>> {
        self.task_survey().servers.iter().filter(move |server| server.1 == kind).map(|server| server.0)
    }

    /// Messages of the kernel itself (not of programs) of a class in the last `secs` seconds, newest first.
    pub(super) fn kernel_messages(
        &self,
        class: KernelLogClass,
        secs: u64,
    ) -> impl Iterator<Item = &'a LogEntry> + use<'a> {
        let from = self.system.now().wall_ns.saturating_sub((secs * 1_000_000_000) as i64);
        let recent = self.system.kernel_log.entries().rev().take_while(move |entry| entry.wall_ns >= from);
        recent.filter(move |entry| entry.class == class && entry.origin == LogOrigin::Kernel)
    }

    /// CLOCK_BOOTTIME of a wall time, ns.
    pub(super) fn wall_to_boot_ns(&self, wall_ns: i64) -> u64 {
        let now = self.system.now();
        now.boot_ns.saturating_sub(u64::try_from(now.wall_ns.saturating_sub(wall_ns)).unwrap_or(0))
    }
}

/// The first items that together cover `secs` seconds.
fn within<T>(secs: f64, items: impl Iterator<Item = T>, length: impl Fn(&T) -> f64) -> impl Iterator<Item = T> {
    let mut covered = 0.0;
    items.take_while(move |item| {
        let inside = covered < secs;
        covered += length(item);
        inside
    })
}
