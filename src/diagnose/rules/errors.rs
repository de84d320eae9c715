//! What the kernel log says outright: resets, failed requests, damaged file systems, memory that ran out.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::model::disk::DevId;
use crate::model::kernel_log::{KernelLogClass, LogEntry};
use crate::model::topology::BlockDevice;
use crate::units::format_rfc3339;

/// Resets and timeouts.
pub const RESETS: Rule =
    Rule { name: "device-reset", about: "requests or links that time out, aborts, resets", look: resets };
/// Failed requests.
pub const IO: Rule = Rule { name: "io-error", about: "requests that a device failed", look: io };
/// Damaged file systems.
pub const FILESYSTEM: Rule =
    Rule { name: "filesystem-error", about: "file systems that found damage or lost data", look: filesystem };
/// Out of memory.
pub const OOM: Rule = Rule { name: "oom", about: "processes killed for want of memory", look: oom };

/// The kernel's words count for so long, seconds: what is older is history and stands in the Kernel view.
const RECENT_SECS: u64 = 600;
/// What was said within this time is going on, seconds: error handling and retries take up to a minute.
const NOW_SECS: u64 = 120;
/// The device does not offer an operation (WRITE_ZEROES, discard), and the kernel does without: no failure.
const NOT_OFFERED: &str = "operation not supported error";
/// So many resets are no hiccup of a link.
const MANY_RESETS: u64 = 3;

/// All recent entries of one class about one thing.
struct Told<'a> {
    /// As the kernel names it; cleaned.
    name: String,
    id: Option<DevId>,
    newest: &'a LogEntry,
    count: u64,
    suppressed: u64,
    first: i64,
}

fn told<'a>(case: &Case<'a>, class: KernelLogClass, of: impl Fn(&LogEntry) -> bool) -> Vec<Told<'a>> {
    let mut out: Vec<Told<'a>> = Vec::new();
    let from = case.world.now().wall_ns.saturating_sub((RECENT_SECS * 1_000_000_000) as i64);
    let entries = case.world.kernel_log.entries().rev().take_while(move |e| e.wall_ns >= from);
    for e in
        entries.filter(|e| e.class == class && e.origin == crate::model::kernel_log::LogOrigin::Kernel && of(e))
    {
        let name = e.device.as_deref().map_or(String::new(), crate::text::sanitize);
        let number = e.devno.map(|(major, minor)| DevId { major, minor });
        let id = number.or_else(|| case.device_called(e.device.as_deref()?));
        if is_of_former(case, e, id) {
            continue;
        }
        // A partition's and its disk's errors, and one device under two names, are one matter.
        let disk = |id: Option<DevId>| id.and_then(|id| case.chain(id).last().copied());
        match out.iter_mut().find(|t| t.name == name || (id.is_some() && disk(t.id) == disk(id))) {
            Some(t) => {
                t.count += e.count;
                t.suppressed += e.suppressed;
                t.first = t.first.min(e.first_wall_ns);
            }
            None => out.push(Told {
                name,
                id,
                newest: e,
                count: e.count,
                suppressed: e.suppressed,
                first: e.first_wall_ns,
            }),
        }
    }
    out
}

/// Whether it was said of what was behind this name before: loop devices and card readers come back with another
/// file or medium.
fn is_of_former(case: &Case<'_>, e: &LogEntry, id: Option<DevId>) -> bool {
    let log = &case.world.kernel_log;
    let named = e.device.as_deref().and_then(|name| log.attached_at(name));
    let topo = case.world.topology.ok();
    let names =
        id.zip(topo).map(|(id, topo)| case.chain(id).into_iter().filter_map(|id| Some(&*topo.get(id)?.name)));
    let beneath = names.into_iter().flatten().filter_map(|name| log.attached_at(name)).max();
    named.max(beneath).is_some_and(|at| e.wall_ns < at)
}

impl Told<'_> {
    fn subject(&self, case: &Case<'_>) -> Subject {
        match (self.id, self.name.is_empty()) {
            (Some(id), _) => Subject::Device(id, case.device_name(id)),
            (None, false) => Subject::Named(self.name.clone()),
            (None, true) => Subject::Machine,
        }
    }

    /// The finding with what all of these have in common.
    fn finding(&self, case: &Case<'_>, rule: &'static str, severity: Severity, title: String) -> Finding {
        let devices = self.id.map(|id| case.chain(id)).unwrap_or_default();
        Finding::new(rule, severity, self.subject(case), title)
            .fact("reports in 10 min", self.count.to_string())
            .fact_if(
                "kept back by the kernel's rate limit",
                (self.suppressed > 0).then(|| format!("at least {}", self.suppressed)),
            )
            .fact(
                "newest",
                format!("{}: {}", format_rfc3339(self.newest.wall_ns), crate::text::sanitize(&self.newest.message)),
            )
            .since(case.boot_of(self.first))
            .last(case.boot_of(self.newest.wall_ns))
            .look_at(Jump::Kernel(self.newest.seq))
            .touching(devices)
    }

    /// As bad as `now` while it goes on; later, or when the device was taken away, a warning.
    fn severity(&self, case: &Case<'_>, now: Severity) -> Severity {
        let age = case.now_ns().saturating_sub(case.boot_of(self.newest.wall_ns)) / 1_000_000_000;
        let topo = case.world.topology.ok();
        let gone = self.id.zip(topo).is_some_and(|(id, t)| t.get(id).is_none_or(BlockDevice::is_vacant));
        if age > NOW_SECS || gone { now.min(Severity::Warn) } else { now }
    }

    fn on(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" on {}", self.name) }
    }

    fn times(&self) -> String {
        let more = if self.suppressed > 0 { "at least " } else { "" };
        let n = self.count + self.suppressed;
        if n == 1 { String::new() } else { format!(", {more}{n} times in 10 minutes") }
    }
}

