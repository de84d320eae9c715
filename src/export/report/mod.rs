//! A report for a ticket: one document over a window of time, in one file. What is in it is put together once, as
//! blocks; how they are written, and what must not be told, are files of their own.

pub mod graphs;
pub mod html;
pub mod markdown;
pub mod scrub;

use super::findings::{self, Kind};
use super::page::{self, Scope};
use super::sheet::Sheet;
use crate::diagnose::Engine;
use crate::diagnose::story::Story;
use crate::model::timestamp::Timestamp;
use crate::model::system_state::SystemState;
use crate::units::{format_bytes_long, format_rfc3339, format_duration};
use graphs::Graph;
use scrub::Scrub;

/// Cells of a line with a command, which can be thousands long.
const WIDTH: usize = 140;
/// What the column of commands is called.
const COMMAND: &str = "COMMAND";

/// A part of a report. All text in it is cleaned where it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Heading of rank 1 to 3.
    Heading(u8, String),
    /// A paragraph.
    Text(String),
    /// Word and text each, what is told of a finding.
    List(Vec<(String, String)>),
    /// A table.
    Table(Sheet),
    /// Lines as they are.
    Lines(String),
    /// Courses over the window.
    Graphs(Vec<Graph>),
}

/// A setting that is not as the kernel would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name, with the place where it has one.
    pub name: String,
    /// In words.
    pub now: String,
    /// The kernel's own.
    pub default: String,
}

/// What a report has beside the machine's counters.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// Settings that differ; or why there are none to compare.
    pub settings: Option<Vec<Setting>>,
    /// Settings that could not be read, each with its reason.
    pub unread: Vec<String>,
    /// Results and experiments chosen: heading, and the report as text.
    pub results: Vec<(String, String)>,
    /// What was found in the window.
    pub seen: Seen,
    /// What is missing from the samples, and why.
    pub gaps: Vec<String>,
}

/// Findings of a window, also those that are over by its end.
#[derive(Debug, Clone, Default)]
pub struct Seen(Vec<(Story, Timestamp)>);

impl Seen {
    /// Takes in what is found now.
    pub fn look(&mut self, engine: &Engine, now: Timestamp) {
        for story in engine.stories() {
            match self.0.iter_mut().find(|(old, _)| same(old, story)) {
                Some(old) => *old = (story.clone(), now),
                None => self.0.push((story.clone(), now)),
            }
        }
    }

    /// Those that are not found any more, with when they were last.
    fn over<'a>(&'a self, engine: &'a Engine) -> impl Iterator<Item = &'a (Story, Timestamp)> {
        // What has become a part of another story is still told.
        let told = |old: &Story| {
            let cause = old.cause();
            engine
                .stories()
                .iter()
                .flat_map(|s| &s.findings)
                .any(|f| f.rule == cause.rule && f.subject == cause.subject)
        };
        self.0.iter().filter(move |(old, _)| !told(old))
    }
}

fn same(a: &Story, b: &Story) -> bool {
    (a.cause().rule, &a.cause().subject) == (b.cause().rule, &b.cause().subject)
}

/// The report.
pub fn blocks(world: &SystemState, engine: &Engine, extra: &Extra) -> Vec<Block> {
    let mut out = vec![Block::Heading(1, "iotop-plus report".into()), Block::Table(machine(world))];
    found(&mut out, world, engine, &extra.seen);
    let graphs = graphs::of(world);
    out.push(Block::Heading(2, "Over the window".into()));
    out.push(match graphs.is_empty() {
        true => Block::Text("Nothing moved.".into()),
        false => Block::Graphs(graphs),
    });
    let syncs = world.snapshot.syncs.ok().is_some();
    let scope = Scope { findings: false, kernel: false, syncs, ..Scope::ALL };
    out.push(Block::Heading(2, "At the end of the window".into()));
    out.extend(page::sheets(world, engine, scope, usize::MAX).into_iter().map(Block::Table));
    let kernel = Scope {
        kernel: true,
        devices: false,
        processes: false,
        memory: false,
        findings: false,
        syncs: false,
    };
    out.push(Block::Heading(2, "Kernel warnings".into()));
    out.extend(page::sheets(world, engine, kernel, usize::MAX).into_iter().map(Block::Table));
    settings(&mut out, extra);
    for (heading, text) in &extra.results {
        out.push(Block::Heading(2, heading.clone()));
        out.push(Block::Lines(text.clone()));
    }
    if !extra.gaps.is_empty() {
        out.push(Block::Heading(2, "What could not be read".into()));
        out.push(Block::List(extra.gaps.iter().map(|gap| (String::new(), gap.clone())).collect()));
    }
    out
}

