//! The jobs of worker children and their replies.

use super::atomic_write::{IfExists, publish_file, write_error_message, write_file};
use super::bench_jobs::{self, StoreJob};
use super::config_file::{read_config_file, read_themes};
use crate::bench::report::BenchReport;
use crate::bench::store::{ResultStore, Storable, StoredReport};
use crate::bench::target_info::TargetInspection;
use crate::collect;
use crate::collect::processes::detail::read_detail;
use crate::collect::processes::mappings::read_mappings;
use crate::collect::processes::written_files::read_written_files;
use crate::experiment::report::ExperimentReport as Experiment;
use crate::model::observation::Observation;
use crate::model::path::PathReport;
use crate::model::process::{MappingSummary, TaskDetail, TaskKey, WrittenFiles};
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::{Reading, describe_io_error};
use crate::root::Root;
use crate::subprocess::pool::PoolJob;
use crate::tuning::boot_value::{BootValue, boot_value};
use crate::tuning::child_io::ChildKnobIo;
use crate::tuning::knob_id::KnobId;
use crate::tuning::persist::other_tuning_program;
use crate::tuning::persist_plan;
use crate::tuning::plan::TuneError;
use crate::tuning::sysctl::BootSysctls;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Mappings of a process that a reply lists, largest first; the rest is in the sums.
const MAX_MAPPINGS: usize = 1000;

/// A piece of work that may block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WorkerJob {
    /// Read the queue settings of the devices with these kernel names.
    QueueSettings(Vec<String>),
    /// Find the file system and devices of a path as typed.
    ResolvePath(String),
    /// Read limits and other facts of a process.
    TaskDetails {
        /// Process.
        pid: u32,
        /// Its start time, so that a reused PID is noticed.
        starttime: u64,
    },
    /// Read the facts that diagnosis rules request, and the open files and control groups of these tasks.
    DoctorFacts(Vec<TaskKey>),
    /// Read what containers are called.
    ContainerNames,
    /// Read the free space of file systems; on a dead one this does not return.
    DiskSpace {
        /// Mount points.
        mounts: Vec<RawBytes>,
        /// Whether they are network mounts, which are read separately.
        network: bool,
    },
    /// Read the mappings of a process; walks its page tables.
    Mappings {
        /// Process.
        pid: u32,
        /// Its start time.
        starttime: u64,
    },
    /// Read the files that a process has open for writing, with their sizes.
    WrittenFiles {
        /// Process.
        pid: u32,
        /// Its start time.
        starttime: u64,
    },
    /// Read the config file, and the files in the directory `themes` beside it; of the user (or root).
    ReadConfig(PathBuf),
    /// Find the values of knobs (`KNOB[@WHERE]` each) at the next boot, and what sets them.
    BootValues(Vec<String>),
    /// Add knobs to this program's boot configuration, or remove them.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to remove.
        assignments: Vec<String>,
        /// Whether to remove them.
        remove: bool,
    },
    /// Write a file whole: to a temporary name, synced, renamed; never through a symlink.
    WriteFile {
        /// Where; its directory must exist unless `make_dir`.
        path: PathBuf,
        /// The content.
        contents: RawBytes,
        /// What to do if the file exists.
        existing: IfExists,
        /// Whether to make the missing directory (0700).
        make_dir: bool,
    },
    /// Replace a file that other users read, such as metrics: readable by all, and never half written.
    PublishFile {
        /// Where; its directory must exist.
        path: PathBuf,
        /// The content.
        contents: RawBytes,
    },
    /// Inspect a directory (absolute) for benchmarks.
    InspectTarget(PathBuf),
    /// List, save or load benchmarks.
    BenchReports(StoreJob<BenchReport>),
    /// List, save or load experiments.
    ExperimentReports(StoreJob<Experiment>),
}

