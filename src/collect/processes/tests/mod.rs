//! Scans of captured trees and of live child processes.

mod captured_tree;
mod fake_proc;
mod hung_files;
mod live;
// Other unit tests have it with the whole fixture.
#[allow(clippy::duplicate_mod)]
#[path = "../../../../tests/fixture/process_collector.rs"]
mod process_collector;
mod task_iter;
mod thread_states;