fn judged(case: &Case<'_>) -> Judged {
    case.klog_missing().map_or(Judged::Yes, Judged::Cannot)
}

fn resets(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    for t in told(case, KernelLogClass::ResetTimeout, |_| true) {
        let severity = if t.count >= MANY_RESETS { Severity::Critical } else { Severity::Warn };
        let title =
            format!("resets or timeouts{}{}: {}", t.on(), t.times(), crate::text::sanitize(&t.newest.message));
        out.push(
            t.finding(case, RESETS.name, t.severity(case, severity), title)
                .why(
                    "While a link or controller is reset every request on it waits, for seconds. Resets that come again \
                     mean a cable, a port, a controller or a disk that is failing.",
                )
                .advise("check cable, port and firmware; read SMART (smartctl -a)", "nothing")
                .advise("copy the data away while it can be read", "load on a weak device"),
        );
    }
    judged(case)
}

fn io(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    for t in told(case, KernelLogClass::IoError, |e| !e.message.contains(NOT_OFFERED)) {
        let title = format!("I/O errors{}{}: {}", t.on(), t.times(), crate::text::sanitize(&t.newest.message));
        out.push(
            t.finding(case, IO.name, t.severity(case, Severity::Critical), title)
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
    judged(case)
}

/// Words that make a file system's line more than a warning about its use.
const DAMAGE: &[&str] =
    &["rror", "orrupt", "bort", "read-only", "shut", "lost", "failed", "annot", "nconsistent", "readonly"];

fn filesystem(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    for t in told(case, KernelLogClass::Filesystem, |e| DAMAGE.iter().any(|w| e.message.contains(w))) {
        let title =
            format!("file system errors{}{}: {}", t.on(), t.times(), crate::text::sanitize(&t.newest.message));
        out.push(
            t.finding(case, FILESYSTEM.name, t.severity(case, Severity::Critical), title)
                .why("The file system found its own data damaged or could not write it. What it holds may be incomplete.")
                .advise("stop writing to it, save what can be read, then check it unmounted (fsck)", "the service is down")
                .advise("find the cause first: I/O errors or resets of the device beneath", "nothing"),
        );
    }
    judged(case)
}

fn oom(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let killed = |e: &LogEntry| e.pid.is_some() || e.message.contains("ut of memory");
    let mut victims: Vec<&LogEntry> =
        case.kernel_said(KernelLogClass::Oom, RECENT_SECS).filter(|e| killed(e)).collect();
    victims.truncate(3);
    for e in victims {
        let name = e.comm.as_deref().map_or("a process".into(), crate::text::sanitize);
        let subject = e.pid.map_or(Subject::Machine, |pid| Subject::Pid(pid, name.clone()));
        let group = e.message.starts_with("Memory cgroup");
        let whose = if group { "its control group's memory" } else { "memory" };
        let title = match e.pid {
            Some(pid) => format!("out of memory: the kernel killed {name} ({pid}) for want of {whose}"),
            None => format!("out of memory: {}", crate::text::sanitize(&e.message)),
        };
        out.push(
            Finding::new(OOM.name, Severity::Critical, subject, title)
                .fact("kernel's report", crate::text::sanitize(&e.message))
                .fact("at", format_rfc3339(e.wall_ns))
                .since(case.boot_of(e.first_wall_ns))
                .last(case.boot_of(e.wall_ns))
                .why("A process was ended without a chance to save anything; before that, everything was slow for want of cache.")
                .advise_at("see who holds the memory: RES and SWAP", "nothing", Jump::Processes)
                .advise("lower what it may use (caches, heaps, workers), raise the group's limit, or add memory", "less cache, or money")
                .look_at(Jump::Kernel(e.seq)),
        );
    }
    let unseen = case.snap().and_then(|s| s.reclaim).is_some_and(|r| r.oom_kills > 0);
    if unseen && case.klog_missing().is_some() {
        out.push(
            Finding::new(
                OOM.name,
                Severity::Critical,
                Subject::Machine,
                "the kernel killed a process for want of memory (which one stands in the kernel log, which cannot be read)"
                    .into(),
            )
            .why("A process was ended without a chance to save anything.")
            .advise("read the kernel log as root", "nothing")
            .look_at(Jump::Memory),
        );
        return Judged::Yes;
    }
    judged(case)
}
