//! Tasks in uninterruptible sleep for long: the kernel's own word, and a watch of our own, because the kernel
//! falls silent after ten reports and never reports a direct reader of a dead disk.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::model::kernel_log::hung_tasks::HungTask;
use crate::model::kernel_log::{KernelLogClass, LogEntry};
use crate::model::process::{ProcessRow, TaskKey};

/// Tasks that hang.
pub const HUNG_TASK: Rule =
    Rule { name: "hung-task", description: "tasks in state D for long, reported by the kernel or not", evaluate: look };

/// The kernel's reports are used up.
pub const WARNINGS_EXHAUSTED: Rule = Rule {
    name: "hung-task-silent",
    description: "the kernel no longer reports hung tasks (kernel.hung_task_warnings is 0)",
    evaluate: evaluate_warnings_exhausted,
};

/// From here on it is no slow request: as long as the kernel waits for a spinning disk's error recovery.
const CRITICAL_SECS: u64 = 8;
/// A report this old about a task that is still in D counts as now.
const REPORT_SECS: u64 = 600;
/// What the kernel functions that tasks hang in stand for.
const WAIT_CHANNEL_MEANINGS: &[(&str, &str)] = &[
    ("percpu_rwsem_wait", "a file system that is frozen (fsfreeze, a snapshot) or being frozen"),
    ("balance_dirty_pages", "too many dirty pages: the device writes slower than programs do"),
    ("submit_bio_wait", "a request at the device itself"),
    ("blk_io_schedule", "a direct request at the device itself"),
    ("blkdev_direct_IO", "a direct request at the device itself"),
    ("iomap_dio_rw", "a direct request at the device itself"),
    ("request_wait_answer", "the program that serves a FUSE file system"),
    ("fuse_", "the program that serves a FUSE file system"),
    ("rpc_wait_bit", "an NFS server"),
    ("nfs_", "an NFS server"),
    ("jbd2_log_wait_commit", "a journal commit of ext4"),
    ("wait_transaction_locked", "a journal commit of ext4"),
    ("xlog_", "the log of XFS"),
    ("xfs_", "XFS, mostly its log or a page being written"),
    ("folio_wait", "a page that is read or written"),
    ("io_schedule", "a request at a device"),
    (
        "blk_mq_freeze_queue_wait",
        "a device's queue that does not empty: somebody changes its settings or takes it away",
    ),
    ("rwsem_down", "a lock that another task holds: look for the one that waits for a device"),
];
/// Tasks are watched for so long before they count as hanging, with a tick to spare; ticks looked at for that.
const WATCH_SECS: f64 = 6.0;
const WATCH_TICKS: usize = 60;
/// Hung tasks told one by one; the rest is counted in the last.
const MAX_FINDINGS: usize = 3;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let mut told = 0;
    for stuck in &case.system.hung_tasks {
        let row = case.system.processes.get(&TaskKey { pid: stuck.pid, tid: stuck.tid, starttime: stuck.starttime });
        let report = case.system.kernel_log.latest_hung_task(stuck.tid);
        // Some drivers' threads sleep in D for good; only the kernel knows which of them hang.
        if row.as_ref().is_some_and(|r| r.kernel_thread) && report.is_none() {
            continue;
        }
        told += 1;
        if told <= MAX_FINDINGS {
            out.push(hung_task_finding(case, stuck, row.as_ref(), report));
        }
    }
    if let (Some(last), true) = (out.last_mut(), told > MAX_FINDINGS) {
        last.title.push_str(&format!("; {} more tasks hang", told - MAX_FINDINGS));
    }
    add_kernel_reports(case, out);
    match case.system.processes_status.unavailable_reason(case.now_ns()) {
        Some(why) => RuleStatus::Unavailable(why),
        None if case.system.history.len() < 2 => RuleStatus::NeedsMoreData("several looks at the tasks"),
        None if told == 0 && is_undecided(case) => {
            RuleStatus::NeedsMoreData("six seconds of looks: there are tasks in state D")
        }
        None => RuleStatus::Evaluated,
    }
}

/// Whether tasks wait that were not watched for long enough to say that they hang.
fn is_undecided(case: &RuleContext<'_>) -> bool {
    let looked: f64 = case.ticks().map(|s| s.interval_secs).take(WATCH_TICKS).sum();
    looked < WATCH_SECS && case.system.processes.tasks_in_d_state().any(|(task, _)| !task.kernel_thread)
}

