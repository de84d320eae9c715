//! What the kernel log says outright: resets, failed requests, damaged file systems, memory that ran out.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::kernel_log::{KernelLogClass, LogEntry};
use crate::model::topology::BlockDevice;
use crate::units::format_rfc3339;

/// Resets and timeouts.
pub const DEVICE_RESET: Rule = Rule {
    name: "device-reset",
    description: "requests or links that time out, aborts, resets",
    evaluate: evaluate_resets,
};
/// Failed requests.
pub const IO_ERROR: Rule =
    Rule { name: "io-error", description: "requests that a device failed", evaluate: evaluate_io_errors };
/// Damaged file systems.
pub const FILESYSTEM_ERROR: Rule = Rule {
    name: "filesystem-error",
    description: "file systems that found damage or lost data",
    evaluate: evaluate_filesystem_errors,
};
/// Out of memory.
pub const OOM: Rule = Rule { name: "oom", description: "processes killed for want of memory", evaluate: evaluate_oom };

/// The kernel's words count for so long, seconds: what is older is history and stands in the Kernel view.
const RECENT_SECS: u64 = 600;
/// What was said within this time is going on, seconds: error handling and retries take up to a minute.
const ONGOING_SECS: u64 = 120;
/// The device does not offer an operation (WRITE_ZEROES, discard), and the kernel does without: no failure.
const UNSUPPORTED_OPERATION: &str = "operation not supported error";
/// So many resets are no hiccup of a link.
const MANY_RESETS: u64 = 3;

/// All recent entries of one class about one thing.
struct KernelReports<'a> {
    /// As the kernel names it; cleaned.
    name: String,
    device: Option<DevId>,
    newest: &'a LogEntry,
    count: u64,
    suppressed: u64,
    first_ns: i64,
}

fn group_reports<'a>(
    case: &RuleContext<'a>,
    class: KernelLogClass,
    of: impl Fn(&LogEntry) -> bool,
) -> Vec<KernelReports<'a>> {
    let mut out: Vec<KernelReports<'a>> = Vec::new();
    let from = case.system.now().wall_ns.saturating_sub((RECENT_SECS * 1_000_000_000) as i64);
    let entries = case.system.kernel_log.entries().rev().take_while(move |e| e.wall_ns >= from);
    for e in entries.filter(|e| e.class == class && e.origin == crate::model::kernel_log::LogOrigin::Kernel && of(e)) {
        let name = e.device.as_deref().map_or(String::new(), crate::sanitize::sanitize);
        let number = e.devno.map(|(major, minor)| DevId { major, minor });
        let id = number.or_else(|| case.find_device(e.device.as_deref()?));
        if is_about_replaced_device(case, e, id) {
            continue;
        }
        // A partition's and its disk's errors, and one device under two names, are one matter.
        let disk = |id: Option<DevId>| id.and_then(|id| case.device_chain(id).last().copied());
        match out.iter_mut().find(|t| t.name == name || (id.is_some() && disk(t.device) == disk(id))) {
            Some(t) => {
                t.count += e.count;
                t.suppressed += e.suppressed;
                t.first_ns = t.first_ns.min(e.first_wall_ns);
            }
            None => out.push(KernelReports {
                name,
                device: id,
                newest: e,
                count: e.count,
                suppressed: e.suppressed,
                first_ns: e.first_wall_ns,
            }),
        }
    }
    out
}

/// Whether it was said of what was behind this name before: loop devices and card readers come back with another
/// file or medium.
fn is_about_replaced_device(case: &RuleContext<'_>, e: &LogEntry, id: Option<DevId>) -> bool {
    let log = &case.system.kernel_log;
    let named = e.device.as_deref().and_then(|name| log.attached_at(name));
    let topo = case.system.topology.ok();
    let names =
        id.zip(topo).map(|(id, topo)| case.device_chain(id).into_iter().filter_map(|id| Some(&*topo.get(id)?.name)));
    let beneath = names.into_iter().flatten().filter_map(|name| log.attached_at(name)).max();
    named.max(beneath).is_some_and(|at| e.wall_ns < at)
}

