//! The history of one host, as far as exported figures tell.

use super::answer::AnswerSeries;
use super::heat::on_grid;
use super::host::{FleetFinding, FleetHostId};
use super::plan::{QueryScope, SAMPLE_TIME};
use super::query_error::QueryError;
use super::range::{RangeAnswers, RangeRequest};
use crate::sanitize::sanitize;

/// What a figure is about: the pane that has it on the host's own screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
pub enum HistoryGroup {
    /// Pressure and hung tasks.
    Machine,
    /// Block devices.
    Devices,
    /// Dirty pages and who waits for them.
    Memory,
    /// Syncs by program.
    Syncs,
    /// Messages of the kernel by class.
    #[strum(serialize = "Kernel log")]
    KernelLog,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryUnit {
    /// 0 to 100.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    ByteRate,
    /// Seconds.
    Secs,
    /// Per second.
    Rate,
    /// Seconds per second, summed over threads.
    ThreadSecs,
    /// A number of things.
    Count,
}

impl HistoryUnit {
    /// A value with its unit.
    pub fn format(self, value: f64) -> String {
        let mut out = String::new();
        match self {
            Self::Percent => out = format!("{value:.0} %"),
            Self::Bytes => crate::units::write_bytes(&mut out, value),
            Self::ByteRate => {
                crate::units::write_bytes(&mut out, value);
                out.push_str("/s");
            }
            Self::Secs => out = crate::units::format_micros(value * 1e6),
            Self::Rate => {
                crate::units::write_count(&mut out, value);
                out.push_str("/s");
            }
            Self::ThreadSecs => out = format!("{value:.2} s/s"),
            Self::Count => out = format!("{value:.0}"),
        }
        out
    }
}

/// A figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct HistorySeries {
    /// The pane it belongs to.
    pub group: HistoryGroup,
    /// What it is, and of what; sanitized.
    pub name: String,
    /// Its unit.
    pub unit: HistoryUnit,
    /// At the times of the history; `None`: no value.
    pub values: Vec<Option<f64>>,
}

/// A finding over time.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingSpan {
    /// The finding.
    pub finding: FleetFinding,
    /// Whether it was there; `None`: there was no sample.
    pub present: Vec<Option<bool>>,
}

/// The history of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostHistory {
    /// First time, seconds since 1970.
    pub start: f64,
    /// Seconds between times.
    pub step: f64,
    /// Number of times.
    pub count: usize,
    /// The figures.
    pub series: Vec<HistorySeries>,
    /// The findings, those of the newest time first.
    pub findings: Vec<FindingSpan>,
    /// Queries without an answer.
    pub failed: Vec<(&'static str, QueryError)>,
}

/// A query of a history: what its series are, and the label that names each.
struct HistoryQuery {
    name: &'static str,
    group: HistoryGroup,
    unit: HistoryUnit,
    /// Empty: one series.
    label: &'static str,
    /// `{m}`: matchers of the host, `{w}`: window.
    expression: &'static str,
}

const fn query(
    name: &'static str,
    group: HistoryGroup,
    unit: HistoryUnit,
    label: &'static str,
    expression: &'static str,
) -> HistoryQuery {
    HistoryQuery { name, group, unit, label, expression }
}

const QUERIES: &[HistoryQuery] = {
    use HistoryGroup::{Devices, KernelLog, Machine, Memory, Syncs};
    use HistoryUnit::{ByteRate, Bytes, Count, Percent, Rate, Secs, ThreadSecs};
    &[
        query(
            "IO stall",
            Machine,
            Percent,
            "",
            "100 * (sum(rate(iotop_plus_pressure_waiting_seconds_total{resource=\"io\",{m}}[{w}])) or \
             sum(rate(node_pressure_io_waiting_seconds_total{{n}}[{w}])))",
        ),
        query("hung tasks", Machine, Count, "", "max(iotop_plus_hung_tasks{{m}})"),
        query(
            "mean",
            Devices,
            Secs,
            "device",
            "sum by (device) (rate(iotop_plus_device_request_seconds_sum{{m}}[{w}])) / \
             (sum by (device) (rate(iotop_plus_device_request_seconds_count{{m}}[{w}])) > 0)",
        ),
        query(
            "p99",
            Devices,
            Secs,
            "device",
            "histogram_quantile(0.99, sum by (device,le) (rate(iotop_plus_device_request_seconds_bucket{{m}}[{w}])))",
        ),
        query(
            "requests",
            Devices,
            Rate,
            "device",
            "sum by (device) (rate(iotop_plus_device_request_seconds_count{{m}}[{w}]))",
        ),
        query(
            "bytes",
            Devices,
            ByteRate,
            "device",
            "sum by (device) (rate(iotop_plus_device_read_bytes_total{{m}}[{w}])) + \
             sum by (device) (rate(iotop_plus_device_written_bytes_total{{m}}[{w}]))",
        ),
        query("stalled", Devices, Count, "device", "max by (device) (iotop_plus_device_stalled{{m}}) == 1"),
        query("dirty", Memory, Bytes, "", "max(iotop_plus_dirty_bytes{{m}})"),
        query("writeback", Memory, Bytes, "", "max(iotop_plus_writeback_bytes{{m}})"),
        query("writers slowed above", Memory, Bytes, "", "max(iotop_plus_dirty_throttle_threshold_bytes{{m}})"),
        query("writers wait above", Memory, Bytes, "", "max(iotop_plus_dirty_threshold_bytes{{m}})"),
        query(
            "paused",
            Memory,
            ThreadSecs,
            "program",
            "sum by (program) (rate(iotop_plus_throttled_seconds_total{{m}}[{w}]))",
        ),
        query(
            "reclaim",
            Memory,
            ThreadSecs,
            "program",
            "sum by (program) (rate(iotop_plus_reclaim_seconds_total{{m}}[{w}]))",
        ),
        query(
            "mean sync",
            Syncs,
            Secs,
            "program",
            "sum by (program) (rate(iotop_plus_sync_seconds_sum{{m}}[{w}])) / \
             (sum by (program) (rate(iotop_plus_sync_seconds_count{{m}}[{w}])) > 0)",
        ),
        query(
            "messages",
            KernelLog,
            Count,
            "class",
            "sum by (class) (increase(iotop_plus_kernel_messages_total{{m}}[{w}]))",
        ),
    ]
};

