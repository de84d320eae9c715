//! A report for a ticket: one document over a window of time, in one file. What is in it is put together once, as
//! blocks; how they are written, and what must not be told, are files of their own.

pub mod graphs;
pub mod html;
pub mod markdown;
pub mod redact;

use super::findings::{self, ParagraphKind};
use super::snapshot::{self, SnapshotScope};
use super::table::Table;
use crate::doctor::RuleEngine;
use crate::doctor::incident::Incident;
use crate::model::system_state::SystemState;
use crate::model::timestamp::Timestamp;
use crate::units::{format_bytes_long, format_duration, format_rfc3339};
use graphs::Graph;
use redact::Redactor;

/// Cells of a line with a command, which can be thousands long.
const MAX_WIDTH: usize = 140;
/// What the column of commands is called.
const COMMAND_HEADER: &str = "COMMAND";

/// A part of a report. All text in it is cleaned where it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportBlock {
    /// Heading of rank 1 to 3.
    Heading(u8, String),
    /// A paragraph.
    Paragraph(String),
    /// Word and text each, what is told of a finding.
    List(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Lines as they are.
    Preformatted(String),
    /// Courses over the window.
    Graphs(Vec<Graph>),
}

/// A setting that is not as the kernel would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name, with the place where it has one.
    pub name: String,
    /// In words.
    pub current: String,
    /// The kernel's own.
    pub default: String,
}

/// What a report has beside the machine's counters.
#[derive(Debug, Clone, Default)]
pub struct ReportExtras {
    /// Settings that differ; or why there are none to compare.
    pub changed_settings: Option<Vec<ChangedSetting>>,
    /// Settings that could not be read, each with its reason.
    pub unread_settings: Vec<String>,
    /// Results and experiments chosen: heading, and the report as text.
    pub results: Vec<(String, String)>,
    /// What was found in the window.
    pub window_findings: WindowFindings,
    /// What is missing from the samples, and why.
    pub missing_data: Vec<String>,
}

/// Findings of a window, also those that are over by its end.
#[derive(Debug, Clone, Default)]
pub struct WindowFindings(Vec<(Incident, Timestamp)>);

impl WindowFindings {
    /// Takes in what is found now.
    pub fn update(&mut self, engine: &RuleEngine, now: Timestamp) {
        for story in engine.incidents() {
            match self.0.iter_mut().find(|(old, _)| is_same_incident(old, story)) {
                Some(old) => *old = (story.clone(), now),
                None => self.0.push((story.clone(), now)),
            }
        }
    }

    /// Those that are not found any more, with when they were last.
    fn past_incidents<'a>(&'a self, engine: &'a RuleEngine) -> impl Iterator<Item = &'a (Incident, Timestamp)> {
        // What has become a part of another story is still told.
        let told = |old: &Incident| {
            let cause = old.cause();
            engine
                .incidents()
                .iter()
                .flat_map(|s| &s.findings)
                .any(|f| f.rule == cause.rule && f.subject == cause.subject)
        };
        self.0.iter().filter(move |(old, _)| !told(old))
    }
}

fn is_same_incident(a: &Incident, b: &Incident) -> bool {
    (a.cause().rule, &a.cause().subject) == (b.cause().rule, &b.cause().subject)
}

/// The report.
pub fn build_report(world: &SystemState, engine: &RuleEngine, extra: &ReportExtras) -> Vec<ReportBlock> {
    let mut out = vec![ReportBlock::Heading(1, "iotop-plus report".into()), ReportBlock::Table(system_table(world))];
    push_findings(&mut out, world, engine, &extra.window_findings);
    let graphs = graphs::build_graphs(world);
    out.push(ReportBlock::Heading(2, "Over the window".into()));
    out.push(match graphs.is_empty() {
        true => ReportBlock::Paragraph("Nothing moved.".into()),
        false => ReportBlock::Graphs(graphs),
    });
    let syncs = world.snapshot.syncs.ok().is_some();
    let scope = SnapshotScope { findings: false, kernel_log: false, syncs, ..SnapshotScope::ALL };
    out.push(ReportBlock::Heading(2, "At the end of the window".into()));
    out.extend(snapshot::build_tables(world, engine, scope, usize::MAX).into_iter().map(ReportBlock::Table));
    let kernel = SnapshotScope {
        kernel_log: true,
        devices: false,
        processes: false,
        memory: false,
        findings: false,
        syncs: false,
    };
    out.push(ReportBlock::Heading(2, "Kernel warnings".into()));
    out.extend(snapshot::build_tables(world, engine, kernel, usize::MAX).into_iter().map(ReportBlock::Table));
    push_settings(&mut out, extra);
    for (heading, text) in &extra.results {
        out.push(ReportBlock::Heading(2, heading.clone()));
        out.push(ReportBlock::Preformatted(text.clone()));
    }
    if !extra.missing_data.is_empty() {
        out.push(ReportBlock::Heading(2, "What could not be read".into()));
        out.push(ReportBlock::List(extra.missing_data.iter().map(|gap| (String::new(), gap.clone())).collect()));
    }
    out
}

