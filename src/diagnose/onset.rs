//! When findings begin, from tick to tick: what a recording is searched for.

use super::Engine;
use super::finding::{Finding, Severity, Subject};

/// A finding that was not there at the tick before, or that was milder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onset {
    /// As bad as it is now.
    pub severity: Severity,
    /// One line that names it and its figures, cleaned.
    pub title: String,
    /// It was there already and got worse.
    pub worse: bool,
}

/// Remembers what was found at the tick before.
#[derive(Debug, Default)]
pub struct Onsets {
    known: Vec<(&'static str, Subject, Severity)>,
}

impl Onsets {
    /// What began or got worse with the tick the engine looked at last: the worst first, of equals the cause
    /// before what it leads to.
    pub fn news(&mut self, engine: &Engine) -> Vec<Onset> {
        let found = || engine.stories().iter().flat_map(|story| &story.findings);
        let mut out: Vec<Onset> = found().filter_map(|finding| self.onset(finding)).collect();
        out.sort_by_key(|onset| std::cmp::Reverse(onset.severity));
        self.known.clear();
        self.known.extend(found().map(|f| (f.rule, f.subject.clone(), f.severity)));
        out
    }

    fn onset(&self, finding: &Finding) -> Option<Onset> {
        let known =
            self.known.iter().find(|(rule, subject, _)| (*rule, subject) == (finding.rule, &finding.subject));
        let worse = match known {
            Some((.., severity)) if *severity >= finding.severity => return None,
            known => known.is_some(),
        };
        Some(Onset { severity: finding.severity, title: finding.title.clone(), worse })
    }
}
