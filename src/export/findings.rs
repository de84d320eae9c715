//! Findings on paper: told as stories, cause first, with the figures, why it matters, what to try and what that
//! costs; and the same as JSON.

use super::sheet::Sheet;
use crate::diagnose::Engine;
use crate::diagnose::finding::{Finding, Jump, Severity};
use crate::diagnose::story::Story;
use crate::model::timestamp::Timestamp;
use crate::text::wrap;
use crate::units::{format_rfc3339, format_duration};
use serde::Serialize;

/// What a part of a story is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The line that names a finding, by how bad it is.
    Title(Severity),
    /// Figures and reasons.
    Plain,
    /// What is less important.
    Dim,
    /// Something to try.
    Try,
}

/// A paragraph of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Word at its left; empty where it goes on.
    pub label: &'static str,
    /// The text, cleaned.
    pub text: String,
    /// What it is.
    pub kind: Kind,
    /// Where one key leads from here.
    pub jump: Option<Jump>,
}

/// A story as paragraphs.
pub fn parts(story: &Story, now: Timestamp) -> Vec<Part> {
    let mut out = Vec::new();
    for (i, f) in story.findings.iter().enumerate() {
        if i > 0 {
            out.push(part("", " ", Kind::Dim));
        }
        finding(f, i > 0, now, &mut out);
    }
    out
}

fn part(label: &'static str, text: impl Into<String>, kind: Kind) -> Part {
    Part { label, text: text.into(), kind, jump: None }
}

fn finding(f: &Finding, effect: bool, now: Timestamp, out: &mut Vec<Part>) {
    let lead = if effect { "which leads to: " } else { "" };
    out.push(part("", format!("{} {lead}{}", f.severity.mark(), f.title), Kind::Title(f.severity)));
    out.push(part("since", since(f, now), Kind::Plain));
    let figures: Vec<String> = f.evidence.iter().map(|e| format!("{} {}", e.name, e.value)).collect();
    if !figures.is_empty() {
        out.push(part("figures", figures.join(" · "), Kind::Plain));
    }
    out.push(part("why", f.why, Kind::Plain));
    for (i, r) in f.remedies.iter().enumerate() {
        let label = if i == 0 { "try" } else { "or" };
        out.push(Part { label, text: r.what.clone(), kind: Kind::Try, jump: r.jump.clone() });
        out.push(part("", format!("costs: {}", r.cost), Kind::Dim));
    }
    if let Some(look) = &f.look {
        out.push(Part { label: "see", text: look.label(), kind: Kind::Try, jump: Some(look.clone()) });
    }
}

/// `2024-02-29T23:59:59Z, for 12s`.
fn since(f: &Finding, now: Timestamp) -> String {
    let Some(since) = f.since_ns else { return "-".into() };
    let age = now.boot_ns.saturating_sub(since);
    let wall = now.wall_ns.saturating_sub(age as i64);
    format!("{}, for {}", format_rfc3339(wall), format_duration(age / 1_000_000_000))
}

/// One line for a list: the cause, and what it leads to.
pub fn line(story: &Story) -> String {
    let mut out = story.cause().title.clone();
    let mut names: Vec<&str> = story.effects().iter().map(|f| f.rule).collect();
    names.dedup();
    if !names.is_empty() {
        out.push_str(&format!("  → {}", names.join(", ")));
    }
    out
}

/// `1 critical, 2 warnings`.
pub fn summary(engine: &Engine) -> String {
    let count = |s| engine.stories().iter().filter(|story| story.severity == s).count();
    let (critical, warn, note) = (count(Severity::Critical), count(Severity::Warn), count(Severity::Note));
    let many = |n: usize, one: &str, more: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {more}")),
    };
    let all: Vec<String> = [
        many(critical, "critical", "critical"),
        many(warn, "warning", "warnings"),
        many(note, "note", "notes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if all.is_empty() { "nothing wrong found".into() } else { all.join(", ") }
}

/// Why rules could not judge, each reason once with the rules it stops.
pub fn gaps(engine: &Engine) -> Vec<String> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for u in engine.unjudged() {
        let why = if u.for_now { format!("not enough data yet: {}", u.why) } else { u.why.clone() };
        match out.iter_mut().find(|(w, _)| *w == why) {
            Some((_, rules)) => rules.push(u.rule),
            None => out.push((why, vec![u.rule])),
        }
    }
    out.into_iter().map(|(why, rules)| format!("{}: {why}", rules.join(", "))).collect()
}

