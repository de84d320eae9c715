//! Why a benchmark may not run somewhere, or ends early, as data and as text.

use crate::model::reading::describe_io_error;
use crate::sanitize::sanitize;
use crate::tuning::plan::TuneError;
use rustix::io::Errno;
use std::path::Path;

/// Why a workload ends early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// By the user, or because the parent is gone.
    #[error("stopped")]
    Cancelled,
    /// By a check.
    #[error(transparent)]
    Refused(#[from] TuneError),
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
pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T, TuneError> {
    Err(TuneError::Unsafe(why.into()))
}

pub(super) fn display_path(path: &Path) -> String {
    sanitize(path.as_os_str().as_encoded_bytes())
}

pub(crate) fn refusal_from_errno(path: &Path, errno: Errno) -> TuneError {
    let path = display_path(path);
    TuneError::Unsafe(match errno {
        Errno::ACCESS | Errno::PERM => {
            return TuneError::Privilege(format!("{path}: no permission to create a file there"));
        }
        Errno::ROFS => format!("{path} is on a read-only file system"),
        Errno::NOSPC => format!("{path}: no space left on the device"),
        Errno::DQUOT => format!("{path}: your disk quota is used up"),
        Errno::NOTDIR => format!("{path}: a part of this path is no directory"),
        Errno::LOOP => format!("{path}: symlinks go round in a circle"),
        Errno::NAMETOOLONG => "the directory's path is too long".into(),
        Errno::NOTCONN => format!("{path}: the file system's server is gone"),
        Errno::STALE => format!("{path}: stale network file handle"),
        errno => format!("{path}: {}", describe_io_error(&errno.into())),
    })
}
