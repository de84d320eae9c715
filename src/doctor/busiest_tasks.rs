//! The tasks with most I/O, and those that are stalled most, over some seconds.

use super::format;
use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::OwnerIo;
use crate::model::process::TaskKey;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Processes considered by [`RuleContext::attributed_io`].
const MAX_ATTRIBUTED_PROCESSES: usize = 32;

/// A process with its mean I/O.
pub(super) struct IoTask {
    /// The process; of several threads the first one seen.
    pub(super) key: TaskKey,
    /// `fio (1234)`, sanitized.
    pub(super) name: String,
    pub(super) read_bytes_per_s: f64,
    pub(super) write_bytes_per_s: f64,
    /// A kernel thread does I/O for others.
    pub(super) is_kernel_thread: bool,
}

impl IoTask {
    pub(super) fn bytes_per_s(&self) -> f64 {
        self.read_bytes_per_s + self.write_bytes_per_s
    }
}

/// A process stalled by memory management.
pub(super) struct StalledTask {
    /// The process; it may have exited.
    pub(super) key: TaskKey,
    /// `dd (1234)`, sanitized.
    pub(super) name: String,
    pub(super) ms_per_s: f64,
    /// The longest stall, ms.
    pub(super) max_ms: f64,
    pub(super) device: Option<DevId>,
}

impl StalledTask {
    /// Share of its time spent stalled, as text.
    pub(super) fn percent(&self) -> String {
        format::percent(self.ms_per_s / 10.0)
    }
}

/// A process with the mean bytes per second that tracing attributed to it.
pub(super) struct AttributedProcess {
    /// `fio (1234)`, sanitized.
    pub(super) name: String,
    pub(super) bytes_per_s: f64,
}

impl RuleContext<'_> {
    /// Mean I/O of processes over the last `secs` seconds, busiest first, as far as they were among the busiest of a
    /// tick.
    pub(super) fn top_io_tasks(&self, secs: f64) -> Vec<IoTask> {
        let mut covered = 0.0;
        let mut out: Vec<IoTask> = Vec::new();
        for frame in self.frames(secs) {
            let interval = frame.snapshot.interval_secs;
            // A tick whose task scan has not arrived yet does not count.
            covered += if frame.tasks.is_empty() { 0.0 } else { interval };
            for row in frame.tasks.iter().filter(|row| !self.is_own_process(row.pid())) {
                let index = out.iter().position(|t| t.key.pid == row.pid()).unwrap_or_else(|| {
                    out.push(IoTask {
                        key: row.key(),
                        name: row.label(),
                        read_bytes_per_s: 0.0,
                        write_bytes_per_s: 0.0,
                        is_kernel_thread: row.raw.kernel_thread,
                    });
                    out.len() - 1
                });
                out[index].read_bytes_per_s += row.rates().read_bytes_per_s.unwrap_or(0.0) * interval;
                out[index].write_bytes_per_s += row.rates().write_bytes_per_s.unwrap_or(0.0) * interval;
            }
        }
        for task in &mut out {
            task.read_bytes_per_s /= f64::max(covered, 1e-9);
            task.write_bytes_per_s /= f64::max(covered, 1e-9);
        }
        out.sort_by(|a, b| b.bytes_per_s().total_cmp(&a.bytes_per_s()));
        out
    }

    /// Tasks stalled over the last `secs` seconds, most stalled first; empty where stalls are not traced. `kind` is
    /// an index as in [`crate::model::memory_stalls`].
    pub(super) fn stalled_tasks(&self, secs: f64, kind: usize) -> Vec<StalledTask> {
        let mut covered = 0.0;
        let mut out: Vec<StalledTask> = Vec::new();
        for tick in self.window(secs) {
            let Some(stalls) = tick.memory_stalls.ok() else { continue };
            covered += tick.interval_secs;
            for task in stalls.processes.iter().filter(|task| task.rates[kind].count > 0) {
                if self.is_own_process(task.key.pid) {
                    continue;
                }
                let (stall, ms) = (task.rates[kind], task.rates[kind].ms_per_s * tick.interval_secs);
                match out.iter_mut().find(|t| t.key == task.key) {
                    Some(total) => {
                        total.ms_per_s += ms;
                        total.max_ms = total.max_ms.max(stall.max_ms);
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
        out.iter_mut().for_each(|task| task.ms_per_s /= f64::max(covered, 1e-9));
        out.sort_by(|a, b| b.ms_per_s.total_cmp(&a.ms_per_s));
        out
    }

    /// Mean of the I/O that tracing attributed to processes over the last `secs` seconds, largest first, without
    /// kernel threads, which do I/O for others. `None` where it was not traced.
    pub(super) fn attributed_io(
        &self,
        secs: f64,
        get: impl Fn(&OwnerIo<u32>) -> f64,
    ) -> Option<Vec<AttributedProcess>> {
        let mut covered = 0.0;
        let mut sums: BTreeMap<u32, (f64, Option<Arc<str>>)> = BTreeMap::new();
        for tick in self.window(secs) {
            covered += tick.interval_secs;
            let attribution = tick.io_attribution.ok()?;
            for process in &attribution.processes {
                let name = || attribution.process_name(process.owner).cloned();
                let sum = sums.entry(process.owner).or_insert_with(|| (0.0, name()));
                sum.0 += get(process) * tick.interval_secs;
            }
        }
        let mut largest: Vec<_> = sums.into_iter().filter(|(_, (sum, _))| *sum > 0.0).collect();
        largest.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        let is_kernel_thread = |pid| self.find_by_pid(pid).is_some_and(|row| row.raw.kernel_thread);
        largest.retain(|(pid, _)| !is_kernel_thread(*pid) && !self.is_own_process(*pid));
        largest.truncate(MAX_ATTRIBUTED_PROCESSES);
        let process = |(pid, (sum, name)): (u32, (f64, Option<Arc<str>>))| AttributedProcess {
            name: format::task(&name.map_or("?".into(), |name| sanitize(&*name)), pid),
            bytes_per_s: sum / covered,
        };
        (covered > 0.0).then(|| largest.into_iter().map(process).collect())
    }
}
