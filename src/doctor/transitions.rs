//! Reports when findings begin or get worse, for searching a recording.

use super::RuleEngine;
use super::finding::{Finding, Severity};

/// A finding that is new, or more severe than at the tick before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingTransition {
    pub severity: Severity,
    /// Its title, sanitized.
    pub title: String,
    /// Whether it existed before and got worse.
    pub got_worse: bool,
}

/// Compares the findings of successive ticks.
#[derive(Debug, Default)]
pub(crate) struct TransitionDetector {
    previous: Vec<Finding>,
}

impl TransitionDetector {
    /// What began or got worse with the last evaluated tick: most severe first; of equals, causes first.
    pub(crate) fn update(&mut self, engine: &RuleEngine) -> Vec<FindingTransition> {
        let findings = || engine.incidents.iter().flat_map(|incident| &incident.findings);
        let mut out = Vec::new();
        for f in findings() {
            let before = self.previous.iter().find(|before| before.key() == f.key());
            if before.is_none_or(|before| before.severity < f.severity) {
                let (severity, title) = (f.severity, f.title.clone());
                out.push(FindingTransition { severity, title, got_worse: before.is_some() });
            }
        }
        out.sort_by_key(|transition| std::cmp::Reverse(transition.severity));
        self.previous = findings().cloned().collect();
        out
    }
}
