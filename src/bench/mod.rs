//! Measuring storage: plans, engines, workloads, reports. Headless; the screen is somebody else's.
//!
//! A [`plan::Plan`] says everything a run will do. [`host::Running`] starts it in a child process of the
//! same binary ([`child::main`]), which sends [`message::Message`]s and, last, a [`report::Report`].

pub mod child;
pub mod compare;
pub mod drive;
pub mod engine;
pub mod fiojob;
pub mod host;
pub mod look;
pub mod measure;
pub mod message;
pub mod outline;
pub mod params;
pub mod plan;
pub mod readahead;
pub mod report;
pub mod rng;
pub mod session;
pub mod spec;
pub mod store;
pub mod sys;
pub mod target;
pub mod watch;
pub mod workloads;
