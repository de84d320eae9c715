//! Reads that do not return: which tasks, since when, and on what.

use super::path::Place;
use super::reader::{CMDLINE_STEP, FILES};
use crate::model::process::{BlockedTask, TaskKey};
use crate::root::Root;

/// One read that does not return.
#[derive(Debug, Clone)]
pub struct StuckRead {
    /// Of which task.
    pub place: Place,
    /// Which of [`FILES`].
    pub step: usize,
    since_boot_ns: u64,
    on: String,
}

impl StuckRead {
    /// A read given up after its deadline, by the thread with this id.
    pub fn new(place: Place, step: usize, thread: u32, since_boot_ns: u64) -> Self {
        let file = FILES.get(step).copied().unwrap_or("a file");
        let on = match own_wchan(thread) {
            Some(wchan) => format!("its {file} ({wchan})"),
            None => format!("its {file}"),
        };
        Self { place, step, since_boot_ns, on }
    }

    /// Only the command line hangs: the task is stuck in a page fault, its counters are readable.
    pub fn is_names_only(&self) -> bool {
        self.step == CMDLINE_STEP
    }

    /// As told in an update.
    pub fn tell(&self, key: TaskKey) -> BlockedTask {
        BlockedTask {
            key,
            since_boot_ns: self.since_boot_ns,
            on: self.on.clone(),
            counters_readable: self.is_names_only(),
        }
    }
}

/// Whether one of our own threads runs or waits for a CPU, so that it is slow and not stuck. Our own
/// `stat` never blocks: none of our threads is in exec.
pub fn is_runnable(thread: u32) -> bool {
    let text = std::fs::read(Root::live().proc(&format!("self/task/{thread}/stat")));
    text.ok().and_then(|text| super::parse::stat(&text)).is_some_and(|stat| stat.state == b'R')
}

fn own_wchan(thread: u32) -> Option<String> {
    let text = std::fs::read_to_string(Root::live().proc(&format!("self/task/{thread}/wchan"))).ok()?;
    (!text.is_empty() && text != "0").then_some(text)
}
