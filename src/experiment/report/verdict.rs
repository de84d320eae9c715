//! What may be said of a comparison, in plain words.

use super::super::stats::{Comparison, FEWEST};
use crate::bench::report::text::figure;
use crate::bench::workloads::headline::Metric;
use serde::{Deserialize, Serialize};

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// B is shown to be better.
    Better,
    /// B is shown to be worse.
    Worse,
    /// No difference is shown.
    NoDifference,
    /// So few rounds can show nothing.
    TooFew,
}

/// The outcome and its sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What came out.
    pub outcome: Outcome,
    /// The same for people.
    pub text: String,
}

/// Judges B against A.
pub fn judge(metric: &Metric, comparison: Option<&Comparison>) -> Verdict {
    let say = |outcome, text: String| Verdict { outcome, text };
    let Some(c) = comparison else {
        return say(Outcome::TooFew, "No verdict: there is no complete round of both arms.".into());
    };
    if c.least_p >= super::super::stats::ALPHA {
        return say(
            Outcome::TooFew,
            format!(
                "No verdict: with {} and {} rounds no p below {:.2} is possible. Run {FEWEST} of each arm at least.",
                c.n[0], c.n[1], c.least_p
            ),
        );
    }
    let what = format!("{} of B is {} times that of A", metric.name, times(c.ratio));
    let between = c.interval.map_or(String::new(), |i| {
        format!(" (between {} and {}, {:.0} % confidence)", times(i.low), times(i.high), i.confidence_pct)
    });
    let p = p(c.p);
    if !c.is_shown() {
        let seen = c.detectable().map_or(String::new(), |f| {
            format!(
                " With figures that scatter like these a difference by a factor of {} would have been seen.",
                times(f)
            )
        });
        return say(Outcome::NoDifference, format!("No difference shown: {what}{between}, {p}.{seen}"));
    }
    let better = (c.ratio > 1.0) == metric.higher_is_better;
    let outcome = if better { Outcome::Better } else { Outcome::Worse };
    let word = if better { "better" } else { "worse" };
    say(outcome, format!("B is {word}: {what}{between}, {p}."))
}

/// What a control's outcome means for the experiment.
pub fn of_control(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NoDifference => {
            "Direct I/O passes the page cache, where these settings cannot act on it. It shows no difference, as it \
             should: what differs above comes from the settings."
        }
        Outcome::Better | Outcome::Worse => {
            "Direct I/O passes the page cache, where these settings cannot act on it, and yet it differs: something \
             else changed along with the arms (another load, a trend, a tired device), or it is the one case in \
             twenty that chance brings. Do not believe the result above before this is explained."
        }
        Outcome::TooFew => "Too few rounds for the control to say anything.",
    }
}

/// A factor: more digits near 1.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 10.0 => format!("{r:.1}"),
        r if r >= 0.1 => format!("{r:.2}"),
        r => format!("{r:.4}"),
    }
}

/// `p = 0.029`.
pub fn p(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// The metric's value with its unit.
pub fn value(metric: &Metric, value: f64) -> String {
    figure(value, &metric.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(higher_is_better: bool) -> Metric {
        Metric { name: "tx/s".into(), unit: String::new(), higher_is_better }
    }

    fn verdict(a: &[f64], b: &[f64], higher: bool) -> Verdict {
        judge(&metric(higher), Comparison::of(a, b).as_ref())
    }

    #[test]
    fn the_four_outcomes() {
        let (low, high) = ([40.0, 41.0, 42.0, 43.0], [300.0, 305.0, 310.0, 290.0]);
        let v = verdict(&low, &high, true);
        assert_eq!(v.outcome, Outcome::Better);
        assert_eq!(
            v.text,
            "B is better: tx/s of B is 7.26 times that of A (between 6.74 and 7.75, 97 % confidence), p = 0.029."
        );
        assert_eq!(verdict(&low, &high, false).outcome, Outcome::Worse);
        assert_eq!(verdict(&high, &low, false).outcome, Outcome::Better);
        let v = verdict(&[100.0, 103.0, 98.0, 101.0], &[99.0, 102.0, 104.0, 100.0], true);
        assert_eq!(v.outcome, Outcome::NoDifference);
        assert!(
            v.text.starts_with("No difference shown: ") && v.text.contains("would have been seen"),
            "{}",
            v.text
        );
        let v = verdict(&low[..3], &high[..3], true);
        assert_eq!(v.outcome, Outcome::TooFew);
        assert!(v.text.contains("no p below 0.10 is possible"), "{}", v.text);
        assert_eq!(judge(&metric(true), None).outcome, Outcome::TooFew);
    }

    #[test]
    fn a_control_that_differs_is_no_good_news() {
        assert!(of_control(Outcome::Better).contains("Do not believe"));
        assert!(of_control(Outcome::NoDifference).contains("as it should"));
    }
}
