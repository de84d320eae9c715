//! Groups findings with one cause into an incident.
//!
//! [`CAUSAL_RULES`] says which finding explains which. A finding explains another one only if there is a path from one to
//! the other ([`Reach`]): a device fault affects that device and the devices above it, not those below.

use super::finding::{Finding, FindingSubject, Severity};
use crate::model::disk::DevId;

/// A cause and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The highest severity of its findings.
    pub severity: Severity,
    /// The cause, then its effects.
    pub findings: Vec<Finding>,
}

impl Incident {
    pub fn cause(&self) -> &Finding {
        &self.findings[0]
    }

    pub fn effects(&self) -> &[Finding] {
        &self.findings[1..]
    }

    /// The device that it is about, or the first one that it concerns.
    pub fn device(&self) -> Option<DevId> {
        self.findings.iter().find_map(|f| match &f.subject {
            FindingSubject::Device(id, _) => Some(*id),
            _ => f.devices.first().copied(),
        })
    }

    /// When it began, CLOCK_BOOTTIME in ns. Notes do not count unless there is nothing else: a setting that was always
    /// wrong does not make a fault older.
    pub fn since_ns(&self) -> Option<u64> {
        let least = self.severity.min(Severity::Warn);
        self.findings.iter().filter(|f| f.severity >= least).filter_map(|f| f.since_ns).min()
    }
}

/// How a cause reaches its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A fault: to the devices above the one it is on, and what waits for those.
    Up,
    /// Load: to the devices it goes to and those below them, and what waits for those.
    Down,
    /// Memory and settings of the whole machine.
    Machine,
    /// The tasks of the same control group and of those below it.
    Cgroup,
    /// The tasks that wait for it.
    Tasks,
}

/// Which findings each rule explains and how, deepest cause first.
pub(super) const CAUSAL_RULES: &[(&str, Reach, &str)] = &[
    ("device-reset", Reach::Up, "io-error device-stalled slow-device device-saturated filesystem-error hung-task"),
    (
        "io-error",
        Reach::Up,
        "device-stalled filesystem-error read-only hung-task slow-device device-saturated slow-drain",
    ),
    ("filesystem-error", Reach::Up, "read-only hung-task"),
    ("read-only", Reach::Up, "hung-task"),
    (
        "device-stalled",
        Reach::Up,
        "device-saturated slow-device writeback-storm writers-throttled slow-drain waits-on-syncs journal-full hung-task",
    ),
    ("cgroup-io", Reach::Down, "slow-device device-saturated"),
    ("cgroup-io", Reach::Cgroup, "hung-task"),
    ("server-silent", Reach::Tasks, "hung-task"),
    ("network-link-full", Reach::Up, "nfs-retransmits"),
    ("burst-credits", Reach::Up, "slow-device device-saturated"),
    (
        "slow-device",
        Reach::Up,
        "device-saturated writeback-storm writers-throttled slow-drain waits-on-syncs journal-full hung-task atime-mount \
         scheduler-unsuitable swapping",
    ),
    ("slow-direction", Reach::Up, "writers-throttled slow-drain waits-on-syncs journal-full hung-task"),
    ("slow-flush", Reach::Up, "waits-on-syncs journal-full hung-task"),
    ("slow-discards", Reach::Up, "waits-on-syncs journal-full hung-task"),
    ("slow-tail", Reach::Up, "waits-on-syncs"),
    ("writeback-storm", Reach::Machine, "writers-throttled slow-drain"),
    ("writeback-storm", Reach::Down, "device-saturated"),
    ("writers-throttled", Reach::Machine, "slow-drain"),
    ("writers-throttled", Reach::Down, "device-saturated"),
    ("slow-drain", Reach::Down, "device-saturated"),
    ("cgroup-memory", Reach::Cgroup, "swapping reclaim-stalls oom server-swapped"),
    ("cache-pressure", Reach::Machine, "swapping reclaim-stalls server-swapped swapped-idle oom"),
    ("swapping", Reach::Machine, "reclaim-stalls server-swapped oom"),
    ("swapping", Reach::Down, "device-saturated"),
    (
        "device-saturated",
        Reach::Up,
        "waits-on-syncs journal-full hung-task atime-mount scheduler-unsuitable readahead-large",
    ),
    ("journal-full", Reach::Up, "hung-task"),
    ("thp-always", Reach::Machine, "fork-cost"),
    ("hung-task", Reach::Machine, "hung-task-silent"),
];

