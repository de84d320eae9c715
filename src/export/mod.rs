//! What is on screen or in a snapshot, as text somebody can keep: plain, Markdown, JSON, SVG.

pub mod path;
pub mod sheet;
pub mod svg;
