//! The subcommand `doctor`: observes the machine, then prints what is wrong, why, and what to try. The exit code
//! tells the severity.

use super::args::parse_seconds_from;
use super::exit::{EXIT_CRITICAL, EXIT_OK, EXIT_WARNINGS};
use super::printer::{Printer, block_on};
use super::record::{recording_header, wait_for_writer};
use super::sampler::{Sampler, SamplerOptions};
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::export::findings;
use crate::export::snapshot::header_line;
use crate::recording::writer::{RecorderOptions, RecorderState, RecordingWriter};
use crate::root::Root;
use crate::units::format_rfc3339;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iotop-plus doctor\n  iotop-plus doctor -d 30 --json | jq -r '.stories[].title'\n\n\
                        Exit codes: 0 nothing wrong (notes at most), 10 warnings, 11 something critical;\n\
                        1 failed, 2 wrong usage. What could not be judged is said, with the reason."
)]
pub(super) struct DoctorArgs {
    /// Seconds to observe, 5 to 3600; most findings need 5 to 10.
    #[arg(short, long, value_name = "S", default_value = "12", value_parser = |text: &str| parse_seconds_from(5.0, text))]
    pub(super) delay: f64,
    /// Print one JSON object, documented in docs/reference/json.md.
    #[arg(long)]
    pub(super) json: bool,
    /// Also write what it saw to this recording, whose replay finds the same.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
}

/// Short enough for rules to see trends, long enough for rates.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// How often settings and limits are read while observing, to see them change.
const FACTS_READS: u32 = 3;
const TEXT_WIDTH: usize = 100;

/// Incremented when a field is removed or changes its meaning, not when one is added.
const SCHEMA_VERSION: u32 = 1;

pub(super) fn run(root: &Root, args: &DoctorArgs, tracing: bool) -> anyhow::Result<u8> {
    let duration = Duration::from_secs_f64(args.delay);
    block_on(async {
        let keep_events = args.record.is_some();
        let options = SamplerOptions { keep_events, ..SamplerOptions::for_findings(duration / FACTS_READS, tracing) };
        let mut recorder = args.record.as_deref().map(|file| start_recording(root, file)).transpose()?;
        let mut sampler = Sampler::start(root, SAMPLE_INTERVAL, options)?;
        let mut printer = Printer::new(Some(1));
        let (started, mut code) = (Instant::now(), None);
        while printer.wait_for_sample(&mut sampler).await? {
            if let Some(recorder) = recorder.as_ref().filter(|_| code.is_none()) {
                recorder.record_tick(sampler.take_events(), sampler.state.now().wall_ns);
            }
            let looked = started.elapsed();
            if looked >= duration {
                code = Some(verdict(&sampler.findings).1);
                printer.print(match args.json {
                    true => render_json(&sampler, looked),
                    false => render_text(&sampler, looked),
                });
            }
        }
        if let Some(recorder) = &mut recorder {
            finish_recording(recorder).await?;
        }
        code.context("interrupted before the look was over; nothing was judged")
    })
}

fn start_recording(root: &Root, file: &Path) -> anyhow::Result<RecordingWriter> {
    let path = std::path::absolute(file)?;
    let options = RecorderOptions { path, replace: false, max_size: None, rotate: None };
    RecordingWriter::start(root, options, recording_header(root, SAMPLE_INTERVAL)).context("no thread to record")
}

async fn finish_recording(recorder: &mut RecordingWriter) -> anyhow::Result<()> {
    recorder.finish();
    wait_for_writer(recorder).await;
    let status = recorder.status();
    match status.state {
        RecorderState::Done => Ok(()),
        RecorderState::Failed(why) => bail!("{why}"),
        RecorderState::Running | RecorderState::Full => {
            bail!("{}: its disk does not answer; the recording is not complete", status.path.display())
        }
    }
}

fn verdict(engine: &RuleEngine) -> (&'static str, u8) {
    match engine.worst_severity() {
        Some(Severity::Critical) => ("critical", EXIT_CRITICAL),
        Some(Severity::Warn) => ("warnings", EXIT_WARNINGS),
        Some(Severity::Note) | None => ("fine", EXIT_OK),
    }
}

fn render_text(sampler: &Sampler, looked: Duration) -> String {
    let mut out = format!("{}\nlooked for {:.0} s: ", header_line(&sampler.state), looked.as_secs_f64());
    out.push_str(&findings::findings_text(&sampler.findings, sampler.state.now(), TEXT_WIDTH));
    for gap in sampler.gaps() {
        out.push_str(&format!("  {}\n", gap.reason));
    }
    out
}

fn render_json(sampler: &Sampler, looked: Duration) -> String {
    let (verdict, exit) = verdict(&sampler.findings);
    let now = sampler.state.now();
    let object = json!({
        "schema": SCHEMA_VERSION,
        "time": format_rfc3339(now.wall_ns),
        "host": sampler.state.host.name,
        "kernel": sampler.state.host.kernel,
        "looked_s": (looked.as_secs_f64() * 10.0).round() / 10.0,
        "verdict": verdict,
        "exit": exit,
        "stories": findings::incidents_json(&sampler.findings, &sampler.state),
        "not_judged": findings::skipped_rules_json(&sampler.findings),
        "unavailable": sampler.gaps(),
    });
    format!("{object}\n")
}
