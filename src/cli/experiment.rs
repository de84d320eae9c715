//! The command line of `experiment`.

use super::{WorkloadArgs, tune::parse_lease_secs};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `experiment`: run one, or look at kept ones.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExperimentArgs {
    /// Kept ones.
    #[command(subcommand)]
    pub stored: Option<ExperimentCommand>,
    /// A new one.
    #[command(flatten)]
    pub run: ExperimentRunArgs,
}

/// Subcommands: experiments that are kept.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Those that are kept, with their verdicts.
    List,
    /// One of them again.
    Show {
        /// Its name, or its number in `experiment list`.
        result: String,
        /// How it is written.
        #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
        format: ExperimentFormat,
        /// Write to this file instead of standard output; an existing file is not replaced.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Two of them side by side.
    Compare {
        /// Name, or number in `experiment list`.
        a: String,
        /// The other one.
        b: String,
    },
}

/// Options of a new experiment.
#[derive(Debug, Args)]
pub struct ExperimentRunArgs {
    /// A profile from `bench list`, or a fio job file: the work of every round.
    // Not there with a subcommand, which needs none.
    #[arg(long, value_name = "PROFILE", required = true)]
    pub workload: Option<String>,
    /// Directory on the storage to work on.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// What B changes: KNOB[@WHERE]=VALUE, one or several.
    #[arg(long, value_name = "KNOB=VALUE", num_args = 1.., required = true)]
    pub set: Vec<String>,
    /// What A sets; without it A is how things stand.
    #[arg(long, value_name = "KNOB=VALUE", num_args = 1..)]
    pub base: Vec<String>,
    /// Rounds of each arm, 1 to 50; fewer than 4 can show nothing.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub rounds: u32,
    /// A negative control after it: the same change under direct I/O, which dirty-page knobs cannot act on.
    #[arg(long)]
    pub control: bool,
    /// At the end: undo, or if B is better keep (until the boot) or lease=TIME.
    #[arg(long, value_name = "WHAT", default_value = "undo", value_parser = parse_after_experiment)]
    pub then: AfterExperiment,
    /// How long dirty pages may take to drain before a round, in seconds.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub drain_limit: u64,
    /// How long others are watched before a round, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=60))]
    pub calm: u64,
    /// txlog: transactions=N, min=N, max=N (records of a transaction); may be given several times.
    #[arg(long, value_name = "KEY=N")]
    pub tx: Vec<String>,
    /// The work itself.
    #[command(flatten)]
    pub load: WorkloadArgs,
    /// How the result is written.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: ExperimentFormat,
    /// Write to this file instead of standard output; an existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only say what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not keep the result.
    #[arg(long)]
    pub no_keep: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What becomes of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterExperiment {
    /// The old values stay.
    Undo,
    /// B stays until the boot.
    Keep,
    /// B on a lease of so many seconds.
    Lease(u64),
}

/// Written forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExperimentFormat {
    /// For people.
    Text,
    /// One object with everything, the rounds' whole reports too.
    Json,
    /// Tables for a ticket.
    Markdown,
}

fn parse_after_experiment(text: &str) -> Result<AfterExperiment, String> {
    match text {
        "undo" => Ok(AfterExperiment::Undo),
        "keep" => Ok(AfterExperiment::Keep),
        _ => match text.strip_prefix("lease=") {
            Some(time) => parse_lease_secs(time).map(AfterExperiment::Lease),
            None => Err("must be undo, keep or lease=TIME".into()),
        },
    }
}
