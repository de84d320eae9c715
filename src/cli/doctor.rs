//! `doctor`: looks for a while, then says what is wrong, why, and what to try. The exit code says how bad.

use super::exit::{EXIT_CRITICAL, EXIT_FAILED, EXIT_OK, EXIT_WARNINGS, print_error};
use super::printer::{NextStep, Printer, block_on};
use super::sampler::{SLOW_SYNC_THRESHOLD, Sampler, SamplerOptions};
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::export::findings::{self, IncidentJson, SkippedRuleJson};
use crate::export::json::UnavailableSource;
use crate::export::snapshot::header_line;
use crate::root::Root;
use crate::units::format_rfc3339;
use clap::Args;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iotop-plus doctor\n  iotop-plus doctor -d 30 --json | jq -r '.stories[].title'\n\n\
                        Exit codes: 0 nothing wrong (notes at most), 10 warnings, 11 something critical;\n\
                        1 failed, 2 wrong usage. What could not be judged is said, with the reason."
)]
pub struct DoctorArgs {
    /// Seconds to look, 5 to 3600; most findings need 5 to 10.
    #[arg(short, long, value_name = "S", default_value = "12", value_parser = parse_doctor_seconds)]
    pub delay: f64,
    /// One JSON object, documented in the README.
    #[arg(long)]
    pub json: bool,
}

/// As long as rules need to look, at least.
fn parse_doctor_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (5.0..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err("must be 5 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
    }
}

/// A tick: short enough for rules to see a course, long enough for a rate.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Settings and limits are read several times within the look, for what grows meanwhile.
const FACTS_READS: u32 = 3;
/// Cells of a line.
const TEXT_WIDTH: usize = 100;

/// Raised when a name goes or changes its meaning; new names do not raise it.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct DoctorJson<'a> {
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
pub fn run(root: &Root, args: &DoctorArgs, tracing: bool) -> anyhow::Result<u8> {
    let wanted = Duration::from_secs_f64(args.delay);
    block_on(async {
        let facts = Some(wanted / FACTS_READS);
        let needs = SamplerOptions {
            threads: false,
            read_every_task: true,
            queue_settings: true,
            kernel_log: true,
            keep_events: false,
            facts_every: facts,
            tracing,
            slow_syncs_from: tracing.then_some(SLOW_SYNC_THRESHOLD),
        };
        let mut gather = Sampler::start(root, SAMPLE_INTERVAL, needs)?;
        let mut printer = Printer::start(Some(1))?;
        let (began, mut code) = (Instant::now(), None);
        while let NextStep::Sample = printer.next_step(&mut gather).await? {
            let looked = began.elapsed();
            if looked >= wanted {
                code = Some(verdict(&gather.findings).1);
                printer.print(match args.json {
                    true => render_json(&gather, looked)?,
                    false => render_text(&gather, looked),
                });
            }
        }
        Ok(code.unwrap_or_else(|| {
            print_error("interrupted before the look was over; nothing was judged");
            EXIT_FAILED
        }))
    })
}

fn verdict(engine: &RuleEngine) -> (&'static str, u8) {
    match engine.worst_severity() {
        Some(Severity::Critical) => ("critical", EXIT_CRITICAL),
        Some(Severity::Warn) => ("warnings", EXIT_WARNINGS),
        Some(Severity::Note) | None => ("fine", EXIT_OK),
    }
}

fn render_text(gather: &Sampler, looked: Duration) -> String {
    let mut out = format!("{}\nlooked for {:.0} s: ", header_line(&gather.state), looked.as_secs_f64());
    out.push_str(&findings::findings_text(&gather.findings, gather.state.now(), TEXT_WIDTH));
    for gap in gather.gaps() {
        out.push_str(&format!("  {}\n", gap.reason));
    }
    out
}

fn render_json(gather: &Sampler, looked: Duration) -> anyhow::Result<String> {
    let (verdict, exit) = verdict(&gather.findings);
    let now = gather.state.now();
    let object = DoctorJson {
        schema: SCHEMA_VERSION,
        time: format_rfc3339(now.wall_ns),
        host: &gather.state.host.name,
        kernel: &gather.state.host.kernel,
        looked_s: (looked.as_secs_f64() * 10.0).round() / 10.0,
        verdict,
        exit,
        stories: findings::incidents_json(&gather.findings, now),
        not_judged: findings::skipped_rules_json(&gather.findings),
        unavailable: gather.gaps().to_vec(),
    };
    Ok(serde_json::to_string(&object)? + "\n")
}
