//! Who uses a device: processes by their share of its queue.
//!
//! Bytes mislead: a random reader may keep a disk busy with a hundredth of the bytes of a stream beside it. So a process
//! is judged by the time its requests spend on the device, which is its share of the mean queue (Little's law). What kernel
//! threads do is given to the processes that they work for.

use super::device_sums::{Amount, DeviceSums, Sum, is_main_user_below, passes_on, traced_name};
pub(super) use super::device_sums::{Requests, counted_devices};
use super::finding::{InvolvedGroup, InvolvedTask};
use super::format;
use super::rule_context::RuleContext;
use super::user_groups::{UserGroup, group_of};
use crate::model::disk::DevId;
use crate::model::io_accounting::delay::gain_without;
use crate::model::process::TaskKey;
use crate::model::snapshot::Snapshot;

/// A process with a smaller share is not named ...
const MIN_SHARE: f64 = 0.2;
/// ... nor are more than these.
const MAX_NAMED: usize = 3;
/// Others wait behind those that together have this share of the queue.
const MOST: f64 = 0.5;
/// A process with about half of the queue ...
const STREAM_SHARE: f64 = 0.45;
/// ... requests of at least this many bytes in the mean ...
const STREAM_REQUEST_BYTES: f64 = 98_304.0;
/// ... and this many times the bytes of another process is a stream. The other one waits behind it: its share of the queue
/// is waiting.
const STREAM_BYTES_RATIO: f64 = 4.0;
/// From this share of kernel threads on nearly all of the queue is writeback.
const WRITEBACK_ONLY: f64 = 0.95;
/// Without tracing, a process is named when it issues at least this share of the bytes ...
const DOMINANT_SHARE: f64 = 0.6;
/// ... at most this many times what the device transferred: far more went elsewhere, or into the cache ...
const MAX_MISMATCH: f64 = 2.0;
/// ... and when the device transfers at least this share of what all disks do.
pub(super) const MAIN_DEVICE_SHARE: f64 = 0.8;

/// Tracing has seen whose requests a device has after this many seconds at most. It counts those that were issued after it
/// began, when they complete.
const TRACING_BEGINS_SECS: f64 = 15.0;

/// A process that uses a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeviceUser {
    pub(super) pid: u32,
    /// `fio (1234)`, sanitized.
    pub(super) name: String,
    /// Identity, if it is in the task list.
    pub(super) key: Option<TaskKey>,
    /// Its unit or container, as [`group_of`] names it.
    pub(super) group: Option<String>,
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
    /// Share of the queue that kernel threads have for processes that are not known: their pages were dirtied before tracing
    /// began, or are metadata or swap.
    unowned_share: f64,
    /// The unit or container with most of it.
    group: Option<UserGroup>,
    /// Those with requests of their own that have a small share of the queue or wait behind a stream, longest requests first.
    light_users: Vec<DelayedUser>,
    /// Some of these wait behind a stream, which is the first of the users or of kernel threads.
    has_stream: bool,
}

/// A process that does little on the device and waits long for its own requests.
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

