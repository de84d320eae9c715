//! What comes in. One queue, whatever the origin, so that a test can play any story.

use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::process::{IoPrio, ProcessUpdate, TaskKey};
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::topology::Topology;
use crossterm::event::{KeyEvent, MouseEvent};

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// A tick of counters.
    Sample(Box<Sample>),
    /// A look at the tasks.
    Processes(Box<Reading<ProcessUpdate>>),
    /// Block devices or mounts changed.
    Topology(Box<Reading<Topology>>),
    /// Lines of the kernel log.
    KernelLogRecords(Vec<KmsgRecord>, LogClock),
    /// The kernel log cannot be read (any more).
    KernelLogUnavailable(Reading<()>),
    /// A child answered.
    JobReply(WorkerJob, WorkerReply),
    /// Sources and children that do not return, all of them.
    Blocked(Vec<BlockedRead>),
    /// `kernel.hung_task_warnings`.
    HungTaskWarnings(Option<i64>),
    /// Setting an I/O priority came to this: what is in force now, or why not.
    IoPrioSet(TaskKey, Result<IoPrio, String>),
    /// From the run that measures.
    Bench(Box<super::bench::BenchEvent>),
    /// From the experiment.
    Experiment(Box<super::experiment::ExperimentEvent>),
    /// From the tuner.
    Tune(Box<super::tune::TuneEvent>),
    /// From the player of a recording.
    Replay(Box<super::replay::ReplayEvent>),
    /// How far the recorder is.
    RecordingStatus(Box<crate::recording::writer::RecorderStatus>),
    /// A word from the run loop.
    Notice(String),
}
