//! The subcommand `bench`: lists profiles and results, runs a benchmark, compares two results.

use super::bench_output::BenchOutput;
use super::bench_progress::{ProgressKind, ProgressPrinter};
use super::child_progress::{overwrite_progress_line, run_until_last_message};
use super::exit::{EXIT_CANCELLED, EXIT_FAILED, EXIT_OK, print_error, print_text, usage};
use super::workload_args::{WorkloadArgs, build_plan};
use crate::bench::description::describe_run;
use crate::bench::fio::export::to_job_file;
use crate::bench::message::BenchMessage;
use crate::bench::plan::BenchPlan;
use crate::bench::report::{BenchReport, RunEnd};
use crate::bench::session::DiskCounterReader;
use crate::bench::store::{ResultStore, Storable};
use crate::bench::workloads::WORKLOADS;
use crate::bench::{child, compare};
use crate::experiment::dirty_pages::SystemCounters;
use crate::experiment::report::groups::compare_groups;
use crate::root::Root;
use crate::tuning::plan::TuneError;
use clap::{Args, Subcommand};
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
        #[command(flatten)]
        output: BenchOutput,
    },
    /// Compare stored results: two in full, more in groups of the same settings, with intervals.
    #[command(after_help = "Examples:\n  iotop-plus bench compare 2 1\n  \
                            iotop-plus bench compare 8 7 6 5 --against 4 3 2 1")]
    Compare {
        /// Names, or numbers in `bench list`.
        #[arg(required = true)]
        results: Vec<String>,
        /// Results after a change, as one group against all others.
        #[arg(long, num_args = 1.., value_name = "RESULT")]
        against: Vec<String>,
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
    #[command(flatten)]
    pub(super) output: BenchOutput,
    /// Print the plan and exit.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With a fio job file: refuse what would be done otherwise than in fio.
    #[arg(long)]
    pub(super) strict: bool,
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

pub(super) fn run(root: Root, what: BenchCommand) -> anyhow::Result<u8> {
    match what {
        BenchCommand::List => list_profiles_and_results(),
        BenchCommand::Run(options) => run_benchmark(&root, &options),
        BenchCommand::Show { result, output } => output.write(&root, &load_stored(&result)?).map(|()| EXIT_OK),
        BenchCommand::Compare { results, against } => compare_results(&results, &against),
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

fn compare_results(results: &[String], against: &[String]) -> anyhow::Result<u8> {
    if let ([a, b], []) = (results, against) {
        return print_text(&compare::compare_text(&load_stored(a)?, &load_stored(b)?, 80).map_err(usage)?);
    }
    let load = |names: &[String]| names.iter().map(|name| load_stored(name)).collect::<anyhow::Result<Vec<_>>>();
    print_text(&compare_groups(load(results)?, load(against)?).map_err(usage)?)
}

fn run_benchmark(root: &Root, options: &BenchRunArgs) -> anyhow::Result<u8> {
    let directory = options.directory.as_deref();
    let (workload, mut plan) =
        build_plan(&options.profile, directory, &options.load, &options.set, options.strict).map_err(usage)?;
    plan.interval_histograms = options.output.fio_logs.is_some();
    if options.fio_job {
        return print_text(&to_job_file(&plan).map_err(usage)?);
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
        BenchMessage::Progress(_) | BenchMessage::Note(_) => anyhow::bail!("the measuring process ended early"),
    };
    save_and_print(root, last, options)
}

fn save_and_print(root: &Root, mut report: BenchReport, options: &BenchRunArgs) -> anyhow::Result<u8> {
    if !options.no_keep {
        report.id = save_result(&report);
    }
    options.output.write(root, &report)?;
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
    let mut printer = ProgressPrinter::new(match (quiet, std::io::stderr().is_terminal()) {
        (true, _) => ProgressKind::Quiet,
        (false, true) => ProgressKind::Live,
        (false, false) => ProgressKind::Lines,
    });
    let last = run_until_last_message(root, plan, |message: BenchMessage| match message {
        BenchMessage::Progress(p) => printer.show(&p),
        BenchMessage::Note(note) => printer.note(&note),
        _ => {}
    });
    printer.clear();
    last
}

pub(super) fn clear_progress_line(live: bool) {
    if live {
        overwrite_progress_line("");
    }
}
