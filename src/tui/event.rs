//! Everything that changes the state, as one enum whatever its origin, so that a test can send any sequence of events.

#![expect(missing_docs, reason = "the names say what needs no comment")]

use super::knob_snapshot::KnobSnapshot;
use crate::bench::message::BenchMessage;
use crate::doctor::finding::Severity;
use crate::doctor::transitions::FindingTransition;
use crate::experiment::arm_settings::ValidatedSpec;
use crate::experiment::message::ExperimentMessage;
use crate::experiment::spec::ExperimentSpec;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::observation::Observation;
use crate::model::process::{IoPrio, TaskKey};
use crate::recording::decoder::DecodedTick;
use crate::subprocess::runner::ChildEvent;
use crossterm::event::{KeyEvent, MouseEvent};

/// Capacity of each queue to the event loop; a sender waits while its queue is full.
pub const QUEUE_CAPACITY: usize = 64;

pub type EventSender = tokio::sync::mpsc::Sender<Box<Event>>;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// The terminal has a new size: columns, rows.
    Resize(u16, u16),
    Observed(Observation),
    JobReply(WorkerJob, WorkerReply),
    /// Result of setting an I/O priority: the priority read back, or an error message.
    IoPrioSet(TaskKey, Result<IoPrio, String>),
    /// From the child process of the benchmark with this number.
    Bench(u64, Box<ChildEvent<BenchMessage>>),
    /// From the child process of the experiment with this number.
    Experiment(u64, Box<ChildEvent<ExperimentMessage>>),
    ArmsChecked(Box<ArmCheck>),
    Tune(Box<TuneEvent>),
    Replay(Box<ReplayEvent>),
    /// Slots of the timeline of a recording, with the worst finding in each.
    ReplayJudged(Vec<(usize, Option<Severity>)>),
    RecordingStatus(Box<crate::recording::writer::RecorderStatus>),
    /// An error message of the runtime.
    Notice(String),
}

/// Result of checking the arms of an experiment on this machine.
#[derive(Debug, Clone)]
pub struct ArmCheck {
    pub spec: ExperimentSpec,
    /// The values of its arms on this machine, or why they cannot be compared.
    pub result: Result<ValidatedSpec, String>,
}

impl ArmCheck {
    /// Whether it holds for an experiment. The control matters: direct I/O is one for some knobs only.
    pub fn holds_for(&self, spec: &ExperimentSpec) -> bool {
        let settings = |s: &ExperimentSpec| (s.base_assignments.clone(), s.set_assignments.clone(), s.control);
        settings(&self.spec) == settings(spec)
    }
}

/// An event of the Tune view; `id` is the number of a change.
#[derive(Debug)]
pub enum TuneEvent {
    Refreshed(KnobSnapshot),
    Applied {
        id: u64,
        /// Length of its lease, seconds; `None` if all values were set already.
        lease_secs: Option<u64>,
    },
    AppliedPermanently(u64),
    Refused(String),
    LeaseTime {
        id: u64,
        secs_left: u64,
        was_renewed: bool,
    },
    Kept(u64),
    /// A lease runs on without this program.
    Detached(u64),
    Undone {
        id: u64,
        /// Time of the revert, CLOCK_BOOTTIME in ns.
        boot_ns: u64,
        /// Whether the lease ran out.
        was_automatic: bool,
        /// Outcome for each knob, sanitized.
        lines: Vec<String>,
        /// Whether all old values are back.
        is_fully_restored: bool,
        /// Whether nothing is left to revert.
        is_closed: bool,
    },
    /// The tuner of a lease ended without a report.
    TunerLost(u64),
    Failed(String),
}

#[derive(Debug)]
pub enum ReplayEvent {
    /// Everything before is void. Holds the kernel log up to there; everything else follows.
    Reset(Vec<Observation>),
    Ticks {
        ticks: Vec<DecodedTick>,
        /// Whether the last one is the one to show; if not, more follow.
        is_settled: bool,
        /// Number of frames that could not be read so far.
        unreadable_frames: u64,
    },
    Searching {
        forward: bool,
        /// Wall clock reached, ns since 1970.
        wall_ns: i64,
    },
    SearchEnded {
        forward: bool,
        /// Findings that begin at the tick found; empty: there is no such tick; `None`: the search was stopped.
        transitions: Option<Vec<FindingTransition>>,
    },
    /// There is no tick after the one on screen.
    EndReached,
    /// The file cannot be read any further; says why.
    Failed(String),
}

impl ReplayEvent {
    pub fn needs_redraw(&self) -> bool {
        !matches!(self, ReplayEvent::Reset(_) | ReplayEvent::Ticks { is_settled: false, .. })
    }
}
