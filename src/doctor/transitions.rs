//! When findings begin, from tick to tick: what a recording is searched for.

use super::RuleEngine;
use super::finding::{Finding, FindingSubject, Severity};

/// A finding that was not there at the tick before, or that was milder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingTransition {
    /// As bad as it is now.
    pub severity: Severity,
    /// One line that names it and its figures, cleaned.
    pub title: String,
    /// It was there already and got worse.
    pub got_worse: bool,
}

/// Remembers what was found at the tick before.
#[derive(Debug, Default)]
pub struct TransitionDetector {
    previous: Vec<(&'static str, FindingSubject, Severity)>,
}

impl TransitionDetector {
    /// What began or got worse with the tick the engine looked at last: the worst first, of equals the cause
    /// before what it leads to.
    pub fn update(&mut self, engine: &RuleEngine) -> Vec<FindingTransition> {
        let found = || engine.incidents().iter().flat_map(|story| &story.findings);
        let mut out: Vec<FindingTransition> = found().filter_map(|finding| self.transition(finding)).collect();
        out.sort_by_key(|onset| std::cmp::Reverse(onset.severity));
        self.previous.clear();
        self.previous.extend(found().map(|f| (f.rule, f.subject.clone(), f.severity)));
        out
    }

    fn transition(&self, finding: &Finding) -> Option<FindingTransition> {
        let known =
            self.previous.iter().find(|(rule, subject, _)| (*rule, subject) == (finding.rule, &finding.subject));
        let worse = match known {
            Some((.., severity)) if *severity >= finding.severity => return None,
            known => known.is_some(),
        };
        Some(FindingTransition { severity: finding.severity, title: finding.title.clone(), got_worse: worse })
    }
}
