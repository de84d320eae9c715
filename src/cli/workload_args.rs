//! The workload options of `bench run` and `experiment`, and the plan built from them.

use super::job_file::plan_of_job_file;
use crate::bench::fio::parse::ParseOptions;
use crate::bench::params;
use crate::bench::plan::{BenchPlan, CacheLayout, EngineChoice, PlanError, require};
use crate::bench::workloads::{self, Workload};
use OptionKind::{Choice, Flag, Value};
use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};
use std::path::{Path, PathBuf};

enum OptionKind {
    /// The parameter of the option's name to a text of this kind.
    Value(&'static str),
    /// A parameter to a fixed text.
    Flag(&'static str, &'static str),
    /// The parameter of the option's name to one of these values.
    Choice(&'static str, fn() -> Vec<PossibleValue>),
}

fn values<T: ValueEnum>() -> Vec<PossibleValue> {
    T::value_variants().iter().filter_map(T::to_possible_value).collect()
}

/// Options with help, in the order in which they are applied: `readahead` after `direct`, which it implies to be off.
const OPTIONS: &[(&str, OptionKind, &str)] = &[
    ("size", Value("SIZE"), "Size of the file (for `fork`: of the memory): 512M, 4G"),
    ("block", Value("SIZE"), "Size of one operation, record or chunk: 4k, 1M"),
    ("depth", Value("N"), "Operations in flight per job"),
    ("jobs", Value("N"), "Worker threads"),
    ("read-pct", Value("PCT"), "Percentage of reads"),
    ("buffered", Flag("direct", "off"), "Use the page cache"),
    ("direct", Flag("direct", "on"), "Bypass the page cache (O_DIRECT)"),
    ("cold", Flag("cold", "on"), "Use the page cache, and drop the file from it before each pass over its size"),
    (
        "readahead",
        Flag("readahead", "on"),
        "sweep: repeat the sequential series with read-ahead off and on; needs root, restores the setting",
    ),
    ("fsync", Value("N"), "fdatasync after this many writes"),
    ("rate", Value("IOPS"), "Limit in operations per second; 0: none"),
    ("rate-bytes", Value("SIZE"), "Limit in bytes per second; 0: none"),
    (
        "refill",
        Flag("refill", "on"),
        "Fill every write with new random data, for storage that compresses or deduplicates",
    ),
    ("latency-target", Value("US"), "depth, mix: the 99th percentile of latency that is asked for, in microseconds"),
    ("time", Value("S"), "Seconds to measure (per step, if there are several); 0: no limit"),
    ("ramp", Value("S"), "Seconds of warm-up that are not measured"),
    ("io-size", Value("SIZE"), "Stop after this many bytes"),
    ("stall-limit", Value("S"), "Fail when nothing completes for this many seconds"),
    ("idle", Flag("idle", "on"), "Idle I/O priority: only served when the disk is otherwise idle"),
    ("engine", Choice("ENGINE", values::<EngineChoice>), "I/O engine"),
    ("sqpoll", Flag("sqpoll", "on"), "io_uring with a submission thread in the kernel, which uses a whole CPU core"),
    ("iopoll", Flag("iopoll", "on"), "io_uring with polled completions; the device needs polling queues"),
    ("huge-pages", Flag("huge-pages", "on"), "Buffers on huge pages, from which a device takes larger requests"),
    ("seed", Value("N"), "Seed for offsets and data"),
    ("layout", Choice("LAYOUT", values::<CacheLayout>), "txlog: state of the store in the page cache at the start"),
    ("no-mmap", Flag("mmap", "off"), "txlog: access the store with pread and pwrite"),
    ("nosync", Flag("synclog", "off"), "txlog: do not sync the log"),
    ("nowritelog", Flag("writelog", "off"), "txlog: do not write the log"),
    ("nowritestore", Flag("writestore", "off"), "txlog: do not write records back"),
    ("noread", Flag("readrecords", "off"), "txlog: do not read records first"),
];

const TXLOG_OPTIONS: [&str; 6] = ["layout", "no-mmap", "nosync", "nowritelog", "nowritestore", "noread"];

/// The workload of `bench run` and `experiment`.
#[derive(Debug)]
pub(super) struct WorkloadArgs {
    network: Option<PathBuf>,
    /// The options given: name, parameter, text.
    given: Vec<(&'static str, &'static str, String)>,
}

impl WorkloadArgs {
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|option| option.0 == name)
    }

