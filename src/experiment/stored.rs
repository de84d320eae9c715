//! Summaries of stored experiments.

use super::report::verdict::TrialOutcome;
use super::report::{ExperimentReport, RunEnd};
use crate::bench::store::{ResultStore, StoreEntry};
use serde::{Deserialize, Serialize};

/// The summary of a stored experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredExperiment {
    /// Number in the list; the newest is 1.
    pub number: usize,
    /// Its name.
    pub id: String,
    /// Its workload; empty if it cannot be read.
    pub profile: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Where its files were; empty without any.
    pub directory: String,
    /// The assignments of B.
    pub assignments: Vec<String>,
    /// The outcome; `None` without a trial.
    pub outcome: Option<TrialOutcome>,
    /// The verdict as a sentence.
    pub verdict: String,
    /// Whether it ran to its end.
    pub is_complete: bool,
    /// Why it cannot be read.
    pub read_error: Option<String>,
}

impl StoredExperiment {
    fn from_report(entry: StoreEntry, report: Result<ExperimentReport, String>) -> Self {
        let StoreEntry { number, id } = entry;
        let r = match report {
            Ok(report) => report,
            Err(why) => return Self { number, id, read_error: Some(why), ..Self::default() },
        };
        let verdict = r.trials.first().map(|t| t.verdict.clone());
        Self {
            number,
            id,
            directory: r.target().map_or(String::new(), |t| t.directory.clone()),
            profile: r.spec.plan.profile,
            time: r.time,
            assignments: r.spec.set_assignments,
            outcome: verdict.as_ref().map(|v| v.outcome),
            verdict: verdict.map(|v| v.text).unwrap_or_default(),
            is_complete: r.end == RunEnd::Complete,
            read_error: None,
        }
    }

    /// Time, directory, assignments, verdict.
    pub fn summary(&self) -> String {
        if let Some(why) = &self.read_error {
            return why.clone();
        }
        let end = if self.is_complete { "" } else { ", not complete" };
        format!("{} {}, B: {}{end}. {}", self.time, self.directory, self.assignments.join(" "), self.verdict)
    }
}

/// Summaries of all experiments in `store`, newest first.
pub fn stored_experiments(store: &ResultStore) -> Result<Vec<StoredExperiment>, String> {
    let entries = store.list()?;
    Ok(entries
        .into_iter()
        .map(|e| {
            let report = store.load(&e.id);
            StoredExperiment::from_report(e, report)
        })
        .collect())
}
