//! Everything that changes the state, as one enum whatever its origin, so that a test can feed any sequence of events.

use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::process::{IoPrio, ProcessUpdate, TaskKey};
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::topology::Topology;
use crossterm::event::{KeyEvent, MouseEvent};

/// Queues an event for the event loop.
pub type EventSender = tokio::sync::mpsc::Sender<Box<Event>>;

/// An event.
#[derive(Debug)]
pub enum Event {
    /// A key press.
    Key(KeyEvent),
    /// A mouse click or wheel turn.
    Mouse(MouseEvent),
    /// The terminal has a new size: columns, rows.
    Resize(u16, u16),
    /// The counters of one tick.
    Sample(Box<Sample>),
    /// A scan of processes or threads.
    Processes(Box<Reading<ProcessUpdate>>),
    /// Block devices or mounts changed.
    Topology(Box<Reading<Topology>>),
    /// New kernel log records.
    KernelLogRecords(Vec<KmsgRecord>, LogClock),
    /// The kernel log cannot be read, or no longer.
    KernelLogUnavailable(Reading<()>),
    /// Reply of a worker child.
    JobReply(WorkerJob, WorkerReply),
    /// All reads and child processes that do not return.
    Blocked(Vec<BlockedRead>),
    /// `kernel.hung_task_warnings`.
    HungTaskWarnings(Option<i64>),
    /// Result of setting an I/O priority: the priority read back, or an error message.
    IoPrioSet(TaskKey, Result<IoPrio, String>),
    /// From a benchmark's child process.
    Bench(Box<super::bench::BenchEvent>),
    /// From an experiment's child process.
    Experiment(Box<super::experiment::ExperimentEvent>),
    /// From the tuner process.
    Tune(Box<super::tune::TuneEvent>),
    /// From the player of a recording.
    Replay(Box<super::replay::ReplayEvent>),
    /// Progress of the recorder.
    RecordingStatus(Box<crate::recording::writer::RecorderStatus>),
    /// An error message of the runtime.
    Notice(String),
}
