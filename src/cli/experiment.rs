//! The subcommand `experiment`: runs an experiment, or shows stored ones.

use super::args::parse_lease_secs;
use super::bench::{clear_progress_line, load_stored, save_result};
use super::child_progress::{overwrite_progress_line, run_until_last_message};
use super::exit::{EXIT_FAILED, EXIT_OK, print_error, print_text, usage};
use super::tune::common::require_root;
use super::worker_job::write_file;
use super::workload_args::{WorkloadArgs, build_plan};
use crate::bench::description::progress_line;
use crate::bench::plan::PlanError;
use crate::bench::report::RunEnd;
use crate::bench::store::{ResultStore, StoredReport};
use crate::bench::workloads;
use crate::experiment::arm_settings;
use crate::experiment::description::{describe_experiment, extend_past_dirty_expire};
use crate::experiment::message::{ExperimentMessage, RoundPhase};
use crate::experiment::report::{ExperimentReport, ExperimentReportFormat, compare, verdict};
use crate::experiment::spec::{ExperimentSpec, OnComplete};
use crate::experiment::{child, system_environment};
use crate::root::Root;
use crate::units::format_bytes_long;
use clap::{Args, Subcommand};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Run an experiment, or show stored ones.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ExperimentArgs {
    #[command(subcommand)]
    pub(super) stored: Option<ExperimentCommand>,
    #[command(flatten)]
    pub(super) run: ExperimentRunArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum ExperimentCommand {
    /// List stored experiments with their verdicts.
    List,
    /// Show a stored experiment.
    Show {
        /// Its name, or its number in `experiment list`.
        result: String,
        /// Output format.
        #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
        format: ExperimentReportFormat,
        /// Write to this file instead of standard output; existing files are not replaced.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compare two stored experiments.
    Compare {
        /// Name, or number in `experiment list`.
        a: String,
        /// The other one.
        b: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct ExperimentRunArgs {
    /// A profile from `bench list`, or a fio job file: the workload of every round.
    // Optional only because subcommands do not need it.
    #[arg(long, value_name = "PROFILE", required = true)]
    pub(super) workload: Option<String>,
    /// Directory on the storage to use.
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// The settings of B: KNOB[@WHERE]=VALUE, one or more.
    #[arg(long, value_name = "KNOB=VALUE", num_args = 1.., required = true)]
    pub(super) set: Vec<String>,
    /// The settings of A; by default the current ones.
    #[arg(long, value_name = "KNOB=VALUE", num_args = 1..)]
    pub(super) base: Vec<String>,
    /// Rounds per arm, 1 to 50; fewer than 4 cannot be significant.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(super) rounds: u32,
    /// Add a negative control: the same change under direct I/O, which dirty-page knobs cannot affect.
    #[arg(long)]
    pub(super) control: bool,
    /// At the end: undo, or if B is better keep (until reboot) or lease=TIME.
    #[arg(long, value_name = "WHAT", default_value = "undo", value_parser = parse_on_complete)]
    pub(super) then: OnComplete,
    /// Seconds that dirty pages may take to drain before a round.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) drain_limit: u64,
    /// Seconds to observe other activity before a round.
    #[arg(long, alias = "calm", value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=60))]
    pub(super) baseline: u64,
    /// txlog: transactions=N, min=N, max=N (records per transaction); repeatable.
    #[arg(long, value_name = "KEY=N")]
    pub(super) tx: Vec<String>,
    #[command(flatten)]
    pub(super) load: WorkloadArgs,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub(super) format: ExperimentReportFormat,
    /// Write to this file instead of standard output; existing files are not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the plan and exit.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not store the result.
    #[arg(long)]
    pub(super) no_keep: bool,
    /// Print no progress on stderr.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

fn parse_on_complete(text: &str) -> Result<OnComplete, String> {
    match (text, text.strip_prefix("lease=")) {
        ("undo", _) => Ok(OnComplete::Undo),
        ("keep", _) => Ok(OnComplete::Keep),
        (_, Some(time)) => parse_lease_secs(time).map(OnComplete::Lease),
        _ => Err("must be undo, keep or lease=TIME".into()),
    }
}

pub(super) fn run(root: Root, what: ExperimentArgs) -> anyhow::Result<u8> {
    match what.stored {
        None => run_new(&root, &what.run),
        Some(ExperimentCommand::List) => list_stored(),
        Some(ExperimentCommand::Show { result, format, output }) => {
            output_report(&root, &load_stored(&result)?, format, output.as_deref())
        }
        Some(ExperimentCommand::Compare { a, b }) => {
            print_text(&compare::compare_text(&load_stored(&a)?, &load_stored(&b)?).map_err(usage)?)
        }
    }
}

/// The child process that runs an experiment, or the one that syncs.
pub(super) fn run_child(root: Root, sync: Option<Option<PathBuf>>) -> anyhow::Result<u8> {
    match sync {
        Some(directory) => system_environment::sync_filesystems(directory.as_deref())?,
        None => child::main(root)?,
    }
    Ok(EXIT_OK)
}

fn list_stored() -> anyhow::Result<u8> {
    let entries = ResultStore::for_user_of::<ExperimentReport>()?.summaries::<ExperimentReport>()?;
    if entries.is_empty() {
        return print_text("No experiment is kept.\n");
    }
    let line = |e: StoredReport| format!("{:>3}  {:<24} {}\n", e.number, e.id, crate::sanitize::sanitize(e.summary));
    print_text(&entries.into_iter().map(line).collect::<String>())
}

fn output_report(
    root: &Root,
    report: &ExperimentReport,
    format: ExperimentReportFormat,
    output: Option<&Path>,
) -> anyhow::Result<u8> {
    let written = report.render(format);
    match output {
        Some(path) => write_file(root, path, written.into()),
        None => print_text(&written),
    }
}

fn run_new(root: &Root, options: &ExperimentRunArgs) -> anyhow::Result<u8> {
    let mut spec = spec_from_args(options).map_err(usage)?;
    let checked = arm_settings::validate(root, &spec)?;
    if has_open_duration(options) {
        extend_past_dirty_expire(&mut spec, &checked);
    }
    spec.check().map_err(usage)?;
    let description = describe_experiment(&spec, &checked);
    if options.dry_run {
        return print_text(&description);
    }
    require_root(root, "an experiment sets knobs, which")?;
    if !options.quiet {
        eprint!("{description}");
    }
    match run_with_progress(root, &spec, options.quiet)? {
        ExperimentMessage::Report(report) => save_and_output(root, *report, options),
        ExperimentMessage::Refused(refusal) => Err(refusal.into()),
        ExperimentMessage::Failed(why) => anyhow::bail!("{why}"),
        ExperimentMessage::Progress(_) | ExperimentMessage::Round(_) | ExperimentMessage::Note(_) => {
            anyhow::bail!("the child process of the experiment ended early")
        }
    }
}

fn spec_from_args(o: &ExperimentRunArgs) -> Result<ExperimentSpec, PlanError> {
    let profile = o.workload.as_deref().unwrap_or_default();
    let (_, plan) = build_plan(profile, o.dir.as_deref(), &o.load, &o.tx, false)?;
    let spec = ExperimentSpec {
        plan,
        base_assignments: o.base.clone(),
        set_assignments: o.set.clone(),
        rounds: o.rounds,
        control: o.control,
        on_complete: o.then,
        drain_limit_ms: o.drain_limit * 1000,
        baseline_ms: o.baseline * 1000,
    };
    spec.check()?;
    Ok(spec)
}

/// Whether the program chooses the length of a round.
fn has_open_duration(o: &ExperimentRunArgs) -> bool {
    let job_file = o.workload.as_ref().is_some_and(|w| w.ends_with(".fio"));
    !o.load.is_given("time") && !o.load.is_given("io-size") && o.tx.is_empty() && !job_file
}

fn run_with_progress(root: &Root, spec: &ExperimentSpec, quiet: bool) -> anyhow::Result<ExperimentMessage> {
    let live = !quiet && std::io::stderr().is_terminal();
    let (mut at, note) = (0, |text: &str| {
        clear_progress_line(live);
        let _ = writeln!(std::io::stderr(), "{}", crate::sanitize::sanitize(text));
    });
    let last = run_until_last_message(root, spec, |message: ExperimentMessage| match message {
        ExperimentMessage::Progress(p) => {
            at = p.round;
            if live {
                let what = match (&p.bench, p.phase) {
                    (Some(bench), RoundPhase::Work) => progress_line(bench),
                    (_, phase) => phase.description().into(),
                };
                let dirty =
                    p.dirty_point.map_or(String::new(), |d| format!("  dirty {}", format_bytes_long(d.dirty_bytes)));
                let (round, total, arm) = (p.round, p.total_rounds, p.arm.name());
                overwrite_progress_line(&format!("round {round} of {total}, {arm}: {what}{dirty}"));
            }
        }
        ExperimentMessage::Round(round) if !quiet => {
            let plan = &round.bench.plan.profile;
            let metric = workloads::primary_metric(plan);
            let value = metric.zip(round.value).map(|(m, v)| format!("{} {}", m.name, verdict::format_metric(&m, v)));
            let (total, arm, value) = (spec.total_rounds(), round.arm.name(), value.as_deref().unwrap_or("-"));
            note(&format!("round {at} of {total}, {arm}: {value}"));
        }
        ExperimentMessage::Note(text) if !quiet => note(&format!("iotop-plus: {text}")),
        _ => {}
    });
    clear_progress_line(live);
    last
}

fn save_and_output(root: &Root, mut report: ExperimentReport, options: &ExperimentRunArgs) -> anyhow::Result<u8> {
    if !options.no_keep {
        report.id = save_result(&report);
    }
    let code = output_report(root, &report, options.format, options.output.as_deref())?;
    Ok(match &report.end {
        RunEnd::Failed(why) | RunEnd::Stalled(why) => {
            print_error(&format!("{why}. {}", report.aftermath));
            EXIT_FAILED
        }
        RunEnd::Complete | RunEnd::Cancelled => code,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parser::{Cli, CliCommand};
    use super::*;
    use crate::bench::params::PARAMS;
    use crate::bench::plan::BenchPlan;
    use crate::bench::workloads::WORKLOADS;
    use crate::experiment::command_line;
    use clap::Parser;

    /// Parses the command line that `command::args` builds for a spec.
    fn parse_command_line_of(asked: &ExperimentSpec) -> ExperimentSpec {
        let args = command_line::command_args(asked);
        let cli = Cli::try_parse_from(std::iter::once("iotop-plus".to_owned()).chain(args.clone()))
            .unwrap_or_else(|err| panic!("{args:?}: {err}"));
        let Some(CliCommand::Experiment(e)) = cli.command else { panic!("{args:?}") };
        spec_from_args(&e.run).unwrap_or_else(|why| panic!("{args:?}: {why}"))
    }

    #[test]
    fn the_sudo_command_line_runs_the_same_experiment() {
        let mut lines = 0;
        for w in WORKLOADS {
            let directory = if w.needs_directory { "/srv/a b".into() } else { Default::default() };
            let plan = BenchPlan { directory, ..w.defaults() };
            let set = vec!["vm.dirty_ratio=80".into(), "atime@/a b=noatime".into()];
            let start = ExperimentSpec { plan, set_assignments: set, ..ExperimentSpec::default() };
            assert_eq!(parse_command_line_of(&start), start);
            for p in PARAMS.iter().filter(|p| w.params().contains(&p.name)) {
                for text in p.choices().iter().copied().chain(["1", "2", "512", "8192", "64M"]) {
                    let mut asked = start.clone();
                    let taken = p.set(&mut asked.plan, text);
                    if taken.is_ok() && asked.check().is_ok() {
                        assert_eq!(parse_command_line_of(&asked), asked, "{} {} {text}", w.name, p.name);
                        lines += 1;
                    }
                }
            }
        }
        assert!(lines > 200, "{lines}");
        let plan = BenchPlan { directory: "/srv".into(), ..workloads::find_workload("fsync").unwrap().defaults() };
        let all = ExperimentSpec {
            plan: BenchPlan { network: Some("/srv".into()), ..plan },
            base_assignments: vec!["vm.dirty_ratio=20".into()],
            set_assignments: vec!["vm.dirty_ratio=80".into()],
            rounds: 7,
            control: true,
            on_complete: OnComplete::Lease(90),
            drain_limit_ms: 7000,
            baseline_ms: 0,
        };
        assert_eq!(parse_command_line_of(&all), all);
        let kept = ExperimentSpec { on_complete: OnComplete::Keep, ..all };
        assert_eq!(parse_command_line_of(&kept), kept);
    }
}
