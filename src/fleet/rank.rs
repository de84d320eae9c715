//! The order of hosts: the worst finding first, then what waits, then what is late.

use super::host::FleetHost;
use crate::doctor::finding::Severity;
use std::cmp::{Ordering, Reverse};

/// Samples older than this are no picture of now, seconds.
pub const OLD_AFTER_SECS: f64 = 60.0;

/// How urgent a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No finding, or only notes.
    Fine,
    /// Its findings are not known.
    Unknown,
    /// A warning.
    Warn,
    /// No figures, or old ones: what happens there is not known.
    Silent,
    /// Something critical.
    Critical,
}

/// How urgent a host is. A finding of an old sample still counts: it was there when last heard of.
pub fn urgency(host: &FleetHost) -> Urgency {
    let worst = host.worst_finding().map(|finding| finding.severity);
    match worst {
        Some(Severity::Critical) => Urgency::Critical,
        _ if host.is_gone() || host.age_secs.is_some_and(|age| age > OLD_AFTER_SECS) => Urgency::Silent,
        Some(Severity::Warn) => Urgency::Warn,
        _ if host.findings.is_none() => Urgency::Unknown,
        _ => Urgency::Fine,
    }
}

/// Which of two hosts comes first.
pub fn compare(a: &FleetHost, b: &FleetHost) -> Ordering {
    let number = |value: Option<f64>| value.unwrap_or(-1.0);
    Reverse(urgency(a))
        .cmp(&Reverse(urgency(b)))
        // Less than a percent apart is no difference; hosts would change places all the time.
        .then_with(|| number(b.io_pressure_pct).floor().total_cmp(&number(a.io_pressure_pct).floor()))
        .then_with(|| b.stalled_devices.cmp(&a.stalled_devices))
        .then_with(|| number(b.p99_secs).total_cmp(&number(a.p99_secs)))
        .then_with(|| a.name.cmp(&b.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::host::{FleetFinding, HostPresence};

    fn host(name: &str, severity: Option<Severity>) -> FleetHost {
        let finding = |severity| FleetFinding { severity, rule: "x".into(), subject: String::new() };
        FleetHost {
            name: name.into(),
            findings: Some(severity.map(finding).into_iter().collect()),
            ..FleetHost::default()
        }
    }

    #[test]
    fn severity_comes_before_pressure_before_latency() {
        let mut hosts = [
            FleetHost { io_pressure_pct: Some(0.4), p99_secs: Some(0.1), ..host("late", None) },
            FleetHost { io_pressure_pct: Some(0.2), ..host("fine", None) },
            FleetHost { io_pressure_pct: Some(90.0), ..host("waiting", None) },
            FleetHost { findings: None, ..host("unknown", None) },
            host("warned", Some(Severity::Warn)),
            FleetHost { presence: HostPresence::GoneSince(1.0), findings: None, ..host("gone", None) },
            FleetHost { age_secs: Some(90.0), ..host("old", Some(Severity::Warn)) },
            host("critical", Some(Severity::Critical)),
        ];
        hosts.sort_by(compare);
        let names = hosts.each_ref().map(|host| host.name.as_str());
        assert_eq!(names, ["critical", "gone", "old", "warned", "unknown", "waiting", "late", "fine"]);
    }
}