/// A past cause explains only what began within this time after it was last seen, ns: a task may stay blocked for so
/// long on a device that returned errors.
const CAUSE_REACH_NS: u64 = 60_000_000_000;

/// Groups findings into incidents, most severe first; of equals, ongoing ones come before past ones.
pub(super) fn group_into_incidents(mut findings: Vec<Finding>) -> Vec<Incident> {
    // Causes come before what they may explain. The sort is stable, so equals do not change places on screen.
    findings.sort_by_key(|f| causal_rank(f.rule));
    let mut out: Vec<Incident> = Vec::new();
    for finding in findings {
        let best_cause = |incident: &Incident| {
            incident.findings.iter().filter(|f| explains(f, &finding)).map(|f| (f.severity, causal_rank(f.rule))).max()
        };
        let incident = out.iter_mut().filter_map(|i| Some((best_cause(i)?, i))).max_by_key(|(cause, _)| *cause);
        match incident {
            Some((_, incident)) => {
                incident.severity = incident.severity.max(finding.severity);
                incident.findings.push(finding);
            }
            None => out.push(Incident { severity: finding.severity, findings: vec![finding] }),
        }
    }
    out.sort_by_key(|i| (std::cmp::Reverse(i.severity), i.findings.iter().all(|f| f.last_seen_ns.is_some())));
    out
}

fn causal_rank(rule: &str) -> usize {
    CAUSAL_RULES.iter().position(|(cause, ..)| *cause == rule).unwrap_or(CAUSAL_RULES.len())
}

fn explains(cause: &Finding, effect: &Finding) -> bool {
    let too_late = cause.last_seen_ns.zip(effect.since_ns).is_some_and(|(last, since)| last + CAUSE_REACH_NS < since);
    let reaches = |(rule, reach, effects): &(&str, Reach, &str)| {
        *rule == cause.rule && effects.split(' ').any(|rule| rule == effect.rule) && affects(cause, *reach, effect)
    };
    !too_late && cause.severity > Severity::Note && CAUSAL_RULES.iter().any(reaches)
}

/// Whether the control group `path` is `group` or below it.
pub(super) fn is_in_group(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The devices that a finding is about, without those below them: all disks behind a controller, else one device.
fn own_devices(finding: &Finding) -> &[DevId] {
    match finding.subject {
        FindingSubject::KernelName(_) => &finding.devices,
        _ => &finding.devices[..finding.devices.len().min(1)],
    }
}

/// Whether there is a path from the cause to the effect. A finding without a device has none to another device.
fn affects(cause: &Finding, reach: Reach, effect: &Finding) -> bool {
    let on_same_device = |a: Option<&DevId>, others: &[DevId]| a.is_some_and(|id| others.contains(id));
    match reach {
        Reach::Machine => true,
        Reach::Up => own_devices(cause).iter().any(|id| effect.devices.contains(id)),
        Reach::Down => {
            on_same_device(effect.devices.first(), &cause.devices)
                || on_same_device(cause.devices.first(), &effect.devices)
        }
        Reach::Cgroup => {
            cause.cgroup.as_deref().zip(effect.cgroup.as_deref()).is_some_and(|(group, of)| is_in_group(of, group))
        }
        Reach::Tasks => cause.victims.iter().any(|task| effect.victims.iter().any(|other| other.name == task.name)),
    }
}
