//! `snapshot`: what the screen would show, as text, Markdown, JSON or a picture.

use super::bench::wrong;
use super::gather::{Gather, Needs, SYNCS_FROM};
use super::printer::{Printer, Step, block_on};
use super::{FAILED, FINE, complain, picture};
use crate::cli::snapshot::{Format, PaneName, Snapshot, ViewName};
use crate::export::json;
use crate::export::snapshot::{self, SnapshotScope};
use crate::root::Root;
use crate::worker::atomic_write::{FileContents, IfExists};
use crate::worker::job::{WorkerJob, WorkerReply};
use crate::worker::pool::WorkerPool;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the file asked for may take to be written, and how much longer for each thousand bytes: its
/// file system may hang.
const FILE_WITHIN: Duration = Duration::from_millis(1_500);
/// Settings and limits are read anew so often, for what grows in between.
const FACTS_EVERY: Duration = Duration::from_secs(15);
const PER_KB: Duration = Duration::from_millis(1);

/// Prints samples, or keeps them and writes them to a file.
pub fn run(root: &Root, args: &Snapshot, tracing: bool) -> anyhow::Result<u8> {
    let scope = scope(&args.pane);
    // Every view of the screen shows something of the findings.
    let findings = scope.findings || args.format.screen().is_some();
    let interval = Duration::from_secs_f64(args.delay);
    // Asked for by name: it slows every system call of the machine a little.
    let syncs = args.pane.contains(&PaneName::Syncs) || args.picture.view == Some(ViewName::Syncs);
    if let Err(why) = picture::check(args.format.screen(), &args.picture, &args.pane, args.output.is_none()) {
        return wrong(&why);
    }
    let mut kept = Vec::new();
    block_on(async {
        let needs = Needs {
            threads: false,
            fresh: scope.processes,
            queues: (args.format == Format::Json && scope.devices) || findings,
            log: scope.kernel_log || findings,
            news: false,
            tracing: tracing && (scope.devices || scope.memory || scope.processes || scope.findings || syncs),
            syncs: syncs.then_some(SYNCS_FROM),
            facts: findings.then_some(FACTS_EVERY),
        };
        let mut gather = Gather::start(root, interval, needs)?;
        let mut printer = Printer::start(Some(args.count))?;
        let mut nth = 0;
        while let Step::Sample = printer.step(&mut gather).await? {
            nth += 1;
            let text = match args.format.screen() {
                None => text(&gather, args.format, scope, nth == 1)?.into_bytes(),
                // One picture, with what came before it in its graphs.
                Some(_) if nth < args.count => Vec::new(),
                Some(form) => picture::live(&mut gather, args, form),
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
        None => Ok(FINE),
        Some(_) if kept.is_empty() => {
            complain("interrupted before there was anything to write; nothing was written");
            Ok(FAILED)
        }
        Some(path) => write_file(root, path, kept.into()),
    }
}

/// What the panes chosen come to; none: all.
pub(super) fn scope(panes: &[PaneName]) -> SnapshotScope {
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

fn text(gather: &Gather, format: Format, scope: SnapshotScope, first: bool) -> anyhow::Result<String> {
    let world = &gather.world;
    let blank = if first { "" } else { "\n" };
    Ok(match format {
        Format::Text => blank.to_owned() + &snapshot::text(world, &gather.findings, scope),
        Format::Markdown => snapshot::markdown(world, &gather.findings, scope),
        _ => json::snapshot_json(world, &gather.findings, scope, gather.since, gather.gaps())? + "\n",
    })
}

/// In a child: a file system that hangs must not take this program with it.
pub(super) fn write_file(root: &Root, path: &Path, contents: FileContents) -> anyhow::Result<u8> {
    let (tx, rx) = mpsc::channel();
    let pool = WorkerPool::new(root.clone(), Arc::new(move |_, reply| drop(tx.send(reply))));
    let path = std::path::absolute(path)?;
    let within = FILE_WITHIN + PER_KB * (contents.bytes().len() / 1000) as u32;
    let job = WorkerJob::WriteFile { path: path.clone(), contents, existing: IfExists::Fail, make_dir: false };
    let why = match pool.start(job).map(|()| rx.recv_timeout(within)) {
        Ok(Ok(WorkerReply::FileWritten { .. })) => return Ok(FINE),
        Ok(Ok(WorkerReply::Failed(why))) => why,
        Ok(Ok(_)) => format!("{}: not written", path.display()),
        Ok(Err(_)) => format!(
            "{}: its file system has not answered for {:.1} s; write elsewhere",
            path.display(),
            within.as_secs_f64()
        ),
        Err(why) => why,
    };
    complain(&why);
    Ok(FAILED)
}
