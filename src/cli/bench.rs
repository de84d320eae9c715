//! The subcommand `bench`: lists profiles and results, runs a benchmark, compares two results.

use super::child_progress::{overwrite_progress_line, run_until_last_message};
use super::exit::{EXIT_CANCELLED, EXIT_FAILED, EXIT_OK, print_error, print_text, usage};
use super::workload_args::{WorkloadArgs, build_plan};
use crate::bench::description::{describe_run, progress_line};
use crate::bench::message::BenchMessage;
use crate::bench::plan::BenchPlan;
use crate::bench::report::{self, BenchReport, RunEnd};
use crate::bench::session::DiskCounterReader;
use crate::bench::store::{ResultStore, Storable};
use crate::bench::workloads::WORKLOADS;
use crate::bench::{child, compare, fio_job};
use crate::experiment::dirty_pages::SystemCounters;
use crate::root::Root;
use crate::tuning::plan::TuneError;
use clap::{Args, Subcommand, ValueEnum};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// List profiles and stored results.
    #[command(after_help = "Example:\n  iotop-plus bench list")]
    List,
    /// Run a profile in a directory, or a fio job file.
    #[command(after_help = "Examples:\n  iotop-plus bench run randrw /var/lib/db\n  \
                            iotop-plus bench run fsync /var/lib/etcd --time 60 --format json\n  \
                            iotop-plus bench run randread /data --dry-run\n  \
                            iotop-plus bench run txlog /data --set transactions=10 --set min=1000 --set max=5000\n\n\
                            It works on a nameless file of its own, never on an existing one, and leaves nothing\n\
                            behind. Ctrl-C ends it with the figures up to then.")]
    Run(Box<BenchRunArgs>),
    /// Show a stored result.
    #[command(after_help = "Example:\n  iotop-plus bench show 1 --format markdown")]
    Show {
        /// Its name, or its number in `bench list`.
        result: String,
        /// Output format.
        #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
        format: BenchFormat,
    },
    /// Compare two stored results.
    #[command(after_help = "Example:\n  iotop-plus bench compare 2 1")]
    Compare {
        /// The earlier one: name, or number in `bench list`.
        a: String,
        /// The later one.
        b: String,
    },
}

/// Options of `bench run`; by default those of the profile.
#[derive(Debug, Args)]
pub(super) struct BenchRunArgs {
    /// A profile from `bench list`, or a fio job file (its name ends in .fio).
    pub(super) profile: String,
    /// Directory on the storage to measure.
    pub(super) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(super) load: WorkloadArgs,
    /// txlog: transactions=N, min=N, max=N (records per transaction); repeatable.
    #[arg(long, value_name = "KEY=N")]
    pub(super) set: Vec<String>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub(super) format: BenchFormat,
    /// Print the plan and exit.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print an equivalent fio job file and exit.
    #[arg(long)]
    pub(super) fio_job: bool,
    /// Do not store the result.
    #[arg(long)]
    pub(super) no_keep: bool,
    /// Print no progress on stderr.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BenchFormat {
    /// Plain text.
    Text,
    /// One JSON object with everything.
    Json,
    /// JSON in the structure of fio's output.
    Fio,
    /// Markdown tables.
    Markdown,
}

pub(super) fn run(root: Root, what: BenchCommand) -> anyhow::Result<u8> {
    match what {
        BenchCommand::List => list_profiles_and_results(),
        BenchCommand::Run(options) => run_benchmark(&root, &options),
        BenchCommand::Show { result, format } => print_text(&render_report(&load_stored(&result)?, format)?),
        BenchCommand::Compare { a, b } => {
            print_text(&compare::compare_text(&load_stored(&a)?, &load_stored(&b)?, 80).map_err(usage)?)
        }
    }
}

/// The child process that measures; reads its plan from standard input.
pub(super) fn run_child(root: Root) -> anyhow::Result<u8> {
    let reader = Mutex::new(SystemCounters::new(&root, &["/proc/diskstats"]));
    let counters: DiskCounterReader = Arc::new(move || {
        let sample = reader.lock().unwrap_or_else(|e| e.into_inner()).read();
        sample.disks.ok().cloned().unwrap_or_default()
    });
    child::main(root, counters)?;
    Ok(EXIT_OK)
}

