//! What a child can be asked to do, and what it answers. Plain data, JSON on the pipe.

use crate::model::section::describe;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A piece of work that may block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Write a file whole: to a temporary name, synced, renamed; never through a symlink.
    WriteFile {
        /// Where; its directory must exist unless `make_dir`.
        path: PathBuf,
        /// The content.
        contents: String,
        /// Whether an existing file may be replaced.
        replace: bool,
        /// Whether to make the missing directory (0700).
        make_dir: bool,
    },
}

/// A job's outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The file is there.
    Written {
        /// Where.
        path: PathBuf,
    },
    /// It could not be done: what, why, what next.
    Failed(String),
}

impl Job {
    /// Two jobs with the same key are the same work: the second is refused while the first runs.
    pub fn key(&self) -> String {
        match self {
            Job::WriteFile { path, .. } => format!("writing {}", path.display()),
        }
    }

    /// Does it, here and now. Only a child process calls this.
    pub fn run(&self, _root: &Root) -> Reply {
        match self {
            Job::WriteFile { path, contents, replace, make_dir } => {
                match super::child::write_file(path, contents, *replace, *make_dir) {
                    Ok(()) => Reply::Written { path: path.clone() },
                    Err(err) => Reply::Failed(format!("{}: {}", path.display(), describe(&err))),
                }
            }
        }
    }
}
