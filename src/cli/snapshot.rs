//! `snapshot`: what the screen would show, as text, Markdown, JSON or a picture.

use super::args::{PaneName, ScreenshotArgs, ViewName, parse_seconds};
use super::exit::{EXIT_FAILED, EXIT_OK, print_error, usage_error};
use super::offscreen;
use super::output_file::write_file;
use super::printer::{NextStep, Printer, block_on};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::root::Root;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus snapshot -d 5 --format json | jq .devices\n  \
                        iotop-plus snapshot -n 30 --format png -o screen.png\n  \
                        iotop-plus snapshot --format markdown --pane devices --pane memory")]
pub struct SnapshotArgs {
    /// Seconds a sample covers, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub delay: f64,
    /// Samples; each covers the delay, the first one too.
    #[arg(short = 'n', long = "count", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Only this pane; may be given several times, once for a picture.
    #[arg(long, value_name = "PANE", value_enum)]
    pub pane: Vec<PaneName>,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: SnapshotFormat,
    /// Write to this file instead of standard output; an existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For pictures.
    #[command(flatten)]
    pub picture: ScreenshotArgs,
}

/// Written forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotFormat {
    /// Aligned columns.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object a sample and line, documented in the README; with panes chosen, without the others' keys.
    Json,
    /// The screen as a picture, after the last sample: it needs no fonts here.
    Png,
    /// The screen as a picture whose text can be searched.
    Svg,
    /// The screen as a page whose text can be copied.
    Html,
    /// The screen for `cat`: text with colours.
    Ansi,
}

impl SnapshotFormat {
    /// The name of the screen's form, if it is one of the screen.
    pub fn screenshot_format_name(self) -> Option<&'static str> {
        match self {
            SnapshotFormat::Text | SnapshotFormat::Markdown | SnapshotFormat::Json => None,
            SnapshotFormat::Png => Some("png"),
            SnapshotFormat::Svg => Some("svg"),
            SnapshotFormat::Html => Some("html"),
            SnapshotFormat::Ansi => Some("ansi"),
        }
    }
}

/// Settings and limits are read anew so often, for what grows in between.
const FACTS_EVERY: Duration = Duration::from_secs(15);

/// Prints samples, or keeps them and writes them to a file.
pub fn run(root: &Root, args: &SnapshotArgs, tracing: bool) -> anyhow::Result<u8> {
    let scope = scope_of_panes(&args.pane);
    // Every view of the screen shows something of the findings.
    let findings = scope.findings || args.format.screenshot_format_name().is_some();
    let interval = Duration::from_secs_f64(args.delay);
    // Asked for by name: it slows every system call of the machine a little.
    let syncs = args.pane.contains(&PaneName::Syncs) || args.picture.view == Some(ViewName::Syncs);
    if let Err(why) =
        offscreen::check_options(args.format.screenshot_format_name(), &args.picture, &args.pane, args.output.is_none())
    {
        return usage_error(&why);
    }
    let mut kept = Vec::new();
    block_on(async {
        let needs = SamplerOptions {
            threads: false,
            read_every_task: scope.processes,
            queue_settings: (args.format == SnapshotFormat::Json && scope.devices) || findings,
            kernel_log: scope.kernel_log || findings,
            keep_events: false,
            tracing: tracing && (scope.devices || scope.memory || scope.processes || scope.findings || syncs),
            slow_syncs_from: syncs.then_some(SLOW_SYNC_THRESHOLD),
            facts_every: findings.then_some(FACTS_EVERY),
        };
        let mut gather = Sampler::start(root, interval, needs)?;
        let mut printer = Printer::start(Some(args.count))?;
        let mut nth = 0;
        while let NextStep::Sample = printer.next_step(&mut gather).await? {
            nth += 1;
            let text = match args.format.screenshot_format_name() {
                None => render_text(&gather, args.format, scope, nth == 1)?.into_bytes(),
                // One picture, with what came before it in its graphs.
                Some(_) if nth < args.count => Vec::new(),
                Some(form) => offscreen::render_live(&mut gather, args, form),
            };
            match args.output {
                None => printer.print(text),
                Some(_) => {
                    kept.extend(text);
                    printer.print(Vec::new());
                }
            }
        }
        Ok(())
    })?;
    match &args.output {
        None => Ok(EXIT_OK),
        Some(_) if kept.is_empty() => {
            print_error("interrupted before there was anything to write; nothing was written");
            Ok(EXIT_FAILED)
        }
        Some(path) => write_file(root, path, kept.into()),
    }
}

/// What the panes chosen come to; none: all.
pub(super) fn scope_of_panes(panes: &[PaneName]) -> SnapshotScope {
    if panes.is_empty() {
        return SnapshotScope::ALL;
    }
    SnapshotScope {
        devices: panes.contains(&PaneName::Devices),
        processes: panes.contains(&PaneName::Processes),
        memory: panes.contains(&PaneName::Memory),
        kernel_log: panes.contains(&PaneName::Kernel),
        findings: panes.contains(&PaneName::Findings),
        syncs: panes.contains(&PaneName::Syncs),
    }
}

fn render_text(gather: &Sampler, format: SnapshotFormat, scope: SnapshotScope, first: bool) -> anyhow::Result<String> {
    let world = &gather.state;
    let blank = if first { "" } else { "\n" };
    Ok(match format {
        SnapshotFormat::Text => blank.to_owned() + &snapshot::text(world, &gather.findings, scope),
        SnapshotFormat::Markdown => snapshot::markdown(world, &gather.findings, scope),
        _ => json::snapshot_json(world, &gather.findings, scope, gather.since, gather.gaps())? + "\n",
    })
}
