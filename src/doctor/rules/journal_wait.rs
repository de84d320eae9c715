//! Tasks that wait for room in the journal of a file system, or for a block that a commit holds. Creating, renaming and
//! removing many files does so with a small journal or on a slow device, even if hardly any data is written.

use super::prelude::*;
use crate::model::process::{ProcessRow, TaskKey};
use crate::model::task_waits::WaitReason;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longer than one commit of a busy journal.
const WINDOW_SECS: f64 = 8.0;
/// Share of the window's ticks that found a task waiting. A tick looks at a single moment.
const MIN_SHARE: f64 = 0.5;
/// Tasks named in the title.
const MAX_NAMED: usize = 3;

/// Functions that wait for a journal, by the beginning of their names, with the journal. Not those where syncs and writes
/// with O_DSYNC wait for their own commit (`jbd2_log_wait_commit`, `xlog_wait_on_iclog`): the device is slow then, whatever
/// the size of the journal.
const JOURNAL_WAITS: [(&str, &str); 11] = [
    ("jbd2_write_superblock", "ext4 journal"),
    ("do_get_write_access", "ext4 journal"),
    ("wait_transaction_locked", "ext4 journal"),
    ("wait_transaction_switching", "ext4 journal"),
    ("add_transaction_credits", "ext4 journal"),
    ("start_this_handle", "ext4 journal"),
    ("__jbd2_log_wait_for_space", "ext4 journal"),
    ("jbd2_log_do_checkpoint", "ext4 journal"),
    ("xlog_grant_head", "XFS log"),
    ("xlog_cil_commit", "XFS log"),
    ("xlog_state_get_iclog_space", "XFS log"),
];
/// Kernel threads that write journals, and which: `jbd2/sda1-8`, `xfsaild/sda1`.
const JOURNAL_THREADS: [(&str, &str); 2] = [("jbd2/", "ext4 journal"), ("xfsaild/", "XFS log")];

/// Share of its time that a traced task waits.
const MIN_TRACED_SHARE: f64 = 0.25;

/// A task that was found waiting.
struct Waiter {
    key: TaskKey,
    /// `tar (1234)`, sanitized.
    name: String,
    comm: String,
    function: String,
    journal: &'static str,
    /// Ticks that found it waiting.
    ticks: usize,
    /// Share of its time that it waits, where that is traced.
    share: Option<f64>,
}

/// The journal that a function waits for.
fn journal_of_function(function: &str) -> Option<&'static str> {
    JOURNAL_WAITS.iter().find(|(begin, _)| function.starts_with(begin)).map(|(_, journal)| *journal)
}

/// Traced waits of one process for a journal, in seconds.
#[derive(Default)]
struct TracedWaits {
    secs: f64,
    functions: BTreeMap<Arc<str>, f64>,
    devices: BTreeMap<DevId, f64>,
}

impl TracedWaits {
    fn longest<K: Clone + Ord>(of: &BTreeMap<K, f64>) -> Option<K> {
        of.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(key, _)| key.clone())
    }

    fn waiter(&self, ctx: &RuleContext<'_>, key: TaskKey, comm: String, covered_secs: f64) -> Waiter {
        let of_journal = self.functions.iter().filter(|(function, _)| journal_of_function(function).is_some());
        let known = Self::longest(&of_journal.map(|(function, secs)| (function.clone(), *secs)).collect());
        let function = known.or_else(|| Self::longest(&self.functions)).unwrap_or_default();
        let name = match ctx.system.processes.find_live(key.pid) {
            Some(row) => row.label(),
            None => format::task(&comm, key.pid),
        };
        let journal = journal_of_function(&function).unwrap_or("journal");
        let share = Some(self.secs / covered_secs);
        Waiter { key, name, comm, function: sanitize(&*function), journal, ticks: 0, share }
    }
}

