//! The report of a run: its data, and one file per format.

pub mod chart;
pub mod data;
pub mod fio_json;
pub mod format;
pub mod interpretation;
pub mod markdown;
pub mod reference_classes;
pub mod sparkline;
pub mod sweep;
pub mod text;
pub mod warnings;

pub use self::data::*;
