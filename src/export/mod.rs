//! What is on screen or in a snapshot, as something somebody can keep: text, tables, JSON, pictures.

pub mod batch;
pub mod charge;
pub mod csv;
pub mod devices;
pub mod findings;
pub mod json;
pub mod kernel;
pub mod memory;
pub mod network;
pub mod page;
pub mod path;
pub mod processes;
pub mod report;
pub mod sheet;
pub mod shot;
pub mod syncs;
