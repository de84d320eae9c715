//! The subcommand `report`: observes the machine, then writes one file for a ticket.

use super::args::parse_duration_secs;
use super::bench::{clear_progress_line, load_stored};
use super::child_progress::overwrite_progress_line;
use super::exit::EXIT_OK;
use super::printer::{Printer, block_on};
use super::sampler::{Sampler, SamplerOptions};
use super::tune::common::child_knob_io;
use super::tune::show::format_reading;
use super::worker_job::write_file;
use crate::bench::report::BenchReport as BenchResult;
use crate::bench::report::text::{USUAL_WIDTH, text_report as bench_text};
use crate::experiment::report::{ExperimentReport as Experiment, ExperimentReportFormat};
use crate::export::report::html::to_html;
use crate::export::report::markdown::to_markdown;
use crate::export::report::redact::Redactor;
use crate::export::report::{ChangedSetting, ReportBlock, ReportExtras, WindowFindings, build_report, redact_report};
use crate::model::system_state::SystemState;
use crate::root::Root;
use crate::tui::timezone::utc_offset_secs;
use crate::tuning::discover::discover_knobs;
use crate::tuning::knob_io::{KnobError, KnobIo};
use crate::tuning::machine_limits::MachineLimits;
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus report -o ticket.md\n  \
                        iotop-plus report --for 5m --scrub -o ticket.html\n  \
                        iotop-plus report --bench 1 --experiment 1 > ticket.md\n\n\
                        Ctrl-C ends the look; the report is made of what was seen by then. Of a recording:\n\
                        iotop-plus replay FILE --format report, or report-html")]
pub(super) struct ReportArgs {
    /// Write to this file instead of standard output; existing files are not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Observation time: 30, 5m, 1h; most findings need 5 to 10 seconds.
    #[arg(long = "for", value_name = "T", default_value = "30", value_parser = parse_duration_secs)]
    pub(super) time: u64,
    /// Output format; by default from the file's extension, else markdown.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(super) format: Option<ReportFormat>,
    /// A stored benchmark result to include, by name or number; repeatable.
    #[arg(long, value_name = "ID")]
    pub(super) bench: Vec<String>,
    /// A stored experiment to include, by name or number; repeatable.
    #[arg(long, value_name = "ID")]
    pub(super) experiment: Vec<String>,
    /// Replace the names of hosts, users, home directories and network mounts, and addresses.
    #[arg(long)]
    pub(super) scrub: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Markdown.
    Markdown,
    /// A single HTML file without external resources.
    Html,
}

/// Short enough for rules to see trends. A longer observation samples less often, because the history holds 900
/// samples.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
const MAX_SAMPLES: u32 = 900;
/// How often settings and limits are read, to see them change.
const FACTS_EVERY: Duration = Duration::from_secs(10);
/// Accounts below this uid belong to services, whose names are not personal.
const FIRST_PERSON_UID: u32 = 1000;
const NOBODY_UID: u32 = 65534;

pub(super) fn run(root: &Root, args: &ReportArgs, tracing: bool) -> anyhow::Result<u8> {
    // Check the names of results before observing.
    let results = stored_results(args)?;
    let document = block_on(async {
        let duration = Duration::from_secs(args.time);
        let options = SamplerOptions::for_findings(FACTS_EVERY, tracing);
        let mut sampler = Sampler::start(root, MIN_SAMPLE_INTERVAL.max(duration / MAX_SAMPLES), options)?;
        let mut printer = Printer::new(Some(1));
        let (started, mut seen, mut samples) = (Instant::now(), WindowFindings::default(), 0);
        let is_progress_shown = std::io::stderr().is_terminal();
        let show_progress = |gone: Duration| {
            let (gone, secs) = (gone.as_secs(), args.time);
            overwrite_progress_line(&format!("looking: {gone} of {secs} s; Ctrl-C ends it with what was seen"));
        };
        is_progress_shown.then(|| show_progress(Duration::ZERO));
        while printer.wait_for_sample(&mut sampler).await? {
            samples += 1;
            seen.update(&sampler.findings, sampler.state.now());
            is_progress_shown.then(|| show_progress(started.elapsed()));
            if started.elapsed() >= duration {
                break;
            }
        }
        clear_progress_line(is_progress_shown);
        ensure!(samples > 0, "interrupted before the first sample; nothing was written");
        let text = render_document(root, &sampler, args, seen, results);
        if args.output.is_some() {
            return Ok(text);
        }
        printer.print(text);
        while printer.wait_for_sample(&mut sampler).await? {}
        Ok(String::new())
    })?;
    args.output.as_ref().map_or(Ok(EXIT_OK), |path| write_file(root, path, document.into()))
}