/// Whose machine, when, over how long. The name stands alone in its cell: however short, it can be told from words.
fn system_table(world: &SystemState) -> Table {
    let (snap, host) = (&world.snapshot, &world.host);
    let mut sheet = Table::new("Machine", &[("", false), ("", false)]);
    let mut row = |name: &str, value: String| sheet.rows.push(vec![name.into(), value]);
    row("host", host.name.clone());
    row("kernel", host.kernel.clone());
    row("time", format_rfc3339(snap.time.wall_ns));
    row("up", format_duration(snap.time.boot_ns / 1_000_000_000));
    let counted: Vec<_> = world.history.iter().filter(|f| !f.snapshot.is_since_boot).collect();
    let secs: f64 = counted.iter().map(|f| f.snapshot.interval_secs).sum();
    row("window", format!("{secs:.1} s in {} samples", counted.len()));
    row("CPUs", snap.cpu_count.map_or("-".into(), |n| n.to_string()));
    row("memory", snap.mem.ok().map_or("-".into(), |m| format_bytes_long(m.total)));
    row("program", concat!("iotop-plus ", env!("CARGO_PKG_VERSION")).into());
    sheet
}

fn push_findings(out: &mut Vec<ReportBlock>, world: &SystemState, engine: &RuleEngine, seen: &WindowFindings) {
    out.push(ReportBlock::Heading(2, "Findings".into()));
    out.push(ReportBlock::Paragraph(findings::summarize(engine)));
    for s in engine.incidents() {
        push_incident(out, s, world.now(), "");
    }
    for (s, last) in seen.past_incidents(engine) {
        let over = format!(" (until {})", format_rfc3339(last.wall_ns));
        push_incident(out, s, *last, &over);
    }
    let gaps = findings::skipped_rule_notes(engine);
    if !gaps.is_empty() {
        let gaps = gaps.into_iter().map(|gap| ("not judged".into(), gap)).collect();
        out.push(ReportBlock::List(gaps));
    }
}

fn push_incident(out: &mut Vec<ReportBlock>, story: &Incident, now: Timestamp, over: &str) {
    let mut list: Vec<(String, String)> = Vec::new();
    for part in findings::incident_paragraphs(story, now) {
        match part.kind {
            ParagraphKind::Title(_) => {
                if !list.is_empty() {
                    out.push(ReportBlock::List(std::mem::take(&mut list)));
                }
                out.push(ReportBlock::Heading(3, format!("{}{over}", part.text)));
            }
            // What something costs goes with what it is.
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
    let mut sheet = Table::new("Settings", &[("setting", false), ("now", false), ("kernel default", false)]);
    sheet.rows = all.iter().map(|s| vec![s.name.clone(), s.current.clone(), s.default.clone()]).collect();
    if all.is_empty() {
        sheet.notes.push("none of those with one default for every machine".into());
    }
    sheet.notes.extend(extra.unread_settings.iter().cloned());
    out.push(ReportBlock::Table(sheet));
}

/// The same without names and addresses. Everything is looked at before anything is replaced: what one line gives
/// away is replaced in all.
pub fn redact_report(blocks: &[ReportBlock], mut scrub: Redactor) -> Vec<ReportBlock> {
    for block in blocks {
        map_text(block, |text| {
            scrub.collect_from(text);
            String::new()
        });
    }
    blocks.iter().map(|block| map_text(block, |text| scrub.redact(text))).collect()
}

/// A table as it is written: commands cut, which must not come before names are replaced, or half a name stays.
fn fit_commands(sheet: &Table) -> Table {
    if sheet.headers.last().is_some_and(|h| h == COMMAND_HEADER) { sheet.fit_width(MAX_WIDTH) } else { sheet.clone() }
}

/// The block with `change` done to every text in it.
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
        ReportBlock::Graphs(graphs) => {
            ReportBlock::Graphs(graphs.iter().map(|g| Graph { name: change(&g.name), ..g.clone() }).collect())
        }
        ReportBlock::Table(sheet) => ReportBlock::Table(Table {
            headers: sheet.headers.clone(),
            is_numeric: sheet.is_numeric.clone(),
            rows: sheet.rows.iter().map(|row| all(row)).collect(),
            notes: all(&sheet.notes),
            title: change(&sheet.title),
        }),
    }
}
