//! What passes between the program and the child that measures: JSON, one message a line.

use super::plan::BenchPlan;
use super::report::{BenchReport, SeriesPoint};
use super::target::checks::BenchRefusal;
use crate::subprocess::handle::ChildMessage;
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

impl ChildMessage for BenchMessage {
    const SUBCOMMAND: &'static str = "bench-child";
    type Order = BenchPlan;

    fn is_last(&self) -> bool {
        !matches!(self, BenchMessage::Progress(_) | BenchMessage::Note(_))
    }

    fn from_crash(why: String) -> Self {
        BenchMessage::Failed(format!("the measuring process {why}; its file went with it"))
    }

    fn from_spawn_error(why: String) -> Self {
        BenchMessage::Failed(why)
    }
}
