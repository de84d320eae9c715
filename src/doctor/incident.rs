//! Several findings with one cause are one story, told cause first.
//!
//! [`CAUSES`] says which finding explains which. One explains another only if it can reach it: a fault of a
//! device is felt on that device and on what lies on it, not below it.

use super::finding::{Finding, Severity};

/// A cause and what it leads to: its findings in order, the cause first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The worst of its findings.
    pub severity: Severity,
    /// The cause, then what follows from it.
    pub findings: Vec<Finding>,
}

impl Incident {
    /// The cause.
    pub fn cause(&self) -> &Finding {
        &self.findings[0]
    }

    /// What follows from it.
    pub fn effects(&self) -> &[Finding] {
        &self.findings[1..]
    }

    /// CLOCK_BOOTTIME in ns since which it goes on. A note, such as a setting that has always been so, does not
    /// make a fault older than it is.
    pub fn since_ns(&self) -> Option<u64> {
        let least = self.severity.min(Severity::Warn);
        self.findings.iter().filter(|f| f.severity >= least).filter_map(|f| f.since_ns).min()
    }
}

/// From the deepest cause to the last effect: a rule may be explained by those before it that list it.
pub const CAUSAL_RULES: &[(&str, &[&str])] = &[
    (
        "device-reset",
        &["io-error", "device-stalled", "slow-device", "device-saturated", "filesystem-error", "hung-task"],
    ),
    (
        "io-error",
        &[
            "device-stalled",
            "filesystem-error",
            "read-only",
            "hung-task",
            "slow-device",
            "device-saturated",
            "slow-drain",
        ],
    ),
    ("filesystem-error", &["read-only", "hung-task"]),
    ("read-only", &["hung-task"]),
    (
        "device-stalled",
        &[
            "device-saturated",
            "slow-device",
            "writeback-storm",
            "writers-throttled",
            "slow-drain",
            "waits-on-syncs",
            "hung-task",
        ],
    ),
    ("cgroup-io", &["slow-device", "device-saturated", "writers-throttled", "slow-drain", "hung-task"]),
    ("network-link-full", &["nfs-retransmits", "writers-throttled", "slow-drain", "hung-task"]),
    ("nfs-retransmits", &["writers-throttled", "slow-drain", "hung-task"]),
    ("burst-credits", &["slow-device", "device-saturated"]),
    (
        "slow-device",
        &[
            "device-saturated",
            "writeback-storm",
            "writers-throttled",
            "slow-drain",
            "waits-on-syncs",
            "hung-task",
            "atime-mount",
            "delay-accounting-off",
            "scheduler-unsuitable",
            "swapping",
        ],
    ),
    ("writeback-storm", &["writers-throttled", "slow-drain", "device-saturated", "hung-task", "delay-accounting-off"]),
    ("writers-throttled", &["slow-drain", "device-saturated", "hung-task", "delay-accounting-off"]),
    ("slow-drain", &["device-saturated", "hung-task"]),
    ("cgroup-memory", &["swapping", "reclaim-stalls", "oom", "server-swapped"]),
    ("cache-pressure", &["swapping", "reclaim-stalls", "server-swapped", "swapped-idle", "oom"]),
    ("swapping", &["reclaim-stalls", "server-swapped", "device-saturated", "oom", "delay-accounting-off"]),
    (
        "device-saturated",
        &[
            "waits-on-syncs",
            "hung-task",
            "atime-mount",
            "delay-accounting-off",
            "scheduler-unsuitable",
            "readahead-large",
        ],
    ),
    ("thp-always", &["fork-cost"]),
    ("hung-task", &["hung-task-silent", "delay-accounting-off"]),
];

/// A cause explains only what began within this time after it was last seen, ns: a task may hang for so long
/// on a device that answers with errors.
const CAUSE_REACH_NS: u64 = 60_000_000_000;

/// Puts findings into stories, the worst first; of equals what goes on now comes before what is over.
pub fn group_into_incidents(mut findings: Vec<Finding>) -> Vec<Incident> {
    // A cause comes before what it may explain; equals keep the order they were raised in, so nothing jumps.
    findings.sort_by_key(|f| causal_rank(f.rule));
    let mut out: Vec<Incident> = Vec::new();
    for finding in findings {
        // The nearest cause: a stalled device rather than an error of another one.
        let near = |story: &Incident| story.findings.iter().filter(|f| explains(f, &finding)).map(cause_priority).max();
        let home = out.iter_mut().filter_map(|story| Some((near(story)?, story))).max_by_key(|(near, _)| *near);
        match home {
            Some((_, story)) => {
                story.severity = story.severity.max(finding.severity);
                story.findings.push(finding);
            }
            None => out.push(Incident { severity: finding.severity, findings: vec![finding] }),
        }
    }
    out.sort_by_key(|s| (std::cmp::Reverse(s.severity), s.findings.iter().all(|f| f.last_seen_ns.is_some())));
    out
}

fn causal_rank(rule: &str) -> usize {
    CAUSAL_RULES.iter().position(|(cause, _)| *cause == rule).unwrap_or(CAUSAL_RULES.len())
}

/// Worse and nearer causes explain more.
fn cause_priority(cause: &Finding) -> (Severity, usize) {
    (cause.severity, causal_rank(cause.rule))
}

fn explains(cause: &Finding, effect: &Finding) -> bool {
    let listed = CAUSAL_RULES.iter().any(|(rule, effects)| *rule == cause.rule && effects.contains(&effect.rule));
    let over = cause.last_seen_ns.zip(effect.since_ns).is_some_and(|(last, since)| last + CAUSE_REACH_NS < since);
    listed && !over && cause.severity > Severity::Note && affects(cause, effect)
}

/// Causes that are a load: it comes down from above, while a fault below is felt by what lies on it.
const LOAD_RULES: &[&str] = &["swapping", "cgroup-io"];

/// Whether the cause can reach the effect: a fault is felt on the same device and on what lies on it, a load
/// on what lies beneath; what has to do with no device in particular is felt anywhere.
fn affects(cause: &Finding, effect: &Finding) -> bool {
    let (Some(own), Some(its)) = (cause.devices.first(), effect.devices.first()) else { return true };
    effect.devices.contains(own) || (LOAD_RULES.contains(&cause.rule) && cause.devices.contains(its))
}
