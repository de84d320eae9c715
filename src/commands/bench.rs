//! `bench`: profiles and results, a run from the command line, two results compared.

use super::child_progress::{overwrite_progress_line, run_until_last_message};
use super::{EXIT_FAILED, EXIT_OK, EXIT_PRIVILEGE, EXIT_REFUSED, EXIT_USAGE, print_error};
use crate::bench::description::{describe_run, progress_line};
use crate::bench::message::BenchMessage;
use crate::bench::params;
use crate::bench::parent::BenchChild;
use crate::bench::plan::BenchPlan;
use crate::bench::report::{self, BenchReport, RunEnd};
use crate::bench::session::DiskCounterReader;
use crate::bench::store::{ResultStore, Storable};
use crate::bench::workloads::{self, WORKLOADS, Workload};
use crate::bench::{child, compare, fio_job};
use crate::cli::{BenchCommand, BenchFormat, BenchRunArgs, WorkloadArgs};
use crate::collect;
use crate::model::sample::Sample;
use crate::root::Root;
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Runs a subcommand of `bench`.
pub fn run(root: Root, what: BenchCommand) -> anyhow::Result<u8> {
    match what {
        BenchCommand::List => list_profiles_and_results(),
        BenchCommand::Run(options) => run_benchmark(&root, &options),
        BenchCommand::Show { result, format } => show_result(&result, format),
        BenchCommand::Compare { a, b } => compare_results(&a, &b),
    }
}

/// The measuring child: reads its plan from standard input.
pub fn run_child(root: Root) -> anyhow::Result<u8> {
    let source = collect::sources(&root).into_iter().find(|s| s.name().ends_with("diskstats"));
    let source = Mutex::new(source);
    let counters: DiskCounterReader = Arc::new(move || {
        let mut sample = Sample::default();
        if let Some(source) = source.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
            source.read()(&mut sample);
        }
        sample.disks.ok().cloned().unwrap_or_default()
    });
    child::main(root, counters)?;
    Ok(EXIT_OK)
}

pub(super) fn print_text(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(EXIT_OK)
}

pub(super) fn usage_error(why: &str) -> anyhow::Result<u8> {
    print_error(why);
    Ok(EXIT_USAGE)
}

fn list_profiles_and_results() -> anyhow::Result<u8> {
    let mut out = String::from("Profiles (iotop-plus bench run PROFILE DIRECTORY):\n");
    for w in WORKLOADS {
        out.push_str(&format!("  {:<10} {}\n", w.name(), w.about()));
    }
    if let Some(store) = ResultStore::for_user() {
        let entries = store.summaries().map_err(anyhow::Error::msg)?;
        if !entries.is_empty() {
            out.push_str(&format!(
                "\nResults in {}:\n",
                crate::sanitize::sanitize(store.path().as_os_str().as_encoded_bytes())
            ));
        }
        for e in entries {
            out.push_str(&format!("  {:>3}  {:<28} {}\n", e.number, e.id, e.summary()));
        }
    }
    print_text(&out)
}

/// Where results of a kind are kept.
pub(super) fn open_store<T: Storable>() -> anyhow::Result<ResultStore> {
    ResultStore::for_user_of::<T>()
        .ok_or_else(|| anyhow::anyhow!("no home directory of this user: set XDG_STATE_HOME to keep results"))
}

fn show_result(name: &str, format: BenchFormat) -> anyhow::Result<u8> {
    let report: BenchReport = open_store::<BenchReport>()?.load(name).map_err(anyhow::Error::msg)?;
    print_text(&render_report(&report, format)?)
}

fn compare_results(a: &str, b: &str) -> anyhow::Result<u8> {
    let store = open_store::<BenchReport>()?;
    let load = |name| store.load::<BenchReport>(name).map_err(anyhow::Error::msg);
    let (a, b) = (load(a)?, load(b)?);
    match compare::compare_text(&a, &b) {
        Ok(text) => print_text(&text),
        Err(why) => usage_error(&why),
    }
}

