//! Recordings: what the collectors told, kept so that the whole program works over it later.
//!
//! A recording is a header and frames, one for each tick ([`frame`]). A frame holds what came since the frame
//! before, as raw as it came ([`Entry`]), written as differences ([`sample`], [`tasks`], [`state`]). Every
//! sixty frames one holds besides what has changed since the last key frame, and every fifteen of those all that
//! is known, so a reader can begin there: to seek, and after damage. Frames from one such point to the next are
//! one compressed stream ([`pack`]), given out at each frame.
//!
//! The writer ([`writer`]) is a thread that never touches a file: a child process does ([`io`]), because the
//! disk may hang. A reader ([`reader`]) trusts nothing it reads.

pub mod codec;
pub mod compress;
pub mod counter_row;
pub mod decoder;
pub mod encoder;
pub mod file_worker;
pub mod frame;
pub mod reader;
pub mod sample;
pub mod state;
pub mod syncs;
pub mod table;
pub mod tasks;
pub mod time_spec;
pub mod traced;
pub mod writer;

#[cfg(test)]
mod tests;
