//! Who is involved in the worst incident: the device, who causes the problem, and who suffers from it.

use super::task::{Task, is_kernel_thread, join_tasks, task_label, without_repeats};
use super::victims::{victims, waiting_for_device};
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::model::history::HistoryFrame;
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::units::format_bytes;
use std::collections::BTreeMap;

/// Rules about a device that is at fault itself, whoever uses it.
const DEVICE_FAULT_RULES: &[&str] = &[
    "device-stalled",
    "device-reset",
    "io-error",
    "filesystem-error",
    "read-only",
    "recorded-errors",
    "slow-device",
    "slow-direction",
    "slow-flush",
    "slow-discards",
    "slow-tail",
    "disk-health",
    "array-degraded",
    "array-mismatch",
    "paths-down",
    "cache-device",
];
/// Rules about load: where they name nobody, it is due to the busiest user of the device. The others are about a setting, or
/// about what no user of the device causes.
const LOAD_RULES: &[&str] = &[
    "device-saturated",
    "writeback-storm",
    "writers-throttled",
    "slow-drain",
    "syncs-behind-a-stream",
    "waits-on-syncs",
    "journal-full",
    "hung-task",
    "swapping",
    "reclaim-stalls",
    "cache-pressure",
];
/// Rates are means over this time, ns.
const WINDOW_NS: u64 = 10_000_000_000;
/// A task that a finding names as a culprit, with less than this share of the bytes and requests of the first, only waits
/// behind it.
const MIN_CULPRIT_SHARE: f64 = 0.25;
/// More victims than these are counted, not named.
const MAX_VICTIMS: usize = 2;
/// More culprits than these are counted, not named.
const MAX_CULPRITS: usize = 3;
/// Cells of a mount point or a control group in a line that is too long otherwise.
const SHORT_MOUNT: usize = 12;

/// `device loop0 /mnt · culprit dd (20733) 31.5M/s · victim sqlite (200)` for an incident, in `width` cells if that
/// can be: further victims, the mount point, the rate and further culprits are left out for that. What is not known is
/// left out, too. `None`: nothing is known.
pub(super) fn line(shared: &Shared, incident: &Incident, width: u16) -> Option<String> {
    let involved = Involved::of(shared, incident);
    let fits = |line: &String| unicode_width::UnicodeWidthStr::width(&**line) <= usize::from(width);
    let lines = (0..=MAX_SHORTENING).map(|level| involved.line(level));
    let shortest = || involved.line(MAX_SHORTENING);
    Some(lines.into_iter().find(fits).unwrap_or_else(shortest)).filter(|line| !line.is_empty())
}

/// [`line`] of the worst incident.
pub(super) fn worst_line(shared: &Shared, width: u16) -> Option<String> {
    line(shared, shared.findings.incidents.first()?, width)
}

/// Who or what causes a problem.
#[derive(Debug, PartialEq)]
enum Cause {
    Unknown,
    /// The device is at fault itself.
    Device,
    /// The memory limit of a control group, by its path.
    MemoryLimit(String),
    /// Tasks, with bytes per second on the device if they are known.
    Tasks(Vec<Task>, Option<f64>),
}

/// Who and what is involved.
struct Involved {
    /// Name of the device, and the first place it is mounted at.
    device: Option<(String, Option<String>)>,
    cause: Cause,
    victims: Vec<Task>,
    /// A file system on the device became read-only.
    is_read_only: bool,
}

/// Ways to shorten the line, each in addition to those before.
const MAX_SHORTENING: u8 = 5;

impl Involved {
    fn of(shared: &Shared, incident: &Incident) -> Self {
        let device = incident.device();
        // Without a device its users cannot be distinguished from tasks that are busy elsewhere.
        let users = device.map_or(Vec::new(), |id| device_users(shared, id));
        let (cause, delayed) = find_cause(shared, incident, &users);
        let mut victims = victims(shared, incident, device);
        victims.extend(delayed);
        victims.extend(device.into_iter().flat_map(|id| waiting_for_device(shared, incident, id)));
        if cause == Cause::Device {
            // Pages that are written back for a task make it wait for nothing.
            let with_requests = users.iter().filter(|user| user.requests_per_s > 0.0);
            victims.extend(with_requests.map(|user| user.task.clone()));
        }
        let mut victims = without_repeats(victims);
        // Threads of the kernel wait for the programs that suffer.
        if victims.iter().any(|task| !task.is_kernel_thread(shared)) {
            victims.retain(|task| !task.is_kernel_thread(shared));
        }
        Self {
            device: device.map(|id| (shared.system.described_device(id), mount_point(shared, id))),
            is_read_only: incident.findings.iter().any(|f| f.rule == "read-only"),
            cause,
            victims,
        }
    }

