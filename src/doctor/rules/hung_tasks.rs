//! Tasks in uninterruptible sleep for long, reported by the kernel or seen in task scans: the kernel stops reporting after
//! ten hung tasks, and never reports a direct I/O reader of a dead disk.

use super::prelude::*;
use crate::model::kernel_log::LogEntry;
use crate::model::kernel_log::hung_tasks::HungTask;
use crate::model::process::{FoundTask, ProcessRow, TaskKey};
use crate::model::slow_facts::TaskWait;
use crate::model::topology::MountRef;
use crate::model::wait_channel::{self, FLUSH_WAIT, FREEZE_WAIT, WaitChannel};
use crate::sanitize::fit_width;

/// Longer than a slow request: the kernel waits so long for a spinning disk's error recovery.
const CRITICAL_SECS: f64 = 8.0;
/// Reports this old still count for a task that is still in state D.
const REPORT_SECS: u64 = 600;
/// While the flushers write this much, a sync is slow but does not hang.
const MIN_FLUSH_BYTES_PER_S: f64 = 1_048_576.0;
const FLUSH_SECS: f64 = 5.0;
/// Where sync waits for the flushers: for all of a device, or for one page.
const FLUSH_WAITS: [&str; 2] = [FLUSH_WAIT, "folio_wait"];
/// How long tasks are watched before they count as hung, and the ticks searched for that much history.
const WATCH_SECS: f64 = 6.0;
const WATCH_TICKS: usize = 60;
/// Hung tasks reported; the last finding counts the others.
const MAX_FINDINGS: usize = 3;
const MAX_COMMAND_WIDTH: usize = 120;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let mut hung = 0;
    for task in &ctx.system.hung_tasks {
        let row = ctx.system.processes.row_or_process(&task.key);
        let report = kernel_report(ctx, task);
        // Some drivers' kernel threads sleep in state D for ever; only the kernel knows which of them hang.
        if row.as_ref().is_some_and(|row| row.raw.kernel_thread) && report.is_none() {
            continue;
        }
        hung += 1;
        if hung <= MAX_FINDINGS {
            out.push(hung_task_finding(ctx, task, row.as_ref(), report));
        }
    }
    if let (Some(last), true) = (out.last_mut(), hung > MAX_FINDINGS) {
        last.title.push_str(&format!("; {} more tasks hang", hung - MAX_FINDINGS));
    }
    add_kernel_reports(ctx, out);
    ctx.require(&ctx.system.processes_status)?;
    let watched_secs: f64 = ctx.ticks().map(|tick| tick.interval_secs).take(WATCH_TICKS).sum();
    let is_watched = |row: ProcessRow<'_>| row.may_hang() && !row.raw.kernel_thread && !ctx.is_own_process(row.pid());
    let threads = &ctx.system.processes.uninterruptible_threads;
    let has_thread = || threads.iter().any(|thread| thread.may_hang() && !ctx.is_own_process(thread.key.pid));
    let any_in_d_state = || ctx.system.processes.iter().any(is_watched) || has_thread();
    if ctx.system.history.len() < 2 {
        Err(RuleSkipped::NeedsMoreData("several task scans"))
    } else if hung == 0 && watched_secs < WATCH_SECS && any_in_d_state() {
        Err(RuleSkipped::NeedsMoreData("six seconds of task scans, because tasks are in state D"))
    } else {
        Ok(())
    }
}

/// The kernel's newest report of this task, or of another thread of its process that is still in state D.
fn kernel_report<'a>(ctx: &RuleContext<'a>, task: &HungTask) -> Option<&'a LogEntry> {
    let log = &ctx.system.kernel_log;
    let threads = ctx.system.processes.uninterruptible_threads.iter().filter(|thread| thread.key.pid == task.key.pid);
    log.latest_hung_task(task.key.tid).or_else(|| threads.rev().find_map(|thread| log.latest_hung_task(thread.key.tid)))
}

/// What to call a hung task. Names are sanitized.
struct HungTaskName {
    /// The process; the task itself where rows are threads. A thread without a row has no page.
    key: TaskKey,
    comm: String,
    /// The thread that hangs, if it has no row: `ib_io_wr-1 (1234)`.
    thread: Option<String>,
}

impl HungTaskName {
    fn of(task: &HungTask, row: Option<&ProcessRow<'_>>) -> Self {
        match row.filter(|row| row.key() != task.key) {
            Some(process) => Self {
                key: process.key(),
                comm: process.comm().into_owned(),
                thread: Some(format::task(&sanitize(&task.comm), task.key.tid)),
            },
            None => Self { key: task.key, comm: sanitize(&task.comm), thread: None },
        }
    }

