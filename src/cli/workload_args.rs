//! The workload options of `bench run` and `experiment`, and the plan built from them.

use crate::bench::fio_job;
use crate::bench::params;
use crate::bench::plan::BenchPlan;
use crate::bench::workloads::{self, Workload};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// The workload of `bench run` and `experiment`.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// Confirms a directory on a network mount: the same directory again.
    #[arg(long, value_name = "DIR")]
    pub network: Option<PathBuf>,
    /// Size of the file (for `fork`: of the memory): 512M, 4G.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Size of one operation, record or chunk: 4k, 1M.
    #[arg(long, value_name = "SIZE")]
    pub block: Option<String>,
    /// Operations in flight per job.
    #[arg(long, value_name = "N")]
    pub depth: Option<String>,
    /// Worker threads.
    #[arg(long, value_name = "N")]
    pub jobs: Option<String>,
    /// Percentage of reads.
    #[arg(long, value_name = "PCT")]
    pub read_pct: Option<String>,
    /// Use the page cache.
    #[arg(long, conflicts_with = "direct")]
    pub buffered: bool,
    /// Bypass the page cache (O_DIRECT).
    #[arg(long)]
    pub direct: bool,
    /// sweep: repeat the sequential series with read-ahead off and on; needs root, restores the setting.
    #[arg(long, conflicts_with = "direct")]
    pub readahead: bool,
    /// fdatasync after this many writes.
    #[arg(long, value_name = "N")]
    pub fsync: Option<String>,
    /// Limit in operations per second; 0: none.
    #[arg(long, value_name = "IOPS")]
    pub rate: Option<String>,
    /// Limit in bytes per second; 0: none.
    #[arg(long, value_name = "SIZE")]
    pub rate_bytes: Option<String>,
    /// Fill every write with new random data, for storage that compresses or deduplicates.
    #[arg(long)]
    pub refill: bool,
    /// Seconds to measure (per step, if there are several); 0: no limit.
    #[arg(long, value_name = "S")]
    pub time: Option<String>,
    /// Seconds of warm-up that are not measured.
    #[arg(long, value_name = "S")]
    pub ramp: Option<String>,
    /// Stop after this many bytes.
    #[arg(long, value_name = "SIZE")]
    pub io_size: Option<String>,
    /// Fail when nothing completes for this many seconds.
    #[arg(long, value_name = "S")]
    pub stall_limit: Option<String>,
    /// Idle I/O priority: only served when the disk is otherwise idle.
    #[arg(long)]
    pub idle: bool,
    /// I/O engine.
    #[arg(long, value_name = "ENGINE", value_enum)]
    pub engine: Option<EngineName>,
    /// io_uring with a submission thread in the kernel, which uses a whole CPU core.
    #[arg(long)]
    pub sqpoll: bool,
    /// io_uring with polled completions; the device needs polling queues.
    #[arg(long)]
    pub iopoll: bool,
    /// Seed for offsets and data.
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
    /// txlog: state of the store in the page cache at the start.
    #[arg(long, value_name = "LAYOUT", value_enum)]
    pub layout: Option<StoreLayoutName>,
    /// txlog: access the store with pread and pwrite.
    #[arg(long)]
    pub no_mmap: bool,
    /// txlog: do not sync the log.
    #[arg(long)]
    pub nosync: bool,
    /// txlog: do not write the log.
    #[arg(long)]
    pub nowritelog: bool,
    /// txlog: do not write records back.
    #[arg(long)]
    pub nowritestore: bool,
    /// txlog: do not read records first.
    #[arg(long)]
    pub noread: bool,
}

/// I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// io_uring, or threads where io_uring is unavailable.
    Auto,
    /// Only io_uring.
    Uring,
    /// pread and pwrite on a thread pool.
    Threads,
}

/// The state of txlog's store in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreLayoutName {
    /// Written in 4 KiB chunks and locked in memory: a record dirties 4 KiB.
    Small,
    /// Written in 1 MiB chunks and locked in memory: a record dirties up to 1 MiB where there are large folios.
    Large,
    /// Dropped from the cache: records are read from the device.
    Cold,
}

/// Builds the plan of a profile or fio job file in `directory`, changed by `load` and the `txlog` assignments.
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
        // The child has the same working directory, but results are read from other directories.
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
        // After `direct`: it only affects reads through the page cache.
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
        // As many as the time allows, unless a number is given.
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
