//! Who is involved in the worst incident: the task with most I/O, the tasks that suffer, the device.

use crate::doctor::finding::FindingSubject;
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::model::history::HistoryFrame;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::units::format_bytes;
use std::collections::BTreeMap;

/// Rules about load, which tasks cause.
const LOAD_RULES: &[&str] = &[
    "device-saturated",
    "writeback-storm",
    "writers-throttled",
    "slow-drain",
    "waits-on-syncs",
    "swapping",
    "cgroup-io",
];
/// Rules about dirty pages, whose victims are throttled.
const DIRTY_PAGE_RULES: &[&str] = &["writeback-storm", "writers-throttled", "slow-drain"];
/// Rules about memory, whose victims are in reclaim.
const MEMORY_RULES: &[&str] = &["swapping", "reclaim-stalls", "cache-pressure", "cgroup-memory"];
/// Rates are means over this time, ns.
const WINDOW_NS: u64 = 10_000_000_000;
/// More victims than these are counted, not named.
const MAX_VICTIMS: usize = 2;

/// Cells of a mount point in a line that is too long otherwise.
const SHORT_MOUNT: usize = 12;

/// `device loop0 /mnt · culprit dd (20733) 31.5M/s · victim sqlite (200)` for the worst incident, in `width` cells if that
/// can be: further victims, the mount point and the rate are left out for that. What is not known is left out, too.
/// `None`: nothing is known.
pub(super) fn line(shared: &Shared, width: u16) -> Option<String> {
    let involved = Involved::of_worst_incident(shared)?;
    let fits = |line: &String| unicode_width::UnicodeWidthStr::width(&**line) <= usize::from(width);
    let lines = (0..=MAX_SHORTENING).map(|level| involved.line(level));
    let shortest = || involved.line(MAX_SHORTENING);
    Some(lines.into_iter().find(fits).unwrap_or_else(shortest)).filter(|line| !line.is_empty())
}

/// Who and what is involved.
struct Involved {
    /// Name of the device, and the first place it is mounted at.
    device: Option<(String, Option<String>)>,
    /// `culprit` or `most I/O by`, the task, bytes per second.
    user: Option<(&'static str, String, f64)>,
    victims: Vec<String>,
}

/// Ways to shorten the line, each in addition to those before.
const MAX_SHORTENING: u8 = 3;

impl Involved {
    fn of_worst_incident(shared: &Shared) -> Option<Self> {
        let incident = shared.findings.incidents.first()?;
        let device = incident.findings.iter().find_map(|f| match &f.subject {
            FindingSubject::Device(id, _) => Some(*id),
            _ => f.devices.first().copied(),
        });
        // Without a device its users cannot be told from tasks that are busy elsewhere.
        let user = device.and_then(|id| busiest_user(shared, id));
        // Of a fault of the device no task is the culprit.
        let role = if LOAD_RULES.contains(&incident.cause().rule) { "culprit" } else { "most I/O by" };
        Some(Self {
            device: device.map(|id| (shared.system.device_name(id), mount_point(shared, id))),
            victims: victims(shared, incident, user.map(|user| user.0)),
            user: user.map(|(pid, bytes_per_s)| (role, task_name(shared, pid), bytes_per_s)),
        })
    }