    /// `mysqld (1200)`.
    fn label(&self) -> String {
        format::task(&self.comm, self.key.tid)
    }

    /// `mysqld (1200) hangs in its thread ib_io_wr-1 (1234)`.
    fn hangs(&self) -> String {
        let thread = self.thread.as_ref().map_or(String::new(), |thread| format!(" in its thread {thread}"));
        format!("{} hangs{thread}", self.label())
    }

    fn advise_stack(&self, finding: Finding, task: &HungTask) -> Finding {
        let why = "to see which device or file system it waits for";
        match self.thread {
            Some(_) => finding.advise(format!("read /proc/{}/task/{}/stack {why}", task.key.pid, task.key.tid)),
            None => finding.advise_at(format!("read its kernel stack on its page {why}"), NavTarget::Task(self.key)),
        }
    }
}

/// The process of a hung task, or the task where rows are threads.
pub(super) fn involved_task(ctx: &RuleContext<'_>, task: &HungTask) -> InvolvedTask {
    let row = ctx.system.processes.row_or_process(&task.key);
    InvolvedTask::named(HungTaskName::of(task, row.as_ref()).label())
}

fn hung_task_finding(
    ctx: &RuleContext<'_>,
    task: &HungTask,
    row: Option<&ProcessRow<'_>>,
    report: Option<&LogEntry>,
) -> Finding {
    let name = HungTaskName::of(task, row);
    // The kernel may have watched it for longer.
    let reported_ns = report.map_or(u64::MAX, |entry| ctx.wall_to_boot_ns(entry.first_wall_ns));
    let since = task.since_boot_ns.min(reported_ns);
    let secs = ctx.secs_since(since).floor();
    let severity = Severity::critical_if(secs >= CRITICAL_SECS || report.is_some());
    let wchan = task.wchan.as_deref().map(sanitize).filter(|w| !w.is_empty() && w != "0");
    let channel = wchan.as_deref().and_then(wait_channel::find);
    let is_flushed =
        |channel: &&WaitChannel| FLUSH_WAITS.contains(&channel.function) && !ctx.devices().any(|d| d.stalled);
    if let Some(rate) = channel.filter(is_flushed).and_then(|_| flush_rate(ctx)) {
        return flushing_task_finding(ctx, &name, since, rate);
    }
    let devices = ctx.device_chains(&waited_for_devices(ctx, task));
    let file = waited_for_file(ctx, task);
    let meaning = channel.map(|channel| channel.meaning.to_owned());
    let duration = format::duration(secs);
    let place = wchan.as_ref().map_or(String::new(), |wchan| format!(" in {wchan}"));
    let command = row.and_then(|row| row.command());
    let hangs = name.hangs();
    let title = match place_of_hang(ctx, task, channel) {
        Some(place) => format!("{hangs}: {place}; it waits for at least {duration}"),
        None => format!("{hangs}: in state D for at least {duration}{place}"),
    };
    let finding = Finding::of_task(severity, name.key, &name.comm, title)
        .fact("state", "D, not scheduled")
        .fact("for at least", duration)
        .fact_opt("waits for", meaning)
        .fact_opt("wait channel", wchan)
        .fact_opt("file", file.map(|wait| wait.path.sanitized()))
        .fact_opt("command", command.map(|command| fit_width(&command, MAX_COMMAND_WIDTH).0.to_owned()))
        .fact_opt("kernel message", report.map(|entry| sanitize(&entry.message)))
        .fact("hung tasks", ctx.system.hung_tasks.len().to_string())
        .since(since)
        .delays([InvolvedTask::named(name.label())])
        .see_also(report.map_or(NavTarget::Task(name.key), |entry| NavTarget::KernelLog(entry.seq)))
        .on_devices(devices)
        .on_files(file.map(|wait| wait.path.sanitized()))
        .in_cgroup(row.and_then(|row| row.cgroup()));
    advise_hung_task(name.advise_stack(finding, task))
}

fn advise_hung_task(finding: Finding) -> Finding {
    finding
        .why(
            "A task in uninterruptible sleep waits in the kernel, usually for a device or a file system. It cannot be killed, \
             and tasks that need its locks hang as well.",
        )
        .advise("check whether that device is stalled, that server answers, that file system is frozen")
        .advise("do not reboot at once: the stacks of all tasks in state D (echo w > /proc/sysrq-trigger) show the cause")
        .costs("dozens of lines in the kernel log for each task")
}

