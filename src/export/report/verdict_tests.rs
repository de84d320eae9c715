//! The first lines of a report: what is wrong at its end, then what was over by then.

use super::{WindowFindings, build_verdict};
use crate::doctor::RuleEngine;
use crate::doctor::finding::{Finding, FindingSubject, Severity};
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::model::timestamp::Timestamp;

fn incident(rule: &'static str, severity: Severity, minor: u32, title: &str) -> Incident {
    let subject = FindingSubject::Device(DevId { major: 8, minor }, format!("sd{minor}"));
    Incident {
        severity,
        findings: vec![Finding { rule, severity, subject, title: title.into(), ..Finding::default() }],
    }
}

fn engine(incidents: Vec<Incident>) -> RuleEngine {
    let mut engine = RuleEngine::default();
    engine.incidents = incidents;
    engine
}

fn at(secs: i64) -> Timestamp {
    Timestamp { wall_ns: secs * 1_000_000_000, ..Timestamp::default() }
}

#[test]
fn what_is_over_comes_last_one_line_a_kind() {
    let mut window = WindowFindings::default();
    for (minor, secs) in [(1, 10), (2, 30), (3, 20)] {
        let slow = incident("slow-device", Severity::Warn, minor, &format!("sd{minor} is slow"));
        window.update(&engine(vec![slow]), at(secs));
    }
    window.update(&engine(vec![incident("io-error", Severity::Critical, 4, "errors on sd4")]), at(40));
    let end =
        engine(vec![incident("swapping", Severity::Note, 5, "a note"), incident("oom", Severity::Warn, 6, "oom")]);
    window.update(&end, at(50));
    let verdict = build_verdict(&end, &window, 3600);
    assert_eq!(verdict.summary, "At the end: 1 warning, 1 note. Over by then: 1 critical, 3 warnings");
    let last = ["! oom", "‼ errors on sd4 (until 01:00:40)", "! sd2 is slow (and 2 more like it, until 01:00:30)"];
    assert_eq!(verdict.titles, last);
    assert_eq!(verdict.severity, Some(Severity::Critical), "the worst of the window");
}

#[test]
fn without_a_past_only_the_end_is_told() {
    let verdict = build_verdict(&engine(Vec::new()), &WindowFindings::default(), 0);
    assert_eq!((verdict.summary.as_str(), verdict.titles.len(), verdict.severity), ("nothing wrong found", 0, None));
}
