//! Scans of captured trees and of live child processes.

mod captured_tree;
mod fake_proc;
mod hung_files;
mod live;
mod task_iter;