/// What stands still: `/srv on sda1 is frozen`, `the server box:/e of /mnt does not answer`; `None` if that is not known.
fn place_of_hang(ctx: &RuleContext<'_>, task: &HungTask, channel: Option<&WaitChannel>) -> Option<String> {
    if let Some((mount, device)) = mounts_of_wait(ctx, task).next() {
        let is_frozen = channel.is_some_and(|channel| channel.function == FREEZE_WAIT);
        return is_frozen
            .then(|| format!("{} on {} is frozen", mount.mount_point.sanitized(), ctx.device_name(device)));
    }
    let (point, server) = waited_for_server(ctx, task)?;
    Some(format!("the server {server} of {point} does not answer"))
}

/// The file of the task's system call. What was read before it began to wait is of an earlier call.
fn waited_for_file<'a>(ctx: &RuleContext<'a>, task: &HungTask) -> Option<&'a TaskWait> {
    let facts = ctx.system.slow_facts.latest.as_ref().filter(|facts| facts.time.boot_ns >= task.since_boot_ns)?;
    facts.waits.iter().find(|wait| wait.key == task.key)
}

/// The mount of that file, with each device it is on.
fn mounts_of_wait<'a>(ctx: &RuleContext<'a>, task: &HungTask) -> impl Iterator<Item = (&'a MountRef, DevId)> {
    let mount_id = waited_for_file(ctx, task).map(|wait| wait.mount_id);
    let devices = ctx.system.topology.ok().map_or(&[][..], |topology| &topology.devices);
    devices.iter().filter_map(move |device| {
        let mount = device.mounts.iter().find(|mount| Some(mount.id) == mount_id)?;
        Some((mount, device.id))
    })
}

/// The mount point of the network file system that the task's file is on, and its server, both sanitized. The paths of a process
/// in a container are its own, so they tell nothing.
pub(super) fn waited_for_server(ctx: &RuleContext<'_>, task: &HungTask) -> Option<(String, String)> {
    let path = waited_for_file(ctx, task)?.path.as_bytes();
    if ctx.system.processes.row_or_process(&task.key).is_some_and(|row| row.container().is_some()) {
        return None;
    }
    let has = |mount: &[u8]| path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let mounts = ctx.system.last_sample.as_ref()?.netfs.ok()?.iter().filter(|fs| has(fs.mount.as_bytes()));
    let mount = mounts.max_by_key(|fs| fs.mount.as_bytes().len())?;
    Some((mount.mount.sanitized(), mount.server.sanitized()))
}

/// The devices that a task waits for: those of its sync or of its file, or else the only one on which nothing completes.
pub(super) fn waited_for_devices(ctx: &RuleContext<'_>, task: &HungTask) -> Vec<DevId> {
    let in_flight = ctx.system.snapshot.syncs.ok().map_or(&[][..], |syncs| &syncs.in_flight);
    let sync = in_flight.iter().find(|sync| sync.tid == task.key.tid);
    let of_sync = sync.map(|sync| sync.file.devices(ctx.system.topology.ok())).unwrap_or_default();
    if !of_sync.is_empty() {
        return of_sync;
    }
    let of_mount: Vec<DevId> = mounts_of_wait(ctx, task).map(|(_, device)| device).collect();
    if !of_mount.is_empty() {
        return of_mount;
    }
    only_stalled_device(ctx, task).into_iter().collect()
}

/// The only device on which nothing completes, if the task waits for one.
fn only_stalled_device(ctx: &RuleContext<'_>, task: &HungTask) -> Option<DevId> {
    if !wait_channel::find(task.wchan.as_deref()?)?.is_of_device {
        return None;
    }
    let stalled: Vec<DevId> = ctx.devices().filter(|device| device.stalled).map(|device| device.id).collect();
    // A device above a stalled one is stalled as well: the lowest counts.
    let is_lowest = |id: &&DevId| !ctx.device_chain(**id).iter().skip(1).any(|below| stalled.contains(below));
    let mut lowest = stalled.iter().filter(is_lowest);
    lowest.next().filter(|_| lowest.next().is_none()).copied()
}

/// How fast dirty pages are written, bytes per second; `None` if they are not.
fn flush_rate(ctx: &RuleContext<'_>) -> Option<f64> {
    let rate = ctx.mean(FLUSH_SECS, |tick| tick.writeback.ok()?.written_bytes_per_s)?;
    (rate >= MIN_FLUSH_BYTES_PER_S).then_some(rate)
}

