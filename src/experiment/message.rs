//! What passes between the program and the child that conducts: JSON, one message a line.

use super::report::{Point, Report, Round, Thresholds};
use super::spec::Arm;
use crate::bench::host::FromChild;
use crate::bench::message::Progress as BenchProgress;
use crate::tune::plan::Refusal;
use serde::{Deserialize, Serialize};

/// From the child. To it goes the [`super::spec::Spec`], then [`crate::bench::message::Command`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // a few a second
pub enum Message {
    /// How far it is; several times a second during a round.
    Progress(Progress),
    /// A round is over.
    Round(Box<Round>),
    /// Something to know at once.
    Note(String),
    /// Not begun, nothing was changed. The last message.
    Refused(Refusal),
    /// It went wrong before the first round was over; the old values are back unless the text says otherwise.
    /// The last message.
    Failed(String),
    /// The end, complete or not. The last message.
    Report(Box<Report>),
}

impl FromChild for Message {
    fn is_last(&self) -> bool {
        matches!(self, Message::Refused(_) | Message::Failed(_) | Message::Report(_))
    }

    fn broken(why: String) -> Self {
        Message::Failed(format!(
            "the conducting process {why}; the tuner takes the change back by itself, `iotop-plus tune status` shows it"
        ))
    }

    fn failed(why: String) -> Self {
        Message::Failed(why)
    }
}

/// A step of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Dirty pages are written.
    Drain,
    /// What others do is watched.
    Calm,
    /// The arm's values are set.
    Apply,
    /// The workload runs.
    Work,
    /// The old values come back.
    Restore,
}

impl Phase {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Phase::Drain => "draining dirty pages",
            Phase::Calm => "watching what others do",
            Phase::Apply => "setting the values",
            Phase::Work => "measuring",
            Phase::Restore => "putting the old values back",
        }
    }
}

/// How far an experiment is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether this is the negative control.
    pub control: bool,
    /// Round, from 1 over all of the experiment.
    pub round: u32,
    /// Rounds of all.
    pub of: u32,
    /// Whose.
    pub arm: Arm,
    /// What is going on.
    pub phase: Phase,
    /// The workload's own progress, while it runs.
    pub bench: Option<BenchProgress>,
    /// Dirty pages now, while counting.
    pub point: Option<Point>,
    /// The arm's thresholds, while it runs.
    pub thresholds: Thresholds,
}