fn render_report(report: &BenchReport, format: BenchFormat) -> anyhow::Result<String> {
    Ok(match format {
        BenchFormat::Text => report::text::text_report(report),
        BenchFormat::Markdown => report::markdown::markdown_report(report),
        BenchFormat::Json => serde_json::to_string(report)? + "\n",
        BenchFormat::Fio => serde_json::to_string_pretty(&report::fio_json::fio_document(report))? + "\n",
    })
}

/// The plan of the command line.
fn plan_from_args(options: &BenchRunArgs) -> Result<(&'static dyn Workload, BenchPlan), String> {
    build_plan(&options.profile, options.directory.as_deref(), &options.load, &options.set)
}

/// The plan of a profile, or of a fio job file, in `directory`, as `load` and the pairs of `txlog` change it.
pub(super) fn build_plan(
    profile: &str,
    directory: Option<&Path>,
    load: &WorkloadArgs,
    txlog: &[String],
) -> Result<(&'static dyn Workload, BenchPlan), String> {
    let mut plan = if profile.ends_with(".fio") {
        let text = std::fs::read_to_string(profile)
            .map_err(|e| format!("{profile}: {}", crate::model::reading::describe_io_error(&e)))?;
        fio_job::parse_job_file(&text).map_err(|e| format!("{profile}: {e}"))?
    } else {
        let workload = workloads::find_workload(profile)
            .ok_or_else(|| format!("no profile {profile}; `iotop-plus bench list` shows them"))?;
        workload.defaults()
    };
    let workload = workloads::find_workload(&plan.profile).ok_or("no such profile")?;
    if let Some(directory) = directory {
        plan.directory = directory.to_owned();
    }
    apply_workload_args(&mut plan, load)?;
    apply_txlog_args(&mut plan, load, txlog)?;
    if workload.needs_directory() {
        if plan.directory.as_os_str().is_empty() {
            return Err(format!("{} needs a directory on the storage to measure", plan.profile));
        }
        // The child has the same working directory, but results are read elsewhere.
        plan.directory = std::path::absolute(&plan.directory).map_err(|e| e.to_string())?;
        plan.network = plan.network.map(|d| std::path::absolute(&d).unwrap_or(d));
    } else if directory.is_some() {
        return Err(format!("{} takes no directory", plan.profile));
    }
    plan.check().and_then(|()| workload.check(&plan))?;
    Ok((workload, plan))
}

fn apply_workload_args(plan: &mut BenchPlan, o: &WorkloadArgs) -> Result<(), String> {
    plan.network.clone_from(&o.network);
    let engine = o.engine.and_then(|e| e.to_possible_value()).map(|v| v.get_name().to_owned());
    let on = |given: bool| given.then(|| "on".to_owned());
    for (name, text) in [
        ("size", &o.size),
        ("block", &o.block),
        ("depth", &o.depth),
        ("jobs", &o.jobs),
        ("read-pct", &o.read_pct),
        ("direct", &if o.buffered { Some("off".into()) } else { on(o.direct) }),
        // After that one: it acts on what goes through the page cache only.
        ("readahead", &on(o.readahead)),
        ("fsync", &o.fsync),
        ("rate", &o.rate),
        ("rate-bytes", &o.rate_bytes),
        ("refill", &on(o.refill)),
        ("time", &o.time),
        ("ramp", &o.ramp),
        ("io-size", &o.io_size),
        ("stall-limit", &o.stall_limit),
        ("idle", &on(o.idle)),
        ("engine", &engine),
        ("sqpoll", &on(o.sqpoll)),
        ("iopoll", &on(o.iopoll)),
        ("seed", &o.seed),
    ] {
        if let Some(text) = text {
            params::set_param(plan, name, text)?;
        }
    }
    Ok(())
}

