//! Everything that changes the state, as one enum whatever its origin, so that a test can feed any sequence of events.

use super::knob_snapshot::KnobSnapshot;
use crate::bench::message::BenchMessage;
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
    /// From the child process of the benchmark with this number.
    Bench(u64, Box<ChildEvent<BenchMessage>>),
    /// From the child process of the experiment with this number.
    Experiment(u64, Box<ChildEvent<ExperimentMessage>>),
    /// Result of a check of arms.
    ArmsChecked(Box<ArmCheck>),
    /// From the tuner process.
    Tune(Box<TuneEvent>),
    /// From the player of a recording.
    Replay(Box<ReplayEvent>),
    /// Progress of the recorder.
    RecordingStatus(Box<crate::recording::writer::RecorderStatus>),
    /// An error message of the runtime.
    Notice(String),
}

/// Result of checking the arms of an experiment on this machine.
#[derive(Debug, Clone)]
pub struct ArmCheck {
    /// The experiment.
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
    /// A new snapshot.
    Refreshed(KnobSnapshot),
    /// A change was applied.
    Applied {
        /// Number of the change.
        id: u64,
        /// Length of its lease, seconds; `None` if all values were set already.
        lease_secs: Option<u64>,
    },
    /// A change was applied without a lease.
    AppliedPermanently(u64),
    /// A change was refused; says why.
    Refused(String),
    /// Time left of a lease.
    LeaseTime {
        /// Number of the change.
        id: u64,
        /// Seconds left.
        secs_left: u64,
        /// Whether the lease was restarted on request.
        was_renewed: bool,
    },
    /// A change was kept.
    Kept(u64),
    /// A lease runs on without this program.
    Detached(u64),
    /// A change was reverted.
    Undone {
        /// Number of the change.
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
    /// A request about a change failed.
    Failed(String),
}

/// An event of the player.
#[derive(Debug)]
pub enum ReplayEvent {
    /// Everything before is void. Holds the kernel log up to there; everything else follows.
    Reset(Vec<Observation>),
    /// Ticks to apply.
    Ticks {
        /// The ticks, in order.
        ticks: Vec<DecodedTick>,
        /// Whether the last one is the one to show; if not, more follow.
        is_settled: bool,
        /// Number of frames that could not be read so far.
        unreadable_frames: u64,
    },
    /// Progress of a search for a finding.
    Searching {
        /// Search forward.
        forward: bool,
        /// Wall clock reached, ns since 1970.
        wall_ns: i64,
    },
    /// A search has ended.
    SearchEnded {
        /// Searched forward.
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
    /// Whether the event changes what is on screen.
    pub fn needs_redraw(&self) -> bool {
        !matches!(self, ReplayEvent::Reset(_) | ReplayEvent::Ticks { is_settled: false, .. })
    }
}
