//! Makes hosts and devices of the answers.

use super::answer::{AnswerSeries, LabelSet};
use super::host::{FleetDevice, FleetFinding, FleetHost, FleetHostId};
use super::plan::FleetQuery;
use crate::doctor::finding::Severity;
use crate::sanitize::sanitize;
use std::collections::{BTreeMap, HashMap};

/// Characters of a label that are shown.
const MAX_LABEL_CHARS: usize = 200;

/// The answers to a group of queries; a query that failed has none.
pub type FleetAnswers = HashMap<FleetQuery, Vec<AnswerSeries>>;

/// Models of devices.
pub type DeviceModels = HashMap<(FleetHostId, String), String>;

pub(super) fn shown(label: &str) -> String {
    let cut = label.char_indices().nth(MAX_LABEL_CHARS).map_or(label, |(at, _)| &label[..at]);
    sanitize(cut)
}

pub(super) fn host_id(labels: &LabelSet) -> FleetHostId {
    let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
    FleetHostId { job: label("job"), instance: label("instance") }
}

/// An instance without its port: `web1:9755` and `web1:9100` are one host.
pub(super) fn without_port(instance: &str) -> &str {
    match instance.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => instance,
    }
}

/// Where the host of a series is reached.
fn address(labels: &LabelSet) -> String {
    shown(without_port(labels.get("instance").map_or("", String::as_str)))
}

/// The hosts, in no order, and when Prometheus evaluated the query, seconds since 1970. `None`: there is no answer that says
/// which hosts there are.
pub fn hosts_of(answers: &FleetAnswers, host_label: &str) -> Option<(Vec<FleetHost>, Option<f64>)> {
    let scrapes = answers.get(&FleetQuery::Scrapes)?;
    let evaluated_at = scrapes.iter().filter_map(|series| series.points.last()).map(|point| point.0).reduce(f64::max);
    let mut hosts: BTreeMap<FleetHostId, (FleetHost, Option<f64>)> = BTreeMap::new();
    for series in scrapes {
        let id = host_id(&series.labels);
        let address = address(&series.labels);
        let host = FleetHost { id: id.clone(), name: address.clone(), address, ..FleetHost::default() };
        hosts.insert(id, (host, series.value()));
    }
    name_hosts(answers, host_label, &mut hosts);
    let mut raw: HashMap<FleetHostId, HashMap<&str, f64>> = HashMap::new();
    for query in [FleetQuery::Samples, FleetQuery::Gauges] {
        for series in answers.get(&query).into_iter().flatten() {
            if let Some(value) = series.value() {
                raw.entry(host_id(&series.labels)).or_default().insert(series.label("__name__"), value);
            }
        }
    }
    let nothing = HashMap::new();
    for (id, (host, scraped_at)) in &mut hosts {
        let values = raw.get(id).unwrap_or(&nothing);
        apply_gauges(host, values);
        apply_age(host, values, *scraped_at, evaluated_at);
        let has_judged = values.contains_key("iotop_plus_rules_skipped");
        host.findings = (has_judged && answers.contains_key(&FleetQuery::Findings)).then(Vec::new);
    }
    add_findings(answers, &mut hosts);
    add_rates(answers, &mut hosts);
    let mut hosts: Vec<FleetHost> = hosts.into_values().map(|(host, _)| host).collect();
    name_duplicates(&mut hosts);
    Some((hosts, evaluated_at))
}

/// Names hosts by the label asked for, else as they call themselves, else by their address.
fn name_hosts(answers: &FleetAnswers, host_label: &str, hosts: &mut BTreeMap<FleetHostId, (FleetHost, Option<f64>)>) {
    let is_asked = host_label != "instance";
    let (query, label) = if is_asked { (FleetQuery::Scrapes, host_label) } else { (FleetQuery::Samples, "host") };
    for series in answers.get(&query).into_iter().flatten() {
        let name = series.label(label);
        if (is_asked || series.label("__name__") == "iotop_plus_host_info")
            && !name.is_empty()
            && let Some((host, _)) = hosts.get_mut(&host_id(&series.labels))
        {
            host.name = shown(name);
        }
    }
}

fn apply_gauges(host: &mut FleetHost, values: &HashMap<&str, f64>) {
    let value = |name: &str| values.get(format!("iotop_plus_{name}").as_str()).copied();
    let count = |name: &str| value(name).filter(|n| *n >= 0.0).map(|n| n as u64);
    (host.stalled_devices, host.hung_tasks) = (count("stalled_devices"), count("hung_tasks"));
    host.dirty_bytes = value("dirty_bytes");
    if let (Some(dirty), Some(writeback), Some(limit)) =
        (value("dirty_bytes"), value("writeback_bytes"), value("dirty_threshold_bytes").filter(|limit| *limit > 0.0))
    {
        host.dirty_pct = Some((dirty + writeback) / limit * 100.0);
    }
}

