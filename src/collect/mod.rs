//! One file per kernel source, and the list [`sources`] that names them.
//!
//! A source reads and parses; it never judges and never turns "could not read" into a number.

pub mod charge;
pub mod clock;
pub mod facts;
pub mod feed;
pub mod host;
pub mod lane;
pub mod latency;
pub mod mountinfo;
pub mod path;
pub mod process;
pub mod queue;
pub mod read;
pub mod scan;
pub mod stalls;
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

use crate::model::sample::Sample;
use crate::model::section::Blocked;
use crate::root::Root;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A reading's way into the sample: run by whoever assembles the tick.
pub type Patch = Box<dyn FnOnce(&mut Sample) + Send>;

/// One kernel source of counters.
pub trait Source: Send {
    /// Its name on screen when it is blocked or missing: the file it reads.
    fn name(&self) -> &'static str;
    /// How a sample says that this source is stuck.
    fn blocked(&self) -> fn(&mut Sample, Blocked);
    /// Reads once. May block; the caller watches the time.
    fn read(&mut self) -> Patch;
}

/// Every source, in reading order: the cheapest and safest first.
pub fn sources(root: &Root) -> Vec<Box<dyn Source>> {
    let has_netfs = Arc::new(AtomicBool::new(false));
    vec![
        Box::new(diskstats::Diskstats::new(root)),
        Box::new(stat::Stat::new(root)),
        Box::new(vmstat::Vmstat::new(root)),
        Box::new(meminfo::Meminfo::new(root)),
        Box::new(pressure::PressureFiles::new(root)),
        Box::new(swaps::Swaps::new(root)),
        Box::new(netfs::NetFs::new(root, has_netfs.clone())),
        Box::new(netdev::Netdev::new(root, has_netfs)),
    ]
}
