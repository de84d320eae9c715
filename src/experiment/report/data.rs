//! A finished experiment as plain data: what is stored and sent by the child.

use super::verdict::TrialVerdict;
use crate::bench::measure::latency::LatencyStats;
use crate::bench::plan::BenchPlan;
pub use crate::bench::report::RunEnd;
use crate::bench::report::{BenchReport, ReportTarget, operation_rows};
use crate::bench::store::{Storable, StoredReport};
use crate::bench::workloads::PrimaryMetric;
use crate::experiment::arm_settings::{ArmSetting, DirtyMemory};
use crate::experiment::spec::{Arm, ExperimentSpec};
use crate::experiment::stats::ArmComparison;
use serde::{Deserialize, Serialize};

/// Version of the stored form.
pub const SCHEMA: u32 = 1;

/// An experiment's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// ID in the store: time and profile.
    pub id: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Of this machine.
    pub host: String,
    /// Its kernel release.
    pub kernel: String,
    /// Of this program.
    pub version: String,
    /// What was requested.
    pub spec: ExperimentSpec,
    /// The settings of both arms.
    pub settings: Vec<ArmSetting>,
    /// Whether they are knobs of the page cache only.
    pub only_page_cache: bool,
    /// The machine's memory at the beginning.
    pub memory: DirtyMemory,
    /// Background threshold and limit in force in A and in B, bytes.
    pub thresholds: [DirtyThresholds; 2],
    /// The experiment, and the control if there was one.
    pub trials: Vec<Trial>,
    /// Conditions that distort the results.
    pub warnings: Vec<String>,
    /// How it ended.
    pub end: RunEnd,
    /// What became of the change, as a sentence.
    #[serde(rename = "after")]
    pub aftermath: String,
}

impl ExperimentReport {
    /// The target of the rounds; `None` without a round or a file.
    pub fn target(&self) -> Option<&ReportTarget> {
        self.trials.iter().flat_map(|t| &t.rounds).find_map(|r| r.bench.target.as_ref())
    }
}

impl Storable for ExperimentReport {
    const KIND: &'static str = "experiment";
    const SCHEMA: u32 = SCHEMA;

    fn id(&self) -> &str {
        &self.id
    }

    fn schema(&self) -> u32 {
        self.schema
    }

    fn summarize(&self) -> StoredReport {
        let verdict = self.trials.first().map(|trial| &trial.verdict);
        let (outcome, text) = verdict.map_or(("-", ""), |v| (v.outcome.brief(), &v.text));
        let (part, end) = if self.end == RunEnd::Complete { ("", "") } else { (" (part)", ", not complete") };
        let directory = self.target().map_or("", |t| &t.directory);
        let b = self.spec.set_assignments.join(" ");
        StoredReport {
            profile: self.spec.plan.profile.clone(),
            time: self.time.clone(),
            directory: directory.to_owned(),
            brief: format!(" {outcome}{part}  {b}"),
            summary: format!("{} {directory}, B: {b}{end}. {text}", self.time),
            details: [b, outcome.into()],
            ..StoredReport::default()
        }
    }
}

/// The dirty thresholds as the kernel computed them, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyThresholds {
    /// `nr_dirty_background_threshold`.
    pub background: Option<u64>,
    /// `nr_dirty_threshold`.
    pub limit: Option<u64>,
}

/// All rounds of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Whether it is the negative control.
    #[serde(rename = "control")]
    pub is_control: bool,
    /// The work.
    pub plan: BenchPlan,
    /// What it does, one line each.
    #[serde(rename = "work")]
    pub work_description: Vec<String>,
    /// The metric that is compared.
    pub metric: PrimaryMetric,
    /// In the order they were run.
    pub rounds: Vec<Round>,
    /// B against A; `None` without a round of each.
    pub comparison: Option<ArmComparison>,
    /// The verdict.
    pub verdict: TrialVerdict,
}

impl Trial {
    /// The values of an arm's complete rounds.
    pub fn values(&self, arm: Arm) -> Vec<f64> {
        self.complete_rounds(arm).filter_map(|r| r.value).collect()
    }

    pub(crate) fn complete_rounds(&self, arm: Arm) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(move |r| r.arm == arm && r.is_comparable())
    }

    /// Latencies over all rounds of an arm, by operation (with the measurement's label if there are several).
    pub(crate) fn latencies(&self, arm: Arm) -> Vec<(String, LatencyStats)> {
        let mut all: Vec<(String, LatencyStats)> = Vec::new();
        let several = self.rounds.iter().any(|r| r.bench.measurements.len() > 1);
        for part in self.complete_rounds(arm).flat_map(|r| &r.bench.measurements) {
            for row in operation_rows(part).into_iter().filter(|row| row.lat.count > 0) {
                let what = row.operation;
                let name = if several { format!("{}: {what}", part.label) } else { what.to_owned() };
                match all.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, sum)) => *sum = sum.merge(row.lat),
                    None => all.push((name, row.lat.clone())),
                }
            }
        }
        all
    }
}

/// One round of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its number within the trial, from 1.
    pub number: u32,
    /// The arm.
    pub arm: Arm,
    /// The metric; `None`: nothing was counted.
    pub value: Option<f64>,
    /// Time to write back dirty pages before it, ms.
    pub drained_ms: u64,
    /// Activity of other processes just before it.
    #[serde(rename = "calm")]
    pub baseline: Baseline,
    /// Bytes made dirty on the machine while it counted.
    #[serde(rename = "dirtied")]
    pub dirtied_bytes: Option<u64>,
    /// Bytes written back meanwhile.
    #[serde(rename = "written")]
    pub written_bytes: Option<u64>,
    /// Dirty pages over the counted time.
    #[serde(rename = "points")]
    pub dirty_points: Vec<DirtyPagesPoint>,
    /// The workload's whole report.
    pub bench: BenchReport,
}

impl Round {
    pub(crate) fn is_comparable(&self) -> bool {
        self.bench.end == RunEnd::Complete && self.value.is_some()
    }

    /// Whether a cache answered where the workload is about the device.
    pub(crate) fn is_from_cache(&self) -> bool {
        self.bench.measurements.iter().any(|part| part.from_cache)
    }

    pub(crate) fn counted_secs(&self) -> f64 {
        self.bench.measurements.iter().map(|p| p.elapsed_secs()).sum()
    }

    pub(crate) fn longest_stall_ns(&self) -> u64 {
        self.bench.measurements.iter().map(|p| p.stalls.longest_ns).max().unwrap_or(0)
    }
}

/// Activity of other processes while no workload ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// CPU use, percent of all processors.
    pub cpu_pct: Option<f64>,
    /// Busy devices: number and bytes per second.
    pub disks: Vec<(String, f64)>,
    /// Another file system did not finish its sync: its dirty pages count towards the thresholds.
    #[serde(rename = "undrained")]
    pub sync_timed_out: bool,
}

/// Dirty pages at a moment, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyPagesPoint {
    /// Time since counting started, ms.
    pub at_ms: u64,
    /// Waiting to be written.
    #[serde(rename = "dirty")]
    pub dirty_bytes: u64,
    /// Being written.
    #[serde(rename = "writeback")]
    pub writeback_bytes: u64,
}
