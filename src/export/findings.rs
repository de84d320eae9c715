//! Findings as text, as a table and as JSON: by incident, cause first, with evidence, reasons and remedies.

use super::table::Table;
use crate::doctor::finding::{Finding, FindingSubject, InvolvedTask, NO_COST, NavTarget, Remedy, Severity};
use crate::doctor::incident::Incident;
use crate::doctor::{RuleEngine, SkippedRule};
use crate::model::system_state::SystemState;
use crate::model::timestamp::Timestamp;
use crate::sanitize::wrap;
use crate::units::{format_duration, format_rfc3339, format_rfc3339_in};
use serde_json::{Value, json};

/// The role of a paragraph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ParagraphKind {
    Title(Severity),
    /// Evidence and reasons.
    Detail,
    #[default]
    Secondary,
    Remedy,
}

/// A paragraph about an incident.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IncidentParagraph {
    /// Label to its left, or empty.
    pub label: &'static str,
    /// The text, sanitized.
    pub text: String,
    pub kind: ParagraphKind,
    pub nav_target: Option<NavTarget>,
}

/// The paragraphs of an incident; times are in the time zone `utc_offset_secs` east of UTC.
pub(crate) fn incident_paragraphs(incident: &Incident, now: Timestamp, utc_offset_secs: i64) -> Vec<IncidentParagraph> {
    let mut out = Vec::new();
    for (i, f) in incident.findings.iter().enumerate() {
        if i > 0 {
            let blank = IncidentParagraph { text: " ".into(), ..IncidentParagraph::default() };
            out.push(blank);
        }
        push_finding(f, i > 0, format_since(f, now, utc_offset_secs), &mut out);
    }
    out
}

/// Rules about settings: such a finding makes trouble worse, but does not follow from it.
const SETTINGS: [&str; 4] = ["atime-mount", "scheduler-unsuitable", "readahead-large", "fork-cost"];

fn push_finding(f: &Finding, effect: bool, since: String, out: &mut Vec<IncidentParagraph>) {
    use ParagraphKind::{Detail, Remedy, Secondary, Title};
    let mut add = |label, text: String, kind, nav_target: Option<&NavTarget>| {
        out.push(IncidentParagraph { label, text, kind, nav_target: nav_target.cloned() });
    };
    let lead = match effect {
        true if SETTINGS.contains(&f.rule) => "also, a setting: ",
        true => "which leads to: ",
        false => "",
    };
    add("", format!("{} {lead}{}", f.severity.symbol(), f.title), Title(f.severity), None);
    add("since", since, Detail, None);
    let figures: Vec<String> = f.evidence.iter().map(|e| format!("{} {}", e.name, e.value)).collect();
    if !figures.is_empty() {
        add("figures", figures.join(" · "), Detail, None);
    }
    add("why", f.why.into(), Detail, None);
    for (i, r) in f.remedies.iter().enumerate() {
        add(if i == 0 { "try" } else { "or" }, r.action.clone(), Remedy, r.nav_target.as_ref());
        if r.cost != NO_COST {
            add("", format!("costs: {}", r.cost), Secondary, None);
        }
    }
    if let Some(target) = &f.see_also {
        add("see", target.label(), Remedy, Some(target));
    }
}

/// `2024-02-29T23:59:59Z, for 12s`.
fn format_since(f: &Finding, now: Timestamp, utc_offset_secs: i64) -> String {
    let Some(since) = f.since_ns else { return "-".into() };
    let age = now.boot_ns.saturating_sub(since);
    let wall = now.wall_ns.saturating_sub(age as i64);
    format!("{}, for {}", format_rfc3339_in(wall, utc_offset_secs), format_duration(age / 1_000_000_000))
}

/// One line for a list: the cause, and the names of its effects.
pub(crate) fn incident_line(incident: &Incident) -> String {
    let mut out = incident.cause().title.clone();
    let mut names: Vec<String> = incident.effects().iter().map(effect_name).collect();
    names.dedup();
    if !names.is_empty() {
        out.push_str(&format!("; also: {}", names.join(", ")));
    }
    out
}

/// `loop0 saturated`, `writers throttled`: the rule in words, with the device that it is about.
fn effect_name(finding: &Finding) -> String {
    match (finding.rule.strip_prefix("device-"), &finding.subject) {
        _ if finding.rule == "hung-task-silent" => "the kernel no longer reports hung tasks".into(),
        (Some(what), FindingSubject::Device(_, name)) => format!("{name} {what}"),
        _ => finding.rule.replace('-', " "),
    }
}

/// `1 critical, 2 warnings`.
pub fn summarize(engine: &RuleEngine) -> String {
    let counted = count_severities(engine.incidents.iter().map(|incident| incident.severity));
    if counted.is_empty() { "nothing wrong found".into() } else { counted }
}

/// `1 critical, 2 warnings`; nothing if there is none.
pub(crate) fn count_severities(all: impl Iterator<Item = Severity> + Clone) -> String {
    let levels =
        [(Severity::Critical, "critical", ""), (Severity::Warn, "warning", "s"), (Severity::Note, "note", "s")];
    let counted = levels.map(|(severity, name, plural)| match all.clone().filter(|other| *other == severity).count() {
        0 => None,
        1 => Some(format!("1 {name}")),
        n => Some(format!("{n} {name}{plural}")),
    });
    counted.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// Why rules were skipped: each reason once, with its rules.
pub(crate) fn skipped_rule_notes(engine: &RuleEngine) -> Vec<String> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for u in &engine.skipped_rules {
        let why = if u.needs_more_data { format!("not enough data yet: {}", u.reason) } else { u.reason.clone() };
        match out.iter_mut().find(|(w, _)| *w == why) {
            Some((_, rules)) => rules.push(u.rule),
            None => out.push((why, vec![u.rule])),
        }
    }
    out.into_iter().map(|(why, rules)| format!("{}: {why}", rules.join(", "))).collect()
}

