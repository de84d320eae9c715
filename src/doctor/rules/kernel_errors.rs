//! Problems that the kernel log states: resets, failed requests, damaged file systems, out of memory.

use super::prelude::*;
use super::replaced_device::is_about_replaced_device;
use crate::model::kernel_log::LogEntry;
use crate::model::topology::{BlockDevice, Topology};

/// Older messages are history, shown in the Kernel view only.
pub(super) const RECENT_SECS: u64 = 600;
/// A problem reported within this time is ongoing: error handling and retries take up to a minute.
const ONGOING_SECS: f64 = 120.0;
/// The device lacks an operation (WRITE_ZEROES, discard) and the kernel does without: no failure.
const UNSUPPORTED_OPERATION: &str = "operation not supported error";
/// Printed once for each SCSI device as it is attached; after that, by a device that was reset.
const POWER_ON: &str = "Power-on or device reset occurred";
/// Devices are attached within this time after boot.
const BOOT_SECS: u64 = 60;
/// This many resets are more than a glitch of the link.
const MANY_RESETS: u64 = 3;
const MAX_OOM_FINDINGS: usize = 3;

/// Recent messages of one class about one device.
struct KernelReports<'a> {
    /// The device's name in the kernel log, sanitized; empty if none.
    name: String,
    device: Option<DevId>,
    newest: &'a LogEntry,
    /// Messages and rate-limited lines of the last ten minutes.
    count: u64,
    suppressed: u64,
    first_wall_ns: i64,
    /// Whether each message of the group is about damage that was mended.
    is_corrected: bool,
    /// Whether one says so.
    has_correction: bool,
}

fn group_reports<'a>(
    ctx: &RuleContext<'a>,
    class: KernelLogClass,
    is_wanted: impl Fn(&LogEntry) -> bool,
) -> Vec<KernelReports<'a>> {
    let mut out: Vec<KernelReports<'a>> = Vec::new();
    for entry in ctx.kernel_messages(class, RECENT_SECS).filter(|entry| is_wanted(entry)) {
        let number = entry.devno.map(|(major, minor)| DevId { major, minor });
        let device = number.or_else(|| ctx.find_device(entry.device.as_deref()?));
        if is_about_replaced_device(ctx, entry, device) {
            continue;
        }
        let logged = entry.device.as_deref().unwrap_or_default();
        // Errors of swap name the device by its number only.
        let name = match device.filter(|_| DevId::parse(logged.as_bytes()).is_some()) {
            Some(id) => ctx.device_name(id),
            None => sanitize(logged),
        };
        let (count, suppressed) = entry.recent_counts(ctx.system.now().wall_ns);
        // Errors of a partition and of its disk, and of one device under two names, belong together.
        let disk = |id: Option<DevId>| id.and_then(|id| ctx.device_chain(id).last().copied());
        match out.iter_mut().find(|r| r.name == name || (device.is_some() && disk(r.device) == disk(device))) {
            Some(reports) => {
                reports.count += count;
                reports.suppressed += suppressed;
                reports.first_wall_ns = reports.first_wall_ns.min(entry.first_wall_ns);
                reports.is_corrected &= is_mended(&entry.message);
                reports.has_correction |= is_corrected(&entry.message);
            }
            None => out.push(KernelReports {
                name,
                device,
                newest: entry,
                count,
                suppressed,
                first_wall_ns: entry.first_wall_ns,
                is_corrected: is_mended(&entry.message),
                has_correction: is_corrected(&entry.message),
            }),
        }
    }
    out
}

