//! One file per kernel source, and the list [`sources`] that names them.
//!
//! A source reads and parses; it never judges and never turns "could not read" into a number.

pub mod clock;
pub(crate) mod collectors;
pub(crate) mod facts;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod host;
pub(crate) mod kernel_file;
pub(crate) mod limits;
pub(crate) mod mountinfo;
pub mod path;
pub mod processes;
pub mod queue;
pub(crate) mod sampler;
pub mod topology;

mod cifs;
mod control_groups;
mod diskstats;
pub mod kmsg;
mod meminfo;
mod netdev;
mod netfs;
mod nfs;
mod pressure;
mod route;
mod source;
mod stat;
mod traced;
mod vmstat;

pub use source::Source;

use crate::model::reading::Reading;
use crate::parse::swaps;
use crate::root::Root;
use kernel_file::PersistentFile;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Every source, in reading order: the cheapest and safest first.
pub fn sources(root: &Root) -> Vec<Source> {
    let has_netfs = Arc::new(AtomicBool::new(false));
    vec![
        diskstats::source(root),
        stat::source(root),
        vmstat::source(root),
        meminfo::source(root),
        pressure::source(root),
        Source::from_file(
            "/proc/swaps",
            PersistentFile::new(root.proc("swaps")),
            |s| &mut s.swap_areas,
            |text| Reading::Ok(swaps::parse(text).collect()),
        ),
        netfs::source(root, has_netfs.clone()),
        netdev::source(root, has_netfs),
    ]
}
