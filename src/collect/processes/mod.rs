//! Processes and threads: detects which ones ran since the last scan, reads those, and reports only the differences.
//!
//! A scan of 20,000 idle processes must cost a fraction of a second of CPU per minute, and a task stuck in the kernel
//! must not stop it. Therefore run counts are compared first ([`activity_filter`]), only tasks that ran are read
//! ([`file_reader`]), names are read once, and a scan proceeds in phases ([`scan`]) so that another thread can continue
//! it when a read hangs ([`scan_threads`]). Where the kernel permits, a BPF iterator reports all tasks ([`iter_scan`])
//! and few files are left to read.

mod activity_filter;
mod cgroups;
pub(crate) mod detail;
mod file_reader;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod ionice;
mod iter_merge;
mod iter_scan;
pub(crate) mod mappings;
mod passwd;
mod path;
mod scan;
mod scan_steps;
pub mod scan_threads;
mod stuck_read;
mod swap_activity;
mod task_list;
pub mod task_scanner;
mod task_state;
mod taskstats;
mod thread_groups;
mod thread_states;
pub(crate) mod user_names;
pub(crate) mod user_resolver;
mod visibility;
pub(crate) mod written_files;

#[cfg(test)]
mod tests;

pub use task_scanner::ScanOptions;
