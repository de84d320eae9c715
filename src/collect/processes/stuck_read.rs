//! Reads that do not return: which tasks, since when, and on what.

use super::file_reader::{CMDLINE_FILE, FILES};
use super::path::TaskPath;
use crate::model::process::{BlockedTask, TaskKey};
use crate::root::Root;

/// Most threads that may hang in a read; with more tasks stuck than that, no read that may block is started.
pub const MAX_STUCK_THREADS: usize = 8;

/// One read that does not return.
#[derive(Debug, Clone)]
pub struct StuckRead {
    /// Of which task.
    pub path: TaskPath,
    /// Which of [`FILES`].
    pub file_index: usize,
    since_boot_ns: u64,
    blocked_on: String,
}

impl StuckRead {
    /// A read given up after its deadline, by the thread with this id.
    pub fn new(place: TaskPath, step: usize, thread: u32, since_boot_ns: u64) -> Self {
        let file = FILES.get(step).copied().unwrap_or("a file");
        let on = match thread_wchan(thread) {
            Some(wchan) => format!("its {file} ({wchan})"),
            None => format!("its {file}"),
        };
        Self { path: place, file_index: step, since_boot_ns, blocked_on: on }
    }

    /// Only the command line hangs: the task is stuck in a page fault, its counters are readable.
    pub fn is_cmdline_only(&self) -> bool {
        self.file_index == CMDLINE_FILE
    }

    /// As told in an update.
    pub fn to_blocked_task(&self, key: TaskKey) -> BlockedTask {
        BlockedTask {
            key,
            since_boot_ns: self.since_boot_ns,
            waiting_on: self.blocked_on.clone(),
            counters_readable: self.is_cmdline_only(),
        }
    }
}

/// Whether one of our own threads runs or waits for a CPU, so that it is slow and not stuck. Our own
/// `stat` never blocks: none of our threads is in exec.
pub fn is_thread_runnable(thread: u32) -> bool {
    let text = std::fs::read(Root::live().proc(&format!("self/task/{thread}/stat")));
    text.ok().and_then(|text| crate::parse::task::stat(&text)).is_some_and(|stat| stat.state == b'R')
}

fn thread_wchan(thread: u32) -> Option<String> {
    let text = std::fs::read_to_string(Root::live().proc(&format!("self/task/{thread}/wchan"))).ok()?;
    (!text.is_empty() && text != "0").then_some(text)
}
