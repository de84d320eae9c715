//! What is known of all hosts: the newest answers, since when there are none, and which hosts are gone.

use super::host::{FleetDevice, FleetHost, FleetHostId, HostPresence};
use super::judge::{self, SlowDevices};
use super::poller::FleetEvent;
use super::query_error::QueryError;
use super::rank;
use super::source::{DevicesReport, FailedQueries, HostsReport};
use std::collections::HashMap;

/// Hosts that are gone and still listed, at most.
const MAX_GONE: usize = 1000;
/// Figures of devices are left out when they are older than this, seconds of the local clock.
const DEVICES_MAX_AGE_SECS: f64 = 60.0;

/// Everything that is known.
#[derive(Debug, Default)]
pub struct FleetState {
    /// The hosts, the worst first.
    pub hosts: Vec<FleetHost>,
    /// The devices.
    pub devices: Vec<FleetDevice>,
    /// When the source evaluated the list of hosts, seconds since 1970, by its own clock.
    pub evaluated_at: Option<f64>,
    /// When that answer arrived, seconds of the local clock.
    pub answered_at: Option<f64>,
    /// Since when the source has not answered, seconds of the local clock, and why.
    pub outage: Option<(f64, QueryError)>,
    /// Queries without an answer in the newest round: for hosts, for devices, to judge devices.
    pub failed: [FailedQueries; 3],
    /// What else could not be read.
    pub notes: Vec<String>,
    /// The source is recordings, which have no present.
    pub is_recorded: bool,
    /// The time in the past that is shown; `None`: now.
    pub shown_time: Option<f64>,
    /// Number of the chosen time that this is of.
    pub generation: u64,
    devices_at: Option<f64>,
    slow: SlowDevices,
    /// When each host was last there, by the source's clock.
    seen: HashMap<FleetHostId, (FleetHost, f64)>,
}

impl FleetState {
    /// Shows another time. What was there is not what was there then: everything is dropped.
    pub fn choose_time(&mut self, time: Option<f64>) -> u64 {
        let (generation, is_recorded) = (self.generation + 1, self.is_recorded);
        *self = Self { shown_time: time, generation, is_recorded, ..Self::default() };
        self.generation
    }

    /// Takes a report; `now`: seconds of the local clock. Returns whether it is about the time shown.
    pub fn apply(&mut self, event: FleetEvent, now: f64) -> bool {
        match event {
            FleetEvent::Hosts(generation, _) | FleetEvent::Devices(generation, _) | FleetEvent::Slow(generation, _)
                if generation != self.generation =>
            {
                return false;
            }
            FleetEvent::Hosts(_, Ok(report)) => self.apply_hosts(report, now),
            FleetEvent::Hosts(_, Err(why)) => {
                let since = self.outage.take().map_or(now, |(since, _)| since);
                self.outage = Some((since, why));
            }
            FleetEvent::Devices(_, report) => self.apply_devices(report, now),
            // A judgement that could not be made leaves none: an old one is none of now.
            FleetEvent::Slow(_, Ok(slow)) => (self.slow, self.failed[2]) = (slow, FailedQueries::new()),
            FleetEvent::Slow(_, Err(why)) => {
                (self.slow, self.failed[2]) = (SlowDevices::new(), vec![(judge::NAME, why)]);
            }
            FleetEvent::Range(..) => return false,
        }
        self.refresh(now);
        true
    }

    fn apply_hosts(&mut self, report: HostsReport, now: f64) {
        let evaluated_at = report.evaluated_at.unwrap_or(now);
        (self.evaluated_at, self.answered_at, self.outage) = (Some(evaluated_at), Some(now), None);
        (self.failed[0], self.notes) = (report.failed, report.notes);
        self.hosts = report.hosts;
        for host in &self.hosts {
            self.seen.insert(host.id.clone(), (host.without_figures(evaluated_at), evaluated_at));
        }
        let present: std::collections::HashSet<&FleetHostId> = self.hosts.iter().map(|host| &host.id).collect();
        let mut gone: Vec<(FleetHost, f64)> =
            self.seen.iter().filter(|(id, _)| !present.contains(id)).map(|(_, host)| host.clone()).collect();
        gone.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (host, _) in gone.drain(MAX_GONE.min(gone.len())..) {
            self.seen.remove(&host.id);
        }
        self.hosts.extend(gone.into_iter().map(|(host, _)| host));
    }

    fn apply_devices(&mut self, report: DevicesReport, now: f64) {
        let is_answered = report.failed.len() < super::plan::FleetQuery::DEVICES.len()
            && !report.failed.iter().any(|(_, why)| why.concerns_server());
        if is_answered {
            (self.devices, self.devices_at) = (report.devices, Some(now));
        }
        self.failed[1] = report.failed;
    }

    /// Drops figures of devices that are too old, gives hosts those of their devices, and sorts.
    fn refresh(&mut self, now: f64) {
        let is_live = self.shown_time.is_none() && !self.is_recorded;
        if is_live && self.devices_at.is_some_and(|at| now - at > DEVICES_MAX_AGE_SECS) {
            self.devices.clear();
        }
        for device in &mut self.devices {
            device.verdict = self.slow.get(&(device.host.clone(), device.device.clone())).cloned();
        }
        let mut p99: HashMap<&FleetHostId, f64> = HashMap::new();
        for device in &self.devices {
            let Some(secs) = device.p99_secs else { continue };
            let longest = p99.entry(&device.host).or_insert(secs);
            *longest = longest.max(secs);
        }
        for host in self.hosts.iter_mut().filter(|host| host.presence == HostPresence::Present) {
            host.p99_secs = p99.get(&host.id).copied();
        }
        self.hosts.sort_by(rank::compare);
    }

