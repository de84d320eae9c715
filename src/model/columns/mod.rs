//! The columns of the large tables: one list each, used by screen, help, sorting and exports.

pub mod device;
pub mod process;
pub(crate) mod stalls;
