//! What a child can be asked to do, and what it answers. Plain data, JSON on the pipe.

use super::atomic_write::{FileContents, IfExists, write_error_message, write_file};
use super::bench_jobs;
use crate::bench::report::BenchReport;
use crate::bench::store::StoredResult;
use crate::bench::target_info::TargetInspection;
use crate::collect;
use crate::collect::processes::detail::DetailReader;
use crate::collect::processes::mappings::read_mappings;
use crate::experiment::report::ExperimentReport as Experiment;
use crate::experiment::stored::StoredExperiment as KeptExperiment;
use crate::model::observation::Observation;
use crate::model::path::PathReport;
use crate::model::process::{MappingSummary, TaskDetail, TaskKey};
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
use std::path::{Path, PathBuf};

/// The largest mappings of a process that travel; the rest is in the sums.
const MAX_MAPPINGS: usize = 1000;

/// A piece of work that may block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WorkerJob {
    /// Read the queue settings of devices.
    QueueSettings {
        /// Kernel names.
        names: Vec<String>,
    },
    /// Find out what a path lies on.
    ResolvePath {
        /// As typed.
        path: String,
    },
    /// Read limits and other facts of a process.
    TaskDetails {
        /// Process.
        pid: u32,
        /// Its start, so that a reused number is noticed.
        starttime: u64,
    },
    /// Read what a diagnosis wants to know now and then.
    DoctorFacts {
        /// Tasks whose open files and control groups matter.
        tasks: Vec<TaskKey>,
    },
    /// Ask file systems for their room; on a dead one this does not return.
    DiskSpace {
        /// Mount points.
        mounts: Vec<RawBytes>,
        /// They are on the network: asked apart from local ones.
        network: bool,
    },
    /// Read the mappings of a process; walks its page tables.
    Mappings {
        /// Process.
        pid: u32,
        /// Its start.
        starttime: u64,
    },
    /// Read a small file that is the user's own (or root's).
    ReadFile {
        /// Where.
        path: PathBuf,
    },
    /// Find out what knobs will be at the next boot, and what decides it.
    BootValues {
        /// `KNOB[@WHERE]` each.
        knobs: Vec<String>,
    },
    /// Make knobs last over a boot in our own files, or take them out.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to take out.
        assignments: Vec<String>,
        /// Take out.
        remove: bool,
    },
    /// Write a file whole: to a temporary name, synced, renamed; never through a symlink.
    WriteFile {
        /// Where; its directory must exist unless `make_dir`.
        path: PathBuf,
        /// The content.
        contents: FileContents,
        /// What becomes of a file that is there already.
        existing: IfExists,
        /// Whether to make the missing directory (0700).
        make_dir: bool,
    },
    /// Look at a directory in which something may be measured.
    InspectTarget {
        /// Absolute.
        directory: PathBuf,
    },
    /// List the results that are kept.
    ListResults,
    /// Keep a result.
    SaveResult(Box<BenchReport>),
    /// Read kept results.
    LoadResults {
        /// Their names.
        ids: Vec<String>,
    },
    /// List the experiments that are kept.
    ListExperiments,
    /// Keep an experiment.
    SaveExperiment(Box<Experiment>),
    /// Read kept experiments.
    LoadExperiments {
        /// Their names.
        ids: Vec<String>,
    },
}

/// A job's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WorkerReply {
    /// Part of the system state: queue settings, facts for the doctor, or free disk space.
    Observed(Observation),
    /// Limits and the like.
    TaskDetails(Reading<TaskDetail>),
    /// Mappings.
    Mappings(Reading<MappingSummary>),
    /// The file's text; `None`: there is no such file.
    File(Option<String>),
    /// What the path lies on.
    ResolvedPath(Box<PathReport>),
    /// The next boot by knob, and what else has a say in it.
    BootValues(BTreeMap<String, BootValue>, Vec<String>),
    /// What was done, in words.
    Persisted(Vec<String>),
    /// The directory as a benchmark sees it.
    TargetInspection(Box<TargetInspection>),
    /// The results that are kept, newest first.
    Results(Vec<StoredResult>),
    /// The result is kept under this name.
    Saved(String),
    /// Kept results, in the order asked for.
    LoadedResults(Vec<BenchReport>),
    /// The experiments that are kept, newest first.
    Experiments(Vec<KeptExperiment>),
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
        WorkerJob::key(self)
    }

    fn failure(why: String) -> WorkerReply {
        WorkerReply::Failed(why)
    }
}

impl WorkerJob {
    /// Names the work: a second job with the same key is refused while the first is under way.
    pub fn key(&self) -> String {
        match self {
            WorkerJob::QueueSettings { .. } => "reading queue settings".into(),
            WorkerJob::ResolvePath { path } => format!("resolving {path}"),
            WorkerJob::TaskDetails { pid, .. } => format!("reading the limits of {pid}"),
            WorkerJob::DoctorFacts { .. } => "reading settings and limits".into(),
            WorkerJob::DiskSpace { network: false, .. } => "asking file systems for their room".into(),
            WorkerJob::DiskSpace { network: true, .. } => "asking network file systems for their room".into(),
            WorkerJob::Mappings { pid, .. } => format!("reading the mappings of {pid}"),
            WorkerJob::ReadFile { path } => format!("reading {}", path.display()),
            WorkerJob::BootValues { .. } => "reading what decides the next boot".into(),
            WorkerJob::Persist { .. } => "writing what is to last over a boot".into(),
            WorkerJob::WriteFile { path, .. } => format!("writing {}", path.display()),
            WorkerJob::InspectTarget { directory } => format!("looking at {}", directory.display()),
            WorkerJob::ListResults => "listing the results kept".into(),
            WorkerJob::SaveResult(report) => format!("keeping the result {}", report.id),
            WorkerJob::LoadResults { ids } => format!("reading the result {}", ids.join(" and ")),
            WorkerJob::ListExperiments => "listing the experiments kept".into(),
            WorkerJob::SaveExperiment(report) => format!("keeping the experiment {}", report.id),
            WorkerJob::LoadExperiments { ids } => format!("reading the experiment {}", ids.join(" and ")),
        }
    }

