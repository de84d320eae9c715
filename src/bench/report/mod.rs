//! The report of a run: its data, and one file per format.

pub(crate) mod chart;
pub mod data;
pub(crate) mod fio_json;
pub(crate) mod foreign;
pub(crate) mod format;
pub(crate) mod interpretation;
pub(crate) mod markdown;
pub mod reference_classes;
pub(crate) mod sparkline;
pub(crate) mod sweep;
pub(crate) mod text;
pub mod warnings;

pub use self::data::*;
