//! What is on screen or in a snapshot, as text somebody can keep: plain, Markdown, JSON, SVG.

pub mod batch;
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
pub mod sheet;
pub mod svg;