/// The tasks that wait for a journal for much of their time by traced waits, longest first, and the device that most of the
/// waits were for; nobody where waits are not traced. A wait within a sync counts as one for the sync.
fn traced_waiters(ctx: &RuleContext<'_>) -> (Vec<Waiter>, Option<DevId>) {
    let (mut covered, mut sums) = (0.0, BTreeMap::<TaskKey, (TracedWaits, String)>::new());
    for waits in ctx.window(WINDOW_SECS).filter_map(|tick| tick.task_waits.ok()) {
        covered += waits.covered_secs;
        for row in waits.rows.iter().filter(|row| row.key.reason == WaitReason::Journal) {
            let comm = || waits.process_name(row.key.pid).unwrap_or("?").to_owned();
            let (sum, _) = sums.entry(row.key.task()).or_insert_with(|| (TracedWaits::default(), comm()));
            sum.secs += row.secs;
            *sum.functions.entry(row.key.function.clone()).or_default() += row.secs;
            *sum.devices.entry(row.key.device).or_default() += row.secs;
        }
    }
    let is_program = |key: &TaskKey, comm: &str| {
        let row = ctx.find_by_pid(key.pid);
        let is_kernel_thread =
            row.map_or(JOURNAL_THREADS.iter().any(|(begin, _)| comm.starts_with(begin)), |row| row.raw.kernel_thread);
        !is_kernel_thread && !ctx.is_own_process(key.pid)
    };
    sums.retain(|key, (sum, comm)| {
        covered >= 0.8 * WINDOW_SECS && sum.secs >= MIN_TRACED_SHARE * covered && is_program(key, comm)
    });
    let mut devices = BTreeMap::new();
    for (device, secs) in sums.values().flat_map(|(sum, _)| &sum.devices).filter(|(id, _)| id.major > 0) {
        *devices.entry(*device).or_default() += secs;
    }
    let waiters = sums.into_iter().map(|(key, (sum, comm))| sum.waiter(ctx, key, comm, covered));
    let mut waiters: Vec<Waiter> = waiters.collect();
    waiters.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    (waiters, TracedWaits::longest(&devices))
}

fn journal_of(row: &ProcessRow<'_>) -> Option<(&'static str, String)> {
    let function = row.wait_channel().filter(|_| row.is_in_d_state() && !row.raw.kernel_thread)?;
    Some((journal_of_function(function)?, sanitize(function)))
}

/// What the window shows.
#[derive(Default)]
struct Window {
    /// All ticks, also those in which nothing waited.
    ticks: usize,
    secs: f64,
    /// Ticks with a waiting task.
    waiting_ticks: usize,
    /// When the first of them ended, CLOCK_BOOTTIME, ns.
    since_ns: u64,
    waiters: Vec<Waiter>,
    /// Devices whose journal threads were at work, and what those write.
    devices: Vec<(DevId, &'static str)>,
    traced_device: Option<DevId>,
}

impl Window {
    fn of(ctx: &RuleContext<'_>) -> Self {
        let mut out = Self::default();
        for frame in ctx.system.history.iter().rev().filter(|frame| !frame.snapshot.is_since_boot) {
            if out.secs >= WINDOW_SECS {
                break;
            }
            out.secs += frame.snapshot.interval_secs;
            out.ticks += 1;
            let before: usize = out.waiters.iter().map(|waiter| waiter.ticks).sum();
            for row in frame.tasks.iter().filter(|row| !ctx.is_own_process(row.pid())) {
                out.add_waiter(&row);
                out.add_journal_thread(ctx, &row);
            }
            if out.waiters.iter().map(|waiter| waiter.ticks).sum::<usize>() > before {
                out.waiting_ticks += 1;
                out.since_ns = frame.snapshot.time.boot_ns;
            }
        }
        out.waiters.sort_by_key(|waiter| std::cmp::Reverse(waiter.ticks));
        out
    }

    fn add_waiter(&mut self, row: &ProcessRow<'_>) {
        let Some((journal, function)) = journal_of(row) else { return };
        match self.waiters.iter_mut().find(|waiter| waiter.key == row.key()) {
            Some(waiter) => waiter.ticks += 1,
            None => self.waiters.push(Waiter {
                key: row.key(),
                name: row.label(),
                comm: row.comm().into_owned(),
                function,
                journal,
                ticks: 1,
                share: None,
            }),
        }
    }