    /// The device comes first: it is what a cut may not take away.
    fn line(&self, shortening: u8) -> String {
        let mut parts = Vec::new();
        if let Some((name, mount)) = &self.device {
            let mount = mount.as_deref().map_or(String::new(), |mount| match shortening {
                0 | 1 => format!(" {mount}"),
                2 | 3 => format!(" {}", cut_beginning(mount, SHORT_MOUNT)),
                _ => String::new(),
            });
            parts.push(format!("device {name}{mount}"));
        }
        let mut victims = self.victims.clone();
        match &self.cause {
            Cause::Unknown => {}
            Cause::Device => parts.push("culprit the device itself".into()),
            Cause::MemoryLimit(path) => {
                let most = if shortening < MAX_SHORTENING { usize::MAX } else { SHORT_MOUNT };
                parts.push(format!("culprit the memory limit of {}", cut_beginning(path, most)));
            }
            Cause::Tasks(tasks, bytes_per_s) => {
                victims.retain(|task| !tasks.contains(task));
                // Those that cause it are the only ones that are known to wait.
                let is_both = victims.is_empty() && !self.victims.is_empty();
                let role = if is_both { "culprit and victim" } else { "culprit" };
                let most = if shortening < MAX_SHORTENING { MAX_CULPRITS } else { 1 };
                let rate = bytes_per_s.filter(|_| shortening < 3);
                let rate = rate.map_or(String::new(), |bytes| format!(" {}/s", format_bytes(bytes as u64)));
                parts.push(format!("{role} {}{rate}", join_tasks(tasks, most)));
            }
        }
        if !victims.is_empty() {
            let most = if shortening == 0 { MAX_VICTIMS } else { 1 };
            parts.push(format!("victim {}", join_tasks(&victims, most)));
        } else if self.is_read_only {
            parts.push("victim file system (read-only)".into());
        }
        parts.join(" · ")
    }
}

/// Who or what causes the incident, and the tasks that findings name as users of the device but that only wait there.
fn find_cause(shared: &Shared, incident: &Incident, users: &[DeviceUser]) -> (Cause, Vec<Task>) {
    let first = incident.cause();
    if DEVICE_FAULT_RULES.contains(&first.rule) {
        return (Cause::Device, Vec::new());
    }
    if let Some(path) = first.cgroup.as_ref().filter(|_| first.rule == "cgroup-memory") {
        return (Cause::MemoryLimit(path.clone()), Vec::new());
    }
    let named = incident.findings.iter().flat_map(|f| &f.culprits).map(|task| Task::from_label(&task.name));
    let is_program = |task: &Task| !task.pid.parse().is_ok_and(|pid| is_kernel_thread(shared, pid));
    let mut culprits = without_repeats(named.filter(is_program));
    if culprits.is_empty() && LOAD_RULES.contains(&first.rule) {
        // Not one that a finding names as a victim: it may be the only one known there.
        let victims: Vec<Task> = named_victims(incident).collect();
        let first = users.iter().find(|user| !victims.contains(&user.task));
        culprits.extend(first.map(|user| user.task.clone()));
    }
    let user = |task: &Task| users.iter().find(|user| user.task == *task);
    let Some(most) = culprits.first().and_then(user) else {
        return (if culprits.is_empty() { Cause::Unknown } else { Cause::Tasks(culprits, None) }, Vec::new());
    };
    let is_heavy = |task: &Task| {
        user(task).is_none_or(|it| {
            it.bytes_per_s >= most.bytes_per_s * MIN_CULPRIT_SHARE
                || it.requests_per_s >= most.requests_per_s.max(1.0) * MIN_CULPRIT_SHARE * 2.0
        })
    };
    let (heavy, light): (Vec<Task>, Vec<Task>) = culprits.into_iter().partition(is_heavy);
    let bytes_per_s = heavy.iter().filter_map(user).map(|user| user.bytes_per_s).sum();
    (Cause::Tasks(heavy, Some(bytes_per_s)), light)
}

