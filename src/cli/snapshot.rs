//! The subcommand `snapshot`: prints what the screen shows as text, Markdown, JSON or an image.

use super::args::{ScreenshotArgs, image_format, parse_pane, parse_seconds};
use super::exit::EXIT_OK;
use super::offscreen;
use super::printer::{Printer, block_on};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use super::worker_job::write_file;
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::root::Root;
use crate::tui::action::ViewId;
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus snapshot -d 5 --format json | jq .devices\n  \
                        iotop-plus snapshot -n 30 --format png -o screen.png\n  \
                        iotop-plus snapshot --format markdown --pane devices --pane memory")]
pub(super) struct SnapshotArgs {
    /// Seconds per sample, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub(super) delay: f64,
    /// Number of samples; each covers the delay, including the first.
    #[arg(short = 'n', long = "count", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: u64,
    /// Only this pane; repeatable, except for images.
    #[arg(long, value_name = "PANE", value_parser = parse_pane())]
    pub(super) pane: Vec<ViewId>,
    /// Also trace what tasks wait for; costs some time for every sleep and every request.
    #[arg(long)]
    pub(super) waits: bool,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub(super) format: SnapshotFormat,
    /// Write to this file instead of standard output; existing files are not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) picture: ScreenshotArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SnapshotFormat {
    /// Aligned columns.
    Text,
    /// Markdown tables.
    Markdown,
    /// One JSON object per sample and line, documented in docs/reference/json.md; with --pane, only the keys of those panes.
    Json,
    /// The screen after the last sample as a PNG image; needs no fonts.
    Png,
    /// The screen as an SVG image with searchable text.
    Svg,
    /// The screen as an HTML page with selectable text.
    Html,
    /// The screen as text with colour escapes.
    Ansi,
}

/// How often settings and limits are read, to see them change.
const FACTS_EVERY: Duration = Duration::from_secs(15);

pub(super) fn run(root: &Root, args: &SnapshotArgs, tracing: bool) -> anyhow::Result<u8> {
    let scope = SnapshotScope { waits: args.waits, ..scope_of_panes(&args.pane) };
    // Every view shows findings.
    let image = image_format(args.format);
    let findings = scope.findings || image.is_some();
    let interval = Duration::from_secs_f64(args.delay);
    // Only on request: tracing slows every system call slightly.
    let is_wanted = |view| args.pane.contains(&view) || args.picture.view == Some(view);
    let (syncs, files) = (is_wanted(ViewId::Syncs), is_wanted(ViewId::Files));
    offscreen::check_options(image, &args.picture, &args.pane, args.output.is_none())?;
    let mut output = Vec::new();
    block_on(async {
        let options = SamplerOptions {
            read_every_task: scope.processes,
            queue_settings: (args.format == SnapshotFormat::Json && scope.devices) || findings,
            kernel_log: scope.kernel_log || findings,
            tracing: tracing
                && (scope.devices
                    || scope.memory
                    || scope.processes
                    || scope.findings
                    || syncs
                    || files
                    || scope.waits),
            slow_syncs_from: syncs.then_some(SLOW_SYNC_THRESHOLD),
            files,
            waits: scope.waits,
            facts_every: findings.then_some(FACTS_EVERY),
            ..SamplerOptions::default()
        };
        let mut sampler = Sampler::start(root, interval, options)?;
        let mut printer = Printer::new(Some(args.count));
        let mut nth = 0;
        while printer.wait_for_sample(&mut sampler).await? {
            nth += 1;
            let text = match image {
                None => render_text(&sampler, args.format, scope, nth == 1)?.into_bytes(),
                // A single image, whose graphs show the earlier samples.
                Some(_) if nth < args.count => Vec::new(),
                Some(form) => {
                    offscreen::render_live(&mut sampler, &args.picture, args.pane.first().copied(), interval, form)
                }
            };
            match args.output {
                None => printer.print(text),
                Some(_) => {
                    output.extend(text);
                    printer.print(Vec::new());
                }
            }
        }
        Ok(())
    })?;
    match &args.output {
        None => Ok(EXIT_OK),
        Some(_) if output.is_empty() => bail!("interrupted before there was anything to write; nothing was written"),
        Some(path) => write_file(root, path, output.into()),
    }
}

/// The parts of a snapshot for the selected panes; all if none is selected.
pub(super) fn scope_of_panes(panes: &[ViewId]) -> SnapshotScope {
    let has = |pane| panes.is_empty() || panes.contains(&pane);
    SnapshotScope {
        devices: has(ViewId::Devices),
        processes: has(ViewId::Processes),
        memory: has(ViewId::Memory),
        kernel_log: has(ViewId::Kernel),
        findings: has(ViewId::Findings),
        syncs: has(ViewId::Syncs),
        files: has(ViewId::Files),
        waits: false,
    }
}

fn render_text(sampler: &Sampler, format: SnapshotFormat, scope: SnapshotScope, first: bool) -> anyhow::Result<String> {
    let state = &sampler.state;
    let blank = if first { "" } else { "\n" };
    Ok(match format {
        SnapshotFormat::Text => blank.to_owned() + &snapshot::text(state, &sampler.findings, scope),
        SnapshotFormat::Markdown => snapshot::markdown(state, &sampler.findings, scope),
        _ => json::snapshot_json(state, &sampler.findings, scope, sampler.since, sampler.gaps())? + "\n",
    })
}
