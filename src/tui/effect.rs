//! What `update` asks the runtime to do.

#![expect(missing_docs, reason = "the names say what needs no comment")]

use super::settings::Settings;
use crate::bench::plan::BenchPlan;
use crate::experiment::spec::ExperimentSpec;
use crate::jobs::job::WorkerJob;
use crate::model::process::{IoPrio, TaskKey};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    /// Suspend the program until `fg`.
    Suspend,
    Redraw,
    SetInterval(Duration),
    /// Scan threads (true) or processes.
    ScanThreads(bool),
    /// List syncs of at least this duration; `None`: do not list syncs.
    ListSlowSyncs(Option<Duration>),
    /// Trace I/O by file, or stop it.
    TraceFiles(bool),
    /// Trace what tasks wait for, or stop it.
    TraceWaits(bool),
    /// Read control groups at every tick, or no longer.
    ReadGroups(bool),
    /// The tasks on screen: their memory and priority are read at every tick.
    WatchTasks(Vec<TaskKey>),
    RunJob(WorkerJob),
    /// Run several jobs one after the other in one child process.
    RunJobsInSequence(Vec<WorkerJob>),
    CopyToClipboard(String),
    SaveSettings(Box<Settings>),
    Bench(RunEffect<BenchPlan>),
    Experiment(RunEffect<ExperimentSpec>),
    CheckArms(Box<ExperimentSpec>),
    Tune(TuneEffect),
    Replay(ReplayEffect),
    Recording(RecordingEffect),
    /// Set a task's I/O class and level, then read it back.
    SetIoPrio {
        key: TaskKey,
        prio: IoPrio,
    },
}

/// Work for the runner of benchmarks or experiments.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect<P> {
    Start {
        /// Its number, which its events carry.
        run: u64,
        plan: Box<P>,
    },
    /// End the run; its report follows.
    Cancel,
    /// Kill the run, without a report. The tuner restores knobs.
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TuneEffect {
    /// Take a snapshot of all knobs and of these.
    Refresh(Vec<String>),
    Apply {
        /// `KNOB=VALUE` each.
        assignments: Vec<String>,
        /// `None`: for good.
        lease_secs: Option<u64>,
    },
    /// Do this with the changes of these numbers.
    Command(Vec<u64>, LeaseCommand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseCommand {
    Keep,
    Undo,
    /// Restart the lease with this many seconds.
    Renew(u64),
    /// Let the lease run on without this program.
    Detach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEffect {
    Play(u16),
    Pause,
    Step(i32),
    /// Go to the tick at this wall clock, ns since 1970.
    SeekTime(i64),
    /// Search the tick at which a finding begins, and go there. Any other effect ends the search.
    FindFinding {
        forward: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingEffect {
    Start(PathBuf),
    Stop,
}
