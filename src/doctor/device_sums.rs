//! Requests, bytes and time in the queue of a device, summed by process over the last seconds.
//!
//! Reads, writes, flushes and discards are apart. What kernel threads do for others is given to these ([`super::kernel_io`]);
//! their discards stay their own, since nothing says for whom they are.

use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::delay::QueueUse;
use crate::model::io_accounting::{IoRates, OwnerIo};
use crate::model::process::ProcessRow;
use crate::model::topology::{BlockDevice, DeviceKind};
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
    /// Flushes without data.
    OnlyFlushes,
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
    pub(super) fn times(self, factor: f64) -> Amount {
        Amount { queue: self.queue * factor, requests: self.requests * factor, bytes: self.bytes * factor }
    }

    pub(super) fn plus(mut self, other: Amount) -> Amount {
        self.add(other, 1.0);
        self
    }

    pub(super) fn add(&mut self, other: Amount, factor: f64) {
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
    pub(super) reads: Amount,
    pub(super) writes: Amount,
    pub(super) flushes: Amount,
    discards: Amount,
    /// Bytes written back of pages that it dirtied.
    pub(super) writeback: f64,
    /// Those of them that it wrote back itself, and in how many extents.
    pub(super) own_writeback: f64,
    pub(super) own_writebacks: f64,
    /// Queue of the requests with which others wrote back the rest.
    pub(super) writeback_queue: f64,
    /// It works for others.
    pub(super) is_kernel_thread: bool,
}

impl Sum {
    fn add_rates(&mut self, rates: &IoRates, secs: f64) {
        let amount = |queue, requests, bytes| Amount { queue, requests, bytes };
        self.reads.add(amount(rates.reads_in_flight, rates.reads_per_s, rates.read_bytes_per_s), secs);
        self.writes.add(amount(rates.writes_in_flight, rates.writes_per_s, rates.write_bytes_per_s), secs);
        self.flushes.add(amount(rates.flushes_in_flight, rates.flushes_per_s, 0.0), secs);
        self.discards.add(amount(rates.discards_in_flight, rates.discards_per_s, rates.discard_bytes_per_s), secs);
        self.writeback += rates.writeback_bytes_per_s * secs;
        self.own_writeback += rates.own_writeback_bytes_per_s * secs;
        self.own_writebacks += rates.own_writebacks_per_s * secs;
        self.writeback_queue += rates.writeback_in_flight * secs;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.reads.add(other.reads, 1.0);
        self.writes.add(other.writes, 1.0);
        self.flushes.add(other.flushes, 1.0);
        self.discards.add(other.discards, 1.0);
        self.writeback += other.writeback;
        self.own_writeback += other.own_writeback;
        self.own_writebacks += other.own_writebacks;
        self.writeback_queue += other.writeback_queue;
    }

