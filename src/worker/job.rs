//! What a child can be asked to do, and what it answers. Plain data, JSON on the pipe.

use super::bench;
use super::file::{Contents, Existing, not_written, write_file};
use crate::bench::look::Look;
use crate::bench::report::Report;
use crate::bench::store::Kept;
use crate::collect;
use crate::collect::processes::detail::DetailReader;
use crate::collect::processes::mappings::read_mappings;
use crate::experiment::kept::Kept as KeptExperiment;
use crate::experiment::report::Report as Experiment;
use crate::model::slow_facts::{SystemFacts, SpaceReport};
use crate::model::path::PathReport;
use crate::model::process::{TaskDetail, MappingSummary, TaskKey};
use crate::model::queue::QueueAttrs;
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::{Reading, describe_io_error};
use crate::root::Root;
use crate::tune::address::Address;
use crate::tune::at_boot::{AtBoot, at_boot};
use crate::tune::child::Careful;
use crate::tune::lasting;
use crate::tune::persist::others;
use crate::tune::plan::Refusal;
use crate::tune::sysctl::NextBoot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest mappings of a process that travel; the rest is in the sums.
const MAPPINGS_KEPT: usize = 1000;

/// A piece of work that may block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Read the queue settings of devices.
    Queues {
        /// Kernel names.
        names: Vec<String>,
    },
    /// Find out what a path lies on.
    Path {
        /// As typed.
        path: String,
    },
    /// Read limits and other facts of a process.
    Facts {
        /// Process.
        pid: u32,
        /// Its start, so that a reused number is noticed.
        starttime: u64,
    },
    /// Read what a diagnosis wants to know now and then.
    Diagnose {
        /// Tasks whose open files and control groups matter.
        tasks: Vec<TaskKey>,
    },
    /// Ask file systems for their room; on a dead one this does not return.
    Room {
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
    AtBoot {
        /// `KNOB[@WHERE]` each.
        knobs: Vec<String>,
    },
    /// Make knobs last over a boot in our own files, or take them out.
    Persist {
        /// `KNOB=VALUE`, or `KNOB` to take out.
        words: Vec<String>,
        /// Take out.
        out: bool,
    },
    /// Write a file whole: to a temporary name, synced, renamed; never through a symlink.
    WriteFile {
        /// Where; its directory must exist unless `make_dir`.
        path: PathBuf,
        /// The content.
        contents: Contents,
        /// What becomes of a file that is there already.
        existing: Existing,
        /// Whether to make the missing directory (0700).
        make_dir: bool,
    },
    /// Look at a directory in which something may be measured.
    Look {
        /// Absolute.
        directory: PathBuf,
    },
    /// List the results that are kept.
    Kept,
    /// Keep a result.
    Keep(Box<Report>),
    /// Read kept results.
    Results {
        /// Their names.
        ids: Vec<String>,
    },
    /// List the experiments that are kept.
    Experiments,
    /// Keep an experiment.
    KeepExperiment(Box<Experiment>),
    /// Read kept experiments.
    ExperimentResults {
        /// Their names.
        ids: Vec<String>,
    },
}

/// A job's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Queue settings by device.
    Queues(BTreeMap<String, QueueAttrs>),
    /// Limits and the like.
    Facts(Reading<TaskDetail>),
    /// Mappings.
    Mappings(Reading<MappingSummary>),
    /// What a diagnosis wanted to know.
    Diagnosis(Box<SystemFacts>),
    /// Room on file systems.
    Room(SpaceReport),
    /// The file's text; `None`: there is no such file.
    File(Option<String>),
    /// What the path lies on.
    Path(Box<PathReport>),
    /// The next boot by knob, and what else has a say in it.
    AtBoot(BTreeMap<String, AtBoot>, Vec<String>),
    /// What was done, in words.
    Told(Vec<String>),
    /// The directory as a benchmark sees it.
    Look(Box<Look>),
    /// The results that are kept, newest first.
    Kept(Vec<Kept>),
    /// The result is kept under this name.
    Keeping(String),
    /// Kept results, in the order asked for.
    Results(Vec<Report>),
    /// The experiments that are kept, newest first.
    Experiments(Vec<KeptExperiment>),
    /// Kept experiments, in the order asked for.
    ExperimentResults(Vec<Experiment>),
    /// The file is there.
    Written {
        /// Where: absolute, and with the number it got if its name was taken.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It could not be done: what, why, what next.
    Failed(String),
}

