//! Requests, bytes and time in the queue of a device, summed by process over the last seconds.
//!
//! Reads, writes, flushes and discards are apart. What a kernel thread writes and flushes is shared out to the processes
//! that dirtied the pages; its discards stay its own, since nothing says for whom they are.

use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::delay::QueueUse;
use crate::model::io_accounting::{IoRates, OwnerIo};
use crate::model::topology::DeviceKind;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;

/// A process with fewer requests is not one that waits for the device.
const MIN_REQUESTS_PER_S: f64 = 1.0;
/// As many processes of one name that have ended are the short-lived children of a script.
const MIN_CHILDREN: usize = 3;

/// Which requests count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requests {
    All,
    Reads,
    Writes,
    /// Flushes, and the writes that carry one or wait behind it.
    Flushes,
    Discards,
    /// Reads and writes.
    Data,
}

/// Requests in flight times seconds, requests, and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amount {
    pub(super) queue: f64,
    pub(super) requests: f64,
    pub(super) bytes: f64,
}

impl Amount {
    fn add(&mut self, other: Amount, factor: f64) {
        self.queue += other.queue * factor;
        self.requests += other.requests * factor;
        self.bytes += other.bytes * factor;
    }

    /// What is left of it without another one.
    pub(super) fn without(self, other: Amount) -> Amount {
        let minus = |all: f64, part: f64| (all - part).max(0.0);
        Amount {
            queue: minus(self.queue, other.queue),
            requests: minus(self.requests, other.requests),
            bytes: minus(self.bytes, other.bytes),
        }
    }
}

/// What one process has on a device.
#[derive(Default)]
pub(super) struct Sum {
    reads: Amount,
    writes: Amount,
    flushes: Amount,
    discards: Amount,
    /// Bytes written back for the process.
    writeback: f64,
    is_kernel_thread: bool,
}

impl Sum {
    fn add_rates(&mut self, rates: &IoRates, secs: f64) {
        let amount = |queue, requests, bytes| Amount { queue, requests, bytes };
        self.reads.add(amount(rates.reads_in_flight, rates.reads_per_s, rates.read_bytes_per_s), secs);
        self.writes.add(amount(rates.writes_in_flight, rates.writes_per_s, rates.write_bytes_per_s), secs);
        self.flushes.add(amount(rates.flushes_in_flight, rates.flushes_per_s, 0.0), secs);
        self.discards.add(amount(rates.discards_in_flight, rates.discards_per_s, rates.discard_bytes_per_s), secs);
        self.writeback += rates.writeback_bytes_per_s * secs;
    }

    fn merge(&mut self, other: &Self) {
        self.reads.add(other.reads, 1.0);
        self.writes.add(other.writes, 1.0);
        self.flushes.add(other.flushes, 1.0);
        self.discards.add(other.discards, 1.0);
        self.writeback += other.writeback;
    }

    pub(super) fn amount(&self, requests: Requests) -> Amount {
        use Requests::{All, Data, Discards, Flushes, Reads, Writes};
        let parts = [
            (self.reads, matches!(requests, All | Data | Reads)),
            (self.writes, matches!(requests, All | Data | Writes | Flushes)),
            (self.flushes, matches!(requests, All | Flushes)),
            (self.discards, matches!(requests, All | Discards)),
        ];
        parts.into_iter().filter(|(_, counts)| *counts).fold(Amount::default(), |mut sum, (part, _)| {
            sum.add(part, 1.0);
            sum
        })
    }
}

/// The sums of a device, by process id.
#[derive(Default)]
pub(super) struct DeviceSums {
    pub(super) processes: BTreeMap<u32, Sum>,
    pub(super) covered_secs: f64,
    /// Bytes written back that belong to no process.
    ownerless_writeback: f64,
}

