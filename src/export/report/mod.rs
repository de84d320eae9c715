//! A report for a ticket: one document about a window of time. It is built as blocks, which can be redacted and written
//! as HTML or Markdown.

pub mod graphs;
pub mod html;
pub mod markdown;
pub mod redact;
#[cfg(test)]
mod verdict_tests;
mod window_findings;

use super::findings::{self, ParagraphKind};
use super::snapshot::{self, SnapshotScope, TableLayout};
use super::table::Table;
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::doctor::incident::Incident;
use crate::model::system_state::SystemState;
use crate::model::timestamp::Timestamp;
use crate::units::{format_bytes_long, format_duration, format_rfc3339_in, format_time_of_day};
use graphs::Charts;
use redact::Redactor;
pub use window_findings::WindowFindings;

/// Cells of a line with a command, which may have thousands.
const MAX_WIDTH: usize = 140;
const COMMAND_HEADER: &str = "COMMAND";

/// A part of a report. Text is sanitized when it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportBlock {
    /// Heading of level 1 to 3.
    Heading(u8, String),
    /// A paragraph.
    Paragraph(String),
    /// Items with a label, which may be empty, and a text.
    List(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Preformatted lines.
    Preformatted(String),
    /// What is wrong in one sentence, and the title of each incident.
    Verdict(Verdict),
    /// Title of a finding.
    Finding(Severity, String),
    /// Graphs over the window.
    Charts(Charts),
}

/// What a report says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The highest severity in the window; `None`: nothing was found.
    pub severity: Option<Severity>,
    /// `1 critical, 2 warnings`.
    pub summary: String,
    /// Titles of warnings and critical incidents, each with its symbol, the worst first; those that are over by the end
    /// last.
    pub titles: Vec<String>,
}

/// A setting that differs from the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name, with the device or the like where it has one.
    pub name: String,
    /// Its value.
    pub current: String,
    /// The kernel's default.
    pub default: String,
}

/// The contents of a report besides the system state.
#[derive(Debug, Clone, Default)]
pub struct ReportExtras {
    /// Changed settings; `None` in a recording, which has none.
    pub changed_settings: Option<Vec<ChangedSetting>>,
    /// Settings that could not be read, each with its reason.
    pub unread_settings: Vec<String>,
    /// Selected benchmark results and experiments: heading and text.
    pub results: Vec<(String, String)>,
    /// Incidents of the window.
    pub window_findings: WindowFindings,
    /// What is missing from the samples, and why.
    pub missing_data: Vec<String>,
    /// Time zone of all times of day, seconds east of UTC.
    pub utc_offset_secs: i64,
}

/// The report as blocks.
pub fn build_report(system: &SystemState, engine: &RuleEngine, extra: &ReportExtras) -> Vec<ReportBlock> {
    let zone = extra.utc_offset_secs;
    let mut out = vec![
        ReportBlock::Heading(1, "iotop-plus report".into()),
        ReportBlock::Verdict(build_verdict(engine, &extra.window_findings, zone)),
        ReportBlock::Table(system_table(system, zone)),
        ReportBlock::Heading(2, "Over the window".into()),
    ];
    let charts = graphs::build_charts(system, engine, &extra.window_findings, zone);
    out.push(match charts.graphs.is_empty() {
        true => ReportBlock::Paragraph("Nothing moved.".into()),
        false => ReportBlock::Charts(charts),
    });
    push_findings(&mut out, system, engine, extra);
    let layout = TableLayout { width: usize::MAX, utc_offset_secs: zone };
    let syncs = system.snapshot.syncs.ok().is_some();
    let files = system.snapshot.files.ok().is_some();
    let scope = SnapshotScope { findings: false, kernel_log: false, syncs, files, ..SnapshotScope::ALL };
    out.push(ReportBlock::Heading(2, "At the end of the window".into()));
    out.extend(snapshot::build_tables(system, engine, scope, layout).into_iter().map(ReportBlock::Table));
    let kernel = SnapshotScope { kernel_log: true, ..SnapshotScope::default() };
    out.push(ReportBlock::Heading(2, "Kernel warnings".into()));
    out.extend(snapshot::build_tables(system, engine, kernel, layout).into_iter().map(ReportBlock::Table));
    push_settings(&mut out, extra);
    for (heading, text) in &extra.results {
        out.push(ReportBlock::Heading(2, heading.clone()));
        out.push(ReportBlock::Preformatted(text.clone()));
    }
    if !extra.missing_data.is_empty() {
        out.push(ReportBlock::Heading(2, "What could not be read".into()));
        out.push(ReportBlock::List(extra.missing_data.iter().map(|note| (String::new(), note.clone())).collect()));
    }
    out
}

