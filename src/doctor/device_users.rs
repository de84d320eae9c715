//! Who uses a device: processes by their share of its queue.
//!
//! Bytes mislead: a random reader may keep a disk busy with a hundredth of the bytes of a stream beside it. So a process
//! is judged by the time its requests spend on the device, which is its share of the mean queue (Little's law). Writes
//! of a kernel thread are those of the processes that dirtied the pages, in proportion to what is written back for each.

use super::finding::InvolvedTask;
use super::format;
use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::io_accounting::OwnerIo;
use crate::model::io_accounting::delay::{QueueUse, gain_without};
use crate::model::process::TaskKey;
use crate::model::snapshot::Snapshot;
use crate::model::topology::DeviceKind;
use crate::sanitize::sanitize;
use std::collections::BTreeMap;

/// A process with a smaller share is not named ...
const MIN_SHARE: f64 = 0.2;
/// ... nor are more than these.
const MAX_NAMED: usize = 3;
/// Others wait behind those that together have this share of the queue.
const MOST: f64 = 0.5;
/// From this share of kernel threads on nearly all of the queue is writeback.
const WRITEBACK_ONLY: f64 = 0.95;
/// A process with fewer requests is not one that waits for the device.
const MIN_REQUESTS_PER_S: f64 = 1.0;
/// As many processes of one name that have ended are the short-lived children of a script.
const MIN_CHILDREN: usize = 3;
/// Without tracing, a process is named when it issues at least this share of the bytes ...
const DOMINANT_SHARE: f64 = 0.6;
/// ... at most this many times what the device transferred: far more went elsewhere, or into the cache ...
const MAX_MISMATCH: f64 = 2.0;
/// ... and when the device transfers at least this share of what all disks do.
pub(super) const MAIN_DEVICE_SHARE: f64 = 0.8;

/// Which requests count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requests {
    All,
    Reads,
    Writes,
}

/// A process that uses a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeviceUser {
    pub(super) pid: u32,
    /// `fio (1234)`, sanitized.
    pub(super) name: String,
    /// Identity, if it is in the task list.
    pub(super) key: Option<TaskKey>,
    /// Share of the device's queue, or of its bytes where times are not traced; 0 to 1.
    pub(super) share: f64,
    /// Mean bytes per second read from and written to the device, written back for it included.
    pub(super) bytes_per_s: f64,
}

/// The processes that use a device, largest share first.
pub(super) struct DeviceUsers {
    pub(super) users: Vec<DeviceUser>,
    /// What the shares are of: `queue` or `bytes`.
    pub(super) of: &'static str,
    /// Share of kernel threads, as flushers, in the queue or bytes, 0 to 1; it is part of the users' shares.
    kernel_share: f64,
    /// Those with a small share of the queue and requests of their own, longest requests first.
    light_users: Vec<DelayedUser>,
}

/// A process with a small share of the queue that waits long for its own requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DelayedUser {
    pub(super) user: DeviceUser,
    /// Mean time of its requests, ms.
    pub(super) request_ms: f64,
    /// Share of that time that it would not wait if those with most of the queue stopped, 0 to 1, on a device that serves one
    /// request after the other; others serve several at once, and less would go.
    pub(super) gain: Option<f64>,
}

impl DelayedUser {
    /// `postgres (12) 48.0 ms, up to 88% of it behind others`.
    pub(super) fn describe(&self) -> String {
        let gain = self.gain.map(|gain| format!(", up to {} of it behind others", format::percent(gain * 100.0)));
        format!("{} {}{}", self.user.name, format::ms(self.request_ms), gain.unwrap_or_default())
    }
}

/// Requests in flight times seconds, requests, and bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    queue: f64,
    requests: f64,
    bytes: f64,
}

impl Amount {
    fn add(&mut self, other: Amount, factor: f64) {
        self.queue += other.queue * factor;
        self.requests += other.requests * factor;
        self.bytes += other.bytes * factor;
    }
}

#[derive(Default)]
struct Sum {
    reads: Amount,
    writes: Amount,
    /// Bytes written back for the process.
    writeback: f64,
    is_kernel_thread: bool,
}

impl Sum {
    fn merge(&mut self, other: &Self) {
        self.reads.add(other.reads, 1.0);
        self.writes.add(other.writes, 1.0);
        self.writeback += other.writeback;
    }