impl KernelReports<'_> {
    /// The finding with what all of these rules have in common. `severity` falls to a warning once the problem is over
    /// or the device is gone.
    fn build_finding(&self, ctx: &RuleContext<'_>, severity: Severity, problem: &str) -> Finding {
        let subject = match (self.device, self.name.is_empty()) {
            (Some(id), _) => FindingSubject::Device(id, ctx.device_name(id)),
            (None, false) => FindingSubject::KernelName(self.name.clone()),
            (None, true) => FindingSubject::Machine,
        };
        let message = sanitize(&self.newest.message);
        let on = if self.name.is_empty() { String::new() } else { format!(" on {}", self.name) };
        let times = match (self.count + self.suppressed, self.suppressed) {
            (1, _) => String::new(),
            (n, 0) => format!(", {n} times in 10 minutes"),
            (n, _) => format!(", at least {n} times in 10 minutes"),
        };
        let last_seen = ctx.wall_to_boot_ns(self.newest.wall_ns);
        let is_gone = |(id, topology): (DevId, &Topology)| topology.get(id).is_none_or(BlockDevice::is_vacant);
        let is_over =
            ctx.secs_since(last_seen) > ONGOING_SECS || self.device.zip(ctx.system.topology.ok()).is_some_and(is_gone);
        let severity = if is_over { severity.min(Severity::Warn) } else { severity };
        Finding::new(severity, subject, format!("{problem}{on}{times}: {message}"))
            .fact("messages in 10 min", self.count.to_string())
            .fact_opt("rate-limited", (self.suppressed > 0).then(|| format!("at least {}", self.suppressed)))
            .fact("newest", format!("{} ago: {message}", format::duration(ctx.secs_since(last_seen))))
            .since(ctx.wall_to_boot_ns(self.first_wall_ns))
            .last_seen(last_seen)
            .see_also(NavTarget::KernelLog(self.newest.seq))
            .on_devices(self.device.map(|id| ctx.device_chain(id)).unwrap_or_default())
    }
}

fn require_kernel_log(ctx: &RuleContext<'_>) -> RuleResult {
    ctx.require(&ctx.system.kernel_log_status).copied()
}

/// Adds the findings about the messages of a class that `is_wanted` accepts.
fn report_messages(
    ctx: &RuleContext<'_>,
    out: &mut Vec<Finding>,
    class: KernelLogClass,
    is_wanted: impl Fn(&LogEntry) -> bool,
    finding: impl Fn(&KernelReports<'_>) -> Finding,
) -> RuleResult {
    out.extend(group_reports(ctx, class, is_wanted).iter().map(finding));
    require_kernel_log(ctx)
}

pub(super) fn evaluate_resets(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let finding = |reports: &KernelReports<'_>| {
        let severity = Severity::critical_if(reports.count >= MANY_RESETS);
        reports
            .build_finding(ctx, severity, "resets or timeouts")
            .why(
                "While a link or controller is reset, every request on it waits for seconds. Repeated resets mean \
                 that a cable, port, controller or disk is failing.",
            )
            .advise("check cable, port and firmware; read SMART (smartctl -a)")
            .advise("copy the data while it can be read")
            .costs("load on a weak device")
    };
    let is_attach = |entry: &LogEntry| {
        let is_booting = ctx.wall_to_boot_ns(entry.wall_ns) < BOOT_SECS * 1_000_000_000;
        (entry.count == 1 || is_booting) && entry.message.contains(POWER_ON)
    };
    report_messages(ctx, out, KernelLogClass::ResetTimeout, |entry| !is_attach(entry), finding)
}

pub(super) fn evaluate_io_errors(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let finding = |reports: &KernelReports<'_>| {
        reports
            .build_finding(ctx, Severity::Critical, "I/O errors")
            .why(
                "The device failed requests: their data was not written, or cannot be read. The file system or \
                 database above may stop or lose data.",
            )
            .advise("save what can be read; check SMART (smartctl -a) and the RAID's state")
            .costs("load on a weak device")
            .advise(
                "check cable and controller if there are resets as well; for a network or loop device its server \
                 or backing file",
            )
            .advise("do not run fsck before there is a copy: fsck writes")
    };
    let is_failure = |entry: &LogEntry| !entry.message.contains(UNSUPPORTED_OPERATION);
    report_messages(ctx, out, KernelLogClass::IoError, is_failure, finding)
}

/// `fsck` by itself checks neither XFS nor btrfs.
pub(super) const CHECK_FILESYSTEM: &str =
    "stop writing to it, save what can be read, then check it unmounted (e2fsck -f, xfs_repair -n, btrfs check)";

