//! The messages of the measuring child.

use super::plan::BenchPlan;
use super::report::{BenchReport, SeriesPoint};
use crate::subprocess::handle::ChildMessage;
use crate::tuning::plan::TuneError;
use serde::{Deserialize, Serialize};

/// From the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchMessage {
    /// Progress, about four times a second.
    Progress(Box<BenchProgress>),
    /// A notice: io_uring was refused, a block size was skipped.
    Note(String),
    /// Not started: unsafe, or a privilege is missing. The last message.
    Refused(TuneError),
    /// Not started because of an error. The last message.
    Failed(String),
    /// The report, complete or not. The last message.
    Report(Box<BenchReport>),
}

/// Progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchProgress {
    /// Label of the current measurement.
    pub phase: String,
    /// Its index, from 0; `None` during preparation.
    #[serde(rename = "part")]
    pub measurement_index: Option<u32>,
    /// Finished share of this phase, 0 to 1; `None` if unknown.
    pub fraction_done: Option<f64>,
    /// In the ramp-up: nothing is counted yet.
    pub is_ramping: bool,
    /// Rates since the previous message.
    pub point: SeriesPoint,
    /// Operations counted in this phase: reads, writes, syncs.
    #[serde(rename = "counts")]
    pub op_counts: [u64; 3],
    /// Median and 99th percentile of `lat` since the previous message, ns, for each of them; `None` if none completed.
    #[serde(default)]
    pub lat: [[Option<u64>; 2]; 3],
    /// Time since the last completion, ms.
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
