//! Storage benchmarks: plans, engines, workloads, reports. Nothing here draws on the screen.
//!
//! A [`plan::BenchPlan`] says everything a run will do. The child process [`child::main`] runs it and sends
//! [`message::BenchMessage`]s, the last of which is a [`report::BenchReport`].

pub(crate) mod bounded_series;
pub(crate) mod child;
pub(crate) mod compare;
pub(crate) mod description;
pub mod disturbance;
pub mod engine;
pub mod fio;
pub mod io_spec;
pub mod measure;
pub mod message;
pub(crate) mod op_source;
pub(crate) mod params;
pub mod plan;
pub(crate) mod readahead;
pub mod report;
pub(crate) mod rng;
pub mod run_progress;
pub mod session;
pub mod store;
pub(crate) mod syscalls;
pub(crate) mod target;
pub mod target_info;
pub(crate) mod worker_loop;
pub mod workloads;
