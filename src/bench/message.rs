//! What passes between the program and the child that measures: JSON, one message a line.

use super::report::{BenchReport, SeriesPoint};
use super::target::checks::BenchRefusal;
use serde::{Deserialize, Serialize};

/// From the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchMessage {
    /// How far it is; about four times a second.
    Progress(Box<BenchProgress>),
    /// Something to know at once: io_uring was refused, a block size was skipped.
    Note(String),
    /// Not begun, for safety or for want of a privilege. The last message.
    Refused(BenchRefusal),
    /// Not begun, because it went wrong. The last message.
    Failed(String),
    /// The end, complete or not. The last message.
    Report(Box<BenchReport>),
}

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchProgress {
    /// The measurement under way: its label.
    pub phase: String,
    /// Its place among the run's measurements, from 0; `None`: preparation.
    #[serde(rename = "part")]
    pub measurement_index: Option<u32>,
    /// Share done of this phase, 0 to 1; `None` where nobody can know.
    pub fraction_done: Option<f64>,
    /// Still in the ramp-up: nothing is counted yet.
    pub is_ramping: bool,
    /// Rates since the message before.
    pub point: SeriesPoint,
    /// Operations counted in this phase: reads, writes, syncs.
    #[serde(rename = "counts")]
    pub op_counts: [u64; 3],
    /// Median and 99th percentile of `lat` since the message before, ns, for each of them; `None` where
    /// none completed.
    #[serde(default)]
    pub lat: [[Option<u64>; 2]; 3],
    /// For so long nothing has completed, ms.
    pub idle_ms: u64,
}

/// To the child, after the plan; closing the pipe means the same as `cancel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildCommand {
    /// End now, with what there is.
    Cancel,
}