/// The tasks that findings name as victims.
fn named_victims(incident: &Incident) -> impl Iterator<Item = Task> + '_ {
    incident.findings.iter().flat_map(|finding| &finding.victims).map(|task| Task::from_label(&task.name))
}

/// The end of a path in so many characters; a mark shows that its beginning was cut off.
fn cut_beginning(path: &str, most: usize) -> String {
    let length = path.chars().count();
    if length <= most {
        return path.to_owned();
    }
    std::iter::once('…').chain(path.chars().skip(length + 1 - most)).collect()
}

/// A process that is no kernel thread, and what it does on a device: means over [`WINDOW_NS`], from tracing.
struct DeviceUser {
    task: Task,
    bytes_per_s: f64,
    requests_per_s: f64,
}

/// The users of a device, most bytes first.
fn device_users(shared: &Shared, device: DevId) -> Vec<DeviceUser> {
    let until = shared.snapshot().time.boot_ns;
    let is_recent = |frame: &&HistoryFrame| frame.snapshot.time.boot_ns.saturating_add(WINDOW_NS) > until;
    let (mut sums, mut secs) = (BTreeMap::<u32, [f64; 2]>::new(), 0.0);
    let mut names = BTreeMap::<u32, String>::new();
    for frame in shared.history_to_shown().rev().take_while(is_recent) {
        let Some(attribution) = frame.snapshot.io_attribution.ok() else { continue };
        secs += frame.snapshot.interval_secs;
        for process in &attribution.processes {
            let Some(rates) = process.on_device(device) else { continue };
            // What it writes itself is written back for it, too.
            let bytes = rates.read_bytes_per_s + rates.write_bytes_per_s.max(rates.writeback_bytes_per_s);
            let sum = sums.entry(process.owner).or_default();
            sum[0] += bytes * frame.snapshot.interval_secs;
            sum[1] += rates.iops() * frame.snapshot.interval_secs;
            let name = || attribution.process_name(process.owner).map(|name| sanitize(&**name));
            if !names.contains_key(&process.owner) {
                names.extend(name().map(|name| (process.owner, name)));
            }
        }
    }
    // A kernel thread has the requests of the pages that others dirtied.
    let users = sums.into_iter().filter(|(pid, sum)| sum[0] > 0.0 && !is_kernel_thread(shared, *pid));
    let mut users: Vec<DeviceUser> = users
        .map(|(pid, sum)| {
            let [bytes_per_s, requests_per_s] = sum.map(|n| n / secs.max(0.001));
            let label = match names.get(&pid).filter(|_| shared.system.processes.find_live(pid).is_none()) {
                Some(name) => format!("{name} ({pid})"),
                None => task_label(shared, pid),
            };
            DeviceUser { task: Task::from_label(&label), bytes_per_s, requests_per_s }
        })
        .collect();
    users.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s));
    users
}