/// The age of the sample and the host's clock. Over HTTP the exporter says how old its sample was when it was scraped; in a
/// file only the host's own clock says when it was taken.
fn apply_age(host: &mut FleetHost, values: &HashMap<&str, f64>, scraped_at: Option<f64>, evaluated_at: Option<f64>) {
    let (Some(scraped), Some(now)) = (scraped_at, evaluated_at) else { return };
    let sampled = values.get("iotop_plus_sample_timestamp_seconds");
    match (values.get("iotop_plus_sample_age_seconds"), sampled) {
        (Some(age), sampled) => {
            host.age_secs = Some((now - scraped + age).max(0.0));
            host.clock_offset_secs = sampled.map(|sampled| sampled + age - scraped);
        }
        (None, Some(sampled)) => {
            // A sample of the future says that the clock is ahead, at least by this.
            host.clock_offset_secs = Some(sampled - scraped).filter(|offset| *offset > 0.0);
            host.age_secs = Some((now - sampled).max(now - scraped));
        }
        (None, None) => {}
    }
}

fn add_findings(answers: &FleetAnswers, hosts: &mut BTreeMap<FleetHostId, (FleetHost, Option<f64>)>) {
    for series in answers.get(&FleetQuery::Findings).into_iter().flatten() {
        let severity = match series.label("severity") {
            "critical" => Severity::Critical,
            "warn" => Severity::Warn,
            _ => Severity::Note,
        };
        let finding =
            FleetFinding { severity, rule: shown(series.label("rule")), subject: shown(series.label("subject")) };
        if let Some((host, _)) = hosts.get_mut(&host_id(&series.labels)) {
            host.findings.get_or_insert_default().push(finding);
        }
    }
    for (host, _) in hosts.values_mut() {
        if let Some(findings) = &mut host.findings {
            findings.sort_by(|a, b| (b.severity, &a.rule, &a.subject).cmp(&(a.severity, &b.rule, &b.subject)));
        }
    }
}

fn add_rates(answers: &FleetAnswers, hosts: &mut BTreeMap<FleetHostId, (FleetHost, Option<f64>)>) {
    for series in answers.get(&FleetQuery::Throttled).into_iter().flatten() {
        if let Some((host, _)) = hosts.get_mut(&host_id(&series.labels)) {
            host.throttled = series.value();
        }
    }
    let mut of_others: HashMap<String, f64> = HashMap::new();
    for series in answers.get(&FleetQuery::IoPressure).into_iter().flatten() {
        let Some(pct) = series.value().map(|share| (share * 100.0).min(100.0)) else { continue };
        match hosts.get_mut(&host_id(&series.labels)) {
            Some((host, _)) => host.io_pressure_pct = Some(pct),
            None => _ = of_others.insert(address(&series.labels), pct),
        }
    }
    for (host, _) in hosts.values_mut() {
        host.io_pressure_pct = host.io_pressure_pct.or_else(|| of_others.get(&host.address).copied());
    }
}

/// Gives hosts of one name their whole labels, and marks them.
fn name_duplicates(hosts: &mut [FleetHost]) {
    let mut count: HashMap<String, usize> = HashMap::new();
    hosts.iter().for_each(|host| *count.entry(host.name.clone()).or_default() += 1);
    let is_same_instance = |a: &FleetHostId, b: &FleetHost| a.instance == b.id.instance && a.job != b.id.job;
    let ids: Vec<FleetHostId> = hosts.iter().map(|host| host.id.clone()).collect();
    for host in hosts.iter_mut().filter(|host| count[&host.name] > 1) {
        host.is_duplicate = true;
        let instance = shown(&host.id.instance);
        let name = if instance.starts_with(&host.name) { instance } else { format!("{} {instance}", host.name) };
        let needs_job = ids.iter().any(|id| is_same_instance(id, host));
        host.name = if needs_job { format!("{name} {}", shown(&host.id.job)) } else { name };
    }
}

/// The devices, in no order, with the names that `names` gives their hosts.
pub fn devices_of(
    answers: &FleetAnswers,
    models: &DeviceModels,
    names: &HashMap<FleetHostId, String>,
) -> Vec<FleetDevice> {
    let mut devices: BTreeMap<(FleetHostId, String), FleetDevice> = BTreeMap::new();
    for query in FleetQuery::DEVICES {
        for series in answers.get(&query).into_iter().flatten() {
            let key = (host_id(&series.labels), series.label("device").to_owned());
            let (Some(host_name), Some(value)) = (names.get(&key.0), series.value()) else { continue };
            let device = devices.entry(key).or_insert_with_key(|(host, device)| FleetDevice {
                host: host.clone(),
                host_name: host_name.clone(),
                device: shown(device),
                model: models.get(&(host.clone(), device.clone())).cloned(),
                ..FleetDevice::default()
            });
            match query {
                FleetQuery::Requests => device.requests_per_sec = Some(value),
                FleetQuery::MeanTime => device.mean_secs = Some(value),
                FleetQuery::P99 => device.p99_secs = Some(value),
                FleetQuery::Bytes => device.bytes_per_sec = Some(value),
                FleetQuery::Stalled => device.is_stalled = true,
                _ => {}
            }
        }
    }
    devices.into_values().collect()
}

/// The models that an answer names.
pub fn models_of(series: &[AnswerSeries]) -> DeviceModels {
    let model = |series: &AnswerSeries| {
        let key = (host_id(&series.labels), series.label("device").to_owned());
        let [model, class] = ["model", "class"].map(|label| series.label(label));
        let group = match (model, class) {
            ("", "") => return None,
            ("", class) => format!("{class} without a model"),
            (model, _) => model.to_owned(),
        };
        Some((key, shown(&group)))
    };
    series.iter().filter_map(model).collect()
}
