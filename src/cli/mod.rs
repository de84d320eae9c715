//! The command line: its parser, and one file per subcommand. Each subcommand returns its exit code.

mod args;
mod batch;
mod bench;
mod bench_output;
mod bench_progress;
mod child_progress;
mod dispatch;
mod docs;
mod doctor;
mod exit;
mod experiment;
mod export;
mod fleet;
mod full_screen;
mod job_file;
mod offscreen;
mod parser;
mod printer;
mod prometheus_args;
mod record;
mod replay;
mod replay_history;
#[cfg(test)]
mod replay_tests;
mod report;
mod sampler;
mod snapshot;
mod text_output;
mod tune;
mod worker_job;
mod workload_args;

#[cfg(any(test, fuzzing))]
pub(crate) use export::fuzz_web_config;

pub use dispatch::{print_usage_error, run};
pub use parser::Cli;