fn hung_task_finding(
    case: &RuleContext<'_>,
    s: &HungTask,
    row: Option<&ProcessRow<'_>>,
    report: Option<&LogEntry>,
) -> Finding {
    let key = TaskKey { pid: s.pid, tid: s.tid, starttime: s.starttime };
    let name = crate::sanitize::sanitize(&s.comm);
    // The kernel has watched for longer than we have.
    let since = report.map_or(s.since_boot_ns, |e| s.since_boot_ns.min(case.wall_to_boot_ns(e.first_wall_ns)));
    let secs = case.now_ns().saturating_sub(since) / 1_000_000_000;
    let severity = match secs >= CRITICAL_SECS || report.is_some() {
        true => Severity::Critical,
        false => Severity::Warn,
    };
    let wait = s.wchan.as_deref().map(crate::sanitize::sanitize).filter(|w| !w.is_empty() && w != "0");
    let meaning =
        wait.as_deref().and_then(|w| WAIT_CHANNEL_MEANINGS.iter().find(|(f, _)| w.starts_with(f))).map(|m| m.1);
    let place = wait.as_ref().map_or(String::new(), |w| format!(" in {w}"));
    let title = format!("{name} ({}) hangs: in state D for at least {}{place}", s.tid, format::duration(secs as f64));
    let others = case.system.hung_tasks.len();
    Finding::new(HUNG_TASK.name, severity, FindingSubject::Task(key, name), title)
        .fact("state", "D, not scheduled")
        .fact("for at least", format::duration(secs as f64))
        .fact_opt("which means", meaning.map(str::to_owned))
        .fact_opt("wait channel", wait)
        .fact_opt("command", row.and_then(|r| Some(crate::sanitize::fit_width(&r.command.as_ref()?.to_string(), 120).0.to_owned())))
        .fact_opt("kernel's report", report.map(|e| crate::sanitize::sanitize(&e.message)))
        .fact("tasks in D for long", others.to_string())
        .since(since)
        .why(
            "A task in uninterruptible sleep waits for the kernel, mostly for a device or a file system. It cannot be \
             killed, and it holds its locks: others that need them hang as well.",
        )
        .advise_at(
            "read its kernel stack and what it waits for on its page; the cause is the device or file system it waits for",
            "nothing",
            NavTarget::Task(key),
        )
        .advise("find out whether its device stalls, its server answers, its file system is frozen", "nothing")
        .advise("do not reboot at once: a dump of the stacks (echo w > /proc/sysrq-trigger) shows the cause", "one write to the kernel log")
        .see_also(report.map_or(NavTarget::Task(key), |e| NavTarget::KernelLog(e.seq)))
}

/// What the kernel reported lately about tasks that are not among those seen now.
fn add_kernel_reports(case: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let mut told = Vec::new();
    for e in case.kernel_messages(KernelLogClass::HungTask, REPORT_SECS) {
        let Some(pid) = e.pid else { continue };
        if told.contains(&pid) || case.system.hung_tasks.iter().any(|s| s.tid == pid) || told.len() >= MAX_FINDINGS {
            continue;
        }
        told.push(pid);
        let name = e.comm.as_deref().map_or("?".into(), crate::sanitize::sanitize);
        let there = case.system.processes.find_by_pid(pid).filter(|r| r.state == 'D');
        let severity = if there.is_some() { Severity::Critical } else { Severity::Warn };
        let now = if there.is_some() { "still in state D" } else { "it has gone on or ended since" };
        out.push(
            Finding::new(
                HUNG_TASK.name,
                severity,
                FindingSubject::Pid(pid, name.clone()),
                format!("the kernel reported that {name} ({pid}) hung; {now}"),
            )
            .fact("kernel's report", crate::sanitize::sanitize(&e.message))
            .fact("reports", e.count.to_string())
            .since(case.wall_to_boot_ns(e.first_wall_ns))
            .why(
                "What hung once had a cause that may come again: a device or a file system did not answer for minutes.",
            )
            .advise_at("read the stack under the kernel's message", "nothing", NavTarget::KernelLog(e.seq))
            .see_also(NavTarget::KernelLog(e.seq)),
        );
    }
}

fn evaluate_warnings_exhausted(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let left =
        case.system.hung_task_warnings.or_else(|| case.system.slow_facts.knob_number("kernel.hung_task_warnings"));
    let Some(left) = left else { return RuleStatus::NeedsMoreData("the kernel's settings") };
    if left != 0 {
        return RuleStatus::Evaluated;
    }
    let hangs = !case.system.hung_tasks.is_empty();
    out.push(
        Finding::new(
            WARNINGS_EXHAUSTED.name,
            if hangs { Severity::Warn } else { Severity::Note },
            FindingSubject::Machine,
            "the kernel has gone silent about hung tasks: kernel.hung_task_warnings is 0".into(),
        )
        .fact("kernel.hung_task_warnings", "0")
        .why("The kernel counts down from ten with every report and then says nothing more until it is raised again.")
        .advise_at(
            "set kernel.hung_task_warnings to 10, or to -1 for no limit",
            "a hang floods the kernel log with -1",
            NavTarget::Knob("kernel.hung_task_warnings".into()),
        ),
    );
    RuleStatus::Evaluated
}