/// Parts of words that tell a file system's errors from remarks about its use.
const FILESYSTEM_ERROR_WORDS: &[&str] =
    &["rror", "orrupt", "bort", "read-only", "shut", "lost", "failed", "annot", "nconsistent", "readonly"];

pub(super) fn evaluate_filesystem_errors(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let finding = |reports: &KernelReports<'_>| {
        let severity = Severity::critical_if(!(reports.is_corrected && reports.has_correction));
        let problem =
            if severity == Severity::Critical { "file system errors" } else { "corrected file system errors" };
        reports
            .build_finding(ctx, severity, problem)
            .why("The file system found its own data damaged, or could not write it. Its contents may be incomplete.")
            .advise(CHECK_FILESYSTEM)
            .costs("the service is down")
            .advise("find the cause first: I/O errors or resets of the device below")
    };
    let is_error = |entry: &LogEntry| {
        let has_error = FILESYSTEM_ERROR_WORDS.iter().any(|word| entry.message.contains(word));
        has_error && !entry.message.starts_with(super::thin_pool::PREFIX)
    };
    report_messages(ctx, out, KernelLogClass::Filesystem, is_error, finding)
}

/// Whether the message is of a correction, or counts and locates what is being corrected (fs/btrfs/volumes.c, scrub.c).
fn is_mended(message: &str) -> bool {
    let neutral = ["errs: wr", "checksum error", "csum failed", "header error", "scrub: finished", "scrub: started"];
    is_corrected(message) || (message.starts_with("BTRFS") && neutral.iter().any(|words| message.contains(words)))
}

/// Whether btrfs read a good copy instead and repaired the bad one (fs/btrfs/scrub.c, bio.c).
fn is_corrected(message: &str) -> bool {
    let words = ["fixed up error", "read error corrected", "0 uncorrectable"];
    words.iter().any(|word| message.contains(word))
}

pub(super) fn evaluate_oom(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let killed = |entry: &&LogEntry| entry.pid.is_some() || entry.message.contains("ut of memory");
    for entry in ctx.kernel_messages(KernelLogClass::Oom, RECENT_SECS).filter(killed).take(MAX_OOM_FINDINGS) {
        out.push(oom_finding(ctx, entry));
    }
    let any_kill = ctx.snapshot().and_then(|s| s.reclaim).is_some_and(|r| r.oom_kills > 0);
    let log = require_kernel_log(ctx);
    if any_kill && log.is_err() {
        let title = "out of memory: the kernel killed a process (the kernel log, which cannot be read, names it)";
        Finding::of_machine(Severity::Critical, title)
            .why("A process was killed and could not save anything.")
            .advise("read the kernel log as root")
            .see_also(NavTarget::Memory)
            .report(out);
        return Ok(());
    }
    log
}

fn oom_finding(ctx: &RuleContext<'_>, entry: &LogEntry) -> Finding {
    let name = entry.comm.as_deref().map_or("a process".into(), sanitize);
    let memory = if entry.message.starts_with("Memory cgroup") { "its control group" } else { "the machine" };
    let message = sanitize(&entry.message);
    let title = match entry.pid {
        Some(pid) => format!("out of memory: {memory} had none left, and the kernel killed {name} ({pid})"),
        None => format!("out of memory: {message}"),
    };
    let subject = entry.pid.map_or(FindingSubject::Machine, |pid| FindingSubject::Pid(pid, name));
    let last_seen = ctx.wall_to_boot_ns(entry.wall_ns);
    Finding::new(Severity::Critical, subject, title)
        .fact("kernel message", message)
        .fact("killed", format!("{} ago", format::duration(ctx.secs_since(last_seen))))
        .since(ctx.wall_to_boot_ns(entry.first_wall_ns))
        .last_seen(last_seen)
        .why("A process was killed and could not save anything. Before that, everything was slow because the cache was gone.")
        .advise_at("see which processes use the memory: RSS and SWAP", NavTarget::Processes)
        .advise("lower what it may use (caches, heaps, workers), raise the cgroup's limit, or add memory").costs("less cache, or money")
        .see_also(NavTarget::KernelLog(entry.seq))
}
