//! Measuring storage: plans, engines, workloads, reports. Headless; the screen is somebody else's.
//!
//! A [`plan::Plan`] says everything a run will do. [`host::Running`] starts it in a child process of the
//! same binary ([`child::main`]), which sends [`message::Message`]s and, last, a [`report::Report`].

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