impl KernelReports<'_> {
    fn subject(&self, case: &RuleContext<'_>) -> FindingSubject {
        match (self.device, self.name.is_empty()) {
            (Some(id), _) => FindingSubject::Device(id, case.device_name(id)),
            (None, false) => FindingSubject::KernelName(self.name.clone()),
            (None, true) => FindingSubject::Machine,
        }
    }

    /// The finding with what all of these have in common.
    fn build_finding(&self, case: &RuleContext<'_>, rule: &'static str, severity: Severity, title: String) -> Finding {
        let devices = self.device.map(|id| case.device_chain(id)).unwrap_or_default();
        Finding::new(rule, severity, self.subject(case), title)
            .fact("reports in 10 min", self.count.to_string())
            .fact_opt(
                "kept back by the kernel's rate limit",
                (self.suppressed > 0).then(|| format!("at least {}", self.suppressed)),
            )
            .fact(
                "newest",
                format!("{}: {}", format_rfc3339(self.newest.wall_ns), crate::sanitize::sanitize(&self.newest.message)),
            )
            .since(case.wall_to_boot_ns(self.first_ns))
            .last_seen(case.wall_to_boot_ns(self.newest.wall_ns))
            .see_also(NavTarget::KernelLog(self.newest.seq))
            .on_devices(devices)
    }

    /// As bad as `now` while it goes on; later, or when the device was taken away, a warning.
    fn current_severity(&self, case: &RuleContext<'_>, now: Severity) -> Severity {
        let age = case.now_ns().saturating_sub(case.wall_to_boot_ns(self.newest.wall_ns)) / 1_000_000_000;
        let topo = case.system.topology.ok();
        let gone = self.device.zip(topo).is_some_and(|(id, t)| t.get(id).is_none_or(BlockDevice::is_vacant));
        if age > ONGOING_SECS || gone { now.min(Severity::Warn) } else { now }
    }

    fn device_suffix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" on {}", self.name) }
    }

    fn count_suffix(&self) -> String {
        let more = if self.suppressed > 0 { "at least " } else { "" };
        let n = self.count + self.suppressed;
        if n == 1 { String::new() } else { format!(", {more}{n} times in 10 minutes") }
    }
}

fn rule_status(case: &RuleContext<'_>) -> RuleStatus {
    case.kernel_log_unavailable().map_or(RuleStatus::Evaluated, RuleStatus::Unavailable)
}

fn evaluate_resets(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    for t in group_reports(case, KernelLogClass::ResetTimeout, |_| true) {
        let severity = if t.count >= MANY_RESETS { Severity::Critical } else { Severity::Warn };
        let title = format!(
            "resets or timeouts{}{}: {}",
            t.device_suffix(),
            t.count_suffix(),
            crate::sanitize::sanitize(&t.newest.message)
        );
        out.push(
            t.build_finding(case, DEVICE_RESET.name, t.current_severity(case, severity), title)
                .why(
                    "While a link or controller is reset every request on it waits, for seconds. Resets that come again \
                     mean a cable, a port, a controller or a disk that is failing.",
                )
                .advise("check cable, port and firmware; read SMART (smartctl -a)", "nothing")
                .advise("copy the data away while it can be read", "load on a weak device"),
        );
    }
    rule_status(case)
}

