//! Prometheus as the source of hosts, devices and series over time.

use super::answer::{AnswerSeries, parse_answer};
use super::assemble::{DeviceModels, FleetAnswers, devices_of, host_id, hosts_of, models_of, without_port};
use super::client::PrometheusClient;
use super::host::{FleetDevice, FleetHost, FleetHostId};
use super::judge::{SlowDevices, judge_request, slow_devices};
use super::plan::{FleetQuery, QueryScope, SAMPLE_TIME, window_for_scrapes};
use super::query_error::QueryError;
use super::range::{RangeAnswers, RangeRequest};
use crate::sanitize::sanitize;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// What failed, by the name of the query, and why.
pub type FailedQueries = Vec<(&'static str, QueryError)>;

/// The hosts at a time.
#[derive(Debug, Clone, Default)]
pub struct HostsReport {
    /// In no order.
    pub hosts: Vec<FleetHost>,
    /// When the source evaluated, seconds since 1970; `None`: it did not say, because there is no host.
    pub evaluated_at: Option<f64>,
    /// Queries without an answer; their columns are missing.
    pub failed: FailedQueries,
    /// What else could not be read, in a line each.
    pub notes: Vec<String>,
}

/// The devices at a time.
#[derive(Debug, Clone, Default)]
pub struct DevicesReport {
    /// In no order.
    pub devices: Vec<FleetDevice>,
    /// Queries without an answer; their columns are missing.
    pub failed: FailedQueries,
}

/// How often models, the interval of scrapes and recorded rules are asked for.
const SETUP_INTERVAL: Duration = Duration::from_secs(60);
/// How often they are asked for until there is an answer.
const SETUP_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Names of hosts in an error, at most.
const MAX_NAMES: usize = 10;

/// Asks Prometheus.
pub struct PrometheusSource {
    client: PrometheusClient,
    /// What all queries have in common.
    pub scope: QueryScope,
    /// The window was chosen by the user.
    fixed_window: bool,
    models: DeviceModels,
    setup_due: Option<Instant>,
    /// Names of the hosts of the newest list.
    names: HashMap<FleetHostId, String>,
}

impl PrometheusSource {
    /// A source; `window_secs`: what rates are means of, by default as often as hosts are scraped.
    pub fn new(client: PrometheusClient, scope: QueryScope, window_secs: Option<u32>) -> Self {
        let scope = QueryScope { window_secs: window_secs.unwrap_or(scope.window_secs), ..scope };
        Self {
            client,
            scope,
            fixed_window: window_secs.is_some(),
            models: DeviceModels::new(),
            setup_due: None,
            names: HashMap::new(),
        }
    }

    /// The answer to an expression at a time, seconds since 1970, by default now.
    async fn query(&mut self, expression: &str, time: Option<f64>) -> Result<Vec<AnswerSeries>, QueryError> {
        let time = time.map(|time| format!("{time:.3}"));
        let mut params = vec![("query", expression)];
        params.extend(time.as_deref().map(|time| ("time", time)));
        parse_answer(&self.client.get("/api/v1/query", &params).await?)
    }

    /// The answers to some queries. Once the server cannot be reached, none is asked any more.
    async fn ask(&mut self, queries: &[FleetQuery], time: Option<f64>) -> (FleetAnswers, FailedQueries) {
        let (mut answers, mut failed) = (FleetAnswers::new(), FailedQueries::new());
        for query in queries {
            match self.query(&query.expression(&self.scope), time).await {
                Ok(series) => _ = answers.insert(*query, series),
                Err(why) => {
                    let is_last = why.concerns_server();
                    failed.push((query.name(), why));
                    if is_last {
                        break;
                    }
                }
            }
        }
        (answers, failed)
    }

    /// Asks for what seldom changes, if it is due.
    async fn set_up(&mut self, time: Option<f64>) {
        if self.setup_due.is_some_and(|due| due > Instant::now()) {
            return;
        }
        let (mut answers, failed) = self.ask(&FleetQuery::SETUP, time).await;
        let wait = if failed.is_empty() { SETUP_INTERVAL } else { SETUP_RETRY_INTERVAL };
        self.setup_due = Some(Instant::now() + wait);
        let number = |answer: Option<&Vec<AnswerSeries>>| answer.and_then(|series| series.first()?.value());
        if let Some(count) = number(answers.get(&FleetQuery::ScrapeCount)).filter(|_| !self.fixed_window) {
            self.scope.window_secs = window_for_scrapes(count);
        }
        if let Some(rules) = answers.get(&FleetQuery::RecordedRule) {
            self.scope.has_recorded_p99 = number(Some(rules)).is_some_and(|count| count > 0.0);
        }
        if let Some(series) = answers.remove(&FleetQuery::Models) {
            self.models = models_of(&series);
        }
    }

    /// The hosts at a time, by default now.
    ///
    /// # Errors
    /// It is not known which hosts there are.
    pub async fn hosts(&mut self, time: Option<f64>) -> Result<HostsReport, QueryError> {
        let (answers, mut failed) = self.ask(&FleetQuery::HOSTS, time).await;
        // Half a list in place of the whole one would hide what was there.
        if let Some(at) = failed.iter().position(|(_, why)| why.concerns_server()) {
            return Err(failed.swap_remove(at).1);
        }
        let Some((hosts, evaluated_at)) = hosts_of(&answers, &self.scope.host_label) else {
            let is_scrapes = |(name, _): &(&str, QueryError)| *name == FleetQuery::Scrapes.name();
            let at = failed.iter().position(is_scrapes).unwrap_or(0);
            return Err(failed.swap_remove(at).1);
        };
        self.names = hosts.iter().map(|host| (host.id.clone(), host.name.clone())).collect();
        Ok(HostsReport { hosts, evaluated_at, failed, notes: Vec::new() })
    }

    /// The devices of the hosts of the newest list, at a time.
    pub async fn devices(&mut self, time: Option<f64>) -> DevicesReport {
        self.set_up(time).await;
        let (answers, failed) = self.ask(&FleetQuery::DEVICES, time).await;
        DevicesReport { devices: devices_of(&answers, &self.models, &self.names), failed }
    }

    /// The hosts that have this name, address or instance and had figures between two times.
    ///
    /// # Errors
    /// There is no answer, or there is no such host; then the error names those that there are.
    pub async fn find_hosts(&mut self, name: &str, (start, end): (f64, f64)) -> Result<Vec<FleetHostId>, QueryError> {
        let metrics = format!("__name__=~\"{SAMPLE_TIME}|iotop_plus_host_info\"");
        let secs = (end - start).max(60.0).ceil() as u64;
        let expression = format!("last_over_time({}[{secs}s])", self.scope.selector("", &metrics));
        let series = self.query(&expression, Some(end)).await?;
        let (mut found, mut others) = (BTreeSet::new(), BTreeSet::new());
        for one in &series {
            let id = host_id(&one.labels);
            let address = without_port(&id.instance);
            let names = [address, &id.instance, one.label("host"), one.label(&self.scope.host_label)];
            if names.contains(&name) {
                found.insert(id);
            } else {
                others.insert(sanitize(address));
            }
        }
        if found.is_empty() {
            let some: Vec<String> = others.into_iter().take(MAX_NAMES).collect();
            let there = if some.is_empty() { "none".into() } else { some.join(", ") };
            return Err(QueryError::NoHost(format!(
                "no figures of \"{}\" in this time; hosts: {there}",
                sanitize(name)
            )));
        }
        Ok(found.into_iter().collect())
    }

    /// The devices that are slower than others of their model, up to a time, seconds since 1970.
    ///
    /// # Errors
    /// What they did could not be read.
    pub async fn slow_devices(&mut self, end: f64) -> Result<SlowDevices, QueryError> {
        let request = judge_request(&self.scope, end);
        let answers = self.range(&request).await;
        slow_devices(&request, answers, &self.models)
    }

    /// Series over time.
    pub async fn range(&mut self, request: &RangeRequest) -> RangeAnswers {
        let mut answers = RangeAnswers::new();
        let number = |seconds: f64| format!("{seconds:.3}");
        let (start, end, step) = (number(request.start), number(request.end), number(request.step));
        for (_, expression) in &request.expressions {
            let params = [("query", expression.as_str()), ("start", &start), ("end", &end), ("step", &step)];
            let answer = self.client.get("/api/v1/query_range", &params).await;
            answers.push(answer.and_then(|body| parse_answer(&body)));
        }
        answers
    }
}