impl DeviceSums {
    /// Over the last `secs` seconds, as far as they were traced; `None` if they were not.
    pub(super) fn of(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<Self> {
        let mut out = Self::default();
        let devices = counted_devices(ctx, id, secs);
        // Tracing is loaded while the first ticks pass.
        let traced = ctx.window(secs).filter_map(|tick| Some((tick.io_attribution.ok()?, tick.interval_secs)));
        for (attribution, secs) in traced {
            out.covered_secs += secs;
            let on_device = |process| devices.iter().filter_map(move |id| OwnerIo::on_device(process, *id));
            for (process, rates) in attribution.processes.iter().flat_map(|p| on_device(p).map(move |rates| (p, rates)))
            {
                out.processes.entry(process.owner).or_default().add_rates(rates, secs);
            }
            let apart = attribution.unattributed.iter().filter(|(device, _)| devices.contains(device));
            out.ownerless_writeback += apart.map(|(_, io)| io.unknown + io.metadata + io.swap).sum::<f64>() * secs;
        }
        if out.covered_secs <= 0.0 {
            return None;
        }
        for (pid, sum) in &mut out.processes {
            sum.is_kernel_thread = is_kernel_thread(ctx, *pid, secs);
        }
        out.merge_children(ctx, secs);
        Some(out)
    }

    /// Adds the I/O of short-lived processes of one name to the process that started them, or where that is not known to
    /// the newest of them.
    fn merge_children(&mut self, ctx: &RuleContext<'_>, secs: f64) {
        let has_ended = |pid: &u32| ctx.system.processes.find_by_pid(*pid).is_none_or(|row| row.has_exited());
        let mut by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (pid, _) in self.processes.iter().filter(|(pid, sum)| !sum.is_kernel_thread && has_ended(pid)) {
            by_name.entry(traced_name(ctx, *pid, secs).unwrap_or_default()).or_default().push(*pid);
        }
        by_name.retain(|name, pids| !name.is_empty() && pids.len() >= MIN_CHILDREN);
        for (name, mut pids) in by_name {
            let parent = parent_of(ctx, &name, secs);
            pids.extend(self.processes.keys().filter(|pid| {
                let row = ctx.system.processes.find_by_pid(**pid);
                row.is_some_and(|row| !row.has_exited() && row.comm() == name && Some(row.raw.ppid) == parent)
            }));
            let Some(heir) = parent.or(pids.last().copied()) else { continue };
            for pid in pids.into_iter().filter(|pid| *pid != heir) {
                let Some(child) = self.processes.remove(&pid) else { continue };
                self.processes.entry(heir).or_default().merge(&child);
            }
        }
    }

    pub(super) fn total(&self, requests: Requests) -> Amount {
        self.processes.values().fold(Amount::default(), |mut total, sum| {
            total.add(sum.amount(requests), 1.0);
            total
        })
    }

    /// What kernel threads have of it.
    pub(super) fn kernel_threads(&self, requests: Requests) -> Amount {
        self.processes.values().filter(|sum| sum.is_kernel_thread).fold(Amount::default(), |mut total, sum| {
            total.add(sum.amount(requests), 1.0);
            total
        })
    }

    /// Mean times of the requests that processes issue themselves, ms; only of those with [`MIN_REQUESTS_PER_S`].
    pub(super) fn request_ms(&self, requests: Requests) -> BTreeMap<u32, f64> {
        let own = self.processes.iter().filter(|(_, sum)| !sum.is_kernel_thread);
        let amounts = own.map(|(pid, sum)| (*pid, sum.amount(requests)));
        let enough = amounts.filter(|(_, amount)| amount.requests >= MIN_REQUESTS_PER_S * self.covered_secs.max(1e-9));
        enough.map(|(pid, amount)| (pid, amount.queue / amount.requests * 1e3)).collect()
    }

    /// How these processes, and what else is named, use the device together.
    pub(super) fn queue_use(&self, pids: impl Iterator<Item = u32>, more: Amount, requests: Requests) -> QueueUse {
        let mut sum = more;
        pids.filter_map(|pid| self.processes.get(&pid)).for_each(|own| sum.add(own.amount(requests), 1.0));
        let per_s = |amount: f64| amount / self.covered_secs.max(1e-9);
        QueueUse { in_flight: per_s(sum.queue), requests_per_s: per_s(sum.requests) }
    }

    /// Gives what kernel threads write to the processes that dirtied the pages, and what is left, dirtied or read by
    /// threads of loop devices, to the processes that use those devices.
    pub(super) fn share_out_kernel_io(&mut self, loop_users: &BTreeMap<u32, f64>) {
        let (mut reads, mut writes, mut flushes) = (Amount::default(), Amount::default(), Amount::default());
        let mut kernel_writeback = 0.0;
        for sum in self.processes.values_mut().filter(|sum| sum.is_kernel_thread) {
            reads.add(std::mem::take(&mut sum.reads), 1.0);
            writes.add(std::mem::take(&mut sum.writes), 1.0);
            flushes.add(std::mem::take(&mut sum.flushes), 1.0);
            kernel_writeback += std::mem::take(&mut sum.writeback);
        }
        let own: f64 = self.processes.values().map(|sum| sum.writeback).sum();
        let all = own + kernel_writeback + self.ownerless_writeback;
        let of_all = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        for sum in self.processes.values_mut().filter(|sum| sum.writeback > 0.0) {
            sum.writes.add(writes, of_all(sum.writeback));
            sum.flushes.add(flushes, of_all(sum.writeback));
        }
        let left = if all > 0.0 { of_all(kernel_writeback) } else { 1.0 };
        let loop_bytes: f64 = loop_users.values().sum();
        for (pid, bytes) in loop_users.iter().filter(|(_, bytes)| **bytes > 0.0) {
            let sum = self.processes.entry(*pid).or_default();
            sum.reads.add(reads, bytes / loop_bytes);
            sum.writes.add(writes, left * bytes / loop_bytes);
            sum.flushes.add(flushes, left * bytes / loop_bytes);
        }
    }
}

/// Whether a device passes on what it gets, without requests of its own.
pub(super) fn passes_on(ctx: &RuleContext<'_>, id: DevId) -> bool {
    use DeviceKind::{Crypt, Dm, Lvm, Md, Multipath, Partition};
    matches!(ctx.device_kind(id), Some(Crypt | Dm | Lvm | Md | Multipath | Partition))
}

/// The devices whose requests are those of a device: itself, or the first below it that have requests of their own. Device
/// mapper and md pass on what they get without a request that could be counted.
pub(super) fn counted_devices(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Vec<DevId> {
    let is_counted = |id: DevId| {
        let mut traced = ctx.window(secs).filter_map(|tick| tick.io_attribution.ok());
        traced.any(|attribution| attribution.processes.iter().any(|process| process.on_device(id).is_some()))
    };
    if !passes_on(ctx, id) || is_counted(id) {
        return vec![id];
    }
    let below = ctx.device_chain(id).into_iter().skip(1);
    let below: Vec<DevId> = below.filter(|below| !passes_on(ctx, *below) && is_counted(*below)).collect();
    // What lies below one that counts has the same requests once more.
    let lies_below = |id: &DevId| below.iter().any(|above| above != id && ctx.device_chain(*above).contains(id));
    below.iter().filter(|id| !lies_below(id)).copied().collect()
}

/// Whether it does the I/O of others. A thread that copies or compares the members of an array does its own. Workers of the
/// kernel come and go; those that have ended are known by their names.
fn is_kernel_thread(ctx: &RuleContext<'_>, pid: u32, secs: f64) -> bool {
    let is_sync = |name: &str| name.starts_with("md") && name.ends_with("_resync");
    match ctx.system.processes.find_by_pid(pid) {
        Some(row) => row.raw.kernel_thread && !is_sync(&row.comm()),
        None => traced_name(ctx, pid, secs).is_some_and(|name| name.starts_with("kworker/")),
    }
}

/// The name of a process at the time of its I/O, sanitized.
pub(super) fn traced_name(ctx: &RuleContext<'_>, pid: u32, secs: f64) -> Option<String> {
    ctx.window(secs).filter_map(|tick| tick.io_attribution.ok()?.process_name(pid)).map(|name| sanitize(&**name)).next()
}

/// The living process that started processes of this name, as the task lists of the window have it.
fn parent_of(ctx: &RuleContext<'_>, name: &str, secs: f64) -> Option<u32> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for frame in ctx.frames(secs) {
        for row in frame.tasks.iter().filter(|row| row.comm() == name && row.raw.ppid > 1) {
            *counts.entry(row.raw.ppid).or_default() += 1;
        }
    }
    let is_program = |pid: u32| {
        let row = ctx.system.processes.find_by_pid(pid);
        row.is_some_and(|row| !row.raw.kernel_thread && !row.has_exited())
    };
    counts.into_iter().filter(|(pid, _)| is_program(*pid)).max_by_key(|(_, count)| *count).map(|(pid, _)| pid)
}

/// Bytes that processes read and write on loop devices with a backing file on this device.
pub(super) fn loop_users(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> BTreeMap<u32, f64> {
    let mut out = BTreeMap::new();
    let Some(topology) = ctx.system.topology.ok() else { return out };
    let loops = topology.devices.iter().filter(|device| device.kind == DeviceKind::Loop && device.id != id);
    for device in loops.filter(|device| ctx.device_chain(device.id).contains(&id)) {
        let Some(sums) = DeviceSums::of(ctx, device.id, secs) else { continue };
        for (pid, sum) in sums.processes.iter().filter(|(_, sum)| !sum.is_kernel_thread) {
            *out.entry(*pid).or_default() += sum.amount(Requests::All).bytes + sum.writeback;
        }
    }
    out
}
