//! Evaluates every rule on every tick and keeps findings from flapping: a finding clears, or gets a lower severity,
//! only after it has been away or milder for [`CLEAR_AFTER_NS`].

use super::RULES;
use super::finding::{Finding, RuleSkipped, Severity};
use super::incident::{Incident, group_into_incidents};
use super::rule_context::{Rule, RuleContext};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;

/// How long a finding stays after its rule last reported it, ns. A value near its limit must not make it blink.
const CLEAR_AFTER_NS: u64 = 10_000_000_000;

/// A rule that could not be evaluated on the last tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkippedRule {
    /// Its fixed name.
    pub rule: &'static str,
    /// What is missing, sanitized.
    pub reason: String,
    /// Whether more samples alone make the rule work.
    pub needs_more_data: bool,
}

#[derive(Debug, Clone)]
struct ActiveFinding {
    finding: Finding,
    since_ns: u64,
    last_seen_ns: u64,
    /// The severity shown, and when the rule last reported it or a worse one.
    worst: (Severity, u64),
}

/// The rules and what they have found so far.
#[derive(Debug, Default)]
pub struct RuleEngine {
    active: Vec<ActiveFinding>,
    /// What is wrong, most severe first.
    pub(crate) incidents: Vec<Incident>,
    /// Rules that could not be evaluated on the last tick.
    pub(crate) skipped_rules: Vec<SkippedRule>,
    /// CLOCK_BOOTTIME of the last evaluated tick, ns; 0 before the first.
    pub(crate) evaluated_at_ns: u64,
    /// Sequence number of the last evaluated tick; 0 before the first.
    pub(crate) seq: u64,
}

impl RuleEngine {
    /// The worst incident, unless there are only notes.
    pub(crate) fn worst_incident(&self) -> Option<&Incident> {
        self.incidents.first().filter(|incident| incident.severity > Severity::Note)
    }

    /// Evaluates every rule on the newest tick.
    pub fn evaluate(&mut self, system: &SystemState) {
        self.evaluate_rules(system, RULES);
    }

    /// Evaluates these rules on the newest tick. A tick older than the last one, as after seeking in a recording,
    /// drops all findings first.
    pub(crate) fn evaluate_rules(&mut self, system: &SystemState, rules: &[Rule]) {
        let now = system.now().boot_ns;
        if now < self.evaluated_at_ns {
            *self = Self::default();
        }
        (self.evaluated_at_ns, self.seq) = (now, system.snapshot.seq);
        let ctx = RuleContext::new(system);
        let mut found = Vec::new();
        self.skipped_rules.clear();
        for rule in rules {
            let (reason, needs_more_data) = match rule.evaluate(&ctx, &mut found) {
                Ok(()) => continue,
                Err(RuleSkipped::NeedsMoreData(what)) => (what.to_owned(), true),
                Err(RuleSkipped::Unavailable(why)) => (sanitize(why), false),
            };
            self.skipped_rules.push(SkippedRule { rule: rule.name, reason, needs_more_data });
        }
        for finding in found {
            self.raise(finding, now);
        }
        self.active.retain(|a| now.saturating_sub(a.last_seen_ns) <= CLEAR_AFTER_NS);
        self.incidents = group_into_incidents(self.active.iter().map(ActiveFinding::to_displayed).collect());
    }

    fn raise(&mut self, finding: Finding, now: u64) {
        let since = finding.since_ns.unwrap_or(now);
        match self.active.iter_mut().find(|active| active.finding.key() == finding.key()) {
            Some(active) => {
                active.last_seen_ns = now;
                // The history is shorter than a long-lasting finding.
                active.since_ns = active.since_ns.min(since);
                if finding.severity >= active.worst.0 || now.saturating_sub(active.worst.1) > CLEAR_AFTER_NS {
                    active.worst = (finding.severity, now);
                }
                active.finding = finding;
            }
            None => self.active.push(ActiveFinding {
                worst: (finding.severity, now),
                since_ns: since,
                last_seen_ns: now,
                finding,
            }),
        }
    }

    /// The highest severity found; `None` if nothing was found.
    pub fn worst_severity(&self) -> Option<Severity> {
        self.incidents.iter().map(|incident| incident.severity).max()
    }
}

impl ActiveFinding {
    fn to_displayed(&self) -> Finding {
        Finding { severity: self.worst.0, since_ns: Some(self.since_ns), ..self.finding.clone() }
    }
}
