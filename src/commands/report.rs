//! `report`: looks for a while, then writes one file for a ticket.

use super::bench::store;
use super::follow::overwrite;
use super::gather::{Gather, Needs, SYNCS_FROM};
use super::printer::{Printer, Step, block_on};
use super::snapshot::write_file;
use super::tune::{careful, show::told};
use super::{FAILED, FINE, complain};
use crate::bench::report::BenchReport as BenchResult;
use crate::bench::report::text::text_report as bench_text;
use crate::bench::store::Storable;
use crate::cli::report::{Report, ReportFormat};
use crate::experiment::report::{ExperimentReportFormat, ExperimentReport as Experiment};
use crate::export::report::html::to_html;
use crate::export::report::markdown::to_markdown;
use crate::export::report::redact::Redactor;
use crate::export::report::{ReportBlock, ReportExtras, WindowFindings, ChangedSetting, build_report, redact_report};
use crate::model::system_state::SystemState;
use crate::root::Root;
use crate::tune::kernel::{Fail, KnobIo};
use crate::tune::machine::Machine;
use crate::tune::places::every;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A tick: short enough for rules to see a course. A longer look takes longer ticks, as the past has 900.
const TICK: Duration = Duration::from_secs(1);
const TICKS: u32 = 900;
/// Settings and limits are read anew so often, for what grows in between.
const FACTS_EVERY: Duration = Duration::from_secs(10);
/// Accounts below this number belong to services, whose names tell what runs, not who works there.
const FIRST_PERSON: u32 = 1000;
/// nobody is nobody's name.
const NOBODY: u32 = 65534;

/// Looks, then writes.
pub fn run(root: &Root, args: &Report, tracing: bool) -> anyhow::Result<u8> {
    // What was asked for by a wrong name is said before the look, not after.
    let results = match results(args) {
        Ok(results) => results,
        Err(why) => {
            complain(&why);
            return Ok(FAILED);
        }
    };
    let mut document = None;
    let code = block_on(async {
        let wanted = Duration::from_secs(args.time);
        let (facts, syncs) = (Some(FACTS_EVERY), tracing.then_some(SYNCS_FROM));
        let needs = Needs { fresh: true, queues: true, log: true, facts, tracing, syncs, ..Needs::default() };
        let mut gather = Gather::start(root, TICK.max(wanted / TICKS), needs)?;
        let mut printer = Printer::start(Some(1))?;
        let (began, mut seen, mut samples) = (Instant::now(), WindowFindings::default(), 0);
        let mut progress = Progress::start(wanted);
        while let Step::Sample = printer.step(&mut gather).await? {
            samples += 1;
            seen.update(&gather.findings, gather.world.now());
            progress.show(began.elapsed());
            if began.elapsed() >= wanted {
                break;
            }
        }
        progress.end();
        if samples == 0 {
            complain("interrupted before the first sample; nothing was written");
            return Ok(FAILED);
        }
        let text = written(root, &gather, args, seen, results);
        match &args.output {
            Some(_) => document = Some(text),
            None => {
                printer.print(text);
                while printer.step(&mut gather).await? != Step::End {}
            }
        }
        Ok(FINE)
    })?;
    match (document, &args.output) {
        (Some(text), Some(path)) => write_file(root, path, text.into()),
        _ => Ok(code),
    }
}

/// How far the look is, for somebody who watches.
struct Progress {
    wanted: Duration,
    shown: bool,
}

impl Progress {
    fn start(wanted: Duration) -> Self {
        let shown = std::io::stderr().is_terminal();
        let progress = Self { wanted, shown };
        progress.show(Duration::ZERO);
        progress
    }

    fn show(&self, gone: Duration) {
        if self.shown {
            let (gone, wanted) = (gone.as_secs(), self.wanted.as_secs());
            overwrite(&format!("looking: {gone} of {wanted} s; Ctrl-C ends it with what was seen"));
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn written(
    root: &Root,
    gather: &Gather,
    args: &Report,
    seen: WindowFindings,
    results: Vec<(String, String)>,
) -> String {
    let (settings, unread) = settings(root);
    let gaps = gather.gaps().iter().map(|g| format!("{}: {}", g.source, g.reason));
    let blocked = gather.world.blocked_reads.iter().map(|b| format!("blocked: {}", b.waiting_on));
    let gaps = gaps.chain(blocked).collect();
    let extra = ReportExtras { changed_settings: Some(settings), unread_settings: unread, results, window_findings: seen, missing_data: gaps };
    let mut blocks = build_report(&gather.world, &gather.findings, &extra);
    if args.scrub {
        blocks = redact_report(&blocks, names(root, &gather.world));
    }
    form(args)(&blocks)
}

fn form(args: &Report) -> fn(&[ReportBlock]) -> String {
    let by_name = |path: &Path| path.extension().is_some_and(|e| e == "html" || e == "htm");
    match (args.format, &args.output) {
        (Some(ReportFormat::Html), _) => to_html,
        (None, Some(path)) if by_name(path) => to_html,
        _ => to_markdown,
    }
}

/// The kept results asked for, as text.
fn results(args: &Report) -> Result<Vec<(String, String)>, String> {
    let mut out = Vec::new();
    for id in &args.bench {
        let report: BenchResult = load("--bench", id)?;
        out.push((format!("Benchmark {}", report.id), bench_text(&report)));
    }
    for id in &args.experiment {
        let report: Experiment = load("--experiment", id)?;
        out.push((format!("Experiment {}", report.id), report.render(ExperimentReportFormat::Text)));
    }
    Ok(out)
}

fn load<T: Storable>(option: &str, id: &str) -> Result<T, String> {
    let found = store::<T>().map_err(|err| err.to_string()).and_then(|store| store.load(id));
    found.map_err(|why| format!("{option} {id}: {why}"))
}

/// Settings with one default for every machine that have another value, and those that could not be read.
fn settings(root: &Root) -> (Vec<ChangedSetting>, Vec<String>) {
    let machine = Machine::read(root);
    let known: Vec<_> = every(root, false).into_iter().filter(|at| at.knob().default.is_some()).collect();
    let readings = careful(root).read_many(&known);
    let (mut differ, mut unread) = (Vec::new(), Vec::new());
    for (at, reading) in known.iter().zip(&readings) {
        match reading {
            Ok(found) if Some(found.value.as_str()) != at.knob().default => differ.push(ChangedSetting {
                name: at.to_string(),
                current: told(at, reading, &machine),
                default: at.knob().default_words().into(),
            }),
            Ok(_) | Err(Fail::Absent(_)) => {}
            Err(fail) => unread.push(format!("{at}: {}", fail.text())),
        }
    }
    (differ, unread)
}

/// Whose names these are: the machine's, of its people, of what it mounts from a network.
fn names(root: &Root, world: &SystemState) -> Redactor {
    let mut scrub = Redactor::default();
    scrub.add_host(&world.host.name);
    let passwd = std::fs::read_to_string(root.etc("passwd")).unwrap_or_default();
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [name, _, uid, _, _, home, ..] = fields[..]
            && uid.parse().is_ok_and(is_person)
        {
            scrub.add_user(name);
            if !home.contains(name) {
                scrub.add_home(home);
            }
        }
    }
    for row in world.processes.iter().filter(|row| row.uid.is_some_and(is_person)) {
        scrub.add_user(row.user.as_deref().unwrap_or_default());
    }
    for mount in world.snapshot.netfs.ok().into_iter().flatten() {
        scrub.add_mount_source(&mount.server);
    }
    scrub
}

fn is_person(uid: u32) -> bool {
    uid >= FIRST_PERSON && uid != NOBODY
}
