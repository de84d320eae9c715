//! Problems that the kernel log states: resets, failed requests, damaged file systems, out of memory.

use super::prelude::*;
use super::replaced_device::is_about_replaced_device;
use crate::doctor::rule_context::MAX_FINDINGS;
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
const MAX_NAMED_DISKS: usize = 4;

/// Recent messages of one class about one device.
struct KernelReports<'a> {
    /// The device's name in the kernel log, sanitized; empty if none.
    name: String,
    /// The device with this name, or the disks behind the controller or port with this name; empty if not known.
    devices: Vec<DevId>,
    /// Whether the name is that of a controller or port.
    is_controller: bool,
    /// Newest first.
    entries: Vec<&'a LogEntry>,
    /// Messages and rate-limited lines of the last ten minutes.
    count: u64,
    suppressed: u64,
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
        let with_name = out.iter().position(|reports| reports.name == name);
        let at = with_name.unwrap_or_else(|| {
            // The search costs a look at all disks, and more findings than this are left out.
            let is_controller = device.is_none() && out.len() < MAX_FINDINGS;
            let behind = if is_controller { ctx.disks_behind(logged) } else { Vec::new() };
            let devices = device.map_or(behind, |id| vec![id]);
            let same = out.iter().position(|reports| is_same(ctx, class, &reports.devices, &devices));
            if same.is_none() {
                let entries = Vec::new();
                out.push(KernelReports { name, devices, is_controller, entries, count: 0, suppressed: 0 });
            }
            same.unwrap_or(out.len() - 1)
        });
        out[at].entries.push(entry);
        out[at].count += count;
        out[at].suppressed += suppressed;
    }
    out
}

/// Whether messages about these devices are of one problem. Those of a partition, of its disk and of the port of that are;
/// file systems are damaged one by one.
fn is_same(ctx: &RuleContext<'_>, class: KernelLogClass, some: &[DevId], others: &[DevId]) -> bool {
    let ([a], [b]) = (some, others) else { return !some.is_empty() && some == others };
    let disk = |id: DevId| ctx.device_chain(id).last().copied();
    a == b || (class != KernelLogClass::Filesystem && disk(*a) == disk(*b))
}

impl KernelReports<'_> {
    /// The finding with what all of these rules have in common. `severity` falls to a warning once the problem is over
    /// or the device is gone.
    fn build_finding(&self, ctx: &RuleContext<'_>, severity: Severity, problem: &str) -> Finding {
        let device = if let [id] = self.devices[..] { Some(id) } else { None };
        let subject = match (device, self.name.is_empty()) {
            (Some(id), _) => FindingSubject::Device(id, ctx.device_name(id)),
            (None, false) => FindingSubject::KernelName(self.name.clone()),
            (None, true) => FindingSubject::Machine,
        };
        let newest = self.newest();
        let message = sanitize(&newest.message);
        let on = if self.name.is_empty() { String::new() } else { format!(" on {}", self.name) };
        let times = match (self.count + self.suppressed, self.suppressed) {
            (1, _) => String::new(),
            (n, 0) => format!(", {n} times in 10 minutes"),
            (n, _) => format!(", at least {n} times in 10 minutes"),
        };
        let last_seen = ctx.wall_to_boot_ns(newest.wall_ns);
        let first = self.entries.iter().map(|entry| entry.first_wall_ns).min().unwrap_or(newest.first_wall_ns);
        let is_gone = |(id, topology): (DevId, &Topology)| topology.get(id).is_none_or(BlockDevice::is_vacant);
        let is_over =
            ctx.secs_since(last_seen) > ONGOING_SECS || device.zip(ctx.system.topology.ok()).is_some_and(is_gone);
        let behind: Vec<String> = self.devices.iter().take(MAX_NAMED_DISKS).map(|id| ctx.device_name(*id)).collect();
        let severity = if is_over { severity.min(Severity::Warn) } else { severity };
        Finding::new(severity, subject, format!("{problem}{on}{times}: {message}"))
            .fact_opt("disks behind it", (self.is_controller && !behind.is_empty()).then(|| behind.join(", ")))
            .fact("messages in 10 min", self.count.to_string())
            .fact_opt("rate-limited", (self.suppressed > 0).then(|| format!("at least {}", self.suppressed)))
            .fact("newest", format!("{} ago: {message}", format::duration(ctx.secs_since(last_seen))))
            .since(ctx.wall_to_boot_ns(first))
            .last_seen(last_seen)
            .see_also(NavTarget::KernelLog(newest.seq))
            .on_devices(ctx.device_chains(&self.devices))
    }

    fn newest(&self) -> &LogEntry {
        self.entries[0]
    }

    fn all(&self, test: impl Fn(&str) -> bool) -> bool {
        self.entries.iter().all(|entry| test(&entry.message))
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.entries.iter().any(|entry| test(&entry.message))
    }
}

