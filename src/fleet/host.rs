//! A host and a device, as far as exported figures tell. What was not exported is `None`.

use crate::doctor::finding::Severity;

/// What tells a host from all others: the labels that Prometheus gives a target, or the file of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FleetHostId {
    /// The label `job`.
    pub job: String,
    /// The label `instance`.
    pub instance: String,
}

/// A finding of a host's own rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFinding {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the rule, sanitized.
    pub rule: String,
    /// What it is about, sanitized; empty for the machine.
    pub subject: String,
}

impl FleetFinding {
    /// In words: `device stalled: sda`.
    pub fn text(&self) -> String {
        let rule = self.rule.replace('-', " ");
        if self.subject.is_empty() { rule } else { format!("{rule}: {}", self.subject) }
    }
}

/// Whether there are figures of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum HostPresence {
    /// There are.
    #[default]
    Present,
    /// There were; the newest were seen at this time, seconds since 1970.
    GoneSince(f64),
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetHost {
    /// Its labels.
    pub id: FleetHostId,
    /// Name on screen, sanitized.
    pub name: String,
    /// Where it is reached: its instance without the port; of a recording, empty.
    pub address: String,
    /// Whether other series have the same name of a host.
    pub is_duplicate: bool,
    /// Whether there are figures.
    pub presence: HostPresence,
    /// Findings, the most severe first; `None`: its rules have not judged, or findings could not be read.
    pub findings: Option<Vec<FleetFinding>>,
    /// Share of time in which some task waited for I/O, percent.
    pub io_pressure_pct: Option<f64>,
    /// Devices with requests in flight of which none completes.
    pub stalled_devices: Option<u64>,
    /// The longest 99th percentile of its devices' requests, seconds.
    pub p99_secs: Option<f64>,
    /// Dirty page cache, bytes.
    pub dirty_bytes: Option<f64>,
    /// Dirty page cache and writeback, in percent of the limit at which writers wait.
    pub dirty_pct: Option<f64>,
    /// Seconds of pauses of writers per second, summed over threads.
    pub throttled: Option<f64>,
    /// Tasks in uninterruptible sleep for too long.
    pub hung_tasks: Option<u64>,
    /// Age of the newest sample when Prometheus evaluated, seconds.
    pub age_secs: Option<f64>,
    /// How far the host's clock is ahead of Prometheus', seconds.
    pub clock_offset_secs: Option<f64>,
}

/// Clocks that differ by more than this are shown, seconds.
const MIN_CLOCK_OFFSET_SECS: f64 = 5.0;

impl FleetHost {
    /// The most severe finding.
    pub fn worst_finding(&self) -> Option<&FleetFinding> {
        self.findings.as_ref()?.first()
    }

    /// What to give ssh: where Prometheus reaches it, unless that is Prometheus' own machine.
    pub fn ssh_target(&self) -> &str {
        let is_local = self.address.starts_with("127.") || matches!(self.address.as_str(), "localhost" | "[::1]" | "");
        if is_local && !self.is_duplicate { &self.name } else { &self.address }
    }

    /// Whether there are no figures of it any more.
    pub fn is_gone(&self) -> bool {
        matches!(self.presence, HostPresence::GoneSince(_))
    }

    /// How far its clock is off, where that matters: `clock 40s ahead`.
    pub fn clock_text(&self) -> Option<String> {
        let offset = self.clock_offset_secs.filter(|offset| offset.abs() > MIN_CLOCK_OFFSET_SECS)?;
        let by = crate::units::format_duration(offset.abs().min(1e15) as u64);
        Some(format!("clock {by} {}", if offset > 0.0 { "ahead" } else { "behind" }))
    }

    /// The same host without figures.
    pub fn without_figures(&self, seen_at: f64) -> Self {
        Self {
            id: self.id.clone(),
            name: self.name.clone(),
            address: self.address.clone(),
            is_duplicate: self.is_duplicate,
            presence: HostPresence::GoneSince(seen_at),
            ..Self::default()
        }
    }
}

/// A device of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetDevice {
    /// Its host.
    pub host: FleetHostId,
    /// Name of the host on screen, sanitized.
    pub host_name: String,
    /// Its kernel name, sanitized.
    pub device: String,
    /// Hardware model, sanitized.
    pub model: Option<String>,
    /// Completed requests per second.
    pub requests_per_sec: Option<f64>,
    /// Read and written, bytes per second.
    pub bytes_per_sec: Option<f64>,
    /// Mean time of a request, seconds.
    pub mean_secs: Option<f64>,
    /// 99th percentile of the time of requests, seconds.
    pub p99_secs: Option<f64>,
    /// Whether requests are in flight of which none completes.
    pub is_stalled: bool,
    /// Why it is held to be slower than devices of its model; `None`: it is not, or was not judged.
    pub verdict: Option<String>,
}

impl FleetDevice {
    /// The group it is compared within: its model.
    pub fn class_name(&self) -> &str {
        self.model.as_deref().unwrap_or("model not exported")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_subject_and_the_clock() {
        let finding = |subject: &str| FleetFinding {
            severity: Severity::Critical,
            rule: "device-stalled".into(),
            subject: subject.into(),
        };
        assert_eq!(
            (finding("sda").text(), finding("").text()),
            ("device stalled: sda".into(), "device stalled".into())
        );
        let clock = |offset| FleetHost { clock_offset_secs: offset, ..FleetHost::default() }.clock_text();
        assert_eq!(clock(Some(-3700.0)).as_deref(), Some("clock 1h01m behind"));
        assert_eq!((clock(Some(2.0)), clock(None)), (None, None));
    }
}