fn apply_txlog_args(plan: &mut BenchPlan, o: &WorkloadArgs, pairs: &[String]) -> Result<(), String> {
    let left_out = [
        (o.no_mmap, "mmap"),
        (o.nosync, "synclog"),
        (o.nowritelog, "writelog"),
        (o.nowritestore, "writestore"),
        (o.noread, "readrecords"),
    ];
    let used = !pairs.is_empty() || o.layout.is_some() || left_out.iter().any(|(given, _)| *given);
    if plan.profile != "txlog" {
        let why =
            "transactions, min, max, --layout, --no-mmap, --nosync, --nowritelog, --nowritestore, --noread are txlog's";
        return if used { Err(why.into()) } else { Ok(()) };
    }
    if o.time.is_some() && plan.time_ms > 0 {
        // As many as the time allows, unless a number is given, too.
        plan.txlog.transactions = 0;
    }
    for pair in pairs {
        let (key, n) = pair.split_once('=').ok_or_else(|| format!("{pair}: KEY=N is needed"))?;
        if !["transactions", "min", "max"].contains(&key) {
            return Err(format!("{pair}: transactions, min or max"));
        }
        params::set_param(plan, key, n)?;
    }
    for (_, name) in left_out.into_iter().filter(|(given, _)| *given) {
        params::set_param(plan, name, "off")?;
    }
    if let Some(layout) = o.layout.and_then(|l| l.to_possible_value()) {
        params::set_param(plan, "layout", layout.get_name())?;
    }
    Ok(())
}

fn run_benchmark(root: &Root, options: &BenchRunArgs) -> anyhow::Result<u8> {
    let (workload, plan) = match plan_from_args(options) {
        Ok(done) => done,
        Err(why) => return usage_error(&why),
    };
    if options.fio_job {
        return match fio_job::to_job_file(&plan) {
            Ok(text) => print_text(&text),
            Err(why) => usage_error(&why),
        };
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
            print_error(&format!("refused: {}", refused.reason));
            if !refused.needs_privilege {
                return Ok(EXIT_REFUSED);
            }
            print_error(&format!("to do it as root: {}", super::tune::sudo_this_command()));
            return Ok(EXIT_PRIVILEGE);
        }
        BenchMessage::Failed(why) => anyhow::bail!("{why}"),
        BenchMessage::Progress(_) | BenchMessage::Note(_) => anyhow::bail!("the measuring process broke off"),
    };
    save_and_print(last, options)
}

/// Writes the result and keeps it.
fn save_and_print(mut report: BenchReport, options: &BenchRunArgs) -> anyhow::Result<u8> {
    if !options.no_keep {
        match ResultStore::for_user().map(|s| s.save(&report)) {
            Some(Ok(id)) => report.id = id,
            Some(Err(why)) => print_error(&format!("result not kept: {why}")),
            None => print_error("result not kept: no home directory of this user (set XDG_STATE_HOME)"),
        }
    }
    print_text(&render_report(&report, options.format)?)?;
    Ok(if matches!(report.end, RunEnd::Failed(_) | RunEnd::Stalled(_)) { EXIT_FAILED } else { EXIT_OK })
}

/// Runs the plan in its child and shows progress until the last message.
fn run_with_progress(root: &Root, plan: &BenchPlan, quiet: bool) -> anyhow::Result<BenchMessage> {
    let live = !quiet && std::io::stderr().is_terminal();
    let last = run_until_last_message(
        |sink| BenchChild::start(root, plan, sink),
        |message| match message {
            BenchMessage::Progress(p) if live => overwrite_progress_line(&progress_line(&p)),
            BenchMessage::Note(note) if !quiet => {
                clear_progress_line(live);
                print_error(&note);
            }
            _ => {}
        },
    );
    clear_progress_line(live);
    last
}

pub(super) fn clear_progress_line(live: bool) {
    if live {
        overwrite_progress_line("");
    }
}
