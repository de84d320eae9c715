//! fio job files: their text, their options, their jobs as fio runs them, and the job file of a plan.
//!
//! An option means exactly what it means in fio, or it is refused with its line and what to do instead.

pub(crate) mod block_map;
pub(crate) mod checksum;
pub(crate) mod content;
pub(crate) mod distribution;
pub(crate) mod export;
pub(crate) mod flow;
pub mod job;
pub(crate) mod latency_target;
pub(crate) mod layout;
pub(crate) mod option_rule;
pub(crate) mod options;
pub(crate) mod other_options;
pub(crate) mod parse;
pub(crate) mod positions;
pub(crate) mod rate;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod steady;
pub mod table;
pub(crate) mod text;
pub(crate) mod value;
pub(crate) mod verify;