fn flushing_task_finding(ctx: &RuleContext<'_>, name: &HungTaskName, since: u64, rate: f64) -> Finding {
    let dirty = ctx.system.snapshot.writeback.ok().and_then(super::writeback::dirty_bytes);
    let left = dirty.map(|dirty| format!("{} are left", format::bytes(dirty)));
    let duration = format::duration(ctx.secs_since(since));
    let rate = format::bytes_per_s(rate);
    let title = format!(
        "{} waits until dirty pages are written, for {duration} so far: {rate}{}",
        name.label(),
        left.as_ref().map_or(String::new(), |left| format!(", {left}")),
    );
    Finding::of_task(Severity::Note, name.key, &name.comm, title)
        .fact("written", rate)
        .fact_opt("dirty and under writeback", dirty.map(format::bytes))
        .fact_opt("time to write", dirty.zip(flush_rate(ctx)).map(|(dirty, rate)| format::duration(dirty / rate)))
        .since(since)
        .why("sync returns when everything that was dirty at its start is on disk. It makes progress: nothing hangs.")
        .advise_at("to wait less next time, keep less dirty: lower vm.dirty_bytes", knob("vm.dirty_bytes"))
        .costs("writers are slowed to the device's speed earlier")
        .see_also(NavTarget::Memory)
        .on_devices(super::writeback::written_devices(ctx))
}

/// Adds what the kernel reported lately about tasks that are not hung now.
fn add_kernel_reports(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let mut reported = Vec::new();
    for entry in ctx.kernel_messages(KernelLogClass::HungTask, REPORT_SECS) {
        let Some(pid) = entry.pid else { continue };
        let found = ctx.system.processes.find_task(pid);
        let process = if let FoundTask::UninterruptibleThread(thread) = &found { Some(thread.key.pid) } else { None };
        let is_hung = |task: &HungTask| task.key.tid == pid || process == Some(task.key.pid);
        let is_listed = ctx.system.hung_tasks.iter().any(is_hung) || reported.contains(&pid);
        if is_listed || ctx.is_own_process(process.unwrap_or(pid)) || reported.len() >= MAX_FINDINGS {
            continue;
        }
        reported.push(pid);
        let name = entry.comm.as_deref().map_or("?".into(), sanitize);
        let (severity, now) = match found {
            FoundTask::Row(row) if row.is_in_d_state() => (Severity::Critical, "it is still in state D"),
            FoundTask::UninterruptibleThread(_) => (Severity::Critical, "it is still in state D"),
            FoundTask::Unknown => {
                (Severity::Warn, "whether it still does is not known, because not all threads are read")
            }
            FoundTask::Row(_) | FoundTask::Exited | FoundTask::RanOrExited => {
                (Severity::Warn, "it has continued or exited since")
            }
        };
        let title = format!("the kernel reported that {name} ({pid}) hung; {now}");
        Finding::new(severity, FindingSubject::Pid(pid, name), title)
            .fact("kernel message", sanitize(&entry.message))
            .fact("messages", entry.count.to_string())
            .since(ctx.wall_to_boot_ns(entry.first_wall_ns))
            .why("A device or a file system did not answer for minutes, and may do so again.")
            .advise_at("read the stack under the kernel's message", NavTarget::KernelLog(entry.seq))
            .see_also(NavTarget::KernelLog(entry.seq))
            .report(out);
    }
}

pub(super) fn evaluate_warnings_exhausted(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let read_knob = || ctx.system.slow_facts.knob_number("kernel.hung_task_warnings");
    let warnings_left = ctx.system.hung_task_warnings.or_else(read_knob);
    if warnings_left.ok_or(RuleSkipped::NeedsMoreData("kernel settings"))? != 0 {
        return Ok(());
    }
    let severity = if ctx.system.hung_tasks.is_empty() { Severity::Note } else { Severity::Warn };
    let title = "the kernel no longer reports hung tasks: kernel.hung_task_warnings is 0";
    Finding::of_machine(severity, title)
        .fact("kernel.hung_task_warnings", "0")
        .why("The kernel counts down from ten with every report, and reports nothing at 0 until it is raised again.")
        .advise_at("set kernel.hung_task_warnings to 10, or to -1 for no limit", knob("kernel.hung_task_warnings"))
        .costs("with -1 a hang floods the kernel log")
        .report(out);
    Ok(())
}