    /// Whether it is about experiments: as with measuring, whoever asked waits for an answer.
    pub fn is_for_experiments(&self) -> bool {
        matches!(self, WorkerJob::ListExperiments | WorkerJob::SaveExperiment(_) | WorkerJob::LoadExperiments { .. })
    }

    /// Whether it is about a diagnosis: nobody asked for it, so nobody is told when it cannot be done.
    pub fn is_for_doctor(&self) -> bool {
        matches!(self, WorkerJob::DoctorFacts { .. } | WorkerJob::DiskSpace { .. })
    }

    /// Whether it is about measuring: whoever asked waits for an answer, and be it a refusal.
    pub fn is_for_bench(&self) -> bool {
        matches!(
            self,
            WorkerJob::InspectTarget { .. }
                | WorkerJob::ListResults
                | WorkerJob::SaveResult(_)
                | WorkerJob::LoadResults { .. }
        )
    }

    /// Does it, here and now. Only a child process calls this.
    pub fn run(&self, root: &Root) -> WorkerReply {
        match self {
            WorkerJob::QueueSettings { names } => {
                WorkerReply::Observed(Observation::Queues(collect::queue::read_queue_attrs(root, names)))
            }
            WorkerJob::ResolvePath { path } => match collect::path::inspect_path(root, Path::new(path)) {
                Ok(report) => WorkerReply::ResolvedPath(Box::new(report)),
                Err(err) => WorkerReply::Failed(err.to_string()),
            },
            WorkerJob::TaskDetails { pid, starttime } => {
                let key = TaskKey { pid: *pid, tid: *pid, starttime: *starttime };
                match DetailReader::new(root) {
                    Ok(mut reader) => WorkerReply::TaskDetails(reader.read(key)),
                    Err(err) => WorkerReply::TaskDetails(Reading::from_io_error("/proc", &err)),
                }
            }
            WorkerJob::Mappings { pid, starttime } => {
                let all = read_mappings(root, *pid, *starttime);
                WorkerReply::Mappings(all.map(|all| MappingSummary::summarize(all, MAX_MAPPINGS)))
            }
            WorkerJob::DoctorFacts { tasks } => {
                let mut facts = collect::facts::read_facts(root, tasks);
                facts.results = bench_jobs::doctor_results();
                WorkerReply::Observed(Observation::Facts(Box::new(facts)))
            }
            WorkerJob::DiskSpace { mounts, network } => {
                WorkerReply::Observed(Observation::DiskSpace(collect::facts::read_disk_space(root, mounts, *network)))
            }
            WorkerJob::ReadFile { path } => match super::config_file::read_config_file(path) {
                Ok(text) => WorkerReply::File(text),
                Err(err) => WorkerReply::Failed(format!("{}: {}", path.display(), describe_io_error(&err))),
            },
            WorkerJob::BootValues { knobs } => {
                let next = BootSysctls::read(root);
                let all = knobs.iter().filter_map(|k| KnobId::parse(k).ok());
                let all = all.map(|at| (at.to_string(), boot_value(root, &next, &at))).collect();
                WorkerReply::BootValues(all, other_tuning_program(root).into_iter().collect())
            }
            WorkerJob::Persist { assignments: words, remove: out } => match update_boot_files(root, words, *out) {
                Ok(lines) => WorkerReply::Persisted(lines),
                Err(why) => WorkerReply::Failed(why.to_string()),
            },
            WorkerJob::WriteFile { path, contents, existing, make_dir } => {
                let contents = contents.bytes();
                match write_file(path, contents, *existing, *make_dir) {
                    Ok(path) => WorkerReply::FileWritten { path, bytes: contents.len() as u64 },
                    Err(err) => WorkerReply::Failed(write_error_message(path, &err)),
                }
            }
            WorkerJob::InspectTarget { directory } => {
                WorkerReply::TargetInspection(Box::new(bench_jobs::inspect_target(root, directory)))
            }
            WorkerJob::ListResults => bench_jobs::list_results().map_or_else(WorkerReply::Failed, WorkerReply::Results),
            WorkerJob::SaveResult(report) => {
                bench_jobs::save(report.as_ref()).map_or_else(WorkerReply::Failed, WorkerReply::Saved)
            }
            WorkerJob::LoadResults { ids } => {
                bench_jobs::load(ids).map_or_else(WorkerReply::Failed, WorkerReply::LoadedResults)
            }
            WorkerJob::ListExperiments => {
                bench_jobs::list_experiments().map_or_else(WorkerReply::Failed, WorkerReply::Experiments)
            }
            WorkerJob::SaveExperiment(report) => {
                bench_jobs::save(report.as_ref()).map_or_else(WorkerReply::Failed, WorkerReply::Saved)
            }
            WorkerJob::LoadExperiments { ids } => {
                bench_jobs::load(ids).map_or_else(WorkerReply::Failed, WorkerReply::LoadedExperiments)
            }
        }
    }
}

fn update_boot_files(root: &Root, words: &[String], out: bool) -> Result<Vec<String>, TuneError> {
    let wanted = match out {
        true => persist_plan::plan_unpersist(root, words)?,
        false => persist_plan::plan_persist(root, &mut ChildKnobIo::new(root, Root::self_exe().into()), words)?,
    };
    persist_plan::write_and_report(root, &wanted)
}
