//! Raw counters, the rates derived from them, and the state of the system. Pure: no files, no clock, no kernel.

pub(crate) mod change_impact;
pub(crate) mod column;
pub mod columns;
pub(crate) mod cpu;
pub(crate) mod device_list;
pub(crate) mod disk;
pub mod file_io;
pub(crate) mod file_path;
pub(crate) mod health;
pub(crate) mod history;
pub mod io_accounting;
pub mod kernel_log;
pub mod latency;
pub(crate) mod memory;
pub mod memory_stalls;
pub(crate) mod mount;
pub mod network;
pub mod observation;
pub mod path;
pub(crate) mod pressure;
pub mod process;
pub(crate) mod queue;
pub mod raw_bytes;
pub mod reading;
pub mod request_pattern;
pub mod sample;
pub(crate) mod slow_facts;
pub mod snapshot;
pub mod syncs;
pub mod system_state;
pub mod timestamp;
pub(crate) mod topology;
pub(crate) mod wait_channel;

pub use crate::parse::device_id;
pub use topology::Topology;