impl Job {
    /// Two jobs with the same key are the same work: the second is refused while the first runs.
    pub fn key(&self) -> String {
        match self {
            Job::Queues { .. } => "reading queue settings".into(),
            Job::Path { path } => format!("resolving {path}"),
            Job::Facts { pid, .. } => format!("reading the limits of {pid}"),
            Job::Diagnose { .. } => "reading settings and limits".into(),
            Job::Room { network: false, .. } => "asking file systems for their room".into(),
            Job::Room { network: true, .. } => "asking network file systems for their room".into(),
            Job::Mappings { pid, .. } => format!("reading the mappings of {pid}"),
            Job::ReadFile { path } => format!("reading {}", path.display()),
            Job::AtBoot { .. } => "reading what decides the next boot".into(),
            Job::Persist { .. } => "writing what is to last over a boot".into(),
            Job::WriteFile { path, .. } => format!("writing {}", path.display()),
            Job::Look { directory } => format!("looking at {}", directory.display()),
            Job::Kept => "listing the results kept".into(),
            Job::Keep(report) => format!("keeping the result {}", report.id),
            Job::Results { ids } => format!("reading the result {}", ids.join(" and ")),
            Job::Experiments => "listing the experiments kept".into(),
            Job::KeepExperiment(report) => format!("keeping the experiment {}", report.id),
            Job::ExperimentResults { ids } => format!("reading the experiment {}", ids.join(" and ")),
        }
    }

    /// Whether it is about experiments: as with measuring, whoever asked waits for an answer.
    pub fn is_experiment(&self) -> bool {
        matches!(self, Job::Experiments | Job::KeepExperiment(_) | Job::ExperimentResults { .. })
    }

    /// Whether it is about a diagnosis: nobody asked for it, so nobody is told when it cannot be done.
    pub fn is_diagnosis(&self) -> bool {
        matches!(self, Job::Diagnose { .. } | Job::Room { .. })
    }

    /// Whether it is about measuring: whoever asked waits for an answer, and be it a refusal.
    pub fn is_measuring(&self) -> bool {
        matches!(self, Job::Look { .. } | Job::Kept | Job::Keep(_) | Job::Results { .. })
    }

    /// Does it, here and now. Only a child process calls this.
    pub fn run(&self, root: &Root) -> Reply {
        match self {
            Job::Queues { names } => Reply::Queues(collect::queue::read_queue_attrs(root, names)),
            Job::Path { path } => match collect::path::inspect_path(root, Path::new(path)) {
                Ok(report) => Reply::Path(Box::new(report)),
                Err(err) => Reply::Failed(err.to_string()),
            },
            Job::Facts { pid, starttime } => {
                let key = TaskKey { pid: *pid, tid: *pid, starttime: *starttime };
                match DetailReader::new(root) {
                    Ok(mut reader) => Reply::Facts(reader.read(key)),
                    Err(err) => Reply::Facts(Reading::from_io_error("/proc", &err)),
                }
            }
            Job::Mappings { pid, starttime } => {
                let all = read_mappings(root, *pid, *starttime);
                Reply::Mappings(all.map(|all| MappingSummary::summarize(all, MAPPINGS_KEPT)))
            }
            Job::Diagnose { tasks } => {
                let mut facts = collect::facts::read_facts(root, tasks);
                facts.results = bench::told();
                Reply::Diagnosis(Box::new(facts))
            }
            Job::Room { mounts, network } => Reply::Room(collect::facts::read_disk_space(root, mounts, *network)),
            Job::ReadFile { path } => match super::child::read_own_file(path) {
                Ok(text) => Reply::File(text),
                Err(err) => Reply::Failed(format!("{}: {}", path.display(), describe_io_error(&err))),
            },
            Job::AtBoot { knobs } => {
                let next = NextBoot::read(root);
                let all = knobs.iter().filter_map(|k| Address::parse(k).ok());
                let all = all.map(|at| (at.to_string(), at_boot(root, &next, &at))).collect();
                Reply::AtBoot(all, others(root).into_iter().collect())
            }
            Job::Persist { words, out } => match persist(root, words, *out) {
                Ok(lines) => Reply::Told(lines),
                Err(why) => Reply::Failed(why.to_string()),
            },
            Job::WriteFile { path, contents, existing, make_dir } => {
                let contents = contents.bytes();
                match write_file(path, contents, *existing, *make_dir) {
                    Ok(path) => Reply::Written { path, bytes: contents.len() as u64 },
                    Err(err) => Reply::Failed(not_written(path, &err)),
                }
            }
            Job::Look { directory } => Reply::Look(Box::new(bench::look(root, directory))),
            Job::Kept => bench::kept().map_or_else(Reply::Failed, Reply::Kept),
            Job::Keep(report) => bench::keep(report.as_ref()).map_or_else(Reply::Failed, Reply::Keeping),
            Job::Results { ids } => bench::load(ids).map_or_else(Reply::Failed, Reply::Results),
            Job::Experiments => bench::experiments().map_or_else(Reply::Failed, Reply::Experiments),
            Job::KeepExperiment(report) => {
                bench::keep(report.as_ref()).map_or_else(Reply::Failed, Reply::Keeping)
            }
            Job::ExperimentResults { ids } => {
                bench::load(ids).map_or_else(Reply::Failed, Reply::ExperimentResults)
            }
        }
    }
}

fn persist(root: &Root, words: &[String], out: bool) -> Result<Vec<String>, Refusal> {
    let wanted = match out {
        true => lasting::unwanted(root, words)?,
        false => lasting::wanted(root, &mut Careful::new(root, Root::self_exe().into()), words)?,
    };
    lasting::write(root, &wanted)
}
