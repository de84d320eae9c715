//! Raw counters and the rates derived from them. Pure: no file, no clock, no kernel.

pub mod beforeafter;
pub mod charge;
pub mod clock;
pub mod column;
pub mod columns;
pub mod cpu;
pub mod device_list;
pub mod disk;
pub mod facts;
pub mod history;
pub mod kernlog;
pub mod latency;
pub mod memory;
pub mod mount;
pub mod network;
pub mod path;
pub mod pressure;
pub mod process;
pub mod queue;
pub mod raw;
pub mod sample;
pub mod section;
pub mod snapshot;
pub mod topology;
pub mod world;
