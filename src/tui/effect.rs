//! What `update` wants done outside. It only says so; the run loop does it.

use super::settings::Settings;
use crate::jobs::job::WorkerJob;
use crate::model::process::{IoPrio, TaskKey};
use std::time::Duration;

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Leave the program.
    Quit,
    /// Stop until `fg`.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Sample at this interval.
    SetInterval(Duration),
    /// Have the collector look at processes or threads.
    ScanThreads(bool),
    /// From which duration on syncs are to be listed, or that nobody looks at them any more.
    ListSlowSyncs(Option<Duration>),
    /// Rows on screen: their memory and priority are read at every tick.
    WatchTasks(Vec<TaskKey>),
    /// Start a child.
    RunJob(WorkerJob),
    /// Start one child that does several jobs in turn.
    RunJobsInSequence(Vec<WorkerJob>),
    /// Copy text to the local clipboard.
    CopyToClipboard(String),
    /// Write the settings.
    SaveSettings(Settings),
    /// For the run that measures.
    Bench(super::bench::BenchEffect),
    /// For the experiment.
    Experiment(super::experiment::ExperimentEffect),
    /// For the tuner.
    Tune(super::tune::TuneEffect),
    /// For the player of a recording.
    Replay(super::replay::ReplayEffect),
    /// For the recorder.
    Recording(super::recording::RecordingEffect),
    /// Set a task's I/O class and level, then read it back.
    SetIoPrio {
        /// Task.
        key: TaskKey,
        /// New value.
        prio: IoPrio,
    },
}
