//! Findings, as the rules report them.

use super::text::{MetricFamily, MetricsText, path_label};
use crate::doctor::RuleEngine;
use crate::doctor::finding::{Finding, FindingSubject, Severity};
use std::collections::BTreeSet;

/// Findings that are listed, the most severe first.
const MAX_FINDINGS: usize = 50;

const FINDING: MetricFamily =
    MetricFamily::info("finding", "What is wrong: a finding with its severity and what it is about.");
const FINDINGS: MetricFamily = MetricFamily::gauge("findings", "", "Number of findings by severity.");
const SKIPPED: MetricFamily = MetricFamily::gauge("rules_skipped", "", "Rules that could not judge.");

/// The subject without the number of a process, which no series may have.
fn subject_name(subject: &FindingSubject) -> String {
    match subject {
        FindingSubject::Task(_, program) | FindingSubject::Pid(_, program) => program.clone(),
        other => other.name(),
    }
}

pub(super) fn write(engine: &RuleEngine, text: &mut MetricsText) {
    if engine.evaluated_at_ns == 0 {
        return;
    }
    let findings = || engine.incidents.iter().flat_map(|incident| &incident.findings);
    let labels = |finding: &Finding| {
        let (severity, subject) = (finding.severity, &finding.subject);
        (std::cmp::Reverse(severity), finding.rule, subject.kind(), path_label(&subject_name(subject)))
    };
    // Findings about tasks of one name are one.
    let listed: BTreeSet<_> = findings().map(labels).collect();
    text.begin(&FINDING);
    for (severity, rule, kind, subject) in listed.iter().take(MAX_FINDINGS) {
        let labels = [("rule", *rule), ("severity", severity.0.name()), ("kind", *kind), ("subject", subject)];
        text.sample(&FINDING, &labels, 1.0);
    }
    text.begin(&FINDINGS);
    for severity in [Severity::Note, Severity::Warn, Severity::Critical] {
        let count = findings().filter(|finding| finding.severity == severity).count();
        text.sample(&FINDINGS, &[("severity", severity.name())], count as f64);
    }
    text.begin(&SKIPPED);
    text.sample(&SKIPPED, &[], engine.skipped_rules.len() as f64);
}
