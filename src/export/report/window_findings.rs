//! What was found over the time of a report.

use crate::doctor::RuleEngine;
use crate::doctor::incident::Incident;
use crate::model::timestamp::Timestamp;

/// The incidents of a window, including those that are over by its end, each with when it was last seen.
#[derive(Debug, Clone, Default)]
pub struct WindowFindings(Vec<(Incident, Timestamp)>);

impl WindowFindings {
    /// Adds the current incidents.
    pub fn update(&mut self, engine: &RuleEngine, now: Timestamp) {
        for incident in &engine.incidents {
            match self.0.iter_mut().find(|(old, _)| old.cause().key() == incident.cause().key()) {
                Some(old) => *old = (incident.clone(), now),
                None => self.0.push((incident.clone(), now)),
            }
        }
    }

    /// Those that are over, each with when it was last seen.
    pub(super) fn past_incidents<'a>(
        &'a self,
        engine: &'a RuleEngine,
    ) -> impl Iterator<Item = &'a (Incident, Timestamp)> {
        // An incident that became part of another one is not over.
        let is_current = |old: &Incident| {
            let cause = old.cause();
            let mut current = engine.incidents.iter().flat_map(|incident| &incident.findings);
            current.any(|finding| finding.key() == cause.key())
        };
        self.0.iter().filter(move |(old, _)| !is_current(old))
    }
}
