//! Raw counters and the rates derived from them. Pure: no file, no clock, no kernel.

pub mod clock;
pub mod column;
pub mod columns;
pub mod cpu;
pub mod disk;
pub mod memory;
pub mod network;
pub mod pressure;
pub mod process;
pub mod sample;
pub mod section;
pub mod snapshot;
