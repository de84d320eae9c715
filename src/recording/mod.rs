//! Recordings: what the collectors told, kept so that the whole program works over it later.
//!
//! A recording is a header and frames, one for each tick ([`frame`]). A frame holds what came since the frame
//! before, as raw as it came ([`Entry`]), written as differences ([`sample`], [`tasks`], [`state`]). Every
//! sixty frames one holds besides what has changed since the last key frame, and every fifteen of those all that
//! is known, so a reader can begin there: to seek, and after damage. Frames from one such point to the next are
//! one compressed stream ([`pack`]), given out at each frame.
//!
//! The writer ([`writer`]) is a thread that never touches a file: a child process does ([`io`]), because the
//! disk may hang. A reader ([`reader`]) trusts nothing it reads.

pub mod codec;
pub mod compress;
pub mod counter_row;
pub mod decoder;
pub mod encoder;
pub mod file_worker;
pub mod frame;
pub mod reader;
pub mod sample;
pub mod state;
pub mod syncs;
pub mod table;
pub mod tasks;
pub mod time_spec;
pub mod traced;
pub mod writer;

#[cfg(test)]
mod tests;

use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::process::ProcessUpdate;
use crate::model::queue::QueueAttrs;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::slow_facts::{SpaceReport, SystemFacts};
use crate::model::system_state::SystemState;
use crate::model::topology::Topology;
use std::collections::BTreeMap;

/// One piece of news, as it came from a collector.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A tick of counters.
    Sample(Box<Sample>),
    /// A look at the tasks.
    Tasks(Box<Reading<ProcessUpdate>>),
    /// Devices and mounts.
    Topology(Box<Reading<Topology>>),
    /// Queue settings, those that came.
    Queues(BTreeMap<String, QueueAttrs>),
    /// What is missing that the rest does not tell: what, and why.
    Unavailable(Vec<(String, String)>),
    /// Lines of the kernel log, and the clocks when they were read.
    KernelLog(Vec<KmsgRecord>, LogClock),
    /// Whether the kernel log can be read.
    KernelLogState(Reading<()>),
    /// Sources that do not return.
    BlockedSources(Vec<BlockedRead>),
    /// `kernel.hung_task_warnings`.
    HungTaskWarnings(Option<i64>),
    /// Settings, limits, kept results.
    Facts(Box<SystemFacts>),
    /// Room on mounts.
    DiskSpace(SpaceReport),
}

/// Takes news into a world, as the screen and the printers do when it comes from a collector.
pub fn apply(world: &mut SystemState, entry: Observation) {
    match entry {
        Observation::Sample(sample) => world.apply_sample(*sample),
        Observation::Tasks(look) => world.apply_processes(*look),
        Observation::Topology(topology) => world.topology = *topology,
        Observation::Queues(queues) => world.queues.extend(queues),
        Observation::KernelLog(records, clock) => {
            world.kernel_log_status = Reading::Ok(());
            world.apply_records(records, clock);
        }
        Observation::KernelLogState(state) => world.kernel_log_status = state,
        Observation::BlockedSources(list) => world.blocked_reads = list,
        Observation::HungTaskWarnings(left) => world.hung_task_warnings = left,
        Observation::Facts(facts) => world.slow_facts.update(*facts),
        Observation::DiskSpace(room) => world.slow_facts.update_space(room),
        // For exports only: whoever makes one keeps them.
        Observation::Unavailable(_) => {}
    }
}
