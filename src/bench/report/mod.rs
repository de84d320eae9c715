//! The report of a run: its data, and one file per format.

pub(crate) mod cache;
pub(crate) mod chart;
pub(crate) mod csv;
pub mod data;
pub(crate) mod depth;
pub(crate) mod fio_json;
pub(crate) mod fio_log;
pub(crate) mod foreign;
pub(crate) mod format;
pub(crate) mod interpretation;
pub(crate) mod iocost;
pub(crate) mod markdown;
pub(crate) mod mix;
pub mod reference_classes;
pub(crate) mod request_size;
pub(crate) mod steady_state;
pub(crate) mod sweep;
pub(crate) mod text;
pub mod warnings;

pub use self::data::*;
