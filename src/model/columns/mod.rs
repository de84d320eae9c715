//! The columns of the two big tables: one list each, read by screen, help, sorting and exports.

pub mod device;
pub mod process;
pub mod syncs;
