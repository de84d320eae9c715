//! Options of a scan.

use crate::model::process::TaskKey;

/// What the caller wants from the next scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Rows are threads instead of processes. A change restarts the table.
    pub threads: bool,
    /// Delay accounting is shown.
    pub delays: bool,
    /// Visible rows: their swap, I/O priority and wait channel are refreshed even while they sleep.
    pub visible: Vec<TaskKey>,
    /// Read the wait channels of visible rows in any state; those of tasks in state D are always read.
    pub wait_channels: bool,
    /// Treat every row as visible, for output that prints all rows.
    pub all_visible: bool,
    /// Read the names of all new tasks in one scan, however long that takes, for output that prints once.
    pub all_names: bool,
    /// Report every row, for example for a keyframe of a recording. Reads nothing more.
    pub full_update: bool,
}
