//! A finished experiment: plain data, and one file per way to write it down.

pub mod compare;
pub mod graph;
pub mod markdown;
pub mod sheet;
pub mod text;
pub mod verdict;
pub mod warnings;

use super::arms::{Memory, Setting};
use super::spec::{Arm, Spec};
use super::stats::Comparison;
use crate::bench::measure::latency::Latency;
use crate::bench::plan::Plan;
pub use crate::bench::report::End;
use crate::bench::report::{Report as BenchReport, Target};
use crate::bench::store::Keepable;
use crate::bench::workloads::headline::Metric;
use serde::{Deserialize, Serialize};

/// Version of the stored form.
pub const SCHEMA: u32 = 1;

/// An experiment's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name in the store: time and profile.
    pub id: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Of this machine.
    pub host: String,
    /// Its kernel release.
    pub kernel: String,
    /// Of this program.
    pub version: String,
    /// What was asked for.
    pub spec: Spec,
    /// What the arms set.
    pub settings: Vec<Setting>,
    /// Whether they set nothing but knobs of the page cache.
    pub only_page_cache: bool,
    /// The machine's memory at the beginning.
    pub memory: Memory,
    /// Background threshold and limit in force in A and in B, bytes.
    pub thresholds: [Thresholds; 2],
    /// The experiment, and the control if there was one.
    pub trials: Vec<Trial>,
    /// What to know before believing the figures.
    pub warnings: Vec<String>,
    /// How it ended.
    pub end: End,
    /// What became of the change, in a sentence.
    pub after: String,
}

/// How a report is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object with everything, the rounds' whole reports too.
    Json,
}

impl Report {
    /// The whole of it in a form.
    pub fn written(&self, form: Form) -> String {
        match form {
            Form::Text => text::report(self),
            Form::Markdown => markdown::report(self),
            // Plain data: there is nothing in it that has no JSON.
            Form::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
        }
    }

    /// Where the files were; `None` before the first round or without a file.
    pub fn target(&self) -> Option<&Target> {
        self.trials.iter().flat_map(|t| &t.rounds).find_map(|r| r.bench.target.as_ref())
    }
}

impl Keepable for Report {
    const KIND: &'static str = "experiment";
    const SCHEMA: u32 = SCHEMA;

    fn id(&self) -> &str {
        &self.id
    }

    fn schema(&self) -> u32 {
        self.schema
    }
}

/// When writing back begins, and where writers wait; as the kernel computed them, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// `nr_dirty_background_threshold`.
    pub background: Option<u64>,
    /// `nr_dirty_threshold`.
    pub limit: Option<u64>,
}

/// All rounds of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Whether it is the negative control.
    pub control: bool,
    /// The work.
    pub plan: Plan,
    /// What it does, a line each: how its file was laid out, too.
    pub work: Vec<String>,
    /// The figure that is compared.
    pub metric: Metric,
    /// In the order they were run.
    pub rounds: Vec<Round>,
    /// B against A; `None` without a round of each.
    pub comparison: Option<Comparison>,
    /// What may be said.
    pub verdict: verdict::Verdict,
}

impl Trial {
    /// The figures of an arm, of rounds that came to their end.
    pub fn values(&self, arm: Arm) -> Vec<f64> {
        self.rounds.iter().filter(|r| r.arm == arm && r.counts()).filter_map(|r| r.value).collect()
    }

    /// The complete rounds of an arm.
    pub fn of(&self, arm: Arm) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(move |r| r.arm == arm && r.counts())
    }

    /// Latencies of an arm, all its rounds together: what it is of (with the part's label if there are several),
    /// and the samples.
    pub fn latencies(&self, arm: Arm) -> Vec<(String, Latency)> {
        let mut all: Vec<(String, Latency)> = Vec::new();
        for part in self.of(arm).flat_map(|r| &r.bench.parts) {
            let several = self.rounds.iter().any(|r| r.bench.parts.len() > 1);
            let sync = if part.verb.is_empty() { "sync" } else { &part.verb };
            for (what, lat) in [("read", &part.read.lat), ("write", &part.write.lat), (sync, &part.sync.lat)]
            {
                if lat.n == 0 {
                    continue;
                }
                let name = if several { format!("{}: {what}", part.label) } else { what.to_owned() };
                match all.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, sum)) => *sum = sum.merged(lat),
                    None => all.push((name, lat.clone())),
                }
            }
        }
        all
    }
}

/// One round of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its place within the trial, from 1.
    pub number: u32,
    /// Whose.
    pub arm: Arm,
    /// The metric; `None`: nothing was counted.
    pub value: Option<f64>,
    /// How long dirty pages took to drain before it, ms.
    pub drained_ms: u64,
    /// What others did just before it.
    pub calm: Calm,
    /// Bytes made dirty on the machine while it counted.
    pub dirtied: Option<u64>,
    /// Bytes written back meanwhile.
    pub written: Option<u64>,
    /// Dirty pages while it counted.
    pub points: Vec<Point>,
    /// The workload's whole report.
    pub bench: BenchReport,
}

impl Round {
    /// Whether it may be compared.
    pub fn counts(&self) -> bool {
        self.bench.end == End::Complete && self.value.is_some()
    }

    /// Seconds counted, all parts together.
    pub fn secs(&self) -> f64 {
        self.bench.parts.iter().map(|p| p.secs()).sum()
    }

    /// The longest time without a completion, ns.
    pub fn longest_stall_ns(&self) -> u64 {
        self.bench.parts.iter().map(|p| p.stalls.longest_ns).max().unwrap_or(0)
    }
}

/// The machine while no workload of ours ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// Busy processors, per cent of all.
    pub cpu_pct: Option<f64>,
    /// Devices that moved something: number and bytes per second.
    pub disks: Vec<(String, f64)>,
    /// Another file system did not finish its sync: its dirty pages count towards the thresholds.
    pub undrained: bool,
}

/// Dirty pages at a moment, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Since counting began, ms.
    pub at_ms: u64,
    /// Waiting to be written.
    pub dirty: u64,
    /// Being written.
    pub writeback: u64,
}
