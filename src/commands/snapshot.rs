//! `snapshot`: what the screen would show, as text, Markdown, JSON or a picture.

use super::bench::usage_error;
use super::printer::{NextStep, Printer, block_on};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use super::{EXIT_FAILED, EXIT_OK, offscreen, print_error};
use crate::cli::snapshot::{PaneName, SnapshotArgs, SnapshotFormat, ViewName};
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::jobs::atomic_write::{FileContents, IfExists};
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::jobs::pool::WorkerPool;
use crate::root::Root;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the file asked for may take to be written, and how much longer for each thousand bytes: its
/// file system may hang.
const FILE_WRITE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Settings and limits are read anew so often, for what grows in between.
const FACTS_EVERY: Duration = Duration::from_secs(15);
const FILE_WRITE_TIMEOUT_PER_KB: Duration = Duration::from_millis(1);

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

/// In a child: a file system that hangs must not take this program with it.
pub(super) fn write_file(root: &Root, path: &Path, contents: FileContents) -> anyhow::Result<u8> {
    let (tx, rx) = mpsc::channel();
    let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
    let path = std::path::absolute(path)?;
    let within = FILE_WRITE_TIMEOUT + FILE_WRITE_TIMEOUT_PER_KB * (contents.bytes().len() / 1000) as u32;
    let job = WorkerJob::WriteFile { path: path.clone(), contents, existing: IfExists::Fail, make_dir: false };
    let why = match pool.start(job).map(|()| rx.recv_timeout(within)) {
        Ok(Ok(WorkerReply::FileWritten { .. })) => return Ok(EXIT_OK),
        Ok(Ok(WorkerReply::Failed(why))) => why,
        Ok(Ok(_)) => format!("{}: not written", path.display()),
        Ok(Err(_)) => format!(
            "{}: its file system has not answered for {:.1} s; write elsewhere",
            path.display(),
            within.as_secs_f64()
        ),
        Err(why) => why,
    };
    print_error(&why);
    Ok(EXIT_FAILED)
}
