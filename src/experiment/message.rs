//! What passes between the program and the child that conducts: JSON, one message a line.

use super::report::{DirtyPagesPoint, DirtyThresholds, ExperimentReport, Round};
use super::spec::{Arm, ExperimentSpec};
use crate::bench::message::BenchProgress;
use crate::subprocess::handle::ChildMessage;
use crate::tuning::plan::TuneError;
use serde::{Deserialize, Serialize};

/// From the child. To it goes the [`super::spec::Spec`], then [`crate::subprocess::handle::ChildCommand`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // a few a second
pub enum ExperimentMessage {
    /// How far it is; several times a second during a round.
    Progress(ExperimentProgress),
    /// A round is over.
    Round(Box<Round>),
    /// Something to know at once.
    Note(String),
    /// Not begun, nothing was changed. The last message.
    Refused(TuneError),
    /// It went wrong before the first round was over; the old values are back unless the text says otherwise.
    /// The last message.
    Failed(String),
    /// The end, complete or not. The last message.
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
            "the conducting process {why}; the tuner takes the change back by itself, `iotop-plus tune status` shows it"
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
    /// Dirty pages are written.
    Drain,
    /// What others do is watched.
    Baseline,
    /// The arm's values are set.
    Apply,
    /// The workload runs.
    Work,
    /// The old values come back.
    Restore,
}

impl RoundPhase {
    /// In words.
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

/// How far an experiment is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentProgress {
    /// Whether this is the negative control.
    pub is_control: bool,
    /// Round, from 1 over all of the experiment.
    pub round: u32,
    /// Rounds of all.
    pub total_rounds: u32,
    /// Whose.
    pub arm: Arm,
    /// What is going on.
    pub phase: RoundPhase,
    /// The workload's own progress, while it runs.
    pub bench: Option<BenchProgress>,
    /// Dirty pages now, while counting.
    pub dirty_point: Option<DirtyPagesPoint>,
    /// The arm's thresholds, while it runs.
    pub thresholds: DirtyThresholds,
}