/// Whose machine, when, over how long. The name stands alone in its cell: however short, it can be told from words.
fn machine(world: &SystemState) -> Sheet {
    let (snap, host) = (&world.snapshot, &world.host);
    let mut sheet = Sheet::new("Machine", &[("", false), ("", false)]);
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

fn found(out: &mut Vec<Block>, world: &SystemState, engine: &Engine, seen: &Seen) {
    out.push(Block::Heading(2, "Findings".into()));
    out.push(Block::Text(findings::summary(engine)));
    for s in engine.stories() {
        story(out, s, world.now(), "");
    }
    for (s, last) in seen.over(engine) {
        let over = format!(" (until {})", format_rfc3339(last.wall_ns));
        story(out, s, *last, &over);
    }
    let gaps = findings::gaps(engine);
    if !gaps.is_empty() {
        let gaps = gaps.into_iter().map(|gap| ("not judged".into(), gap)).collect();
        out.push(Block::List(gaps));
    }
}

fn story(out: &mut Vec<Block>, story: &Story, now: Timestamp, over: &str) {
    let mut list: Vec<(String, String)> = Vec::new();
    for part in findings::parts(story, now) {
        match part.kind {
            Kind::Title(_) => {
                if !list.is_empty() {
                    out.push(Block::List(std::mem::take(&mut list)));
                }
                out.push(Block::Heading(3, format!("{}{over}", part.text)));
            }
            // What something costs goes with what it is.
            Kind::Dim if part.label.is_empty() => {
                if let Some(last) = list.last_mut().filter(|_| !part.text.trim().is_empty()) {
                    last.1 = format!("{} ({})", last.1, part.text);
                }
            }
            _ => list.push((part.label.into(), part.text)),
        }
    }
    out.push(Block::List(list));
}

fn settings(out: &mut Vec<Block>, extra: &Extra) {
    out.push(Block::Heading(2, "Settings that differ from the kernel's own".into()));
    let Some(all) = &extra.settings else {
        return out.push(Block::Text("Not in a recording.".into()));
    };
    let mut sheet = Sheet::new("Settings", &[("setting", false), ("now", false), ("kernel default", false)]);
    sheet.rows = all.iter().map(|s| vec![s.name.clone(), s.now.clone(), s.default.clone()]).collect();
    if all.is_empty() {
        sheet.notes.push("none of those with one default for every machine".into());
    }
    sheet.notes.extend(extra.unread.iter().cloned());
    out.push(Block::Table(sheet));
}

/// The same without names and addresses. Everything is looked at before anything is replaced: what one line gives
/// away is replaced in all.
pub fn scrubbed(blocks: &[Block], mut scrub: Scrub) -> Vec<Block> {
    for block in blocks {
        each(block, |text| {
            scrub.learn(text);
            String::new()
        });
    }
    blocks.iter().map(|block| each(block, |text| scrub.apply(text))).collect()
}

/// A table as it is written: commands cut, which must not come before names are replaced, or half a name stays.
fn cut(sheet: &Sheet) -> Sheet {
    if sheet.heads.last().is_some_and(|h| h == COMMAND) { sheet.within(WIDTH) } else { sheet.clone() }
}

/// The block with `change` done to every text in it.
fn each(block: &Block, mut change: impl FnMut(&str) -> String) -> Block {
    let mut all = |texts: &[String]| texts.iter().map(|t| change(t)).collect::<Vec<_>>();
    match block {
        Block::Heading(rank, text) => Block::Heading(*rank, change(text)),
        Block::Text(text) => Block::Text(change(text)),
        Block::Lines(text) => {
            let lines: Vec<String> = text.lines().map(change).collect();
            Block::Lines(lines.join("\n"))
        }
        Block::List(items) => Block::List(items.iter().map(|(w, t)| (w.clone(), change(t))).collect()),
        Block::Graphs(graphs) => {
            Block::Graphs(graphs.iter().map(|g| Graph { name: change(&g.name), ..g.clone() }).collect())
        }
        Block::Table(sheet) => Block::Table(Sheet {
            heads: sheet.heads.clone(),
            right: sheet.right.clone(),
            rows: sheet.rows.iter().map(|row| all(row)).collect(),
            notes: all(&sheet.notes),
            title: change(&sheet.title),
        }),
    }
}