fn evaluate_io_errors(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    for t in group_reports(case, KernelLogClass::IoError, |e| !e.message.contains(UNSUPPORTED_OPERATION)) {
        let title = format!(
            "I/O errors{}{}: {}",
            t.device_suffix(),
            t.count_suffix(),
            crate::sanitize::sanitize(&t.newest.message)
        );
        out.push(
            t.build_finding(case, IO_ERROR.name, t.current_severity(case, Severity::Critical), title)
                .why(
                    "The device failed requests: what they were to write is not written, what they were to read is not \
                     known. The file system or database above may stop or lose data.",
                )
                .advise("save what can be read; check SMART (smartctl -a) and the RAID's state", "load on a weak device")
                .advise(
                    "check cable and controller if there are resets as well; for a network or loop device its server or \
                     backing file",
                    "nothing",
                )
                .advise("do not run fsck on it before there is a copy: it writes", "none; it is a warning"),
        );
    }
    rule_status(case)
}

/// Words that make a file system's line more than a warning about its use.
const FILESYSTEM_ERROR_WORDS: &[&str] =
    &["rror", "orrupt", "bort", "read-only", "shut", "lost", "failed", "annot", "nconsistent", "readonly"];

fn evaluate_filesystem_errors(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    for t in group_reports(case, KernelLogClass::Filesystem, |e| {
        FILESYSTEM_ERROR_WORDS.iter().any(|w| e.message.contains(w))
    }) {
        let title = format!(
            "file system errors{}{}: {}",
            t.device_suffix(),
            t.count_suffix(),
            crate::sanitize::sanitize(&t.newest.message)
        );
        out.push(
            t.build_finding(case, FILESYSTEM_ERROR.name, t.current_severity(case, Severity::Critical), title)
                .why("The file system found its own data damaged or could not write it. What it holds may be incomplete.")
                .advise("stop writing to it, save what can be read, then check it unmounted (fsck)", "the service is down")
                .advise("find the cause first: I/O errors or resets of the device beneath", "nothing"),
        );
    }
    rule_status(case)
}

fn evaluate_oom(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let killed = |e: &LogEntry| e.pid.is_some() || e.message.contains("ut of memory");
    let mut victims: Vec<&LogEntry> =
        case.kernel_messages(KernelLogClass::Oom, RECENT_SECS).filter(|e| killed(e)).collect();
    victims.truncate(3);
    for e in victims {
        let name = e.comm.as_deref().map_or("a process".into(), crate::sanitize::sanitize);
        let subject = e.pid.map_or(FindingSubject::Machine, |pid| FindingSubject::Pid(pid, name.clone()));
        let group = e.message.starts_with("Memory cgroup");
        let whose = if group { "its control group's memory" } else { "memory" };
        let title = match e.pid {
            Some(pid) => format!("out of memory: the kernel killed {name} ({pid}) for want of {whose}"),
            None => format!("out of memory: {}", crate::sanitize::sanitize(&e.message)),
        };
        out.push(
            Finding::new(OOM.name, Severity::Critical, subject, title)
                .fact("kernel's report", crate::sanitize::sanitize(&e.message))
                .fact("at", format_rfc3339(e.wall_ns))
                .since(case.wall_to_boot_ns(e.first_wall_ns))
                .last_seen(case.wall_to_boot_ns(e.wall_ns))
                .why("A process was ended without a chance to save anything; before that, everything was slow for want of cache.")
                .advise_at("see who holds the memory: RES and SWAP", "nothing", NavTarget::Processes)
                .advise("lower what it may use (caches, heaps, workers), raise the group's limit, or add memory", "less cache, or money")
                .see_also(NavTarget::KernelLog(e.seq)),
        );
    }
    let unseen = case.snapshot().and_then(|s| s.reclaim).is_some_and(|r| r.oom_kills > 0);
    if unseen && case.kernel_log_unavailable().is_some() {
        out.push(
            Finding::new(
                OOM.name,
                Severity::Critical,
                FindingSubject::Machine,
                "the kernel killed a process for want of memory (which one stands in the kernel log, which cannot be read)"
                    .into(),
            )
            .why("A process was ended without a chance to save anything.")
            .advise("read the kernel log as root", "nothing")
            .see_also(NavTarget::Memory),
        );
        return RuleStatus::Evaluated;
    }
    rule_status(case)
}
