//! `doctor`: looks for a while, then says what is wrong, why, and what to try. The exit code says how bad.

use super::gather::{Gather, Needs, SYNCS_FROM};
use super::printer::{Printer, Step, block_on};
use super::{CRITICAL, FAILED, FINE, WARNINGS, complain};
use crate::cli::Doctor;
use crate::diagnose::RuleEngine;
use crate::diagnose::finding::Severity;
use crate::export::findings::{self, IncidentJson, SkippedRuleJson};
use crate::export::json::UnavailableSource;
use crate::export::snapshot::header_line;
use crate::root::Root;
use crate::units::format_rfc3339;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A tick: short enough for rules to see a course, long enough for a rate.
const TICK: Duration = Duration::from_secs(1);
/// Settings and limits are read several times within the look, for what grows meanwhile.
const LOOKS: u32 = 3;
/// Cells of a line.
const WIDTH: usize = 100;

/// Raised when a name goes or changes its meaning; new names do not raise it.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    time: String,
    host: &'a str,
    kernel: &'a str,
    looked_s: f64,
    verdict: &'static str,
    exit: u8,
    stories: Vec<IncidentJson>,
    not_judged: Vec<SkippedRuleJson>,
    unavailable: Vec<UnavailableSource>,
}

/// Looks, prints, and answers with the exit code.
pub fn run(root: &Root, args: &Doctor, tracing: bool) -> anyhow::Result<u8> {
    let wanted = Duration::from_secs_f64(args.delay);
    block_on(async {
        let facts = Some(wanted / LOOKS);
        let needs = Needs {
            threads: false,
            fresh: true,
            queues: true,
            log: true,
            news: false,
            facts,
            tracing,
            syncs: tracing.then_some(SYNCS_FROM),
        };
        let mut gather = Gather::start(root, TICK, needs)?;
        let mut printer = Printer::start(Some(1))?;
        let (began, mut code) = (Instant::now(), None);
        while let Step::Sample = printer.step(&mut gather).await? {
            let looked = began.elapsed();
            if looked >= wanted {
                code = Some(verdict(&gather.findings).1);
                printer.print(match args.json {
                    true => json(&gather, looked)?,
                    false => text(&gather, looked),
                });
            }
        }
        Ok(code.unwrap_or_else(|| {
            complain("interrupted before the look was over; nothing was judged");
            FAILED
        }))
    })
}

fn verdict(engine: &RuleEngine) -> (&'static str, u8) {
    match engine.worst_severity() {
        Some(Severity::Critical) => ("critical", CRITICAL),
        Some(Severity::Warn) => ("warnings", WARNINGS),
        Some(Severity::Note) | None => ("fine", FINE),
    }
}

fn text(gather: &Gather, looked: Duration) -> String {
    let mut out = format!("{}\nlooked for {:.0} s: ", header_line(&gather.world), looked.as_secs_f64());
    out.push_str(&findings::findings_text(&gather.findings, gather.world.now(), WIDTH));
    for gap in gather.gaps() {
        out.push_str(&format!("  {}\n", gap.reason));
    }
    out
}

fn json(gather: &Gather, looked: Duration) -> anyhow::Result<String> {
    let (verdict, exit) = verdict(&gather.findings);
    let now = gather.world.now();
    let object = Object {
        schema: SCHEMA,
        time: format_rfc3339(now.wall_ns),
        host: &gather.world.host.name,
        kernel: &gather.world.host.kernel,
        looked_s: (looked.as_secs_f64() * 10.0).round() / 10.0,
        verdict,
        exit,
        stories: findings::incidents_json(&gather.findings, now),
        not_judged: findings::skipped_rules_json(&gather.findings),
        unavailable: gather.gaps().to_vec(),
    };
    Ok(serde_json::to_string(&object)? + "\n")
}