    /// Seconds since the newest answer, by the local clock; `None`: there is none yet.
    pub fn answer_age(&self, now: f64) -> Option<f64> {
        Some((now - self.answered_at?).max(0.0))
    }

    /// The age of a host's sample now: at the evaluation, and since the answer.
    pub fn host_age(&self, host: &FleetHost, now: f64) -> Option<f64> {
        match (host.presence, self.shown_time) {
            (HostPresence::GoneSince(seen), shown) => {
                let is_past = shown.is_some() || self.is_recorded;
                let since_answer = if is_past { 0.0 } else { self.answer_age(now)? };
                Some((self.evaluated_at? - seen).max(0.0) + since_answer)
            }
            (_, Some(_)) => host.age_secs,
            _ if self.is_recorded => host.age_secs,
            (_, None) => Some(host.age_secs? + self.answer_age(now)?),
        }
    }

    /// How far the source's clock is ahead of the local one, seconds.
    pub fn clock_offset(&self) -> Option<f64> {
        let is_live = self.shown_time.is_none() && !self.is_recorded;
        is_live.then_some(self.evaluated_at? - self.answered_at?)
    }

    /// What is wrong with the answers, in a line each: no answer since when, and which columns are missing.
    pub fn problems(&self, time_of_day: impl Fn(f64) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((since, why)) = &self.outage {
            let shown = match self.answered_at {
                Some(at) => format!("; shown is what it said at {}", time_of_day(at)),
                None => String::new(),
            };
            lines.push(format!("No answer since {}: {why}{shown}", time_of_day(*since)));
        }
        lines.extend(self.notes.iter().cloned());
        // One line for all queries that failed in the same way.
        let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, why) in self.failed.iter().flatten() {
            let why = why.to_string();
            match by_reason.iter_mut().find(|(other, _)| *other == why) {
                Some((_, names)) => names.push(name),
                None => by_reason.push((why, vec![name])),
            }
        }
        if self.outage.is_none() {
            lines.extend(by_reason.into_iter().map(|(why, names)| format!("No {}: {why}", names.join(", "))));
        }
        if let Some(offset) = self.clock_offset().filter(|offset| offset.abs() > 5.0) {
            let by = crate::units::format_duration(offset.abs().min(1e15) as u64);
            let word = if offset > 0.0 { "ahead of" } else { "behind" };
            lines.push(format!("The clock of Prometheus is {by} {word} that of this machine"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(names: &[&str], evaluated_at: f64) -> HostsReport {
        let host = |name: &&str| FleetHost {
            id: FleetHostId { job: "j".into(), instance: name.to_string() },
            name: name.to_string(),
            io_pressure_pct: Some(3.0),
            age_secs: Some(1.0),
            ..FleetHost::default()
        };
        HostsReport {
            hosts: names.iter().map(host).collect(),
            evaluated_at: Some(evaluated_at),
            ..HostsReport::default()
        }
    }

    #[test]
    fn a_host_that_is_gone_stays_without_its_figures() {
        let mut state = FleetState::default();
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a", "b"], 100.0))), 100.0);
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a"], 110.0))), 110.0);
        let gone = state.hosts.iter().find(|host| host.name == "b").unwrap();
        assert_eq!((gone.presence, gone.io_pressure_pct), (HostPresence::GoneSince(100.0), None));
        assert_eq!(state.host_age(gone, 115.0), Some(15.0));
        assert_eq!(state.hosts[0].name, "b", "what is silent comes before what is fine");
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a", "b"], 120.0))), 120.0);
        assert!(state.hosts.iter().all(|host| !host.is_gone()) && state.hosts.len() == 2);
    }

    #[test]
    fn an_outage_is_shown_since_it_began_and_ages_go_on() {
        let mut state = FleetState::default();
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a"], 100.0))), 200.0);
        let down = || QueryError::Connection { server: "p:9090".into(), why: "connection refused".into() };
        state.apply(FleetEvent::Hosts(0, Err(down())), 210.0);
        state.apply(FleetEvent::Hosts(0, Err(down())), 220.0);
        assert_eq!(state.host_age(&state.hosts[0], 230.0), Some(31.0));
        let lines = state.problems(|secs| format!("<{secs}>"));
        assert!(lines[0].starts_with("No answer since <210>: no connection to p:9090"), "{lines:?}");
        assert!(lines[0].ends_with("shown is what it said at <200>") && lines[1].contains("behind"), "{lines:?}");
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a"], 225.0))), 225.0);
        assert_eq!(state.problems(|_| String::new()), [""; 0]);
    }

    #[test]
    fn an_answer_about_another_time_is_dropped() {
        let mut state = FleetState::default();
        state.apply(FleetEvent::Hosts(0, Ok(report(&["a"], 100.0))), 100.0);
        let generation = state.choose_time(Some(50.0));
        assert!(state.hosts.is_empty());
        assert!(!state.apply(FleetEvent::Hosts(0, Ok(report(&["a"], 101.0))), 101.0));
        assert!(state.hosts.is_empty(), "figures of now are none of then");
        assert!(state.apply(FleetEvent::Hosts(generation, Ok(report(&["b"], 50.0))), 102.0));
        assert_eq!(state.host_age(&state.hosts[0], 200.0), Some(1.0), "its age then");
    }

    #[test]
    fn queries_that_fail_alike_share_a_line() {
        let mut state = FleetState::default();
        let late = || QueryError::Timeout(std::time::Duration::from_secs(5));
        let failed = vec![("p99", late()), ("bytes", late())];
        state.apply(FleetEvent::Devices(0, DevicesReport { devices: Vec::new(), failed }), 1.0);
        let lines = state.problems(|_| String::new());
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("No p99, bytes: no answer within 5 s"), "{lines:?}");
    }
}
