//! What is on screen or in a snapshot, as something somebody can keep: text, tables, JSON, pictures.

pub mod batch;
pub mod csv;
pub mod devices;
pub mod findings;
pub mod io_attribution;
pub mod json;
pub mod kernel_log;
pub mod memory;
pub mod network;
pub mod path_report;
pub mod processes;
pub mod report;
pub mod screenshot;
pub mod snapshot;
pub mod syncs;
pub mod table;
