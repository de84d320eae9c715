//! Groups findings with one cause into an incident.
//!
//! [`CAUSAL_RULES`] says which finding explains which. A finding explains another one only if it can reach it: a device
//! fault affects that device and the devices above it, not those below.

use super::finding::{Finding, Severity};

/// A cause and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The highest severity of its findings.
    pub severity: Severity,
    /// The cause, then its effects.
    pub findings: Vec<Finding>,
}

impl Incident {
    /// The cause.
    pub fn cause(&self) -> &Finding {
        &self.findings[0]
    }

    /// The effects.
    pub fn effects(&self) -> &[Finding] {
        &self.findings[1..]
    }

    /// When it began, CLOCK_BOOTTIME in ns. Notes do not count unless there is nothing else: a setting that was always
    /// wrong does not make a fault older.
    pub fn since_ns(&self) -> Option<u64> {
        let least = self.severity.min(Severity::Warn);
        self.findings.iter().filter(|f| f.severity >= least).filter_map(|f| f.since_ns).min()
    }
}

/// Which findings each rule explains, deepest cause first.
pub(super) const CAUSAL_RULES: &[(&str, &str)] = &[
    ("device-reset", "io-error device-stalled slow-device device-saturated filesystem-error hung-task"),
    ("io-error", "device-stalled filesystem-error read-only hung-task slow-device device-saturated slow-drain"),
    ("filesystem-error", "read-only hung-task"),
    ("read-only", "hung-task"),
    (
        "device-stalled",
        "device-saturated slow-device writeback-storm writers-throttled slow-drain waits-on-syncs hung-task",
    ),
    ("cgroup-io", "slow-device device-saturated writers-throttled slow-drain hung-task"),
    ("network-link-full", "nfs-retransmits writers-throttled slow-drain hung-task"),
    ("nfs-retransmits", "writers-throttled slow-drain hung-task"),
    ("burst-credits", "slow-device device-saturated"),
    (
        "slow-device",
        "device-saturated writeback-storm writers-throttled slow-drain waits-on-syncs hung-task atime-mount \
         delay-accounting-off scheduler-unsuitable swapping",
    ),
    ("writeback-storm", "writers-throttled slow-drain device-saturated hung-task delay-accounting-off"),
    ("writers-throttled", "slow-drain device-saturated hung-task delay-accounting-off"),
    ("slow-drain", "device-saturated hung-task"),
    ("cgroup-memory", "swapping reclaim-stalls oom server-swapped"),
    ("cache-pressure", "swapping reclaim-stalls server-swapped swapped-idle oom"),
    ("swapping", "reclaim-stalls server-swapped device-saturated oom delay-accounting-off"),
    (
        "device-saturated",
        "waits-on-syncs hung-task atime-mount delay-accounting-off scheduler-unsuitable readahead-large",
    ),
    ("thp-always", "fork-cost"),
    ("hung-task", "hung-task-silent delay-accounting-off"),
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
    CAUSAL_RULES.iter().position(|(cause, _)| *cause == rule).unwrap_or(CAUSAL_RULES.len())
}

fn explains(cause: &Finding, effect: &Finding) -> bool {
    let listed = CAUSAL_RULES
        .iter()
        .any(|(rule, effects)| *rule == cause.rule && effects.split(' ').any(|rule| rule == effect.rule));
    let too_late = cause.last_seen_ns.zip(effect.since_ns).is_some_and(|(last, since)| last + CAUSE_REACH_NS < since);
    listed && !too_late && cause.severity > Severity::Note && affects(cause, effect)
}

/// Rules about load, which reaches the devices below; a fault reaches those above.
const LOAD_RULES: &[&str] = &["swapping", "cgroup-io"];

/// Whether the cause reaches the effect. Findings without a device reach everything.
fn affects(cause: &Finding, effect: &Finding) -> bool {
    let (Some(source), Some(target)) = (cause.devices.first(), effect.devices.first()) else { return true };
    effect.devices.contains(source) || (LOAD_RULES.contains(&cause.rule) && cause.devices.contains(target))
}
