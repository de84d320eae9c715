//! Looks at every tick, and keeps findings from flapping: what was found stays until it was not found for a
//! while, and does not get milder sooner either.

use super::case::Case;
use super::finding::{Finding, Judged, Rule, Severity};
use super::rules::RULES;
use super::story::{Story, stories};
use crate::model::system_state::SystemState;

/// A finding that is no longer so stays for this long (ns): rules look over windows of several seconds, and
/// a figure at the edge of its limit must not blink.
pub const CLEAR_NS: u64 = 10_000_000_000;

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// Its name.
    pub rule: &'static str,
    /// What it looks for.
    pub about: &'static str,
    /// What it lacks, cleaned.
    pub why: String,
    /// It only needs more time.
    pub for_now: bool,
}

#[derive(Debug, Clone)]
struct Raised {
    finding: Finding,
    since_ns: u64,
    seen_ns: u64,
    /// The severity shown, and when it was last that bad.
    worst: (Severity, u64),
}

/// What is found, from tick to tick.
#[derive(Debug, Default)]
pub struct Engine {
    raised: Vec<Raised>,
    stories: Vec<Story>,
    unjudged: Vec<Unjudged>,
    at_ns: u64,
    seq: u64,
}

impl Engine {
    /// Looks at the newest tick with every rule.
    pub fn look(&mut self, world: &SystemState) {
        self.look_with(world, RULES);
    }

    /// Looks with these rules.
    pub fn look_with(&mut self, world: &SystemState, rules: &[Rule]) {
        let now = world.now().boot_ns;
        if now < self.at_ns {
            // A replay went back.
            *self = Self::default();
        }
        (self.at_ns, self.seq) = (now, world.snapshot.seq);
        let case = Case::new(world);
        let mut found = Vec::new();
        self.unjudged.clear();
        for rule in rules {
            let (why, for_now) = match (rule.look)(&case, &mut found) {
                Judged::Yes => continue,
                Judged::NotYet(why) => (why.to_owned(), true),
                Judged::Cannot(why) => (crate::text::sanitize(why), false),
            };
            self.unjudged.push(Unjudged { rule: rule.name, about: rule.about, why, for_now });
        }
        let same = found.is_empty() && self.raised.is_empty();
        for finding in found {
            self.raise(finding, now);
        }
        self.raised.retain(|r| now.saturating_sub(r.seen_ns) <= CLEAR_NS);
        if !same {
            self.stories = stories(self.raised.iter().map(|r| r.shown()).collect());
        }
    }

    fn raise(&mut self, finding: Finding, now: u64) {
        let same = |r: &&mut Raised| r.finding.rule == finding.rule && r.finding.subject == finding.subject;
        let since = finding.since_ns.unwrap_or(now);
        match self.raised.iter_mut().find(same) {
            Some(r) => {
                r.seen_ns = now;
                // The history forgets, the finding does not.
                r.since_ns = r.since_ns.min(since);
                if finding.severity >= r.worst.0 || now.saturating_sub(r.worst.1) > CLEAR_NS {
                    r.worst = (finding.severity, now);
                }
                r.finding = finding;
            }
            None => self.raised.push(Raised {
                worst: (finding.severity, now),
                since_ns: since,
                seen_ns: now,
                finding,
            }),
        }
    }

    /// What is found, worst first, each with what it causes.
    pub fn stories(&self) -> &[Story] {
        &self.stories
    }

    /// Rules that could not judge.
    pub fn unjudged(&self) -> &[Unjudged] {
        &self.unjudged
    }

    /// The tick last looked at; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When that tick was, CLOCK_BOOTTIME in ns; 0 before the first.
    pub fn looked_ns(&self) -> u64 {
        self.at_ns
    }

    /// The worst there is; `None`: nothing found.
    pub fn worst(&self) -> Option<Severity> {
        self.stories.iter().map(|s| s.severity).max()
    }
}

impl Raised {
    fn shown(&self) -> Finding {
        Finding { severity: self.worst.0, since_ns: Some(self.since_ns), ..self.finding.clone() }
    }
}