/// Series of one query that are shown, the largest.
const MAX_SERIES: usize = 8;
/// Names of the two queries before [`QUERIES`].
const SAMPLES: &str = "samples";
const FINDINGS: &str = "findings";

/// Text between quotes in a selector.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The request for a host, from `start` to `end` with about `count` values of each figure.
pub fn history_request(
    scope: &QueryScope,
    host: &FleetHostId,
    (start, end): (f64, f64),
    count: usize,
    id: u64,
) -> RangeRequest {
    let step = ((end - start) / count.max(2) as f64).max(1.0);
    let matchers = format!("job={},instance={}", quote(&host.job), quote(&host.instance));
    let name = super::assemble::without_port(&host.instance);
    let node = format!("instance=~\"{}(:[0-9]+)?\"", super::heat::regex_quote(name));
    // A value is the mean since the one before, or of some scrapes.
    let window = format!("{}s", scope.window_secs.max(step as u32));
    let mut expressions = vec![
        (SAMPLES, format!("{SAMPLE_TIME}{{{matchers}}}")),
        (FINDINGS, format!("iotop_plus_finding_info{{{matchers}}}")),
    ];
    expressions.extend(QUERIES.iter().map(|query| {
        let text = query.expression.replace("{m}", &matchers).replace("{n}", &node);
        (query.name, text.replace("{w}", &window))
    }));
    RangeRequest { id, expressions, start, end, step }
}

/// The history that the answers to a [`history_request`] tell.
pub fn history_of(request: &RangeRequest, answers: RangeAnswers) -> HostHistory {
    let mut history = HostHistory {
        start: request.start,
        step: request.step,
        count: on_grid(request, &[]).len(),
        series: Vec::new(),
        findings: Vec::new(),
        failed: Vec::new(),
    };
    let mut sampled = Vec::new();
    for (at, ((name, _), answer)) in request.expressions.iter().zip(answers).enumerate() {
        let series = match answer {
            Ok(series) => series,
            Err(why) => {
                history.failed.push((*name, why));
                continue;
            }
        };
        match (at, QUERIES.get(at.saturating_sub(2))) {
            (0, _) => sampled = series.first().map_or(Vec::new(), |series| on_grid(request, &series.points)),
            (1, _) => history.findings = finding_spans(request, &series, &sampled),
            (_, Some(query)) => history.series.extend(figures(request, query, &series)),
            (_, None) => {}
        }
    }
    history
}

fn finding_spans(request: &RangeRequest, series: &[AnswerSeries], sampled: &[Option<f64>]) -> Vec<FindingSpan> {
    use crate::doctor::finding::Severity;
    let span = |series: &AnswerSeries| {
        let severity = match series.label("severity") {
            "critical" => Severity::Critical,
            "warn" => Severity::Warn,
            _ => Severity::Note,
        };
        let (rule, subject) = (sanitize(series.label("rule")), sanitize(series.label("subject")));
        let there = on_grid(request, &series.points).into_iter().enumerate();
        let was_sampled = |at: usize| sampled.get(at).is_some_and(Option::is_some);
        let present = there.map(|(at, value)| (value.is_some() || was_sampled(at)).then_some(value.is_some()));
        FindingSpan { finding: FleetFinding { severity, rule, subject }, present: present.collect() }
    };
    let mut spans: Vec<FindingSpan> = series.iter().map(span).collect();
    let is_there = |span: &FindingSpan| span.present.iter().rev().flatten().next() == Some(&true);
    spans.sort_by_key(|span| (!is_there(span), std::cmp::Reverse(span.finding.severity), span.finding.text()));
    spans
}

