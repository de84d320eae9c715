//! Everything that changes the state, as one enum whatever its origin, so that a test can feed any sequence of events.

use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::Observation;
use crate::model::process::{IoPrio, TaskKey};
use crossterm::event::{KeyEvent, MouseEvent};

/// Capacity of each queue to the event loop; a sender waits while its queue is full.
pub const QUEUE_CAPACITY: usize = 64;

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
    /// A collector has read something.
    Observed(Observation),
    /// Reply of a worker child.
    JobReply(WorkerJob, WorkerReply),
    /// Result of setting an I/O priority: the priority read back, or an error message.
    IoPrioSet(TaskKey, Result<IoPrio, String>),
    /// From a benchmark's child process.
    Bench(Box<super::views::bench::BenchEvent>),
    /// From an experiment's child process.
    Experiment(Box<super::views::experiments::ExperimentEvent>),
    /// From the tuner process.
    Tune(Box<super::views::tune::TuneEvent>),
    /// From the player of a recording.
    Replay(Box<super::views::replay::ReplayEvent>),
    /// Progress of the recorder.
    RecordingStatus(Box<crate::recording::writer::RecorderStatus>),
    /// An error message of the runtime.
    Notice(String),
}