    fn add_journal_thread(&mut self, ctx: &RuleContext<'_>, row: &ProcessRow<'_>) {
        let comm = row.comm();
        let strip = |(begin, journal): &(&str, &'static str)| Some((comm.strip_prefix(begin)?, *journal));
        let thread = JOURNAL_THREADS.iter().find_map(strip).filter(|_| row.raw.kernel_thread);
        let device = thread.and_then(|(name, journal)| Some((ctx.find_device(name)?, journal)));
        self.devices.extend(device.filter(|device| !self.devices.contains(device)));
    }

    /// The device, if only one such journal was written; else the one that traced waits were for.
    fn device(&self, journal: &str) -> Option<DevId> {
        let mut written = self.devices.iter().filter(|(_, of)| *of == journal).map(|(id, _)| *id);
        written.next().filter(|_| written.next().is_none()).or(self.traced_device)
    }
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    ctx.require(&ctx.system.processes_status)?;
    let mut window = Window::of(ctx);
    if window.secs < 0.8 * WINDOW_SECS {
        return Err(RuleSkipped::NeedsMoreData("a few seconds of task scans"));
    }
    let (traced, device) = traced_waiters(ctx);
    if let Some(first) = traced.first() {
        window.traced_device = device;
        out.push(build_finding(ctx, &window, &traced, first));
    } else if window.waiting_ticks >= 3 && window.waiting_ticks as f64 >= MIN_SHARE * window.ticks as f64 {
        out.extend(window.waiters.first().map(|waiter| build_finding(ctx, &window, &window.waiters, waiter)));
    }
    Ok(())
}

fn build_finding(ctx: &RuleContext<'_>, window: &Window, waiters: &[Waiter], first: &Waiter) -> Finding {
    let names: Vec<&str> = waiters.iter().take(MAX_NAMED).map(|waiter| waiter.name.as_str()).collect();
    let more = waiters.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let verb = if waiters.len() == 1 { "waits" } else { "wait" };
    let device = window.device(first.journal);
    let place = device.map_or(String::new(), |id| format!(" on {}", ctx.device_name(id)));
    let journal = first.journal;
    let seen = format!("{} of {}", window.waiting_ticks, window.ticks);
    let share = first.share.map(|share| format!("{} of its time", format::percent(share.min(1.0) * 100.0)));
    let how_long = share.clone().unwrap_or_else(|| format!("seen in {seen} samples"));
    let title = format!("{}{more} {verb} for the {journal}{place}: {how_long}", names.join(", "));
    let await_ms = device.and_then(|id| ctx.mean_await_ms(id, WINDOW_SECS));
    let utilization = device.and_then(|id| ctx.device_mean(id, WINDOW_SECS, |device| device.util_pct));
    Finding::of_task(Severity::Warn, first.key, &first.comm, title)
        .fact("samples with a waiting task", seen)
        .fact_opt("waits", share)
        .fact("wait channel", first.function.clone())
        .fact_opt("device", device.map(|id| ctx.device_name(id)))
        .fact_opt("await", await_ms.map(format::ms))
        .fact_opt("%util", utilization.map(format::percent))
        .since(if window.since_ns > 0 { window.since_ns } else { ctx.now_ns() })
        .delays(names.iter().map(|name| InvolvedTask::named(*name)))
        .why("Every change of a directory, a size or a time goes through the journal. When it is full, or a commit holds the \
              block, the task waits until the device has written it.")
        .advise(
            "make a larger journal, unmounted (ext4: tune2fs -O ^has_journal, then -J size=MIB; XFS: only with a new file system)",
        )
        .costs("the service is down; disk space, and a longer recovery after a crash")
        .advise("put the journal on a fast device of its own (ext4: tune2fs -J device=; XFS: only with a new file system)")
        .costs("the service is down; another device that must not fail")
        .advise("spread the changes over time, or do them in one task: each waits for the same journal")
        .costs("they take longer")
        .on_devices(device.map(|id| ctx.device_chain(id)).unwrap_or_default())
}