/// All incidents and skipped rules as text of at most `width` cells a line.
pub(crate) fn findings_text(engine: &RuleEngine, now: Timestamp, width: usize) -> String {
    const LABEL: usize = 8;
    let mut out = format!("{}\n", summarize(engine));
    for incident in &engine.incidents {
        out.push('\n');
        for p in incident_paragraphs(incident, now, 0) {
            let title = matches!(p.kind, ParagraphKind::Title(_));
            let indent = if title { 0 } else { 2 + LABEL };
            let mut words = p.text.clone();
            if let (Some(command), ParagraphKind::Remedy) = (p.nav_target.as_ref().and_then(shell_command), p.kind) {
                words.push_str(&format!("  [{command}]"));
            }
            for (i, line) in wrap(&words, width.saturating_sub(indent).max(20)).into_iter().enumerate() {
                let label = if title || i > 0 { " ".repeat(indent) } else { format!("  {:<LABEL$}", p.label) };
                out.push_str(format!("{label}{line}").trim_end());
                out.push('\n');
            }
        }
    }
    let gaps = skipped_rule_notes(engine);
    if !gaps.is_empty() {
        out.push_str("\nnot judged\n");
        for gap in gaps {
            out.push_str(&format!("  {}\n", wrap(&gap, width.saturating_sub(4)).join("\n    ")));
        }
    }
    out
}

/// The command that does the same in a shell.
fn shell_command(jump: &NavTarget) -> Option<String> {
    let quoted = |text: &str| match text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-@".contains(&b)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    match jump {
        NavTarget::Knob(knob) => Some(format!("iotop-plus tune get {}", quoted(&crate::sanitize::sanitize(knob)))),
        NavTarget::Bench(profile, Some(dir)) => {
            Some(format!("iotop-plus bench run {profile} {}", quoted(&dir.sanitized())))
        }
        NavTarget::Bench("fork", None) => Some("iotop-plus bench run fork".into()),
        NavTarget::Bench(profile, None) => Some(format!("iotop-plus bench run {profile} DIR")),
        _ => None,
    }
}

/// A table with one row a finding, effects below their cause.
pub(crate) fn build_table(title: String, engine: &RuleEngine, now: Timestamp) -> Table {
    let mut table = Table::new(title, &[("Severity", false), ("Rule", false), ("Since", false), ("Finding", false)]);
    for incident in &engine.incidents {
        for (i, f) in incident.findings.iter().enumerate() {
            let age =
                f.since_ns.map_or("-".into(), |ns| format_duration(now.boot_ns.saturating_sub(ns) / 1_000_000_000));
            let lead = if i > 0 { "→ " } else { "" };
            table.rows.push(vec![f.severity.name().into(), f.rule.into(), age, format!("{lead}{}", f.title)]);
        }
    }
    if table.rows.is_empty() {
        table.notes.push("nothing wrong found".into());
    }
    let waiting = engine.skipped_rules.iter().filter(|u| u.needs_more_data).count();
    if waiting > 0 {
        table.notes.push(format!("{waiting} rules need more samples than this; `iotop-plus doctor` takes them"));
    }
    table
}

fn involved_task_json(task: &InvolvedTask) -> Value {
    json!({ "name": task.name, "share_pct": task.share_pct, "group": task.group })
}

pub(crate) fn incidents_json(engine: &RuleEngine, system: &SystemState) -> Vec<Value> {
    let now = system.now();
    let device_name = |id| system.device_name(id);
    let time = |ns: Option<u64>| {
        ns.map(|ns| format_rfc3339(now.wall_ns.saturating_sub(now.boot_ns.saturating_sub(ns) as i64)))
    };
    let finding = |f: &Finding| {
        json!({
            "rule": f.rule,
            "severity": f.severity.name(),
            "title": f.title,
            "subject": { "kind": f.subject.kind(), "name": f.subject.name() },
            "since": time(f.since_ns),
            "devices": f.devices.iter().map(|id| device_name(*id)).collect::<Vec<_>>(),
            "culprit_group": f.culprit_group.as_ref().map(|g| json!({ "name": g.name, "share_pct": g.share_pct })),
            "culprits": f.culprits.iter().map(involved_task_json).collect::<Vec<_>>(),
            "victims": f.victims.iter().map(involved_task_json).collect::<Vec<_>>(),
            "files": f.files,
            "evidence": f.evidence.iter().map(|e| json!({ "name": e.name, "value": e.value })).collect::<Vec<_>>(),
            "why": f.why,
            "try": f.remedies.iter().map(remedy_json).collect::<Vec<_>>(),
        })
    };
    let incident = |incident: &Incident| {
        json!({
            "severity": incident.severity.name(),
            "title": incident.cause().title,
            "since": time(incident.since_ns()),
            "findings": incident.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    };
    engine.incidents.iter().map(incident).collect()
}

fn remedy_json(r: &Remedy) -> Value {
    let (knob, bench) = match &r.nav_target {
        Some(NavTarget::Knob(knob)) => (Some(crate::sanitize::sanitize(knob)), None),
        Some(NavTarget::Bench(profile, _)) => (None, Some(*profile)),
        _ => (None, None),
    };
    json!({ "what": r.action, "cost": r.cost, "knob": knob, "bench": bench })
}

pub(crate) fn skipped_rules_json(engine: &RuleEngine) -> Vec<Value> {
    let one = |u: &SkippedRule| json!({ "rule": u.rule, "reason": u.reason, "more_time": u.needs_more_data });
    engine.skipped_rules.iter().map(one).collect()
}
