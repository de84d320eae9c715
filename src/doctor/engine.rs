//! Looks at every tick, and keeps findings from flapping: what was found stays until it was not found for a
//! while, and does not get milder sooner either.

use super::finding::{Finding, Rule, RuleStatus, Severity};
use super::incident::{Incident, group_into_incidents};
use super::rule_context::RuleContext;
use super::rules::RULES;
use crate::model::system_state::SystemState;

/// A finding that is no longer so stays for this long (ns): rules look over windows of several seconds, and
/// a figure at the edge of its limit must not blink.
pub const CLEAR_AFTER_NS: u64 = 10_000_000_000;

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRule {
    /// Its name.
    pub rule: &'static str,
    /// What it looks for.
    pub description: &'static str,
    /// What it lacks, cleaned.
    pub reason: String,
    /// It only needs more time.
    pub needs_more_data: bool,
}

#[derive(Debug, Clone)]
struct ActiveFinding {
    finding: Finding,
    since_ns: u64,
    last_seen_ns: u64,
    /// The severity shown, and when it was last that bad.
    worst: (Severity, u64),
}

/// What is found, from tick to tick.
#[derive(Debug, Default)]
pub struct RuleEngine {
    active: Vec<ActiveFinding>,
    incidents: Vec<Incident>,
    skipped_rules: Vec<SkippedRule>,
    evaluated_at_ns: u64,
    seq: u64,
}

impl RuleEngine {
    /// Looks at the newest tick with every rule.
    pub fn evaluate(&mut self, world: &SystemState) {
        self.evaluate_rules(world, RULES);
    }

    /// Looks with these rules.
    pub fn evaluate_rules(&mut self, world: &SystemState, rules: &[Rule]) {
        let now = world.now().boot_ns;
        if now < self.evaluated_at_ns {
            // A replay went back.
            *self = Self::default();
        }
        (self.evaluated_at_ns, self.seq) = (now, world.snapshot.seq);
        let case = RuleContext::new(world);
        let mut found = Vec::new();
        self.skipped_rules.clear();
        for rule in rules {
            let (why, for_now) = match (rule.evaluate)(&case, &mut found) {
                RuleStatus::Evaluated => continue,
                RuleStatus::NeedsMoreData(why) => (why.to_owned(), true),
                RuleStatus::Unavailable(why) => (crate::sanitize::sanitize(why), false),
            };
            self.skipped_rules.push(SkippedRule {
                rule: rule.name,
                description: rule.description,
                reason: why,
                needs_more_data: for_now,
            });
        }
        let same = found.is_empty() && self.active.is_empty();
        for finding in found {
            self.raise(finding, now);
        }
        self.active.retain(|r| now.saturating_sub(r.last_seen_ns) <= CLEAR_AFTER_NS);
        if !same {
            self.incidents = group_into_incidents(self.active.iter().map(|r| r.to_displayed()).collect());
        }
    }

    fn raise(&mut self, finding: Finding, now: u64) {
        let same = |r: &&mut ActiveFinding| r.finding.rule == finding.rule && r.finding.subject == finding.subject;
        let since = finding.since_ns.unwrap_or(now);
        match self.active.iter_mut().find(same) {
            Some(r) => {
                r.last_seen_ns = now;
                // The history forgets, the finding does not.
                r.since_ns = r.since_ns.min(since);
                if finding.severity >= r.worst.0 || now.saturating_sub(r.worst.1) > CLEAR_AFTER_NS {
                    r.worst = (finding.severity, now);
                }
                r.finding = finding;
            }
            None => self.active.push(ActiveFinding {
                worst: (finding.severity, now),
                since_ns: since,
                last_seen_ns: now,
                finding,
            }),
        }
    }

    /// What is found, worst first, each with what it causes.
    pub fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    /// Rules that could not judge.
    pub fn skipped_rules(&self) -> &[SkippedRule] {
        &self.skipped_rules
    }

    /// The tick last looked at; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When that tick was, CLOCK_BOOTTIME in ns; 0 before the first.
    pub fn evaluated_at_ns(&self) -> u64 {
        self.evaluated_at_ns
    }

    /// The worst there is; `None`: nothing found.
    pub fn worst_severity(&self) -> Option<Severity> {
        self.incidents.iter().map(|s| s.severity).max()
    }
}

impl ActiveFinding {
    fn to_displayed(&self) -> Finding {
        Finding { severity: self.worst.0, since_ns: Some(self.since_ns), ..self.finding.clone() }
    }
}