/// What is wrong at the end of the window, then what was over by then.
fn build_verdict(engine: &RuleEngine, window: &WindowFindings, zone: i64) -> Verdict {
    let is_problem = |incident: &Incident| incident.severity > Severity::Note;
    let line =
        |incident: &Incident, over: &str| format!("{} {}{over}", incident.severity.symbol(), incident.cause().title);
    let current = engine.incidents.iter().filter(|incident| is_problem(incident)).map(|incident| line(incident, ""));
    let past: Vec<_> = window.past_incidents(engine).filter(|(incident, _)| is_problem(incident)).collect();
    let until = |(last, others): (&Timestamp, usize)| {
        let time = format_time_of_day(last.wall_ns, zone);
        if others == 0 { format!(" (until {time})") } else { format!(" (and {others} more like it, until {time})") }
    };
    let mut summary = findings::summarize(engine);
    if !past.is_empty() {
        let counted = findings::count_severities(past.iter().map(|(incident, _)| incident.severity));
        summary = format!("At the end: {summary}. Over by then: {counted}");
    }
    let all = engine.incidents.iter().chain(past.iter().map(|(incident, _)| incident));
    Verdict {
        severity: all.map(|incident| incident.severity).max(),
        summary,
        titles: current
            .chain(one_of_each_kind(&past).into_iter().map(|(incident, last, n)| line(incident, &until((last, n)))))
            .collect(),
    }
}

/// Of the incidents with one rule and severity the one seen last, with how many others there are; the worst first. A task that
/// is started again and again would fill the first lines of a report.
fn one_of_each_kind<'a>(past: &[&'a (Incident, Timestamp)]) -> Vec<(&'a Incident, &'a Timestamp, usize)> {
    let mut out: Vec<(&Incident, &Timestamp, usize)> = Vec::new();
    for (incident, last) in past {
        let is_same =
            |other: &Incident| (other.cause().rule, other.severity) == (incident.cause().rule, incident.severity);
        match out.iter_mut().find(|(other, ..)| is_same(other)) {
            Some(kind) if last.wall_ns >= kind.1.wall_ns => *kind = (incident, last, kind.2 + 1),
            Some(kind) => kind.2 += 1,
            None => out.push((incident, last, 0)),
        }
    }
    out.sort_by_key(|(incident, ..)| std::cmp::Reverse(incident.severity));
    out
}

/// Host, time and window. The host name has a cell of its own, so that even a short one is redacted.
fn system_table(system: &SystemState, utc_offset_secs: i64) -> Table {
    let (snapshot, host) = (&system.snapshot, &system.host);
    let mut table = Table::new("Machine", &[("", false), ("", false)]);
    let mut row = |name: &str, value: String| table.rows.push(vec![name.into(), value]);
    row("host", host.name.clone());
    row("kernel", host.kernel.clone());
    row("time", format_rfc3339_in(snapshot.time.wall_ns, utc_offset_secs));
    row("up", format_duration(snapshot.time.boot_ns / 1_000_000_000));
    let counted: Vec<_> = system.history.iter().filter(|f| !f.snapshot.is_since_boot).collect();
    let secs: f64 = counted.iter().map(|f| f.snapshot.interval_secs).sum();
    row("window", format!("{secs:.1} s in {} samples", counted.len()));
    row("CPUs", snapshot.cpu_count.map_or("-".into(), |n| n.to_string()));
    row("memory", snapshot.mem.ok().map_or("-".into(), |m| format_bytes_long(m.total)));
    row("program", concat!("iotop-plus ", env!("CARGO_PKG_VERSION")).into());
    table
}