fn list_profiles_and_results() -> anyhow::Result<u8> {
    let mut out = String::from("Profiles (iotop-plus bench run PROFILE DIRECTORY):\n");
    for w in WORKLOADS {
        out.push_str(&format!("  {:<10} {}\n", w.name, w.about));
    }
    if let Ok(store) = ResultStore::for_user_of::<BenchReport>() {
        let entries = store.summaries::<BenchReport>()?;
        if !entries.is_empty() {
            let path = crate::sanitize::sanitize(store.path().as_os_str().as_encoded_bytes());
            out.push_str(&format!("\nResults in {path}:\n"));
        }
        for e in entries {
            out.push_str(&format!("  {:>3}  {:<28} {}\n", e.number, e.id, e.summary));
        }
    }
    print_text(&out)
}

/// A stored result, by its name or number.
pub(super) fn load_stored<T: Storable>(name: &str) -> anyhow::Result<T> {
    Ok(ResultStore::for_user_of::<T>()?.load(name)?)
}

fn render_report(report: &BenchReport, format: BenchFormat) -> anyhow::Result<String> {
    Ok(match format {
        BenchFormat::Text => report::text::text_report(report, report::text::USUAL_WIDTH),
        BenchFormat::Markdown => report::markdown::markdown_report(report),
        BenchFormat::Json => serde_json::to_string(report)? + "\n",
        BenchFormat::Fio => serde_json::to_string_pretty(&report::fio_json::fio_document(report))? + "\n",
    })
}

fn run_benchmark(root: &Root, options: &BenchRunArgs) -> anyhow::Result<u8> {
    let directory = options.directory.as_deref();
    let (workload, plan) = build_plan(&options.profile, directory, &options.load, &options.set).map_err(usage)?;
    if options.fio_job {
        return print_text(&fio_job::to_job_file(&plan).map_err(usage)?);
    }
    let described = describe_run(workload, &plan);
    if options.dry_run {
        return print_text(&described);
    }
    if !options.quiet {
        eprint!("{described}");
    }
    let last = match run_with_progress(root, &plan, options.quiet)? {
        BenchMessage::Report(report) => *report,
        BenchMessage::Refused(refused) => {
            let is_privilege = matches!(refused, TuneError::Privilege(_));
            let kind = if is_privilege { TuneError::Privilege } else { TuneError::Unsafe };
            return Err(kind(format!("refused: {refused}")).into());
        }
        BenchMessage::Failed(why) => anyhow::bail!("{why}"),
        BenchMessage::Progress(_) | BenchMessage::Note(_) => anyhow::bail!("the measuring process broke off"),
    };
    save_and_print(last, options)
}

fn save_and_print(mut report: BenchReport, options: &BenchRunArgs) -> anyhow::Result<u8> {
    if !options.no_keep {
        report.id = save_result(&report);
    }
    print_text(&render_report(&report, options.format)?)?;
    Ok(match report.end {
        RunEnd::Complete => EXIT_OK,
        RunEnd::Cancelled => EXIT_CANCELLED,
        RunEnd::Failed(_) | RunEnd::Stalled(_) => EXIT_FAILED,
    })
}

/// Stores a result; returns its id. A failure is printed, because the result is still to be shown.
pub(super) fn save_result<T: Storable>(report: &T) -> String {
    let saved = ResultStore::for_user_of::<T>().and_then(|store| store.save(report));
    saved.unwrap_or_else(|why| {
        print_error(&format!("result not kept: {why}"));
        report.id().to_owned()
    })
}

fn run_with_progress(root: &Root, plan: &BenchPlan, quiet: bool) -> anyhow::Result<BenchMessage> {
    let live = !quiet && std::io::stderr().is_terminal();
    let last = run_until_last_message(root, plan, |message: BenchMessage| match message {
        BenchMessage::Progress(p) if live => overwrite_progress_line(&progress_line(&p)),
        BenchMessage::Note(note) if !quiet => {
            clear_progress_line(live);
            print_error(&note);
        }
        _ => {}
    });
    clear_progress_line(live);
    last
}

pub(super) fn clear_progress_line(live: bool) {
    if live {
        overwrite_progress_line("");
    }
}