    fn amount(&self, requests: Requests) -> Amount {
        let mut out = Amount::default();
        out.add(self.reads, f64::from(requests != Requests::Writes));
        out.add(self.writes, f64::from(requests != Requests::Reads));
        out
    }
}

/// The sums of a device, by process id.
#[derive(Default)]
struct DeviceSums {
    processes: BTreeMap<u32, Sum>,
    covered_secs: f64,
    /// Bytes written back that belong to no process.
    ownerless_writeback: f64,
}

impl DeviceSums {
    /// Over the last `secs` seconds, as far as they were traced; `None` if they were not.
    fn of(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<Self> {
        let mut out = Self::default();
        let devices = counted_devices(ctx, id, secs);
        // Tracing is loaded while the first ticks pass.
        let traced = ctx.window(secs).filter_map(|tick| Some((tick.io_attribution.ok()?, tick.interval_secs)));
        for (attribution, secs) in traced {
            out.covered_secs += secs;
            let on_device = |process| devices.iter().filter_map(move |id| OwnerIo::on_device(process, *id));
            for (process, rates) in attribution.processes.iter().flat_map(|p| on_device(p).map(move |rates| (p, rates)))
            {
                let sum = out.processes.entry(process.owner).or_default();
                let (queue, requests, bytes) = (rates.reads_in_flight, rates.reads_per_s, rates.read_bytes_per_s);
                sum.reads.add(Amount { queue, requests, bytes }, secs);
                let (queue, requests, bytes) = (rates.writes_in_flight, rates.writes_per_s, rates.write_bytes_per_s);
                sum.writes.add(Amount { queue, requests, bytes }, secs);
                sum.writeback += rates.writeback_bytes_per_s * secs;
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

    fn total(&self, requests: Requests) -> Amount {
        self.processes.values().fold(Amount::default(), |mut total, sum| {
            total.add(sum.amount(requests), 1.0);
            total
        })
    }

    /// What kernel threads have of it.
    fn kernel_threads(&self, requests: Requests) -> Amount {
        self.processes.values().filter(|sum| sum.is_kernel_thread).fold(Amount::default(), |mut total, sum| {
            total.add(sum.amount(requests), 1.0);
            total
        })
    }

    /// Mean times of the requests that processes issue themselves, ms; only of those with [`MIN_REQUESTS_PER_S`].
    fn request_ms(&self, requests: Requests) -> BTreeMap<u32, f64> {
        let own = self.processes.iter().filter(|(_, sum)| !sum.is_kernel_thread);
        let amounts = own.map(|(pid, sum)| (*pid, sum.amount(requests)));
        let enough = amounts.filter(|(_, amount)| amount.requests >= MIN_REQUESTS_PER_S * self.covered_secs.max(1e-9));
        enough.map(|(pid, amount)| (pid, amount.queue / amount.requests * 1e3)).collect()
    }

    /// How these processes together use the device.
    fn queue_use<'a>(&self, users: impl Iterator<Item = &'a DeviceUser>, requests: Requests) -> QueueUse {
        let mut sum = Amount::default();
        users.filter_map(|user| self.processes.get(&user.pid)).for_each(|own| sum.add(own.amount(requests), 1.0));
        let per_s = |amount: f64| amount / self.covered_secs.max(1e-9);
        QueueUse { in_flight: per_s(sum.queue), requests_per_s: per_s(sum.requests) }
    }

    /// Gives what kernel threads write to the processes that dirtied the pages, and what is left, dirtied or read by
    /// threads of loop devices, to the processes that use those devices.
    fn share_out_kernel_io(&mut self, loop_users: &BTreeMap<u32, f64>) {
        let (mut reads, mut writes, mut kernel_writeback) = (Amount::default(), Amount::default(), 0.0);
        for sum in self.processes.values_mut().filter(|sum| sum.is_kernel_thread) {
            reads.add(std::mem::take(&mut sum.reads), 1.0);
            writes.add(std::mem::take(&mut sum.writes), 1.0);
            kernel_writeback += std::mem::take(&mut sum.writeback);
        }
        let own: f64 = self.processes.values().map(|sum| sum.writeback).sum();
        let all = own + kernel_writeback + self.ownerless_writeback;
        let of_all = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        for sum in self.processes.values_mut().filter(|sum| sum.writeback > 0.0) {
            sum.writes.add(writes, of_all(sum.writeback));
        }
        let left = if all > 0.0 { of_all(kernel_writeback) } else { 1.0 };
        let loop_bytes: f64 = loop_users.values().sum();
        for (pid, bytes) in loop_users.iter().filter(|(_, bytes)| **bytes > 0.0) {
            let sum = self.processes.entry(*pid).or_default();
            sum.reads.add(reads, bytes / loop_bytes);
            sum.writes.add(writes, left * bytes / loop_bytes);
        }
    }
}

/// Whether a device passes on what it gets, without requests of its own.
fn passes_on(ctx: &RuleContext<'_>, id: DevId) -> bool {
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
fn traced_name(ctx: &RuleContext<'_>, pid: u32, secs: f64) -> Option<String> {
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
fn loop_users(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> BTreeMap<u32, f64> {
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

impl DeviceUsers {
    /// Means over the last `secs` seconds. `None` where nothing was attributed to the device.
    pub(super) fn traced(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Option<Self> {
        let mut sums = DeviceSums::of(ctx, id, secs)?;
        let total = sums.total(requests);
        let request_ms = sums.request_ms(requests);
        let kernel = sums.kernel_threads(requests);
        sums.share_out_kernel_io(&loop_users(ctx, id, secs));
        let of_queue = total.queue > 0.0;
        let share = |amount: Amount| if of_queue { amount.queue / total.queue } else { amount.bytes / total.bytes };
        if (!of_queue && total.bytes <= 0.0) || sums.covered_secs <= 0.0 {
            return None;
        }
        let user = |(pid, sum): (&u32, &Sum)| {
            let amount = sum.amount(requests);
            let bytes_per_s = amount.bytes / sums.covered_secs;
            DeviceUser { pid: *pid, name: String::new(), key: None, share: share(amount), bytes_per_s }
        };
        let mut users: Vec<DeviceUser> = sums.processes.iter().map(user).filter(|user| user.share > 0.0).collect();
        users.sort_by(|a, b| b.share.total_cmp(&a.share));
        // This program is named only where it is what keeps the device busy.
        users.retain(|user| user.share >= MOST || !ctx.is_own_process(user.pid));
        let light = users.iter().filter(|user| of_queue && user.share < MIN_SHARE);
        let others = sums.queue_use(users.iter().filter(|user| user.share >= MIN_SHARE), requests);
        let delayed = |user: &DeviceUser| {
            let request_ms = *request_ms.get(&user.pid)?;
            Some(DelayedUser { user: user.clone(), request_ms, gain: gain_without(request_ms / 1e3, others) })
        };
        let mut light_users: Vec<DelayedUser> = light.filter_map(delayed).collect();
        light_users.sort_by(|a, b| b.request_ms.total_cmp(&a.request_ms));
        light_users.truncate(MAX_NAMED);
        light_users.iter_mut().for_each(|delayed| delayed.user.identify(ctx, secs));
        users.truncate(MAX_NAMED);
        users.iter_mut().for_each(|user| user.identify(ctx, secs));
        Some(Self { users, of: if of_queue { "queue" } else { "bytes" }, light_users, kernel_share: share(kernel) })
    }

    /// With tracing as [`DeviceUsers::traced`]; nobody where nothing was attributed to the device. Without tracing, and on a
    /// mapped device whose requests a worker of the kernel passes on (dm-delay, dm-crypt), tasks are not counted by device,
    /// so one is named only if the device does most of what all disks do, and the task accounts for most of that.
    pub(super) fn find(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Self {
        let is_traced = ctx.system.snapshot.io_attribution.ok().is_some();
        let is_mapped = passes_on(ctx, id);
        let untraced = || untraced_user(ctx, id, secs).filter(|_| !is_traced || is_mapped);
        let traced = Self::traced(ctx, id, secs, requests).filter(|found| !is_mapped || !found.users.is_empty());
        traced.unwrap_or_else(|| Self {
            users: untraced().into_iter().collect(),
            of: "bytes",
            light_users: Vec::new(),
            kernel_share: 0.0,
        })
    }

    /// Those with a share that matters.
    pub(super) fn main(&self) -> &[DeviceUser] {
        &self.users[..self.users.iter().take_while(|user| user.share >= MIN_SHARE).count()]
    }

    /// Whether hardly anything but writeback is queued, which nobody waits for before a sync or the dirty limit.
    pub(super) fn is_only_writeback(&self) -> bool {
        self.kernel_share >= WRITEBACK_ONLY
    }

    /// Those that wait at least `slow_ms` for each of their requests, behind others with most of the queue.
    pub(super) fn delayed(&self, slow_ms: f64) -> &[DelayedUser] {
        let most: f64 = self.main().iter().map(|user| user.share).sum();
        let count = self.light_users.iter().take_while(|delayed| delayed.request_ms >= slow_ms).count();
        &self.light_users[..if most >= MOST { count } else { 0 }]
    }

    /// Who waits behind the users.
    pub(super) fn delayed_tasks(&self, slow_ms: f64) -> Vec<InvolvedTask> {
        self.delayed(slow_ms).iter().map(|delayed| delayed.user.involved()).collect()
    }

    /// All that wait at least `slow_ms` for their requests, of a device that is slow by itself.
    pub(super) fn sufferers(&self, slow_ms: f64) -> Vec<InvolvedTask> {
        let light = self.light_users.iter().filter(|delayed| delayed.request_ms >= slow_ms);
        self.main().iter().map(DeviceUser::involved).chain(light.map(|delayed| delayed.user.involved())).collect()
    }

    /// `postgres (12) waits 48.0 ms for each request behind them`; `None` if nobody does.
    pub(super) fn delayed_summary(&self, slow_ms: f64) -> Option<String> {
        let first = self.delayed(slow_ms).first()?;
        let whom = if self.main().len() == 1 { "it" } else { "them" };
        Some(format!("{} waits {} for each request behind {whom}", first.user.name, format::ms(first.request_ms)))
    }

    /// `fio (901) has 62% of its queue, dd (900) 30%`; `None` if nobody has much of it.
    pub(super) fn summary(&self) -> Option<String> {
        let (first, more) = self.main().split_first()?;
        let more: String = more.iter().map(|user| format!(", {} {}", user.name, user.percent())).collect();
        Some(format!("{} has {} of its {}{more}", first.name, first.percent(), self.of))
    }

    /// Name of the value that [`DeviceUsers::list`] gives.
    pub(super) fn fact_name(&self) -> &'static str {
        if self.of == "queue" { "queue by task" } else { "bytes by task" }
    }

    /// `fio (901) 62%, dd (900) 30%`; `None` if nobody has much of it.
    pub(super) fn list(&self) -> Option<String> {
        let all: Vec<String> = self.main().iter().map(|user| format!("{} {}", user.name, user.percent())).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

impl DeviceUser {
    pub(super) fn involved(&self) -> InvolvedTask {
        InvolvedTask { name: self.name.clone(), share_pct: Some((self.share * 100.0).round().min(100.0) as u8) }
    }

    fn percent(&self) -> String {
        format::percent(self.share * 100.0)
    }

    fn identify(&mut self, ctx: &RuleContext<'_>, secs: f64) {
        let row = ctx.system.processes.find_by_pid(self.pid);
        self.key = row.as_ref().map(|row| row.key());
        let name = row.map(|row| row.comm().into_owned()).or_else(|| traced_name(ctx, self.pid, secs));
        let name = name.unwrap_or_else(|| "?".into());
        self.name = format::task(&name, self.pid);
    }
}

fn untraced_user(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<DeviceUser> {
    let device_mb_per_s = ctx.device_mean(id, secs, |d| d.read_mb_per_s + d.write_mb_per_s)?;
    let disks = |tick: &Snapshot| {
        let (read, written) = tick.disks_mb_per_s(ctx.system.topology.ok())?;
        Some(read + written)
    };
    if device_mb_per_s <= 0.0 || ctx.mean(secs, disks)? * MAIN_DEVICE_SHARE > device_mb_per_s {
        return None;
    }
    let device_bytes = device_mb_per_s * 1_048_576.0;
    let all = ctx.top_io_tasks(secs);
    let total: f64 = all.iter().map(|task| task.bytes_per_s()).sum();
    let first = all.into_iter().next()?;
    let (bytes_per_s, share) = (first.bytes_per_s(), first.bytes_per_s() / device_bytes.max(total));
    let is_named = bytes_per_s <= device_bytes * MAX_MISMATCH && share >= DOMINANT_SHARE && !first.is_kernel_thread;
    let user = DeviceUser { pid: first.key.pid, name: first.name, key: Some(first.key), share, bytes_per_s };
    is_named.then_some(user)
}
