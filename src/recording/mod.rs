//! Recordings: every observation of the collectors in a file, so that the whole program can run on it later.
//!
//! A recording is a header and frames, one for each tick ([`frame`]). A frame holds the observations since the frame
//! before, unprocessed, as differences ([`sample`], [`tasks`], [`state`]). Every 60th frame (a checkpoint) also holds
//! what has changed since the last key frame, and every 15th checkpoint (a key frame) holds everything known. A reader
//! can start there: to seek, and after damage. The frames from one checkpoint to the next are one compressed stream
//! ([`compress`]), flushed at each frame.
//!
//! The writer ([`writer`]) is a thread that never touches a file, because the disk may hang: a child process does
//! ([`file_worker`]). The reader ([`reader`]) trusts nothing it reads.

pub(crate) mod codec;
pub(crate) mod compress;
pub(crate) mod cost;
pub(crate) mod counter_row;
pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod file_io;
pub(crate) mod file_worker;
pub(crate) mod frame;
pub mod reader;
pub(crate) mod sample;
pub(crate) mod state;
pub(crate) mod syncs;
pub(crate) mod table;
pub(crate) mod task_waits;
pub(crate) mod tasks;
pub(crate) mod time_spec;
pub(crate) mod traced;
pub mod writer;

#[cfg(test)]
mod tests;