/// The volume of a pod that a device is, or the first place that it is mounted at, or `swap`; sanitized.
fn mount_point(shared: &Shared, id: DevId) -> Option<String> {
    let device = shared.system.topology.ok()?.get(id)?;
    let mut points = device.mounts.iter().filter(|m| !m.is_hidden).map(|m| &m.mount_point);
    let volume = shared.system.processes.container_names().volume_name(points.clone());
    let swap = (!device.swaps.is_empty()).then(|| "swap".to_owned());
    volume.or_else(|| points.next().map(|point| point.sanitized().to_string())).or(swap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::{Finding, FindingSubject, InvolvedTask, Severity};
    use crate::model::io_accounting::{IoAttribution, IoRates, OwnerIo, rates::DeviceIo};
    use crate::model::reading::Reading;
    use crate::model::snapshot::Snapshot;
    use crate::model::system_state::{HostInfo, SystemState};
    use std::sync::Arc;

    const LOOP: DevId = DevId { major: 7, minor: 0 };
    const FAST: DevId = DevId { major: 254, minor: 0 };

    /// dd (20) writes little to the device of the incident, rustc (30) much to another one.
    fn shared(rule: &'static str, devices: Vec<DevId>) -> Shared {
        let io = |pid, device, bytes| OwnerIo {
            owner: pid,
            total: IoRates::default(),
            devices: vec![DeviceIo {
                is_stacked: false,
                device,
                rates: IoRates { write_bytes_per_s: bytes, writes_per_s: 10.0, ..IoRates::default() },
            }],
        };
        let attribution = IoAttribution {
            processes: vec![io(20, LOOP, 1e6), io(30, FAST, 1e9)],
            names: vec![(20, "dd".into()), (30, "rustc".into())],
            ..IoAttribution::default()
        };
        let snapshot = Arc::new(Snapshot {
            seq: 1,
            interval_secs: 1.0,
            io_attribution: Reading::Ok(Arc::new(attribution)),
            ..Snapshot::default()
        });
        let mut system = SystemState::new(HostInfo::default(), Default::default());
        system.snapshot = snapshot.clone();
        system.history.push(snapshot);
        let mut shared = Shared::new(system);
        let subject = FindingSubject::Pid(40, "sqlite".into());
        let finding = Finding { rule, subject, devices, ..Finding::default() };
        shared.findings.incidents = vec![Incident { severity: Severity::Warn, findings: vec![finding] }];
        shared
    }

    #[test]
    fn the_busiest_task_on_the_device_of_the_incident_is_named() {
        let line = worst_line(&shared("writers-throttled", vec![LOOP]), 120).unwrap();
        assert_eq!(line, "device 7:0 · culprit dd (20) 977K/s · victim sqlite (40)");
    }

    #[test]
    fn nobody_is_the_culprit_of_a_setting() {
        let line = worst_line(&shared("scheduler-unsuitable", vec![LOOP]), 120).unwrap();
        assert_eq!(line, "device 7:0 · victim sqlite (40)");
    }

    #[test]
    fn every_rule_named_here_exists() {
        for name in DEVICE_FAULT_RULES.iter().chain(LOAD_RULES) {
            assert!(crate::doctor::RULES.iter().any(|rule| rule.name == *name), "{name}");
        }
    }

    #[test]
    fn a_device_at_fault_is_the_culprit_and_its_users_are_victims() {
        let fault = worst_line(&shared("io-error", vec![LOOP]), 120).unwrap();
        assert_eq!(fault, "device 7:0 · culprit the device itself · victim sqlite (40), dd (20)");
        assert_eq!(worst_line(&shared("hung-task", vec![]), 120).as_deref(), Some("victim sqlite (40)"));
    }

    fn named(names: &[&str]) -> Vec<InvolvedTask> {
        names.iter().map(|name| InvolvedTask { name: (*name).into(), share_pct: None, group: None }).collect()
    }

    #[test]
    fn tasks_that_findings_name_come_first_and_share_a_name() {
        let mut shared = shared("device-saturated", vec![LOOP]);
        let finding = &mut shared.findings.incidents[0].findings[0];
        finding.culprits = named(&["dd (20)", "dd (21)"]);
        finding.victims = named(&["dd (21)", "kworker/u8:1 (70)", "postgres (50)"]);
        let line = worst_line(&shared, 120).unwrap();
        assert_eq!(line, "device 7:0 · culprit dd (20, 21) 977K/s · victim postgres (50), sqlite (40)");
    }

    #[test]
    fn a_victim_is_no_culprit_because_it_is_the_only_known_user() {
        let mut shared = shared("device-saturated", vec![LOOP]);
        let finding = &mut shared.findings.incidents[0].findings[0];
        finding.subject = FindingSubject::Machine;
        finding.victims = named(&["dd (20)"]);
        assert_eq!(worst_line(&shared, 120).as_deref(), Some("device 7:0 · victim dd (20)"));
    }

    #[test]
    fn a_task_that_does_little_beside_the_culprit_is_its_victim() {
        let mut shared = shared("device-saturated", vec![FAST]);
        shared.findings.incidents[0].findings[0].culprits = named(&["rustc (30)", "wal (60)"]);
        let io = |pid, bytes, writes_per_s| OwnerIo {
            owner: pid,
            total: IoRates::default(),
            devices: vec![DeviceIo {
                is_stacked: false,
                device: FAST,
                rates: IoRates { write_bytes_per_s: bytes, writes_per_s, ..IoRates::default() },
            }],
        };
        let attribution = IoAttribution {
            processes: vec![io(30, 1e8, 50.0), io(60, 1e5, 9.0)],
            names: vec![(30, "rustc".into()), (60, "wal".into())],
            ..IoAttribution::default()
        };
        let mut snapshot = shared.snapshot().clone();
        (snapshot.seq, snapshot.io_attribution) = (2, Reading::Ok(Arc::new(attribution)));
        shared.system.snapshot = Arc::new(snapshot);
        shared.system.history.push(shared.system.snapshot.clone());
        let line = worst_line(&shared, 120).unwrap();
        assert_eq!(line, "device 254:0 · culprit rustc (30) 525M/s · victim sqlite (40), wal (60)");
    }

    #[test]
    fn tasks_that_only_hurt_themselves_are_both() {
        let mut shared = shared("swapping", vec![LOOP]);
        let finding = &mut shared.findings.incidents[0].findings[0];
        (finding.culprits, finding.victims) = (named(&["dd (20)"]), named(&["dd (20)"]));
        finding.subject = FindingSubject::Machine;
        assert_eq!(worst_line(&shared, 120).as_deref(), Some("device 7:0 · culprit and victim dd (20) 977K/s"));
        let finding = &mut shared.findings.incidents[0].findings[0];
        (finding.rule, finding.cgroup) = ("cgroup-memory", Some("/job".into()));
        let line = worst_line(&shared, 120).unwrap();
        assert_eq!(line, "device 7:0 · culprit the memory limit of /job · victim dd (20)");
        shared.findings.incidents[0].findings[0].cgroup = Some("/system.slice/nightly-import".into());
        let short = worst_line(&shared, 76).unwrap();
        assert_eq!(short, "device 7:0 · culprit the memory limit of …htly-import · victim dd (20)");
    }

    #[test]
    fn a_file_system_is_the_victim_where_no_task_is_known() {
        let mut shared = shared("io-error", vec![FAST]);
        shared.system.snapshot = Arc::default();
        shared.system.history = Default::default();
        let mount = Finding {
            rule: "read-only",
            subject: FindingSubject::Mount(b"/srv/data"[..].into()),
            ..Finding::default()
        };
        let findings = &mut shared.findings.incidents[0].findings;
        findings[0].subject = FindingSubject::Machine;
        findings.push(mount);
        let line = worst_line(&shared, 120).unwrap();
        assert_eq!(line, "device 254:0 · culprit the device itself · victim file system (read-only)");
    }

    #[test]
    fn a_long_line_loses_victims_the_mount_point_the_rate_and_culprits_but_no_kind_of_name() {
        let tasks = |labels: &[&str]| labels.iter().map(|label| Task::from_label(label)).collect::<Vec<_>>();
        let involved = Involved {
            device: Some(("nvme0n1p3".into(), Some("/var/lib/containers/storage".into()))),
            cause: Cause::Tasks(tasks(&["backup-daemon (1234567)", "backup-daemon (89)"]), Some(1.5e9)),
            victims: tasks(&["postgres (1234)", "sqlite (5678)", "etcd (9)"]),
            is_read_only: false,
        };
        let lines: Vec<String> = (0..=MAX_SHORTENING).map(|level| involved.line(level)).collect();
        assert_eq!(
            lines,
            [
                "device nvme0n1p3 /var/lib/containers/storage · culprit backup-daemon (1234567, 89) 1.40G/s · \
                 victim postgres (1234), sqlite (5678) +1",
                "device nvme0n1p3 /var/lib/containers/storage · culprit backup-daemon (1234567, 89) 1.40G/s · \
                 victim postgres (1234) +2",
                "device nvme0n1p3 …ers/storage · culprit backup-daemon (1234567, 89) 1.40G/s · \
                 victim postgres (1234) +2",
                "device nvme0n1p3 …ers/storage · culprit backup-daemon (1234567, 89) · victim postgres (1234) +2",
                "device nvme0n1p3 · culprit backup-daemon (1234567, 89) · victim postgres (1234) +2",
                "device nvme0n1p3 · culprit backup-daemon (1234567) +1 · victim postgres (1234) +2",
            ]
        );
    }
}
