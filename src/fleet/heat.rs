//! The heat map of hosts over time: its queries and its values.

use super::answer::AnswerSeries;
use super::assemble::host_id;
use super::host::{FleetHost, FleetHostId};
use super::plan::QueryScope;
use super::range::RangeRequest;
use std::collections::HashMap;

/// What a heat map shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeatQuantity {
    /// The worst finding.
    #[default]
    Findings,
    /// Share of time in which some task waited for I/O.
    IoStall,
    /// Dirty pages against the limit.
    Dirty,
    /// Pauses of writers.
    Throttled,
}

impl HeatQuantity {
    /// The next one.
    pub fn next(self) -> Self {
        match self {
            Self::Findings => Self::IoStall,
            Self::IoStall => Self::Dirty,
            Self::Dirty => Self::Throttled,
            Self::Throttled => Self::Findings,
        }
    }

    /// Its name on screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::Findings => "worst finding (full: critical, half: warning)",
            Self::IoStall => "IO stall, 0 to 100 %",
            Self::Dirty => "dirty pages, 0 to 100 % of the limit",
            Self::Throttled => "pauses of writers, 0 to 4 s per second",
        }
    }

    /// The value that is drawn full.
    fn full(self) -> f64 {
        match self {
            Self::Findings => 2.0,
            Self::IoStall | Self::Dirty => 100.0,
            Self::Throttled => 4.0,
        }
    }

    /// The expression for all hosts of a scope.
    fn expression(self, scope: &QueryScope, node_matcher: &str) -> String {
        let window = scope.window_secs;
        let one = |metric: &str, more: &str| scope.selector(metric, more);
        match self {
            Self::Findings => format!(
                "max by (job,instance) ((({} > bool 0) * 2) or ({} > bool 0))",
                one("iotop_plus_findings", "severity=\"critical\""),
                one("iotop_plus_findings", "severity=\"warn\"")
            ),
            Self::IoStall => format!(
                "100 * (sum by (job,instance) (rate({}[{window}s])) or \
                 sum by (job,instance) (rate(node_pressure_io_waiting_seconds_total{{{node_matcher}}}[{window}s])))",
                one("iotop_plus_pressure_waiting_seconds_total", "resource=\"io\"")
            ),
            Self::Dirty => format!(
                "100 * sum by (job,instance) ({}) / sum by (job,instance) ({} > 0)",
                scope.selector("", "__name__=~\"iotop_plus_dirty_bytes|iotop_plus_writeback_bytes\""),
                one("iotop_plus_dirty_threshold_bytes", "")
            ),
            Self::Throttled => {
                format!("sum by (job,instance) (rate({}[{window}s]))", one("iotop_plus_throttled_seconds_total", ""))
            }
        }
    }
}

/// A value of a regular expression in a selector, as a string between quotes.
pub(super) fn regex_quote(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            // A backslash for the expression, and one for the string.
            _ if c.is_ascii_alphanumeric() || "_-:/ ".contains(c) || !c.is_ascii() => out.push(c),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\\\\\"),
            '\n' => out.push_str("\\n"),
            _ => out.push_str(&format!("\\\\{c}")),
        }
    }
    out
}

/// The request for some hosts, those on screen, from `start` to `end` with `columns` values.
pub fn heat_request(
    scope: &QueryScope,
    quantity: HeatQuantity,
    hosts: &[&FleetHost],
    (start, end): (f64, f64),
    columns: usize,
    id: u64,
) -> RangeRequest {
    let instances: Vec<String> = hosts.iter().map(|host| regex_quote(&host.id.instance)).collect();
    let names: Vec<String> = hosts.iter().map(|host| regex_quote(&host.address)).collect();
    let listed = format!("instance=~\"{}\"", instances.join("|"));
    let comma = if scope.matchers.is_empty() { "" } else { "," };
    let narrow = QueryScope { matchers: format!("{}{comma}{listed}", scope.matchers), ..scope.clone() };
    let node_matcher = format!("instance=~\"({})(:[0-9]+)?\"", names.join("|"));
    let step = ((end - start) / columns.max(2) as f64).max(1.0);
    let expressions = vec![(quantity.title(), quantity.expression(&narrow, &node_matcher))];
    RangeRequest { id, expressions, start, end, step }
}

/// The shares of a full cell by host, 0 to 1, oldest first; `None`: no value.
pub fn heat_values(
    request: &RangeRequest,
    quantity: HeatQuantity,
    series: &[AnswerSeries],
    hosts: &[FleetHost],
) -> HashMap<FleetHostId, Vec<Option<f64>>> {
    let mut by_id: HashMap<FleetHostId, Vec<Option<f64>>> = HashMap::new();
    for one in series {
        let values = on_grid(request, &one.points);
        let values = values.into_iter().map(|value| Some((value? / quantity.full()).clamp(0.0, 1.0))).collect();
        let id = host_id(&one.labels);
        // A series of another exporter belongs to the host of that name.
        let plain = super::assemble::without_port(&id.instance).to_owned();
        let id = match hosts.iter().any(|host| host.id == id) {
            true => id,
            false => hosts.iter().find(|host| host.address == plain).map_or(id, |host| host.id.clone()),
        };
        by_id.insert(id, values);
    }
    by_id
}

/// Values at the times of a request, oldest first.
pub fn on_grid(request: &RangeRequest, points: &[(f64, f64)]) -> Vec<Option<f64>> {
    let count = ((request.end - request.start) / request.step).floor().clamp(0.0, 11_000.0) as usize + 1;
    let mut values = vec![None; count];
    for (time, value) in points {
        let at = ((time - request.start) / request.step).round();
        if at >= 0.0
            && let Some(slot) = values.get_mut(at as usize)
        {
            *slot = Some(*value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(instance: &str) -> FleetHost {
        let id = FleetHostId { job: "j".into(), instance: instance.into() };
        FleetHost { id, address: instance.split(':').next().unwrap().into(), ..FleetHost::default() }
    }

    #[test]
    fn only_hosts_on_screen_are_asked_for_and_their_names_are_no_patterns() {
        let (a, b) = (host("a.example:9755"), host("b\"x|.*:1"));
        let scope = QueryScope { matchers: "job=\"j\"".into(), ..QueryScope::default() };
        let request = heat_request(&scope, HeatQuantity::Dirty, &[&a, &b], (0.0, 600.0), 60, 7);
        let expression = &request.expressions[0].1;
        assert!(expression.contains(r#"job="j",instance=~"a\\.example:9755|b\"x\\|\\.\\*:1""#), "{expression}");
        assert_eq!((request.step, request.id), (10.0, 7));
    }

    #[test]
    fn values_are_shares_at_their_times_and_gaps_stay_gaps() {
        let hosts = [host("a:9755")];
        let request = RangeRequest { id: 0, expressions: Vec::new(), start: 100.0, end: 130.0, step: 10.0 };
        let labels = [("job".to_owned(), "node".to_owned()), ("instance".into(), "a:9100".into())].into();
        let series = [AnswerSeries { labels, points: vec![(100.0, 50.0), (120.0, 400.0)] }];
        let values = heat_values(&request, HeatQuantity::IoStall, &series, &hosts);
        assert_eq!(values[&hosts[0].id], [Some(0.5), None, Some(1.0), None]);
    }
}