/// Everything as text of at most so many cells a line.
pub fn text(engine: &Engine, now: Timestamp, width: usize) -> String {
    const LABEL: usize = 8;
    let mut out = format!("{}\n", summary(engine));
    for story in engine.stories() {
        out.push('\n');
        for p in parts(story, now) {
            let title = matches!(p.kind, Kind::Title(_));
            let indent = if title { 0 } else { 2 + LABEL };
            let mut words = p.text.clone();
            if let (Some(command), Kind::Try) = (p.jump.as_ref().and_then(command), p.kind) {
                words.push_str(&format!("  [{command}]"));
            }
            for (i, line) in wrap(&words, width.saturating_sub(indent).max(20)).into_iter().enumerate() {
                let line = match (title, i) {
                    (true, _) => line,
                    (false, 0) => format!("  {:<LABEL$}{line}", p.label),
                    (false, _) => format!("{}{line}", " ".repeat(indent)),
                };
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
    }
    let gaps = gaps(engine);
    if !gaps.is_empty() {
        out.push_str("\nnot judged\n");
        for gap in gaps {
            for (i, line) in wrap(&gap, width.saturating_sub(4)).into_iter().enumerate() {
                out.push_str(&format!("{}{line}\n", if i == 0 { "  " } else { "    " }));
            }
        }
    }
    out
}

/// What does the same on the command line.
fn command(jump: &Jump) -> Option<String> {
    let quoted = |text: &str| match text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-@".contains(&b)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    match jump {
        Jump::Knob(knob) => Some(format!("iotop-plus tune get {}", quoted(&crate::text::sanitize(knob)))),
        Jump::Bench(profile, Some(dir)) => {
            Some(format!("iotop-plus bench run {profile} {}", quoted(&dir.sanitized())))
        }
        Jump::Bench("fork", None) => Some("iotop-plus bench run fork".into()),
        Jump::Bench(profile, None) => Some(format!("iotop-plus bench run {profile} DIR")),
        _ => None,
    }
}

/// A table for snapshots: one line a finding, effects under their cause.
pub fn sheet(title: String, engine: &Engine, now: Timestamp) -> Sheet {
    let mut sheet =
        Sheet::new(title, &[("Severity", false), ("Rule", false), ("Since", false), ("Finding", false)]);
    for story in engine.stories() {
        for (i, f) in story.findings.iter().enumerate() {
            let age =
                f.since_ns.map_or("-".into(), |ns| format_duration(now.boot_ns.saturating_sub(ns) / 1_000_000_000));
            let lead = if i > 0 { "→ " } else { "" };
            sheet.rows.push(vec![f.severity.name().into(), f.rule.into(), age, format!("{lead}{}", f.title)]);
        }
    }
    if sheet.rows.is_empty() {
        sheet.notes.push("nothing wrong found".into());
    }
    let waiting = engine.unjudged().iter().filter(|u| u.for_now).count();
    if waiting > 0 {
        sheet
            .notes
            .push(format!("{waiting} rules need more samples than this; `iotop-plus doctor` takes them"));
    }
    sheet
}

/// A story in JSON.
#[derive(Serialize)]
pub struct StoryJson {
    severity: &'static str,
    title: String,
    since: Option<String>,
    findings: Vec<FindingJson>,
}

#[derive(Serialize)]
struct FindingJson {
    rule: &'static str,
    severity: &'static str,
    title: String,
    subject: SubjectJson,
    since: Option<String>,
    evidence: Vec<EvidenceJson>,
    why: &'static str,
    #[serde(rename = "try")]
    remedies: Vec<RemedyJson>,
}

#[derive(Serialize)]
struct SubjectJson {
    kind: &'static str,
    name: String,
}

#[derive(Serialize)]
struct EvidenceJson {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
struct RemedyJson {
    what: String,
    cost: &'static str,
    knob: Option<String>,
    bench: Option<&'static str>,
}

/// A rule that could not judge, in JSON.
#[derive(Serialize)]
pub struct UnjudgedJson {
    rule: &'static str,
    reason: String,
    more_time: bool,
}

/// The stories, worst first.
pub fn stories(engine: &Engine, now: Timestamp) -> Vec<StoryJson> {
    let time = |ns: Option<u64>| {
        ns.map(|ns| format_rfc3339(now.wall_ns.saturating_sub(now.boot_ns.saturating_sub(ns) as i64)))
    };
    let one = |f: &Finding| FindingJson {
        rule: f.rule,
        severity: f.severity.name(),
        title: f.title.clone(),
        subject: SubjectJson { kind: f.subject.kind(), name: f.subject.name() },
        since: time(f.since_ns),
        evidence: f.evidence.iter().map(|e| EvidenceJson { name: e.name, value: e.value.clone() }).collect(),
        why: f.why,
        remedies: f.remedies.iter().map(remedy).collect(),
    };
    let story = |s: &Story| StoryJson {
        severity: s.severity.name(),
        title: s.cause().title.clone(),
        since: time(s.since_ns()),
        findings: s.findings.iter().map(one).collect(),
    };
    engine.stories().iter().map(story).collect()
}

fn remedy(r: &crate::diagnose::finding::Remedy) -> RemedyJson {
    let (knob, bench) = match &r.jump {
        Some(Jump::Knob(knob)) => (Some(crate::text::sanitize(knob)), None),
        Some(Jump::Bench(profile, _)) => (None, Some(*profile)),
        _ => (None, None),
    };
    RemedyJson { what: r.what.clone(), cost: r.cost, knob, bench }
}

/// The rules that could not judge.
pub fn unjudged(engine: &Engine) -> Vec<UnjudgedJson> {
    let one = |u: &crate::diagnose::engine::Unjudged| UnjudgedJson {
        rule: u.rule,
        reason: u.why.clone(),
        more_time: u.for_now,
    };
    engine.unjudged().iter().map(one).collect()
}
