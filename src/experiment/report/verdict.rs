//! The verdict about a comparison.

use super::super::stats::{ArmComparison, MIN_ROUNDS};
use crate::bench::report::text::format_value;
use crate::bench::workloads::PrimaryMetric;
use serde::{Deserialize, Serialize};

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// B is shown to be better.
    Better,
    /// B is shown to be worse.
    Worse,
    /// No difference is shown.
    NoDifference,
    /// Too few rounds to show anything.
    TooFew,
    /// A cache answered, so the figures are not the storage's.
    FromCache,
}

impl TrialOutcome {
    /// The outcome in few words.
    pub fn brief(self) -> &'static str {
        match self {
            TrialOutcome::Better => "B better",
            TrialOutcome::Worse => "B worse",
            TrialOutcome::NoDifference => "no difference shown",
            TrialOutcome::TooFew => "too few rounds",
            TrialOutcome::FromCache => "a cache answered",
        }
    }
}

/// The outcome and its sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialVerdict {
    pub(crate) outcome: TrialOutcome,
    pub(crate) text: String,
}

/// The verdict about figures of which so many rounds of all were a cache's: none.
pub(crate) fn refuse_cached(rounds: usize, of: usize) -> TrialVerdict {
    let text = format!(
        "No verdict: in {rounds} of {of} rounds a cache answered and not the device, so these figures are not the \
         storage's. Use --direct, or a file larger than memory."
    );
    TrialVerdict { outcome: TrialOutcome::FromCache, text }
}

/// The verdict about B.
pub fn judge(metric: &PrimaryMetric, comparison: Option<&ArmComparison>) -> TrialVerdict {
    let say = |outcome, text: String| TrialVerdict { outcome, text };
    let Some(c) = comparison else {
        return say(TrialOutcome::TooFew, "No verdict: there is no complete round of both arms.".into());
    };
    if c.least_p >= super::super::stats::ALPHA {
        return say(
            TrialOutcome::TooFew,
            format!(
                "No verdict: with {} and {} rounds no p below {:.2} is possible. Run {MIN_ROUNDS} of each arm at least.",
                c.n[0], c.n[1], c.least_p
            ),
        );
    }
    let what = format!("{} of B is {} times that of A", metric.name, format_ratio(c.ratio));
    let between = c.interval.map_or(String::new(), |i| {
        let [low, high] = [i.low, i.high].map(format_ratio);
        format!(" (between {low} and {high}, {:.0} % confidence)", i.confidence_pct)
    });
    let p = format_p(c.p);
    if !c.is_shown() {
        let seen = c.detectable().map(format_ratio).map_or(String::new(), |factor| {
            format!(" With figures that scatter like these a difference by a factor of {factor} would have been seen.")
        });
        return say(TrialOutcome::NoDifference, format!("No difference shown: {what}{between}, {p}.{seen}"));
    }
    let better = (c.ratio > 1.0) == metric.higher_is_better;
    let outcome = if better { TrialOutcome::Better } else { TrialOutcome::Worse };
    let word = if better { "better" } else { "worse" };
    say(outcome, format!("B is {word}: {what}{between}, {p}."))
}

pub(crate) fn control_meaning(outcome: TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::NoDifference => {
            "Direct I/O passes the page cache, where these settings cannot act on it. It shows no difference, as it \
             should: what differs above comes from the settings."
        }
        TrialOutcome::Better | TrialOutcome::Worse => {
            "Direct I/O passes the page cache, where these settings cannot act on it, and yet it differs: something \
             else changed along with the arms (another load, a trend, a tired device), or it is the one case in \
             twenty that chance brings. Do not believe the result above before this is explained."
        }
        TrialOutcome::TooFew => "Too few rounds for the control to say anything.",
        TrialOutcome::FromCache => "A cache answered, so the control says nothing.",
    }
}

/// A factor: more digits near 1.
pub(crate) fn format_ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 10.0 => format!("{r:.1}"),
        r if r >= 0.1 => format!("{r:.2}"),
        r => format!("{r:.4}"),
    }
}

/// `p = 0.029`.
pub(crate) fn format_p(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

pub(crate) fn format_metric(metric: &PrimaryMetric, value: f64) -> String {
    format_value(value, &metric.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(higher_is_better: bool) -> PrimaryMetric {
        PrimaryMetric { name: "tx/s".into(), unit: String::new(), higher_is_better }
    }

    fn verdict(a: &[f64], b: &[f64], higher: bool) -> TrialVerdict {
        judge(&metric(higher), ArmComparison::compare(a, b).as_ref())
    }

    #[test]
    fn each_outcome_has_its_sentence() {
        let (low, high) = ([40.0, 41.0, 42.0, 43.0], [300.0, 305.0, 310.0, 290.0]);
        let v = verdict(&low, &high, true);
        assert_eq!(v.outcome, TrialOutcome::Better);
        assert_eq!(
            v.text,
            "B is better: tx/s of B is 7.26 times that of A (between 6.74 and 7.75, 97 % confidence), p = 0.029."
        );
        assert_eq!(verdict(&low, &high, false).outcome, TrialOutcome::Worse);
        assert_eq!(verdict(&high, &low, false).outcome, TrialOutcome::Better);
        let v = verdict(&[100.0, 103.0, 98.0, 101.0], &[99.0, 102.0, 104.0, 100.0], true);
        assert_eq!(v.outcome, TrialOutcome::NoDifference);
        assert!(v.text.starts_with("No difference shown: ") && v.text.contains("would have been seen"), "{}", v.text);
        let v = verdict(&low[..3], &high[..3], true);
        assert_eq!(v.outcome, TrialOutcome::TooFew);
        assert!(v.text.contains("no p below 0.10 is possible"), "{}", v.text);
        assert_eq!(judge(&metric(true), None).outcome, TrialOutcome::TooFew);
    }

    #[test]
    fn a_control_that_differs_invalidates_the_result() {
        assert!(control_meaning(TrialOutcome::Better).contains("Do not believe"));
        assert!(control_meaning(TrialOutcome::NoDifference).contains("as it should"));
    }
}
