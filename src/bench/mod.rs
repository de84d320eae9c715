//! Storage benchmarks: plans, engines, workloads, reports. Nothing here draws on the screen.
//!
//! A [`plan::BenchPlan`] says everything a run will do. The child process [`child::main`] runs it and sends
//! [`message::BenchMessage`]s, the last of which is a [`report::BenchReport`].

pub mod child;
pub mod compare;
pub mod description;
pub mod engine;
pub mod fio_job;
pub mod io_spec;
pub mod measure;
pub mod message;
pub mod params;
pub mod plan;
pub mod readahead;
pub mod report;
pub mod rng;
pub mod run_progress;
pub mod session;
pub mod store;
pub mod syscalls;
pub mod target;
pub mod target_info;
pub mod worker_loop;
pub mod workloads;
