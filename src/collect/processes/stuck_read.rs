//! Reads that do not return: of which task, since when, and where in the kernel.

use super::file_reader::{CMDLINE_FILE, FILES};
use super::path::TaskPath;
use crate::model::process::{BlockedTask, TaskKey};
use crate::root::Root;
use std::time::Duration;

/// How long a read may take. A thread that waits for a CPU at that moment gets the same time again.
pub(super) const DEADLINE: Duration = Duration::from_millis(100);

/// Most threads that may hang in a read; with more tasks stuck than that, no read that may block is started.
pub(super) const MAX_STUCK_THREADS: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct StuckRead {
    pub path: TaskPath,
    /// Index into [`FILES`].
    pub file_index: usize,
    since_boot_ns: u64,
    blocked_on: String,
}

impl StuckRead {
    /// Records a read that exceeded its deadline, on the thread with this ID.
    pub(super) fn new(path: TaskPath, file_index: usize, thread: u32, since_boot_ns: u64) -> Self {
        let file = FILES.get(file_index).copied().unwrap_or("a file");
        let on = match thread_wchan(thread) {
            Some(wchan) => format!("its {file} ({wchan})"),
            None => format!("its {file}"),
        };
        Self { path, file_index, since_boot_ns, blocked_on: on }
    }

    /// Whether only the command line hangs: the task is stuck in a page fault, but its counters are readable.
    pub(super) fn is_cmdline_only(&self) -> bool {
        self.file_index == CMDLINE_FILE
    }

    pub(super) fn to_blocked_task(&self, key: TaskKey) -> BlockedTask {
        BlockedTask {
            key,
            since_boot_ns: self.since_boot_ns,
            waiting_on: self.blocked_on.clone(),
            counters_readable: self.is_cmdline_only(),
        }
    }
}

/// Whether one of our own threads is running or waits for a CPU, so that it is slow but not stuck. Our own `stat` never
/// blocks, because none of our threads is in exec.
pub(super) fn is_thread_runnable(thread: u32) -> bool {
    let text = std::fs::read(Root::live().proc(&format!("self/task/{thread}/stat")));
    text.ok().and_then(|text| crate::parse::task::stat(&text)).is_some_and(|stat| stat.state == b'R')
}

fn thread_wchan(thread: u32) -> Option<String> {
    let text = std::fs::read_to_string(Root::live().proc(&format!("self/task/{thread}/wchan"))).ok()?;
    (!text.is_empty() && text != "0").then_some(text)
}
