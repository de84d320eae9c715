//! Gives what kernel threads do at a device to the processes that they work for.
//!
//! - **Page cache** that a flusher writes is of the process that dirtied it. The kernel side counts it request by request, with
//!   its time.
//! - **Devices above**: what threads read and write for a loop device, for encryption, parity or a snapshot is of those that
//!   use that device.
//! - **Commits**: journals and flushes are of the processes that sync.
//!
//! What is left belongs to nobody: metadata, swap, pages that were dirtied before tracing began.

use super::device_sums::{Amount, DeviceSums, Requests, Sum};
use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::syncs::SyncRate;
use crate::model::topology::DeviceKind;
use std::collections::{BTreeMap, BTreeSet};

/// What kernel threads have of a device.
#[derive(Default)]
struct KernelIo {
    reads: Amount,
    writes: Amount,
    flushes: Amount,
    /// Bytes written back of pages that kernel threads dirtied.
    writeback: f64,
}

/// `part` of `all`, 0 to 1; 0 of nothing.
fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 { (part / all).min(1.0) } else { 0.0 }
}

impl DeviceSums {
    /// Gives what kernel threads do at the device `id` to the processes that they work for.
    pub(super) fn share_out_kernel_io(&mut self, ctx: &RuleContext<'_>, id: DevId, secs: f64) {
        self.share_out(ctx, id, secs, &mut BTreeSet::new());
    }

    /// `seen`: devices that have been looked at, each of which counts once. The devices of a recording may lie above each other
    /// in a circle.
    fn share_out(&mut self, ctx: &RuleContext<'_>, id: DevId, secs: f64, seen: &mut BTreeSet<DevId>) {
        seen.insert(id);
        if !self.processes.values().any(|sum| sum.is_kernel_thread) {
            return;
        }
        let has_times = self.processes.values().any(|sum| sum.writeback_queue > 0.0 || sum.own_writebacks > 0.0);
        let mut kernel = KernelIo::default();
        for sum in self.processes.values_mut().filter(|sum| sum.is_kernel_thread) {
            kernel.reads.add(std::mem::take(&mut sum.reads), 1.0);
            kernel.writes.add(std::mem::take(&mut sum.writes), 1.0);
            kernel.flushes.add(std::mem::take(&mut sum.flushes), 1.0);
            kernel.writeback += std::mem::take(&mut sum.writeback);
            (sum.own_writeback, sum.own_writebacks, sum.writeback_queue) = (0.0, 0.0, 0.0);
        }
        if has_times {
            self.share_out_writeback(&mut kernel);
        } else {
            self.share_out_by_bytes(&mut kernel);
        }
        self.share_out_loops(&mut kernel, &users_above(ctx, id, secs, seen, |kind| kind == DeviceKind::Loop));
        let (users, is_below_worker) = (users_above(ctx, id, secs, seen, has_worker), is_below_worker(ctx, id));
        let is_shared_out = self.share_out_mapped(&kernel, &users, is_below_worker);
        if !is_shared_out && has_times && !is_below_worker {
            self.share_out_commits(&kernel, &sync_calls(ctx, id, secs));
        }
    }

    /// Page cache, by the times of its requests.
    fn share_out_writeback(&mut self, kernel: &mut KernelIo) {
        let (queue, bytes) = self.processes.values().fold((0.0, 0.0), |(queue, bytes), sum| {
            (queue + sum.writeback_queue, bytes + sum.writeback - sum.own_writeback)
        });
        // Some of it may have been written by the sync of another process.
        let (by_queue, by_bytes) = (share(kernel.writes.queue, queue), share(kernel.writes.bytes, bytes));
        let mut given = Amount::default();
        for sum in self.processes.values_mut() {
            let bytes = (sum.writeback - sum.own_writeback) * by_bytes;
            let requests = kernel.writes.requests * share(bytes, kernel.writes.bytes);
            let amount = Amount { queue: sum.writeback_queue * by_queue, requests, bytes };
            sum.writes.add(amount, 1.0);
            given.add(amount, 1.0);
        }
        kernel.writes = kernel.writes.without(given);
    }

    /// The same where recordings of earlier versions have no times: flushes as well, by bytes.
    fn share_out_by_bytes(&mut self, kernel: &mut KernelIo) {
        let own: f64 = self.processes.values().map(|sum| sum.writeback).sum();
        let all = own + kernel.writeback + self.ownerless_writeback;
        for sum in self.processes.values_mut().filter(|sum| sum.writeback > 0.0) {
            sum.writes.add(kernel.writes, share(sum.writeback, all));
            sum.flushes.add(kernel.flushes, share(sum.writeback, all));
        }
        let left = if all > 0.0 { share(kernel.writeback, all) } else { 1.0 };
        (kernel.writes, kernel.flushes) = (kernel.writes.times(left), kernel.flushes.times(left));
    }

    /// What the threads of loop devices read and write for `users`.
    fn share_out_loops(&mut self, kernel: &mut KernelIo, users: &BTreeMap<u32, Sum>) {
        self.give(&mut kernel.reads, users, Requests::Reads, |sum| &mut sum.reads);
        self.give(&mut kernel.writes, users, Requests::Writes, |sum| &mut sum.writes);
        self.give(&mut kernel.flushes, users, Requests::OnlyFlushes, |sum| &mut sum.flushes);
    }