pub(super) fn require_kernel_log(ctx: &RuleContext<'_>) -> RuleResult {
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
    let is_wanted = |entry: &LogEntry| !is_attach(entry) && !is_of_no_disk(ctx, entry);
    report_messages(ctx, out, KernelLogClass::ResetTimeout, is_wanted, finding)
}

/// Whether a reset is that of a USB device with no disk behind it, as a keyboard or a camera. The message does not say what
/// the device is.
pub(super) fn is_of_no_disk(ctx: &RuleContext<'_>, entry: &LogEntry) -> bool {
    let has_disk = |name: &str| !ctx.disks_behind(name).is_empty();
    entry.message.starts_with("usb ") && !entry.device.as_deref().is_some_and(has_disk)
}

pub(super) fn evaluate_io_errors(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let finding = |reports: &KernelReports<'_>| {
        if reports.all(|message| is_path_failure(message) || is_read_correction(message)) {
            return harmless_errors_finding(ctx, reports);
        }
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

/// Whether multipath gave up a path (drivers/md/dm-mpath.c): it sends the requests by another one.
fn is_path_failure(message: &str) -> bool {
    message.starts_with("device-mapper: ") && message.contains(": Failing path ")
}

/// Whether an array read a bad sector from another member and wrote it again (drivers/md/raid1.c, raid10.c, raid5.c).
fn is_read_correction(message: &str) -> bool {
    message.starts_with("md/") && message.contains("read error corrected")
}

/// What went wrong below a multipath device or an array, which got the data by another path or from another member.
fn harmless_errors_finding(ctx: &RuleContext<'_>, reports: &KernelReports<'_>) -> Finding {
    if reports.all(is_path_failure) {
        return reports
            .build_finding(ctx, Severity::Warn, "failures of a path")
            .why(
                "Multipath sends the requests by the other paths: no data is lost while one of them works. With the last \
                 one, requests fail or wait for ever, as no_path_retry says.",
            )
            .advise("see which paths work (multipath -ll); check cable, switch and storage port of this one");
    }
    reports
        .build_finding(ctx, Severity::Warn, "corrected read errors")
        .why(
            "The array read these sectors from its other members and wrote them again: no data is lost. A disk with more and \
             more of them is failing.",
        )
        .advise("read the disk's own log (smartctl -a), and plan to replace it if the number grows")
        .costs("wakes a sleeping disk")
        .advise("let the array check all its sectors: write `check` to its md/sync_action")
        .costs("reads every member whole")
}

/// `fsck` by itself checks neither XFS nor btrfs.
pub(super) const CHECK_FILESYSTEM: &str =
    "stop writing to it, save what can be read, then check it unmounted (e2fsck -f, xfs_repair -n, btrfs check)";

/// Parts of words that tell a file system's errors from remarks about its use.
const FILESYSTEM_ERROR_WORDS: &[&str] =
    &["rror", "orrupt", "bort", "read-only", "shut", "lost", "failed", "annot", "nconsistent", "readonly"];

pub(super) fn evaluate_filesystem_errors(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let finding = |reports: &KernelReports<'_>| {
        let is_repaired = reports.all(is_mended) && reports.any(is_corrected);
        let severity = Severity::critical_if(!is_repaired);
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

/// The control group whose limit was reached, of a report of the kernel.
fn memory_group(entry: &LogEntry) -> Option<String> {
    let (_, group) = entry.folded.iter().find_map(|line| line.split_once("oom_memcg="))?;
    Some(sanitize(group.split(',').next()?))
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
        .in_cgroup(memory_group(entry).as_deref())
        .fact("kernel message", message)
        .fact("killed", format!("{} ago", format::duration(ctx.secs_since(last_seen))))
        .since(ctx.wall_to_boot_ns(entry.first_wall_ns))
        .last_seen(last_seen)
        .why("A process was killed and could not save anything. Before that, everything was slow because the cache was gone.")
        .advise_at("see which processes use the memory: RSS and SWAP", NavTarget::Processes)
        .advise("lower what it may use (caches, heaps, workers), raise the cgroup's limit, or add memory").costs("less cache, or money")
        .see_also(NavTarget::KernelLog(entry.seq))
}
