//! The queries: some for all hosts at once, none for a single host of the list.
//!
//! Each answer has one series per host, or one per device or finding, so that its size is known:
//! docs/guide/fleet.md has the table for 10,000 hosts.

/// What all queries of a screen have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryScope {
    /// Label matchers, such as `job="iotop-plus"`; empty for all.
    pub matchers: String,
    /// The label whose value names a host.
    pub host_label: String,
    /// Seconds that rates are means of.
    pub window_secs: u32,
    /// The 99th percentiles are there as a recorded rule.
    pub has_recorded_p99: bool,
}

impl Default for QueryScope {
    fn default() -> Self {
        Self { matchers: String::new(), host_label: "instance".into(), window_secs: 60, has_recorded_p99: false }
    }
}

/// The metric that every host has.
pub const SAMPLE_TIME: &str = "iotop_plus_sample_timestamp_seconds";
/// The recorded rule of packaging/prometheus/iotop-plus.rules.yml.
const RECORDED_P99: &str = "device:iotop_plus_request_seconds:p99_5m";

/// A query for all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum FleetQuery {
    /// When each host was scraped.
    Scrapes,
    /// Time and age of samples; whether the rules have judged; what the host calls itself.
    Samples,
    /// Dirty pages, stalled devices, hung tasks.
    Gauges,
    /// Findings that are more than a note.
    Findings,
    /// Share of time in which some task waits for I/O.
    #[strum(serialize = "pressure")]
    IoPressure,
    /// Pauses of writers.
    Throttled,
    /// Requests by device.
    Requests,
    /// Mean time of requests by device.
    #[strum(serialize = "latency")]
    MeanTime,
    /// 99th percentile by device.
    P99,
    /// Bytes by device.
    Bytes,
    /// Stalled devices by name.
    Stalled,
    /// Models of devices.
    Models,
    /// How often hosts are scraped: the number of scrapes within five minutes that most hosts have at least.
    #[strum(serialize = "scrape interval")]
    ScrapeCount,
    /// Whether the recorded rule is there.
    #[strum(serialize = "recorded rule")]
    RecordedRule,
}

impl FleetQuery {
    /// The queries for the list of hosts.
    pub const HOSTS: [Self; 6] =
        [Self::Scrapes, Self::Samples, Self::Gauges, Self::Findings, Self::IoPressure, Self::Throttled];
    /// The queries for the list of devices.
    pub const DEVICES: [Self; 5] = [Self::Requests, Self::MeanTime, Self::P99, Self::Bytes, Self::Stalled];
    /// What seldom changes.
    pub const SETUP: [Self; 3] = [Self::ScrapeCount, Self::RecordedRule, Self::Models];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The expression.
    pub fn expression(self, scope: &QueryScope) -> String {
        let m = &scope.matchers;
        let one = |metric: &str, more: &str| scope.selector(metric, more);
        let any = |metrics: &str| scope.selector("", &format!("__name__=~\"{metrics}\""));
        let window = format!("[{}s]", scope.window_secs);
        let by = scope.host_labels();
        let rate = |metric: &str, more: &str| format!("rate({}{window})", one(metric, more));
        match self {
            Self::Scrapes => format!("max by ({by}) (timestamp({}))", one(SAMPLE_TIME, "")),
            Self::Samples => {
                any("iotop_plus_sample_timestamp_seconds|iotop_plus_sample_age_seconds|iotop_plus_rules_skipped\
                 |iotop_plus_host_info")
            }
            Self::Gauges => any("iotop_plus_dirty_bytes|iotop_plus_writeback_bytes|iotop_plus_dirty_threshold_bytes\
                 |iotop_plus_stalled_devices|iotop_plus_hung_tasks"),
            Self::Findings => one("iotop_plus_finding_info", "severity!=\"note\""),
            // node_exporter has its own job and port: its series are joined by the host's name.
            Self::IoPressure => format!(
                "sum by ({by}) ({}) or sum by ({by}) (rate(node_pressure_io_waiting_seconds_total{window}))",
                rate("iotop_plus_pressure_waiting_seconds_total", "resource=\"io\"")
            ),
            Self::Throttled => format!("sum by ({by}) ({})", rate("iotop_plus_throttled_seconds_total", "")),
            Self::Requests => {
                format!("sum by ({by},device) ({})", rate("iotop_plus_device_request_seconds_count", ""))
            }
            // In one query: the values of two, of which a scrape came between, do not belong together.
            Self::MeanTime => format!(
                "sum by ({by},device) ({}) / sum by ({by},device) ({})",
                rate("iotop_plus_device_request_seconds_sum", ""),
                rate("iotop_plus_device_request_seconds_count", "")
            ),
            Self::P99 if scope.has_recorded_p99 => format!("max by ({by},device) ({})", one(RECORDED_P99, "")),
            Self::P99 => format!(
                "histogram_quantile(0.99, sum by ({by},device,le) ({}))",
                rate("iotop_plus_device_request_seconds_bucket", "")
            ),
            Self::Bytes => format!(
                "sum by ({by},device) ({}) + sum by ({by},device) ({})",
                rate("iotop_plus_device_read_bytes_total", ""),
                rate("iotop_plus_device_written_bytes_total", "")
            ),
            Self::Stalled => format!("{} == 1", one("iotop_plus_device_stalled", "")),
            Self::Models => one("iotop_plus_device_info", ""),
            Self::ScrapeCount => format!("quantile(0.1, count_over_time({}[5m]))", one(SAMPLE_TIME, "")),
            Self::RecordedRule => format!("count({RECORDED_P99}{{{m}}})"),
        }
    }
}

