//! Corrects for the I/O of exited children. When a process waits for an exited child, the kernel adds all of the
//! child's I/O to the parent's counters at once (`wait_task_zombie` in kernel/exit.c). The part that was already
//! counted for the child while it ran must not appear again as I/O of the parent; only the part since the last scan is
//! new.

use super::task::{IoBytes, TaskKey, TaskRaw};
use std::collections::HashMap;

/// Maximum length of a chain of ancestors that exited in the same interval.
const MAX_EXITED_ANCESTORS: usize = 16;

/// Bytes that were already counted for exited children, by the process that inherits them.
#[derive(Debug, Default)]
pub(super) struct InheritedIo(HashMap<u32, IoBytes>);

impl InheritedIo {
    /// For the tasks that exited; `last` returns their last counters.
    pub(super) fn from_exited<'a>(gone: &[TaskKey], last: impl Fn(&TaskKey) -> Option<&'a TaskRaw>) -> Self {
        if gone.is_empty() {
            return Self::default();
        }
        let ended: HashMap<u32, (u32, IoBytes)> =
            gone.iter().filter_map(|key| Some((key.pid, (last(key)?.ppid, last(key)?.io.bytes()?)))).collect();
        let mut inherited: HashMap<u32, IoBytes> = HashMap::new();
        for (parent, io) in ended.values() {
            let mut ancestor = *parent;
            for _ in 0..MAX_EXITED_ANCESTORS {
                let Some((above, _)) = ended.get(&ancestor) else { break };
                ancestor = *above;
            }
            if *io != IoBytes::default() {
                inherited.entry(ancestor).or_default().add(*io);
            }
        }
        Self(inherited)
    }

    /// The bytes that a process inherits between two readings. 0 where the growth is less than that: then the parent has
    /// not waited for the child, or another process has.
    pub(super) fn inherited_by(&self, pid: u32, before: IoBytes, now: IoBytes) -> IoBytes {
        let Some(more) = self.0.get(&pid) else { return IoBytes::default() };
        let mut with = before;
        with.add(*more);
        let fits = with.read <= now.read && with.write <= now.write && with.cancelled <= now.cancelled;
        if fits { *more } else { IoBytes::default() }
    }
}
