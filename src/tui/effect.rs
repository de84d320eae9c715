//! What `update` asks the runtime to do.

use super::settings::Settings;
use crate::jobs::job::WorkerJob;
use crate::model::process::{IoPrio, TaskKey};
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
    Bench(super::views::bench::BenchEffect),
    /// For the experiment runner.
    Experiment(super::views::experiments::ExperimentEffect),
    /// For the tuner.
    Tune(super::views::tune::TuneEffect),
    /// For the replay player.
    Replay(super::views::replay::ReplayEffect),
    /// For the recorder.
    Recording(super::recording::RecordingEffect),
    /// Set a task's I/O class and level, then read it back.
    SetIoPrio {
        /// The task.
        key: TaskKey,
        /// The new priority.
        prio: IoPrio,
    },
}
