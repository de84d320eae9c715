//! One reading by a collector, on its way into [`SystemState::apply`](super::system_state::SystemState::apply).
//!
//! The screen, the printers, the doctor and a replay all take readings in this form, and a recording is a list of
//! them. A replay therefore shows exactly what the live program showed.

use super::containers::ContainerName;
use super::kernel_log::{KmsgRecord, LogClock};
use super::process::ProcessUpdate;
use super::queue::QueueAttrs;
use super::reading::{BlockedRead, Reading};
use super::sample::Sample;
use super::slow_facts::{SpaceReport, SystemFacts};
use super::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a collector read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Observation {
    /// The counters of one tick.
    Sample(Box<Sample>),
    /// A scan of the tasks.
    Tasks(Box<Reading<ProcessUpdate>>),
    /// Block devices and mounts.
    Topology(Box<Reading<Topology>>),
    /// Queue settings by device name; devices that are not listed keep theirs.
    Queues(BTreeMap<String, QueueAttrs>),
    /// What could not be read, as (source, reason), beyond what the readings themselves say. Only exports show it.
    Unavailable(Vec<(String, String)>),
    /// Kernel log records, and the clocks when they were read.
    KernelLog(Vec<KmsgRecord>, LogClock),
    /// Whether the kernel log can be read.
    KernelLogState(Reading<()>),
    /// All reads that do not return.
    BlockedSources(Vec<BlockedRead>),
    /// `kernel.hung_task_warnings`.
    HungTaskWarnings(Option<i64>),
    /// Kernel settings, limits, stored benchmark results.
    Facts(Box<SystemFacts>),
    /// Free space on mounted file systems.
    DiskSpace(SpaceReport),
    /// What containers are called. Recordings have it among the facts.
    Containers(Vec<ContainerName>),
}

/// What [`SystemState::apply`](super::system_state::SystemState::apply) changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The counters: a new tick.
    Counters,
    /// The process table, or whether there is one.
    Tasks,
    /// Block devices and mounts.
    Topology,
    /// Entries of the kernel log.
    KernelLog,
    /// Something read rarely, or only a status.
    Other,
    /// Nothing.
    None,
}
