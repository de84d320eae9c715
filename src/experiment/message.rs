//! The messages of the child process that runs an experiment.

use super::report::{DirtyPagesPoint, DirtyThresholds, ExperimentReport, Round};
use super::spec::{Arm, ExperimentSpec};
use crate::bench::message::BenchProgress;
use crate::subprocess::handle::ChildMessage;
use crate::tuning::plan::TuneError;
use serde::{Deserialize, Serialize};

/// From the child. To it goes the [`ExperimentSpec`], then [`crate::subprocess::handle::ChildCommand`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // a few a second
pub enum ExperimentMessage {
    /// Progress, several times a second during a round.
    Progress(ExperimentProgress),
    /// A round is over.
    Round(Box<Round>),
    /// A notice.
    Note(String),
    /// Not started, nothing was changed. The last message.
    Refused(TuneError),
    /// An error before the end of the first round; values are restored unless it says otherwise. The last message.
    Failed(String),
    /// The report, complete or not. The last message.
    Report(Box<ExperimentReport>),
}

impl ChildMessage for ExperimentMessage {
    const SUBCOMMAND: &'static str = "experiment-child";
    type Order = ExperimentSpec;

    fn is_last(&self) -> bool {
        matches!(self, ExperimentMessage::Refused(_) | ExperimentMessage::Failed(_) | ExperimentMessage::Report(_))
    }

    fn from_crash(why: String) -> Self {
        ExperimentMessage::Failed(format!(
            "the child process of the experiment {why}; the tuner takes the change back by itself, `iotop-plus tune status` shows it"
        ))
    }

    fn from_spawn_error(why: String) -> Self {
        ExperimentMessage::Failed(why)
    }
}

/// A step of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundPhase {
    /// Writes back dirty pages.
    Drain,
    /// Measures the activity of other processes.
    Baseline,
    /// Sets the arm's values.
    Apply,
    /// Runs the workload.
    Work,
    /// Restores the old values.
    Restore,
}

impl RoundPhase {
    /// Text for progress lines.
    pub fn description(self) -> &'static str {
        match self {
            RoundPhase::Drain => "draining dirty pages",
            RoundPhase::Baseline => "watching what others do",
            RoundPhase::Apply => "setting the values",
            RoundPhase::Work => "measuring",
            RoundPhase::Restore => "putting the old values back",
        }
    }
}

/// Progress of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentProgress {
    /// Whether this is the negative control.
    pub is_control: bool,
    /// Round, from 1, of the whole experiment.
    pub round: u32,
    /// Rounds of the whole experiment.
    pub total_rounds: u32,
    /// The arm.
    pub arm: Arm,
    /// The current phase.
    pub phase: RoundPhase,
    /// Progress of the workload, while it runs.
    pub bench: Option<BenchProgress>,
    /// Dirty pages, while counting.
    pub dirty_point: Option<DirtyPagesPoint>,
    /// The arm's thresholds, while it runs.
    pub thresholds: DirtyThresholds,
}