    /// What threads do for the users of mapped devices and arrays above this one, in proportion to the queue that these have
    /// there and not here. `is_below_worker`: parity or copies for a snapshot may be written as well, so it may be more than
    /// they do there. Returns whether there are such users.
    fn share_out_mapped(&mut self, kernel: &KernelIo, users: &BTreeMap<u32, Sum>, is_below_worker: bool) -> bool {
        let queue_here = |pid: u32| self.processes.get(&pid).map_or(0.0, |sum| sum.amount(Requests::All).queue);
        let queue_above = |(pid, sum): (&u32, &Sum)| (*pid, sum.amount(Requests::All).queue - queue_here(*pid));
        let queues: Vec<(u32, f64)> = users.iter().map(queue_above).filter(|(_, queue)| *queue > 0.0).collect();
        let all: f64 = queues.iter().map(|(_, queue)| queue).sum();
        let of_kernel = kernel.reads.queue + kernel.writes.queue + kernel.flushes.queue;
        let given = if is_below_worker { 1.0 } else { share(all, of_kernel) };
        for (pid, queue) in queues {
            let sum = self.processes.entry(pid).or_default();
            let of_all = given * queue / all;
            sum.reads.add(kernel.reads, of_all);
            sum.writes.add(kernel.writes, of_all);
            sum.flushes.add(kernel.flushes, of_all);
        }
        all > 0.0
    }

    /// Gives of `kernel` as much as the users of loop devices have there, in proportion to their queue there.
    fn give(
        &mut self,
        kernel: &mut Amount,
        users: &BTreeMap<u32, Sum>,
        kind: Requests,
        part: fn(&mut Sum) -> &mut Amount,
    ) {
        let all = users.values().fold(Amount::default(), |all, sum| all.plus(sum.amount(kind)));
        let given = match kind {
            Requests::OnlyFlushes => share(all.requests, kernel.requests),
            _ => share(all.bytes, kernel.bytes),
        };
        for (pid, sum) in users {
            let own = sum.amount(kind);
            let of_users = if all.queue > 0.0 { own.queue / all.queue } else { share(own.bytes, all.bytes) };
            if of_users > 0.0 && given > 0.0 {
                part(self.processes.entry(*pid).or_default()).add(*kernel, given * of_users);
            }
        }
        *kernel = kernel.times(1.0 - given);
    }

    /// Journals and flushes, by `calls` of syncs where these are traced. A process that writes back its own pages syncs, too
    /// (O_DSYNC).
    fn share_out_commits(&mut self, kernel: &KernelIo, calls: &BTreeMap<u32, f64>) {
        let weight = |pid: &u32, sum: &Sum| calls.get(pid).copied().unwrap_or(sum.own_writebacks);
        let weights: Vec<(u32, f64)> = self.processes.iter().map(|(pid, sum)| (*pid, weight(pid, sum))).collect();
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let ownerless = share(self.ownerless_writeback, kernel.writes.bytes);
        for (pid, weight) in weights.into_iter().filter(|(_, weight)| *weight > 0.0) {
            let sum = self.processes.entry(pid).or_default();
            sum.writes.add(kernel.writes.times(1.0 - ownerless), weight / all);
            sum.flushes.add(kernel.flushes, weight / all);
        }
    }
}

/// Whether threads of the kernel may work for such a device at those below it.
fn has_worker(kind: DeviceKind) -> bool {
    use DeviceKind::{Bcache, Crypt, Dm, Drbd, Lvm, Md};
    matches!(kind, Bcache | Crypt | Dm | Drbd | Lvm | Md)
}

/// Whether threads of the kernel work at this device for a device above it, as for encryption or parity: what they do there is
/// no commit of a journal.
fn is_below_worker(ctx: &RuleContext<'_>, id: DevId) -> bool {
    !devices_above(ctx, id, |kind| has_worker(kind) && kind != DeviceKind::Lvm).is_empty()
}

/// The devices of such a kind directly above a device, or on a partition of it.
fn devices_above(ctx: &RuleContext<'_>, id: DevId, is_wanted: fn(DeviceKind) -> bool) -> Vec<DevId> {
    let Some(topology) = ctx.system.topology.ok() else { return Vec::new() };
    let is_here = |below: &DevId| {
        let partition = topology.get(*below).filter(|device| device.kind == DeviceKind::Partition);
        *below == id || partition.is_some_and(|partition| partition.parent == Some(id))
    };
    let above = topology.devices.iter().filter(|device| device.id != id && is_wanted(device.kind));
    above.filter(|device| topology.devices_below(device).iter().any(is_here)).map(|device| device.id).collect()
}

/// What each process has on the devices of such a kind above a device that have not been `seen`.
fn users_above(
    ctx: &RuleContext<'_>,
    id: DevId,
    secs: f64,
    seen: &mut BTreeSet<DevId>,
    is_wanted: fn(DeviceKind) -> bool,
) -> BTreeMap<u32, Sum> {
    let mut out = BTreeMap::<u32, Sum>::new();
    for above in devices_above(ctx, id, is_wanted) {
        if seen.contains(&above) {
            continue;
        }
        let Some(mut sums) = DeviceSums::of_device_only(ctx, above, secs) else { continue };
        sums.share_out(ctx, above, secs, seen);
        for (pid, sum) in sums.processes.iter().filter(|(_, sum)| !sum.is_kernel_thread) {
            out.entry(*pid).or_default().merge(sum);
        }
    }
    out
}

/// Traced syncs of each process on file systems of a device.
fn sync_calls(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> BTreeMap<u32, f64> {
    let mut out = BTreeMap::new();
    for (syncs, secs) in ctx.window(secs).filter_map(|tick| Some((tick.syncs.ok()?, tick.interval_secs))) {
        let is_here = |row: &&SyncRate| ctx.device_chains(&row.file.devices(ctx.system.topology.ok())).contains(&id);
        for row in syncs.rows.iter().filter(|row| row.calls_per_s > 0.0).filter(is_here) {
            *out.entry(row.file.pid).or_default() += row.calls_per_s * secs;
        }
    }
    out
}