fn figures(request: &RangeRequest, query: &HistoryQuery, series: &[AnswerSeries]) -> Vec<HistorySeries> {
    let largest = |series: &AnswerSeries| series.points.iter().map(|point| point.1).fold(0.0, f64::max);
    let mut series: Vec<&AnswerSeries> = series.iter().filter(|series| !series.points.is_empty()).collect();
    // Counts that never were above 0 say nothing.
    if matches!(query.group, HistoryGroup::KernelLog) {
        series.retain(|series| largest(series) > 0.0);
    }
    series.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    series.truncate(MAX_SERIES);
    series.sort_by(|a, b| a.label(query.label).cmp(b.label(query.label)));
    let figure = |series: &AnswerSeries| HistorySeries {
        group: query.group,
        name: match query.label {
            "" => query.name.to_owned(),
            label => format!("{} {}", sanitize(series.label(label)), query.name),
        },
        unit: query.unit,
        values: on_grid(request, &series.points),
    };
    series.into_iter().map(figure).collect()
}

impl HostHistory {
    /// The figures of a pane, those of one device or program together.
    pub fn group(&self, group: HistoryGroup) -> Vec<&HistorySeries> {
        let mut series: Vec<&HistorySeries> = self.series.iter().filter(|series| series.group == group).collect();
        if group == HistoryGroup::Devices {
            series.sort_by(|a, b| a.name.split(' ').next().cmp(&b.name.split(' ').next()));
        }
        series
    }

    /// The time of a value, seconds since 1970.
    pub fn time_at(&self, index: usize) -> f64 {
        self.start + self.step * index as f64
    }

    /// What of the host's own screen is not here, and why.
    pub fn missing(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.failed.iter().map(|(name, why)| format!("{name}: no answer: {why}")).collect();
        let has = |suffix: &str| self.series.iter().any(|series| series.name.ends_with(suffix));
        let is_failed = |name: &str| self.failed.iter().any(|(failed, _)| *failed == name);
        for (name, why) in [
            ("IO stall", "not exported; `export --all` or node_exporter has it"),
            ("bytes", "not exported; `export --all` has them"),
            ("mean", "no request was timed: there were none, or the exporter does not trace"),
            ("dirty", "not exported: the kernel's counters could not be read"),
        ] {
            if !has(name) && !is_failed(name) {
                lines.push(format!("{name}: {why}"));
            }
        }
        lines.push("processes, files, slow syncs, other memory, CPU and texts of the kernel log: not exported".into());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(labels: &[(&str, &str)], points: &[(f64, f64)]) -> AnswerSeries {
        let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        AnswerSeries { labels, points: points.to_vec() }
    }

    fn request() -> RangeRequest {
        let host = FleetHostId { job: "j".into(), instance: "a\"b:9755".into() };
        history_request(&QueryScope::default(), &host, (100.0, 130.0), 3, 1)
    }

    #[test]
    fn labels_are_quoted_in_every_query() {
        for (name, expression) in request().expressions {
            let quoted = expression.contains(r#"job="j",instance="a\"b:9755""#);
            assert!(quoted && !expression.contains("{m}") && !expression.contains("{w}"), "{name}: {expression}");
        }
    }

    #[test]
    fn findings_are_there_not_there_or_not_known() {
        let request = request();
        let mut answers: RangeAnswers = request.expressions.iter().map(|_| Ok(Vec::new())).collect();
        answers[0] = Ok(vec![series(&[], &[(100.0, 1.0), (110.0, 1.0), (130.0, 1.0)])]);
        let labels = [("rule", "device-stalled"), ("severity", "critical"), ("subject", "sda")];
        answers[1] = Ok(vec![series(&labels, &[(110.0, 1.0)])]);
        answers[4] = Err(QueryError::Refused("x".into()));
        let history = history_of(&request, answers);
        assert_eq!(history.findings[0].present, [Some(false), Some(true), None, Some(false)]);
        assert_eq!(history.findings[0].finding.text(), "device stalled: sda");
        let missing = history.missing().join("\n");
        assert!(missing.contains("mean: no answer") && missing.contains("bytes: not exported"), "{missing}");
    }

    #[test]
    fn figures_of_a_device_are_together_and_missing_values_are_no_zeros() {
        let request = request();
        let mut answers: RangeAnswers = request.expressions.iter().map(|_| Ok(Vec::new())).collect();
        let at = |name: &str| request.expressions.iter().position(|(other, _)| *other == name).unwrap();
        for name in ["p99", "mean"] {
            let both = ["sdb", "sda"].map(|device| series(&[("device", device)], &[(110.0, 0.25)]));
            answers[at(name)] = Ok(both.to_vec());
        }
        let history = history_of(&request, answers);
        let names: Vec<&str> = history.group(HistoryGroup::Devices).iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["sda mean", "sda p99", "sdb mean", "sdb p99"]);
        assert_eq!(history.series[0].values, [None, Some(0.25), None, None]);
        assert_eq!(HistoryUnit::Secs.format(0.25), "250 ms");
    }
}