impl DeviceUsers {
    /// Means over the last `secs` seconds. `None` where nothing was attributed to the device.
    pub(super) fn traced(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Option<Self> {
        if counted_devices(ctx, id, secs) != [id] && !is_main_user_below(ctx, id, secs) {
            return None;
        }
        let mut sums = DeviceSums::of(ctx, id, secs)?;
        let total = sums.total(requests);
        let request_ms = sums.request_ms(requests);
        let kernel = sums.kernel_threads(requests);
        sums.share_out_kernel_io(ctx, id, secs);
        let of_queue = total.queue > 0.0;
        let share = |amount: Amount| if of_queue { amount.queue / total.queue } else { amount.bytes / total.bytes };
        if (!of_queue && total.bytes <= 0.0) || sums.covered_secs <= 0.0 {
            return None;
        }
        let user = |(pid, sum): (&u32, &Sum)| {
            let amount = sum.amount(requests);
            let bytes_per_s = amount.bytes / sums.covered_secs;
            DeviceUser { pid: *pid, name: String::new(), key: None, group: None, share: share(amount), bytes_per_s }
        };
        let mut users: Vec<DeviceUser> = sums.processes.iter().map(user).filter(|user| user.share > 0.0).collect();
        users.sort_by(|a, b| b.share.total_cmp(&a.share));
        // This program is named only where it is what keeps the device busy.
        users.retain(|user| user.share >= MOST || !ctx.is_own_process(user.pid));
        let group = UserGroup::of(ctx, users.iter().map(|user| (user.pid, user.share)));
        let several = group.as_ref().filter(|group| group.is_of_several()).map(|group| &group.name);
        let unowned = total.without(sums.total(requests));
        let is_judged = of_queue && requests == Requests::All;
        let stream = Stream::find(&users, &sums, (unowned, share(unowned))).filter(|_| is_judged);
        let (behind, mut users): (Vec<DeviceUser>, Vec<DeviceUser>) =
            users.into_iter().partition(|user| stream.as_ref().is_some_and(|stream| stream.delays(user)));
        let main = users.iter().take_while(|user| user.share >= MIN_SHARE).map(|user| user.pid);
        let others = sums.queue_use(main, unowned, requests);
        let delayed = |user: &DeviceUser| {
            let request_ms = *request_ms.get(&user.pid)?;
            let own = sums.queue_use(std::iter::once(user.pid), Amount::default(), requests);
            // The device needs little time for small requests beside the large ones of a stream.
            let is_behind_stream = behind.iter().any(|other| other.pid == user.pid);
            let own_per_s = if is_behind_stream { 0.0 } else { own.requests_per_s };
            let gain = gain_without(request_ms / 1e3, own_per_s, others);
            Some(DelayedUser { user: user.clone(), request_ms, gain })
        };
        let light = users.iter().filter(|user| of_queue && user.share < MIN_SHARE);
        let mut light_users: Vec<DelayedUser> = light.chain(&behind).filter_map(delayed).collect();
        light_users.sort_by(|a, b| b.request_ms.total_cmp(&a.request_ms));
        // Those of one group delay each other.
        light_users.retain(|delayed| several.is_none() || group_of(ctx, delayed.user.pid).as_ref() != several);
        light_users.truncate(MAX_NAMED);
        light_users.iter_mut().for_each(|delayed| delayed.user.identify(ctx, secs));
        users.truncate(MAX_NAMED);
        users.iter_mut().for_each(|user| user.identify(ctx, secs));
        let of = if of_queue { "queue" } else { "bytes" };
        let (kernel_share, unowned_share) = (share(kernel), if of_queue { share(unowned) } else { 0.0 });
        Some(Self { users, of, light_users, has_stream: !behind.is_empty(), kernel_share, unowned_share, group })
    }

    /// Whether tracing has just begun and no request that it counts has completed on the device.
    pub(super) fn are_not_yet_known(ctx: &RuleContext<'_>, id: DevId) -> bool {
        let sums = DeviceSums::of(ctx, id, 2.0 * TRACING_BEGINS_SECS);
        sums.is_some_and(|sums| sums.covered_secs < TRACING_BEGINS_SECS && sums.total(Requests::All).queue <= 0.0)
    }

    /// With tracing as [`DeviceUsers::traced`]; nobody where nothing was attributed to the device. Without tracing, and on a
    /// mapped device that appeared after tracing began, tasks are not counted by device,
    /// so one is named only if the device does most of what all disks do, and the task accounts for most of that.
    pub(super) fn find(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Self {
        let is_traced = ctx.system.snapshot.io_attribution.ok().is_some();
        let is_mapped = passes_on(ctx, id);
        let untraced = || untraced_user(ctx, id, secs).filter(|_| !is_traced || is_mapped);
        let has_users = |found: &Self| !found.users.is_empty() || !found.light_users.is_empty();
        let traced = Self::traced(ctx, id, secs, requests).filter(|found| !is_mapped || has_users(found));
        traced.unwrap_or_else(|| Self {
            users: untraced().into_iter().collect(),
            of: "bytes",
            light_users: Vec::new(),
            has_stream: false,
            kernel_share: 0.0,
            unowned_share: 0.0,
            group: None,
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

    /// Whether page cache may be much of what is written: flushers have a part of the queue, or nothing is known of it.
    pub(super) fn may_write_page_cache(&self) -> bool {
        self.of != "queue" || self.kernel_share >= MIN_SHARE
    }

    /// Those that wait at least `slow_ms` for each of their requests, behind others with most of the queue.
    pub(super) fn delayed(&self, slow_ms: f64) -> &[DelayedUser] {
        self.delayed_behind(slow_ms, self.unowned_share)
    }

    /// Whether somebody waits as long behind processes that are known.
    pub(super) fn delay_others(&self, slow_ms: f64) -> bool {
        !self.delayed_behind(slow_ms, 0.0).is_empty()
    }

    fn delayed_behind(&self, slow_ms: f64, unowned_share: f64) -> &[DelayedUser] {
        let most = self.main_share().max(self.group.as_ref().map_or(0.0, |group| group.share));
        let count = self.light_users.iter().take_while(|delayed| delayed.request_ms >= slow_ms).count();
        &self.light_users[..if most + unowned_share >= MOST || self.has_stream { count } else { 0 }]
    }

    fn main_share(&self) -> f64 {
        self.main().iter().map(|user| user.share).sum()
    }

    /// Whether the requests of others are slow only because they wait behind a stream: without it they would take less than
    /// `slow_ms`.
    pub(super) fn is_slow_behind_stream(&self, slow_ms: f64) -> bool {
        let left_ms = |delayed: &DelayedUser| delayed.gain.map(|gain| delayed.request_ms * (1.0 - gain));
        let delayed = self.delayed(slow_ms);
        self.has_stream && !delayed.is_empty() && delayed.iter().all(|it| left_ms(it).is_some_and(|ms| ms < slow_ms))
    }

    /// All that wait at least `slow_ms` for their requests, of a device that is slow by itself.
    pub(super) fn sufferers(&self, slow_ms: f64) -> Vec<InvolvedTask> {
        let light = self.light_users.iter().filter(|delayed| delayed.request_ms >= slow_ms);
        self.main().iter().map(DeviceUser::involved).chain(light.map(|delayed| delayed.user.involved())).collect()
    }

    /// `postgres (12) waits 48.0 ms for each request behind them`, of the first one; `None` if nobody does.
    pub(super) fn summary_of_delayed(&self, delayed: &[DelayedUser]) -> Option<String> {
        let first = delayed.first()?;
        let whom = match self.main().len() {
            _ if self.main_share() < self.unowned_share => "those of kernel threads",
            1 => "it",
            _ => "them",
        };
        Some(format!("{} waits {} for each request behind {whom}", first.user.name, format::ms(first.request_ms)))
    }

    /// `fio (901) has 62% of its queue, dd (900) 30%`; `None` if nobody has much of it.
    pub(super) fn summary(&self) -> Option<String> {
        self.summary_of(&format!("its {}", self.of))
    }

    /// The same of what is named.
    pub(super) fn summary_of(&self, what: &str) -> Option<String> {
        let each = |user: &DeviceUser| format!(", {} {}", user.name, user.percent());
        if let Some(group) = self.group.as_ref().filter(|group| group.is_of_several()) {
            let tasks: String = self.main().iter().map(each).collect();
            return Some(format!("{} of {what}{tasks}", group.summary()));
        }
        let (first, more) = self.main().split_first()?;
        let more: String = more.iter().map(each).collect();
        let group = first.group.as_ref().map_or(String::new(), |group| format!(" of {group}"));
        Some(format!("{}{group} has {} of {what}{more}", first.name, first.percent()))
    }

    /// The unit or container with most of it.
    pub(super) fn main_group(&self) -> Option<InvolvedGroup> {
        self.group.as_ref().map(UserGroup::involved)
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
        let share_pct = Some((self.share * 100.0).round().min(100.0) as u8);
        InvolvedTask { name: self.name.clone(), share_pct, group: self.group.clone() }
    }

    fn percent(&self) -> String {
        format::percent(self.share * 100.0)
    }

    fn identify(&mut self, ctx: &RuleContext<'_>, secs: f64) {
        let row = ctx.find_by_pid(self.pid);
        self.key = row.as_ref().map(|row| row.key());
        let name = row.map(|row| row.comm().into_owned()).or_else(|| traced_name(ctx, self.pid, secs));
        let name = name.unwrap_or_else(|| "?".into());
        self.name = format::task(&name, self.pid);
        self.group = group_of(ctx, self.pid);
    }
}

/// What has about half of the queue with large requests: a process, or kernel threads for processes that are not known.
struct Stream {
    pid: Option<u32>,
    bytes_per_s: f64,
}

impl Stream {
    /// `unowned`: what kernel threads do for unknown processes, and its share of the queue.
    fn find(users: &[DeviceUser], sums: &DeviceSums, unowned: (Amount, f64)) -> Option<Self> {
        let is_stream = |amount: Amount, share: f64| {
            share >= STREAM_SHARE && amount.requests > 0.0 && amount.bytes >= STREAM_REQUEST_BYTES * amount.requests
        };
        let amount = |pid: u32| sums.processes.get(&pid).map_or(Amount::default(), |sum| sum.amount(Requests::All));
        let user = users.iter().find(|user| is_stream(amount(user.pid), user.share));
        let process = user.map(|user| Self { pid: Some(user.pid), bytes_per_s: user.bytes_per_s });
        let kernel = || Self { pid: None, bytes_per_s: unowned.0.bytes / sums.covered_secs };
        process.or_else(|| is_stream(unowned.0, unowned.1).then(kernel))
    }

    /// Whether a process with a share that matters does little and waits behind the stream.
    fn delays(&self, user: &DeviceUser) -> bool {
        let is_less = self.bytes_per_s >= STREAM_BYTES_RATIO * user.bytes_per_s;
        self.pid != Some(user.pid) && user.share >= MIN_SHARE && is_less
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
    let (pid, group) = (first.key.pid, group_of(ctx, first.key.pid));
    let user = DeviceUser { pid, name: first.name, key: Some(first.key), group, share, bytes_per_s };
    is_named.then_some(user)
}