/// A job's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WorkerReply {
    /// Part of the system state: queue settings, facts for the doctor, or free disk space.
    Observed(Observation),
    /// Limits and the like.
    TaskDetails(Reading<TaskDetail>),
    /// Files open for writing.
    WrittenFiles(Reading<WrittenFiles>),
    /// Mappings.
    Mappings(Reading<MappingSummary>),
    /// The config file, and the themes of the user.
    Config {
        /// The file's text; `None`: there is no such file.
        text: Option<String>,
        /// By name: the text of each file, or why it could not be read.
        themes: Vec<(String, Result<String, String>)>,
    },
    /// What the path lies on.
    ResolvedPath(Box<PathReport>),
    /// The next boot by knob, and what else has a say in it.
    BootValues(BTreeMap<String, BootValue>, Vec<String>),
    /// What was done, one line each.
    Persisted(Vec<String>),
    /// The inspected directory.
    TargetInspection(Box<TargetInspection>),
    /// Summaries of stored results or experiments, newest first.
    StoredReports(Vec<StoredReport>),
    /// The ID of the saved report.
    Saved(String),
    /// Kept results, in the order asked for.
    LoadedResults(Vec<BenchReport>),
    /// Kept experiments, in the order asked for.
    LoadedExperiments(Vec<Experiment>),
    /// The file is there.
    FileWritten {
        /// Where: absolute, and with the number it got if its name was taken.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It could not be done: what, why, what next.
    Failed(String),
}

impl PoolJob for WorkerJob {
    const SUBCOMMAND: &'static str = "worker";
    type Reply = WorkerReply;

    fn key(&self) -> String {
        match self {
            WorkerJob::QueueSettings(..) => "reading queue settings".into(),
            WorkerJob::ResolvePath(path) => format!("resolving {path}"),
            WorkerJob::TaskDetails { pid, .. } => format!("reading the limits of {pid}"),
            WorkerJob::DoctorFacts(..) => "reading settings and limits".into(),
            WorkerJob::ContainerNames => "reading the names of containers".into(),
            WorkerJob::DiskSpace { network: false, .. } => "asking file systems for their room".into(),
            WorkerJob::DiskSpace { network: true, .. } => "asking network file systems for their room".into(),
            WorkerJob::Mappings { pid, .. } => format!("reading the mappings of {pid}"),
            WorkerJob::WrittenFiles { pid, .. } => format!("reading the sizes of files that {pid} writes"),
            WorkerJob::ReadConfig(path) => format!("reading {}", path.display()),
            WorkerJob::BootValues(..) => "reading what decides the next boot".into(),
            WorkerJob::Persist { .. } => "writing what is to last over a boot".into(),
            WorkerJob::WriteFile { path, .. } | WorkerJob::PublishFile { path, .. } => {
                format!("writing {}", path.display())
            }
            WorkerJob::InspectTarget(directory) => format!("looking at {}", directory.display()),
            WorkerJob::BenchReports(job) => job.key(),
            WorkerJob::ExperimentReports(job) => job.key(),
        }
    }

    fn failure(why: String) -> WorkerReply {
        WorkerReply::Failed(why)
    }
}

impl WorkerJob {
    /// Whether it is for diagnosis rules: started in the background, so its failure is not shown.
    pub(crate) fn is_for_doctor(&self) -> bool {
        matches!(self, WorkerJob::DoctorFacts(..) | WorkerJob::DiskSpace { .. })
    }

    /// Whether the program waits for its reply, even if it cannot be started.
    pub(crate) fn is_awaited(&self) -> bool {
        use WorkerJob::{BenchReports, ExperimentReports, InspectTarget};
        self.is_for_doctor() || matches!(self, InspectTarget(..) | BenchReports(_) | ExperimentReports(_))
    }

