//! Kept experiments in a line each, for the lists of the command line and the screen.

use super::report::verdict::Outcome;
use super::report::{End, Report};
use crate::bench::store::{Entry, Store};
use serde::{Deserialize, Serialize};

/// A kept experiment, as far as a list shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Number in the list, the newest is 1.
    pub number: usize,
    /// Its name.
    pub id: String,
    /// Its workload; empty where it cannot be read.
    pub profile: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Where its files were; empty without any.
    pub place: String,
    /// What B set.
    pub set: Vec<String>,
    /// What came out; `None` without a trial.
    pub outcome: Option<Outcome>,
    /// The same in a sentence.
    pub verdict: String,
    /// It ran to its end.
    pub complete: bool,
    /// Why it cannot be read.
    pub damaged: Option<String>,
}

impl Kept {
    fn of(entry: Entry, report: Result<Report, String>) -> Self {
        let Entry { number, id } = entry;
        let r = match report {
            Ok(report) => report,
            Err(why) => return Self { number, id, damaged: Some(why), ..Self::default() },
        };
        let verdict = r.trials.first().map(|t| t.verdict.clone());
        Self {
            number,
            id,
            place: r.target().map_or(String::new(), |t| t.directory.clone()),
            profile: r.spec.plan.profile,
            time: r.time,
            set: r.spec.set,
            outcome: verdict.as_ref().map(|v| v.outcome),
            verdict: verdict.map(|v| v.text).unwrap_or_default(),
            complete: r.end == End::Complete,
            damaged: None,
        }
    }

    /// When, where, what, and what came out.
    pub fn headline(&self) -> String {
        if let Some(why) = &self.damaged {
            return why.clone();
        }
        let end = if self.complete { "" } else { ", not complete" };
        format!("{} {}, B: {}{end}. {}", self.time, self.place, self.set.join(" "), self.verdict)
    }
}

/// All that are kept in `store`, newest first.
pub fn all(store: &Store) -> Result<Vec<Kept>, String> {
    let entries = store.list()?;
    Ok(entries
        .into_iter()
        .map(|e| {
            let report = store.load(&e.id);
            Kept::of(e, report)
        })
        .collect())
}
