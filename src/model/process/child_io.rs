//! What a process inherits: when it waits for a child that ended, the kernel adds all the child ever moved to the
//! parent's own counters at once (`wait_task_zombie` in kernel/exit.c). A shell that runs one copy after another
//! would seem to move each of them again, in a second. What was seen of the child while it lived is its own doing;
//! only the rest, from the last look to its end, is news.

use super::task::{IoBytes, TaskKey, TaskRaw};
use std::collections::HashMap;

/// Ancestors that ended in the same interval, followed up to the one that lives: no further than this.
const MAX_EXITED_ANCESTORS: usize = 16;

/// Bytes that heirs already had counted for their children, by process.
#[derive(Debug, Default)]
pub(super) struct InheritedIo(HashMap<u32, IoBytes>);

impl InheritedIo {
    /// Of these processes that ended; `last` gives the counters last seen.
    pub fn from_exited<'a>(gone: &[TaskKey], last: impl Fn(&TaskKey) -> Option<&'a TaskRaw>) -> Self {
        if gone.is_empty() {
            return Self::default();
        }
        let ended: HashMap<u32, (u32, IoBytes)> =
            gone.iter().filter_map(|key| Some((key.pid, (last(key)?.ppid, last(key)?.io.bytes()?)))).collect();
        let mut heirs: HashMap<u32, IoBytes> = HashMap::new();
        for (parent, io) in ended.values() {
            let mut heir = *parent;
            for _ in 0..MAX_EXITED_ANCESTORS {
                let Some((above, _)) = ended.get(&heir) else { break };
                heir = *above;
            }
            if *io != IoBytes::default() {
                super::table::add_io(heirs.entry(heir).or_default(), *io);
            }
        }
        Self(heirs)
    }

    /// The counters before the interval with what was inherited in it. Unchanged where the growth does not hold
    /// that much: then the child was not waited for, or by another.
    pub fn adjust_previous(&self, pid: u32, before: IoBytes, now: IoBytes) -> IoBytes {
        let Some(more) = self.0.get(&pid) else { return before };
        let mut with = before;
        super::table::add_io(&mut with, *more);
        let fits = with.read <= now.read && with.write <= now.write && with.cancelled <= now.cancelled;
        if fits { with } else { before }
    }
}