    /// Does the job; only a child process may call this.
    pub fn run(&self, root: &Root) -> WorkerReply {
        match self {
            WorkerJob::QueueSettings(names) => {
                WorkerReply::Observed(Observation::Queues(collect::queue::read_queue_attrs(root, names)))
            }
            WorkerJob::ResolvePath(path) => {
                let report = collect::path::inspect_path(root, Path::new(path)).map(Box::new);
                reply(report, WorkerReply::ResolvedPath)
            }
            WorkerJob::TaskDetails { pid, starttime } => {
                WorkerReply::TaskDetails(read_detail(root, process_key(*pid, *starttime)))
            }
            WorkerJob::Mappings { pid, starttime } => {
                let all = read_mappings(root, *pid, *starttime);
                WorkerReply::Mappings(all.map(|all| MappingSummary::summarize(all, MAX_MAPPINGS)))
            }
            WorkerJob::WrittenFiles { pid, starttime } => {
                WorkerReply::WrittenFiles(read_written_files(root, process_key(*pid, *starttime)))
            }
            WorkerJob::DoctorFacts(tasks) => {
                let mut facts = collect::facts::read_facts(root, tasks);
                facts.results = bench_jobs::doctor_results();
                WorkerReply::Observed(Observation::Facts(Box::new(facts)))
            }
            WorkerJob::ContainerNames => {
                WorkerReply::Observed(Observation::Containers(collect::facts::read_container_names(root)))
            }
            WorkerJob::DiskSpace { mounts, network } => {
                WorkerReply::Observed(Observation::DiskSpace(collect::facts::read_disk_space(root, mounts, *network)))
            }
            WorkerJob::BootValues(knobs) => {
                let next = BootSysctls::read(root);
                let all = knobs.iter().filter_map(|k| KnobId::parse(k).ok());
                let all = all.map(|at| (at.to_string(), boot_value(root, &next, &at))).collect();
                WorkerReply::BootValues(all, other_tuning_program(root).into_iter().collect())
            }
            WorkerJob::Persist { assignments, remove } => {
                reply(update_boot_files(root, assignments, *remove), WorkerReply::Persisted)
            }
            WorkerJob::InspectTarget(directory) => {
                WorkerReply::TargetInspection(Box::new(bench_jobs::inspect_target(root, directory)))
            }
            WorkerJob::ReadConfig(path) => {
                let text = read_config_file(path);
                let text = text.map_err(|e| format!("{}: {}", path.display(), describe_io_error(&e)));
                let themes = read_themes(&path.with_file_name("themes"));
                reply(text.map(|text| (text, themes)), |(text, themes)| WorkerReply::Config { text, themes })
            }
            WorkerJob::WriteFile { path, contents, existing, make_dir } => {
                file_written(path, contents, write_file(path, contents.as_bytes(), *existing, *make_dir))
            }
            WorkerJob::PublishFile { path, contents } => {
                file_written(path, contents, publish_file(path, contents.as_bytes()))
            }
            WorkerJob::BenchReports(job) => run_store_job(job, WorkerReply::LoadedResults),
            WorkerJob::ExperimentReports(job) => run_store_job(job, WorkerReply::LoadedExperiments),
        }
    }
}

fn file_written(path: &Path, contents: &RawBytes, written: io::Result<PathBuf>) -> WorkerReply {
    match written {
        Ok(path) => WorkerReply::FileWritten { path, bytes: contents.as_bytes().len() as u64 },
        Err(err) => WorkerReply::Failed(write_error_message(path, &err)),
    }
}

fn process_key(pid: u32, starttime: u64) -> TaskKey {
    TaskKey { pid, tid: pid, starttime }
}

fn reply<T>(done: Result<T, impl Display>, ok: fn(T) -> WorkerReply) -> WorkerReply {
    done.map_or_else(|why| WorkerReply::Failed(why.to_string()), ok)
}

fn update_boot_files(root: &Root, words: &[String], out: bool) -> Result<Vec<String>, TuneError> {
    let wanted = match out {
        true => persist_plan::plan_unpersist(root, words)?,
        false => persist_plan::plan_persist(root, &mut ChildKnobIo::new(root, Root::self_exe().into()), words)?,
    };
    persist_plan::write_and_report(root, &wanted)
}

fn run_store_job<R: Storable>(job: &StoreJob<R>, loaded: fn(Vec<R>) -> WorkerReply) -> WorkerReply {
    let open = ResultStore::for_user_of::<R>;
    match job {
        StoreJob::List => {
            let all = open().map_or(Ok(Vec::new()), |store| store.summaries::<R>());
            reply(all, WorkerReply::StoredReports)
        }
        StoreJob::Save(report) => reply(open().and_then(|store| store.save(&**report)), WorkerReply::Saved),
        StoreJob::Load(ids) => {
            let all = open().and_then(|store| ids.iter().map(|id| store.load(id)).collect());
            reply(all, loaded)
        }
    }
}
