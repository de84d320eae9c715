//! The collector on captured trees and on live children.

mod captured_tree;
mod fake_proc;
mod hung_files;
mod live;
mod task_iter;