    pub(super) fn amount(&self, requests: Requests) -> Amount {
        use Requests::{All, Data, Discards, Flushes, OnlyFlushes, Reads, Writes};
        let parts = [
            (self.reads, matches!(requests, All | Data | Reads)),
            (self.writes, matches!(requests, All | Data | Writes | Flushes)),
            (self.flushes, matches!(requests, All | Flushes | OnlyFlushes)),
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
    pub(super) ownerless_writeback: f64,
}

impl DeviceSums {
    /// Over the last `secs` seconds, as far as they were traced; `None` if they were not.
    pub(super) fn of(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<Self> {
        Self::of_devices(ctx, &counted_devices(ctx, id, secs), secs)
    }

    /// The same without looking below a device that has no I/O of its own.
    pub(super) fn of_device_only(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<Self> {
        Self::of_devices(ctx, &[id], secs)
    }

    fn of_devices(ctx: &RuleContext<'_>, devices: &[DevId], secs: f64) -> Option<Self> {
        let mut out = Self::default();
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
            sum.is_kernel_thread = is_worker(ctx, *pid, secs);
        }
        out.merge_servers(ctx);
        out.merge_children(ctx, secs);
        Some(out)
    }

    /// Adds up kernel threads of one name that do not work for others, as those of a server.
    fn merge_servers(&mut self, ctx: &RuleContext<'_>) {
        let mut first_of = BTreeMap::new();
        let pids: Vec<u32> =
            self.processes.iter().filter(|(_, sum)| !sum.is_kernel_thread).map(|(pid, _)| *pid).collect();
        for pid in pids {
            let row = ctx.find_by_pid(pid).filter(|row| row.raw.kernel_thread);
            let Some(name) = row.map(|row| row.comm().into_owned()) else { continue };
            let first = *first_of.entry(name).or_insert(pid);
            if first != pid
                && let Some(other) = self.processes.remove(&pid)
            {
                self.processes.entry(first).or_default().merge(&other);
            }
        }
    }

    /// Adds the I/O of short-lived processes of one name to the process that started them, or where that is not known to
    /// the newest of them.
    fn merge_children(&mut self, ctx: &RuleContext<'_>, secs: f64) {
        let has_ended = |pid: &u32| ctx.find_by_pid(*pid).is_none_or(|row| row.has_exited());
        let mut by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (pid, _) in self.processes.iter().filter(|(pid, sum)| !sum.is_kernel_thread && has_ended(pid)) {
            by_name.entry(traced_name(ctx, *pid, secs).unwrap_or_default()).or_default().push(*pid);
        }
        by_name.retain(|name, pids| !name.is_empty() && pids.len() >= MIN_CHILDREN);
        for (name, mut pids) in by_name {
            let parents = parents_of(ctx, &pids, secs);
            let mut all: Vec<u32> = parents.values().copied().collect();
            all.sort_unstable();
            all.dedup();
            let parent = all.first().copied().filter(|_| all.len() == 1);
            // A child that has just been started has the name of its parent until it runs a program.
            let began_ns = ctx.now_ns().saturating_sub((secs * 1e9) as u64);
            let parent_name = parent.and_then(|pid| Some(ctx.find_by_pid(pid)?.comm().into_owned()));
            let is_new =
                |row: &ProcessRow<'_>| row.key().start_ns() >= began_ns && Some(&*row.comm()) == parent_name.as_deref();
            let is_alike = |row: &ProcessRow<'_>| row.comm() == name || is_new(row);
            pids.extend(self.processes.keys().filter(|pid| {
                let row = ctx.find_by_pid(**pid);
                row.is_some_and(|row| !row.has_exited() && Some(row.raw.ppid) == parent && is_alike(&row))
            }));
            // Of several parents, each has those that are known to be its own; of the others the newest stands for all.
            let newest = pids.iter().filter(|pid| parent.is_none() && !parents.contains_key(pid)).max().copied();
            for pid in pids {
                let receiver =
                    parent.or_else(|| parents.get(&pid).copied()).or(newest).filter(|receiver| *receiver != pid);
                let Some((receiver, child)) =
                    receiver.and_then(|receiver| Some((receiver, self.processes.remove(&pid)?)))
                else {
                    continue;
                };
                self.processes.entry(receiver).or_default().merge(&child);
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
}

/// Whether a device passes on what it gets, without requests of its own.
pub(super) fn passes_on(ctx: &RuleContext<'_>, id: DevId) -> bool {
    use DeviceKind::{Crypt, Dm, Lvm, Md, Multipath, Partition};
    matches!(ctx.device_kind(id), Some(Crypt | Dm | Lvm | Md | Multipath | Partition))
}

/// Of what the disks below a device do, at most this share is for something else.
const MAX_OTHERS: f64 = 0.25;

/// Whether what lies below a partition or a mapped device does little for other devices: otherwise the users below are not its
/// own.
pub(super) fn is_main_user_below(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> bool {
    let Some(topology) = ctx.system.topology.ok() else { return true };
    let chain = ctx.device_chain(id);
    let bytes = |id| ctx.device_mean(id, secs, |device| device.read_mb_per_s + device.write_mb_per_s).unwrap_or(0.0);
    chain.iter().skip(1).all(|lower| {
        let is_other =
            |device: &&BlockDevice| !chain.contains(&device.id) && topology.devices_below(device).contains(lower);
        let others: f64 = topology.devices.iter().filter(is_other).map(|device| bytes(device.id)).sum();
        others <= MAX_OTHERS * bytes(*lower)
    })
}

/// The devices whose I/O is that of a device: itself, or the first below it whose I/O is counted. A partition has none of its
/// own; neither have device mapper and md in recordings of earlier versions.
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

/// Kernel threads that do the I/O of others, by the beginning of their names. Other kernel threads do their own: they serve
/// (nfsd), copy or compare the members of an array.
const WORKERS: [&str; 8] = ["kworker/", "jbd2/", "xfsaild/", "btrfs-", "kswapd", "loop", "flush-", "dmcrypt_write/"];

/// Whether it does the I/O of others. Workers of the kernel come and go; those that have ended are known by their names.
fn is_worker(ctx: &RuleContext<'_>, pid: u32, secs: f64) -> bool {
    // `md0_raid5`, not `md0_resync`.
    let is_array = |name: &str| name.starts_with("md") && name.contains("_raid");
    let has_name = |name: &str| is_array(name) || WORKERS.iter().any(|begin| name.starts_with(begin));
    match ctx.find_by_pid(pid) {
        Some(row) => row.raw.kernel_thread && has_name(&row.comm()),
        None => traced_name(ctx, pid, secs).is_some_and(|name| name.starts_with("kworker/")),
    }
}

/// The name of a process at the time of its I/O, sanitized.
pub(super) fn traced_name(ctx: &RuleContext<'_>, pid: u32, secs: f64) -> Option<String> {
    ctx.window(secs).filter_map(|tick| tick.io_attribution.ok()?.process_name(pid)).map(|name| sanitize(&**name)).next()
}

/// The living programs that started these processes, as far as the task lists of the window have them.
fn parents_of(ctx: &RuleContext<'_>, pids: &[u32], secs: f64) -> BTreeMap<u32, u32> {
    let is_program = |pid: u32| {
        let row = ctx.find_by_pid(pid);
        row.is_some_and(|row| !row.raw.kernel_thread && !row.has_exited())
    };
    let mut out = BTreeMap::new();
    for frame in ctx.frames(secs) {
        let children = frame.tasks.iter().filter(|row| row.raw.ppid > 1 && pids.contains(&row.pid()));
        out.extend(children.map(|row| (row.pid(), row.raw.ppid)));
    }
    out.retain(|_, parent| is_program(*parent));
    out
}