fn push_findings(out: &mut Vec<ReportBlock>, system: &SystemState, engine: &RuleEngine, extra: &ReportExtras) {
    let zone = extra.utc_offset_secs;
    out.push(ReportBlock::Heading(2, "Findings".into()));
    if engine.incidents.is_empty() {
        out.push(ReportBlock::Paragraph(findings::summarize(engine)));
    }
    for s in &engine.incidents {
        push_incident(out, s, system.now(), zone, "");
    }
    for (s, last) in extra.window_findings.past_incidents(engine) {
        let over = format!(" (until {})", format_rfc3339_in(last.wall_ns, zone));
        push_incident(out, s, *last, zone, &over);
    }
    let notes = findings::skipped_rule_notes(engine);
    if !notes.is_empty() {
        let notes = notes.into_iter().map(|note| ("not judged".into(), note)).collect();
        out.push(ReportBlock::List(notes));
    }
}

fn push_incident(out: &mut Vec<ReportBlock>, incident: &Incident, now: Timestamp, zone: i64, over: &str) {
    let mut list: Vec<(String, String)> = Vec::new();
    for part in findings::incident_paragraphs(incident, now, zone) {
        match part.kind {
            ParagraphKind::Title(severity) => {
                if !list.is_empty() {
                    out.push(ReportBlock::List(std::mem::take(&mut list)));
                }
                out.push(ReportBlock::Finding(severity, format!("{}{over}", part.text)));
            }
            // A remedy's cost is appended to it.
            ParagraphKind::Secondary if part.label.is_empty() => {
                if let Some(last) = list.last_mut().filter(|_| !part.text.trim().is_empty()) {
                    last.1 = format!("{} ({})", last.1, part.text);
                }
            }
            _ => list.push((part.label.into(), part.text)),
        }
    }
    out.push(ReportBlock::List(list));
}

fn push_settings(out: &mut Vec<ReportBlock>, extra: &ReportExtras) {
    out.push(ReportBlock::Heading(2, "Settings that differ from the kernel's own".into()));
    let Some(all) = &extra.changed_settings else {
        return out.push(ReportBlock::Paragraph("Not in a recording.".into()));
    };
    let mut table = Table::new("Settings", &[("setting", false), ("now", false), ("kernel default", false)]);
    table.rows = all.iter().map(|s| vec![s.name.clone(), s.current.clone(), s.default.clone()]).collect();
    if all.is_empty() {
        table.notes.push("none of those with one default for every machine".into());
    }
    table.notes.extend(extra.unread_settings.iter().cloned());
    out.push(ReportBlock::Table(table));
}

/// Replaces names and addresses. All text is searched for names first, because a name found in one line is replaced in
/// all.
pub fn redact_report(blocks: &[ReportBlock], mut scrub: Redactor) -> Vec<ReportBlock> {
    for block in blocks {
        map_text(block, |text| {
            scrub.collect_from(text);
            String::new()
        });
    }
    blocks.iter().map(|block| map_text(block, |text| scrub.redact(text))).collect()
}

/// Cuts commands. This comes after redaction, which does not find half a name.
fn fit_commands(table: &Table) -> Table {
    if table.headers.last().is_some_and(|h| h == COMMAND_HEADER) { table.fit_width(MAX_WIDTH) } else { table.clone() }
}

/// The block with `change` applied to every text.
fn map_text(block: &ReportBlock, mut change: impl FnMut(&str) -> String) -> ReportBlock {
    let mut all = |texts: &[String]| texts.iter().map(|t| change(t)).collect::<Vec<_>>();
    match block {
        ReportBlock::Heading(rank, text) => ReportBlock::Heading(*rank, change(text)),
        ReportBlock::Paragraph(text) => ReportBlock::Paragraph(change(text)),
        ReportBlock::Preformatted(text) => {
            let lines: Vec<String> = text.lines().map(change).collect();
            ReportBlock::Preformatted(lines.join("\n"))
        }
        ReportBlock::List(items) => ReportBlock::List(items.iter().map(|(w, t)| (w.clone(), change(t))).collect()),
        ReportBlock::Verdict(verdict) => ReportBlock::Verdict(Verdict {
            severity: verdict.severity,
            // The summary has no names.
            summary: verdict.summary.clone(),
            titles: all(&verdict.titles),
        }),
        ReportBlock::Finding(severity, title) => ReportBlock::Finding(*severity, change(title)),
        ReportBlock::Charts(charts) => ReportBlock::Charts(charts.map_text(change)),
        ReportBlock::Table(table) => ReportBlock::Table(Table {
            headers: table.headers.clone(),
            is_numeric: table.is_numeric.clone(),
            rows: table.rows.iter().map(|row| all(row)).collect(),
            notes: all(&table.notes),
            title: change(&table.title),
        }),
    }
}