    /// `--size` in bytes.
    fn given_size(&self) -> Result<Option<u64>, PlanError> {
        let Some((.., text)) = self.given.iter().find(|option| option.0 == "size") else { return Ok(None) };
        let mut plan = BenchPlan::default();
        params::set_param(&mut plan, "size", text)?;
        Ok(Some(plan.size))
    }
}

impl Args for WorkloadArgs {
    fn augment_args(command: Command) -> Command {
        let network = Arg::new("network").long("network").value_name("DIR").value_parser(value_parser!(PathBuf));
        let network = network.help("Confirms a directory on a network mount: the same directory again");
        OPTIONS.iter().fold(command.arg(network), |command, (name, kind, help)| {
            let arg = Arg::new(*name).long(*name).help(*help);
            let arg = match kind {
                Value(placeholder) => arg.value_name(*placeholder),
                Flag(..) => arg.action(ArgAction::SetTrue),
                Choice(placeholder, values) => arg.value_name(*placeholder).value_parser(values()),
            };
            let excludes_direct = ["buffered", "readahead", "cold"].contains(name);
            command.arg(if excludes_direct { arg.conflicts_with("direct") } else { arg })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkloadArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = OPTIONS.iter().filter_map(|(name, kind, _)| match kind {
            Flag(param, text) => matches.get_flag(name).then(|| (*name, *param, (*text).to_owned())),
            Value(_) | Choice(..) => matches.get_one::<String>(name).map(|text| (*name, *name, text.clone())),
        });
        Ok(Self { network: matches.get_one("network").cloned(), given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Builds the plan of a profile or fio job file in `directory`, changed by `load` and the `txlog` assignments.
pub(super) fn build_plan(
    profile: &str,
    directory: Option<&Path>,
    load: &WorkloadArgs,
    txlog: &[String],
    strict: bool,
) -> Result<(&'static Workload, BenchPlan), PlanError> {
    let mut plan = if profile.ends_with(".fio") {
        let existing_size = load.given_size()?;
        plan_of_job_file(profile, &ParseOptions { strict, existing_size })?
    } else {
        require(!strict, "--strict is for fio job files")?;
        let workload = workloads::find_workload(profile)
            .ok_or_else(|| format!("no profile {profile}; `iotop-plus bench list` shows them"))?;
        workload.defaults()
    };
    let workload = workloads::find_workload(&plan.profile).ok_or("no such profile")?;
    if let Some(directory) = directory {
        plan.directory = directory.to_owned();
    }
    plan.network.clone_from(&load.network);
    if plan.profile != "txlog" && (!txlog.is_empty() || TXLOG_OPTIONS.iter().any(|name| load.is_given(name))) {
        let options = TXLOG_OPTIONS.map(|name| format!("--{name}")).join(", ");
        return Err(format!("transactions, min, max, {options} are txlog's").into());
    }
    for (name, param, text) in &load.given {
        if plan.profile == "fio" {
            let is_ours = ["size", "stall-limit", "idle", "seed"].contains(name);
            require(is_ours, format!("--{name}: a job file says this itself"))?;
        }
        params::set_param(&mut plan, param, text)?;
    }
    if plan.profile == "txlog" && load.is_given("time") && plan.time_ms > 0 {
        // As many as the time allows, unless a number is given.
        plan.txlog.transactions = 0;
    }
    for pair in txlog {
        let (key, n) = pair.split_once('=').ok_or_else(|| format!("{pair}: KEY=N is needed"))?;
        require(["transactions", "min", "max"].contains(&key), format!("{pair}: transactions, min or max"))?;
        params::set_param(&mut plan, key, n)?;
    }
    if workload.needs_directory {
        let is_named = !plan.directory.as_os_str().is_empty();
        let which = if plan.profile == "fio" { "the job file names none, or several: it" } else { &plan.profile };
        require(is_named, format!("{which} needs a directory on the storage to measure"))?;
        // The child has the same working directory, but results are read from other directories.
        plan.directory = std::path::absolute(&plan.directory).map_err(|e| e.to_string())?;
        plan.network = plan.network.map(|d| std::path::absolute(&d).unwrap_or(d));
    } else {
        require(directory.is_none(), format!("{} takes no directory", plan.profile))?;
    }
    plan.check().and_then(|()| (workload.check)(&plan))?;
    Ok((workload, plan))
}