    /// The device comes first: it is what a cut may not take away.
    fn line(&self, shortening: u8) -> String {
        let mut parts = Vec::new();
        if let Some((name, mount)) = &self.device {
            let mount = mount.as_deref().map_or(String::new(), |mount| match shortening {
                0 | 1 => format!(" {mount}"),
                _ => format!(" {}", cut_beginning(mount, SHORT_MOUNT)),
            });
            parts.push(format!("device {name}{mount}"));
        }
        if let Some((role, task, bytes_per_s)) = &self.user {
            let rate = if shortening < 3 { format!(" {}/s", format_bytes(*bytes_per_s as u64)) } else { String::new() };
            parts.push(format!("{role} {task}{rate}"));
        }
        if let Some(first) = self.victims.first() {
            let most = if shortening == 0 { MAX_VICTIMS } else { 1 };
            let named: String = self.victims[1..].iter().take(most - 1).map(|name| format!(", {name}")).collect();
            let rest = self.victims.len().saturating_sub(most);
            let rest = if rest > 0 { format!(" +{rest}") } else { String::new() };
            parts.push(format!("victim {first}{named}{rest}"));
        }
        parts.join(" · ")
    }
}

/// The end of a path in so many characters; a mark shows that its beginning was cut off.
fn cut_beginning(path: &str, most: usize) -> String {
    let length = path.chars().count();
    if length <= most {
        return path.to_owned();
    }
    std::iter::once('…').chain(path.chars().skip(length + 1 - most)).collect()
}

/// The process with most bytes on a device, of those that are no kernel thread; bytes per second, from tracing.
fn busiest_user(shared: &Shared, device: DevId) -> Option<(u32, f64)> {
    let until = shared.snapshot().time.boot_ns;
    let is_recent = |frame: &&HistoryFrame| frame.snapshot.time.boot_ns.saturating_add(WINDOW_NS) > until;
    let (mut sums, mut secs) = (BTreeMap::<u32, f64>::new(), 0.0);
    for frame in shared.history_to_shown().rev().take_while(is_recent) {
        let Some(attribution) = frame.snapshot.io_attribution.ok() else { continue };
        secs += frame.snapshot.interval_secs;
        for process in &attribution.processes {
            let Some(rates) = process.on_device(device) else { continue };
            // What it writes itself is written back for it, too.
            let bytes = rates.read_bytes_per_s + rates.write_bytes_per_s.max(rates.writeback_bytes_per_s);
            *sums.entry(process.owner).or_default() += bytes * frame.snapshot.interval_secs;
        }
    }
    // A kernel thread has the requests of the pages that others dirtied.
    let is_program = |pid: u32| match shared.system.processes.find_live(pid) {
        Some(row) => !row.raw.kernel_thread,
        None => !task_name(shared, pid).starts_with("kworker/"),
    };
    let mut busiest: Vec<(u32, f64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0.0).collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (pid, bytes) = busiest.into_iter().find(|(pid, _)| is_program(*pid))?;
    Some((pid, bytes / secs.max(0.001)))
}

/// The tasks that the findings name, then those stalled by what the findings are about; without `user`.
fn victims(shared: &Shared, incident: &Incident, user: Option<u32>) -> Vec<String> {
    let mut out: Vec<(u32, String)> = Vec::new();
    let mut add = |pid: u32, name: &str| {
        if Some(pid) != user && !out.iter().any(|known| known.0 == pid) {
            out.push((pid, format!("{name} ({pid})")));
        }
    };
    for finding in &incident.findings {
        match &finding.subject {
            FindingSubject::Task(key, name) => add(key.pid, name),
            FindingSubject::Pid(pid, name) => add(*pid, name),
            _ => {}
        }
    }
    let has_rule = |rules: &[&str]| incident.findings.iter().any(|f| rules.contains(&f.rule));
    for (kind, _) in [(THROTTLE, DIRTY_PAGE_RULES), (RECLAIM, MEMORY_RULES)].iter().filter(|(_, rules)| has_rule(rules))
    {
        let Some(stalls) = shared.snapshot().memory_stalls.ok() else { break };
        stalls.processes_by_kind(*kind).iter().for_each(|process| add(process.key.pid, &sanitize(&process.comm)));
    }
    out.into_iter().map(|(_, name)| name).collect()
}

/// `fio (1234)`, sanitized.
fn task_name(shared: &Shared, pid: u32) -> String {
    let traced = || shared.snapshot().io_attribution.ok()?.process_name(pid).map(|name| sanitize(&**name));
    match shared.system.processes.find_live(pid) {
        Some(row) => row.label(),
        None => format!("{} ({pid})", traced().unwrap_or_else(|| "?".into())),
    }
}

/// The first place a device is mounted at, sanitized.
fn mount_point(shared: &Shared, id: DevId) -> Option<String> {
    let device = shared.system.topology.ok()?.get(id)?;
    device.mounts.iter().find(|m| !m.is_hidden).map(|mount| mount.mount_point.sanitized().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::{Finding, Severity};
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
            devices: vec![DeviceIo { device, rates: IoRates { write_bytes_per_s: bytes, ..IoRates::default() } }],
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
        let line = line(&shared("writers-throttled", vec![LOOP]), 120).unwrap();
        assert_eq!(line, "device 7:0 · culprit dd (20) 977K/s · victim sqlite (40)");
    }

    #[test]
    fn no_task_is_the_culprit_of_a_fault_or_without_a_device() {
        let fault = line(&shared("io-error", vec![LOOP]), 120).unwrap();
        assert!(fault.contains("most I/O by dd (20)"), "{fault}");
        assert_eq!(line(&shared("hung-task", vec![]), 120).as_deref(), Some("victim sqlite (40)"));
    }

    #[test]
    fn a_long_line_loses_victims_the_mount_point_and_the_rate_but_no_name() {
        let involved = Involved {
            device: Some(("nvme0n1p3".into(), Some("/var/lib/containers/storage".into()))),
            user: Some(("culprit", "backup-daemon (1234567)".into(), 1.5e9)),
            victims: ["postgres (1234)", "sqlite (5678)", "etcd (9)"].map(String::from).to_vec(),
        };
        let lines: Vec<String> = (0..=MAX_SHORTENING).map(|level| involved.line(level)).collect();
        assert_eq!(
            lines,
            [
                "device nvme0n1p3 /var/lib/containers/storage · culprit backup-daemon (1234567) 1.40G/s · \
                 victim postgres (1234), sqlite (5678) +1",
                "device nvme0n1p3 /var/lib/containers/storage · culprit backup-daemon (1234567) 1.40G/s · \
                 victim postgres (1234) +2",
                "device nvme0n1p3 …ers/storage · culprit backup-daemon (1234567) 1.40G/s · victim postgres (1234) +2",
                "device nvme0n1p3 …ers/storage · culprit backup-daemon (1234567) · victim postgres (1234) +2",
            ]
        );
    }
}
