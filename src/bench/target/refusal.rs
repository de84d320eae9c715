//! Why a benchmark may not run somewhere, or ends early, as data and as text.

use crate::model::reading::describe_io_error;
use crate::sanitize::sanitize;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A refused benchmark: exit code 3, or 4 if a privilege is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct BenchRefusal {
    /// What was found and what to do instead; sanitized.
    pub reason: String,
    pub needs_privilege: bool,
}

/// Why a workload ends early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// By the user, or because the parent is gone.
    #[error("stopped")]
    Cancelled,
    /// By a check.
    #[error(transparent)]
    Refused(#[from] BenchRefusal),
    /// An error.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// The error of a failed system call; `what` names it.
    pub fn from_errno(what: &str, err: impl Into<std::io::Error>) -> Self {
        RunError::Failed(format!("{what}: {}", describe_io_error(&err.into())))
    }
}

/// An error for a benchmark that would be unsafe or meaningless.
pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T, BenchRefusal> {
    Err(BenchRefusal { reason: why.into(), needs_privilege: false })
}

pub(super) fn display_path(path: &Path) -> String {
    sanitize(path.as_os_str().as_encoded_bytes())
}

/// The refusal for a failed open or allocation.
pub(crate) fn refusal_from_errno(path: &Path, errno: Errno) -> BenchRefusal {
    let path = display_path(path);
    let (why, privilege) = match errno {
        Errno::ACCESS | Errno::PERM => (format!("{path}: no permission to create a file there"), true),
        Errno::ROFS => (format!("{path} is on a read-only file system"), false),
        Errno::NOSPC => (format!("{path}: no space left on the device"), false),
        Errno::DQUOT => (format!("{path}: your disk quota is used up"), false),
        Errno::NOTDIR => (format!("{path}: a part of this path is no directory"), false),
        Errno::LOOP => (format!("{path}: symlinks go round in a circle"), false),
        Errno::NAMETOOLONG => ("the directory's path is too long".into(), false),
        Errno::NOTCONN => (format!("{path}: the file system's server is gone"), false),
        Errno::STALE => (format!("{path}: stale network file handle"), false),
        errno => (format!("{path}: {}", describe_io_error(&errno.into())), false),
    };
    BenchRefusal { reason: why, needs_privilege: privilege }
}
