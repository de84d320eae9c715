//! The columns of the large tables: one list each, used by screen, help, sorting and exports.

pub mod device;
pub mod figures;
pub mod process;
mod process_sources;
pub(crate) mod stalls;