fn render_document(
    root: &Root,
    sampler: &Sampler,
    args: &ReportArgs,
    seen: WindowFindings,
    results: Vec<(String, String)>,
) -> String {
    let (settings, unread) = changed_settings(root);
    let gaps = sampler.gaps().iter().map(|g| format!("{}: {}", g.source, g.reason));
    let blocked = sampler.state.blocked_reads.iter().map(|b| format!("blocked: {}", b.waiting_on));
    let gaps = gaps.chain(blocked).collect();
    let extra = ReportExtras {
        changed_settings: Some(settings),
        unread_settings: unread,
        results,
        window_findings: seen,
        missing_data: gaps,
        utc_offset_secs: utc_offset_secs(sampler.state.now().wall_ns),
    };
    let mut blocks = build_report(&sampler.state, &sampler.findings, &extra);
    if args.scrub {
        blocks = redact_report(&blocks, names_to_redact(root, &sampler.state));
    }
    renderer(args)(&blocks)
}

fn renderer(args: &ReportArgs) -> fn(&[ReportBlock]) -> String {
    let by_name = |path: &Path| path.extension().is_some_and(|e| e == "html" || e == "htm");
    match (args.format, &args.output) {
        (Some(ReportFormat::Html), _) => to_html,
        (None, Some(path)) if by_name(path) => to_html,
        _ => to_markdown,
    }
}

fn stored_results(args: &ReportArgs) -> anyhow::Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for id in &args.bench {
        let report: BenchResult = load_stored(id).with_context(|| format!("--bench {id}"))?;
        out.push((format!("Benchmark {}", report.id), bench_text(&report, USUAL_WIDTH)));
    }
    for id in &args.experiment {
        let report: Experiment = load_stored(id).with_context(|| format!("--experiment {id}"))?;
        out.push((format!("Experiment {}", report.id), report.render(ExperimentReportFormat::Text)));
    }
    Ok(out)
}

/// Settings that differ from the kernel's default, and those that could not be read.
fn changed_settings(root: &Root) -> (Vec<ChangedSetting>, Vec<String>) {
    let machine = MachineLimits::read(root);
    let known: Vec<_> =
        discover_knobs(root, false).into_iter().filter(|at| at.definition().default.is_some()).collect();
    let readings = child_knob_io(root).read_all(&known);
    let (mut differ, mut unread) = (Vec::new(), Vec::new());
    for (at, reading) in known.iter().zip(&readings) {
        match reading {
            Ok(found) if Some(found.value.as_str()) != at.definition().default => differ.push(ChangedSetting {
                name: at.to_string(),
                current: format_reading(at, reading, &machine),
                default: at.definition().default_display().into(),
            }),
            Ok(_) | Err(KnobError::Absent(_)) => {}
            Err(fail) => unread.push(format!("{at}: {}", fail)),
        }
    }
    (differ, unread)
}

/// The names to redact: of the host, its users and its network mounts.
fn names_to_redact(root: &Root, state: &SystemState) -> Redactor {
    let mut scrub = Redactor::default();
    scrub.add_host(&state.host.name);
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
    for row in state.processes.iter().filter(|row| row.raw.uid.is_some_and(is_person)) {
        scrub.add_user(row.user().as_deref().unwrap_or_default());
    }
    for mount in state.snapshot.netfs.ok().into_iter().flatten() {
        scrub.add_mount_source(&mount.server);
    }
    scrub
}

fn is_person(uid: u32) -> bool {
    uid >= FIRST_PERSON_UID && uid != NOBODY_UID
}