/// Seconds of [`FleetQuery::ScrapeCount`].
const COUNTED_SECS: f64 = 300.0;
/// Scrapes that a rate is made of.
const SCRAPES_PER_WINDOW: f64 = 4.0;
/// Shortest and longest time that rates are means of, seconds.
const WINDOW_SECS: (f64, f64) = (20.0, 900.0);

/// Seconds that rates should be means of where a host is scraped this often in five minutes.
pub fn window_for_scrapes(count: f64) -> u32 {
    let interval = COUNTED_SECS / count.max(1.0);
    (interval * SCRAPES_PER_WINDOW).clamp(WINDOW_SECS.0, WINDOW_SECS.1).round() as u32
}

impl QueryScope {
    /// The labels that tell hosts apart.
    fn host_labels(&self) -> String {
        match self.host_label.as_str() {
            "instance" | "job" => "job,instance".into(),
            label => format!("job,instance,{label}"),
        }
    }

    /// A selector of a metric with the matchers of the scope and more.
    pub fn selector(&self, metric: &str, more: &str) -> String {
        let comma = if more.is_empty() || self.matchers.is_empty() { "" } else { "," };
        format!("{metric}{{{more}{comma}{}}}", self.matchers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray as _;

    #[test]
    fn matchers_are_in_every_query() {
        let scope = QueryScope { matchers: "job=\"x\"".into(), host_label: "host".into(), ..QueryScope::default() };
        for query in FleetQuery::VARIANTS {
            let expression = query.expression(&scope);
            assert!(expression.contains("job=\"x\"}"), "{query:?}: {expression}");
        }
        let expression = FleetQuery::Throttled.expression(&scope);
        assert_eq!(expression, "sum by (job,instance,host) (rate(iotop_plus_throttled_seconds_total{job=\"x\"}[60s]))");
    }

    #[test]
    fn the_list_of_hosts_takes_no_query_per_host() {
        assert_eq!(FleetQuery::HOSTS.len() + FleetQuery::DEVICES.len(), 11);
        let all = QueryScope::default();
        assert_eq!(FleetQuery::Stalled.expression(&all), "iotop_plus_device_stalled{} == 1");
        let recorded = QueryScope { has_recorded_p99: true, ..all };
        assert!(!FleetQuery::P99.expression(&recorded).contains("histogram_quantile"));
    }

    #[test]
    fn rates_cover_four_scrapes() {
        assert_eq!([300.0, 20.0, 5.0, 1.0, 0.0].map(window_for_scrapes), [20, 60, 240, 900, 900]);
    }
}
