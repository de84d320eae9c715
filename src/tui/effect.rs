//! What `update` asks the runtime to do.

use super::settings::Settings;
use crate::bench::plan::BenchPlan;
use crate::experiment::spec::ExperimentSpec;
use crate::jobs::job::WorkerJob;
use crate::model::process::{IoPrio, TaskKey};
use std::path::PathBuf;
use std::time::Duration;

/// A request to the runtime.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Leave the program.
    Quit,
    /// Suspend the program until `fg`.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Sample at this interval.
    SetInterval(Duration),
    /// Scan threads (true) or processes.
    ScanThreads(bool),
    /// List syncs of at least this duration; `None`: do not list syncs.
    ListSlowSyncs(Option<Duration>),
    /// The tasks on screen: their memory and priority are read at every tick.
    WatchTasks(Vec<TaskKey>),
    /// Run a job in a child process.
    RunJob(WorkerJob),
    /// Run several jobs one after the other in one child process.
    RunJobsInSequence(Vec<WorkerJob>),
    /// Copy text to the local clipboard.
    CopyToClipboard(String),
    /// Write the settings.
    SaveSettings(Settings),
    /// For the benchmark runner.
    Bench(RunEffect<BenchPlan>),
    /// For the experiment runner.
    Experiment(RunEffect<ExperimentSpec>),
    /// Check the arms of an experiment on this machine.
    CheckArms(Box<ExperimentSpec>),
    /// For the tuner.
    Tune(TuneEffect),
    /// For the replay player.
    Replay(ReplayEffect),
    /// For the recorder.
    Recording(RecordingEffect),
    /// Set a task's I/O class and level, then read it back.
    SetIoPrio {
        /// The task.
        key: TaskKey,
        /// The new priority.
        prio: IoPrio,
    },
}

/// Work for the runner of benchmarks or experiments.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect<P> {
    /// Start a run in a child process.
    Start {
        /// Its number, which its events carry.
        run: u64,
        /// What to do.
        plan: Box<P>,
    },
    /// End the run; its report follows.
    Cancel,
    /// Kill the run, without a report. The tuner restores knobs.
    Kill,
}

/// Work for the runner of the Tune view.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneEffect {
    /// Take a snapshot of all knobs and of these.
    Refresh(Vec<String>),
    /// Apply a change on a lease.
    Apply {
        /// `KNOB=VALUE` each.
        assignments: Vec<String>,
        /// Length of the lease, seconds.
        lease_secs: u64,
    },
    /// Apply a change without a lease.
    ApplyPermanent(Vec<String>),
    /// Keep changes.
    Keep(Vec<u64>),
    /// Restart a lease.
    Renew {
        /// Number of the change.
        id: u64,
        /// New length from now, seconds.
        secs: u64,
    },
    /// Revert changes.
    Undo(Vec<u64>),
    /// Let leases run on without this program.
    Detach(Vec<u64>),
}

/// Work for the player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayEffect {
    /// Play at this multiple of the recorded pace.
    Play(u16),
    /// Pause.
    Pause,
    /// Go this many ticks forward, or back.
    Step(i32),
    /// Go to the tick at this wall clock, ns since 1970.
    SeekTime(i64),
    /// Search the tick at which a finding begins, and go there. Any other effect ends the search.
    FindFinding {
        /// Search forward.
        forward: bool,
    },
}

/// What is to be done about a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingEffect {
    /// Begin, in this file.
    Start(PathBuf),
    /// End.
    Stop,
}
