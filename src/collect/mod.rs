//! One file per kernel source, and the list [`sources`] that names them.
//!
//! A source reads and parses; it never judges and never turns "could not read" into a number.

pub mod clock;
pub mod collectors;
pub mod facts;
pub mod host;
pub mod io_accounting;
pub mod kernel_file;
pub mod latency;
pub mod memory_stalls;
pub mod mountinfo;
pub mod path;
pub mod processes;
pub mod queue;
pub mod sampler;
pub mod topology;

mod cifs;
mod diskstats;
pub mod kmsg;
mod meminfo;
mod netdev;
mod netfs;
mod nfs;
mod pressure;
mod route;
mod stat;
mod swaps;
pub mod syncs;
mod vmstat;

use crate::model::reading::BlockedRead;
use crate::model::sample::Sample;
use crate::root::Root;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A value read, to be put into the sample by the thread that assembles the tick.
pub type SampleUpdate = Box<dyn FnOnce(&mut Sample) + Send>;

/// One kernel source of counters.
pub trait Source: Send {
    /// The file it reads: shown where the source is blocked or missing.
    fn name(&self) -> &'static str;
    /// Puts into a sample that this source is blocked.
    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead);
    /// Reads once. May block; the caller supervises it.
    fn read(&mut self) -> SampleUpdate;
}

/// Every source, in reading order: the cheapest and safest first.
pub fn sources(root: &Root) -> Vec<Box<dyn Source>> {
    let has_netfs = Arc::new(AtomicBool::new(false));
    vec![
        Box::new(diskstats::DiskstatsSource::new(root)),
        Box::new(stat::StatSource::new(root)),
        Box::new(vmstat::VmstatSource::new(root)),
        Box::new(meminfo::MeminfoSource::new(root)),
        Box::new(pressure::PressureSource::new(root)),
        Box::new(swaps::SwapsSource::new(root)),
        Box::new(netfs::NetFsSource::new(root, has_netfs.clone())),
        Box::new(netdev::NetdevSource::new(root, has_netfs)),
    ]
}
